#include "tidemark/ir/term.h"

#include <ostream>

namespace tidemark {

std::ostream& operator<<(std::ostream& out, const TensorType& type) {
  return out << type.dtype << type.shape;
}

}  // namespace tidemark
