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
  // A traced tensor has no bytes, so none that others could hold.
  if (state.kind == detail::TensorState::Kind::concrete && !detail::is_sole(state))
    throw UserError(cat("donate: ", name(x.dtype()), x.shape(),
                        " is not alone with its bytes: another handle or a view of them is alive, "
                        "or they were lent"),
                    at,
                    "let the others go first (y = {}), or pass std::move(x), which is donated only "
                    "where it can be");
  return std::move(x);
}

}  // namespace tidemark
