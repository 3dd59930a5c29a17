// The functions on tensors.
#include "bindings.h"
#include "convert.h"
#include "source.h"

namespace tidemark::python {

void bind_ops(nb::module_& module) {
  module.def("add", [](nb::handle a, nb::handle b) {
    const Source at = calling_line();
    const Value left(a, at), right(b, at);
    return nb::steal(wrap(add(left.operand(), right.operand(), at)));
  });
  module.def("constant", [](nb::handle values) {
    return nb::steal(wrap(tensor_from(values, calling_line())));
  });
}

}  // namespace tidemark::python
