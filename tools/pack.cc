#include "tools/pack.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/plan/check.h"
#include "tidemark/plan/csv.h"
#include "tidemark/plan/picture.h"
#include "tidemark/plan/plan.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark pack FILE.csv [OPTION...]

Gives every buffer an offset so that the tidemark, the highest byte in use, is low.
FILE.csv names its columns in the first line: id, lower, upper, size, and alignment if
there is one. A buffer lives from step lower up to, not including, step upper.

options:
  --capacity N      stop at a tidemark of at most N bytes; exit 1 if none was found
  --time-limit S    stop after S seconds with the best so far (default 10)
  --output OUT.csv  write the lines with a column `offset` added
  --picture OUT.svg draw offset over time
  --json            print the result as JSON

exit code: 0 the result is valid and fits the capacity, if one was given; 1 it does not
fit; 2 bad input or usage.
)";

struct Options {
  std::string input;
  int64_t capacity_bytes = 0;
  bool has_capacity = false;
  double seconds = 10;
  std::string output, picture;
  bool json = false;
};

[[noreturn]] void usage(const std::string& problem) { usage_error("pack", problem); }

template <class Number>
Number parse_number(const std::string& option, const std::string& text) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || !(value >= 0)) {
    usage(option + " needs a number, not '" + text + "'");
  }
  return value;
}

Options parse(Arguments arguments) {
  Options options;
  for (const std::string& argument :
       with_values("pack", arguments, {"--capacity", "--time-limit", "--output", "--picture"})) {
    if (const auto capacity = value_of(argument, "--capacity")) {
      options.capacity_bytes = parse_number<int64_t>("--capacity", *capacity);
      options.has_capacity = true;
    } else if (const auto seconds = value_of(argument, "--time-limit")) {
      options.seconds = parse_number<double>("--time-limit", *seconds);
    } else if (const auto output = value_of(argument, "--output")) {
      options.output = *output;
    } else if (const auto picture = value_of(argument, "--picture")) {
      options.picture = *picture;
    } else if (argument == "--json") {
      options.json = true;
    } else {
      take_file("pack", argument, options.input);
    }
  }
  need_file("pack", options.input);
  return options;
}

plan::CsvProblem read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UserError(cat("pack: cannot open '", path, "': ", std::strerror(errno)));
  return plan::read_csv(in, path);
}

namespace fs = std::filesystem;

// The target of a path, which need not exist: symbolic links are followed one by one.
fs::path followed(fs::path path) {
  constexpr int kMostLinks = 40;  // As many as the kernel follows.
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / target;
  }
  return path;
}

// Writes a file atomically: a temporary file beside it is renamed. An existing device or pipe is
// written to directly.
class WholeFile {
 public:
  explicit WholeFile(const std::string& path) : path_(path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    direct_ = fs::exists(status) && !fs::is_regular_file(status);
    if (direct_) return;
    place_ = followed(path).string();
    temporary_ = place_ + ".tmp." + std::to_string(getpid());
  }
  ~WholeFile() {
    if (!temporary_.empty() && !finished_) std::remove(temporary_.c_str());
  }
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  void write(const std::function<void(std::ostream&)>& writer) {
    if (direct_) {
      TextStream text;
      writer(text);
      text_ = text.str();
    } else {
      write_to(temporary_, writer);
    }
  }
  void finish() {
    if (direct_) {
      write_to(path_, [&](std::ostream& out) { out << text_; });
    } else if (std::rename(temporary_.c_str(), place_.c_str()) != 0) {
      fail();
    }
    finished_ = true;
  }

 private:
  void write_to(const std::string& path, const std::function<void(std::ostream&)>& writer) {
    errno = 0;
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (out) writer(out);
    out.close();
    if (!out) fail();
  }
  [[noreturn]] void fail() const {
    throw UserError(cat("pack: cannot write '", path_, "': ", std::strerror(errno)));
  }

  std::string path_;               // As it was given.
  std::string place_, temporary_;  // Of a file.
  std::string text_;               // Of anything else, until it is written.
  bool direct_ = false;
  bool finished_ = false;
};

// A progress line on a terminal, rewritten in place; nothing if there is no terminal, or for short
// runs.
class Progress {
 public:
  explicit Progress(int64_t load_bytes)
      : load_bytes_(load_bytes), watched_(isatty(STDERR_FILENO) != 0), start_(Clock::now()) {}
  ~Progress() {
    if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  }

  void operator()(int64_t tidemark_bytes) {
    if (!watched_) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (seconds < next_) return;
    next_ = seconds + 0.2;
    shown_ = true;
    char text[128];
    std::snprintf(text, sizeof(text), "\r\x1b[Kpacking for %.1f s: %.4f x load", seconds,
                  static_cast<double>(tidemark_bytes) /
                      static_cast<double>(load_bytes_ > 0 ? load_bytes_ : 1));
    std::cerr << text << std::flush;
  }

 private:
  using Clock = std::chrono::steady_clock;
  int64_t load_bytes_;
  bool watched_;
  Clock::time_point start_;
  double next_ = 0.5;
  bool shown_ = false;
};

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

struct Report {
  const Options& options;
  const plan::Problem& problem;
  const plan::Result& result;
  double seconds;

  int64_t tidemark() const { return result.placement.tidemark_bytes; }
  double ratio() const {
    return result.load_bytes == 0
               ? 1.0
               : static_cast<double>(tidemark()) / static_cast<double>(result.load_bytes);
  }
  bool fits() const { return !options.has_capacity || tidemark() <= options.capacity_bytes; }

  void print_text(std::ostream& out) const {
    out << "buffers   " << problem.buffers.size() << '\n'
        << "load      " << result.load_bytes << " (" << Bytes(result.load_bytes) << ")\n"
        << "tidemark  " << tidemark() << " (" << Bytes(tidemark()) << ")\n"
        << "ratio     " << decimal(ratio(), 4) << '\n'
        << "least     " << least() << '\n';
    if (options.has_capacity) {
      out << "fits      " << (fits() ? "yes" : "no") << ", capacity " << options.capacity_bytes
          << '\n';
    }
    out << "seconds   " << decimal(seconds, 3) << '\n';
  }
  void print_json(std::ostream& out) const {
    out << "{\"buffers\": " << problem.buffers.size() << ", \"load\": " << result.load_bytes
        << ", \"tidemark\": " << tidemark() << ", \"ratio\": " << decimal(ratio(), 6)
        << ", \"lower_bound\": " << result.bound_bytes
        << ", \"proven_least\": " << (result.proof != plan::Proof::none ? "true" : "false")
        << ", \"proof\": \"" << plan::name(result.proof) << '"';
    if (options.has_capacity) {
      out << ", \"capacity\": " << options.capacity_bytes
          << ", \"fits\": " << (fits() ? "true" : "false");
    }
    out << ", \"seconds\": " << decimal(seconds, 3) << "}\n";
  }

 private:
  std::string least() const {
    switch (result.proof) {
      case plan::Proof::load:
        return tidemark() == result.load_bytes ? "proven: it equals the load"
                                               : "proven: it equals a lower bound";
      case plan::Proof::search:
        return "proven by search";
      case plan::Proof::none:
        break;
    }
    return cat("not proven: at least ", result.bound_bytes);
  }
};

}  // namespace

int pack_command(Arguments arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::cout << kHelp;
      return 0;
    }
  }
  const Options options = parse(arguments);
  const plan::CsvProblem csv = read(options.input);

  plan::Limits limits;
  limits.seconds = options.seconds;
  limits.nodes = std::numeric_limits<int64_t>::max() / 2;
  limits.capacity_bytes = options.capacity_bytes;
  const auto start = std::chrono::steady_clock::now();
  plan::Result result;
  {
    Progress progress(plan::load_bytes(csv.problem));
    limits.progress = std::ref(progress);
    result = plan::place(csv.problem, limits);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const std::optional<plan::Fault> fault = plan::check_placement(csv.problem, result.placement);
  TIDEMARK_CHECK(!fault, fault->text());

  // Both files are complete before either takes its place.
  std::optional<WholeFile> output, picture;
  if (!options.output.empty()) {
    output.emplace(options.output);
    output->write([&](std::ostream& out) { plan::write_csv(out, csv, result.placement); });
  }
  if (!options.picture.empty()) {
    picture.emplace(options.picture);
    picture->write([&](std::ostream& out) {
      plan::draw_svg(out, csv.problem, result.placement, csv.ids, options.capacity_bytes);
    });
  }
  if (output) output->finish();
  if (picture) picture->finish();

  const Report report{options, csv.problem, result, elapsed.count()};
  if (options.json) {
    report.print_json(std::cout);
  } else {
    report.print_text(std::cout);
  }
  return report.fits() ? 0 : 1;
}

}  // namespace tidemark::tools
