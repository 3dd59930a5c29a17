// From a call's arguments to leaves, through the user's function, and from leaves to its result:
// what function.h does around a FunctionCore. Internal to api/.
#pragma once

#include <any>
#include <concepts>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tidemark/api/callback.h"
#include "tidemark/api/function_core.h"
#include "tidemark/api/structure.h"

namespace tidemark::detail {

// Takes the leaves out of the arguments: a tensor the caller moved in has no other handle then.
// What is returned must not outlive `all`, which keeps the rest.
template <class... T>
Arguments take_arguments(std::tuple<T...>& all) {
  Arguments taken;
  const auto leaf = [&taken]<class Leaf>(Leaf& part, const Path& path) {
    Argument& argument = taken.leaves.emplace_back();
    argument.path = path.text();
    if constexpr (std::is_same_v<Leaf, Dim>) {
      argument.size = part;
      argument.is_size = true;
    } else {
      argument.tensor = std::move(part);
      argument.donated = true;
    }
  };
  const auto rest = [&taken](const auto& part, const Path& path) {
    add_key_line(part, path, taken.key);
  };
  [&]<size_t... I>(std::index_sequence<I...>) {
    (walk(std::get<I>(all), Path::argument(I), leaf, rest), ...);
  }(std::index_sequence_for<T...>{});
  taken.structure = [&all] { return std::make_any<std::tuple<T...>>(all); };
  return taken;
}

// The arguments again, with these leaves.
template <class... T>
std::tuple<T...> with_arguments(std::span<const Argument> leaves, const std::any& structure) {
  auto all = std::any_cast<std::tuple<T...>>(structure);
  auto next = leaves.begin();
  for_each_leaf(all, [&next]<class Leaf>(Leaf& leaf, const Path&) {
    if constexpr (std::is_same_v<Leaf, Dim>)
      leaf = next->size;
    else
      leaf = next->tensor;
    ++next;
  });
  return all;
}

// A size in a result is a number: reading it closes the dimension it came from, so that each size
// has a trace of its own.
inline void close(Dim& size) { size = int64_t{size}; }

template <Structure R>
TraceResult take_result(R result) {
  TraceResult taken;
  const auto leaf = [&taken]<class Leaf>(Leaf& part, const Path& path) {
    if constexpr (std::is_same_v<Leaf, Dim>) {
      close(part);
    } else {
      taken.leaves.push_back(std::move(part));
      taken.paths.push_back(path.text());
    }
  };
  const auto rest = []<class Part>(const Part& part, const Path&) {
    if constexpr (std::is_same_v<Part, Shape>)
      for (Dim size : part) close(size);
  };
  walk(result, Path("result"), leaf, rest);
  taken.structure = std::make_any<R>(std::move(result));
  return taken;
}

template <class R>
R give_result(const CallResult& called) {
  if constexpr (!std::is_void_v<R>)
    return with_tensors(std::any_cast<const R&>(*called.structure), called.leaves);
}

// Runs the user's function on its arguments, each passed as it declares them.
template <class R, class... A, class F>
R call_user(F& f, std::tuple<std::remove_cvref_t<A>...>& all, Source at) {
  return std::apply([&](auto&... each) -> R { return call_back(f, at, static_cast<A&&>(each)...); },
                    all);
}

template <class R, class... A, class F>
TraceBody make_body(F f, Source at) {
  return [f = std::move(f), at](std::span<const Argument> leaves,
                                const std::any& structure) mutable -> TraceResult {
    auto all = with_arguments<std::remove_cvref_t<A>...>(leaves, structure);
    if constexpr (std::is_void_v<R>) {
      call_user<R, A...>(f, all, at);
      return {};
    } else {
      return take_result<std::remove_cvref_t<R>>(call_user<R, A...>(f, all, at));
    }
  };
}

}  // namespace tidemark::detail
