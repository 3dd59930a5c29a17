// Text as UTF-8, one character after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

// The bytes of the character that a text (which is not empty) begins with; 0 where none does.
size_t utf8_character_bytes(std::string_view text);
void append_utf8(std::string& to, uint32_t character);

}  // namespace tidemark
