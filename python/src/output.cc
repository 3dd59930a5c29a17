// Text that the library writes for people goes where Python's own goes: lines of td.print and of fit
// to sys.stdout, so that notebooks and tests see them.
//
// The library holds a lock while it calls a sink. A sink takes the GIL, so nothing that prints may
// be called with it.
#include <iostream>

#include "tidemark/base/output.h"

#include "bindings.h"
#include "held.h"

namespace tidemark::python {
namespace {

void write_to_python(std::string_view line) {
  if (Py_IsInitialized() == 0) {
    std::cout << line << std::flush;
    return;
  }
  const nb::gil_scoped_acquire gil;
  const nb::handle out = PySys_GetObject("stdout");
  if (!out.is_valid() || out.is_none()) return;
  out.attr("write")(nb::str(line.data(), line.size()));
  out.attr("flush")();
}

void set_bar(nb::handle sink) {
  std::function<void(std::string_view)> next;
  if (!sink.is_none()) {
    next = [held = Held(sink)](std::string_view text) {
      const nb::gil_scoped_acquire gil;
      held.get()(nb::str(text.data(), text.size()));
    };
  }
  const nb::gil_scoped_release released;
  set_bar_sink(std::move(next));
}

}  // namespace

void bind_output(nb::module_& module) {
  set_print_sink(write_to_python);
  module.def("_set_bar_sink", set_bar, nb::arg("sink").none());
}

}  // namespace tidemark::python
