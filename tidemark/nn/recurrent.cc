#include "tidemark/nn/recurrent.h"

#include <tuple>
#include <utility>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/nn/layer_scope.h"
#include "tidemark/nn/linear.h"

namespace tidemark::nn {
namespace {

struct State {
  Tensor h, c;
};

Variable declared(const char* name, Initializer initializer, const LSTMOptions& options,
                  Source at) {
  return Variable::unshaped(
      std::move(initializer),
      {.name = detail::parameter_name(options.name, name), .dtype = options.dtype}, at);
}

// The second of the four parts is 1.
Tensor remembering(const Shape& shape, DType dtype) {
  const Dim units = shape[0] / 4;
  return concat({zeros({units}, dtype), ones({units}, dtype), zeros({2 * units}, dtype)});
}

State stepped(const State& state, const Tensor& gates) {
  const std::vector<Tensor> part = split(gates, 4, -1);
  const Tensor c = sigmoid(part[1]) * state.c + sigmoid(part[0]) * tanh(part[2]);
  return {sigmoid(part[3]) * tanh(c), c};
}

}  // namespace

LSTM::LSTM(int64_t units, LSTMOptions options, Source at)
    : kernel(declared("kernel", options.kernel_initializer, options, at)),
      recurrent(declared("recurrent", options.recurrent_initializer, options, at)),
      bias(declared("bias", remembering, options, at)),
      units_(units),
      options_(std::move(options)) {
  if (units <= 0)
    detail::refuse(kKind, options_.name, cat("cannot have ", units, " units"),
                   "give it one or more", at);
  recurrent.set_shape({units, 4 * units}, at);
  bias.set_shape({4 * units}, at);
}

Tensor LSTM::call(const Tensor& x, Source at) const {
  if (x.rank() != 3)
    detail::refuse(kKind, options_.name,
                   cat("the input ", x.dtype(), x.shape(), " is not a batch of sequences"),
                   "give it [n, steps, features]", at);
  detail::build_kernel(kernel, x, 4 * units_, {kKind, options_.name}, at);
  const State start{zeros({x.shape()[0], units_}, options_.dtype),
                    zeros({x.shape()[0], units_}, options_.dtype)};
  // Inputs are multiplied step by step: one product for all steps would need four times the
  // output's memory.
  const auto body = [this](const State& state, const Tensor& now, Source line) {
    const SourceScope scope(line);
    const State next = stepped(state, matmul(now, kernel) + matmul(state.h, recurrent) + bias);
    return std::pair{next, next.h};
  };
  const auto [last, all] = scan(body, start, transpose(x, {1, 0, 2}),
                                {.reverse = options_.reverse, .save = options_.save}, at);
  return options_.return_sequences ? transpose(all, {1, 0, 2}) : last.h;
}

Tensor LSTM::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

}  // namespace tidemark::nn
