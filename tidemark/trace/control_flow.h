// Control flow on tensors: branches, loops and maps.
//
// Eager code runs the bodies directly. In a traced function they become part of the program: a
// branch that is not taken costs nothing, a body is compiled once whatever the number of trips, and
// the plan counts the larger of two branches and one trip of a loop.
//
// The carries of a loop may be any Structure. Plain numbers in it become tensors with the dtype
// that the body gives them. A tuple is unpacked into parameters; a struct is one parameter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tidemark/ops/pointwise.h"
#include "tidemark/structure/callback.h"
#include "tidemark/structure/structure.h"
#include "tidemark/trace/control_flow_core.h"
#include "tidemark/trace/tensor_array.h"
#include "tidemark/types/size.h"

namespace tidemark {

// What a loop in a function keeps for its gradient. Trips whose values are not kept are repeated
// from checkpoints; the gradient has the same bits.
// - automatic: everything, if that is at most 64 MiB at the sizes and trips of the call and fits
// the
//   function's budget; else as many checkpoints as the square root of the number of trips, or 32 if
//   that number is known only at run time.
// - all: the residuals of every trip. Needs a known number of trips, or a bound.
// - every(k): one checkpoint per k trips, and k states to repeat the trips between two of them.
// - slots(s): s checkpoints, including the start of the loop, placed to repeat the fewest trips.
// - bytes(b): as many checkpoints as fit into b bytes together with the working memory of the loop.
class Save {
 public:
  using Kind = LoopAttrs::Save;
  static Save automatic() { return Save(Kind::automatic, 0); }
  static Save all() { return Save(Kind::all, 0); }
  static Save every(int64_t trips) { return Save(Kind::every, trips); }
  static Save slots(int64_t count) { return Save(Kind::slots, count); }
  static Save bytes(Bytes most) { return Save(Kind::bytes, most.count); }

  Kind kind() const { return kind_; }
  int64_t amount() const { return amount_; }

 private:
  Save(Kind kind, int64_t amount) : kind_(kind), amount_(amount) {}
  Kind kind_;
  int64_t amount_;
};

struct LoopOptions {
  std::optional<int64_t> max_iterations = {};
  // One for each carried tensor, in order; an open size may change from trip to trip.
  std::vector<Shape> shape_invariants = {};
  Save save = Save::automatic();
};
struct ForOptions {
  Save save = Save::automatic();
};
struct ScanOptions {
  bool reverse = false;
  Save save = Save::automatic();
};
// As the chunk of a map: as many bodies at once as fit the budget of the function, the same number
// for all such maps. Without a budget, one for each thread if every thread gets at least two; a few
// large bodies run one after another.
struct Automatic {};
inline constexpr Automatic automatic = {};
// A number of bodies, or td::automatic.
class Chunk {
 public:
  Chunk(int64_t bodies) : bodies_(bodies) {}
  Chunk(Automatic) {}

  bool is_automatic() const { return !bodies_; }
  int64_t bodies() const { return *bodies_; }

 private:
  std::optional<int64_t> bodies_;
};
// Both options limit the number of bodies that run at once. If both are given, the smaller counts;
// the default is 1. The peak grows by one body for each; the results have the same bits.
struct MapOptions {
  std::optional<int64_t> parallel_iterations = {};
  std::optional<Chunk> chunk = {};
};

namespace detail {

inline void set_save(LoopParts& parts, Save save, Source at) {
  parts.save = save.kind();
  parts.save_amount = save.amount();
  if (save.kind() == Save::Kind::every)
    check_count(parts.name, "save = every", save.amount(), 1, at);
  if (save.kind() == Save::Kind::slots)
    check_count(parts.name, "save = slots", save.amount(), 1, at);
  if (save.kind() == Save::Kind::bytes)
    check_count(parts.name, "save = bytes", save.amount(), 1, at);
}

// A copy of the structure with these tensors, in the order of take_tensors.
template <Structure S>
S filled(const S& structure, Tensors tensors) {
  S copy = structure;
  size_t next = 0;
  for_each_leaf(copy, [&]<class Leaf>(Leaf& leaf, const Path&) {
    if constexpr (std::is_same_v<Leaf, Tensor>) leaf = std::move(tensors[next++]);
  });
  return copy;
}

// Everything in a structure besides its tensors: lengths, names, sizes, Static values.
template <Structure S>
std::string fixed_parts(const S& structure, std::string_view root) {
  std::string text;
  const auto leaf = [&text]<class Leaf>(const Leaf& part, const Path& path) {
    if constexpr (std::is_same_v<Leaf, Dim>) text += path.text() + ": " + key_text(part) + "\n";
  };
  const auto rest = [&text](const auto& part, const Path& path) { add_key_line(part, path, text); };
  walk(structure, Path(root), leaf, rest);
  return text;
}

template <Structure S>
PathOf path_of(const S& structure, std::string_view root) {
  return
      [&structure, root](size_t number) { return tensor_paths(structure, Path(root)).at(number); };
}

// Extracts the tensors from the carries that a body returned.
template <Structure S>
Tensors carried_on(const S& structure, S next, std::string_view name, Source at) {
  const std::string before = fixed_parts(structure, "carry"), after = fixed_parts(next, "carry");
  if (before != after)
    structure_differs(cat(name, ": the body changes the structure of what it carries"), before,
                      after, at);
  return take_tensors(next);
}

// Like call_unpacked, but the parts are moved into the callee; `first` comes before them.
template <class F, Structure S, class... First>
auto call_moved(F& f, Source at, S carried,  // NOLINT(performance-unnecessary-value-param)
                const First&... first) {
  if constexpr (is_tuple<S>)
    return std::apply([&](auto&... each) { return call_back(f, at, first..., std::move(each)...); },
                      carried);
  else
    return call_back(f, at, first..., std::move(carried));
}
template <class F, class S, class... First>
using MovedResult = Lifted<decltype(call_moved(std::declval<F&>(), std::declval<Source>(),
                                               std::declval<S>(), std::declval<First>()...))>;

// The structure of the elements that a body returns, which is the same in every trip.
template <Structure Y>
class Elements {
 public:
  explicit Elements(std::string_view name) : name_(name) {}
  void take(Y element, Tensors& to, Source at) {
    Tensors tensors = take_tensors(element);
    std::string fixed = fixed_parts(element, "result");
    if (structure_ && fixed != fixed_)
      structure_differs(cat(name_, ": the body gives different structures"), fixed_, fixed, at);
    structure_ = std::move(element);
    fixed_ = std::move(fixed);
    for (Tensor& tensor : tensors) to.push_back(std::move(tensor));
  }
  PathOf path() const {
    return [this](size_t number) { return path_of(*structure_, "result")(number); };
  }
  Y filled(Tensors tensors) const { return detail::filled(*structure_, std::move(tensors)); }

 private:
  std::string_view name_;
  std::optional<Y> structure_;
  std::string fixed_;
};

// Runs both branches once, to trace them.
template <class R, class Then, class Else>
R traced_cond(const Tensor& chosen, Then& if_true, Else& if_false, Source at) {
  std::optional<R> structure;
  std::string fixed;
  const auto first = [&] {
    structure = lift(call_back(if_true, at), at);
    Tensors tensors = take_tensors(*structure);
    fixed = fixed_parts(*structure, "result");
    return tensors;
  };
  const auto second = [&] {
    R other = lift(call_back(if_false, at), at);
    Tensors tensors = take_tensors(other);
    const std::string given = fixed_parts(other, "result");
    if (given != fixed)
      structure_differs("cond: the branches give different structures", fixed, given, at);
    return tensors;
  };
  const auto path = [&](size_t number) { return path_of(*structure, "result")(number); };
  return filled(*structure, trace_cond(chosen, first, second, path, at));
}

template <class R, class Then, class Else>
R choose_branch(const Tensor& chosen, Then& if_true, Else& if_false, Source at) {
  if constexpr (std::is_void_v<R>) {
    const auto giving_nothing = [at](auto& branch) {
      return [&branch, at] {
        call_back(branch, at);
        return std::tuple<>();
      };
    };
    const auto first = giving_nothing(if_true);
    const auto second = giving_nothing(if_false);
    choose_branch<std::tuple<>>(chosen, first, second, at);
  } else {
    const SourceScope scope(at);
    if (is_tracing()) return traced_cond<R>(chosen, if_true, if_false, at);
    R result = chosen.item<bool>(at) ? lift(call_back(if_true, at), at)
                                     : lift(call_back(if_false, at), at);
    for_each_leaf(result, [at]<class Leaf>(Leaf& leaf, const Path&) {
      if constexpr (std::is_same_v<Leaf, Tensor>) leaf = not_a_view(leaf, at);
    });
    return result;
  }
}

template <class R, class Last>
R choose_case(const Tensor&, int64_t, Source at, Last& last) {
  if constexpr (std::is_void_v<R>)
    call_back(last, at);
  else
    return lift(call_back(last, at), at);
}
template <class R, class First, class Second, class... Rest>
R choose_case(const Tensor& index, int64_t number, Source at, First& first, Second& second,
              Rest&... rest) {
  const auto others = [&] { return choose_case<R>(index, number + 1, at, second, rest...); };
  return choose_branch<R>(equal(index, number, at), first, others, at);
}

template <class T>
struct LiftedOrVoid {
  using type = Lifted<T>;
};
template <>
struct LiftedOrVoid<void> {
  using type = void;
};
template <class F>
using BranchResult = typename LiftedOrVoid<std::invoke_result_t<F&>>::type;

}  // namespace detail

// Returns if_true() if the condition is true, else if_false(). In a function both are traced, one
// of them runs, and the plan has room for the larger.
template <class Then, class Else>
auto cond(const Operand& condition, Then&& if_true, Else&& if_false, Source at = Source::here()) {
  using R = detail::BranchResult<Then>;
  static_assert(std::is_same_v<R, detail::BranchResult<Else>>,
                "cond: both branches must return the same type");
  return detail::choose_branch<R>(detail::condition_of(condition, "cond", at), if_true, if_false,
                                  at);
}

// Returns the result of the branch with this number, or of the last branch if there is none.
template <class First, class... Rest>
auto switch_case(const Operand& index, First&& first, Rest&&... rest) {
  using R = detail::BranchResult<First>;
  static_assert((std::is_same_v<R, detail::BranchResult<Rest>> && ...),
                "switch_case: all branches must return the same type");
  const Source at = index.at();
  return detail::choose_case<R>(detail::index_of(index, "switch_case", at), 0, at, first, rest...);
}

// Repeats the body while the condition holds.
template <class Condition, class Body, class State>
auto while_loop(Condition&& condition, Body&& body, State&& loop_vars, LoopOptions options = {},
                Source at = Source::here()) {
  using S = detail::Lifted<State>;
  static_assert(std::is_same_v<detail::MovedResult<Body, S>, S>,
                "while_loop: the body must return the same structure as loop_vars");
  S structure = detail::lift(std::forward<State>(loop_vars), at);
  detail::LoopParts parts{.name = "while_loop"};
  parts.carries = detail::take_tensors(structure);
  parts.carry_path = detail::path_of(structure, "carry");
  parts.invariants = std::move(options.shape_invariants);
  parts.condition = [&](const detail::Tensors& carries) {
    const S now = detail::filled(structure, carries);
    return detail::condition_of(detail::lift(detail::call_unpacked(condition, at, now), at),
                                "while_loop", at);
  };
  parts.body = [&](const Tensor&, detail::Tensors carries, const detail::Tensors&) {
    S next = detail::lift(
        detail::call_moved(body, at, detail::filled(structure, std::move(carries))), at);
    return detail::carried_on(structure, std::move(next), "while_loop", at);
  };
  detail::set_save(parts, options.save, at);
  if (options.max_iterations) {
    detail::check_count("while_loop", "max_iterations", *options.max_iterations, 0, at);
    parts.trips = *options.max_iterations;
  }
  return detail::filled(structure, detail::run_loop(std::move(parts), at));
}

// carry = body(i, carry...) for i from lower to upper - 1. The bounds are tensors or plain numbers;
// with plain numbers the plan knows the number of trips.
template <class Body, class State>
auto fori_loop(const Operand& lower, const Operand& upper, Body&& body, State&& init,
               const ForOptions& options = {}, Source at = Source::here()) {
  using S = detail::Lifted<State>;
  static_assert(std::is_same_v<detail::MovedResult<Body, S, Tensor>, S>,
                "fori_loop: the body must return the same structure as init");
  S structure = detail::lift(std::forward<State>(init), at);
  detail::LoopParts parts{.name = "fori_loop"};
  parts.carries = detail::take_tensors(structure);
  parts.carry_path = detail::path_of(structure, "carry");
  parts.lower = detail::index_of(lower, "fori_loop", at);
  parts.upper = detail::index_of(upper, "fori_loop", at);
  detail::set_save(parts, options.save, at);
  parts.body = [&](const Tensor& number, detail::Tensors carries, const detail::Tensors&) {
    S next = detail::lift(
        detail::call_moved(body, at, detail::filled(structure, std::move(carries)), number), at);
    return detail::carried_on(structure, std::move(next), "fori_loop", at);
  };
  return detail::filled(structure, detail::run_loop(std::move(parts), at));
}

// {carry, y} = body(carry, x) for each slice x along the first axis of xs. Returns the last carry
// and the stack of all y.
template <class Body, class State, Structure Xs>
auto scan(Body&& body, State&& init, const Xs& xs, const ScanOptions& options = {},
          Source at = Source::here()) {
  using S = detail::Lifted<State>;
  using Both = detail::Lifted<decltype(detail::call_back(body, at, std::declval<const S&>(),
                                                         std::declval<const Xs&>()))>;
  static_assert(std::tuple_size_v<Both> == 2 && std::is_same_v<std::tuple_element_t<0, Both>, S>,
                "scan: the body must return {carry, y} with the carry's own structure");
  using Y = std::tuple_element_t<1, Both>;
  S structure = detail::lift(std::forward<State>(init), at);
  Xs arrays = xs;
  detail::Elements<Y> elements("scan");
  detail::LoopParts parts{.name = "scan"};
  parts.carries = detail::take_tensors(structure);
  parts.carry_path = detail::path_of(structure, "carry");
  parts.element_path = elements.path();
  parts.walked = detail::take_tensors(arrays);
  parts.trips = detail::common_length(parts.walked, detail::path_of(arrays, "xs"), "scan", at);
  parts.reverse = options.reverse;
  detail::set_save(parts, options.save, at);
  const size_t carries = parts.carries.size();
  parts.body = [&](const Tensor&, detail::Tensors carried, detail::Tensors slices) {
    Both both =
        detail::lift(detail::call_back(body, at, detail::filled(structure, std::move(carried)),
                                       detail::filled(arrays, std::move(slices))),
                     at);
    detail::Tensors given = detail::carried_on(structure, std::get<0>(std::move(both)), "scan", at);
    elements.take(std::get<1>(std::move(both)), given, at);
    return given;
  };
  detail::Tensors results = detail::run_loop(std::move(parts), at);
  detail::Tensors stacked(std::make_move_iterator(results.begin() + static_cast<int64_t>(carries)),
                          std::make_move_iterator(results.end()));
  results.resize(carries);
  return std::pair<S, Y>(detail::filled(structure, std::move(results)),
                         elements.filled(std::move(stacked)));
}

namespace detail {

template <class F, Structure Xs>
auto map_slices(F& f, const Xs& elems, const MapOptions& options, int64_t alive, MapParts parts,
                Source at) {
  using Y = MovedResult<F, Xs>;
  Xs arrays = elems;
  Elements<Y> elements(parts.name);
  parts.walked = take_tensors(arrays);
  parts.trips = common_length(parts.walked, path_of(arrays, "elems"), parts.name, at);
  parts.element_path = elements.path();
  parts.body = [&](Tensors slices) {
    Tensors given;
    elements.take(lift(call_moved(f, at, filled(arrays, std::move(slices))), at), given, at);
    return given;
  };
  parts.alive = alive < 0 ? parts.trips : Dim(alive);
  parts.all_at_once = alive < 0 && !options.parallel_iterations && !options.chunk;
  if (options.parallel_iterations) {
    check_count(parts.name, "parallel_iterations", *options.parallel_iterations, 1, at);
    parts.alive = *options.parallel_iterations;
  }
  if (options.chunk && options.chunk->is_automatic()) {
    if (options.parallel_iterations) chunk_is_automatic(parts.name, at);
    parts.alive = open;
  } else if (options.chunk) {
    const int64_t chunk = options.chunk->bodies();
    check_count(parts.name, "chunk", chunk, 1, at);
    parts.alive = options.parallel_iterations ? smaller(parts.alive, chunk) : Dim(chunk);
  }
  return elements.filled(run_map(parts, at));
}

}  // namespace detail

// The stack of f(slice) for each slice along the first axis of elems. Each result is computed in
// its row of the stack: the peak is the output plus the bodies that run at once.
template <class F, Structure Xs>
auto map_fn(F&& f, const Xs& elems, const MapOptions& options = {}, Source at = Source::here()) {
  return detail::map_slices(f, elems, options, 1, {.name = "map_fn"}, at);
}

// Like map_fn, but by default all bodies run at once: for small bodies. In a function, the body's
// ops run on the whole arrays with a batch axis, if each of them can be batched. If one cannot, the
// plan's step names it, and the bodies run one slice at a time on all threads.
template <class F, Structure Xs>
auto vectorized_map(F&& f, const Xs& elems, const MapOptions& options = {},
                    Source at = Source::here()) {
  return detail::map_slices(f, elems, options, -1, {.name = "vectorized_map"}, at);
}

}  // namespace tidemark
