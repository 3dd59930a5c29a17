// Structures: tensors, and tuples, pairs, arrays, vectors, optionals, maps and structs of them.
//
// Structures are the arguments and results of functions, the carries of loops and the elements of
// datasets. The tensors and Dims in one are its leaves, in a fixed order; everything else in it
// (lengths, names, Static values, Shapes, DTypes) is part of a function's key. New structures are
// copies with other leaves, so their types need no default constructor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/structure/static.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark {
namespace detail {

template <class T>
inline constexpr bool is_leaf = std::is_same_v<T, Tensor> || std::is_same_v<T, Dim>;
// Neither a leaf nor a container: a value that is part of the key.
template <class T>
inline constexpr bool is_fixed = std::is_same_v<T, Shape> || std::is_same_v<T, DType>;
template <class T>
inline constexpr bool is_fixed<Static<T>> = true;

// The reason why a type is not a Structure.
enum class Fault { none, number, many_fields, other };

template <class T>
constexpr Fault fault();
// The first fault among a tuple's parts.
template <class Tuple>
constexpr Fault first_fault() {
  return []<size_t... I>(std::index_sequence<I...>) {
    Fault found = Fault::none;
    ((found = found != Fault::none ? found : fault<std::tuple_element_t<I, Tuple>>()), ...);
    return found;
  }(std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}
template <class T>
constexpr Fault fault() {
  if constexpr (std::is_arithmetic_v<std::remove_const_t<T>>)
    return Fault::number;
  else if constexpr (std::is_reference_v<T> || std::is_const_v<T>)
    return Fault::other;  // A reference could not be replaced.
  else if constexpr (is_leaf<T> || is_fixed<T>)
    return Fault::none;
  else if constexpr (is_tuple<T>)
    return first_fault<T>();
  else if constexpr (is_list<T> || is_optional<T>)
    return fault<typename T::value_type>();
  else if constexpr (is_map<T>)
    return fault<typename T::mapped_type>();
  else if constexpr (HasFields<T>)
    return first_fault<FieldTypes<T>>();
  else
    return Aggregate<T> ? Fault::many_fields : Fault::other;
}

// The path to a part of a structure, a linked list on the stack of the traversal: its text is built
// only on request.
class Path {
 public:
  explicit constexpr Path(std::string_view root) : name_(root) {}
  static constexpr Path argument(int64_t number) {
    return Path(nullptr, Kind::argument, "argument ", number);
  }
  Path field(std::string_view name) const { return Path(this, Kind::field, name, 0); }
  Path item(int64_t number) const { return Path(this, Kind::item, {}, number); }
  Path key(std::string_view name) const { return Path(this, Kind::key, name, 0); }

  // "argument 1.image", "argument 0[3]", "result[\"loss\"]".
  std::string text() const {
    std::string text;
    add_to(text);
    return text;
  }

 private:
  void add_to(std::string& text) const;
  enum class Kind : uint8_t { root, argument, field, item, key };
  constexpr Path(const Path* parent, Kind kind, std::string_view name, int64_t number)
      : parent_(parent), kind_(kind), name_(name), number_(number) {}

  const Path* parent_ = nullptr;
  Kind kind_ = Kind::root;
  std::string_view name_;
  int64_t number_ = 0;
};

}  // namespace detail

template <class T>
concept Structure = detail::fault<std::remove_cvref_t<T>>() == detail::Fault::none;

namespace detail {

// Calls leaf(part, path) for each leaf, and rest(part, path) for every other part whose value is
// not determined by its type: a Static, Shape, DType, vector, optional or map, before its elements.
template <class T, class Leaf, class Rest>
void walk(T& part, const Path& path, Leaf& leaf, Rest& rest) {
  using S = std::remove_const_t<T>;
  static_assert(Structure<S>);
  [[maybe_unused]] int64_t number = 0;
  if constexpr (is_leaf<S>) {
    leaf(part, path);
  } else if constexpr (is_tuple<S>) {
    std::apply([&](auto&... items) { (walk(items, path.item(number++), leaf, rest), ...); }, part);
  } else if constexpr (HasFields<S>) {
    for_each_field(part, [&](auto& field, std::string_view name) {
      walk(field, path.field(name), leaf, rest);
    });
  } else {
    rest(static_cast<const S&>(part), path);
    if constexpr (is_list<S>)
      for (auto& item : part) walk(item, path.item(number++), leaf, rest);
    else if constexpr (is_optional<S>) {
      if (part) walk(*part, path, leaf, rest);
    } else if constexpr (is_map<S>)
      for (auto& [name, item] : part) walk(item, path.key(name), leaf, rest);
  }
}

// The line of the key for a part that is not a leaf.
template <class T>
std::string rest_text(const T& part) {
  if constexpr (is_list<T>) {
    return std::to_string(part.size()) + (part.size() == 1 ? " item" : " items");
  } else if constexpr (is_optional<T>) {
    return part ? "present" : "absent";
  } else if constexpr (is_map<T>) {
    std::string text = "keys";
    for (const auto& [name, item] : part) text += " " + key_text(name);
    return text;
  } else if constexpr (is_fixed<T> && !std::is_same_v<T, Shape> && !std::is_same_v<T, DType>) {
    return key_text_of(*part);
  } else {
    return key_text(part);
  }
}

template <class T>
void add_key_line(const T& part, const Path& path, std::string& key) {
  key += path.text() + ": " + rest_text(part) + "\n";
}

// Whether two structures of one type have the same key.
template <class S>
bool are_alike(const S& a, const S& b) {
  if constexpr (is_leaf<S>) {
    return true;
  } else if constexpr (is_tuple<S>) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return (are_alike(std::get<I>(a), std::get<I>(b)) && ...);
    }(std::make_index_sequence<std::tuple_size_v<S>>{});
  } else if constexpr (HasFields<S>) {
    return are_alike(fields(a), fields(b));
  } else if constexpr (is_list<S>) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return are_alike(x, y); });
  } else if constexpr (is_optional<S>) {
    return a.has_value() == b.has_value() && (!a || are_alike(*a, *b));
  } else if constexpr (is_map<S>) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.first == y.first && are_alike(x.second, y.second);
    });
  } else if constexpr (std::is_same_v<S, Shape> || std::is_same_v<S, DType>) {
    return a == b;
  } else {
    return has_same_key(*a, *b);
  }
}

inline constexpr auto pass_over = [](const auto&, const Path&) {};

}  // namespace detail

// Calls f(leaf, path) for each leaf in order; a leaf is a Tensor& or a Dim&, const if the structure
// is. `path.text()` is "argument 1.image".
template <Structure S, class F>
void for_each_leaf(S& structure, F&& f, const detail::Path& root = detail::Path("")) {
  detail::walk(structure, root, f, detail::pass_over);
}

namespace detail {

// The key of a structure: "argument 1: 3 items\nargument 2: true\n". Empty if it consists of leaves
// only.
template <Structure S>
void add_key(const S& structure, const Path& root, std::string& key) {
  const auto add = [&key](const auto& part, const Path& path) { add_key_line(part, path, key); };
  walk(structure, root, pass_over, add);
}

// The first difference of two keys of one type of structure: "argument 1: 3 items became 4 items".
// Empty if they are equal.
std::string key_change(std::string_view before, std::string_view after);

// Moves the tensors out, in order; the structure keeps empty ones.
template <Structure S>
std::vector<Tensor> take_tensors(S& structure) {
  std::vector<Tensor> tensors;
  for_each_leaf(structure, [&]<class Leaf>(Leaf& leaf, const Path&) {
    if constexpr (std::is_same_v<Leaf, Tensor>) tensors.push_back(std::move(leaf));
  });
  return tensors;
}
// A copy of the structure with these tensors, in the order of take_tensors.
template <Structure S>
S with_tensors(const S& structure, std::span<const Tensor> tensors) {
  S copy = structure;
  size_t next = 0;
  for_each_leaf(copy, [&]<class Leaf>(Leaf& leaf, const Path&) {
    if constexpr (std::is_same_v<Leaf, Tensor>) leaf = tensors[next++];
  });
  return copy;
}
// The path of each tensor.
template <Structure S>
std::vector<std::string> tensor_paths(const S& structure, const Path& root) {
  std::vector<std::string> paths;
  const auto add = [&]<class Leaf>(const Leaf&, const Path& path) {
    if constexpr (std::is_same_v<Leaf, Tensor>) paths.push_back(path.text());
  };
  for_each_leaf(structure, add, root);
  return paths;
}

}  // namespace detail
}  // namespace tidemark
