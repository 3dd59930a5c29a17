// Escapes text for HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace tidemark {

// The text with &, <, > and quotes escaped.
std::string escaped(std::string_view text);

}  // namespace tidemark
