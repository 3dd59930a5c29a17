// td.memory: the bytes that tensors hold, by owner and line; scopes; what grows from step to step.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "budget.h"
#include "convert.h"
#include "source.h"

namespace tidemark::python {

namespace {

template <class T>
std::string printed(const T& value) {
  return cat(value);
}

// A MemoryScope that `with` opens and closes. Its numbers stay readable afterwards.
class ScopeInPython {
 public:
  explicit ScopeInPython(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  void enter() { scope_.emplace(name_); }
  void exit() {
    current_ = scope_->current();
    peak_ = scope_->peak();
    scope_.reset();
  }
  Bytes current() const { return scope_ ? scope_->current() : current_; }
  Bytes peak() const { return scope_ ? scope_->peak() : peak_; }

 private:
  std::string name_;
  std::optional<MemoryScope> scope_;
  Bytes current_, peak_;
};

void bind_queries(nb::module_& memory) {
  memory.def("current", memory::current, "Bytes of live tensors, rounded up to 64 each.")
      .def("peak", memory::peak,
           "The largest value of current() since the start or since reset_peak().")
      .def("reset_peak", memory::reset_peak, "Resets peak() to current().")
      .def("cached", memory::cached,
           "Bytes released by tensors and kept for the next ones, in whole pages.")
      .def("borrowed", memory::borrowed,
           "Memory that tensors refer to but do not own: arrays of NumPy, mapped files.")
      .def("of", memory::of, nb::arg("byte_class"),
           "The part of current() that belongs to one class.")
      .def("release", memory::release, nb::call_guard<nb::gil_scoped_release>(),
           "Returns all cached bytes to the system; the result is their number.")
      .def("limit", memory::limit, "The most that tensors and cache may hold together.")
      .def(
          "set_limit",
          [](nb::handle bytes) {
            const Source at = calling_line();
            memory::set_limit(bytes_from(bytes, "set_limit", at), at);
          },
          nb::arg("bytes"),
          "Sets the limit, and returns cached bytes to the system as needed. Live tensors stay.")
      .def("waiting", memory::waiting,
           "The calls that wait for memory (when_full of td.function), now and so far.")
      .def("code", memory::code, "Pages of machine code that kernels hold.")
      .def("live", memory::live,
           "Who holds what, by source line, largest first. Prints as a table.")
      .def("ledger", memory::ledger, nb::call_guard<nb::gil_scoped_release>(),
           "Every resident page of the process, by owner. Prints as a table.");
}

void bind_tables(nb::module_& memory) {
  nb::class_<memory::LiveRow>(memory, "LiveRow",
                              "The tensors that one line has made and that are alive.")
      .def_ro("line", &memory::LiveRow::line)
      .def_ro("bytes", &memory::LiveRow::bytes)
      .def_ro("count", &memory::LiveRow::count)
      .def_ro("viewed", &memory::LiveRow::viewed)
      .def_ro("pinned", &memory::LiveRow::pinned);
  nb::class_<memory::Live>(memory, "Live", "The tensors that are alive, line by line.")
      .def_ro("rows", &memory::Live::rows)
      .def_ro("total", &memory::Live::total)
      .def("__str__", printed<memory::Live>)
      .def("__repr__", printed<memory::Live>);
  nb::class_<memory::Waiting>(memory, "Waiting", "Calls that wait for memory.")
      .def_ro("calls", &memory::Waiting::calls, "Calls that wait now.")
      .def_ro("bytes", &memory::Waiting::bytes, "The bytes that they ask for, all together.")
      .def_ro("longest_ms", &memory::Waiting::longest_ms, "How long the first has waited.")
      .def_ro("served", &memory::Waiting::served, "Calls that found room after a wait, so far.")
      .def_ro("refused", &memory::Waiting::refused, "Calls whose time was up, so far.")
      .def("__str__", printed<memory::Waiting>)
      .def("__repr__", printed<memory::Waiting>);
  nb::class_<memory::LedgerRow>(memory, "LedgerRow", "What one part of the library holds.")
      .def_ro("name", &memory::LedgerRow::name)
      .def_prop_ro("bytes", [](const memory::LedgerRow& row) { return Bytes(row.bytes); });
  nb::class_<memory::Ledger>(memory, "Ledger", "Everything that the library holds, part by part.")
      .def_ro("rows", &memory::Ledger::rows)
      .def_ro("held", &memory::Ledger::held)
      .def_ro("resident", &memory::Ledger::resident)
      .def(
          "of",
          [](const memory::Ledger& ledger, const std::string& name) {
            return Bytes(ledger.of(name));
          },
          nb::arg("name"), "The bytes of a row.")
      .def("__str__", printed<memory::Ledger>)
      .def("__repr__", printed<memory::Ledger>);
}

void bind_scopes(nb::module_& module, nb::module_& memory) {
  nb::class_<ScopeInPython>(
      module, "MemoryScope",
      "Counts the bytes allocated inside `with td.MemoryScope(\"epoch\") as scope:`, "
      "on its thread and on the workers that serve it.")
      .def(nb::init<std::string>(), nb::arg("name"))
      .def_prop_ro("name", &ScopeInPython::name)
      .def_prop_ro("current", &ScopeInPython::current,
                   "The bytes allocated in the scope that are alive.")
      .def_prop_ro("peak", &ScopeInPython::peak, "Their peak.")
      .def("__enter__",
           [](nb::handle self) {
             nb::cast<ScopeInPython&>(self).enter();
             return nb::borrow(self);
           })
      .def("__exit__", [](ScopeInPython& scope, nb::args) { scope.exit(); });
  nb::class_<memory::DeclaredCap>(
      memory, "DeclaredCap",
      "Declares the final size of a buffer that fills up and then stays full.")
      .def(nb::init<std::string, int64_t>(), nb::arg("name"), nb::arg("cap"))
      .def(
          "add", [](memory::DeclaredCap& cap, const Tensor& x) { cap.add(x, calling_line()); },
          nb::arg("tensor"), "Records that a tensor was added to the buffer.")
      .def(
          "remove",
          [](memory::DeclaredCap& cap, const Tensor& x) { cap.remove(x, calling_line()); },
          nb::arg("tensor"), "Records that a tensor was removed from the buffer.");
}

void bind_reports(nb::module_& module) {
  nb::enum_<Growth>(module, "Growth", "What a watched loop does with memory.")
      .value("flat", Growth::flat)
      .value("filling", Growth::filling)
      .value("growing", Growth::growing)
      .value("cannot_tell", Growth::cannot_tell);
  nb::class_<GrowthRow>(module, "GrowthRow", "Something that grew in a watched loop.")
      .def_ro("kind", &GrowthRow::kind)
      .def_ro("growth", &GrowthRow::growth)
      .def_ro("filled", &GrowthRow::filled)
      .def_ro("line", &GrowthRow::line)
      .def_ro("what", &GrowthRow::what)
      .def_ro("count", &GrowthRow::count)
      .def_ro("bytes", &GrowthRow::bytes)
      .def_ro("count_per_step", &GrowthRow::count_per_step)
      .def_ro("bytes_per_step", &GrowthRow::bytes_per_step)
      .def_ro("holders", &GrowthRow::holders);
  nb::class_<TraceRow>(module, "TraceRow", "A function that was traced again in a watched loop.")
      .def_ro("name", &TraceRow::name)
      .def_ro("line", &TraceRow::line)
      .def_ro("traced", &TraceRow::traced)
      .def_ro("reason", &TraceRow::reason)
      .def_ro("captured", &TraceRow::captured)
      .def_ro("captured_bytes", &TraceRow::captured_bytes);
  nb::class_<WatchPoint>(module, "WatchPoint", "The bytes in use after a step of a watched loop.")
      .def_ro("step", &WatchPoint::step)
      .def_ro("in_use", &WatchPoint::in_use);
  nb::class_<WatchReport>(module, "WatchReport",
                          "What a watched loop held from step to step, and what grew.")
      .def_ro("steps", &WatchReport::steps)
      .def_ro("history", &WatchReport::history)
      .def_ro("rows", &WatchReport::rows)
      .def_ro("traces", &WatchReport::traces)
      .def_ro("flat_lines", &WatchReport::flat_lines)
      .def_ro("flat_bytes", &WatchReport::flat_bytes)
      .def_prop_ro("verdict", &WatchReport::verdict, "Growing if any of Tidemark's memory is.")
      .def("__str__", printed<WatchReport>)
      .def("__repr__", printed<WatchReport>);
}

void bind_watching(nb::module_& module, nb::module_& memory) {
  bind_reports(module);
  nb::class_<StepMonitor>(
      module, "StepMonitor",
      "Finds memory that grows from step to step of a loop, and the line that allocates it.")
      .def(nb::init<>())
      .def("step", &StepMonitor::step, "A step of the loop has ended.")
      .def("report", &StepMonitor::report, "What has grown so far.");
  memory.def(
      "watch",
      [](int64_t steps, const nb::callable& body) { return memory::watch(steps, [&] { body(); }); },
      nb::arg("steps"), nb::arg("body"), "Runs the body this many times and reports growth.");
}

}  // namespace

void bind_memory(nb::module_& module) {
  nb::module_ memory =
      module.def_submodule("memory", "The bytes that tensors hold, by owner and source line.");
  bind_tables(memory);
  bind_queries(memory);
  bind_scopes(module, memory);
  bind_watching(module, memory);
}

}  // namespace tidemark::python
