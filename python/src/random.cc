// td.random: keys and the state of the global generator. Its draws are functions on tensors, which
// the catalogue lists.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "bindings.h"
#include "convert.h"
#include "source.h"

namespace tidemark::python {

void bind_random(nb::module_& module) {
  nb::module_ random = module.def_submodule("random", "Random tensors, keys and the generator.");
  nb::class_<random::Key>(random, "Key", "A draw depends only on its key.")
      .def(nb::init<uint64_t>(), nb::arg("seed"))
      .def("split", &random::Key::split, nb::arg("count") = 2,
           "Independent keys, made from this one.")
      .def(
          "fold_in",
          [](const random::Key& key, nb::handle data) {
            const Value value(data, calling_line());
            return key.fold_in(value.operand());
          },
          nb::arg("data"),
          "A key made from this one and a number, which a trace may know only at "
          "run time.")
      .def_prop_ro("value", &random::Key::value, "Its bits.")
      .def(
          "__eq__",
          [](const random::Key& a, const random::Key& b) { return a.value() == b.value(); },
          nb::is_operator())
      .def("__hash__", [](const random::Key& key) { return key.value(); })
      .def("__repr__",
           [](const random::Key& key) { return cat("td.random.Key(", key.value(), ")"); });
  random.def(
      "seed",
      [](uint64_t seed) {
        const nb::gil_scoped_release unlocked;
        random::seed(seed);
      },
      nb::arg("seed"), "Seeds the global generator.");
  random.def(
      "state",
      [] {
        const Source at = calling_line();
        Tensor state;
        {
          const nb::gil_scoped_release unlocked;
          state = random::state(at);
        }
        return nb::steal(wrap(std::move(state)));
      },
      "The state of the global generator; set_state repeats the draws that followed.");
  random.def(
      "set_state",
      [](nb::handle state) {
        const Source at = calling_line();
        const Tensor given = tensor_from(state, at);
        const nb::gil_scoped_release unlocked;
        random::set_state(given, at);
      },
      nb::arg("state"), "Restores the state of the global generator.");
}

}  // namespace tidemark::python
