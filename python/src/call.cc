#include "call.h"

#include <algorithm>
#include <any>

#include <nanobind/stl/string.h>
#include "convert.h"
#include "dtype.h"
#include "errors.h"
#include "shape.h"
#include "source.h"
#include "tensor_tree.h"
#include "variable.h"

namespace tidemark::python {
namespace {

PyTypeObject *donated_class = nullptr, *spec_class = nullptr, *dim_class = nullptr;

bool is_enum(PyObject* object) {
  return PyObject_HasAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__members__") != 0;
}

// Tensors and plain numbers are values of the call; texts, bools and dtypes are part of the key;
// other objects are too, by identity.
Atom classify_argument(PyObject* object) {
  if (is_tensor(object) || PyFloat_CheckExact(object) || PyLong_CheckExact(object))
    return Atom::leaf;
  PyTypeObject* const type = Py_TYPE(object);
  if (is_constant(object)) return Atom::constant;
  if (type == donated_class || type == spec_class || type == dim_class) return Atom::leaf;
  if (variable_in(object) != nullptr) return Atom::object;
  if (is_enum(object)) return Atom::constant;
  if (PyFloat_Check(object) || PyLong_Check(object) || has_array(object)) return Atom::leaf;
  return Atom::object;
}

void read_leaf(PyObject* object, detail::Argument& argument, Source at) {
  PyTypeObject* const type = Py_TYPE(object);
  if (type == tensor_class) {
    argument.tensor = tensor_in(object);
  } else if (PyFloat_CheckExact(object) || PyLong_CheckExact(object)) {
    argument.tensor = number_tensor(object, at);
  } else if (type == donated_class) {
    Donated& given = *nb::inst_ptr<Donated>(object);
    if (!given.tensor.has_value())
      throw UserError("the argument was donated in an earlier call: its memory is gone", at,
                      "donate a tensor in the call that consumes it: step(td.donate(x))");
    argument.tensor = std::move(given.tensor);
    argument.donated = true;
  } else if (type == spec_class) {
    argument.tensor = Tensor(*nb::inst_ptr<TensorSpec>(object), at);
  } else if (type == dim_class) {
    argument.size = *nb::inst_ptr<Dim>(object);
    argument.is_size = true;
  } else if (PyFloat_Check(object) || PyLong_Check(object)) {
    argument.tensor = number_tensor(object, at);
  } else {
    argument.tensor = tensor_from(object, at);
  }
}

// Visits the parts of each argument: visit(node, "x['image']").
void visit_arguments(const Signature& signature, const Tree& tree, VisitNode visit) {
  size_t at = 1;
  for (const std::string& name : signature.names()) visit_paths(tree, at, name, visit);
}

std::string quoted(const std::string& path) { return "argument `" + path + "`"; }

}  // namespace

// ---- structures ---------------------------------------------------------------------------------

SharedTree KnownStructures::find_or_add(const BoundArguments& bound,
                                        std::vector<nb::object>& leaves) {
  const auto see = [&leaves](PyObject* leaf) { leaves.push_back(nb::borrow(leaf)); };
  // A class of the user may call the function while it is taken apart: the list is read by index.
  for (size_t i = 0; i < known_.size(); ++i) {
    const SharedTree tree = known_[i];
    size_t at = 1;
    bool same = tree->nodes[0].arity == static_cast<int32_t>(bound.size());
    for (size_t k = 0; same && k < bound.size(); ++k)
      same = match(*tree, at, bound[k], classify_argument, see);
    if (!same) {
      leaves.clear();
      continue;
    }
    if (i > 0 && i < known_.size() && known_[i] == tree)
      std::rotate(known_.begin(), known_.begin() + static_cast<int64_t>(i),
                  known_.begin() + static_cast<int64_t>(i) + 1);
    return tree;
  }
  Tree made;
  TreeNode& root = made.nodes.emplace_back();
  root.kind = TreeNode::Kind::tuple;
  root.arity = static_cast<int32_t>(bound.size());
  for (PyObject* const each : bound) flatten_into(made, leaves, each, classify_argument);
  const SharedTree tree = share(std::move(made));
  add_traced(tree);
  known_.insert(known_.begin(), tree);
  if (known_.size() > kMost) known_.resize(kMost);
  return tree;
}

void KnownStructures::add_traced(const SharedTree& tree) {
  traced_.push_back({tree.get(), tree});
  if (traced_.size() <= 2 * alive_ + 64) return;
  std::erase_if(traced_, [](const Traced& each) { return each.owners.expired(); });
  alive_ = traced_.size();
}

int KnownStructures::traverse(visitproc visit, void* arg) const {
  for (const Traced& each : traced_) {
    if (each.owners.expired()) continue;
    if (const int stopped = each.tree->traverse(visit, arg)) return stopped;
  }
  return 0;
}

// ---- calls --------------------------------------------------------------------------------------

PythonCall::PythonCall(const Signature& signature, KnownStructures& known,
                       PyObject* const* arguments, Py_ssize_t count, PyObject* names, Source at)
    : signature_(signature) {
  std::vector<nb::object> held, leaves;
  leaves.reserve(8);
  const BoundArguments bound = signature.bind(arguments, count, names, held);
  tree_ = known.find_or_add(bound, leaves);
  arguments_.leaves.reserve(leaves.size());
  for (const nb::object& leaf : leaves) read_leaf(leaf.ptr(), arguments_.leaves.emplace_back(), at);
  detail::ArgumentStructure& from = arguments_.from;
  from.from = this;
  from.key = [](const void* self) {
    const nb::gil_scoped_acquire gil;
    const auto& call = *static_cast<const PythonCall*>(self);
    std::string key;
    visit_arguments(call.signature_, *call.tree_,
                    [&key](const TreeNode& node, const std::string& path) {
                      key += cat(quoted(path), ": ", node_text(node), "\n");
                    });
    return key;
  };
  from.is_like = [](const void* self, const std::any& copy) {
    return static_cast<const PythonCall*>(self)->tree_ == *std::any_cast<SharedTree>(&copy);
  };
  from.copy = [](const void* self) {
    return std::any(static_cast<const PythonCall*>(self)->tree_);
  };
  from.paths = [](const void* self) {
    const nb::gil_scoped_acquire gil;
    const auto& call = *static_cast<const PythonCall*>(self);
    std::vector<std::string> paths;
    visit_arguments(call.signature_, *call.tree_,
                    [&paths](const TreeNode& node, const std::string& path) {
                      if (node.kind == TreeNode::Kind::leaf) paths.push_back(quoted(path));
                    });
    return paths;
  };
}

std::vector<nb::object> rebuilt_arguments(const Tree& tree,
                                          std::span<const detail::Argument> leaves) {
  size_t leaf = 0, at = 1;
  const auto next = [&]() -> nb::object {
    const detail::Argument& argument = leaves[leaf++];
    if (argument.is_size) return nb::cast(argument.size);
    return nb::steal(wrap(Tensor(argument.tensor)));
  };
  std::vector<nb::object> rebuilt;
  for (int32_t i = 0; i < tree.nodes[0].arity; ++i) rebuilt.push_back(build(tree, at, next));
  return rebuilt;
}

// ---- results ------------------------------------------------------------------------------------

detail::TraceResult taken_result(nb::handle result, const std::string& title, Source at) {
  TensorTree lifted = python::lifted(result, at);
  size_t place = 0;
  visit_paths(*lifted.tree, place, "result", [&](const TreeNode& node, const std::string& path) {
    if (node.kind != TreeNode::Kind::object) return;
    throw UserTypeError(
        cat(title, " returned ",
            path == "result" ? std::string() : cat("a structure in which ", path, " is "), "a ",
            reinterpret_cast<PyTypeObject*>(node.type.ptr())->tp_name),
        at, "return tensors, numbers, None and structures of them");
  });
  return {std::move(lifted.tensors), lifted.tree->paths("result"), lifted.tree};
}

PyObject* filled_result(const Tree& tree, std::span<Tensor> leaves) {
  if (tree.is_one_leaf()) return wrap(std::move(leaves[0]));
  return filled(tree, leaves).release().ptr();
}

// ---- specs and donation -------------------------------------------------------------------------

void bind_call(nb::module_& module) {
  nb::class_<TensorSpec> spec(module, "TensorSpec",
                              "A type without elements, for plans and signatures.");
  spec_class = reinterpret_cast<PyTypeObject*>(spec.ptr());
  spec.def(
          "__init__",
          [](TensorSpec* self, nb::handle shape, DType dtype, const std::string& name) {
            new (self) TensorSpec{shape_from(shape, calling_line()), dtype, name};
          },
          nb::arg("shape"), nb::arg("dtype") = DType::f32, nb::arg("name") = "")
      .def_prop_ro("shape", [](const TensorSpec& s) { return shape_tuple(s.shape); })
      .def_ro("dtype", &TensorSpec::dtype)
      .def_ro("name", &TensorSpec::name)
      .def_ro("is_donated", &TensorSpec::is_donated)
      .def("donated", &TensorSpec::donated, "The same, planned as an argument that is donated.")
      .def(
          "__eq__",
          [](const TensorSpec& a, const TensorSpec& b) {
            return a.shape == b.shape && a.dtype == b.dtype && a.name == b.name &&
                   a.is_donated == b.is_donated;
          },
          nb::is_operator())
      .def("__hash__", [](const TensorSpec& s) { return std::hash<std::string>()(cat(s.shape)); })
      .def("__repr__", [](const TensorSpec& s) {
        return cat("td.spec(", nb::cast<std::string>(nb::repr(shape_tuple(s.shape))), ", td.",
                   name(s.dtype), s.name.empty() ? "" : cat(", \"", s.name, "\""), ")",
                   s.is_donated ? ".donated()" : "");
      });
  module.def(
      "spec",
      [](nb::handle shape, DType dtype, const std::string& name) {
        return tidemark::spec(shape_from(shape, calling_line()), dtype, name);
      },
      nb::arg("shape"), nb::arg("dtype") = DType::f32, nb::arg("name") = "",
      "A type without elements, for plans and signatures; None is an open size.");

  nb::class_<Donated> donated(module, "Donated", "A tensor whose memory a call may use again.");
  donated_class = reinterpret_cast<PyTypeObject*>(donated.ptr());
  module.def(
      "donate",
      [](nb::handle x) {
        const Source at = calling_line();
        if (!is_tensor(x))
          throw UserTypeError(cat("donate: a Tensor is wanted, got ", Py_TYPE(x.ptr())->tp_name),
                              at);
        return Donated{donate(*nb::inst_ptr<Tensor>(x), at)};
      },
      nb::arg("x"),
      "Moves x out, so that the function it is passed to may use its memory: step(td.donate(x)).");
  dim_class = reinterpret_cast<PyTypeObject*>(nb::type<Dim>().ptr());
}

}  // namespace tidemark::python
