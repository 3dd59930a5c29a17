// What python/tidemark/autograph needs of the trace: branches and loops on lists of tensors.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "callback.h"
#include "convert.h"
#include "shape.h"
#include "source.h"
#include "tidemark/trace/control_flow_core.h"
#include "tidemark/trace/trace.h"

namespace tidemark::python {
namespace {

using detail::Tensors;

// A plain number stays one: it takes the dtype that the other branch, or the body, gives it.
Tensor leaf_from(nb::handle object, Source at) {
  if (object.is_none()) return {};  // Nothing is known of it yet.
  if (PyBool_Check(object.ptr())) return Tensor(object.is(nb::handle(Py_True)), at);
  if (PyLong_CheckExact(object.ptr())) return Tensor(nb::cast<int64_t>(object), at);
  if (PyFloat_CheckExact(object.ptr())) return Tensor(nb::cast<double>(object), at);
  return tensor_from(object, at);
}

Tensors tensors_from(nb::handle list, Source at) {
  Tensors tensors;
  for (const nb::handle item : list) tensors.push_back(leaf_from(item, at));
  return tensors;
}

nb::list list_from(Tensors tensors) {
  nb::list list;
  for (Tensor& tensor : tensors) {
    if (tensor.has_value())
      list.append(nb::steal(wrap(std::move(tensor))));
    else
      list.append(nb::none());
  }
  return list;
}

// Calls back into the user's function, whose own lines count again.
template <class... Arguments>
nb::object call(const nb::object& f, Arguments&&... arguments) {
  const UserCode user;
  return f(std::forward<Arguments>(arguments)...);
}

// `results` gives the tensors of the first branch, those of the second, and their names.
nb::list branch(const nb::object& chosen, const nb::object& if_true, const nb::object& if_false,
                const nb::object& results) {
  const Source at = calling_line();
  const SourceScope scope(at);
  std::vector<std::string> names;
  const detail::BranchParts parts{.name = "if",
                                  .if_true = [&] { call(if_true); },
                                  .if_false = [&] { call(if_false); },
                                  .results =
                                      [&] {
                                        const nb::object given = call(results);
                                        names = nb::cast<std::vector<std::string>>(given[2]);
                                        return std::pair(tensors_from(given[0], at),
                                                         tensors_from(given[1], at));
                                      },
                                  .path = [&](size_t i) { return names.at(i); }};
  const Tensor test = detail::condition_of(Operand(tensor_from(chosen, at), at), "if", at);
  return list_from(detail::trace_branch(test, parts, at));
}

// An open size stays one, so that the plan knows the number of trips.
Tensor size_tensor(nb::handle object, Source at) {
  if (!nb::isinstance<Dim>(object)) return leaf_from(object, at);
  return detail::tensor_of(Operand(nb::cast<Dim>(object), at), at);
}

// `body(number, carries, slices)` gives the next carries, then the elements to stack; `condition`
// takes the carries. Either `trips` or `upper` may be None.
nb::list loop(const std::string& name, const nb::list& carries,
              const std::vector<std::string>& names, const nb::object& body,
              const nb::object& condition, const nb::object& trips, const nb::object& upper,
              const nb::list& walked) {
  const Source at = calling_line();
  detail::LoopParts parts{.name = name};
  parts.shape_remedy =
      "give it the same shape in every trip; collect what grows in a list, with append";
  parts.carries = tensors_from(carries, at);
  parts.carry_path = [&](size_t i) { return names.at(i); };
  parts.element_path = [](size_t i) { return cat("element ", i); };
  parts.walked = tensors_from(walked, at);
  if (!trips.is_none()) parts.trips = size_from(trips).value();
  if (!upper.is_none()) {
    parts.lower = Tensor(0, at);
    parts.upper = size_tensor(upper, at);
  }
  parts.body = [&](const Tensor& number, Tensors carried, Tensors slices) {
    const nb::object trip =
        number.has_value() ? nb::steal(wrap(Tensor(number))) : nb::object(nb::none());
    return tensors_from(
        call(body, trip, list_from(std::move(carried)), list_from(std::move(slices))), at);
  };
  if (!condition.is_none())
    parts.condition = [&](const Tensors& carried) {
      const Tensor goes_on = leaf_from(call(condition, list_from(carried)), at);
      return detail::condition_of(Operand(goes_on, at), name, at);
    };
  return list_from(detail::run_loop(std::move(parts), at));
}

// The nodes of the part of the program that is being traced.
const std::vector<int32_t>& nodes_here() {
  const detail::TraceScope& scope = *detail::current_scope();
  return scope.trace->graph().regions[static_cast<size_t>(scope.region)].nodes;
}

// Ops, including those inside branches and loops.
size_t count_ops(std::span<const int32_t> nodes) {
  const Graph& graph = detail::current_scope()->trace->graph();
  size_t count = nodes.size();
  for (const int32_t node : nodes)
    for (const RegionId region : graph.nodes[static_cast<size_t>(node)].regions)
      count += count_ops(graph.regions[static_cast<size_t>(region)].nodes);
  return count;
}

}  // namespace

void bind_autograph(nb::module_& module) {
  module.def("_function_to_call", function_to_call, nb::arg("f"),
             "What library code written in Python calls for a user's function.");
  module.def("_ag_tracing", [] { return detail::is_tracing(); });
  module.def("_ag_op_count", [] { return nodes_here().size(); });
  module.def("_ag_ops_since", [](size_t first) {
    const std::vector<int32_t>& nodes = nodes_here();
    return count_ops(std::span(nodes).subspan(std::min(first, nodes.size())));
  });
  module.def("_ag_refuse", [](const std::string& problem, const std::string& remedy) {
    throw UserError(problem, calling_line(), remedy);
  });
  module.def("_ag_refuse_at", [](const std::string& problem, const char* file, unsigned line,
                                 const char* function, const std::string& remedy) {
    throw UserError(problem, line_at(file, line, function), remedy);
  });
  module.def("_ag_cond", branch);
  module.def("_ag_loop", loop, nb::arg("name"), nb::arg("carries"), nb::arg("names"),
             nb::arg("body"), nb::arg("condition").none(), nb::arg("trips").none(),
             nb::arg("upper").none(), nb::arg("walked"));
}

}  // namespace tidemark::python
