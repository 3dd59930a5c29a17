// What the classes of layers are made with.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "convert.h"
#include "nn.h"
#include "source.h"
#include "variable.h"

namespace tidemark::python {

using nb::arg;

template <class Layer>
Tensor call(const Layer& layer, nb::handle x) {
  const Source at = calling_line();
  const Tensor input = tensor_from(x, at);
  const nb::gil_scoped_release released;
  return layer(input, at);
}

template <class Layer>
nb::class_<Layer> layer_class(nb::module_& nn, const char* name, const char* doc) {
  nb::class_<Layer> bound(nn, name, doc, nb::dynamic_attr(), nb::is_weak_referenceable());
  make_part<Layer>(bound);
  bound.def("__call__", call<Layer>, arg("x"));
  if constexpr (requires(const Layer& layer) { layer.name(); })
    bound.def_prop_ro("name", &Layer::name);
  if constexpr (requires(const Layer& layer) { layer.policy(); })
    bound.def_prop_ro("policy", [](const Layer& layer) { return layer.policy(); });
  return bound;
}

// A handle is read and assigned as a whole: what was read stays the Variable that it was.
template <class Layer, class Field>
void field(nb::class_<Layer>& bound, const char* name, Field Layer::* place, const char* doc) {
  const auto get = [place](const Layer& layer) -> nb::object {
    if constexpr (std::is_same_v<Field, Variable>)
      return wrap(layer.*place);
    else
      return layer.*place ? wrap(*(layer.*place)) : nb::none();
  };
  const auto set = [place](Layer& layer, const Field& value) { layer.*place = value; };
  bound.def_prop_rw(name, get, set, nb::for_setter(nb::arg("value").none()), doc);
}

}  // namespace tidemark::python
