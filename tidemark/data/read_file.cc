#include "tidemark/data/read_file.h"

#include <algorithm>
#include <memory>
#include <span>

#include "tidemark/api/create.h"
#include "tidemark/io/crc32.h"
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

// Appends what one member of a gzip file holds, and returns where the next one begins.
size_t inflate_member(std::span<const std::byte> bytes, size_t first, std::vector<std::byte>& whole,
                      const FileCall& call) {
  const size_t begin = first + gzip_head(bytes.subspan(first), call);
  const size_t before = whole.size();
  size_t next = begin;
  const auto source = [&](std::span<std::byte> to) {
    const size_t count = std::min(to.size(), bytes.size() - next);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(next), count, to.begin());
    next += count;
    return count;
  };
  const auto sink = [&](std::span<const std::byte> part) {
    whole.insert(whole.end(), part.begin(), part.end());
    return true;
  };
  const auto used =
      static_cast<size_t>(io::inflate(source, sink, static_cast<int64_t>(begin), call));
  const size_t end = begin + used;
  if (end + 8 > bytes.size())
    call.bad(static_cast<int64_t>(end), "the gzip file is cut off before its checksum");
  if (little(&bytes[end]) != io::crc32(std::span(whole).subspan(before)))
    call.bad(static_cast<int64_t>(end), "the checksum does not match the content",
             "the file is damaged: fetch it again");
  return end + 8;
}

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 18 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

// Files that were compressed one by one and joined are one file of several members.
std::vector<std::byte> inflated(std::span<const std::byte> bytes, const FileCall& call) {
  std::vector<std::byte> whole;
  size_t next = 0;
  while (is_gzip(bytes.subspan(next))) next = inflate_member(bytes, next, whole, call);
  if (next < bytes.size())
    call.bad(static_cast<int64_t>(next), "the gzip file goes on with something else",
             "the file is damaged: fetch it again");
  return whole;
}

}  // namespace

std::vector<std::byte> content(const FileCall& call) {
  const io::InputFile file(call);
  std::vector<std::byte> bytes(static_cast<size_t>(file.bytes()));
  file.read(0, bytes);
  return is_gzip(bytes) ? inflated(bytes, call) : bytes;
}

Tensor content_tensor(const FileCall& call) {
  const io::InputFile file(call);
  if (file.bytes() == 0) return zeros({0}, DType::u8, call.at);
  const std::shared_ptr<const io::Mapping> mapping = file.map();
  const auto size = static_cast<size_t>(file.bytes());
  if (!is_gzip({mapping->data(), size}))
    return borrow(
        std::span(reinterpret_cast<const uint8_t*>(mapping->data()), size), Shape{file.bytes()},
        [mapping] {}, call.at);
  const std::vector<std::byte> whole = inflated({mapping->data(), size}, call);
  return from_callback(
      {static_cast<int64_t>(whole.size())}, DType::u8,
      [&](std::span<std::byte> to) { std::copy(whole.begin(), whole.end(), to.begin()); }, call.at);
}

}  // namespace tidemark::data
