// UTF-8, character by character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

// The number of bytes of the first character of a non-empty text; 0 if it is not valid UTF-8.
size_t utf8_character_bytes(std::string_view text);
void append_utf8(std::string& to, uint32_t character);

}  // namespace tidemark
