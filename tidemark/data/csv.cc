// Tables of numbers as text.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/data/files.h"
#include "tidemark/data/read_file.h"

namespace tidemark::data {
namespace {

using io::FileCall;

// A walk over the fields of a text.
class Fields {
 public:
  Fields(std::string_view text, char separator, const FileCall& call)
      : text_(text), separator_(separator), call_(call) {
    constexpr std::string_view mark = "\xef\xbb\xbf";  // Some programs begin UTF-8 with it.
    if (text_.starts_with(mark)) text_.remove_prefix(mark.size());
  }

  bool at_end() const { return at_ >= text_.size(); }
  // The line that the next row begins in, from 1 on.
  int64_t line() const { return line_; }
  // The fields of the next row; quotes are removed.
  std::vector<std::string> row() {
    std::vector<std::string> fields;
    do fields.push_back(field());
    while (has_next_);
    return fields;
  }

 private:
  // Ends after the separator or the end of the line.
  std::string field() {
    std::string made;
    has_next_ = false;
    int64_t quoted_since = 0;
    for (; at_ < text_.size(); ++at_) {
      const char letter = text_[at_];
      if (letter == '\n') ++line_;
      if (letter == '"') {
        const bool is_double = quoted_since > 0 && next_is('"');
        if (is_double)
          made += text_[++at_];
        else
          quoted_since = quoted_since > 0 ? 0 : line_;
      } else if (quoted_since == 0 && (letter == separator_ || letter == '\n')) {
        has_next_ = letter == separator_;
        ++at_;
        return made;
      } else if (quoted_since > 0 || letter != '\r' ||
                 !(next_is('\n') || at_ + 1 == text_.size())) {
        made += letter;
      }
    }
    if (quoted_since > 0)
      call_.refuse(cat("has a double quote in line ", quoted_since, " that is not closed"),
                   "close it, and write quotes inside of it twice");
    return made;
  }
  bool next_is(char letter) const { return at_ + 1 < text_.size() && text_[at_ + 1] == letter; }

  std::string_view text_;
  char separator_;
  const FileCall& call_;
  size_t at_ = 0;
  int64_t line_ = 1;
  bool has_next_ = false;  // The field before ended with a separator.
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

template <class T>
std::optional<T> number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool holds(DType dtype, int64_t value) {
  if (dtype == DType::boolean) return value == 0 || value == 1;
  const auto bits = static_cast<int>(8 * size_of(dtype));
  if (is_unsigned_integer(dtype)) return value >= 0 && (bits == 64 || value >> bits == 0);
  return bits == 64 || (value >> (bits - 1)) == (value < 0 ? -1 : 0);
}

// A column while it is read: whole numbers until there is another.
class Column {
 public:
  Column(std::string name, const CSVOptions& options) : name_(std::move(name)) {
    const auto dtype = options.dtypes.find(name_);
    if (dtype != options.dtypes.end()) dtype_ = dtype->second;
    const auto missing = options.missing.find(name_);
    if (missing != options.missing.end()) missing_ = missing->second;
    is_whole_ = !dtype_ || !is_float(*dtype_);
    is_read_ = options.columns.empty() || std::find(options.columns.begin(), options.columns.end(),
                                                    name_) != options.columns.end();
  }

  const std::string& name() const { return name_; }
  bool is_read() const { return is_read_; }
  // What is wrong with the field; empty if nothing is.
  std::string add(std::string_view text) {
    if (is_fixed_whole()) {
      std::optional<int64_t> value = whole_of(text);
      const bool fits = value && holds(*dtype_, *value);
      // The upper half of u64 wraps here, and back when it is cast.
      if (!fits && dtype_ == DType::u64 && number<uint64_t>(text))
        value = static_cast<int64_t>(*number<uint64_t>(text));
      else if (!fits)
        return cat("is no ", *dtype_);
      whole_.push_back(*value);
      return {};
    }
    const std::optional<int64_t> value = whole_of(text);
    if (value && is_whole_) {
      whole_.push_back(*value);
      return {};
    }
    const std::optional<double> other = value ? static_cast<double>(*value) : number<double>(text);
    if (!other) return "is no number";
    add_real(*other);
    return {};
  }
  // An empty field; false if the column has no value for it.
  bool add_missing() {
    if (missing_ && is_whole_ && *missing_ == static_cast<double>(static_cast<int64_t>(*missing_)))
      whole_.push_back(static_cast<int64_t>(*missing_));
    else if (is_fixed_whole())
      return false;
    else
      add_real(missing_.value_or(std::numeric_limits<double>::quiet_NaN()));
    return true;
  }
  DType fixed_dtype() const { return *dtype_; }
  Tensor tensor(Source at) const {
    const Tensor values = is_whole_ ? constant(whole_, at) : constant(real_, at);
    if (dtype_) return cast(values, *dtype_, at);
    return is_whole_ ? values : cast(values, DType::f32, at);
  }

 private:
  bool is_fixed_whole() const { return dtype_ && !is_float(*dtype_); }
  static std::optional<int64_t> whole_of(std::string_view text) {
    if (text == "true" || text == "True") return 1;
    if (text == "false" || text == "False") return 0;
    return number<int64_t>(text);
  }
  void add_real(double value) {
    if (is_whole_) real_.assign(whole_.begin(), whole_.end());
    is_whole_ = false;
    real_.push_back(value);
  }

  std::string name_;
  std::optional<DType> dtype_;
  std::optional<double> missing_;
  std::vector<int64_t> whole_;
  std::vector<double> real_;
  bool is_whole_ = true, is_read_ = true;
};

// The beginning of a field, on one line, as an error shows it.
std::string shown(std::string_view field) {
  size_t most = 60;
  if (field.size() <= most) most = field.size();
  while (most < field.size() && (field[most] & 0xc0) == 0x80) --most;  // A whole character.
  std::string text(field.substr(0, most));
  std::replace_if(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  return most < field.size() ? text + "..." : text;
}

class TableReader {
 public:
  TableReader(const FileCall& call, const CSVOptions& options)
      : call_(call),
        options_(options),
        bytes_(content(call)),
        fields_({reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}, options.separator,
                call) {}

  Table read() {
    if (fields_.at_end()) call_.refuse("is empty", "give a file with at least a header");
    const std::vector<std::string> first = fields_.row();
    for (size_t i = 0; i < first.size(); ++i)
      columns_.emplace_back(options_.header ? first[i] : std::to_string(i), options_);
    check_names();
    if (!options_.header) add(first, 1);
    while (!fields_.at_end()) {
      const int64_t line = fields_.line();
      add(fields_.row(), line);
    }
    Table table;
    for (const Column& column : columns_) {
      if (!column.is_read()) continue;
      table.names.push_back(column.name());
      table.emplace(column.name(), column.tensor(call_.at));
    }
    return table;
  }

 private:
  bool has(const std::string& name) const {
    return std::any_of(columns_.begin(), columns_.end(),
                       [&](const Column& column) { return column.name() == name; });
  }
  void need(const std::string& name) const {
    if (!has(name))
      call_.refuse(cat("has no column \"", name, "\""), "name columns of the file's first line");
  }
  void check_names() const {
    for (const std::string& name : options_.columns) need(name);
    for (const auto& [name, dtype] : options_.dtypes) need(name);
    for (const auto& [name, value] : options_.missing) need(name);
    for (size_t i = 0; i < columns_.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (columns_[i].name() == columns_[j].name())
          call_.refuse(cat("has two columns \"", columns_[i].name(), "\""),
                       "rename one, or read without names: {.header = false}");
  }
  void add(const std::vector<std::string>& row, int64_t line) {
    if (row.size() == 1 && row[0].empty() && columns_.size() > 1) return;  // An empty line.
    if (row.size() != columns_.size())
      call_.refuse(cat("has ", row.size(), " fields in line ", line, ", and ", columns_.size(),
                       " in its first"),
                   "put fields with separators in double quotes");
    for (size_t i = 0; i < row.size(); ++i)
      if (columns_[i].is_read()) add(columns_[i], row[i], line);
  }
  void add(Column& column, const std::string& field, int64_t line) const {
    const std::string_view text = trimmed(field);
    const std::string where = cat(" in line ", line, ", column \"", column.name(), "\"");
    if (text.empty() || text == options_.na) {
      if (!column.add_missing())
        call_.refuse(
            cat("has no value", where, ", which is ", column.fixed_dtype()),
            cat("give a value for missing ones: {.missing = {{\"", column.name(), "\", 0}}}"));
      return;
    }
    const std::string wrong = column.add(text);
    if (!wrong.empty())
      call_.refuse(cat("has \"", shown(field), "\"", where, ", which ", wrong),
                   "leave the column out: {.columns = {...}}");
  }

  const FileCall& call_;
  const CSVOptions& options_;
  std::vector<std::byte> bytes_;
  Fields fields_;
  std::vector<Column> columns_;
};

}  // namespace

Table load_csv(const std::string& path, const CSVOptions& options, Source at) {
  const SourceScope scope(at);
  const FileCall call{"load_csv", path, at};
  return TableReader(call, options).read();
}

}  // namespace tidemark::data
