// PNG files that tests make, and whether they can be read.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/unit/error_of.h"
#include "tidemark/io/crc32.h"
#include "tidemark/tidemark.h"

namespace tidemark {

// A PNG of uncompressed rows, so that its pixels are known.
inline std::string png(int width, int height, int depth, int color, const std::string& rows) {
  const auto word = [](uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
    return text;
  };
  const auto chunk = [&](const std::string& body) {
    return word(static_cast<uint32_t>(body.size() - 4)) + body +
           word(io::crc32(std::as_bytes(std::span(body))));
  };
  uint32_t a = 1, b = 0;
  for (const char letter : rows) {
    a = (a + static_cast<unsigned char>(letter)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<uint32_t>(rows.size());
  std::string stored = "\x78\x01\x01";
  for (const uint32_t length : {size, ~size})
    for (int shift = 0; shift < 16; shift += 8) stored += static_cast<char>(length >> shift);
  stored += rows + word(b << 16 | a);
  const std::string head = "IHDR" + word(static_cast<uint32_t>(width)) +
                           word(static_cast<uint32_t>(height)) + static_cast<char>(depth) +
                           static_cast<char>(color) + std::string(3, '\0');
  return std::string("\x89PNG\r\n\x1a\n", 8) + chunk(head) + chunk("IDAT" + stored) + chunk("IEND");
}
inline Tensor as_tensor(const std::string& bytes) {
  return constant(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

// Where libpng is not there, its name is what a user reads.
inline bool has_png() {
  const std::string text =
      error_of([] { data::decode_png(as_tensor(png(1, 1, 8, 0, std::string("\0\7", 2)))); });
  return text.find("no PNG decoder") == std::string::npos &&
         text.find("libpng16.so.16 is not on this system") == std::string::npos;
}

}  // namespace tidemark
