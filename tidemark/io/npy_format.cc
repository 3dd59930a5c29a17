#include "tidemark/io/npy_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace tidemark::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMostHeadBytes = 1 << 20;
constexpr int64_t kMostAxes = 64;  // NumPy's own limit.

struct NpyDType {
  std::string_view name;  // Without the byte order.
  DType dtype;
};
constexpr NpyDType kDTypesOfNpy[] = {{"f2", f16}, {"f4", f32},  {"f8", f64}, {"i1", i8},
                                     {"i2", i16}, {"i4", i32},  {"i8", i64}, {"u1", u8},
                                     {"u2", u16}, {"u4", u32},  {"u8", u64}, {"b1", boolean},
                                     {"c8", c64}, {"c16", c128}};

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

// Parses the dict token by token. It accepts only what NumPy writes, and evaluates nothing.
class DictReader {
 public:
  DictReader(std::string_view text, int64_t offset, const FileCall& call)
      : text_(text), offset_(offset), call_(call) {}

  [[noreturn]] void bad(const std::string& problem, std::string_view remedy = {}) const {
    call_.bad(offset_ + static_cast<int64_t>(next_), problem, remedy);
  }
  bool take(char c) {
    skip_blanks();
    if (next_ == text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) bad(cat("the header is not a dict as NumPy writes it: expected '", c, "'"));
  }
  void expect_end() {
    skip_blanks();
    if (next_ != text_.size()) bad("unexpected text after the header's dict");
  }
  std::string_view string() {
    skip_blanks();
    const char quote = next_ < text_.size() ? text_[next_] : '\0';
    if (quote != '\'' && quote != '"') bad("expected a string");
    const size_t end = text_.find(quote, next_ + 1);
    if (end == std::string_view::npos) bad("a string does not end");
    const std::string_view found = text_.substr(next_ + 1, end - next_ - 1);
    next_ = end + 1;
    return found;
  }
  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] :
         {std::pair{std::string_view("True"), true}, std::pair{std::string_view("False"), false}}) {
      if (!text_.substr(next_).starts_with(word)) continue;
      next_ += word.size();
      return value;
    }
    bad("expected True or False");
  }
  int64_t size() {
    skip_blanks();
    if (next_ < text_.size() && text_[next_] == '-') bad("a size is negative");
    int64_t value = 0;
    const char* const begin = text_.data() + next_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) bad("a size does not fit 63 bits");
    if (error != std::errc()) bad("expected a size");
    next_ += static_cast<size_t>(end - begin);
    take('L');  // As Python 2 wrote it.
    return value;
  }

 private:
  void skip_blanks() {
    while (next_ < text_.size() && std::strchr(" \t\n", text_[next_]) != nullptr &&
           text_[next_] != '\0')
      ++next_;
  }

  std::string_view text_;
  int64_t offset_;
  const FileCall& call_;
  size_t next_ = 0;
};

void read_dtype(DictReader& reader, NpyHead& head) {
  if (reader.take('[')) {
    reader.bad("the elements are records",
               "a tensor has elements of one dtype: save each field by itself, a['name']");
  }
  const std::string_view text = reader.string();
  const bool has_order = !text.empty() && std::strchr("<>|=", text.front()) != nullptr;
  const std::string_view name = text.substr(has_order ? 1 : 0);
  head.big_endian = text.starts_with('>');
  for (const NpyDType& known : kDTypesOfNpy) {
    if (known.name != name) continue;
    head.dtype = known.dtype;
    return;
  }
  reader.bad(cat("the elements are '", text, "', which Tidemark does not support"),
             "convert them in NumPy: a.astype('float32')");
}

Shape read_shape(DictReader& reader) {
  Shape shape;
  reader.expect('(');
  while (!reader.take(')')) {
    if (shape.rank() == kMostAxes) reader.bad(cat("there are more than ", kMostAxes, " axes"));
    shape.push_back(reader.size());
    if (reader.take(',')) continue;
    reader.expect(')');
    break;
  }
  return shape;
}

// Each key once, in any order.
void read_dict(DictReader& reader, NpyHead& head) {
  constexpr std::string_view kKeys[] = {"descr", "fortran_order", "shape"};
  bool seen[] = {false, false, false};
  reader.expect('{');
  while (!reader.take('}')) {
    const std::string_view key = reader.string();
    const auto found = std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys);
    if (found == std::ssize(kKeys)) reader.bad(cat("the header has an unknown key '", key, "'"));
    if (seen[found]) reader.bad(cat("the header has the key '", key, "' twice"));
    seen[found] = true;
    reader.expect(':');
    if (found == 0) read_dtype(reader, head);
    if (found == 1) head.fortran_order = reader.boolean();
    if (found == 2) head.shape = read_shape(reader);
    if (!reader.take(',')) {
      reader.expect('}');
      break;
    }
  }
  reader.expect_end();
  for (int i = 0; i < 3; ++i)
    if (!seen[i]) reader.bad(cat("the header has no key '", kKeys[i], "'"));
}

// The bytes of the elements. Sizes that are too large are refused even if another one is 0.
int64_t data_bytes(const NpyHead& head, const FileCall& call) {
  int64_t bytes = size_of(head.dtype), product = bytes;
  for (const Dim dim : head.shape) {
    bytes *= int64_t{dim} == 0 ? 0 : 1;
    if (__builtin_mul_overflow(product, std::max<int64_t>(1, dim), &product))
      call.bad(0, cat("a shape of ", head.shape, " has more bytes than fit 63 bits"));
  }
  return bytes == 0 ? 0 : product;
}

}  // namespace

Shape NpyHead::stored_shape() const {
  std::vector<Dim> sizes(shape.begin(), shape.end());
  if (fortran_order) std::reverse(sizes.begin(), sizes.end());
  return Shape(sizes);
}

int64_t npy_head_bytes(std::span<const std::byte> start, int64_t file_bytes, const FileCall& call) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (!text.starts_with(kMagic))
    call.bad(0, "this is not a .npy file", "give a file that np.save or td::io::save_npy wrote");
  if (file_bytes < 10) call.bad(file_bytes, "the file ends inside its header");
  const int version = std::to_integer<int>(start[6]);
  if (version < 1 || version > 3 || start[7] != std::byte{0}) {
    call.bad(
        6,
        cat("version ", version, ".", std::to_integer<int>(start[7]), " of .npy is not supported"),
        "versions 1.0, 2.0 and 3.0 are");
  }
  const int64_t length_bytes = version == 1 ? 2 : 4;
  if (file_bytes < 8 + length_bytes) call.bad(file_bytes, "the file ends inside its header");
  const auto length =
      static_cast<int64_t>(little_endian(start.subspan(8, static_cast<size_t>(length_bytes))));
  const int64_t bytes = 8 + length_bytes + length;
  if (bytes > file_bytes) {
    call.bad(8, cat("the header says it has ", length, " bytes, the file has ",
                    file_bytes - 8 - length_bytes, " more"));
  }
  if (bytes > kMostHeadBytes)
    call.bad(8, cat("a header of ", length, " bytes is too long for a .npy header"));
  return bytes;
}

NpyHead parse_npy_head(std::span<const std::byte> head, const FileCall& call) {
  const auto bytes = static_cast<int64_t>(head.size());
  const int64_t begin = head[6] == std::byte{1} ? 10 : 12;
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  DictReader reader(text.substr(static_cast<size_t>(begin)), begin, call);
  NpyHead result;
  read_dict(reader, result);
  result.bytes = bytes;
  result.data_bytes = data_bytes(result, call);
  return result;
}

std::string npy_head(DType dtype, const Shape& shape, const FileCall& call) {
  const auto* const known = std::find_if(std::begin(kDTypesOfNpy), std::end(kDTypesOfNpy),
                                         [&](const NpyDType& each) { return each.dtype == dtype; });
  if (known == std::end(kDTypesOfNpy)) {
    call.refuse(cat("cannot hold ", dtype, ": NumPy has no such dtype"),
                "td::cast(x, td::f32) keeps every value; td::io::save_safetensors keeps the dtype");
  }
  if (shape.rank() > kMostAxes) {
    call.refuse(cat("cannot hold ", shape.rank(), " axes, NumPy has at most ", kMostAxes),
                "reshape it, or td::io::save_safetensors");
  }
  std::string sizes;
  for (const Dim dim : shape) sizes += cat(int64_t{dim}, ", ");
  if (shape.rank() > 1) sizes.resize(sizes.size() - 2);
  if (shape.rank() == 1) sizes.pop_back();
  const std::string dict = cat("{'descr': '", size_of(dtype) == 1 ? "|" : "<", known->name,
                               "', 'fortran_order': False, 'shape': (", sizes, "), }");
  const auto total = static_cast<size_t>(granted_bytes(static_cast<int64_t>(dict.size()) + 11));
  const size_t length = total - 10;
  std::string head(kMagic);
  head += std::string_view("\1\0", 2);
  head += static_cast<char>(length & 0xff);
  head += static_cast<char>(length >> 8 & 0xff);
  head += dict;
  head.resize(total - 1, ' ');
  return head + '\n';
}

}  // namespace tidemark::io
