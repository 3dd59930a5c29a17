// Shapes as Python's tuples. While a function is traced, an open size is a td.Dim.
#pragma once

#include <optional>

#include "bindings.h"

namespace tidemark::python {

// An int, or a td.Dim while the size is open.
nb::object size_object(Dim size);
// The line is named where one of its open sizes is read as a number.
nb::tuple shape_tuple(const Shape& shape, Source at = Source::none());

// The size that an object is: an int, a Dim, or None, which is td.open. Nothing if it is no size.
std::optional<Dim> size_from(nb::handle object);
// A size, or a sequence of them; a UserError names what is not a size.
Shape shape_from(nb::handle object, Source at);

}  // namespace tidemark::python
