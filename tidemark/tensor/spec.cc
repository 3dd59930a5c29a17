#include "tidemark/tensor/spec.h"

#include "tidemark/tensor/tensor_state.h"

namespace tidemark {

TensorSpec spec(Shape shape, DType dtype, std::string name) {
  return {.shape = std::move(shape), .dtype = dtype, .name = std::move(name)};
}

Tensor::Tensor(const TensorSpec& spec, Source at)
    : Tensor(detail::make_spec({spec.dtype, spec.shape}, at)) {
  state_->donated = spec.is_donated;
}

Tensor donate(Tensor& x, Source at) {
  const detail::TensorState& state = detail::state_of(x, at);
  // A traced tensor has no memory that could be shared.
  if (state.has_bytes() && !detail::is_sole(state))
    throw UserError(cat("donate: ", name(x.dtype()), x.shape(),
                        " shares its memory: another handle or a view of it is alive, or the "
                        "memory is borrowed"),
                    at, "drop the other handles first (y = {}), or pass x itself, which is kept");
  return std::move(x);
}

}  // namespace tidemark
