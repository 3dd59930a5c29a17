// Functions with a custom gradient, and functions that the backward pass recomputes.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/grad/gradients.h"
#include "tidemark/structure/identity.h"
#include "tidemark/structure/variable_walk.h"
#include "tidemark/trace/control_flow.h"

namespace tidemark {
namespace detail {

// A user's function as a function of the tensors in its arguments.
using TensorFunction = std::function<Tensors(const Tensors& inputs)>;
Tensors run_recomputed(const Tensors& inputs, const TensorFunction& f, Source at);

// The gradients for the inputs, in order, and for Variables.
struct OwnGradients {
  Tensors by_inputs;
  VariableGradients by_variables;
};
using OwnPullback = std::function<OwnGradients(Tensors gradients)>;
struct OwnResults {
  Tensors results;
  OwnPullback pullback;
  Tensors saved = {};  // The tensors that the pullback holds, if known.
};
Tensors run_custom(const Tensors& inputs, const std::function<OwnResults(const Tensors& inputs)>& f,
                   Source at);

// A closure that only holds references has no standard layout and a trivial destructor.
template <class G>
inline constexpr bool captures_by_reference =
    !std::is_standard_layout_v<G> && std::is_trivially_destructible_v<G>;

template <class T>
inline constexpr bool has_variable_gradients = false;
template <class Dx>
inline constexpr bool has_variable_gradients<std::pair<Dx, VariableGradients>> = true;

template <class G>
OwnGradients own_gradients(G given, Source at) {
  if constexpr (has_variable_gradients<G>) {
    OwnGradients all = own_gradients(std::move(given.first), at);
    all.by_variables = std::move(given.second);
    return all;
  } else {
    auto lifted = lift(std::move(given), at);
    return {take_tensors(lifted), {}};
  }
}

// A call of a user's function as a function of the tensors in its arguments. It holds the function
// and the structure of its arguments, so that it can be run again. The structure of the result is
// known after the first run.
template <class F, class R, class... A>
struct UserCall {
  F f;
  std::tuple<A...> arguments;  // Without their tensors.
  Source at;
  std::optional<R> structure;

  auto operator()(const Tensors& inputs) {
    const auto filled_in = filled(arguments, inputs);
    return std::apply([&](const auto&... each) { return call_back(f, at, each...); }, filled_in);
  }
};

}  // namespace detail

// f with a custom gradient. f returns std::pair{y, gradient}, and `gradient(dy)` returns the
// gradients for f's arguments (a tuple if there are several). The values that `gradient` captures
// by copy are the residuals. If f reads trainable Variables, `gradient` returns
// std::pair{gradients, VariableGradients}. No gradient flows to tensors that f itself captures.
// Memory is charged to the line of this call.
template <class F>
auto custom_gradient(F f, Source at = Source::here()) {
  return [f = std::move(f), at]<class... A>
    requires detail::Takes<F, A...>
  (const A&... arguments) {
    using Both = std::invoke_result_t<const F&, const detail::Lifted<A>&...>;
    using Y = detail::Lifted<typename Both::first_type>;
    using G = typename Both::second_type;
    static_assert(!detail::captures_by_reference<G>,
                  "custom_gradient: the gradient function captures by reference, but it runs after "
                  "this call has returned: capture what it needs by value, [x, y] or [=]");
    auto all = std::tuple<detail::Lifted<A>...>(detail::lift(arguments, at)...);
    const detail::Tensors inputs = detail::take_tensors(all);
    detail::UserCall<F, Y, detail::Lifted<A>...> call{f, std::move(all), at, {}};
    const auto run = [&call, at](const detail::Tensors& given) {
      auto both = call(given);
      Y value = detail::lift(std::move(both.first), at);
      detail::OwnResults own;
      own.results = detail::take_tensors(value);
      own.pullback = [gradient = std::move(both.second), shape = value,
                      at](detail::Tensors gradients) {
        return detail::own_gradients(
            detail::call_back(gradient, at, detail::filled(shape, std::move(gradients))), at);
      };
      call.structure = std::move(value);
      return own;
    };
    detail::Tensors results = detail::run_custom(inputs, run, at);
    return detail::filled(*call.structure, std::move(results));
  };
}

// The same in two parts: forward returns std::pair{y, saved}, and backward(saved, dy) returns the
// gradients.
template <class Forward, class Backward>
auto custom_gradient(Forward forward, Backward backward, Source at = Source::here()) {
  return [forward = std::move(forward), backward = std::move(backward), at]<class... A>
    requires detail::Takes<Forward, A...>
  (const A&... arguments) {
    const auto whole = [&forward, &backward](const detail::Lifted<A>&... each) {
      auto [value, saved] = forward(each...);
      auto gradient = [backward, saved = std::move(saved)](const auto& dy) {
        return backward(saved, dy);
      };
      return std::pair{std::move(value), std::move(gradient)};
    };
    return custom_gradient(whole, at)(arguments...);
  };
}

// f, rematerialized: gradients keep only its arguments and run f again. Random draws are the same
// in that run, and Variables have the values they had in the first. The Variables of the result are
// those of f. Memory is charged to the line of this call.
template <class F>
class RecomputedFunction {
 public:
  explicit RecomputedFunction(F f, Source at = Source::here()) : f_(std::move(f)), at_(at) {}

  template <class... A>
    requires detail::Takes<F, A...>
  auto operator()(const A&... arguments) const {
    using R = detail::Lifted<std::invoke_result_t<const F&, const detail::Lifted<A>&...>>;
    const Source at = at_;
    auto all = std::tuple<detail::Lifted<A>...>(detail::lift(arguments, at)...);
    const detail::Tensors inputs = detail::take_tensors(all);
    using Call = detail::UserCall<F, R, detail::Lifted<A>...>;
    auto call = std::make_shared<Call>(Call{f_, std::move(all), at, {}});
    const auto run = [call, at](const detail::Tensors& given) {
      R result = detail::lift((*call)(given), at);
      detail::Tensors tensors = detail::take_tensors(result);
      call->structure = std::move(result);
      return tensors;
    };
    detail::Tensors results = detail::run_recomputed(inputs, run, at);
    return detail::filled(*call->structure, std::move(results));
  }

  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
    detail::walk_variables(f_, path, see);
  }
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace) {
    detail::walk_variables(f_, path, replace);
  }
  bool tidemark_identity(std::string& key) const { return detail::add_identity_of(f_, key); }

 private:
  F f_;
  Source at_;
};
template <class F>
RecomputedFunction<F> recompute(F f, Source at = Source::here()) {
  return RecomputedFunction<F>(std::move(f), at);
}

}  // namespace tidemark
