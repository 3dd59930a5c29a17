#include "tidemark/nn/recurrent.h"

#include <tuple>
#include <utility>

#include "tidemark/api/create.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/nn/layer_scope.h"
#include "tidemark/nn/linear.h"

namespace tidemark::nn {
namespace {

void check_units(const char* kind, const std::string& name, int64_t units, Source at) {
  if (units <= 0)
    detail::refuse(kind, name, cat("cannot have ", units, " units"), "give it one or more", at);
}

void check_input(const char* kind, const std::string& name, const Tensor& x, Source at) {
  if (x.rank() != 3)
    detail::refuse(kind, name,
                   cat("the input ", x.dtype(), x.shape(), " is not a batch of sequences"),
                   "give it [n, steps, features]", at);
}

void check_state(const char* kind, const std::string& name, const Tensor& state, const Tensor& x,
                 int64_t units, Source at) {
  if (state.rank() == 2 && state.shape()[0] == x.shape()[0] && state.shape()[1] == units) return;
  detail::refuse(kind, name,
                 cat("the initial state ", state.dtype(), state.shape(), " does not fit ",
                     x.shape()[0], " sequences and ", units, " units"),
                 "give it [n, units]", at);
}

void check_mask(const char* kind, const std::string& name, const Tensor& mask, const Tensor& x,
                Source at) {
  if (mask.dtype() == DType::boolean && mask.rank() == 2 && mask.shape()[0] == x.shape()[0] &&
      mask.shape()[1] == x.shape()[1])
    return;
  detail::refuse(kind, name,
                 cat("the mask ", mask.dtype(), mask.shape(), " does not fit the input ", x.dtype(),
                     x.shape()),
                 "give it bool[n, steps]: true for the steps that count", at);
}

Tensor in_policy(const detail::PolicyScope& policy, const Tensor& state) {
  return policy.input(state);
}
LSTMState in_policy(const detail::PolicyScope& policy, const LSTMState& state) {
  return {policy.input(state.h), policy.input(state.c)};
}
template <class State>
RecurrentInput<State> with_state(const detail::PolicyScope& policy, RecurrentInput<State> input) {
  if (input.initial) input.initial = in_policy(policy, *input.initial);
  return input;
}

// States as lists of tensors.
std::vector<Tensor> list_of(const Tensor& state) { return {state}; }
std::vector<Tensor> list_of(const LSTMState& state) { return {state.h, state.c}; }
void read_list(const std::vector<Tensor>& list, Tensor& state) { state = list[0]; }
void read_list(const std::vector<Tensor>& list, LSTMState& state) { state = {list[0], list[1]}; }

void check_count(const char* kind, const std::string& name, size_t given, size_t wanted,
                 Source at) {
  if (given == wanted) return;
  detail::refuse(kind, name, cat("the initial state has ", given, " tensors, not ", wanted),
                 wanted == 1 ? "give {h}" : "give {h, c}", at);
}

Tensor output_of(const Tensor& state) { return state; }
Tensor output_of(const LSTMState& state) { return state.h; }

Tensor chosen(const Tensor& counts, const Tensor& next, const Tensor& state) {
  return where(counts, next, state);
}
LSTMState chosen(const Tensor& counts, const LSTMState& next, const LSTMState& state) {
  return {where(counts, next.h, state.h), where(counts, next.c, state.c)};
}

struct MaskedStep {
  Tensor x, counts;  // [n, features], [n, 1]
};

// The states of all steps by `step(state, x)`, and the output. Inputs are multiplied step by step:
// one product for all steps would need several times the output's memory.
template <class State, class Options, class Step>
RecurrentResult<State> walked(const Tensor& x, const State& start,
                              const std::optional<Tensor>& mask, const Options& options,
                              const Step& step, Source at) {
  const ScanOptions how{.reverse = options.reverse, .save = options.save};
  const Tensor by_step = transpose(x, {1, 0, 2});
  const auto finished = [&](const auto& both) {
    return RecurrentResult<State>{
        options.return_sequences ? transpose(both.second, {1, 0, 2}) : output_of(both.first),
        both.first};
  };
  if (!mask) {
    const auto body = [&](const State& state, const Tensor& now, Source line) {
      const SourceScope scope(line);
      const State next = step(state, now);
      return std::pair{next, output_of(next)};
    };
    return finished(scan(body, start, by_step, how, at));
  }
  const auto body = [&](const State& state, const MaskedStep& now, Source line) {
    const SourceScope scope(line);
    const State next = chosen(now.counts, step(state, now.x), state);
    return std::pair{next, output_of(next)};
  };
  const MaskedStep steps{by_step, expand_dims(transpose(*mask), -1)};
  return finished(scan(body, start, steps, how, at));
}

}  // namespace

// ---- what the layers share ----------------------------------------------------------------------

template <class Layer, class StateType, class Options>
RecurrentLayer<Layer, StateType, Options>::RecurrentLayer(int64_t units, Options options, Source at)
    : units_(units), options_(std::move(options)) {
  check_units(Layer::kKind, options_.name, units, at);
}

template <class Layer, class StateType, class Options>
Variable RecurrentLayer<Layer, StateType, Options>::declared(const char* name,
                                                             Initializer initializer,
                                                             Source at) const {
  return Variable::unshaped(
      std::move(initializer),
      {.name = detail::parameter_name(options_.name, name), .dtype = options_.dtype.variable}, at);
}

template <class Layer, class StateType, class Options>
void RecurrentLayer<Layer, StateType, Options>::begin(const Variable& kernel, int64_t width,
                                                      const Tensor& x,
                                                      const RecurrentInput<State>& input,
                                                      Source at) const {
  check_input(Layer::kKind, name(), x, at);
  if (input.mask) check_mask(Layer::kKind, name(), *input.mask, x, at);
  detail::build_kernel(kernel, x, width, {Layer::kKind, name()}, at);
}

template <class Layer, class StateType, class Options>
Tensor RecurrentLayer<Layer, StateType, Options>::first_state(const std::optional<Tensor>& initial,
                                                              const Tensor& x, Source at) const {
  if (!initial) return zeros({x.shape()[0], units_}, detail::dtype_read(options_.dtype.variable));
  check_state(Layer::kKind, name(), *initial, x, units_, at);
  return *initial;
}

template <class Layer, class StateType, class Options>
Tensor RecurrentLayer<Layer, StateType, Options>::call(const Tensor& x, Source at) const {
  return self().walk(x, {}, at).output;
}

template <class Layer, class StateType, class Options>
Tensor RecurrentLayer<Layer, StateType, Options>::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(self(), x, at);
}

template <class Layer, class StateType, class Options>
RecurrentResult<StateType> RecurrentLayer<Layer, StateType, Options>::run(
    const Tensor& x, const RecurrentInput<State>& input, Source at) const {
  const detail::LayerScope scope(Layer::kKind, name(), at);
  const detail::PolicyScope in_dtypes(options_.dtype);
  return self().walk(in_dtypes.input(x), with_state(in_dtypes, input), at);
}

template <class Layer, class StateType, class Options>
detail::SequenceResult RecurrentLayer<Layer, StateType, Options>::run_sequence(
    const Tensor& x, const detail::SequenceInput& input, Source at) const {
  RecurrentInput<State> given{.mask = input.mask};
  if (!input.initial.empty()) {
    constexpr size_t parts = std::same_as<State, LSTMState> ? 2 : 1;
    check_count(Layer::kKind, name(), input.initial.size(), parts, at);
    read_list(input.initial, given.initial.emplace());
  }
  RecurrentResult<State> result = run(x, given, at);
  return {std::move(result.output), list_of(result.state)};
}

template class RecurrentLayer<LSTM, LSTMState, LSTMOptions>;
template class RecurrentLayer<GRU, Tensor, GRUOptions>;
template class RecurrentLayer<SimpleRNN, Tensor, SimpleRNNOptions>;

// ---- LSTM ---------------------------------------------------------------------------------------

namespace {

// The second of the four parts is 1.
Tensor remembering(const Shape& shape, DType dtype) {
  const Dim units = shape[0] / 4;
  return concat({zeros({units}, dtype), ones({units}, dtype), zeros({2 * units}, dtype)});
}

LSTMState stepped(const LSTMState& state, const Tensor& gates) {
  const std::vector<Tensor> part = split(gates, 4, -1);
  const Tensor c = sigmoid(part[1]) * state.c + sigmoid(part[0]) * tanh(part[2]);
  return {sigmoid(part[3]) * tanh(c), c};
}

}  // namespace

LSTM::LSTM(int64_t units, LSTMOptions options, Source at)
    : RecurrentLayer(units, std::move(options), at),
      kernel(declared("kernel", detail::taken(options_.kernel_initializer), at)),
      recurrent(declared("recurrent", detail::taken(options_.recurrent_initializer), at)),
      bias(declared("bias", remembering, at)) {
  recurrent.set_shape({units, 4 * units}, at);
  bias.set_shape({4 * units}, at);
}

RecurrentResult<LSTMState> LSTM::walk(const Tensor& x, const RecurrentInput<State>& input,
                                      Source at) const {
  begin(kernel, 4 * units_, x, input, at);
  const auto first = [&](Tensor State::* part) {
    return first_state(input.initial ? std::optional((*input.initial).*part) : std::nullopt, x, at);
  };
  const State start{first(&State::h), first(&State::c)};
  return walked(
      x, start, input.mask, options_,
      [this](const State& state, const Tensor& now) {
        return stepped(state, matmul(now, kernel) + matmul(state.h, recurrent) + bias);
      },
      at);
}

// ---- GRU ----------------------------------------------------------------------------------------

GRU::GRU(int64_t units, GRUOptions options, Source at)
    : RecurrentLayer(units, std::move(options), at),
      kernel(declared("kernel", detail::taken(options_.kernel_initializer), at)),
      recurrent(declared("recurrent", detail::taken(options_.recurrent_initializer), at)),
      bias(declared("bias", initializers::zeros, at)),
      recurrent_bias(declared("recurrent_bias", initializers::zeros, at)) {
  recurrent.set_shape({units, 3 * units}, at);
  bias.set_shape({3 * units}, at);
  recurrent_bias.set_shape({3 * units}, at);
}

RecurrentResult<Tensor> GRU::walk(const Tensor& x, const RecurrentInput<State>& input,
                                  Source at) const {
  begin(kernel, 3 * units_, x, input, at);
  return walked(
      x, first_state(input.initial, x, at), input.mask, options_,
      [this](const Tensor& h, const Tensor& now) {
        const std::vector<Tensor> given = split(matmul(now, kernel) + bias, 3, -1);
        const std::vector<Tensor> kept = split(matmul(h, recurrent) + recurrent_bias, 3, -1);
        const Tensor reset = sigmoid(given[0] + kept[0]), keep = sigmoid(given[1] + kept[1]);
        const Tensor next = tanh(given[2] + reset * kept[2]);
        return (1.0 - keep) * next + keep * h;
      },
      at);
}

// ---- SimpleRNN ----------------------------------------------------------------------------------

SimpleRNN::SimpleRNN(int64_t units, SimpleRNNOptions options, Source at)
    : RecurrentLayer(units, std::move(options), at),
      kernel(declared("kernel", detail::taken(options_.kernel_initializer), at)),
      recurrent(declared("recurrent", detail::taken(options_.recurrent_initializer), at)),
      bias(declared("bias", initializers::zeros, at)),
      activation_(std::move(options_.activation)) {
  recurrent.set_shape({units, units}, at);
  bias.set_shape({units}, at);
}

RecurrentResult<Tensor> SimpleRNN::walk(const Tensor& x, const RecurrentInput<State>& input,
                                        Source at) const {
  begin(kernel, units_, x, input, at);
  return walked(
      x, first_state(input.initial, x, at), input.mask, options_,
      [this](const Tensor& h, const Tensor& now) {
        return activation_(matmul(now, kernel) + matmul(h, recurrent) + bias);
      },
      at);
}

// ---- both directions ----------------------------------------------------------------------------

Bidirectional::Bidirectional(AnyLayer forward, AnyLayer backward, std::string name)
    : forward(std::move(forward)), backward(std::move(backward)), name_(std::move(name)) {}

Tensor Bidirectional::call(const Tensor& x, Source at) const {
  return concat({forward(x, at), backward(x, at)}, -1);
}
Tensor Bidirectional::operator()(const Tensor& x, Source at) const {
  return detail::run_layer(*this, x, at);
}

RecurrentResult<BidirectionalState> Bidirectional::run(const Tensor& x,
                                                       const RecurrentInput<State>& input,
                                                       Source at) const {
  const detail::LayerScope scope(kKind, name_, at);
  const State start = input.initial.value_or(State{});
  detail::SequenceResult ahead = forward.run_sequence(x, {start.forward, input.mask}, at);
  detail::SequenceResult back = backward.run_sequence(x, {start.backward, input.mask}, at);
  return {concat({ahead.output, back.output}, -1), {std::move(ahead.state), std::move(back.state)}};
}

}  // namespace tidemark::nn

namespace tidemark::detail {

void refuse_sequence(const std::string& name, Source at) {
  refuse(nn::Bidirectional::kKind, {},
         name.empty() ? std::string("a layer that is not recurrent has no state")
                      : cat("the layer \"", name, "\" is not recurrent and has no state"),
         "call it without a state and a mask: layer(x)", at);
}

}  // namespace tidemark::detail
