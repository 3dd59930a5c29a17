#include "tidemark/function/budget.h"

#include <algorithm>

#include "tidemark/account/memory.h"

namespace tidemark {

const Budget Budget::available = Budget();

Bytes Budget::bytes() const {
  if (bytes_) return *bytes_;
  return std::max<int64_t>(0, memory::limit().count - memory::current().count);
}

}  // namespace tidemark
