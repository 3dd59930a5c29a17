// Calls users' functions, and converts plain numbers in their arguments and results to tensors.
// Internal to the library.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "tidemark/base/source.h"
#include "tidemark/structure/structure.h"
#include "tidemark/tensor/variable.h"

namespace tidemark::detail {

// Ops called by an op object are charged to `at`; those in a user's function, to its own lines.
template <class F, class... A>
decltype(auto) call_back(F& f, Source at, A&&... arguments) {
  if constexpr (std::is_invocable_v<F&, A..., Source>) {
    return f(std::forward<A>(arguments)..., at);
  } else {
    const UserCode user;
    return f(std::forward<A>(arguments)...);
  }
}

// A tuple, pair or array is unpacked into parameters; anything else is one.
template <class F, Structure S>
decltype(auto) call_unpacked(F& f, Source at, const S& carried) {
  if constexpr (is_tuple<S>)
    return std::apply(
        [&](const auto&... each) -> decltype(auto) { return call_back(f, at, each...); }, carried);
  else
    return call_back(f, at, carried);
}
template <class F, class S>
using UnpackedResult = std::remove_cvref_t<decltype(call_unpacked(
    std::declval<F&>(), std::declval<Source>(), std::declval<const S&>()))>;

// The type of a value as a loop's carry or a body's result: plain numbers and Variables become
// tensors, alone or in tuples and pairs.
template <class T>
struct Lifting {
  using type = T;
  template <class U>
  static type lift(U&& x, Source at) {
    if constexpr (std::is_same_v<T, std::remove_cvref_t<U>>)
      return std::forward<U>(x);
    else
      return T(std::forward<U>(x), at);
  }
};
template <class T>
  requires(Number<T> || std::is_same_v<T, Variable>)
struct Lifting<T> : Lifting<Tensor> {};
template <class... T>
struct Lifting<std::tuple<T...>> {
  using type = std::tuple<typename Lifting<T>::type...>;
  template <class U>
  static type lift(U&& x, Source at) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return type(Lifting<T>::lift(std::get<I>(std::forward<U>(x)), at)...);
    }(std::index_sequence_for<T...>{});
  }
};
template <class A, class B>
struct Lifting<std::pair<A, B>> {
  using type = std::pair<typename Lifting<A>::type, typename Lifting<B>::type>;
  template <class U>
  static type lift(U&& x, Source at) {
    return type(Lifting<A>::lift(std::get<0>(std::forward<U>(x)), at),
                Lifting<B>::lift(std::get<1>(std::forward<U>(x)), at));
  }
};
template <class T>
using Lifted = typename Lifting<std::remove_cvref_t<T>>::type;

template <class T>
Lifted<T> lift(T&& x, Source at) {
  return Lifting<std::remove_cvref_t<T>>::lift(std::forward<T>(x), at);
}

}  // namespace tidemark::detail
