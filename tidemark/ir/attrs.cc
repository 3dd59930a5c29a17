#include "tidemark/ir/attrs.h"

namespace tidemark {

void Attrs::misread(uint32_t which, StorageKind wanted) const {
  constexpr const char* names[] = {"a number", "a list of numbers", "a size", "a list of sizes"};
  const char* const is = which < count_ ? names[static_cast<size_t>(held(which))] : "not there";
  throw InternalError(cat("attribute ", which, " is ", is, ", and is read as ",
                          names[static_cast<size_t>(wanted)]));
}

}  // namespace tidemark
