// Ctrl-C stops loops, compilation and fit: the library asks Python's signal handlers now and then.
#include <pythread.h>

#include "bindings.h"

namespace tidemark::python {
namespace {

unsigned long main_thread = 0;

// Python runs its handlers on the main thread alone. One that raises stops the work.
void check_signals() {
  if (PyThread_get_thread_ident() != main_thread) return;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

}  // namespace

void bind_interrupt(nb::module_& module) {
  main_thread = nb::cast<unsigned long>(
      nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  set_interrupt_check(check_signals);
  // For tests, which may not depend on time.
  module.def("_poll_signals_always",
             [](bool always) { set_interrupt_check(check_signals, always ? 0 : 50); });
}

}  // namespace tidemark::python
