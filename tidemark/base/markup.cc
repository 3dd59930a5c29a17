#include "tidemark/base/markup.h"

namespace tidemark {

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      // Other control characters, and bytes outside ASCII, may not be valid XML.
      default:
        out += c < ' ' || c > '~' ? '?' : c;
    }
  }
  return out;
}

}  // namespace tidemark
