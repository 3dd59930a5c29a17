// Conversion between a call's arguments, the leaves that FunctionCore works on, and the user's
// result. Internal to the library.
#pragma once

#include <any>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/function/function_core.h"
#include "tidemark/structure/callback.h"
#include "tidemark/structure/structure.h"

namespace tidemark::detail {

// `all` is a tuple, const or not.
template <class All, class Leaf, class Rest>
void walk_arguments(All& all, Leaf& leaf, Rest& rest) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (walk(std::get<I>(all), Path::argument(I), leaf, rest), ...);
  }(std::make_index_sequence<std::tuple_size_v<All>>{});
}

template <class... T>
ArgumentStructure structure_of(const std::tuple<T...>& all) {
  using All = std::tuple<T...>;
  ArgumentStructure structure;
  structure.from = &all;
  structure.key = [](const void* from) {
    std::string key;
    const auto rest = [&key](const auto& part, const Path& path) { add_key_line(part, path, key); };
    walk_arguments(*static_cast<const All*>(from), pass_over, rest);
    return key;
  };
  structure.is_like = [](const void* from, const std::any& copy) {
    return are_alike(*static_cast<const All*>(from), *std::any_cast<All>(&copy));
  };
  structure.copy = [](const void* from) { return std::any(*static_cast<const All*>(from)); };
  structure.paths = [](const void* from) {
    std::vector<std::string> paths;
    const auto leaf = [&paths](const auto&, const Path& path) { paths.push_back(path.text()); };
    walk_arguments(*static_cast<const All*>(from), leaf, pass_over);
    return paths;
  };
  return structure;
}

// Moves the leaves out of the arguments, so that a tensor the caller moved in has no other handle.
// The result must not outlive `all`.
template <class... T>
Arguments take_arguments(std::tuple<T...>& all) {
  Arguments taken;
  taken.leaves.reserve(8);
  const auto leaf = [&taken]<class Leaf>(Leaf& part, const Path&) {
    Argument& argument = taken.leaves.emplace_back();
    if constexpr (std::is_same_v<Leaf, Dim>) {
      argument.size = part;
      argument.is_size = true;
    } else {
      argument.tensor = std::move(part);
      argument.donated = true;
    }
  };
  walk_arguments(all, leaf, pass_over);
  taken.from = structure_of(all);
  return taken;
}

// Rebuilds the arguments with these leaves.
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

// A size in a result is a number: reading it specialises the trace to that size.
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

// The result of a call. It is allocated before the call runs and receives its tensors after, so
// that nothing can fail once a Variable has changed.
template <class R>
class ResultRoom {
 public:
  void operator()(const std::any& structure) {
    if constexpr (kHasStructure) result_.emplace(std::any_cast<const R&>(structure));
  }
  // Consumes the leaves.
  R fill(CallResult leaves) {
    if constexpr (std::is_same_v<R, Tensor>) {
      return std::move(leaves[0]);
    } else if constexpr (kHasStructure) {
      Tensor* next = leaves.data();
      for_each_leaf(*result_, [&next]<class Leaf>(Leaf& leaf, const Path&) {
        if constexpr (std::is_same_v<Leaf, Tensor>) leaf = std::move(*next++);
      });
      return *std::move(result_);
    }
  }

 private:
  static constexpr bool kHasStructure = !std::is_same_v<R, Tensor> && !std::is_void_v<R>;
  std::conditional_t<kHasStructure, std::optional<std::conditional_t<std::is_void_v<R>, Tensor, R>>,
                     std::tuple<>>
      result_;
};

// Calls the user's function, with each argument passed as its parameter declares.
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
