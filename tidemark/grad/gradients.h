// Gradients as functions, and products with Jacobians.
//
// All are built on tapes, so they work in eager code and in traced functions, on control flow, and
// on each other.
#pragma once

#include <concepts>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/calls/create.h"
#include "tidemark/grad/gradient_tape.h"
#include "tidemark/structure/callback.h"

namespace tidemark {

// Variables and their gradients.
using VariableGradients = std::vector<std::pair<Variable, Gradient>>;

namespace detail {

// Whether a function can be called with these arguments. A Source does not count: ops and functions
// take one in addition.
template <class F, class... A>
concept Takes = (!std::is_same_v<std::remove_cvref_t<A>, Source> && ...) &&
                std::invocable<const F&, const Lifted<A>&...>;

// A copy of the tensor with its own identity on tapes: see bind.h.
Tensor apart(const Tensor& tensor, Source at);
template <Structure S>
S apart(const S& structure, Source at) {
  S copy = structure;
  for_each_leaf(copy, [at]<class Leaf>(Leaf& leaf, const Path&) {
    if constexpr (std::is_same_v<Leaf, Tensor>) leaf = apart(static_cast<const Tensor&>(leaf), at);
  });
  return copy;
}

template <Structure S>
S zeros_of(const S& structure, Source at) {
  S copy = structure;
  for_each_leaf(copy, [at]<class Leaf>(Leaf& leaf, const Path&) {
    if constexpr (std::is_same_v<Leaf, Tensor>) leaf = zeros_like(leaf, at);
  });
  return copy;
}

// The part of a function's result that is differentiated: the result, or the first element of a
// tuple.
template <class R>
const auto& target_of(const R& result) {
  if constexpr (is_tuple<R>)
    return std::get<0>(result);
  else
    return result;
}

// Throws a UserError unless it is one float.
void check_scalar(const Tensor& target, const char* name, Source at);
template <Structure T>
void check_scalar(const T& target, const char* name, Source at) {
  for (const Tensor& tensor : tensors_of(target)) check_scalar(tensor, name, at);
}

// Throws a UserError unless all are floats.
void check_floats(const std::vector<Tensor>& tensors, const char* name, const char* what,
                  Source at);

// The elements of a tuple with these numbers; the first if there are none.
template <int... I, class Tuple>
auto chosen(const Tuple& all) {
  if constexpr (sizeof...(I) == 0)
    return std::get<0>(all);
  else if constexpr (sizeof...(I) == 1)
    return std::get<(I + ...)>(all);
  else
    return std::tuple{std::get<I>(all)...};
}

template <int... I, class F, class... A>
auto value_and_grad_of(const char* name, const F& f, Source at, const A&... arguments) {
  const auto all = std::tuple<Lifted<A>...>(apart(lift(arguments, at), at)...);
  GradientTape tape({}, at);
  tape.watch(chosen<I...>(all), at);
  auto value =
      lift(std::apply([&](const auto&... each) { return call_back(f, at, each...); }, all), at);
  check_scalar(target_of(value), name, at);
  auto gradient = tape.gradient(target_of(value), chosen<I...>(all), {}, at);
  return std::pair{std::move(value), std::move(gradient)};
}

}  // namespace detail

// A function that returns {f's result, gradients}: the gradients of f's result, which must be one
// number, with respect to the arguments with these numbers (default: the first). If f returns a
// tuple, its first element is differentiated and the others are auxiliary results. Errors and
// memory of its calls belong to the line that made it.
template <int... I, class F>
auto value_and_grad(F f, Source at = Source::here()) {
  return [f = std::move(f), at]<class... A>
    requires detail::Takes<F, A...>
  (const A&... arguments) {
    return detail::value_and_grad_of<I...>("value_and_grad", f, at, arguments...);
  };
}
template <int... I, class F>
auto grad(F f, Source at = Source::here()) {
  return [f = std::move(f), at]<class... A>
    requires detail::Takes<F, A...>
  (const A&... arguments) {
    return detail::value_and_grad_of<I...>("grad", f, at, arguments...).second;
  };
}
namespace detail {

template <class F, class V>
auto value_and_grad_by(F f, V variables, Source at) {
  return [f = std::move(f), variables = std::move(variables), at]<class... A>
    requires Takes<F, A...>
  (const A&... arguments) {
    GradientTape tape({}, at);
    auto value = lift(call_back(f, at, lift(arguments, at)...), at);
    check_scalar(target_of(value), "value_and_grad", at);
    auto gradients = tape.gradient(target_of(value), variables, {}, at);
    return std::pair{std::move(value), std::move(gradients)};
  };
}

}  // namespace detail

// The same with respect to Variables: a list, one, or a structure.
template <class F>
auto value_and_grad(F f, std::vector<Variable> variables, Source at = Source::here()) {
  return detail::value_and_grad_by(std::move(f), std::move(variables), at);
}
template <class F, class V>
  requires(detail::holds_sources<V>())
auto value_and_grad(F f, V variables, Source at = Source::here()) {
  return detail::value_and_grad_by(std::move(f), std::move(variables), at);
}

// A function from the gradient of a result to the gradients of the arguments. It may be called more
// than once, and holds the residuals.
template <class Value, class... A>
class Pullback {
 public:
  Pullback(std::shared_ptr<GradientTape> tape, Value value, std::tuple<A...> sources)
      : tape_(std::move(tape)), value_(std::move(value)), sources_(std::move(sources)) {}

  // Returns a tuple if there are several arguments.
  auto operator()(const Value& gradient, Source at = Source::here()) const {
    return unwrapped(tape_->gradient(value_, sources_, options(gradient), at));
  }
  // With Variables: returns {gradients of the arguments, VariableGradients}.
  auto operator()(const Value& gradient, const std::vector<Variable>& variables,
                  Source at = Source::here()) const {
    auto [by_arguments, by_variables] =
        tape_->gradient(value_, std::pair{sources_, variables}, options(gradient), at);
    VariableGradients named;
    for (size_t i = 0; i < variables.size(); ++i)
      named.emplace_back(variables[i], std::move(by_variables[i]));
    return std::pair{unwrapped(std::move(by_arguments)), std::move(named)};
  }
  Bytes saved_bytes() const { return tape_->saved_bytes(); }

 private:
  static GradientOptions options(const Value& gradient) {
    return {.output_gradients = detail::tensors_of(gradient)};
  }
  static auto unwrapped(std::tuple<A...> gradients) {
    if constexpr (sizeof...(A) == 1)
      return std::get<0>(std::move(gradients));
    else
      return gradients;
  }

  std::shared_ptr<GradientTape> tape_;
  Value value_;
  std::tuple<A...> sources_;
};

// {f(arguments...), its Pullback}.
template <class F, class... A>
auto vjp(const F& f, const A&... arguments) {
  const Source at = Source::none();
  auto all = std::tuple<detail::Lifted<A>...>(detail::apart(detail::lift(arguments, at), at)...);
  auto tape = std::make_shared<GradientTape>(TapeOptions{.persistent = true}, at);
  tape->watch(all, at);
  auto value = detail::lift(
      std::apply([&](const auto&... each) { return detail::call_back(f, at, each...); }, all), at);
  tape->stop();
  Pullback<decltype(value), detail::Lifted<A>...> pullback(std::move(tape), value, std::move(all));
  return std::pair{std::move(value), std::move(pullback)};
}

// {f(x), the Jacobian times dx}: the change of f(x) if x changes by dx, computed without the
// Jacobian.
template <class F, class A>
auto jvp(const F& f, const A& x, const std::type_identity_t<detail::Lifted<A>>& dx,
         Source at = Source::here()) {
  const auto primal = detail::apart(detail::lift(x, at), at);
  detail::check_floats(detail::tensors_of(primal), "jvp", "the arguments of f", at);
  // The gradient is linear in the result's gradient, so the gradient of the gradient is this
  // product.
  GradientTape outer({.watch_variables = false}, at);
  GradientTape inner({.watch_variables = false}, at);
  inner.watch(primal, at);
  auto value = detail::lift(detail::call_back(f, at, primal), at);
  detail::check_floats(detail::tensors_of(value), "jvp", "the results of f", at);
  const auto start = detail::apart(detail::zeros_of(value, at), at);
  outer.watch(start, at);
  const auto back =
      inner.gradient(value, primal, {.output_gradients = detail::tensors_of(start)}, at);
  auto change = outer.gradient(back, start, {.output_gradients = detail::tensors_of(dx)}, at);
  return std::pair{std::move(value), std::move(change)};
}

// The derivative of every element of f(x) by every element of x; its shape is f(x).shape, x.shape.
template <class F>
auto jacobian(F f, Source at = Source::here()) {
  return [f = std::move(f), at]<class A>
    requires detail::Takes<F, A>
  (const A& x) {
    const Tensor primal = detail::apart(detail::lift(x, at), at);
    GradientTape tape({.persistent = true}, at);
    tape.watch(primal, at);
    const Tensor value = detail::call_back(f, at, primal);
    return tape.jacobian(value, primal, at);
  };
}

// The Hessian of f, which returns one number, times v.
template <class F, class A>
auto hvp(const F& f, const A& x, const std::type_identity_t<detail::Lifted<A>>& v,
         Source at = Source::here()) {
  return jvp([&](const detail::Lifted<A>& point) { return grad(f, at)(point); }, x, v, at).second;
}

// x, scaled down if its norm (the root of the sum of squares) exceeds `most`.
Tensor clip_by_norm(const Operand& x, const Operand& most, Source at = Source::here());
// All gradients, scaled down by the same factor if their joint norm exceeds `most`.
std::vector<Gradient> clip_by_global_norm(const std::vector<Gradient>& gradients,
                                          const Operand& most, Source at = Source::here());
std::vector<Tensor> clip_by_global_norm(const std::vector<Tensor>& gradients, const Operand& most,
                                        Source at = Source::here());
// The joint norm of all gradients.
Tensor global_norm(const std::vector<Gradient>& gradients, Source at = Source::here());

}  // namespace tidemark
