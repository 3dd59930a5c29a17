// The checksum of zip files; internal to io/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tidemark::io {

// The checksum of bytes that follow others, whose checksum is `before`.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace tidemark::io
