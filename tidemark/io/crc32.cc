#include "tidemark/io/crc32.h"

#include <array>
#include <cstring>

namespace tidemark::io {
namespace {

// kTables[k][b] is the contribution of byte b followed by k zero bytes, so that eight bytes are
// processed at once.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables made_tables() {
  Tables tables = {};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t b = 0; b < 256; ++b)
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
  return tables;
}
constexpr Tables kTables = made_tables();

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xff];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes)
    crc = crc >> 8 ^ kTables[0][(crc ^ std::to_integer<uint32_t>(byte)) & 0xff];
  return ~crc;
}

}  // namespace tidemark::io
