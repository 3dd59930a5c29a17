// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tidemark {

// With the characters that mean something there written out.
std::string escaped(std::string_view text);

}  // namespace tidemark
