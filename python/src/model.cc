#include "model.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "convert.h"
#include "holds.h"
#include "source.h"

namespace tidemark::python {
namespace {

using detail::SeeVariable;
using detail::VariablePath;

using NativeParts = std::unordered_map<PyObject*, NativePart>;
NativeParts& native_parts() {
  static auto* const parts = new NativeParts();  // Classes live as long as the process.
  return *parts;
}

// The entry of an object's class or of the first of its bases that has one.
const NativePart* native_part_of(nb::handle object) {
  PyObject* const bases = Py_TYPE(object.ptr())->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); ++i) {
    const auto found = native_parts().find(PyTuple_GET_ITEM(bases, i));
    if (found != native_parts().end()) return &found->second;
  }
  return nullptr;
}

bool is_exactly_native(nb::handle object) {
  return native_parts().contains(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
}

// Objects that hold no parts of a model: numbers, text, tensors, classes and modules.
bool is_plain(nb::handle object) {
  PyObject* const o = object.ptr();
  return o == Py_None || PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) ||
         PyBytes_Check(o) || PyType_Check(o) || PyModule_Check(o) || PyCFunction_Check(o) ||
         nb::isinstance<Tensor>(object);
}

nb::object attribute(nb::handle object, const char* name) {
  nb::object found = nb::steal(PyObject_GetAttrString(object.ptr(), name));
  if (!found.is_valid()) PyErr_Clear();
  return found;
}

// The fields of a namedtuple, or an invalid object.
nb::object tuple_fields(nb::handle object) {
  return PyTuple_CheckExact(object.ptr()) ? nb::object() : attribute(object, "_fields");
}

std::string_view text_in(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const characters = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (characters == nullptr) nb::raise_python_error();
  return {characters, static_cast<size_t>(size)};
}

// Instances of classes of the standard library (loggers, locks, paths) lead out of the model.
bool is_of_standard_library(nb::handle object) {
  static const nb::handle names = imported("sys", "stdlib_module_names");
  const nb::object type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  const nb::object module = attribute(type, "__module__");
  if (!module.is_valid() || !PyUnicode_Check(module.ptr())) return true;
  const std::string_view whole = text_in(module);
  const std::string_view top = whole.substr(0, whole.find('.'));
  if (top == "types" || top == "__main__") return false;  // SimpleNamespace; the user's script.
  return PySet_Contains(names.ptr(), nb::str(top.data(), top.size()).ptr()) == 1;
}

// A walk over one model. It visits each object once, so that cycles end: also those that lead
// through a layer of the library whose activation is a method of the model.
class ModelWalk {
 public:
  explicit ModelWalk(const SeeVariable& see) : see_(see), outer_(std::exchange(current_, this)) {}
  ~ModelWalk() { current_ = outer_; }
  ModelWalk(const ModelWalk&) = delete;
  ModelWalk& operator=(const ModelWalk&) = delete;
  // The walk that has come to a layer of the library and sees its Variables by `see`, or null.
  static ModelWalk* continued(const SeeVariable& see) {
    return current_ != nullptr && &current_->see_ == &see ? current_ : nullptr;
  }

  void visit(nb::handle object, const VariablePath& path) {
    if (is_plain(object)) return;
    if (nb::isinstance<Variable>(object)) {
      see_(path, nb::cast<const Variable&>(object));
      return;
    }
    if (!seen_.insert(object.ptr()).second) return;
    // Attributes may be made on demand, and would be freed and seen again at the same address.
    kept_.push_back(nb::borrow(object));
    if (PyDict_Check(object.ptr()))
      visit_items(object, path);
    else if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr()))
      visit_sequence(object, path);
    else
      visit_object(object, path);
  }

 private:
  void visit_items(nb::handle items, const VariablePath& path) {
    for (const auto& [key, value] : nb::borrow<nb::dict>(items)) {
      const nb::object name =
          PyUnicode_Check(key.ptr()) ? nb::borrow(key) : nb::object(nb::str(key));
      visit(value, path.field(text_in(name)));
    }
  }
  void visit_sequence(nb::handle sequence, const VariablePath& path) {
    const nb::object fields = tuple_fields(sequence);
    int64_t number = 0;
    for (const nb::handle item : nb::borrow<nb::sequence>(sequence)) {
      if (fields.is_valid()) {
        const nb::object name = fields[number];
        visit(item, path.field(text_in(name)));
      } else {
        visit(item, path.item(number));
      }
      ++number;
    }
  }
  void visit_object(nb::handle object, const VariablePath& path) {
    if (const NativePart* const part = native_part_of(object)) {
      part->walk(nb::inst_ptr<void>(object), path, see_);
      if (is_exactly_native(object)) return;
    }
    if (PyFunction_Check(object.ptr()))
      visit_closure(object, path);
    else if (PyMethod_Check(object.ptr()))
      visit(PyMethod_GET_SELF(object.ptr()), path);
    else
      visit_attributes(object, path);
  }
  void visit_closure(nb::handle function, const VariablePath& path) {
    visit_wrapped(function, path);
    PyObject* const cells = PyFunction_GET_CLOSURE(function.ptr());
    if (cells == nullptr) return;
    const nb::object names = function.attr("__code__").attr("co_freevars");
    const bool ours = is_of_this_package(function);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells); ++i) {
      PyObject* const content = PyCell_GET(PyTuple_GET_ITEM(cells, i));
      const nb::object name = names[i];
      if (content != nullptr) visit(content, ours ? path : path.field(text_in(name)));
    }
  }
  // td.recompute(block) is a function of this package; its Variables have the names of the block's.
  static bool is_of_this_package(nb::handle function) {
    PyObject* const name = PyDict_GetItemString(PyFunction_GET_GLOBALS(function.ptr()), "__name__");
    return name != nullptr && PyUnicode_Check(name) && text_in(name).starts_with("tidemark.");
  }
  void visit_attributes(nb::handle object, const VariablePath& path) {
    // A class may say which part of it the names begin at.
    const nb::object parts = attribute(object, "_tidemark_parts");
    if (parts.is_valid()) return visit(parts, path);
    visit_wrapped(object, path);
    static const nb::handle partial = imported("functools", "partial");
    if (nb::isinstance(object, partial)) {
      visit(nb::object(object.attr("func")), path);
      visit(nb::object(object.attr("args")), path);
      visit(nb::object(object.attr("keywords")), path);
      return;
    }
    if (is_of_standard_library(object)) return;
    const nb::object own = attribute(object, "__dict__");
    if (own.is_valid() && PyDict_Check(own.ptr())) visit_items(own, path);
    visit_slots(object, path);
  }
  void visit_slots(nb::handle object, const VariablePath& path) {
    PyObject* const bases = Py_TYPE(object.ptr())->tp_mro;
    for (Py_ssize_t i = PyTuple_GET_SIZE(bases); i-- > 0;) {
      nb::object slots = attribute(PyTuple_GET_ITEM(bases, i), "__slots__");
      if (!slots.is_valid()) continue;
      if (PyUnicode_Check(slots.ptr())) slots = nb::make_tuple(slots);
      for (const nb::handle name : slots) {
        const nb::object value = attribute(object, nb::str(name).c_str());
        if (value.is_valid()) visit(value, path.field(text_in(name)));
      }
    }
  }
  // A function that another one wraps: td.recompute(block), td.custom_gradient, functools.wraps.
  void visit_wrapped(nb::handle object, const VariablePath& path) {
    const nb::object wrapped = attribute(object, "__wrapped__");
    if (wrapped.is_valid()) visit(wrapped, path);
  }

  static thread_local ModelWalk* current_;
  const SeeVariable& see_;
  ModelWalk* outer_;
  std::unordered_set<PyObject*> seen_;
  std::vector<nb::object> kept_;
};
thread_local ModelWalk* ModelWalk::current_ = nullptr;

// While it lives, walks on this thread pass over Python functions in layers of the library.
class WithoutFunctions {
 public:
  WithoutFunctions() : outer_(std::exchange(now_, true)) {}
  ~WithoutFunctions() { now_ = outer_; }
  WithoutFunctions(const WithoutFunctions&) = delete;
  WithoutFunctions& operator=(const WithoutFunctions&) = delete;
  static bool now() { return now_; }

 private:
  static thread_local bool now_;
  bool outer_;
};
thread_local bool WithoutFunctions::now_ = false;

// The text that identifies what a model computes: structure/identity.h.
class ModelIdentity {
 public:
  explicit ModelIdentity(std::string& key) : key_(key), outer_(std::exchange(current_, this)) {}
  ~ModelIdentity() { current_ = outer_; }
  ModelIdentity(const ModelIdentity&) = delete;
  ModelIdentity& operator=(const ModelIdentity&) = delete;
  // The one that has come to a layer of the library and writes to `key`, or null.
  static ModelIdentity* continued(const std::string& key) {
    return current_ != nullptr && &current_->key_ == &key ? current_ : nullptr;
  }

  bool add(nb::handle object) {
    PyObject* const o = object.ptr();
    if (o == Py_None || PyLong_Check(o) || PyFloat_Check(o) || PyUnicode_Check(o) ||
        PyBytes_Check(o))
      return add_text(object);
    if (nb::isinstance<Variable>(object)) {
      detail::add_identity(nb::cast<const Variable&>(object), key_);
      return true;
    }
    if (PyType_Check(o) || PyCFunction_Check(o) || is_dtype(object)) return add_address(o);
    const auto [seen, fresh] = seen_.emplace(o, seen_.size());
    if (!fresh) {
      detail::add_identity(seen->second, key_);
      return true;
    }
    add_address(reinterpret_cast<PyObject*>(Py_TYPE(o)));
    if (is_exactly_native(object))
      return native_part_of(object)->add_identity(nb::inst_ptr<void>(object), key_);
    if (PyDict_Check(o)) return add_items(object);
    if (PyTuple_Check(o) || PyList_Check(o)) return add_sequence(object);
    if (PyFunction_Check(o)) return add_function(object);
    if (PyMethod_Check(o)) return add(PyMethod_GET_FUNCTION(o)) && add(PyMethod_GET_SELF(o));
    return add_object(object);
  }

 private:
  static bool is_dtype(nb::handle object) { return nb::isinstance<DType>(object); }

  // Objects whose addresses are in the key stay alive with the copy that is remembered.
  bool add_address(PyObject* object) {
    detail::add_identity(reinterpret_cast<uint64_t>(object), key_);
    return true;
  }
  bool add_text(nb::handle object) {
    add_address(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
    const nb::str text = nb::repr(object);
    detail::add_identity_of(text_in(text), key_);
    return true;
  }
  bool add_items(nb::handle items) {
    detail::add_identity(PyDict_GET_SIZE(items.ptr()), key_);
    for (const auto& [key, value] : nb::borrow<nb::dict>(items))
      if (!add(key) || !add(value)) return false;
    return true;
  }
  bool add_sequence(nb::handle sequence) {
    detail::add_identity(nb::len(sequence), key_);
    for (const nb::handle item : nb::borrow<nb::sequence>(sequence))
      if (!add(item)) return false;
    return true;
  }
  // Copies of a model share its functions, so a closure over Variables cannot be replaced.
  bool add_function(nb::handle function) {
    add_address(PyFunction_GET_CODE(function.ptr()));
    if (attribute(function, "__wrapped__").is_valid()) return false;
    bool has_variables = false;
    see_variables_of(function, VariablePath(),
                     [&](const VariablePath&, const Variable&) { has_variables = true; });
    if (has_variables) return false;
    PyObject* const parts[] = {PyFunction_GET_CLOSURE(function.ptr()),
                               PyFunction_GET_DEFAULTS(function.ptr()),
                               PyFunction_GET_KW_DEFAULTS(function.ptr())};
    for (PyObject* const part : parts)
      if (!add_part_of_function(part)) return false;
    return true;
  }
  bool add_part_of_function(PyObject* part) {
    if (part == nullptr) return add_text(Py_None);
    if (!PyTuple_Check(part)) return add(part);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(part); ++i) {
      PyObject* item = PyTuple_GET_ITEM(part, i);
      if (PyCell_Check(item)) item = PyCell_GET(item);
      if (item == nullptr || !add(item)) return false;
    }
    return true;
  }
  // Of a class of Python, its attributes. Others (arrays, files, tensors) cannot be compared.
  bool add_object(nb::handle object) {
    const bool is_python = PyType_HasFeature(Py_TYPE(object.ptr()), Py_TPFLAGS_HEAPTYPE) != 0;
    const nb::object own = attribute(object, "__dict__");
    if (!is_python || !own.is_valid() || !PyDict_Check(own.ptr()) ||
        native_part_of(object) != nullptr || is_of_standard_library(object))
      return false;
    return add_items(own);
  }

  static thread_local ModelIdentity* current_;
  std::string& key_;
  ModelIdentity* outer_;
  std::unordered_map<PyObject*, size_t> seen_;
};
thread_local ModelIdentity* ModelIdentity::current_ = nullptr;

constexpr const char* kReplacer = "tidemark";

}  // namespace

void see_variables_of(nb::handle model, const VariablePath& path, const SeeVariable& see) {
  ModelWalk(see).visit(model, path);
}

void see_own_variables_of(nb::handle part, const SeeVariable& see) {
  const WithoutFunctions own;
  if (const NativePart* const native = native_part_of(part))
    native->walk(nb::inst_ptr<void>(part), VariablePath(), see);
}

NamedVariables named_variables_of(nb::handle model) {
  NamedVariables found;
  detail::VariablesOnce once;
  see_variables_of(model, VariablePath(), [&](const VariablePath& path, const Variable& variable) {
    if (once.add(variable)) found.emplace_back(path.text(), variable);
  });
  return found;
}

Replacer& Replacer::of(nb::dict memo) {
  if (!memo.contains(kReplacer)) {
    const auto clones = std::make_shared<detail::VariableClones>(calling_line());
    memo[kReplacer] = nb::cast(
        Replacer([clones](const VariablePath&, Variable& variable) { clones->replace(variable); }));
  }
  return nb::cast<Replacer&>(memo[kReplacer]);
}

nb::object copy_with(nb::handle model, const detail::ReplaceVariable& replace) {
  nb::dict memo;
  memo[kReplacer] = nb::cast(Replacer(replace));
  return nb::module_::import_("copy").attr("deepcopy")(model, memo);
}

nb::object copy_of_part(nb::handle self) {
  nb::object made = nb::inst_alloc(self.type());
  nb::inst_copy(made, self);
  return made;
}

thread_local const DeepCopy* DeepCopy::current_ = nullptr;

DeepCopy::DeepCopy(nb::handle self, nb::dict memo)
    : memo_(std::move(memo)),
      replacer_(Replacer::of(memo_)),
      made_(copy_of_part(self)),
      outer_(std::exchange(current_, this)) {
  memo_[nb::steal(PyLong_FromVoidPtr(self.ptr()))] = made_;
}

DeepCopy::~DeepCopy() { current_ = outer_; }

nb::object DeepCopy::of(nb::handle object, const detail::ReplaceVariable& replace) {
  if (current_ == nullptr || &current_->replace() != &replace) return copy_with(object, replace);
  return nb::module_::import_("copy").attr("deepcopy")(object, current_->memo_);
}

PythonLayer::PythonLayer(nb::handle callable, bool is_recorded)
    : callable_(is_recorded ? python::recorded(callable) : Held(callable)),
      is_recorded_(is_recorded) {
  if (!is_exactly_native(callable)) return;
  const NativePart* const part = native_part_of(callable);
  if (part->call == nullptr) return;
  native_ = part;
  name_ = part->name(nb::inst_ptr<void>(callable));
}

Tensor PythonLayer::operator()(const Tensor& x, Source at) const {
  if (native_ != nullptr) return native_->call(nb::inst_ptr<void>(callable_.get()), x, at);
  const nb::gil_scoped_acquire gil;
  const UserCode user;
  const nb::object result = callable_.get()(nb::steal(wrap(Tensor(x))));
  return tensor_from(result, calling_line());
}

std::vector<Tensor> state_list(nb::handle state, Source at) {
  if (!PyTuple_Check(state.ptr()) && !PyList_Check(state.ptr())) return {tensor_from(state, at)};
  std::vector<Tensor> list;
  for (const nb::handle part : state) list.push_back(tensor_from(part, at));
  return list;
}

nb::object state_object(const std::vector<Tensor>& state) {
  if (state.size() == 1) return nb::steal(wrap(Tensor(state[0])));
  nb::list parts;
  for (const Tensor& part : state) parts.append(nb::steal(wrap(Tensor(part))));
  return nb::tuple(parts);
}

detail::SequenceResult PythonLayer::run_sequence(const Tensor& x,
                                                 const detail::SequenceInput& input,
                                                 Source at) const {
  const nb::gil_scoped_acquire gil;
  if (!nb::hasattr(callable_.get(), "run")) detail::refuse_sequence(name_, at);
  const UserCode user;
  const nb::object initial = input.initial.empty() ? nb::none() : state_object(input.initial);
  const nb::object mask = input.mask ? nb::steal(wrap(Tensor(*input.mask))) : nb::none();
  const nb::object made = callable_.get().attr("run")(
      nb::steal(wrap(Tensor(x))), nb::arg("initial") = initial, nb::arg("mask") = mask);
  const Source line = calling_line();
  return {tensor_from(nb::object(made[0]), line), state_list(nb::object(made[1]), line)};
}

void PythonLayer::tidemark_walk(const VariablePath& path, const SeeVariable& see) const {
  const nb::gil_scoped_acquire gil;
  if (WithoutFunctions::now()) return;
  if (ModelWalk* const walk = ModelWalk::continued(see)) return walk->visit(callable_.get(), path);
  see_variables_of(callable_.get(), path, see);
}

void PythonLayer::tidemark_walk(const VariablePath& path, const detail::ReplaceVariable& replace) {
  const nb::gil_scoped_acquire gil;
  static_cast<void>(path);
  *this = PythonLayer(DeepCopy::of(callable_.get(), replace), is_recorded_);
}

bool PythonLayer::tidemark_identity(std::string& key) const {
  const nb::gil_scoped_acquire gil;
  if (ModelIdentity* const known = ModelIdentity::continued(key))
    return known->add(callable_.get());
  return ModelIdentity(key).add(callable_.get());
}

void add_native_part(nb::handle type, NativePart part) { native_parts().emplace(type.ptr(), part); }

void bind_model(nb::module_& module) { nb::class_<Replacer>(module, "_Replacer"); }

}  // namespace tidemark::python
