// What concerns the process or a thread as a whole: names of parts of a program, and threads.
#include <nanobind/stl/string.h>

#include <memory>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "source.h"

namespace tidemark::python {
namespace {

// A NameScope that `with` opens and closes; it may be entered again inside itself.
class NameScopeInPython {
 public:
  explicit NameScopeInPython(std::string name) : name_(std::move(name)) {}
  NameScopeInPython(const NameScopeInPython&) = delete;
  NameScopeInPython& operator=(const NameScopeInPython&) = delete;

  void enter() { scopes_.push_back(std::make_unique<NameScope>(name_, calling_line())); }
  void exit() { scopes_.pop_back(); }

 private:
  std::string name_;
  std::vector<std::unique_ptr<NameScope>> scopes_;
};

}  // namespace

void bind_runtime(nb::module_& module) {
  nb::class_<NameScopeInPython>(module, "NameScope",
                                "Names a part of a program, `with td.NameScope(\"encoder\"):`, so "
                                "that plans, reports and errors say which layer bytes belong to.")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("__enter__",
           [](nb::handle self) {
             nb::cast<NameScopeInPython&>(self).enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](NameScopeInPython& scope, const nb::args&) { scope.exit(); });
  module
      .def("num_threads", tidemark::num_threads,
           "The number of threads that compute, this one included.")
      .def(
          "set_num_threads",
          [](int count) {
            const nb::gil_scoped_release released;
            tidemark::set_num_threads(count);
          },
          nb::arg("count"), "Results do not depend on it.");
}

}  // namespace tidemark::python
