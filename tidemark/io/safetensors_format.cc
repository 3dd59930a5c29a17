#include "tidemark/io/safetensors_format.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "tidemark/base/json.h"
#include "tidemark/base/text.h"
#include "tidemark/io/json.h"

namespace tidemark::io {
namespace {

constexpr int64_t kMostHeadBytes = 100'000'000;  // The limit of the format's own readers.
constexpr int64_t kMostAxes = 64;
constexpr std::string_view kMetadata = "__metadata__";
// By DType.
constexpr std::string_view kNames[] = {"F16", "BF16", "F32", "F64", "I8",  "I16",  "I32",
                                       "I64", "U8",   "U16", "U32", "U64", "BOOL", "C64"};
static_assert(std::size(kNames) == kStoredDTypes - 1, "the format has no c128");

DType read_dtype(JsonReader& json) {
  const std::string name = json.string();
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<DType>(found - std::begin(kNames));
  json.bad(cat("a tensor has the dtype ", json_quoted(name), ", which Tidemark does not support"),
           "supported are F16, BF16, F32, F64, C64, BOOL and integers: convert it before saving");
}

Shape read_shape(JsonReader& json) {
  Shape shape;
  json.expect('[');
  for (bool first = true; json.more(first, ']');) {
    if (shape.rank() == kMostAxes) json.bad(cat("there are more than ", kMostAxes, " axes"));
    shape.push_back(json.number());
  }
  return shape;
}

// The bytes of the elements. A size that is too large is refused even if another one is 0.
int64_t bytes_of(const SafetensorsEntry& entry, const JsonReader& json) {
  int64_t product = size_of(entry.dtype);
  bool empty = false;
  for (const Dim dim : entry.shape) {
    empty |= int64_t{dim} == 0;
    if (__builtin_mul_overflow(product, std::max<int64_t>(1, dim), &product))
      json.bad(cat("a shape of ", entry.shape, " has more bytes than fit 63 bits"));
  }
  return empty ? 0 : product;
}

SafetensorsEntry read_entry(JsonReader& json, const std::string& name) {
  constexpr std::string_view kKeys[] = {"dtype", "shape", "data_offsets"};
  SafetensorsEntry entry{.name = name};
  bool seen[] = {false, false, false};
  json.expect('{');
  for (bool first = true; json.more(first, '}');) {
    const std::string key = json.string();
    const auto found = std::find(std::begin(kKeys), std::end(kKeys), key) - std::begin(kKeys);
    if (found == std::ssize(kKeys))
      json.bad(cat("tensor ", json_quoted(name), " has an unknown field ", json_quoted(key)));
    if (seen[found])
      json.bad(cat("tensor ", json_quoted(name), " has the field ", json_quoted(key), " twice"));
    seen[found] = true;
    json.expect(':');
    if (found == 0) entry.dtype = read_dtype(json);
    if (found == 1) entry.shape = read_shape(json);
    if (found != 2) continue;
    json.expect('[');
    entry.begin = json.number();
    json.expect(',');
    entry.end = json.number();
    json.expect(']');
  }
  for (int i = 0; i < 3; ++i)
    if (!seen[i]) json.bad(cat("tensor ", json_quoted(name), " has no ", json_quoted(kKeys[i])));
  const int64_t bytes = bytes_of(entry, json);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    json.bad(cat("tensor ", json_quoted(name), " is ", entry.dtype, entry.shape, " and takes ",
                 bytes, " bytes, its offsets are ", entry.begin, " to ", entry.end));
  }
  return entry;
}

void read_metadata(JsonReader& json, std::map<std::string, std::string>& metadata) {
  json.expect('{');
  for (bool first = true; json.more(first, '}');) {
    const std::string key = json.string();
    json.expect(':');
    if (!metadata.emplace(key, json.string()).second)
      json.bad(cat("the metadata have ", json_quoted(key), " twice"));
  }
}

// Tensors must be contiguous up to the end of the file.
void check_places(const SafetensorsHead& head, int64_t file_bytes, const FileCall& call) {
  int64_t end = 0;
  for (const SafetensorsEntry& entry : head.tensors) {
    if (entry.begin != end) {
      call.bad(head.bytes + std::min(end, file_bytes - head.bytes),
               cat("tensor ", json_quoted(entry.name), " begins at offset ", entry.begin,
                   ", the tensors before it end at ", end));
    }
    end = entry.end;
  }
  const int64_t there = file_bytes - head.bytes;
  if (end != there)
    call.bad(head.bytes, cat("the tensors take ", end, " bytes, the file has ", there, " more"));
}

}  // namespace

int64_t safetensors_head_bytes(std::span<const std::byte> start, int64_t file_bytes,
                               const FileCall& call) {
  if (std::ssize(start) < kSafetensorsStartBytes)
    call.bad(file_bytes, "the file ends inside the length of its header");
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<uint64_t>(start[i]);
  const auto there = static_cast<uint64_t>(file_bytes - kSafetensorsStartBytes);
  if (length > there) {
    call.bad(0, cat("the header says it has ", length, " bytes, the file has ", there, " more"),
             "give a safetensors file");
  }
  if (length > static_cast<uint64_t>(kMostHeadBytes))
    call.bad(0, cat("the header has ", length, " bytes, at most ", kMostHeadBytes, " are read"));
  return kSafetensorsStartBytes + static_cast<int64_t>(length);
}

SafetensorsHead parse_safetensors_head(std::span<const std::byte> head, int64_t file_bytes,
                                       const FileCall& call) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  JsonReader json(text.substr(kSafetensorsStartBytes), kSafetensorsStartBytes, call);
  SafetensorsHead result;
  result.bytes = std::ssize(head);
  std::set<std::string> names;
  json.expect('{');
  for (bool first = true; json.more(first, '}');) {
    const std::string name = json.string();
    if (!names.insert(name).second) json.bad(cat("two tensors are called ", json_quoted(name)));
    json.expect(':');
    if (name == kMetadata)
      read_metadata(json, result.metadata);
    else
      result.tensors.push_back(read_entry(json, name));
  }
  json.expect_end();
  std::sort(result.tensors.begin(), result.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_places(result, file_bytes, call);
  return result;
}

void place_tensors(std::vector<SafetensorsEntry>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const int64_t x = size_of(a.dtype), y = size_of(b.dtype);
    return x != y ? x > y : a.name < b.name;
  });
  int64_t end = 0;
  for (SafetensorsEntry& entry : tensors) {
    entry.begin = end;
    end = entry.end = end + entry.shape.size() * size_of(entry.dtype);
  }
}

std::string safetensors_head(const std::vector<SafetensorsEntry>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const FileCall& call) {
  const auto quoted = [&](const std::string& text) {
    if (find_not_utf8(text) != std::string::npos)
      call.refuse(cat("cannot hold the name \"", text, "\": it is not valid UTF-8"),
                  "give another name");
    return json_quoted(text);
  };
  std::string json = "{";
  for (const auto& [key, value] : metadata) {
    json += json.size() == 1 ? cat(json_quoted(kMetadata), ":{") : ",";
    json += quoted(key) + ":" + quoted(value);
  }
  if (!metadata.empty()) json += "}";
  for (const SafetensorsEntry& entry : tensors) {
    if (entry.name == kMetadata)
      call.refuse("cannot hold a tensor called \"__metadata__\"", "give it another name");
    if (entry.dtype == DType::c128)
      call.refuse("cannot hold c128: the format has no such dtype",
                  "td::cast(x, td::c64), td::view_as_real(x), or td::io::save_npz");
    std::string sizes;
    for (const Dim dim : entry.shape) sizes += cat(sizes.empty() ? "" : ",", int64_t{dim});
    json += cat(json.size() == 1 ? "" : ",", quoted(entry.name), ":{\"dtype\":\"",
                kNames[static_cast<int>(entry.dtype)], "\",\"shape\":[", sizes,
                "],\"data_offsets\":[", entry.begin, ",", entry.end, "]}");
  }
  json += "}";
  const auto used = kSafetensorsStartBytes + static_cast<int64_t>(json.size());
  json.append(static_cast<size_t>(granted_bytes(used) - used), ' ');
  if (std::ssize(json) > kMostHeadBytes) {
    call.refuse(cat("cannot hold a header of ", json.size(), " bytes: at most ", kMostHeadBytes,
                    " are read"),
                "save in several files");
  }
  std::string head;
  for (int i = 0; i < 8; ++i) head += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return head + json;
}

}  // namespace tidemark::io
