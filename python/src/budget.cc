#include "budget.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <nanobind/eval.h>
#include <nanobind/stl/string.h>
#include "errors.h"
#include "source.h"

namespace tidemark::python {

namespace {
double seconds_of(const WaitFor& wait) { return static_cast<double>(wait.nanoseconds) / 1e9; }
}  // namespace

std::optional<WaitFor> wait_from(nb::handle object, Source at) {
  if (object.is_none()) return {};
  if (nb::isinstance<WaitFor>(object)) return nb::cast<WaitFor>(object);
  throw UserTypeError(
      cat("when_full: td.wait_for(seconds) is wanted, got ", Py_TYPE(object.ptr())->tp_name), at,
      "write when_full=td.wait_for(0.1)");
}
namespace {

PyObject* bytes_class = nullptr;

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr Unit kUnits[] = {{"", 1},
                           {"B", 1},
                           {"KiB", 1024.0},
                           {"MiB", 1024.0 * 1024},
                           {"GiB", 1024.0 * 1024 * 1024},
                           {"TiB", 1024.0 * 1024 * 1024 * 1024},
                           {"kB", 1e3},
                           {"KB", 1e3},
                           {"MB", 1e6},
                           {"GB", 1e9},
                           {"TB", 1e12}};

[[noreturn]] void no_bytes(nb::handle object, const char* what, Source at) {
  throw UserTypeError(
      cat(what, ": ", nb::cast<std::string>(nb::repr(object)), " is not a number of bytes"), at,
      "write 64 * td.MiB or \"64 MiB\"");
}

std::optional<Bytes> parsed(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !(number >= 0) || number > 1e18) return {};
  std::string_view unit(end);
  while (!unit.empty() && std::isspace(static_cast<unsigned char>(unit.front())))
    unit.remove_prefix(1);
  while (!unit.empty() && std::isspace(static_cast<unsigned char>(unit.back())))
    unit.remove_suffix(1);
  for (const Unit& each : kUnits)
    if (unit == each.name) return Bytes(static_cast<int64_t>(std::llround(number * each.bytes)));
  return {};
}

}  // namespace

nb::object bytes_object(Bytes bytes) { return nb::handle(bytes_class)(nb::int_(bytes.count)); }

Bytes bytes_from(nb::handle object, const char* what, Source at) {
  if (PyUnicode_Check(object.ptr())) {
    const std::optional<Bytes> bytes = parsed(nb::cast<std::string>(object));
    if (!bytes) no_bytes(object, what, at);
    return *bytes;
  }
  if (!PyIndex_Check(object.ptr()) || PyBool_Check(object.ptr())) no_bytes(object, what, at);
  const int64_t count = PyNumber_AsSsize_t(object.ptr(), PyExc_OverflowError);
  if (count == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  if (count < 0) no_bytes(object, what, at);
  return count;
}

std::optional<Budget> budget_from(nb::handle object, Source at) {
  if (object.is_none()) return {};
  if (nb::isinstance<Budget>(object)) return nb::cast<Budget>(object);
  return Budget(bytes_from(object, "budget", at));
}

void bind_budget(nb::module_& module) {
  // In Python, so that it is a subclass of int.
  nb::dict names;
  names["text"] = nb::cpp_function([](int64_t count) { return cat(Bytes(count)); });
  nb::exec(R"py(
class Bytes(int):
    """A number of bytes: an int that prints as 64.0 MiB."""
    __slots__ = ()
    def __str__(self, _text=text):
        return _text(int(self))
    def __repr__(self):
        return "Bytes(%d)" % self
    def __add__(self, other):
        return Bytes(int(self) + other) if isinstance(other, int) else NotImplemented
    __radd__ = __add__
    def __sub__(self, other):
        return Bytes(int(self) - other) if isinstance(other, int) else NotImplemented
    def __mul__(self, other):
        return Bytes(int(self) * other) if isinstance(other, int) else NotImplemented
    __rmul__ = __mul__
Bytes.__module__ = "tidemark"
)py",
           names);
  bytes_class = names["Bytes"].ptr();
  module.attr("Bytes") = names["Bytes"];
  module.attr("KiB") = bytes_object(Bytes(int64_t{1} << 10));
  module.attr("MiB") = bytes_object(Bytes(int64_t{1} << 20));
  module.attr("GiB") = bytes_object(Bytes(int64_t{1} << 30));

  nb::class_<Budget> budget(module, "Budget",
                            "The most bytes that a call may add: a number, or Budget.available, "
                            "which is what the memory limit leaves.");
  budget
      .def(
          "__init__",
          [](Budget* self, nb::handle bytes) {
            new (self) Budget(bytes_from(bytes, "budget", calling_line()));
          },
          nb::arg("bytes"))
      .def_prop_ro("bytes", &Budget::bytes, "The bytes that it is now.")
      .def_prop_ro("is_available", &Budget::is_available)
      .def("__repr__", [](const Budget& b) {
        return b.is_available() ? std::string("td.Budget.available")
                                : cat("td.Budget(", b.bytes().count, ")");
      });
  budget.attr("available") = nb::cast(Budget::available);

  nb::class_<WaitFor>(module, "WaitFor", "How long a call may wait for memory: td.wait_for(0.1).")
      .def_prop_ro("seconds", [](const WaitFor& wait) { return seconds_of(wait); })
      .def("__repr__",
           [](const WaitFor& wait) { return cat("td.wait_for(", seconds_of(wait), ")"); });
  module.def(
      "wait_for",
      [](double seconds) { return tidemark::detail::wait_for_seconds(seconds, calling_line()); },
      nb::arg("seconds"),
      "For when_full of td.function: a call for which the memory limit leaves no room waits this "
      "long, in the order in which calls came.");
}

}  // namespace tidemark::python
