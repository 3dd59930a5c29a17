// `tidemark plan`: the memory that a program needs, and what it would take to need less.
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/base/error.h"
#include "tools/program.h"
#include "tools/program_file.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark plan FILE.tm [--budget=BYTES] [--tradeoff] [--largest[=NAME]]
                     [--size=[NAME=]N] [--json] [--no-jit]

Prints the memory plan of a program: its peak by class, the step and the tensors at the peak, and
every step with the bytes in use. Nothing runs.

options:
  --budget=BYTES  plan the program within so many bytes (65536, 64KiB, 1.5MiB, 2GiB): values are
                  computed again, and the plan says which
  --tradeoff      print bytes against work, from the usual program to the least bytes
  --largest       print the largest number in place of every ? that fits the budget;
                  --largest=NAME: in place of every ?NAME
  --size=N        plan with this number in place of every ? (a size that is left open);
                  --size=NAME=N: in place of every ?NAME
  --json          print JSON; docs/plan_json.md has the schema
  --no-jit        plan the program unfused

exit code: 0 done; 1 nothing fits the budget; 2 bad input or usage.
)";

struct Options {
  std::string input;
  std::optional<Bytes> budget;
  std::optional<int64_t> size;                           // Of all that are still open.
  std::vector<std::pair<std::string, int64_t>> by_name;  // Before that.
  std::optional<std::string> largest_name;
  bool tradeoff = false, largest = false, json = false, fuse = true;
};

int64_t parse_size(const std::string& text) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 0)
    usage_error("plan", cat("'", text, "' is not a size: give a whole number from 0 up"));
  return size;
}

// The bytes of one unit: "" and "B" are bytes; 0 if there is no such unit.
double unit_bytes(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  if (unit == "KiB") return 1024;
  if (unit == "MiB") return 1024.0 * 1024;
  if (unit == "GiB") return 1024.0 * 1024 * 1024;
  return 0;
}

Bytes parse_bytes(const std::string& text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  const double unit = unit_bytes({end, static_cast<size_t>(last - end)});
  const double bytes = number * unit;
  if (error != std::errc() || unit == 0 || !(bytes >= 0 && bytes < 0x1p62))
    usage_error("plan",
                cat("'", text, "' is not a number of bytes: write 65536, 64KiB, 1.5MiB or 2GiB"));
  return static_cast<int64_t>(bytes);
}

void check(const Options& options) {
  need_file("plan", options.input);
  if (options.largest && !options.budget) usage_error("plan", "--largest needs a --budget");
  if (options.largest && options.size)
    usage_error("plan", "--largest looks for the size; leave out --size, or name both sizes");
  if (options.tradeoff && options.budget)
    usage_error("plan", "--tradeoff is of all budgets; leave out --budget");
}

// "64", or "batch=64".
void take_size(const std::string& text, Options& options) {
  const size_t sign = text.find('=');
  if (sign == std::string::npos)
    options.size = parse_size(text);
  else
    options.by_name.emplace_back(text.substr(0, sign), parse_size(text.substr(sign + 1)));
}

// "--largest rows=" is "--largest=rows"; on its own, the option takes no value.
std::vector<std::string> with_names(Arguments arguments) {
  std::vector<std::string> joined;
  for (const std::string& argument : arguments) {
    if (!joined.empty() && joined.back() == "--largest" && argument.ends_with('='))
      joined.back() += "=" + argument;
    else
      joined.push_back(argument);
  }
  return joined;
}

Options parse(Arguments arguments) {
  Options options;
  const std::vector<std::string> joined = with_names(arguments);
  for (const std::string& argument : with_values("plan", joined, {"--budget", "--size"})) {
    if (const auto budget = value_of(argument, "--budget"))
      options.budget = parse_bytes(*budget);
    else if (const auto size = value_of(argument, "--size"))
      take_size(*size, options);
    else if (const auto name = value_of(argument, "--largest"))
      options.largest = true, options.largest_name = name->substr(0, name->find('='));
    else if (argument == "--tradeoff")
      options.tradeoff = true;
    else if (argument == "--largest")
      options.largest = true;
    else if (argument == "--json")
      options.json = true;
    else if (argument == "--no-jit")
      options.fuse = false;
    else
      take_file("plan", argument, options.input);
  }
  check(options);
  return options;
}

// Why no program fits, on the standard error; the answer is no.
int refuse(const std::string& problem, const std::string& remedy) {
  std::cerr << "tidemark: plan: " << problem << "\n  " << remedy << '\n';
  return 1;
}

bool fits(const Plan& plan, Bytes budget) {
  return plan.peak() <= budget || plan.floor() <= budget;
}

int print_within(const Plan& plan, const Options& options) {
  if (!fits(plan, *options.budget))
    return refuse(cat("the budget is ", options.budget->count,
                      " bytes, and the program needs at least ", plan.floor().count, " at once"),
                  cat("--budget=", plan.floor().count, " fits"));
  const Plan within = plan.within(*options.budget);
  std::cout << (options.json ? within.to_json() : within.to_text());
  return 0;
}

void print_row(const std::string& peak, const std::string& work, const std::string& time) {
  const auto column = [](const std::string& text, size_t width) {
    return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
  };
  std::cout << column(peak, 12) << column(work, 12) << column(time, 14) << '\n';
}

std::string decimal(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, number);
  return text;
}

void print_tradeoff(const Plan& plan, bool json) {
  const std::vector<TradeoffPoint> points = plan.tradeoff();
  if (json) {
    std::cout << to_json(points);
    return;
  }
  print_row("peak", "more work", "estimated");
  for (const TradeoffPoint& point : points)
    print_row(cat(point.peak), decimal(100 * point.more_work, 1) + " %",
              decimal(point.estimated_ms, 3) + " ms");
}

// The largest size that fits, found by doubling and then by halving; 0 if none does.
int64_t largest_size(const std::string& text, const Options& options) {
  const auto plan_fits = [&](int64_t size) {
    return fits(
        plan_of_text(with_size(text, size, options.largest_name), options.input, options.fuse),
        *options.budget);
  };
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t fit = 0, fails = 1;
  for (; fails <= kMost && plan_fits(fails); fails *= 2) fit = fails;
  while (fails - fit > 1) {
    const int64_t middle = fit + (fails - fit) / 2;
    (plan_fits(middle) ? fit : fails) = middle;
  }
  return fit;
}

int print_largest(const std::string& text, const Options& options) {
  const int64_t size = largest_size(text, options);
  if (size == 0)
    return refuse(cat("the budget is ", options.budget->count, " bytes, and not even size 1 fits"),
                  cat("tidemark plan ", options.input,
                      " --size=", options.largest_name ? *options.largest_name + "=" : "",
                      "1 --tradeoff shows what would"));
  const std::string closed = with_size(text, size, options.largest_name);
  const Bytes peak =
      plan_of_text(closed, options.input, options.fuse).within(*options.budget).peak();
  if (options.json)
    std::cout << "{\"largest\": " << size << ", \"peak\": " << peak.count << "}\n";
  else
    std::cout << "the largest " << options.largest_name.value_or("size") << " that fits "
              << *options.budget << " is " << size << ", with " << peak << " at once\n";
  return 0;
}

}  // namespace

namespace {

void expect_open(const std::string& text, const Options& options,
                 const std::optional<std::string>& name) {
  if (has_open_size(text, name)) return;
  if (!name)
    throw UserError(cat("plan: no size of '", options.input, "' is open"), Source::none(),
                    "leave one open: %x: f32[?, 784]");
  throw UserError(cat("plan: no size of '", options.input, "' is named '", *name, "'"),
                  Source::none(), cat("name one: %x: f32[?", *name, ", 784]"));
}

// The text with the numbers that were given. The size that is searched for stays open.
std::string with_given_sizes(std::string text, const Options& options) {
  for (const auto& [name, size] : options.by_name) {
    expect_open(text, options, name);
    text = with_size(text, size, name);
  }
  if (!options.largest && !options.size) return text;
  expect_open(text, options, options.largest_name);
  return options.size ? with_size(text, *options.size) : text;
}

}  // namespace

int plan_command(Arguments arguments) {
  if (asked_for_help(arguments, kHelp)) return 0;
  const Options options = parse(arguments);
  const std::string text = with_given_sizes(read_text(options.input, "plan"), options);
  const bool is_open =
      has_open_size(options.largest ? with_size(text, 1, options.largest_name) : text);
  if (is_open)
    throw UserError(cat("plan: sizes of '", options.input, "' are open"), Source::none(),
                    "give them a number: --size=64");
  if (options.largest) return print_largest(text, options);
  const Plan plan = plan_of_text(text, options.input, options.fuse);
  if (options.budget) return print_within(plan, options);
  if (options.tradeoff)
    print_tradeoff(plan, options.json);
  else
    std::cout << (options.json ? plan.to_json() : plan.to_text());
  return 0;
}

}  // namespace tidemark::tools
