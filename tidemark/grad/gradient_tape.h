// GradientTape: gradients of the computations of eager code or of a function.
//
//   td::GradientTape tape;
//   td::Tensor loss = td::sum(td::square(td::matmul(x, w)));  // w is a Variable
//   td::Gradient g = tape.gradient(loss, w);
//
// The history is in the tape, not in tensors: a loss that is kept holds only its number. In eager
// code a tape saves the values that the gradient rule of each op reads, and releases them as
// `gradient` consumes them. In a traced function it saves nothing: the gradient becomes part of the
// program, and the plan lists what is saved.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/structure/structure.h"
#include "tidemark/structure/variable_walk.h"
#include "tidemark/tensor/row_gradient.h"
#include "tidemark/tensor/variable.h"

namespace tidemark {

namespace detail {
class Tape;
}

// The gradient for a Variable: dense, or row-sparse if the Variable was only looked up in.
class Gradient {
 public:
  Gradient() = default;
  Gradient(Tensor dense) : dense_(std::move(dense)) {}
  Gradient(RowGradient rows, TensorType type) : rows_(std::move(rows)), type_(std::move(type)) {}

  bool has_value() const { return dense_.has_value() || is_rows(); }
  bool is_rows() const { return rows_.has_value(); }
  // Throws a UserError if it is dense.
  const RowGradient& rows(Source at = Source::here()) const;
  // Sums the rows into a tensor of the Variable's shape.
  Tensor dense(Source at = Source::here()) const;
  Shape shape() const { return is_rows() ? type_.shape : dense_.shape(); }
  DType dtype() const { return is_rows() ? type_.dtype : dense_.dtype(); }

 private:
  Tensor dense_;
  std::optional<RowGradient> rows_;
  TensorType type_;
};

struct TapeOptions {
  bool persistent = false;      // gradient() may be called more than once.
  bool watch_variables = true;  // Trainable Variables are watched when they are read.
};

// The gradient for a source that the target does not depend on: zeros, an empty Tensor, or a
// UserError.
enum class Unconnected : uint8_t { zero, none, error };

// The gradients that the backward pass starts with, one for each tensor of the target; default:
// ones.
class OutputGradients {
 public:
  OutputGradients() = default;
  OutputGradients(Tensor one) : list_{std::move(one)} {}
  OutputGradients(std::initializer_list<Tensor> list) : list_(list) {}
  OutputGradients(std::vector<Tensor> list) : list_(std::move(list)) {}
  const std::vector<Tensor>& list() const { return list_; }

 private:
  std::vector<Tensor> list_;
};

struct GradientOptions {
  OutputGradients output_gradients = {};
  Unconnected unconnected = Unconnected::zero;
};

namespace detail {

// Whether a value of this type may contain a tensor or a Variable.
template <class T>
constexpr bool holds_sources();
template <class Tuple>
constexpr bool any_holds_sources() {
  return []<size_t... I>(std::index_sequence<I...>) {
    return (holds_sources<std::remove_cv_t<std::tuple_element_t<I, Tuple>>>() || ...);
  }(std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}
template <class T>
constexpr bool holds_sources() {
  if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, Variable> || WalksItself<T>)
    return true;
  else if constexpr (is_shared<T> || is_unique<T>)
    return holds_sources<std::remove_const_t<typename T::element_type>>();
  else if constexpr (is_tuple<T>)
    return any_holds_sources<T>();
  else if constexpr (is_list<T> || is_optional<T>)
    return holds_sources<typename T::value_type>();
  else if constexpr (is_map<T>)
    return holds_sources<typename T::mapped_type>();
  else if constexpr (HasFields<T>)
    return any_holds_sources<FieldTypes<T>>();
  else
    return false;
}

// The index, among all fields of a struct, of the field that is number `wanted` among those with
// sources.
template <class S, size_t wanted>
constexpr size_t source_field() {
  return []<size_t... I>(std::index_sequence<I...>) {
    size_t found = 0, seen = 0;
    ((holds_sources<std::remove_cv_t<std::tuple_element_t<I, FieldTypes<S>>>>() && seen++ == wanted
          ? void(found = I)
          : void()),
     ...);
    return found;
  }(std::make_index_sequence<std::tuple_size_v<FieldTypes<S>>>{});
}

// The type of gradient() for sources: a tensor for a tensor, a Gradient for a Variable. C++ cannot
// copy a struct with other field types, so a struct with Variables gives a tuple with an element
// for each field that has a Variable or a tensor. A type whose fields are not known gives a list, a
// pointer gives an optional.
template <class T>
struct GradientOfT {
  using type = T;
};
template <>
struct GradientOfT<Variable> {
  using type = Gradient;
};
template <class T>
struct GradientOfT<std::vector<T>> {
  using type = std::vector<typename GradientOfT<T>::type>;
};
template <class T>
struct GradientOfT<std::optional<T>> {
  using type = std::optional<typename GradientOfT<T>::type>;
};
template <class T>
struct GradientOfT<std::map<std::string, T>> {
  using type = std::map<std::string, typename GradientOfT<T>::type>;
};
template <class T>
  requires(is_shared<T> || is_unique<T>)
struct GradientOfT<T> {
  using type =
      std::optional<typename GradientOfT<std::remove_const_t<typename T::element_type>>::type>;
};
template <WalksItself T>
struct GradientOfT<T> {
  using type = std::vector<Gradient>;
};
template <class T, size_t n>
struct GradientOfT<std::array<T, n>> {
  using type = std::array<typename GradientOfT<T>::type, n>;
};
template <class... T>
struct GradientOfT<std::tuple<T...>> {
  using type = std::tuple<typename GradientOfT<T>::type...>;
};
template <class A, class B>
struct GradientOfT<std::pair<A, B>> {
  using type = std::pair<typename GradientOfT<A>::type, typename GradientOfT<B>::type>;
};
template <class Field>
auto gradient_of_field() {
  if constexpr (holds_sources<std::remove_cv_t<Field>>())
    return std::tuple<typename GradientOfT<std::remove_cv_t<Field>>::type>();
  else
    return std::tuple<>();
}
template <class... Field>
auto gradients_of_fields(std::type_identity<std::tuple<Field...>>) {
  return std::tuple_cat(gradient_of_field<Field>()...);
}
template <class T>
  requires(!Structure<T> && HasFields<T> && !WalksItself<T> && holds_sources<T>())
struct GradientOfT<T> {
  using type = decltype(gradients_of_fields(std::type_identity<FieldTypes<T>>()));
};
template <class T>
using GradientOf = typename GradientOfT<std::remove_cvref_t<T>>::type;

// Extracts the sources from a structure, and puts the gradients into the matching structure.
class Sources {
 public:
  template <class S>
  void add(const S& source) {
    if constexpr (std::is_same_v<S, Variable>)
      variables.push_back(source);
    else if constexpr (WalksItself<S>)
      see_variables(source,
                    [&](const VariablePath&, const Variable& each) { variables.push_back(each); });
    else if constexpr (Structure<S>)
      for_each_leaf(source, [&]<class Leaf>(const Leaf& leaf, const Path&) {
        if constexpr (std::is_same_v<Leaf, Tensor>) tensors.push_back(leaf);
      });
    else if constexpr (is_tuple<S>)
      std::apply([&](const auto&... each) { (add(each), ...); }, source);
    else if constexpr (is_map<S>)
      for (const auto& [name, each] : source) add(each);
    else if constexpr (is_list<S>)
      for (const auto& each : source) add(each);
    else if constexpr (is_optional<S> || is_shared<S> || is_unique<S>) {
      if (source) add(std::as_const(*source));
    } else {
      static_assert(holds_sources<S>(),
                    "gradients are by tensors, Variables, and structures of them; a struct must be "
                    "an aggregate or name its fields with TIDEMARK_FIELDS");
      std::apply([&](const auto&... each) { (add_field(each), ...); }, fields(source));
    }
  }
  template <class S>
  GradientOf<S> give(const S& source) {
    if constexpr (std::is_same_v<S, Variable>) {
      return std::move(of_variables[next_variable_++]);
    } else if constexpr (WalksItself<S>) {
      GradientOf<S> list;
      see_variables(source,
                    [&](const VariablePath&, const Variable& each) { list.push_back(give(each)); });
      return list;
    } else if constexpr (Structure<S>) {
      S copy = source;
      for_each_leaf(copy, [&]<class Leaf>(Leaf& leaf, const Path&) {
        if constexpr (std::is_same_v<Leaf, Tensor>) leaf = std::move(of_tensors[next_tensor_++]);
      });
      return copy;
    } else if constexpr (is_tuple<S>) {
      return std::apply([&](const auto&... each) { return GradientOf<S>{give(each)...}; }, source);
    } else if constexpr (is_map<S>) {
      GradientOf<S> named;
      for (const auto& [name, each] : source) named.emplace(name, give(each));
      return named;
    } else if constexpr (is_list<S>) {
      GradientOf<S> list;
      for (const auto& each : source) list.push_back(give(each));
      return list;
    } else if constexpr (is_optional<S> || is_shared<S> || is_unique<S>) {
      return source ? GradientOf<S>(give(std::as_const(*source))) : std::nullopt;
    } else {
      return give_fields(source);
    }
  }

  std::vector<Tensor> tensors;
  std::vector<Variable> variables;
  std::vector<Tensor> of_tensors;
  std::vector<Gradient> of_variables;

 private:
  template <class Field>
  void add_field(const Field& field) {
    if constexpr (holds_sources<Field>()) add(field);
  }
  template <class S>
  GradientOf<S> give_fields(const S& source) {
    const auto all = fields(source);
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return GradientOf<S>{give(std::get<source_field<S, I>()>(all))...};
    }(std::make_index_sequence<std::tuple_size_v<GradientOf<S>>>{});
  }

  size_t next_tensor_ = 0, next_variable_ = 0;
};

template <Structure S>
std::vector<Tensor> tensors_of(const S& structure) {
  std::vector<Tensor> tensors;
  for_each_leaf(structure, [&]<class Leaf>(const Leaf& leaf, const Path&) {
    if constexpr (std::is_same_v<Leaf, Tensor>) tensors.push_back(leaf);
  });
  return tensors;
}

}  // namespace detail

class GradientTape {
 public:
  explicit GradientTape(TapeOptions options = {}, Source at = Source::here());
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // Watches these tensors: they, and everything computed from them, can be sources and targets.
  template <Structure S>
  void watch(const S& structure, Source at = Source::here()) {
    for (const Tensor& tensor : detail::tensors_of(structure)) watch_one(tensor, at);
  }
  void watch(const Variable& variable, Source at = Source::here());

  // The gradient of the target (the sum of all its elements, or weighted by `output_gradients`)
  // with respect to tensors, Variables and structures of them. May be called once unless the tape
  // is persistent.
  template <Structure Target, class Sources>
  detail::GradientOf<Sources> gradient(const Target& target, const Sources& sources,
                                       const GradientOptions& options = {},
                                       Source at = Source::here()) {
    detail::Sources apart;
    apart.add(sources);
    compute(detail::tensors_of(target), apart, options, at);
    return apart.give(sources);
  }
  // The derivative of every element of y by every element of x; its shape is y.shape, x.shape.
  Tensor jacobian(const Tensor& y, const Tensor& x, Source at = Source::here());
  // By each of several tensors, in one pass for each element of y. With Unconnected::none, those
  // that y does not depend on get an empty tensor.
  std::vector<Tensor> jacobian(const Tensor& y, const std::vector<Tensor>& sources,
                               Unconnected unconnected = Unconnected::zero,
                               Source at = Source::here());

  // The Variables that were read so far, in order.
  std::vector<Variable> watched_variables() const;
  // The bytes that the tape keeps alive for gradients.
  Bytes saved_bytes() const;

  // While it exists, the tape does not record.
  class [[nodiscard]] Pause {
   public:
    explicit Pause(GradientTape& tape);
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    GradientTape* tape_;  // Null if it was not recording.
  };
  [[nodiscard("recording stops while the object that is given lives")]] Pause stop_recording() {
    return Pause(*this);
  }
  // Stops recording; gradient() may still be called.
  void stop();
  // Releases everything that is saved.
  void release();
  // Back to the initial state: nothing is watched or recorded.
  void reset();

 private:
  void watch_one(const Tensor& tensor, Source at);
  void compute(const std::vector<Tensor>& targets, detail::Sources& sources,
               const GradientOptions& options, Source at);

  TapeOptions options_;
  std::unique_ptr<detail::Tape> tape_;
};

}  // namespace tidemark
