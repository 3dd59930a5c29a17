// Composites that tapes take for one op. Internal to the library.
#pragma once

#include <functional>

#include "tidemark/tensor/tensor_state.h"

namespace tidemark::detail {

// f of the operands. Of it a tape in eager code keeps the operands alone, and runs it again for the
// gradient; f must give the same each time. A trace has f's ops: there the plan decides what stays.
// In both, the gradients that f gives the first operand are added to each other first, so that the
// bits are the same.
Tensor as_one_op(std::vector<Tensor> operands,
                 const std::function<Tensor(const std::vector<Tensor>& operands)>& f, Source at);

}  // namespace tidemark::detail
