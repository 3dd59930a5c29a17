// What the files of the extension share: each binds one room of the library in a function of its
// own, and module.cc calls them in order.
#pragma once

#include <nanobind/nanobind.h>

#include "tidemark/tidemark.h"

namespace nb = nanobind;

namespace tidemark::python {

void bind_errors(nb::module_& module);
void bind_holds(nb::module_& module);
void bind_source(nb::module_& module);
void bind_dtype(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_index(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_random(nb::module_& module);
void bind_shape(nb::module_& module);
void bind_variable(nb::module_& module);
void bind_budget(nb::module_& module);
void bind_call(nb::module_& module);
void bind_function(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_control_flow(nb::module_& module);
void bind_gradient(nb::module_& module);
void bind_custom_gradient(nb::module_& module);
void bind_tape_holds(nb::module_& module);
void bind_interrupt(nb::module_& module);
void bind_tree(nb::module_& module);
void bind_autograph(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_output(nb::module_& module);
void bind_runtime(nb::module_& module);
void bind_report(nb::module_& module);
void bind_nn(nb::module_& module);
void bind_measures(nb::module_& module);
void bind_train(nb::module_& module);
void bind_data(nb::module_& module);
void bind_io(nb::module_& module);

}  // namespace tidemark::python
