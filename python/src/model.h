// Python models as the library sees them: the Variables in an object, and callables as layers.
//
// A model is any Python object. Its Variables are found in its attributes, however deep: in layers,
// lists, tuples, dictionaries, objects, and in what closures, methods and partials hold. They are
// named by attribute, key and number: "blocks/0/up/kernel".
#pragma once

#include <string>

#include "bindings.h"
#include "held.h"

namespace tidemark::python {

// Calls `see` for each Variable of a model, in the order of its attributes. Needs the GIL.
void see_variables_of(nb::handle model, const detail::VariablePath& path,
                      const detail::SeeVariable& see);
// Each once, under its first name. Needs the GIL.
NamedVariables named_variables_of(nb::handle model);

// A copy of a model in which every Variable is replaced: copy.deepcopy, which layers and Variables
// answer by calling `replace`. Needs the GIL.
nb::object copy_with(nb::handle model, const detail::ReplaceVariable& replace);

// A Python callable as a layer of C++. It is called, copied and dropped with or without the GIL.
class PythonLayer {
 public:
  explicit PythonLayer(nb::handle callable) : callable_(callable) {}

  Tensor operator()(const Tensor& x) const;
  nb::handle callable() const { return callable_.get(); }

  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const;
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace);
  // False if the object holds what cannot be compared: a tensor, an array, a closure over a layer.
  bool tidemark_identity(std::string& key) const;

 private:
  Held callable_;
};

// A callable as a layer: a layer of the library itself, or a PythonLayer.
nn::AnyLayer layer_of(nb::handle callable);

// How a class of the library that holds Variables is treated as part of a Python model.
struct NativePart {
  void (*walk)(const void* part, const detail::VariablePath& path, const detail::SeeVariable& see);
  bool (*add_identity)(const void* part, std::string& key);
  nn::AnyLayer (*as_layer)(const void* part);  // Null if it is no layer.
};
void add_native_part(nb::handle type, NativePart part);

// Makes a bound class known as a part of models, and copyable by copy.copy and copy.deepcopy.
template <class T, class Class>
void make_part(Class& bound);

// What replaces Variables in a deep copy: that of copy_with, or clones that the copy shares.
class Replacer {
 public:
  static Replacer& of(nb::dict memo);
  explicit Replacer(detail::ReplaceVariable replace) : replace_(std::move(replace)) {}
  const detail::ReplaceVariable& replace() const { return replace_; }

 private:
  detail::ReplaceVariable replace_;
};

template <class T, class Class>
void make_part(Class& bound) {
  NativePart part{
      .walk = [](const void* part, const detail::VariablePath& path,
                 const detail::SeeVariable& see) {
        detail::walk_variables(*static_cast<const T*>(part), path, see);
      },
      .add_identity =
          [](const void* part, std::string& key) {
            key += typeid(T).name();
            return detail::add_identity_of(*static_cast<const T*>(part), key);
          },
      .as_layer = nullptr};
  if constexpr (nn::LayerFunction<T>)
    part.as_layer = [](const void* part) { return nn::AnyLayer(*static_cast<const T*>(part)); };
  add_native_part(bound, part);
  bound.def("__copy__", [](const T& part) { return T(part); })
      .def("__deepcopy__", [](const T& part, nb::dict memo) {
        T copy = part;
        detail::walk_variables(copy, detail::VariablePath(), Replacer::of(memo).replace());
        return copy;
      });
}

void bind_model(nb::module_& module);

}  // namespace tidemark::python
