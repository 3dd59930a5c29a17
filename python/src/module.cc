// tidemark._core: the library as Python sees it. The package tidemark re-exports it.
#include "bindings.h"

NB_MODULE(_core, module) {
  using namespace tidemark::python;
  // Classes outlive the module where a user's object holds one at exit; that is no leak of ours.
  nb::set_leak_warnings(false);
  bind_errors(module);  // First: the others throw.
  bind_holds(module);
  bind_source(module);
  bind_dtype(module);
  bind_tensor(module);
  bind_index(module);
  bind_dlpack(module);
  bind_ops(module);
  bind_shape(module);
  bind_variable(module);
  bind_random(module);
  bind_tree(module);
  bind_autograph(module);
  bind_budget(module);
  bind_plan(module);
  bind_call(module);
  bind_function(module);
  bind_control_flow(module);
  bind_tape_holds(module);
  bind_gradient(module);
  bind_custom_gradient(module);
  bind_interrupt(module);
  bind_memory(module);
  bind_output(module);
  bind_runtime(module);
  bind_report(module);
  bind_nn(module);
  bind_measures(module);
  bind_train(module);
  bind_data(module);
  bind_io(module);
}
