// What flows through a dataset: the tensors of one element, without their structure.
//
// Stages work on lists of tensors, so that none of them is a template. The structure that users see
// is taken apart where an element leaves their code (pack) and put together where it reaches it
// again (unpack).
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tidemark/api/structure.h"

namespace tidemark::data {

// What a structure says beside its tensors: lengths, keys, values.
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
  FormPtr form;                 // Null where the type of the structure says all.
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
// Whether one of the type can be made from nothing but its tensors.
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

// The element's tensors are moved: what is not held elsewhere may be computed in place.
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
