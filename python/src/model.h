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

// How a class of the library that holds Variables is treated as part of a Python model.
struct NativePart {
  void (*walk)(const void* part, const detail::VariablePath& path, const detail::SeeVariable& see);
  bool (*add_identity)(const void* part, std::string& key);
  // Null if it is no layer.
  Tensor (*call)(const void* part, const Tensor& x, Source at);
  std::string (*name)(const void* part);
};
void add_native_part(nb::handle type, NativePart part);

// A Python callable as a layer of C++. It refers to the object, so that what is assigned to a layer
// later counts. It is called, copied and dropped with or without the GIL.
class PythonLayer {
 public:
  // Needs the GIL.
  explicit PythonLayer(nb::handle callable);

  Tensor operator()(const Tensor& x, Source at) const;
  Tensor operator()(const Tensor& x) const { return (*this)(x, Source::none()); }
  // Of a layer of the library; else empty.
  const std::string& name() const { return name_; }
  const Held& callable() const { return callable_; }
  bool is_native() const { return native_ != nullptr; }  // A layer of the library itself.

  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const;
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace);
  // False if the object holds what cannot be compared: a tensor, an array, a closure over a layer.
  bool tidemark_identity(std::string& key) const;

 private:
  Held callable_;
  const NativePart* native_ = nullptr;  // If it is a layer of the library itself.
  std::string name_;
};

// What replaces Variables in a deep copy: that of copy_with, or clones that the copy shares.
class Replacer {
 public:
  static Replacer& of(nb::dict memo);
  explicit Replacer(detail::ReplaceVariable replace) : replace_(std::move(replace)) {}
  const detail::ReplaceVariable& replace() const { return replace_; }

 private:
  detail::ReplaceVariable replace_;
};

// Makes a bound class known as a part of models, and copyable by copy.copy and copy.deepcopy.
template <class T>
void make_part(nb::class_<T>& bound) {
  NativePart part{
      .walk =
          [](const void* part, const detail::VariablePath& path, const detail::SeeVariable& see) {
            detail::walk_variables(*static_cast<const T*>(part), path, see);
          },
      .add_identity =
          [](const void* part, std::string& key) {
            key += typeid(T).name();
            return detail::add_identity_of(*static_cast<const T*>(part), key);
          },
      .call = nullptr,
      .name = nullptr};
  if constexpr (nn::LayerFunction<T>) {
    part.call = [](const void* part, const Tensor& x, Source at) -> Tensor {
      return detail::call_back(*static_cast<const T*>(part), at, x);
    };
    part.name = [](const void* part) -> std::string {
      if constexpr (requires(const T& layer) { layer.name(); })
        return static_cast<const T*>(part)->name();
      else
        return {};
    };
  }
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
