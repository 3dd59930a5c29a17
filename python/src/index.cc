#include "index.h"

#include "convert.h"
#include "errors.h"
#include "exchange.h"
#include "holds.h"
#include "operators.h"
#include "source.h"
#include "tidemark/calls/place.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::python {
namespace {

bool is_traced(PyObject* object) {
  return is_tensor(object) && tensor_in(object).has_value() &&
         detail::TensorState::of(tensor_in(object))->kind == detail::TensorState::Kind::traced;
}

std::optional<int64_t> bound(PyObject* object, Source at) {
  if (object == Py_None) return {};
  if (is_traced(object))
    throw UserError(
        "subscript: a bound of a slice is a tensor of the function that is being traced, so the "
        "size of the result is known only when the function runs",
        at, "for a known number of rows, use indices: x[start + td.arange(count)]");
  return integer_from(object, "slice", at);
}

Slice slice_from(nb::handle object, Source at) {
  const auto* const slice = reinterpret_cast<PySliceObject*>(object.ptr());
  return {bound(slice->start, at), bound(slice->stop, at), bound(slice->step, at).value_or(1)};
}

// An empty list selects nothing; as numbers it would be f32.
Tensor index_tensor(nb::handle object, Source at) {
  if (PyList_Check(object.ptr()) && PyList_GET_SIZE(object.ptr()) == 0) return zeros({0}, i64, at);
  return tensor_from(object, at);
}

}  // namespace

Subscript::Subscript(nb::handle key, Source at) : slices_({}, at) {
  if (!PyTuple_Check(key.ptr())) {
    slices_.list.push_back(read(key, at));
    return;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key.ptr()); ++i)
    slices_.list.push_back(read(PyTuple_GET_ITEM(key.ptr(), i), at));
}

Index Subscript::read(nb::handle part, Source at) {
  PyObject* const o = part.ptr();
  if (PyLong_Check(o) && !PyBool_Check(o)) return integer_from(part, "index", at);
  if (PySlice_Check(o)) return slice_from(part, at);
  if (o == Py_None) return newaxis;
  if (o == Py_Ellipsis) return ellipsis;
  if (nb::isinstance<Dim>(part)) return nb::cast<Dim>(part);
  if (PyBool_Check(o) || PyFloat_Check(o) || !(is_value(part) || PyList_Check(o)))
    throw UserTypeError(
        cat("subscript: ", nb::repr(part).c_str(), " (", Py_TYPE(o)->tp_name, ") is not an index"),
        at, "use integers, slices, None, ..., or arrays of integers or bools");
  return tensors_.emplace_back(index_tensor(part, at));
}

namespace {

PyObject* subscript(PyObject* self, PyObject* key) {
  return guarded([&] {
    const Source at = calling_line();
    const Subscript place(key, at);
    return wrap(tensor_in(self)[place.slices()]);
  });
}

// For iteration and the sequence protocol.
PyObject* item(PyObject* self, Py_ssize_t i) {
  return guarded([&] { return wrap(tensor_in(self)[Slices(int64_t{i}, calling_line())]); });
}

Py_ssize_t length(PyObject* self) {
  return guarded(
      [&]() -> Py_ssize_t {
        const Tensor& x = tensor_in(self);
        const Source at = calling_line();
        if (x.rank() == 0)
          throw UserTypeError(cat("len: ", x.dtype(), "[] has no axes"), at,
                              "x.size is the number of elements");
        return int64_t{x.shape()[{0, at}]};
      },
      -1);
}

PyObject* iterate(PyObject* self) {
  return guarded([&] {
    const Tensor& x = tensor_in(self);
    if (x.rank() == 0)
      throw UserTypeError(cat("iteration: ", x.dtype(), "[] has no axes"), calling_line(),
                          "use the tensor itself, or x.item()");
    return PySeqIter_New(self);
  });
}

int contains(PyObject* self, PyObject* object) {
  return guarded(
      [&] {
        const Source at = calling_line();
        const Value value(object, at);
        return any(equal(tensor_in(self), value.operand(), at), {}, Keep::no, at).item<bool>(at)
                   ? 1
                   : 0;
      },
      -1);
}

int assign(PyObject*, PyObject*, PyObject*) {
  return guarded(
      []() -> int {
        throw UserTypeError(
            "x[...] = value: the elements of a Tensor do not change", calling_line(),
            "write x = x.at[...].set(value); state that changes is a td.Variable, which has "
            "assign_slice");
      },
      -1);
}

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

// x.at, and x.at[1:3]: what `set` and `add` make a changed copy of.
struct At {
  Tensor x;
};
struct Spot {
  Tensor x;
  nb::object key;

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(key.ptr());
    return 0;
  }
};

Tensor set(const Spot& spot, nb::handle value) {
  const Source at = calling_line();
  const Subscript place(spot.key, at);
  const Value read(value, at);
  return update(spot.x, place.slices(), read.operand());
}

template <detail::Change change>
Tensor changed(const Spot& spot, nb::handle value) {
  const Source at = calling_line();
  const Subscript place(spot.key, at);
  const Value read(value, at);
  const nb::gil_scoped_release unlocked;
  return detail::changed_at(spot.x, place.slices(), read.operand(), change);
}

}  // namespace

void add_index_slots(std::vector<PyType_Slot>& slots) {
  const PyType_Slot list[] = {
      {Py_mp_subscript, slot(subscript)},  {Py_mp_length, slot(length)},
      {Py_mp_ass_subscript, slot(assign)}, {Py_sq_item, slot(item)},
      {Py_sq_length, slot(length)},        {Py_sq_contains, slot(contains)},
      {Py_tp_iter, slot(iterate)},
  };
  slots.insert(slots.end(), std::begin(list), std::end(list));
}

void bind_index(nb::module_& module) {
  nb::class_<Spot>(module, "_Spot", nb::type_slots(traversed_slots<Spot>()),
                   "x.at[1:3]: a part of a tensor, to be replaced in a copy.")
      .def("set", set, nb::arg("value"), "The tensor with `value`, broadcast, in this place.")
      .def("add", changed<detail::Change::add>, nb::arg("value"),
           "The tensor with `value` added in this place; an element that is named twice gets both.")
      .def("multiply", changed<detail::Change::multiply>, nb::arg("value"),
           "The tensor with this place multiplied by `value`.")
      .def("min", changed<detail::Change::min>, nb::arg("value"),
           "The tensor with the smaller of `value` and what is there.")
      .def("max", changed<detail::Change::max>, nb::arg("value"),
           "The tensor with the larger of `value` and what is there.")
      .def(
          "get",
          [](const Spot& spot) {
            const Source at = calling_line();
            const Subscript place(spot.key, at);
            return spot.x[place.slices()];
          },
          "What is there: x[1:3].");
  nb::class_<At>(module, "_At", "x.at: subscript it to name a place.")
      .def("__getitem__", [](const At& at, nb::object key) { return Spot{at.x, std::move(key)}; });
  nb::borrow<nb::class_<Tensor>>(reinterpret_cast<PyObject*>(tensor_class))
      .def_prop_ro(
          "at", [](const Tensor& x) { return At{x}; },
          "x.at[1:3].set(value) is a copy with another value in that place.");
  module.def(
      "update",
      [](nb::handle x, nb::object place, nb::handle value) {
        return set({tensor_from(x, calling_line()), std::move(place)}, value);
      },
      nb::arg("x"), nb::arg("place"), nb::arg("value"),
      "x with `value`, broadcast, assigned to the subscript `place`: an int, a slice, indices, a "
      "mask, or a tuple.");
}

}  // namespace tidemark::python
