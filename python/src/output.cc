// Text that the library writes for people goes where Python's own goes: lines of td.print and of
// fit to sys.stdout, so that notebooks and tests see them, and warnings to Python's warnings, at
// the user's line.
//
// The library holds a lock while it calls a sink. The sink of lines takes the GIL, so nothing that
// prints may be called with it. Warnings come from everywhere; so without the GIL they wait until
// the main thread has it.
#include <iostream>
#include <string>

#include "tidemark/base/output.h"

#include "bindings.h"
#include "held.h"
#include "later.h"
#include "words.h"

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

void warn_in_python(std::string_view text, Source at) {
  release_with_gil([text = in_python(text), at] {
    // Without a line of the user's, Python finds the caller's.
    const int failed = at.known() ? PyErr_WarnExplicit(PyExc_UserWarning, text.c_str(), at.file,
                                                       static_cast<int>(at.line), nullptr, nullptr)
                                  : PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1);
    // Where warnings are errors: there is no call here that could raise.
    if (failed != 0) PyErr_WriteUnraisable(nullptr);
  });
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
  on_warning(warn_in_python);
  module.def("_set_bar_sink", set_bar, nb::arg("sink").none());
}

}  // namespace tidemark::python
