#include "tidemark/data/files.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/io/crc32.h"
#include "tidemark/io/file.h"
#include "tidemark/io/inflate.h"

namespace tidemark::data {
namespace {

using io::FileCall;

uint32_t little(const std::byte* at) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | std::to_integer<uint32_t>(at[i]);
  return value;
}

// The position of the deflated bytes in a gzip file (RFC 1952).
size_t gzip_head(std::span<const std::byte> bytes, const FileCall& call) {
  const auto flags = std::to_integer<unsigned>(bytes[3]);
  size_t at = 10;
  const auto need = [&](size_t end) {
    if (end > bytes.size()) call.bad(static_cast<int64_t>(at), "the gzip header is cut off");
  };
  if ((flags & 4U) != 0) {
    need(at + 2);
    at += 2 + std::to_integer<size_t>(bytes[at]) + 256 * std::to_integer<size_t>(bytes[at + 1]);
  }
  for (const unsigned text : {8U, 16U}) {
    if ((flags & text) == 0) continue;
    do need(at + 1);
    while (bytes[at++] != std::byte{0});
  }
  if ((flags & 2U) != 0) at += 2;
  need(at);
  return at;
}

std::vector<std::byte> inflated(const std::vector<std::byte>& bytes, const FileCall& call) {
  const size_t begin = gzip_head(bytes, call);
  size_t next = begin;
  const auto source = [&](std::span<std::byte> to) {
    const size_t count = std::min(to.size(), bytes.size() - next);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(next), count, to.begin());
    next += count;
    return count;
  };
  std::vector<std::byte> whole;
  const auto sink = [&](std::span<const std::byte> part) {
    whole.insert(whole.end(), part.begin(), part.end());
    return true;
  };
  const auto used =
      static_cast<size_t>(io::inflate(source, sink, static_cast<int64_t>(begin), call));
  const size_t end = begin + used;
  if (end + 8 > bytes.size())
    call.bad(static_cast<int64_t>(end), "the gzip file is cut off before its checksum");
  if (little(&bytes[end]) != io::crc32(whole))
    call.bad(static_cast<int64_t>(end), "the checksum does not match the content",
             "the file is damaged: fetch it again");
  return whole;
}

std::vector<std::byte> content(const FileCall& call) {
  const io::InputFile file(call);
  std::vector<std::byte> bytes(static_cast<size_t>(file.bytes()));
  file.read(0, bytes);
  const bool is_gzip =
      bytes.size() > 18 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
  return is_gzip ? inflated(bytes, call) : bytes;
}

// ---- CSV ----------------------------------------------------------------------------------------

// A walk over the fields of a text.
class Fields {
 public:
  Fields(std::string_view text, char separator) : text_(text), separator_(separator) {}

  bool at_end() const { return at_ >= text_.size(); }
  int64_t line() const { return line_; }
  // The fields of the next line; quotes are removed.
  std::vector<std::string> row() {
    std::vector<std::string> fields;
    do fields.push_back(field());
    while (has_next_);
    ++line_;
    return fields;
  }

 private:
  // Ends after the separator or the end of the line.
  std::string field() {
    std::string made;
    bool is_quoted = false;
    has_next_ = false;
    for (; at_ < text_.size(); ++at_) {
      const char letter = text_[at_];
      if (letter == '"') {
        const bool is_double = is_quoted && at_ + 1 < text_.size() && text_[at_ + 1] == '"';
        if (is_double)
          made += text_[++at_];
        else
          is_quoted = !is_quoted;
      } else if (!is_quoted && (letter == separator_ || letter == '\n')) {
        has_next_ = letter == separator_;
        ++at_;
        break;
      } else if (is_quoted || letter != '\r') {
        made += letter;
      }
    }
    return made;
  }

  std::string_view text_;
  char separator_;
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
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A column while it is read: whole numbers until there is another.
struct Column {
  std::string name;
  std::vector<int64_t> whole;
  std::vector<double> real;
  bool is_whole = true;

  bool add(std::string_view field) {
    const std::string_view text = trimmed(field);
    std::optional<int64_t> value = number<int64_t>(text);
    if (text == "true" || text == "True") value = 1;
    if (text == "false" || text == "False") value = 0;
    if (value && is_whole) {
      whole.push_back(*value);
      return true;
    }
    std::optional<double> other = number<double>(text);
    if (value) other = static_cast<double>(*value);
    if (text.empty()) other = std::numeric_limits<double>::quiet_NaN();
    if (!other) return false;
    if (is_whole) real.assign(whole.begin(), whole.end());
    is_whole = false;
    real.push_back(*other);
    return true;
  }
  Tensor tensor(const std::map<std::string, DType>& dtypes) const {
    const auto named = dtypes.find(name);
    const Tensor values = is_whole ? constant(whole) : constant(real);
    if (named != dtypes.end()) return cast(values, named->second);
    return is_whole ? values : cast(values, DType::f32);
  }
};

}  // namespace

Table load_csv(const std::string& path, const CSVOptions& options, Source at) {
  const SourceScope scope(at);
  const FileCall call{"load_csv", path, at};
  const std::vector<std::byte> bytes = content(call);
  Fields fields({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.separator);
  if (fields.at_end()) call.refuse("is empty", "give a file with at least a header");
  std::vector<std::string> first = fields.row();
  std::vector<Column> columns(first.size());
  for (size_t i = 0; i < columns.size(); ++i)
    columns[i].name = options.header ? first[i] : std::to_string(i);
  const auto is_read = [&](const std::string& name) {
    return options.columns.empty() ||
           std::find(options.columns.begin(), options.columns.end(), name) != options.columns.end();
  };
  for (const std::string& wanted : options.columns)
    if (std::none_of(columns.begin(), columns.end(),
                     [&](const Column& column) { return column.name == wanted; }))
      call.refuse(cat("has no column \"", wanted, "\""), "name columns of the file's first line");
  const auto add = [&](const std::vector<std::string>& row, int64_t line) {
    if (row.size() == 1 && row[0].empty() && columns.size() > 1) return;  // An empty line.
    if (row.size() != columns.size())
      call.refuse(cat("has ", row.size(), " fields in line ", line, ", and ", columns.size(),
                      " in its first"),
                  "put fields with separators in double quotes");
    for (size_t i = 0; i < row.size(); ++i)
      if (is_read(columns[i].name) && !columns[i].add(row[i]))
        call.refuse(cat("has \"", row[i], "\" in line ", line, ", column \"", columns[i].name,
                        "\", which is no number"),
                    "leave the column out: {.columns = {...}}");
  };
  if (!options.header) add(first, 1);
  while (!fields.at_end()) {
    const int64_t line = fields.line();
    add(fields.row(), line);
  }
  Table table;
  for (const Column& column : columns) {
    if (!is_read(column.name)) continue;
    table.names.push_back(column.name);
    table.emplace(column.name, column.tensor(options.dtypes));
  }
  return table;
}

// ---- binary files -------------------------------------------------------------------------------

namespace {

uint32_t big(const std::byte* at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(at[i]);
  return value;
}

DType idx_dtype(std::byte code, const FileCall& call) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0b:
      return DType::i16;
    case 0x0c:
      return DType::i32;
    case 0x0d:
      return DType::f32;
    case 0x0e:
      return DType::f64;
    default:
      call.bad(2, cat("elements of type ", std::to_integer<int>(code), " are not supported"),
               "u8 (8), i8 (9), i16 (11), i32 (12), f32 (13) and f64 (14) are");
  }
}

}  // namespace

Tensor load_idx(const std::string& path, Source at) {
  const SourceScope scope(at);
  const FileCall call{"load_idx", path, at};
  const std::vector<std::byte> bytes = content(call);
  if (bytes.size() < 4 || bytes[0] != std::byte{0} || bytes[1] != std::byte{0})
    call.bad(0, "this is no IDX file", "IDX files begin with two zero bytes");
  const DType dtype = idx_dtype(bytes[2], call);
  const auto rank = std::to_integer<size_t>(bytes[3]);
  const size_t head = 4 + 4 * rank;
  if (bytes.size() < head) call.bad(4, "the sizes are cut off");
  Shape shape;
  uint64_t size = static_cast<uint64_t>(size_of(dtype));
  for (size_t i = 0; i < rank; ++i) {
    const uint32_t axis = big(&bytes[4 + 4 * i]);
    shape.push_back(static_cast<int64_t>(axis));
    if (__builtin_mul_overflow(size, uint64_t{axis}, &size)) size = UINT64_MAX;
  }
  if (size != bytes.size() - head)
    call.bad(static_cast<int64_t>(head), cat("the file has ", bytes.size() - head, " bytes for ",
                                             dtype, shape, ", which needs ", size));
  const auto width = static_cast<size_t>(size_of(dtype));
  return from_callback(
      shape, dtype,
      [&](std::span<std::byte> to) {  // Elements are big-endian.
        for (size_t i = 0; i < to.size(); ++i)
          to[i] = bytes[head + i / width * width + (width - 1 - i % width)];
      },
      at);
}

CifarBatch load_cifar(const std::string& path, int64_t labels, Source at) {
  const SourceScope scope(at);
  const FileCall call{"load_cifar", path, at};
  const std::vector<std::byte> bytes = content(call);
  constexpr int64_t kImage = 3 * 32 * 32;
  const int64_t row = labels + kImage;
  if (labels < 1 || bytes.empty() || static_cast<int64_t>(bytes.size()) % row != 0)
    call.refuse(cat("has ", bytes.size(), " bytes, not rows of ", row),
                "each image has one label in CIFAR-10, two in CIFAR-100: load_cifar(path, 2)");
  const int64_t count = static_cast<int64_t>(bytes.size()) / row;
  const Tensor rows = from_callback(
      {count, row}, DType::u8,
      [&](std::span<std::byte> to) { std::copy(bytes.begin(), bytes.end(), to.begin()); }, at);
  const Tensor planes = reshape(rows[{all, Slice{.begin = labels}}], {count, 3, 32, 32});
  // The last label is the fine one.
  return {identity(transpose(planes, {0, 2, 3, 1})), identity(rows[{all, labels - 1}])};
}

}  // namespace tidemark::data
