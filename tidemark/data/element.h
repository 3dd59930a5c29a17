// An element as stages see it: its tensors, without their structure.
//
// Stages work on lists of tensors, so that none of them is a template. The user's structure is
// flattened when an element leaves the user's code (pack) and rebuilt when it is passed to it again
// (unpack).
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/api/structure.h"

namespace tidemark::data {

// The non-tensor part of a structure: lengths, keys, values.
struct Form {
  explicit Form(std::string key) : key(std::move(key)) {}
  virtual ~Form() = default;
  Form(const Form&) = delete;
  Form& operator=(const Form&) = delete;

  std::string key;  // Equal keys, equal forms.
};
using FormPtr = std::shared_ptr<const Form>;

struct Element {
  std::vector<Tensor> tensors;  // In the order of for_each_leaf.
  FormPtr form;                 // Null if the type of the structure determines it.
};

namespace detail {

template <Structure E>
struct FormOf : Form {
  FormOf(std::string key, E structure) : Form(std::move(key)), structure(std::move(structure)) {}
  E structure;  // Without its tensors.
};

template <class T>
constexpr bool holds_tensors_only();
template <class Tuple>
constexpr bool parts_hold_tensors_only() {
  return []<size_t... I>(std::index_sequence<I...>) {
    return (holds_tensors_only<std::tuple_element_t<I, Tuple>>() && ...);
  }(std::make_index_sequence<std::tuple_size_v<Tuple>>{});
}
// Whether a value of the type is determined by its tensors.
template <class T>
constexpr bool holds_tensors_only() {
  namespace td = tidemark::detail;
  if constexpr (std::is_same_v<T, Tensor>)
    return true;
  else if constexpr (!std::default_initializable<T>)
    return false;
  else if constexpr (td::is_tuple<T>)
    return parts_hold_tensors_only<T>();
  else if constexpr (td::is_leaf<T> || td::is_fixed<T> || td::is_list<T> || td::is_optional<T> ||
                     td::is_map<T>)
    return false;
  else
    return parts_hold_tensors_only<td::FieldTypes<T>>();
}

template <Structure E>
FormPtr form_of(E structure) {
  std::string key;
  tidemark::detail::add_key(structure, tidemark::detail::Path("element"), key);
  for_each_leaf(structure, [&]<class Leaf>(const Leaf& leaf, const tidemark::detail::Path& path) {
    if constexpr (std::is_same_v<Leaf, Dim>)
      key += path.text() + ": " + tidemark::detail::key_text(leaf) + "\n";
  });
  return std::make_shared<FormOf<E>>(std::move(key), std::move(structure));
}

}  // namespace detail

template <Structure E>
Element pack(E structure) {
  Element element{tidemark::detail::take_tensors(structure), {}};
  if constexpr (!detail::holds_tensors_only<E>())
    element.form = detail::form_of(std::move(structure));
  return element;
}

// Moves the element's tensors, so that ops can run in place if they are not shared.
template <Structure E>
E unpack(Element element) {
  const auto filled = [&](E structure) {
    size_t next = 0;
    for_each_leaf(structure, [&]<class Leaf>(Leaf& leaf, const tidemark::detail::Path&) {
      if constexpr (std::is_same_v<Leaf, Tensor>) leaf = std::move(element.tensors[next++]);
    });
    return structure;
  };
  if constexpr (detail::holds_tensors_only<E>())
    return filled(E());
  else
    return filled(static_cast<const detail::FormOf<E>&>(*element.form).structure);
}

}  // namespace tidemark::data
