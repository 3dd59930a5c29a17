// Datasets: sequences of elements that are computed on demand.
//
//   auto batches = td::data::from_tensor_slices(std::tuple{images, labels})
//                      .shuffle({.seed = 1})
//                      .map([](const td::Tensor& x, const td::Tensor& y) {
//                        return std::tuple{td::cast(x, td::f32) / 255, y};
//                      }, {.parallel = 2})
//                      .batch(64)
//                      .prefetch(2);
//   for (const auto& [x, y] : batches) step(x, y);
//
// Order and values do not depend on threads. Every stage states the bytes that it will hold before
// any element is made: `batches.plan()`. `.within(256_MiB)` refuses a pipeline that would hold
// more. See docs/data.md.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/api/extend.h"
#include "tidemark/data/element.h"
#include "tidemark/data/pipeline.h"
#include "tidemark/data/plan.h"

namespace tidemark::data {

template <Structure E>
class Dataset;

namespace detail {

// The parts of a tuple, pair or array are passed as separate arguments if f accepts them.
template <class F, class E>
constexpr bool takes_parts() {
  if constexpr (tidemark::detail::is_tuple<E>)
    return []<size_t... I>(std::index_sequence<I...>) {
      return std::is_invocable_v<F&, std::tuple_element_t<I, E>&&...>;
    }(std::make_index_sequence<std::tuple_size_v<E>>{});
  else
    return false;
}
// Calls f with an element, which is moved.
template <class F, class E>
decltype(auto) call_with(F& f, Source at, E&& element) {
  using tidemark::detail::call_back;
  if constexpr (takes_parts<F, std::remove_cvref_t<E>>())
    return std::apply(
        [&](auto&&... parts) -> decltype(auto) {
          return call_back(f, at, std::forward<decltype(parts)>(parts)...);
        },
        std::forward<E>(element));
  else
    return call_back(f, at, std::forward<E>(element));
}
template <class F, class E>
constexpr bool takes_element = takes_parts<F, E>() || std::is_invocable_v<F&, E&&>;
template <class F, class E>
using CallResult = std::remove_cvref_t<decltype(call_with(
    std::declval<F&>(), std::declval<Source>(), std::declval<E&&>()))>;

template <class E>
constexpr bool check_element() {
  constexpr bool sound = Structure<E>;
  static_assert(
      sound,
      "an element of a dataset is a tensor, or a structure of tensors: tuples, pairs, "
      "vectors, or a struct that is an aggregate or names its fields with TIDEMARK_FIELDS");
  return sound;
}

template <class T>
struct OptionalOf {
  using type = void;
};
template <class T>
struct OptionalOf<std::optional<T>> {
  using type = tidemark::detail::Lifted<T>;
};
// The element type of a generator; void if the type is not a generator.
template <class G>
struct GeneratedBy {
  using type = void;
};
template <class G>
  requires std::is_invocable_v<G&>
struct GeneratedBy<G> : OptionalOf<std::remove_cvref_t<std::invoke_result_t<G&>>> {};
template <class G>
using Generated = typename GeneratedBy<G>::type;

// Each pass has its own copy of the generator.
template <class E, class G>
ElementSource source_of(G generator) {
  return [generator = std::move(generator)]() mutable -> std::optional<Element> {
    const UserCode user;
    auto element = generator();
    if (!element) return std::nullopt;
    return pack(tidemark::detail::lift(*std::move(element), Source::none()));
  };
}

}  // namespace detail

// A handle: copies are the same dataset. Each begin() starts a separate iteration; several may be
// active at once, on any threads.
template <Structure E>
class Dataset {
 public:
  using Element = E;

  // ---- stages. The dataset itself stays as it is.

  // f(element). It may take the parts of a tuple as parameters, and may be a td::Function. With
  // .parallel it is called from threads.
  template <class F>
  auto map(F f, MapOptions options = {}, Source at = Source::here()) const {
    static_assert(detail::takes_element<F, E>,
                  "map: the function cannot be called with an element of this dataset, neither "
                  "with the parts of a tuple nor with the whole");
    if constexpr (detail::takes_element<F, E>) {
      using R = tidemark::detail::Lifted<detail::CallResult<F, E>>;
      if constexpr (detail::check_element<R>())
        return Dataset<R>(mapped(stage(), function_of<R>(std::move(f), at), options, at), cap());
    }
  }
  // Keeps the elements for which f(element) is true; f returns a bool or a tensor of one element.
  template <class F>
  Dataset filter(F f, Source at = Source::here()) const {
    static_assert(detail::takes_element<F, E>,
                  "filter: the function cannot be called with an element of this dataset, neither "
                  "with the parts of a tuple nor with the whole");
    return next(filtered(stage(), predicate_of(std::move(f), at), at));
  }
  // The order depends on the seed and the pass. If elements can be read by index (rows of tensors,
  // ranges, caches; also through map, take, skip, zip and batch), the shuffle is uniform and needs
  // no memory. Otherwise a buffer size must be given, and each element is drawn from the next that
  // many.
  Dataset shuffle(ShuffleOptions options = {}, Source at = Source::here()) const {
    return next(shuffled(stage(), options, at));
  }
  // Elements drawn by their weights, each as often as it comes: for classes of uneven size. It can
  // be read by index, as the dataset must be, and holds 8 bytes for each weight.
  Dataset sample(DrawOptions options, Source at = Source::here()) const {
    return next(drawn(stage(), std::move(options), at));
  }
  // `size` elements as one, with a new first axis.
  Dataset batch(int64_t size, BatchOptions options = {}, Source at = Source::here()) const {
    return next(batched(stage(), size, options, at));
  }
  // The same for tensors of different sizes, which are filled up to those of the longest, or to
  // .shapes.
  Dataset padded_batch(int64_t size, PaddingOptions options = {},
                       Source at = Source::here()) const {
    return next(padded_batched(stage(), size, std::move(options), at));
  }
  // Batches of elements of similar length, so that little is padded: length(element) is a number,
  // and each bucket between two boundaries collects its own batch. What is left at the end comes
  // last, in the order of the buckets.
  template <class F>
  Dataset bucket_by_length(F length, Buckets buckets, BucketOptions options = {},
                           Source at = Source::here()) const {
    static_assert(detail::takes_element<F, E>,
                  "bucket_by_length: the function cannot be called with an element of this "
                  "dataset, neither with the parts of a tuple nor with the whole");
    return next(bucketed(stage(), length_of(std::move(length), at), std::move(buckets),
                         std::move(options), at));
  }
  // `size` successive elements as one, with a new first axis; windows may overlap.
  Dataset window(int64_t size, WindowOptions options = {}, Source at = Source::here()) const {
    return next(windowed(stage(), size, options, at));
  }
  // Every `shards`-th element, from `index` on: the part of one of several readers.
  Dataset shard(int64_t shards, int64_t index, Source at = Source::here()) const {
    return next(sharded(stage(), shards, index, at));
  }
  // The elements of the datasets f(element), of several in turn. One that ends is followed by that
  // of the next element.
  template <class F>
  auto interleave(F f, InterleaveOptions options = {}, Source at = Source::here()) const {
    static_assert(detail::takes_element<F, E>,
                  "interleave: the function cannot be called with an element of this dataset, "
                  "neither with the parts of a tuple nor with the whole");
    using R = detail::CallResult<F, E>;
    return R(interleaved(stage(), stage_of(std::move(f), at), options, at), cap());
  }
  // The same, one dataset after another.
  template <class F>
  auto flat_map(F f, Source at = Source::here()) const {
    return interleave(std::move(f), {.cycle = 1}, at);
  }
  // Repeats for ever if no number is given. Each repetition is shuffled again.
  Dataset repeat(std::optional<int64_t> times = {}, Source at = Source::here()) const {
    return next(repeated(stage(), times, at));
  }
  Dataset take(int64_t count, Source at = Source::here()) const {
    return next(taken(stage(), count, at));
  }
  Dataset skip(int64_t count, Source at = Source::here()) const {
    return next(skipped(stage(), count, at));
  }
  // Stores all elements in memory: the first iteration computes them before it yields its first,
  // and later ones read them. plan() states the bytes beforehand.
  Dataset cache(Source at = Source::here()) const { return next(cached(stage(), at)); }
  // Stores them in a file that is mapped, also for other processes and later runs: if the file
  // exists and matches, only the first element is computed. Delete the file when the elements
  // change.
  Dataset cache(std::string path, Source at = Source::here()) const {
    return next(cached_in_file(stage(), std::move(path), at));
  }
  // Computes up to `count` elements ahead, on a thread.
  Dataset prefetch(int64_t count, Source at = Source::here()) const {
    return next(prefetched(stage(), count, at));
  }

  // ---- bytes

  // The bytes that an iteration holds, stage by stage. If the bytes of a map's elements are not
  // known yet, its function is called with one element; a generator is not called.
  DatasetPlan plan() const { return pipeline_->plan(); }
  // Limits the bytes of an iteration, including stages added later. If they would be more, an
  // OverBudget that names the stages is thrown: now, when an iteration begins, or when a larger
  // element appears.
  Dataset within(Bytes bytes, Source at = Source::here()) const {
    Dataset capped(stage(), Cap{bytes, at});
    capped.pipeline_->check();
    return capped;
  }

  // ---- walks

  class Iterator;
  Iterator begin() const { return Iterator(pipeline_->begin()); }
  std::default_sentinel_t end() const { return {}; }
  // The number of elements, if it is known and finite.
  std::optional<int64_t> count() const { return pipeline_->count(); }
  // The position of the iteration that was started last. Pass it to restore() to continue after its
  // last element.
  Position position() const { return pipeline_->position(); }
  // The next iteration begins there. Elements that can be skipped by index are not computed again.
  void restore(Position position, Source at = Source::here()) const {
    pipeline_->restore(position, at);
  }

  // For code that builds datasets.
  explicit Dataset(StagePtr stage, std::optional<Cap> cap = {})
      : pipeline_(std::make_shared<Pipeline>(std::move(stage), cap)) {}
  const StagePtr& stage() const { return pipeline_->stage(); }
  const std::optional<Cap>& cap() const { return pipeline_->cap(); }

 private:
  Dataset next(StagePtr stage) const { return Dataset(std::move(stage), cap()); }

  template <class R, class F>
  static ElementFunction function_of(F f, Source at) {
    return [f = std::move(f), at](data::Element element) mutable {
      return pack<R>(
          tidemark::detail::lift(detail::call_with(f, at, unpack<E>(std::move(element))), at));
    };
  }
  template <class F>
  static ElementPredicate predicate_of(F f, Source at) {
    return [f = std::move(f), at](const data::Element& element) mutable {
      return static_cast<bool>(detail::call_with(f, at, unpack<E>(element)));
    };
  }

  template <class F>
  static ElementLength length_of(F f, Source at) {
    return [f = std::move(f), at](const data::Element& element) mutable -> int64_t {
      auto length = detail::call_with(f, at, unpack<E>(element));
      if constexpr (std::is_same_v<decltype(length), Tensor>)
        return length.template item<int64_t>(at);
      else
        return static_cast<int64_t>(length);
    };
  }
  template <class F>
  static StageFunction stage_of(F f, Source at) {
    return [f = std::move(f), at](data::Element element) mutable {
      return InnerStage{detail::call_with(f, at, unpack<E>(std::move(element))).stage()};
    };
  }

  std::shared_ptr<Pipeline> pipeline_;
};

template <Structure E>
class Dataset<E>::Iterator {
 public:
  using value_type = E;
  using difference_type = std::ptrdiff_t;
  using iterator_concept = std::input_iterator_tag;

  explicit Iterator(Walk walk) : state_(std::make_shared<State>(std::move(walk))) { pull(); }

  // The element belongs to the caller, who may move its tensors.
  E& operator*() const { return *state_->element; }
  E* operator->() const { return &*state_->element; }
  Iterator& operator++() {
    // Dropped first, so that its memory can be reused for the next element.
    state_->element.reset();
    pull();
    return *this;
  }
  void operator++(int) { ++*this; }
  Position position() const { return state_->walk.position(); }
  friend bool operator==(const Iterator& at, std::default_sentinel_t) {
    return !at.state_->element.has_value();
  }

 private:
  struct State {
    explicit State(Walk walk) : walk(std::move(walk)) {}
    Walk walk;
    std::optional<E> element;
  };
  void pull() {
    std::optional<data::Element> element = state_->walk.next();
    if (!element) return;
    state_->element.emplace(unpack<E>(*std::move(element)));
    state_->walk.gave();
  }

  std::shared_ptr<State> state_;
};

// ---- where datasets begin -----------------------------------------------------------------------

// The rows of tensors along their first axis, whose sizes must be equal. Nothing is copied.
template <class S>
auto from_tensor_slices(S structure, Source at = Source::here()) {
  using E = tidemark::detail::Lifted<S>;
  if constexpr (detail::check_element<E>()) {
    E tensors = tidemark::detail::lift(std::move(structure), at);
    auto paths = tidemark::detail::tensor_paths(tensors, tidemark::detail::Path(""));
    return Dataset<E>(slices(pack(std::move(tensors)), std::move(paths), at));
  }
}

// The rows of a .npy file, which is mapped: rows that are not read use no memory.
inline Dataset<Tensor> from_npy(const std::string& path, Source at = Source::here()) {
  return Dataset<Tensor>(npy_rows(path, at));
}

// The lines of text files, plain or gzip, as u8[n] without their ends. A plain file is mapped, and
// a line is a view of it.
inline Dataset<Tensor> text_lines(const std::vector<std::string>& paths,
                                  Source at = Source::here()) {
  return Dataset<Tensor>(lines_of(paths, at));
}
inline Dataset<Tensor> text_lines(const std::string& path, Source at = Source::here()) {
  return text_lines(std::vector{path}, at);
}

// 0, 1, ... as i64 tensors of one element.
inline Dataset<Tensor> range(int64_t end, Source at = Source::here()) {
  return Dataset<Tensor>(numbers(0, end, 1, at));
}
inline Dataset<Tensor> range(int64_t begin, int64_t end, int64_t step = 1,
                             Source at = Source::here()) {
  return Dataset<Tensor>(numbers(begin, end, step, at));
}

// The values of a function without arguments, which returns std::optional<element>, empty at the
// end. Each iteration uses its own copy of the function. A function that returns such a function is
// called once for each iteration.
template <class G>
auto from_generator(G generator, Source at = Source::here()) {
  using Direct = detail::Generated<G>;
  if constexpr (!std::is_void_v<Direct>) {
    if constexpr (detail::check_element<Direct>())
      return Dataset<Direct>(generated(
          [generator = std::move(generator)] { return detail::source_of<Direct>(generator); }, at));
  } else if constexpr (std::is_invocable_v<G&>) {
    using Inner = std::remove_cvref_t<std::invoke_result_t<G&>>;
    using Made = detail::Generated<Inner>;
    static_assert(
        !std::is_void_v<Made>,
        "from_generator takes a function of no argument that gives std::optional<element>, "
        "or a function that gives such a function");
    if constexpr (detail::check_element<Made>())
      return Dataset<Made>(generated(
          [generator = std::move(generator)]() mutable {
            const UserCode user;
            return detail::source_of<Made>(generator());
          },
          at));
  } else {
    static_assert(
        tidemark::detail::always_false<G>,
        "from_generator takes a function of no argument that gives std::optional<element>, "
        "or a function that gives such a function");
  }
}

namespace detail {

template <class Part>
Part form_part(const FormPtr& form) {
  if constexpr (holds_tensors_only<Part>())
    return Part();
  else
    return static_cast<const FormOf<Part>&>(*form).structure;
}
// The form of a tuple of elements, from their forms.
template <class... E>
FormPtr join_forms(const std::vector<FormPtr>& forms) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return form_of(std::tuple<E...>(form_part<E>(forms[I])...));
  }(std::index_sequence_for<E...>{});
}
// The tighter one.
inline std::optional<Cap> smaller_cap(const std::optional<Cap>& a, const std::optional<Cap>& b) {
  return !a || (b && b->bytes < a->bytes) ? b : a;
}
template <class... E>
Dataset<std::tuple<E...>> zip_all(Source at, const Dataset<E>&... datasets) {
  std::function<FormPtr(const std::vector<FormPtr>&)> join;
  if constexpr (!holds_tensors_only<std::tuple<E...>>()) join = join_forms<E...>;
  std::optional<Cap> cap;
  ((cap = smaller_cap(cap, datasets.cap())), ...);
  return Dataset<std::tuple<E...>>(zipped({datasets.stage()...}, std::move(join), at), cap);
}

}  // namespace detail

// Tuples of the elements of several datasets; ends with the shortest.
template <class A, class B>
Dataset<std::tuple<A, B>> zip(const Dataset<A>& a, const Dataset<B>& b,
                              Source at = Source::here()) {
  return detail::zip_all(at, a, b);
}
template <class A, class B, class C>
Dataset<std::tuple<A, B, C>> zip(const Dataset<A>& a, const Dataset<B>& b, const Dataset<C>& c,
                                 Source at = Source::here()) {
  return detail::zip_all(at, a, b, c);
}

// Elements of several datasets, each drawn from one of them by its weight.
template <Structure E>
Dataset<E> sample_from(const std::vector<Dataset<E>>& datasets, SampleOptions options = {},
                       Source at = Source::here()) {
  std::vector<StagePtr> stages;
  std::optional<Cap> cap;
  for (const Dataset<E>& each : datasets) {
    stages.push_back(each.stage());
    cap = detail::smaller_cap(cap, each.cap());
  }
  return Dataset<E>(sampled(std::move(stages), {}, std::move(options), at), cap);
}

}  // namespace tidemark::data
