#include "tidemark/ops/program.h"

namespace tidemark::ops::rule {

Term grad_transfer(const GradContext& context, int index) {
  if (index == 1) return context.operands[1].like(0);
  return transfer_back.apply({context.g, context.operands[0]}, {});
}

}  // namespace tidemark::ops::rule
