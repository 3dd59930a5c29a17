// Arrays of others: the buffer protocol, DLPack, NumPy and nested lists.
//
// Memory is shared in both directions. A tensor that others see is never written by the library,
// and is read-only for them; what an owner writes into an array that a tensor shares, the tensor
// shows.
#pragma once

#include <functional>
#include <optional>

#include "bindings.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::python {

// Whether an object holds an array: the buffer protocol, DLPack, or `__array__`.
bool has_array(nb::handle object);
// A tensor over the array's memory, or over a copy where it is not laid out in whole elements. A
// UserTypeError if its elements are of a type that is not ours.
Tensor shared_array(nb::handle object, Source at);
// Numbers in nested lists; lists that hold tensors or arrays are stacked. Floats give f32, integers
// i32, bools bool unless a dtype is named.
Tensor from_lists(nb::handle object, std::optional<DType> dtype, Source at);

// A copy of what an object holds: numbers, lists or an array.
Tensor constant_from(nb::handle object, std::optional<DType> dtype, Source at);
// The same without a copy where the object is a tensor or an array of that dtype.
Tensor shared_from(nb::handle object, std::optional<DType> dtype, Source at);

// By `__dlpack__`.
Tensor from_dlpack(nb::handle object, Source at);
// A tensor over strided memory that someone else owns; `release` runs when the last one is gone.
Tensor over_memory(const ArrayRef& array, std::function<void()> release, Source at);

// The slots of the buffer protocol.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

}  // namespace tidemark::python
