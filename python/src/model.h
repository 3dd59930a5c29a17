// Python models as the library sees them: the Variables in an object, and callables as layers.
//
// A model is any Python object. Its Variables are found in its attributes, however deep: in layers,
// lists, tuples, dictionaries, objects, and in what closures, methods and partials hold. They are
// named by attribute, key and number: "blocks/0/up/kernel".
#pragma once

#include <string>
#include <vector>

#include "bindings.h"
#include "held.h"

namespace tidemark::python {

// Calls `see` for each Variable of a model, in the order of its attributes. Needs the GIL.
void see_variables_of(nb::handle model, const detail::VariablePath& path,
                      const detail::SeeVariable& see);
// Those of a part of the library itself, without what its Python functions hold. Needs the GIL.
void see_own_variables_of(nb::handle part, const detail::SeeVariable& see);
// Each once, under its first name. Needs the GIL.
NamedVariables named_variables_of(nb::handle model);

// A copy of a model in which every Variable is replaced: copy.deepcopy, which layers and Variables
// answer by calling `replace`. Needs the GIL.
nb::object copy_with(nb::handle model, const detail::ReplaceVariable& replace);

// The state of a recurrent layer, which is a tensor or a tuple of tensors, as a list, and back.
// Need the GIL.
std::vector<Tensor> state_list(nb::handle state, Source at);
nb::object state_object(const std::vector<Tensor>& state);

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
  explicit PythonLayer(nb::handle callable) : PythonLayer(callable, false) {}
  // For a layer that `_holding` makes, which accounts for the reference (holds.h).
  static PythonLayer recorded(nb::handle callable) { return {callable, true}; }

  Tensor operator()(const Tensor& x, Source at) const;
  Tensor operator()(const Tensor& x) const { return (*this)(x, Source::none()); }
  // By the object's method `run`, if it has one.
  detail::SequenceResult run_sequence(const Tensor& x, const detail::SequenceInput& input,
                                      Source at) const;
  // Of a layer of the library; else empty.
  const std::string& name() const { return name_; }
  const Held& callable() const { return callable_; }
  bool is_native() const { return native_ != nullptr; }  // A layer of the library itself.

  void tidemark_walk(const detail::VariablePath& path, const detail::SeeVariable& see) const;
  void tidemark_walk(const detail::VariablePath& path, const detail::ReplaceVariable& replace);
  // False if the object holds what cannot be compared: a tensor, an array, a closure over a layer.
  bool tidemark_identity(std::string& key) const;

 private:
  PythonLayer(nb::handle callable, bool is_recorded);

  Held callable_;
  bool is_recorded_;
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

// A deep copy of a layer whose Python functions may lead back to the layer: the memo knows the copy
// before its parts are copied. Needs the GIL.
class DeepCopy {
 public:
  DeepCopy(nb::handle self, nb::dict memo);
  ~DeepCopy();
  DeepCopy(const DeepCopy&) = delete;
  DeepCopy& operator=(const DeepCopy&) = delete;
  const nb::object& made() const { return made_; }
  const detail::ReplaceVariable& replace() const { return replacer_.replace(); }
  // The copy of a Python object by copy.deepcopy: with the memo of the copy that replaces Variables
  // so, or with another one.
  static nb::object of(nb::handle object, const detail::ReplaceVariable& replace);

 private:
  static thread_local const DeepCopy* current_;
  nb::dict memo_;
  Replacer& replacer_;
  nb::object made_;
  const DeepCopy* outer_;
};

// A copy that has the same class, also if that is a Python class, and shares Variables.
nb::object copy_of_part(nb::handle self);

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
  bound.def("__copy__", copy_of_part).def("__deepcopy__", [](nb::handle self, nb::dict memo) {
    const DeepCopy copy(self, std::move(memo));
    detail::walk_variables(*nb::inst_ptr<T>(copy.made()), detail::VariablePath(), copy.replace());
    return copy.made();
  });
}

void bind_model(nb::module_& module);

}  // namespace tidemark::python
