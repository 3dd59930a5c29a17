// Functions with gradients of their own, and functions that are run again instead of kept.
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

// What a user's function makes of tensors.
using TensorFunction = std::function<Tensors(const Tensors& inputs)>;
Tensors run_recomputed(const Tensors& inputs, const TensorFunction& f, Source at);

// Gradients by the inputs, in their order, and by Variables.
struct OwnGradients {
  Tensors by_inputs;
  VariableGradients by_variables;
};
using OwnPullback = std::function<OwnGradients(Tensors gradients)>;
struct OwnResults {
  Tensors results;
  OwnPullback pullback;
  Tensors saved = {};  // What the pullback holds, where that is known.
};
Tensors run_custom(const Tensors& inputs, const std::function<OwnResults(const Tensors& inputs)>& f,
                   Source at);

// A closure of references alone has no standard layout and nothing to destroy.
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

// A call of a user's function on tensors taken out of its arguments. It holds the function and the
// structure of its arguments, so that it may be run again later; the structure of the result is
// known once it has run.
template <class F, class R, class... A>
struct Calling {
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

// f with a gradient of its own. It gives std::pair{y, gradient}, where `gradient(dy)` gives the
// gradients by f's arguments (a tuple where there are several). What that function captures, by
// value, is what is saved. Where f reads trainable Variables it gives std::pair{gradients,
// VariableGradients}. No gradient flows to what f itself captures. Its calls are charged to the
// line that made it.
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
    detail::Calling<F, Y, detail::Lifted<A>...> calling{f, std::move(all), at, {}};
    const auto run = [&calling, at](const detail::Tensors& given) {
      auto both = calling(given);
      Y value = detail::lift(std::move(both.first), at);
      detail::OwnResults own;
      own.results = detail::take_tensors(value);
      own.pullback = [gradient = std::move(both.second), shape = value,
                      at](detail::Tensors gradients) {
        return detail::own_gradients(
            detail::call_back(gradient, at, detail::filled(shape, std::move(gradients))), at);
      };
      calling.structure = std::move(value);
      return own;
    };
    detail::Tensors results = detail::run_custom(inputs, run, at);
    return detail::filled(*calling.structure, std::move(results));
  };
}

// The same in two parts: forward gives std::pair{y, saved}, backward(saved, dy) the gradients.
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

// f, of which gradients keep nothing but its arguments: they run it again. Random draws are the
// same then, and Variables have the values they had. Its Variables are those of f. Its calls are
// charged to the line that made it.
template <class F>
class Recomputed {
 public:
  explicit Recomputed(F f, Source at = Source::here()) : f_(std::move(f)), at_(at) {}

  template <class... A>
    requires detail::Takes<F, A...>
  auto operator()(const A&... arguments) const {
    using R = detail::Lifted<std::invoke_result_t<const F&, const detail::Lifted<A>&...>>;
    const Source at = at_;
    auto all = std::tuple<detail::Lifted<A>...>(detail::lift(arguments, at)...);
    const detail::Tensors inputs = detail::take_tensors(all);
    using Call = detail::Calling<F, R, detail::Lifted<A>...>;
    auto calling = std::make_shared<Call>(Call{f_, std::move(all), at, {}});
    const auto run = [calling, at](const detail::Tensors& given) {
      R result = detail::lift((*calling)(given), at);
      detail::Tensors tensors = detail::take_tensors(result);
      calling->structure = std::move(result);
      return tensors;
    };
    detail::Tensors results = detail::run_recomputed(inputs, run, at);
    return detail::filled(*calling->structure, std::move(results));
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
Recomputed<F> recompute(F f, Source at = Source::here()) {
  return Recomputed<F>(std::move(f), at);
}

}  // namespace tidemark
