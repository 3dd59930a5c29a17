// Users' structures: dicts, lists, tuples, named tuples, dataclasses and registered classes, nested
// to any depth, taken apart into leaves and put together again.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bindings.h"

namespace tidemark::python {

// One part of a structure.
struct TreeNode {
  enum class Kind : uint8_t {
    leaf,
    tuple,
    list,
    dict,
    named_tuple,
    dataclass,
    registered,
    constant,  // A value that is part of the structure: None, a text, a dtype.
    object,    // An object that is itself part of it, compared by identity.
  };
  Kind kind = Kind::leaf;
  int32_t arity = 0;
  nb::object type = {};  // The class of a named tuple, dataclass or registered class.
  // dict: the keys in order. dataclass, named tuple: the names of the fields. registered: what its
  // flatten function gave besides the children. constant: the value. object: a weak reference, or
  // an Unweakable that holds it where its class allows none.
  nb::object data = {};
  nb::object order = {};  // dict: the keys as inserted, if that is another order.
  uint64_t identity = 0;  // object: its number.
};

// Everything of a structure besides its leaves: nodes in pre-order. Needs the GIL, except to be
// moved or compared by address.
class Tree {
 public:
  std::vector<TreeNode> nodes;
  size_t leaves = 0;

  bool is_one_leaf() const { return nodes.size() == 1 && leaves == 1; }
  // Whether the other has the same parts; the order in which dicts were filled does not count.
  bool is_like(const Tree& other) const;
  // "x['image'][0]" for each leaf, if the root is "x".
  std::vector<std::string> paths(std::string_view root) const;
  // One line for each part, "x['image']: a list of 2 items\n": different for different structures.
  // Both texts are put around each path.
  std::string key(std::string_view root, std::string_view before = {},
                  std::string_view after = {}) const;
  // The structure with these leaves, one for each.
  nb::object filled(std::span<const nb::object> leaves) const;
  std::string text() const;
  // For tp_traverse of the one object that owns the tree.
  int traverse(visitproc visit, void* arg) const;
};
// Freed under the GIL, wherever the last one goes.
using SharedTree = std::shared_ptr<const Tree>;
SharedTree share(Tree tree);

// td.Static: a value that is part of a function's key. It stands in a structure as the value
// itself.
struct Static {
  nb::object value;

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(value.ptr());
    return 0;
  }
};
bool is_static(PyObject* object);

// What becomes of a part that is no container.
enum class Atom : uint8_t { leaf, constant, object };
using ClassifyAtom = Atom (*)(PyObject* atom);
Atom all_are_leaves(PyObject* atom);

// Adds the parts of an object to a tree, and its leaves to the list.
void flatten_into(Tree& tree, std::vector<nb::object>& leaves, nb::handle object,
                  ClassifyAtom classify);
struct FlatTree {
  SharedTree tree;
  std::vector<nb::object> leaves;
};
FlatTree flatten(nb::handle object, ClassifyAtom classify = all_are_leaves);

// Whether an object has the structure of the node `at` of a known tree; `at` then moves behind it,
// and visit(leaf) has been called for each leaf. Makes no objects.
using VisitLeaf = device::FunctionRef<void(PyObject* leaf)>;
bool match(const Tree& tree, size_t& at, PyObject* object, ClassifyAtom classify, VisitLeaf visit);

// A part of the tree from this node on, with the leaves that `next` hands out.
using NextLeaf = device::FunctionRef<nb::object()>;
nb::object build(const Tree& tree, size_t& at, NextLeaf next);

// Calls visit(node, path) for each node of the part that begins at `at`.
using VisitNode = device::FunctionRef<void(const TreeNode& node, const std::string& path)>;
void visit_paths(const Tree& tree, size_t& at, const std::string& path, VisitNode visit);
// "a tuple of 2 items", "None", "a tensor".
std::string node_text(const TreeNode& node);

}  // namespace tidemark::python
