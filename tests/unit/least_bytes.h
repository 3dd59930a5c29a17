// The fewest bytes that loops and their gradients need, read from the error that a smaller number
// gives.
#pragma once

#include <functional>
#include <regex>
#include <string>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace tidemark {

// `use` plans or calls a function whose loops keep to what it is given.
inline int64_t least_bytes(const std::function<void(Save)>& use) {
  const std::regex remedy("write td::Save::bytes\\((\\d+)\\) or more");
  int64_t bytes = 1;
  for (;;) {
    const std::string refused = error_of([&] { use(Save::bytes(bytes)); });
    std::smatch found;
    if (!std::regex_search(refused, found, remedy)) return bytes;
    bytes = std::stoll(found[1]);
  }
}

}  // namespace tidemark
