// td.Variable: state, with a tensor's manners. Its operators read the value and leave the rest to
// Tensor's.
#include "variable.h"

#include <unordered_map>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include "callback.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "gradient.h"
#include "holds.h"
#include "index.h"
#include "model.h"
#include "shape.h"
#include "source.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::python {
namespace {

PyTypeObject* variable_class = nullptr;

const Variable& variable_of(PyObject* object) { return *nb::inst_ptr<Variable>(object); }

// ---- operators ----------------------------------------------------------------------------------

// The value of a Variable, or of a row-sparse gradient, as a Python Tensor; anything else as it is.
nb::object read(PyObject* object) {
  if (Py_TYPE(object) == variable_class)
    return nb::steal(python::wrap(value_of(variable_of(object), calling_line())));
  if (const Gradient* rows = rows_in(object))
    return nb::steal(python::wrap(Tensor(*rows, calling_line())));
  return nb::borrow(object);
}

template <binaryfunc op>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&] { return op(read(a).ptr(), read(b).ptr()); });
}
template <unaryfunc op>
PyObject* unary(PyObject* a) {
  return guarded([&] { return op(read(a).ptr()); });
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) {
  return guarded([&] { return PyNumber_Power(read(a).ptr(), read(b).ptr(), modulo); });
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  return guarded([&] { return PyObject_RichCompare(read(a).ptr(), read(b).ptr(), op); });
}
int is_true(PyObject* a) {
  return guarded([&] { return PyObject_IsTrue(read(a).ptr()); }, -1);
}
Py_ssize_t length(PyObject* a) {
  return guarded([&] { return PyObject_Size(read(a).ptr()); }, Py_ssize_t{-1});
}
PyObject* subscript(PyObject* a, PyObject* key) {
  return guarded([&] { return PyObject_GetItem(read(a).ptr(), key); });
}
// `v[1:3] = x`
int assign_part(PyObject* a, PyObject* key, PyObject* value) {
  return guarded(
      [&] {
        const Source at = calling_line();
        if (value == nullptr) throw UserTypeError("parts of a Variable cannot be deleted", at);
        const Subscript place(key, at);
        const Value given(value, at);
        const nb::gil_scoped_release unlocked;
        variable_of(a).assign_slice(place.slices(), given.operand());
        return 0;
      },
      -1);
}
Py_hash_t hash(PyObject* a) {
  return static_cast<Py_hash_t>(
      reinterpret_cast<uintptr_t>(detail::VariableState::of(variable_of(a)).get()) >> 4);
}
// What the class does not have is the value's.
PyObject* attribute(PyObject* a, PyObject* name) {
  PyObject* const own = PyObject_GenericGetAttr(a, name);
  if (own != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) return own;
  PyErr_Clear();
  return guarded([&] { return PyObject_GetAttr(read(a).ptr(), name); });
}

// A misspelt attribute is an error, though the class has a place for attributes of ours.
int set_attribute(PyObject* a, PyObject* name, PyObject* value) {
  PyObject* const known = _PyType_Lookup(Py_TYPE(a), name);
  if (Py_TYPE(a) != variable_class || (known != nullptr && Py_TYPE(known)->tp_descr_set != nullptr))
    return PyObject_GenericSetAttr(a, name, value);
  PyErr_Format(PyExc_AttributeError, "'%.100s' object has no attribute '%U'", Py_TYPE(a)->tp_name,
               name);
  return -1;
}

// `v += x` changes the Variable.
using Change = void (*)(const Variable& variable, const Operand& operand);
template <Change change>
PyObject* in_place(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(b) != variable_class && rows_in(b) == nullptr && !is_value(b))
      return Py_NewRef(Py_NotImplemented);
    const Value value(b, calling_line());
    const nb::gil_scoped_release unlocked;
    change(variable_of(a), value.operand());
    return Py_NewRef(a);
  });
}
void add_to(const Variable& variable, const Operand& x) { variable.assign_add(x); }
void subtract_from(const Variable& variable, const Operand& x) { variable.assign_sub(x); }
void multiply_by(const Variable& variable, const Operand& x) {
  variable.assign(multiply(Operand(variable, x.at()), x, x.at()));
}
void divide_by(const Variable& variable, const Operand& x) {
  variable.assign(divide(Operand(variable, x.at()), x, x.at()));
}

template <auto f>
PyType_Slot slot(int number) {
  return {number, reinterpret_cast<void*>(f)};
}
PyType_Slot common_slots[] = {
    slot<binary<PyNumber_Add>>(Py_nb_add),
    slot<binary<PyNumber_Subtract>>(Py_nb_subtract),
    slot<binary<PyNumber_Multiply>>(Py_nb_multiply),
    slot<binary<PyNumber_TrueDivide>>(Py_nb_true_divide),
    slot<binary<PyNumber_FloorDivide>>(Py_nb_floor_divide),
    slot<binary<PyNumber_Remainder>>(Py_nb_remainder),
    slot<binary<PyNumber_MatrixMultiply>>(Py_nb_matrix_multiply),
    slot<binary<PyNumber_And>>(Py_nb_and),
    slot<binary<PyNumber_Or>>(Py_nb_or),
    slot<binary<PyNumber_Xor>>(Py_nb_xor),
    slot<binary<PyNumber_Lshift>>(Py_nb_lshift),
    slot<binary<PyNumber_Rshift>>(Py_nb_rshift),
    slot<power>(Py_nb_power),
    slot<unary<PyNumber_Negative>>(Py_nb_negative),
    slot<unary<PyNumber_Positive>>(Py_nb_positive),
    slot<unary<PyNumber_Absolute>>(Py_nb_absolute),
    slot<unary<PyNumber_Invert>>(Py_nb_invert),
    slot<unary<PyNumber_Float>>(Py_nb_float),
    slot<unary<PyNumber_Long>>(Py_nb_int),
    slot<unary<PyNumber_Index>>(Py_nb_index),
    slot<is_true>(Py_nb_bool),
    slot<compare>(Py_tp_richcompare),
    slot<unary<PyObject_GetIter>>(Py_tp_iter),
    slot<attribute>(Py_tp_getattro),
    slot<length>(Py_mp_length),
    slot<subscript>(Py_mp_subscript),
    {0, nullptr},
};
// Those of all values, and what changes a Variable.
PyType_Slot* variable_slots() {
  static std::vector<PyType_Slot> slots;
  slots = {
      slot<in_place<add_to>>(Py_nb_inplace_add),
      slot<in_place<subtract_from>>(Py_nb_inplace_subtract),
      slot<in_place<multiply_by>>(Py_nb_inplace_multiply),
      slot<in_place<divide_by>>(Py_nb_inplace_true_divide),
      slot<hash>(Py_tp_hash),
      slot<assign_part>(Py_mp_ass_subscript),
      slot<set_attribute>(Py_tp_setattro),
  };
  for (const PyType_Slot& each : common_slots) slots.push_back(each);
  return slots.data();
}

// ---- one object for each Variable ---------------------------------------------------------------

// Weak references by the state. An entry whose object is gone gives way when the table has doubled.
class Wrappers {
 public:
  nb::object find(const Variable& variable) {
    const auto found = table_.find(detail::VariableState::of(variable).get());
    if (found == table_.end()) return {};
    PyObject* const object = PyWeakref_GET_OBJECT(found->second.ptr());
    // The address may belong to another Variable by now.
    if (object == Py_None || !variable_of(object).same_as(variable)) return {};
    return nb::borrow(object);
  }
  void add(const Variable& variable, nb::handle object) {
    table_[detail::VariableState::of(variable).get()] =
        nb::steal(PyWeakref_NewRef(object.ptr(), nullptr));
    if (table_.size() <= 2 * alive_ + 64) return;
    std::erase_if(table_, [](const auto& entry) {
      return PyWeakref_GET_OBJECT(entry.second.ptr()) == Py_None;
    });
    alive_ = table_.size();
  }

 private:
  std::unordered_map<const detail::VariableState*, nb::object> table_;
  size_t alive_ = 0;
};
Wrappers& wrappers() {
  static auto* const all = new Wrappers;  // Never freed: Python's objects may outlive statics.
  return *all;
}

// ---- making -------------------------------------------------------------------------------------

// Runs under the Variable's lock on the thread that first needs the value, which holds no GIL.
Initializer initializer_of(const Held& f, Source at) {
  return [f, at](const Shape& shape, DType dtype) {
    const nb::gil_scoped_acquire gil;
    const UserCode user;
    return tensor_from(f.get()(shape_tuple(shape, at), dtype), at);
  };
}

// The collector sees the initializer as an attribute of the object, and learns what C++ holds of
// it.
void show_initializer(nb::handle self, const Variable& variable, const Held& f) {
  const auto holds = std::make_shared<Holds>();
  holds->add_initializer(f, f.copies() - 1);
  const auto& state = detail::VariableState::of(variable);
  holds->set_variables({{state, state.use_count()}});
  const nb::object both = nb::make_tuple(f.get(), holds_object(holds));
  if (PyObject_GenericSetAttr(self.ptr(), nb::str("_initializer").ptr(), both.ptr()) != 0)
    nb::raise_python_error();
}

void initialise(nb::pointer_and_handle<Variable> object, const nb::object& initial,
                const std::string& name, bool trainable, const std::optional<DType>& dtype,
                const nb::object& shape) {
  Variable* const self = object.p;
  const Source at = calling_line();
  VariableOptions options{.name = name, .trainable = trainable, .dtype = dtype};
  if (!PyCallable_Check(initial.ptr())) {
    if (!shape.is_none())
      throw UserTypeError("Variable: a shape is given beside the initial value", at,
                          "give an initializer, f(shape, dtype), with a shape; or the value alone");
    Tensor value = tensor_from(initial, at);
    const nb::gil_scoped_release unlocked;
    new (self) Variable(std::move(value), std::move(options), at);
    return;
  }
  // Dropped under the Variable's lock, where nothing may wait for the GIL.
  const Held f(initial, Held::Drop::later);
  if (shape.is_none())
    new (self) Variable(Variable::unshaped(initializer_of(f, at), std::move(options), at));
  else
    new (self) Variable(shape_from(shape, at), initializer_of(f, at), std::move(options), at);
  show_initializer(object.h, *self, f);
}

template <void (Variable::*change)(const Operand&) const>
nb::object changed(const nb::object& self, nb::handle given) {
  const Value value(given, calling_line());
  {
    const nb::gil_scoped_release unlocked;
    (variable_of(self.ptr()).*change)(value.operand());
  }
  return self;
}

std::string text_of(const Variable& variable) {
  const nb::gil_scoped_release unlocked;
  return cat(variable);
}

}  // namespace

PyType_Slot* value_slots() { return common_slots; }

nb::object wrap(const Variable& variable) {
  nb::object known = wrappers().find(variable);
  if (known.is_valid()) return known;
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(variable_class)));
  new (nb::inst_ptr<Variable>(made)) Variable(variable);
  nb::inst_mark_ready(made);
  wrappers().add(variable, made);
  return made;
}

const Variable* variable_in(PyObject* object) {
  return PyObject_TypeCheck(object, variable_class) ? &variable_of(object) : nullptr;
}

Tensor value_of(const Variable& variable, Source at) {
  const nb::gil_scoped_release unlocked;
  return variable.value(at);
}

void bind_variable(nb::module_& module) {
  nb::class_<Variable> cls(module, "Variable", nb::type_slots(variable_slots()), nb::dynamic_attr(),
                           nb::is_weak_referenceable(),
                           "State that outlives a step. Reading it gives a snapshot; assigning is "
                           "in place unless a snapshot is alive.");
  variable_class = reinterpret_cast<PyTypeObject*>(cls.ptr());
  cls.def(
      "__init__",
      [](nb::pointer_and_handle<Variable> self, const nb::object& initial, const std::string& name,
         bool trainable, const std::optional<DType>& dtype, const nb::object& shape) {
        initialise(self, initial, name, trainable, dtype, shape);
        wrappers().add(*self.p, self.h);
      },
      nb::arg("initial"), nb::arg("name") = "", nb::kw_only(), nb::arg("trainable") = true,
      nb::arg("dtype") = nb::none(), nb::arg("shape") = nb::none(),
      "The initial value; or an initializer, f(shape, dtype), which runs at the first use.");
  cls.def(
         "value", [](const Variable& v) { return nb::steal(wrap(value_of(v, calling_line()))); },
         "A snapshot that later assignments do not change.")
      .def(
          "read_value",
          [](const Variable& v) { return nb::steal(wrap(value_of(v, calling_line()))); },
          "The same as value().")
      .def("assign", changed<&Variable::assign>, nb::arg("value"),
           "Replaces the value; shape and dtype stay.")
      .def("assign_add", changed<&Variable::assign_add>, nb::arg("x"),
           "Adds x, which broadcasts: one pass, in place.")
      .def("assign_sub", changed<&Variable::assign_sub>, nb::arg("x"),
           "Subtracts x, which broadcasts: one pass, in place.")
      .def(
          "scatter_update",
          [](const nb::object& self, nb::handle indices, nb::handle updates) {
            const Source at = calling_line();
            const Value which(indices, at), rows(updates, at);
            {
              const nb::gil_scoped_release unlocked;
              variable_of(self.ptr()).scatter_update(which.operand(), rows.operand());
            }
            return self;
          },
          nb::arg("indices"), nb::arg("updates"),
          "Replaces the slices of the first axis at these indices.")
      .def(
          "set_shape",
          [](const Variable& v, nb::handle shape) {
            const Source at = calling_line();
            const Shape sizes = shape_from(shape, at);
            const nb::gil_scoped_release unlocked;
            v.set_shape(sizes, at);
          },
          nb::arg("shape"), "The shape of a Variable that was declared without one.")
      .def(
          "clone",
          [](const Variable& v) {
            const Source at = calling_line();
            const nb::gil_scoped_release unlocked;
            return v.clone(at);
          },
          "A new Variable with a copy of the value.")
      .def("same_as", &Variable::same_as, nb::arg("other"),
           "Whether both are one Variable; == is elementwise.")
      .def_prop_ro("has_shape", &Variable::has_shape, "Whether the shape is known.")
      .def_prop_ro(
          "shape",
          [](const Variable& v) { return shape_tuple(v.shape(calling_line()), calling_line()); },
          "The sizes of the axes.")
      .def_prop_ro("dtype", &Variable::dtype, "The type of the elements.")
      .def_prop_ro("name", &Variable::name, "Its name.")
      .def_prop_ro("trainable", &Variable::trainable, "Whether tapes watch it.")
      .def("__copy__", [](const nb::object& self) { return self; })
      .def("__deepcopy__",
           [](const Variable& v, nb::dict memo) {
             Variable copy = v;
             Replacer::of(memo).replace()(detail::VariablePath(), copy);
             return wrap(copy);
           })
      .def("__repr__", text_of);
}

}  // namespace tidemark::python
