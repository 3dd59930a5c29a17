// Control flow on tensors. Eager code runs the users' functions directly; in a trace they become
// parts of the program. The GIL is released around the library's part and taken for theirs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include "bindings.h"
#include "budget.h"
#include "callback.h"
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "shape.h"
#include "source.h"
#include "tensor_tree.h"

namespace tidemark::python {
namespace {

detail::PathOf paths_of(const SharedTree& tree, const char* root) {
  return [&tree, root](size_t number) {
    const nb::gil_scoped_acquire gil;
    return tree->paths(root).at(number);
  };
}

// ---- branches -----------------------------------------------------------------------------------

// The results of branches, which have one structure.
class BranchResult {
 public:
  BranchResult(const char* name, Source at) : name_(name), at_(at) {}
  Tensors take(const nb::object& result) {
    TensorTree given = lifted(result, at_);
    if (tree_ == nullptr) tree_ = given.tree;
    if (!given.tree->is_like(*tree_))
      detail::structure_differs(cat(name_, ": the branches give different structures"),
                                tree_->key("result"), given.tree->key("result"), at_);
    return std::move(given.tensors);
  }
  const SharedTree& tree() const { return tree_; }

 private:
  const char* name_;
  Source at_;
  SharedTree tree_;
};

using Branch = std::function<nb::object()>;

nb::object choose(const char* name, const Tensor& chosen, const Branch& if_true,
                  const Branch& if_false, Source at) {
  BranchResult results(name, at);
  const SourceScope scope(at);
  if (!detail::is_tracing()) {
    Tensors tensors = results.take(chosen.item<bool>(at) ? if_true() : if_false());
    for (Tensor& tensor : tensors) tensor = detail::not_a_view(tensor, at);
    return filled(*results.tree(), tensors);
  }
  const auto trace = [&results](const Branch& branch) {
    return [&results, &branch] {
      const nb::gil_scoped_acquire gil;
      return results.take(branch());
    };
  };
  Tensors tensors;
  {
    const nb::gil_scoped_release unlocked;
    tensors = detail::trace_cond(chosen, trace(if_true), trace(if_false),
                                 paths_of(results.tree(), "result"), at);
  }
  return filled(*results.tree(), tensors);
}

Branch branch_of(nb::handle f, const nb::args& operands, const char* name, Source at) {
  if (!PyCallable_Check(f.ptr()))
    throw UserTypeError(cat(name, ": a branch is a function, got ", Py_TYPE(f.ptr())->tp_name), at,
                        "write lambda: value");
  return [f, &operands] {
    std::vector<nb::object> arguments;
    for (const nb::handle each : operands) arguments.push_back(nb::borrow(each));
    return call_user(f, arguments);
  };
}

nb::object cond(nb::handle condition, nb::handle if_true, nb::handle if_false,
                const nb::args& operands) {
  const Source at = calling_line();
  const Value given(condition, at);
  return choose("cond", detail::condition_of(given.operand(), "cond", at),
                branch_of(if_true, operands, "cond", at), branch_of(if_false, operands, "cond", at),
                at);
}

// Branch number `number` if the index is equal to it, else one of the later ones.
nb::object choose_case(const Tensor& index, const std::vector<Branch>& branches, size_t number,
                       Source at) {
  if (number + 1 == branches.size()) return branches[number]();
  return choose(
      "switch_case", equal(index, static_cast<int64_t>(number), at), branches[number],
      [&] { return choose_case(index, branches, number + 1, at); }, at);
}

nb::object switch_case(nb::handle index, const nb::args& given) {
  const Source at = calling_line();
  const Value number(index, at);
  const nb::args none = nb::borrow<nb::args>(nb::tuple());
  std::vector<nb::object> listed;
  for (const nb::handle each : given) {
    if (PyList_Check(each.ptr()) || PyTuple_Check(each.ptr()))
      for (const nb::handle one : each) listed.push_back(nb::borrow(one));
    else
      listed.push_back(nb::borrow(each));
  }
  std::vector<Branch> branches;
  for (const nb::object& each : listed)
    branches.push_back(branch_of(each, none, "switch_case", at));
  if (branches.empty())
    throw UserTypeError("switch_case: there is no branch", at,
                        "write td.switch_case(index, lambda: a, lambda: b)");
  return choose_case(detail::index_of(number.operand(), "switch_case", at), branches, 0, at);
}

// The function of the first pair whose condition is true, else the last function.
nb::object choose_pair(const std::vector<Tensor>& conditions, const std::vector<Branch>& branches,
                       size_t number, Source at) {
  if (number == conditions.size()) return branches[number]();
  return choose(
      "case", conditions[number], branches[number],
      [&] { return choose_pair(conditions, branches, number + 1, at); }, at);
}

nb::object case_of(nb::handle pairs, nb::handle otherwise) {
  const Source at = calling_line();
  const nb::args none = nb::borrow<nb::args>(nb::tuple());
  std::vector<Tensor> conditions;
  std::vector<Branch> branches;
  for (const nb::handle pair : pairs) {
    if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2)
      throw UserTypeError(
          cat("case: a pair of a condition and a function is wanted, got ", nb::repr(pair).c_str()),
          at, "write td.case([(x > 0, lambda: a), (x < 0, lambda: b)], default=lambda: c)");
    const Value condition(PyTuple_GET_ITEM(pair.ptr(), 0), at);
    conditions.push_back(detail::condition_of(condition.operand(), "case", at));
    branches.push_back(branch_of(PyTuple_GET_ITEM(pair.ptr(), 1), none, "case", at));
  }
  branches.push_back(branch_of(otherwise, none, "case", at));
  return choose_pair(conditions, branches, 0, at);
}

// ---- loops --------------------------------------------------------------------------------------

// What a loop carries: its structure, and the functions that take it.
class Carry {
 public:
  Carry(std::string_view name, nb::handle init, Source at)
      : name_(name), at_(at), given_(lifted(init, at)) {}

  Tensors& tensors() { return given_.tensors; }
  const SharedTree& tree() const { return given_.tree; }
  nb::object object(Tensors tensors) const { return filled(*given_.tree, tensors); }

  // The tensors of what the body returned.
  Tensors next(const nb::object& result) const {
    TensorTree next = lifted(as_carried(result), at_);
    if (!next.tree->is_like(*given_.tree))
      detail::structure_differs(cat(name_, ": the body changes the structure of what it carries"),
                                given_.tree->key("carry"), next.tree->key("carry"), at_);
    return std::move(next.tensors);
  }

 private:
  // The parts of a tuple or list are the body's arguments, so it may return them as either; a
  // single one also alone.
  nb::object as_carried(const nb::object& result) const {
    using Kind = TreeNode::Kind;
    const TreeNode& root = given_.tree->nodes[0];
    if (root.kind != Kind::tuple && root.kind != Kind::list) return result;
    const bool is_sequence = PyTuple_CheckExact(result.ptr()) || PyList_CheckExact(result.ptr());
    nb::object parts = result;
    if (!is_sequence && root.arity == 1) parts = nb::make_tuple(result);
    if (!is_sequence && root.arity != 1) return result;
    return nb::steal(root.kind == Kind::tuple ? PySequence_Tuple(parts.ptr())
                                              : PySequence_List(parts.ptr()));
  }

  std::string_view name_;
  Source at_;
  TensorTree given_;
};

nb::object run(detail::LoopParts parts, const Carry& carry, Source at) {
  Tensors results;
  {
    const nb::gil_scoped_release unlocked;
    results = detail::run_loop(std::move(parts), at);
  }
  return carry.object(std::move(results));
}

Save save_or_default(const std::optional<Save>& save) { return save.value_or(Save::automatic()); }

nb::object while_loop(nb::handle condition, nb::handle body, nb::handle loop_vars,
                      std::optional<int64_t> max_iterations, nb::handle shape_invariants,
                      const std::optional<Save>& save) {
  const Source at = calling_line();
  Carry carry("while_loop", loop_vars, at);
  detail::LoopParts parts{.name = "while_loop"};
  parts.carries = std::move(carry.tensors());
  parts.carry_path = paths_of(carry.tree(), "carry");
  if (!shape_invariants.is_none())
    for (const nb::handle each : shape_invariants) parts.invariants.push_back(shape_from(each, at));
  parts.condition = [&](const Tensors& carries) {
    const nb::gil_scoped_acquire gil;
    const nb::object answer = call_unpacked(condition, carry.object(carries));
    const Value value(answer, at);
    return detail::condition_of(value.operand(), "while_loop", at);
  };
  parts.body = [&](const Tensor&, Tensors carries, const Tensors&) {
    const nb::gil_scoped_acquire gil;
    return carry.next(call_unpacked(body, carry.object(std::move(carries))));
  };
  detail::set_save(parts, save_or_default(save), at);
  if (max_iterations) {
    detail::check_count("while_loop", "max_iterations", *max_iterations, 0, at);
    parts.trips = *max_iterations;
  }
  return run(std::move(parts), carry, at);
}

nb::object fori_loop(nb::handle lower, nb::handle upper, nb::handle body, nb::handle init,
                     const std::optional<Save>& save) {
  const Source at = calling_line();
  Carry carry("fori_loop", init, at);
  const Value first(lower, at), last(upper, at);
  detail::LoopParts parts{.name = "fori_loop"};
  parts.carries = std::move(carry.tensors());
  parts.carry_path = paths_of(carry.tree(), "carry");
  parts.lower = detail::index_of(first.operand(), "fori_loop", at);
  parts.upper = detail::index_of(last.operand(), "fori_loop", at);
  detail::set_save(parts, save_or_default(save), at);
  parts.body = [&](const Tensor& number, Tensors carries, const Tensors&) {
    const nb::gil_scoped_acquire gil;
    return carry.next(
        call_unpacked(body, carry.object(std::move(carries)), {nb::steal(wrap(Tensor(number)))}));
  };
  return run(std::move(parts), carry, at);
}

// ---- stacks of results --------------------------------------------------------------------------

// The structure of the elements that a body returns, which is the same in every trip.
class Elements {
 public:
  Elements(std::string_view name, Source at) : name_(name), at_(at) {}
  void take(const nb::object& element, Tensors& to) {
    TensorTree given = lifted(element, at_);
    if (tree_ != nullptr && !given.tree->is_like(*tree_))
      detail::structure_differs(cat(name_, ": the body gives different structures"),
                                tree_->key("result"), given.tree->key("result"), at_);
    tree_ = given.tree;
    for (Tensor& tensor : given.tensors) to.push_back(std::move(tensor));
  }
  const SharedTree& tree() const { return tree_; }

 private:
  std::string_view name_;
  Source at_;
  SharedTree tree_;
};

nb::object scan(nb::handle body, nb::handle init, nb::handle xs, bool reverse,
                const std::optional<Save>& save) {
  const Source at = calling_line();
  Carry carry("scan", init, at);
  TensorTree arrays = lifted(xs, at);
  Elements elements("scan", at);
  detail::LoopParts parts{.name = "scan"};
  parts.carries = std::move(carry.tensors());
  parts.carry_path = paths_of(carry.tree(), "carry");
  parts.element_path = paths_of(elements.tree(), "result");
  parts.walked = std::move(arrays.tensors);
  parts.trips = detail::common_length(parts.walked, paths_of(arrays.tree, "xs"), "scan", at);
  parts.reverse = reverse;
  detail::set_save(parts, save_or_default(save), at);
  const size_t carries = parts.carries.size();
  parts.body = [&](const Tensor&, Tensors carried, Tensors slices) {
    const nb::gil_scoped_acquire gil;
    const nb::object both =
        call_user(body, {carry.object(std::move(carried)), filled(*arrays.tree, slices)});
    const bool is_pair = PyTuple_Check(both.ptr()) && PyTuple_GET_SIZE(both.ptr()) == 2;
    if (!is_pair)
      throw UserTypeError(cat("scan: the body returned a ", Py_TYPE(both.ptr())->tp_name), at,
                          "return (carry, y)");
    Tensors given = carry.next(nb::borrow(PyTuple_GET_ITEM(both.ptr(), 0)));
    elements.take(nb::borrow(PyTuple_GET_ITEM(both.ptr(), 1)), given);
    return given;
  };
  Tensors results;
  {
    const nb::gil_scoped_release unlocked;
    results = detail::run_loop(std::move(parts), at);
  }
  Tensors stacked(std::make_move_iterator(results.begin() + static_cast<int64_t>(carries)),
                  std::make_move_iterator(results.end()));
  results.resize(carries);
  return nb::make_tuple(carry.object(std::move(results)), filled(*elements.tree(), stacked));
}

// What a map is asked for: at most `parallel_iterations` and `chunk` bodies at once.
struct MapSettings {
  std::optional<int64_t> parallel_iterations;
  nb::handle chunk;
};

void set_alive(detail::MapParts& parts, const MapSettings& settings, Source at) {
  const bool has_chunk = !settings.chunk.is_none();
  const bool is_automatic = has_chunk && PyUnicode_Check(settings.chunk.ptr()) &&
                            nb::cast<std::string>(settings.chunk) == "automatic";
  if (settings.parallel_iterations) {
    detail::check_count(parts.name, "parallel_iterations", *settings.parallel_iterations, 1, at);
    parts.alive = *settings.parallel_iterations;
  }
  if (is_automatic) {
    if (settings.parallel_iterations) detail::chunk_is_automatic(parts.name, at);
    parts.alive = open;
  } else if (has_chunk) {
    int64_t chunk = 0;
    if (!nb::try_cast(settings.chunk, chunk))
      throw UserTypeError(
          cat(parts.name, ": chunk is ", nb::cast<std::string>(nb::repr(settings.chunk))), at,
          "give a number of bodies, or \"automatic\"");
    detail::check_count(parts.name, "chunk", chunk, 1, at);
    parts.alive = settings.parallel_iterations ? smaller(parts.alive, chunk) : Dim(chunk);
  }
}

nb::object map_slices(detail::MapParts parts, nb::handle f, nb::handle elems, bool all,
                      const MapSettings& settings) {
  const Source at = calling_line();
  TensorTree arrays = lifted(elems, at);
  Elements elements(parts.name, at);
  parts.walked = std::move(arrays.tensors);
  parts.trips = detail::common_length(parts.walked, paths_of(arrays.tree, "elems"), parts.name, at);
  parts.element_path = paths_of(elements.tree(), "result");
  parts.body = [&](Tensors slices) {
    const nb::gil_scoped_acquire gil;
    Tensors given;
    elements.take(call_unpacked(f, filled(*arrays.tree, slices)), given);
    return given;
  };
  parts.alive = all ? parts.trips : Dim(1);
  parts.all_at_once = all && !settings.parallel_iterations && settings.chunk.is_none();
  set_alive(parts, settings, at);
  Tensors results;
  {
    const nb::gil_scoped_release unlocked;
    results = detail::run_map(parts, at);
  }
  return filled(*elements.tree(), results);
}

// ---- TensorArray --------------------------------------------------------------------------------

// Its tensors are children of a structure; dtype and room are its data.
nb::object taken_apart(const TensorArray& array) {
  const auto [buffer, count, dtype, room] = array.tidemark_fields();
  return nb::make_tuple(nb::make_tuple(nb::steal(wrap(Tensor(buffer))),
                                       count ? nb::steal(wrap(Tensor(*count))) : nb::none()),
                        nb::make_tuple(dtype, size_object(*room)));
}

TensorArray put_together(const nb::tuple& data, const nb::tuple& children) {
  const Source at = calling_line();
  const Dim room = size_from(data[1]).value_or(Dim(0));
  TensorArray made(nb::cast<DType>(data[0]), {.size = room}, at);
  auto [buffer, count, dtype, kept_room] = made.tidemark_fields();
  buffer = lifted_leaf(nb::object(children[0]).ptr(), at);
  if (!nb::object(children[1]).is_none()) count = lifted_leaf(nb::object(children[1]).ptr(), at);
  return made;
}

template <class F>
nb::object with_operands(nb::handle a, nb::handle b, F f) {
  const Source at = calling_line();
  const Value first(a, at), second(b, at);
  return nb::cast(f(first.operand(), second.operand(), at));
}

void bind_tensor_array(nb::module_& module) {
  nb::class_<TensorArray> cls(
      module, "TensorArray",
      "An array of tensors of one type that is written one element at a time. It is a value: write "
      "and push_back give the new array.");
  cls.def(
         "__init__",
         [](TensorArray* self, DType dtype, nb::handle size, nb::handle max_size,
            nb::handle element_shape) {
           const Source at = calling_line();
           TensorArrayOptions options{.size = size_from(size).value_or(Dim(0))};
           if (!max_size.is_none()) options.max_size = size_from(max_size);
           if (!element_shape.is_none()) options.element_shape = shape_from(element_shape, at);
           new (self) TensorArray(dtype, options, at);
         },
         nb::arg("dtype"), nb::arg("size") = 0, nb::kw_only(), nb::arg("max_size") = nb::none(),
         nb::arg("element_shape") = nb::none())
      .def(
          "write",
          [](const TensorArray& array, nb::handle index, nb::handle element) {
            return with_operands(
                index, element, [&](auto& i, auto& x, Source at) { return array.write(i, x, at); });
          },
          nb::arg("index"), nb::arg("element"), "The array with this element: a = a.write(i, x).")
      .def(
          "push_back",
          [](const TensorArray& array, nb::handle element) {
            const Source at = calling_line();
            const Value value(element, at);
            return array.push_back(value.operand(), at);
          },
          nb::arg("element"), "The array with one more element. Needs max_size.")
      .def(
          "scatter",
          [](const TensorArray& array, nb::handle indices, nb::handle elements) {
            return with_operands(indices, elements, [&](auto& i, auto& x, Source at) {
              return array.scatter(i, x, at);
            });
          },
          nb::arg("indices"), nb::arg("elements"), "The array with several elements written.")
      .def(
          "unstack",
          [](const TensorArray& array, nb::handle x) {
            const Source at = calling_line();
            const Value value(x, at);
            return array.unstack(value.operand(), at);
          },
          nb::arg("x"), "The array of the slices along the first axis of x.")
      .def(
          "read",
          [](const TensorArray& array, nb::handle index) {
            const Source at = calling_line();
            const Value value(index, at);
            return nb::steal(wrap(array.read(value.operand(), at)));
          },
          nb::arg("index"), "One element; one that was never written is zero.")
      .def(
          "gather",
          [](const TensorArray& array, nb::handle indices) {
            const Source at = calling_line();
            const Value value(indices, at);
            return nb::steal(wrap(array.gather(value.operand(), at)));
          },
          nb::arg("indices"), "Several elements.")
      .def(
          "stack",
          [](const TensorArray& array) { return nb::steal(wrap(array.stack(calling_line()))); },
          "All elements along a new first axis.")
      .def(
          "size",
          [](const TensorArray& array) { return nb::steal(wrap(array.size(calling_line()))); },
          "The number of elements, an i32.")
      .def_prop_ro("dtype", &TensorArray::dtype);
  module.attr("tree").attr("register")(cls, nb::cpp_function(taken_apart),
                                       nb::cpp_function(put_together));
}

}  // namespace

void bind_control_flow(nb::module_& module) {
  nb::class_<Save> save(module, "Save", "What a loop in a function keeps for its gradient.");
  save.def_static("automatic", &Save::automatic, "Everything where that is little; checkpoints.")
      .def_static("all", &Save::all, "The residuals of every trip.")
      .def_static("every", &Save::every, nb::arg("trips"), "One checkpoint per so many trips.")
      .def_static("slots", &Save::slots, nb::arg("count"), "So many checkpoints.")
      .def_static(
          "bytes",
          [](nb::handle most) {
            return Save::bytes(bytes_from(most, "Save.bytes", calling_line()));
          },
          nb::arg("most"), "As many checkpoints as fit into so many bytes.");

  module.def("cond", cond, nb::arg("condition"), nb::arg("if_true"), nb::arg("if_false"),
             nb::arg("operands"),
             "if_true(*operands) if the condition is true, else if_false(*operands). In a function "
             "both are traced and one of them runs.");
  module.def("switch_case", switch_case, nb::arg("index"), nb::arg("branches"),
             "The result of the branch with this number, or of the last branch if there is none.");
  module.def("case", case_of, nb::arg("pairs"), nb::arg("default"),
             "f() for the first (condition, f) of the pairs whose condition is true, else "
             "default(). In a function all are traced and one of them runs.");
  module.def(
      "while_loop", while_loop, nb::arg("condition"), nb::arg("body"), nb::arg("loop_vars"),
      nb::kw_only(), nb::arg("max_iterations") = nb::none(),
      nb::arg("shape_invariants") = nb::none(), nb::arg("save") = nb::none(),
      "Repeats the body while the condition holds. The parts of a tuple or list of loop_vars "
      "are the arguments of both, unless they take just one; anything else is one argument.");
  module.def(
      "fori_loop", fori_loop, nb::arg("lower"), nb::arg("upper"), nb::arg("body"),
      nb::arg("init").none(), nb::kw_only(), nb::arg("save") = nb::none(),
      "carry = body(i, carry...) for i from lower to upper - 1. The parts of a tuple or list "
      "are arguments, unless the body takes just one beside i.");
  module.def("scan", scan, nb::arg("body"), nb::arg("init").none(), nb::arg("xs"), nb::kw_only(),
             nb::arg("reverse") = false, nb::arg("save") = nb::none(),
             "(carry, y) = body(carry, x) for each slice x along the first axis of xs: the last "
             "carry, and the stack of all y.");
  module.def(
      "map_fn",
      [](nb::handle f, nb::handle elems, std::optional<int64_t> parallel_iterations,
         nb::handle chunk) {
        return map_slices({.name = "map_fn"}, f, elems, false, {parallel_iterations, chunk});
      },
      nb::arg("f"), nb::arg("elems"), nb::kw_only(), nb::arg("parallel_iterations") = nb::none(),
      nb::arg("chunk") = nb::none(),
      "The stack of f(slice) for each slice along the first axis of elems. At most so many bodies "
      "run at once; chunk=\"automatic\": as many as fit the budget.");
  module.def(
      "vectorized_map",
      [](nb::handle f, nb::handle elems, std::optional<int64_t> parallel_iterations,
         nb::handle chunk) {
        return map_slices({.name = "vectorized_map"}, f, elems, true, {parallel_iterations, chunk});
      },
      nb::arg("f"), nb::arg("elems"), nb::kw_only(), nb::arg("parallel_iterations") = nb::none(),
      nb::arg("chunk") = nb::none(),
      "As map_fn, but all bodies run at once where nothing else is said: for small bodies.");
  bind_tensor_array(module);
}

}  // namespace tidemark::python
