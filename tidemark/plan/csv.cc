#include "tidemark/plan/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <istream>
#include <limits>
#include <optional>
#include <ostream>
#include <unordered_set>
#include <utility>

namespace tidemark::plan {
namespace {

constexpr size_t kLongestLine = 64 * 1024;
constexpr size_t kMostBuffers = 10'000'000;

enum Column : uint8_t { id, lower, upper, size, alignment, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"id", "lower", "upper", "size",
                                                           "alignment"};
// How much of a bad field an error shows.
constexpr size_t kShown = 32;

// A field for an error message: shortened, with unprintable bytes escaped.
std::string shown(std::string_view field) {
  std::string text(field.substr(0, kShown));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (field.size() > kShown) text += "...";
  return "'" + text + "'";
}

struct Field {
  std::string_view text;
  int64_t column;  // From one.
};

std::vector<Field> split(std::string_view line) {
  std::vector<Field> fields;
  size_t begin = 0;
  for (;;) {
    const size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back({line.substr(begin, end - begin), static_cast<int64_t>(begin) + 1});
    if (end == line.size()) return fields;
    begin = end + 1;
  }
}

// Lines without their ends, read in blocks; never holds more than one line and one block.
class Lines {
 public:
  Lines(std::istream& in, std::string_view file) : in_(in), file_(file), block_(kLongestLine, 0) {}

  // The next line, valid until the next call, or nothing at the end.
  std::optional<std::string_view> next() {
    line_.clear();
    ++number_;
    bool any = false;
    for (;;) {
      if (begin_ == end_) {
        in_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
        begin_ = 0;
        end_ = static_cast<size_t>(in_.gcount());
        if (end_ == 0) break;
      }
      any = true;
      const std::string_view rest(block_.data() + begin_, end_ - begin_);
      const size_t length = std::min(rest.find('\n'), rest.size());
      if (line_.size() + length > kLongestLine) {
        throw CsvError(file_, number_, static_cast<int64_t>(kLongestLine) + 1,
                       cat("the line is longer than ", kLongestLine, " bytes"));
      }
      line_.append(rest.substr(0, length));
      begin_ += length;
      if (length == rest.size()) continue;
      ++begin_;  // Past the end of the line.
      break;
    }
    if (!any) {
      if (in_.bad()) throw CsvError(file_, number_, 1, "the file cannot be read");
      return std::nullopt;
    }
    if (line_.ends_with('\r')) line_.pop_back();
    return line_;
  }
  int64_t number() const { return number_; }

 private:
  std::istream& in_;
  std::string_view file_;
  std::string block_, line_;
  size_t begin_ = 0, end_ = 0;
  int64_t number_ = 0;
};

class Reader {
 public:
  Reader(std::istream& in, std::string_view file) : file_(file), lines_(in, file) {}

  CsvProblem read() {
    read_header();
    bool blank = false;
    while (const std::optional<std::string_view> line = lines_.next()) {
      // Empty lines are allowed only at the end.
      if (line->empty()) {
        blank = true;
        continue;
      }
      if (blank) fail(1, "there is an empty line before this one");
      if (csv_.rows.size() == kMostBuffers) {
        fail(1, cat("there are more than ", kMostBuffers, " buffers"));
      }
      read_row(*line);
    }
    return std::move(csv_);
  }

 private:
  [[noreturn]] void fail(int64_t column, const std::string& problem) const {
    throw CsvError(file_, lines_.number(), column, problem);
  }

  void read_header() {
    const std::optional<std::string_view> line = lines_.next();
    if (!line) fail(1, "the file is empty; the first line names the columns");
    std::string_view text = *line;
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // A byte order mark.
    csv_.header = text;
    const std::vector<Field> fields = split(csv_.header);
    columns_ = fields.size();
    where_.fill(-1);
    for (size_t i = 0; i < fields.size(); ++i) {
      // An input column of this name would be overwritten.
      if (fields[i].text == "offset") {
        fail(fields[i].column, "there is a column 'offset' already; the result adds this column");
      }
      const auto known = std::ranges::find(kNames, fields[i].text);
      if (known == kNames.end()) continue;
      int64_t& where = where_[known - kNames.begin()];
      if (where >= 0) fail(fields[i].column, cat("there are two columns ", shown(*known)));
      where = static_cast<int64_t>(i);
    }
    for (Column column : {id, lower, upper, size}) {
      if (where_[column] < 0) {
        fail(1, cat("there is no column ", shown(kNames[column]),
                    "; the first line must name id, lower, upper and size"));
      }
    }
  }

  void read_row(std::string_view line) {
    const std::vector<Field> fields = split(line);
    if (fields.size() != columns_) {
      const int64_t column = fields.size() > columns_ ? fields[columns_].column
                                                      : static_cast<int64_t>(line.size()) + 1;
      fail(column,
           cat("there are ", fields.size(), " fields where the first line names ", columns_));
    }
    const Field& name = fields[where_[id]];
    if (name.text.empty()) fail(name.column, "id is empty");
    Buffer buffer;
    buffer.lifetime.begin = number(fields, lower);
    buffer.lifetime.end = number(fields, upper);
    buffer.size_bytes = number(fields, size);
    buffer.alignment = where_[alignment] >= 0 ? number(fields, alignment) : 1;
    check(buffer, fields);
    if (!seen_.insert(std::string(name.text)).second) {
      fail(name.column, cat("id ", shown(name.text), " was used before"));
    }
    csv_.ids.emplace_back(name.text);
    csv_.rows.emplace_back(line);
    csv_.problem.buffers.push_back(buffer);
  }

  void check(const Buffer& buffer, const std::vector<Field>& fields) {
    if (buffer.lifetime.end <= buffer.lifetime.begin) {
      fail(fields[where_[upper]].column,
           cat("upper must be greater than lower: ", buffer.lifetime.end, " after ",
               buffer.lifetime.begin));
    }
    if (buffer.size_bytes < 0) {
      fail(fields[where_[size]].column, cat("size is negative: ", buffer.size_bytes));
    }
    if (buffer.alignment < 1) {
      fail(fields[where_[alignment]].column,
           cat("alignment must be at least 1: ", buffer.alignment));
    }
    // The planner's bound: the sum of all sizes must fit.
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;
    if (buffer.size_bytes > kMost - sum_ || buffer.alignment > kMost - sum_ - buffer.size_bytes) {
      fail(fields[where_[size]].column, "the sizes up to here add up to more than 64 bits hold");
    }
    sum_ += buffer.size_bytes + buffer.alignment;
  }

  int64_t number(const std::vector<Field>& fields, Column column) const {
    const Field& field = fields[where_[column]];
    int64_t value = 0;
    const char* end = field.text.data() + field.text.size();
    const auto [stop, error] = std::from_chars(field.text.data(), end, value);
    if (error == std::errc::result_out_of_range) {
      fail(field.column, cat(kNames[column], " does not fit 64 bits: ", shown(field.text)));
    }
    if (error != std::errc() || stop != end) {
      fail(field.column, cat(kNames[column], " is not a whole number: ", shown(field.text)));
    }
    return value;
  }

  std::string_view file_;
  Lines lines_;
  CsvProblem csv_;
  size_t columns_ = 0;
  std::array<int64_t, kColumns> where_{};  // Place of each column in a row, or -1.
  std::unordered_set<std::string> seen_;
  int64_t sum_ = 0;
};

}  // namespace

CsvError::CsvError(std::string_view file, int64_t line, int64_t column, const std::string& problem)
    : UserError(cat(file, ":", line, ":", column, ": ", problem)), line_(line), column_(column) {}

CsvProblem read_csv(std::istream& in, std::string_view file) { return Reader(in, file).read(); }

void write_csv(std::ostream& out, const CsvProblem& csv, const Placement& placement) {
  out << csv.header << ",offset\n";
  for (size_t i = 0; i < csv.rows.size(); ++i) {
    out << csv.rows[i] << ',' << placement.offsets[i] << '\n';
  }
}

}  // namespace tidemark::plan
