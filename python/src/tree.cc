#include "tree.h"

#include <algorithm>
#include <unordered_map>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "errors.h"
#include "holds.h"
#include "later.h"
#include "source.h"

namespace tidemark::python {
namespace {

using Kind = TreeNode::Kind;

PyTypeObject* static_class = nullptr;

struct Registered {
  nb::object flatten, unflatten;
};
// Never freed: objects of these classes may be taken apart until the process ends.
std::unordered_map<PyObject*, Registered>& registered() {
  static auto* const classes = new std::unordered_map<PyObject*, Registered>;
  return *classes;
}

// ---- identities ---------------------------------------------------------------------------------

// Holds an object whose class allows no weak references. All trees with the object have the same
// one of these, so it can be referred to weakly in its place.
struct Unweakable {
  nb::object object;

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(object.ptr());
    return 0;
  }
};

PyObject* target_of(const nb::object& weak) {  // Borrowed; null if it is gone.
  PyObject* const target = PyWeakref_GET_OBJECT(weak.ptr());
  return target == Py_None ? nullptr : target;
}
nb::object weak_reference(nb::handle object) {
  PyObject* const made = PyWeakref_NewRef(object.ptr(), nullptr);
  if (made == nullptr) PyErr_Clear();
  return nb::steal(made);
}

// The objects that are parts of structures, with a number for each. An address alone would name
// another object once the first is gone.
class Identities {
 public:
  struct Named {
    nb::object held;  // What a node holds: a weak reference, or an Unweakable.
    uint64_t number = 0;
  };
  Named of(PyObject* object) {
    Entry& known = table_[object];
    if (Named named = known.named(); named.held.is_valid() && object_of(named.held) == object)
      return named;
    nb::object weak = weak_reference(object), held = weak;
    if (!weak.is_valid()) {
      held = nb::cast(Unweakable{nb::borrow(object)});
      weak = weak_reference(held);
    }
    // Making them may have run the collector, and with it code that takes other objects apart.
    Entry& entry = table_[object] = {std::move(weak), ++last_};
    const Named made{std::move(held), entry.number};
    if (table_.size() > 2 * alive_ + 64) drop_dead();
    return made;
  }
  // Borrowed; null if the object is gone.
  static PyObject* object_of(const nb::object& held) {
    return PyWeakref_CheckRef(held.ptr()) ? target_of(held)
                                          : nb::inst_ptr<Unweakable>(held)->object.ptr();
  }

 private:
  struct Entry {
    nb::object weak;  // Of the object, or of its Unweakable.
    uint64_t number = 0;

    Named named() const {
      PyObject* const target = weak.is_valid() ? target_of(weak) : nullptr;
      if (target == nullptr) return {};
      return {nb::isinstance<Unweakable>(target) ? nb::borrow(target) : weak, number};
    }
  };
  void drop_dead() {
    std::erase_if(table_,
                  [](const auto& entry) { return target_of(entry.second.weak) == nullptr; });
    alive_ = table_.size();
  }
  std::unordered_map<PyObject*, Entry> table_;
  size_t alive_ = 0;
  uint64_t last_ = 0;
};
Identities& identities() {
  static auto* const all = new Identities;
  return *all;
}

// ---- kinds --------------------------------------------------------------------------------------

nb::object attribute(PyObject* object, const char* name) {
  PyObject* const found = PyObject_GetAttrString(object, name);
  if (found == nullptr) PyErr_Clear();
  return nb::steal(found);
}

// The names of a dataclass' fields; null for other classes.
nb::object dataclass_fields(PyObject* cls) {
  const nb::object fields = attribute(cls, "__dataclass_fields__");
  if (!fields.is_valid()) return {};
  return nb::steal(PySequence_Tuple(nb::borrow<nb::dict>(fields).keys().ptr()));
}

// The keys in order, or as inserted if they have none.
nb::object sorted_keys(PyObject* dict) {
  nb::object keys = nb::steal(PyDict_Keys(dict));
  const nb::object sorted = nb::steal(PySequence_List(keys.ptr()));
  if (PyList_Sort(sorted.ptr()) == 0)
    keys = sorted;
  else
    PyErr_Clear();
  return nb::steal(PySequence_Tuple(keys.ptr()));
}

bool is_same_order(PyObject* dict, PyObject* keys) {
  Py_ssize_t at = 0, number = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(dict, &at, &key, &value))
    if (key != PyTuple_GET_ITEM(keys, number++)) return false;
  return true;
}

bool are_equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {  // Zeros have signs, and NaNs are one value.
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  const int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) nb::raise_python_error();
  return same == 1;
}

// A td.Static's value, borrowed; anything else as it is.
PyObject* without_static(PyObject* object) {
  return is_static(object) ? nb::inst_ptr<Static>(object)->value.ptr() : object;
}

class Recursion {
 public:
  Recursion() {
    if (Py_EnterRecursiveCall(" in a structure of tensors") != 0) nb::raise_python_error();
  }
  ~Recursion() { Py_LeaveRecursiveCall(); }
  Recursion(const Recursion&) = delete;
  Recursion& operator=(const Recursion&) = delete;
};

// ---- taking apart -------------------------------------------------------------------------------

class Flattener {
 public:
  Flattener(Tree& tree, std::vector<nb::object>& leaves, ClassifyAtom classify)
      : tree_(tree), leaves_(leaves), classify_(classify) {}

  void add(PyObject* object) {
    const Recursion deeper;
    PyTypeObject* const type = Py_TYPE(object);
    if (object == Py_None) return add_constant(object);
    if (PyTuple_CheckExact(object)) return add_sequence(Kind::tuple, object);
    if (PyList_CheckExact(object)) return add_sequence(Kind::list, object);
    if (PyDict_CheckExact(object)) return add_dict(object);
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE && add_of_class(object)) return;
    add_atom(object);
  }

 private:
  TreeNode& node(Kind kind, Py_ssize_t arity) {
    TreeNode& made = tree_.nodes.emplace_back();
    made.kind = kind;
    made.arity = static_cast<int32_t>(arity);
    return made;
  }
  void add_constant(PyObject* value) {
    node(Kind::constant, 0).data = nb::borrow(without_static(value));
  }

  void add_sequence(Kind kind, PyObject* object) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    node(kind, count);
    // A flatten function of a user may change a list meanwhile.
    for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(object); ++i)
      add(PySequence_Fast_GET_ITEM(object, i));
  }

  void add_dict(PyObject* object) {
    const nb::object keys = sorted_keys(object);
    TreeNode& made = node(Kind::dict, PyTuple_GET_SIZE(keys.ptr()));
    made.data = keys;
    if (!is_same_order(object, keys.ptr())) made.order = nb::steal(PySequence_Tuple(object));
    for (const nb::handle key : nb::borrow<nb::tuple>(keys))
      add(nb::borrow<nb::dict>(object)[key].ptr());
  }

  // Classes of users.
  bool add_of_class(PyObject* object) {
    PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    const auto known = registered().find(type);
    if (known != registered().end()) return add_registered(object, known->second);
    if (PyTuple_Check(object)) return add_named_tuple(object);
    const nb::object fields = dataclass_fields(type);
    if (!fields.is_valid()) return false;
    TreeNode& made = node(Kind::dataclass, PyTuple_GET_SIZE(fields.ptr()));
    made.type = nb::borrow(type);
    made.data = fields;
    for (const nb::handle name : nb::borrow<nb::tuple>(fields))
      add(nb::steal(PyObject_GetAttr(object, name.ptr())).ptr());
    return true;
  }

  bool add_named_tuple(PyObject* object) {
    PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    const nb::object fields = attribute(type, "_fields");
    if (!fields.is_valid()) return false;
    TreeNode& made = node(Kind::named_tuple, PyTuple_GET_SIZE(object));
    made.type = nb::borrow(type);
    made.data = fields;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) add(PyTuple_GET_ITEM(object, i));
    return true;
  }

  bool add_registered(PyObject* object, const Registered& known) {
    const nb::object parts = known.flatten(nb::handle(object));
    const nb::object both = nb::steal(PySequence_Tuple(parts.ptr()));
    if (!both.is_valid()) nb::raise_python_error();
    if (PyTuple_GET_SIZE(both.ptr()) != 2)
      throw UserTypeError(cat("tree.register: the flatten function of ", Py_TYPE(object)->tp_name,
                              " returned ", PyTuple_GET_SIZE(both.ptr()), " values"),
                          calling_line(), "return (children, data)");
    const nb::object children = nb::steal(PySequence_Tuple(PyTuple_GET_ITEM(both.ptr(), 0)));
    if (!children.is_valid()) nb::raise_python_error();
    TreeNode& made = node(Kind::registered, PyTuple_GET_SIZE(children.ptr()));
    made.type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    made.data = nb::borrow(PyTuple_GET_ITEM(both.ptr(), 1));
    for (const nb::handle child : nb::borrow<nb::tuple>(children)) add(child.ptr());
    return true;
  }

  void add_atom(PyObject* object) {
    switch (classify_(object)) {
      case Atom::leaf:
        node(Kind::leaf, 0);
        ++tree_.leaves;
        leaves_.push_back(nb::borrow(object));
        return;
      case Atom::constant:
        return add_constant(object);
      case Atom::object: {
        const Identities::Named named = identities().of(object);
        TreeNode& made = node(Kind::object, 0);
        made.type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
        made.data = named.held;
        made.identity = named.number;
        return;
      }
    }
  }

  Tree& tree_;
  std::vector<nb::object>& leaves_;
  ClassifyAtom classify_;
};

// ---- matching -----------------------------------------------------------------------------------

class Matcher {
 public:
  Matcher(const Tree& tree, size_t& at, ClassifyAtom classify, VisitLeaf visit)
      : tree_(tree), at_(at), classify_(classify), visit_(visit) {}

  bool match(PyObject* object) {
    const TreeNode& node = tree_.nodes[at_++];
    switch (node.kind) {
      case Kind::leaf:
        if (!is_leaf(object)) return false;
        visit_(object);
        return true;
      case Kind::constant:
        return are_equal(node.data.ptr(), without_static(object));
      case Kind::object:
        return Identities::object_of(node.data) == object;
      case Kind::tuple:
        return PyTuple_CheckExact(object) && match_items(node, object);
      case Kind::list:
        return PyList_CheckExact(object) && match_items(node, object);
      case Kind::named_tuple:
        return is_of(node, object) && match_items(node, object);
      case Kind::dict:
        return PyDict_CheckExact(object) && match_dict(node, object);
      case Kind::dataclass:
        return is_of(node, object) && match_fields(node, object);
      case Kind::registered:
        return is_of(node, object) && match_registered(node, object);
    }
    return false;
  }

 private:
  bool is_leaf(PyObject* object) const {
    return object != Py_None && !PyTuple_Check(object) && !PyList_CheckExact(object) &&
           !PyDict_CheckExact(object) && classify_(object) == Atom::leaf;
  }
  static bool is_of(const TreeNode& node, PyObject* object) {
    return reinterpret_cast<PyObject*>(Py_TYPE(object)) == node.type.ptr();
  }
  bool match_items(const TreeNode& node, PyObject* object) {
    if (PySequence_Fast_GET_SIZE(object) != node.arity) return false;
    for (int32_t i = 0; i < node.arity; ++i)
      if (!match(PySequence_Fast_GET_ITEM(object, i))) return false;
    return true;
  }
  bool match_dict(const TreeNode& node, PyObject* object) {
    if (PyDict_GET_SIZE(object) != node.arity) return false;
    for (int32_t i = 0; i < node.arity; ++i) {
      PyObject* const value = PyDict_GetItemWithError(object, PyTuple_GET_ITEM(node.data.ptr(), i));
      if (value == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
      if (value == nullptr || !match(value)) return false;
    }
    return true;
  }
  bool match_fields(const TreeNode& node, PyObject* object) {
    for (int32_t i = 0; i < node.arity; ++i) {
      const nb::object value =
          nb::steal(PyObject_GetAttr(object, PyTuple_GET_ITEM(node.data.ptr(), i)));
      if (!value.is_valid()) nb::raise_python_error();
      if (!match(value.ptr())) return false;
    }
    return true;
  }
  bool match_registered(const TreeNode& node, PyObject* object) {
    const nb::object parts = registered().at(node.type.ptr()).flatten(nb::handle(object));
    const nb::object both = nb::steal(PySequence_Tuple(parts.ptr()));
    if (!both.is_valid() || PyTuple_GET_SIZE(both.ptr()) != 2) {
      PyErr_Clear();
      return false;  // Taking it apart says what is wrong.
    }
    const nb::object children = nb::steal(PySequence_Tuple(PyTuple_GET_ITEM(both.ptr(), 0)));
    if (!children.is_valid()) nb::raise_python_error();
    return are_equal(node.data.ptr(), PyTuple_GET_ITEM(both.ptr(), 1)) &&
           match_items(node, children.ptr());
  }

  const Tree& tree_;
  size_t& at_;
  ClassifyAtom classify_;
  VisitLeaf visit_;
};

// ---- putting together ---------------------------------------------------------------------------

nb::object filled_dict(const TreeNode& node, const std::vector<nb::object>& children) {
  nb::dict made;
  if (node.order.is_valid())
    for (const nb::handle key : nb::borrow<nb::tuple>(node.order)) made[key] = nb::none();
  for (size_t i = 0; i < children.size(); ++i)
    made[nb::handle(PyTuple_GET_ITEM(node.data.ptr(), static_cast<Py_ssize_t>(i)))] = children[i];
  return made;
}

nb::object tuple_of(const std::vector<nb::object>& children) {
  const nb::object made = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(children.size())));
  for (size_t i = 0; i < children.size(); ++i)
    PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(i), children[i].inc_ref().ptr());
  return made;
}

// Its __init__ does not run: it has run for the object that was taken apart.
nb::object filled_dataclass(const TreeNode& node, const std::vector<nb::object>& children) {
  auto* const type = reinterpret_cast<PyTypeObject*>(node.type.ptr());
  const nb::tuple none;
  const nb::object made = nb::steal(PyBaseObject_Type.tp_new(type, none.ptr(), nullptr));
  if (!made.is_valid()) nb::raise_python_error();
  for (size_t i = 0; i < children.size(); ++i) {
    PyObject* const name = PyTuple_GET_ITEM(node.data.ptr(), static_cast<Py_ssize_t>(i));
    if (PyObject_GenericSetAttr(made.ptr(), name, children[i].ptr()) != 0) nb::raise_python_error();
  }
  return made;
}

nb::object object_in(const TreeNode& node) {
  PyObject* const object = Identities::object_of(node.data);
  if (object == nullptr)
    throw UserError(cat("an object that the structure holds is gone: ", node_text(node)),
                    calling_line(), "keep it as long as what was traced with it is used");
  return nb::borrow(object);
}

std::string shown(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Repr(object.ptr()));
  if (!text.is_valid()) nb::raise_python_error();
  std::string found = nb::cast<std::string>(text);
  std::replace(found.begin(), found.end(), '\n', ' ');  // A key has one line for each part.
  return found;
}

std::string class_name(const nb::object& cls) {
  return reinterpret_cast<PyTypeObject*>(cls.ptr())->tp_name;
}

std::string child_path(const TreeNode& node, int32_t number, const std::string& path) {
  switch (node.kind) {
    case Kind::dict:
      return path + "[" + shown(PyTuple_GET_ITEM(node.data.ptr(), number)) + "]";
    case Kind::dataclass:
    case Kind::named_tuple:
      return path + "." +
             nb::cast<std::string>(nb::handle(PyTuple_GET_ITEM(node.data.ptr(), number)));
    default:
      return path + "[" + std::to_string(number) + "]";
  }
}

}  // namespace

// ---- Tree ---------------------------------------------------------------------------------------

bool Tree::is_like(const Tree& other) const {
  if (leaves != other.leaves || nodes.size() != other.nodes.size()) return false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const TreeNode &a = nodes[i], &b = other.nodes[i];
    if (a.kind != b.kind || a.arity != b.arity || a.type.ptr() != b.type.ptr() ||
        a.identity != b.identity)
      return false;
    if (a.kind != Kind::object && a.data.is_valid() && !are_equal(a.data.ptr(), b.data.ptr()))
      return false;
  }
  return true;
}

std::string node_text(const TreeNode& node) {
  const auto items = [&] { return cat(node.arity, node.arity == 1 ? " item" : " items"); };
  switch (node.kind) {
    case Kind::leaf:
      return "a tensor";
    case Kind::tuple:
      return cat("a tuple of ", items());
    case Kind::list:
      return cat("a list of ", items());
    case Kind::dict: {
      if (node.arity == 0) return "an empty dict";
      std::string text = node.arity == 1 ? "a dict with key " : "a dict with keys ";
      for (int32_t i = 0; i < node.arity; ++i)
        text += (i == 0 ? "" : ", ") + shown(PyTuple_GET_ITEM(node.data.ptr(), i));
      return text;
    }
    case Kind::named_tuple:
    case Kind::dataclass:
      return cat("a ", class_name(node.type));
    case Kind::registered:
      return cat("a ", class_name(node.type), " of ", items(), ", ", shown(node.data));
    case Kind::constant:
      return shown(node.data);
    case Kind::object:
      return cat(class_name(node.type), " object #", node.identity);
  }
  return {};
}

void visit_paths(const Tree& tree, size_t& at, const std::string& path, VisitNode visit) {
  const TreeNode& node = tree.nodes[at++];
  visit(node, path);
  for (int32_t i = 0; i < node.arity; ++i) visit_paths(tree, at, child_path(node, i, path), visit);
}

std::vector<std::string> Tree::paths(std::string_view root) const {
  std::vector<std::string> paths;
  size_t at = 0;
  visit_paths(*this, at, std::string(root), [&](const TreeNode& node, const std::string& path) {
    if (node.kind == Kind::leaf) paths.push_back(path);
  });
  return paths;
}

std::string Tree::key(std::string_view root, std::string_view before,
                      std::string_view after) const {
  std::string key;
  size_t at = 0;
  visit_paths(*this, at, std::string(root), [&](const TreeNode& node, const std::string& path) {
    key += cat(before, path, after, ": ", node_text(node), "\n");
  });
  return key;
}

nb::object build(const Tree& tree, size_t& at, NextLeaf next) {
  const TreeNode& node = tree.nodes[at++];
  if (node.kind == Kind::leaf) return next();
  if (node.kind == Kind::constant) return node.data;
  if (node.kind == Kind::object) return object_in(node);
  std::vector<nb::object> children;
  children.reserve(static_cast<size_t>(node.arity));
  for (int32_t i = 0; i < node.arity; ++i) children.push_back(build(tree, at, next));
  switch (node.kind) {
    case Kind::dict:
      return filled_dict(node, children);
    case Kind::dataclass:
      return filled_dataclass(node, children);
    case Kind::list:
      return nb::steal(PySequence_List(tuple_of(children).ptr()));
    case Kind::named_tuple:
      return nb::steal(PyObject_CallObject(node.type.ptr(), tuple_of(children).ptr()));
    case Kind::registered:
      return registered().at(node.type.ptr()).unflatten(node.data, tuple_of(children));
    default:
      return tuple_of(children);
  }
}

nb::object Tree::filled(std::span<const nb::object> given) const {
  size_t at = 0, leaf = 0;
  const nb::object made = build(*this, at, [&] { return given[leaf++]; });
  if (!made.is_valid()) nb::raise_python_error();
  return made;
}

// "{'a': *, 'b': [*, *]}"
std::string Tree::text() const {
  const std::vector<nb::object> stars(leaves, nb::module_::import_("tidemark._core").attr("_star"));
  return shown(filled(stars));
}

int Tree::traverse(visitproc visit, void* arg) const {
  for (const TreeNode& node : nodes) {
    Py_VISIT(node.type.ptr());
    Py_VISIT(node.data.ptr());
    Py_VISIT(node.order.ptr());
  }
  return 0;
}

SharedTree share(Tree tree) {
  return {new Tree(std::move(tree)),
          [](const Tree* dropped) { release_with_gil([dropped] { delete dropped; }); }};
}

bool is_static(PyObject* object) { return Py_TYPE(object) == static_class; }

Atom all_are_leaves(PyObject*) { return Atom::leaf; }

void flatten_into(Tree& tree, std::vector<nb::object>& leaves, nb::handle object,
                  ClassifyAtom classify) {
  Flattener(tree, leaves, classify).add(object.ptr());
}

FlatTree flatten(nb::handle object, ClassifyAtom classify) {
  Tree tree;
  FlatTree flat;
  flatten_into(tree, flat.leaves, object, classify);
  flat.tree = share(std::move(tree));
  return flat;
}

bool match(const Tree& tree, size_t& at, PyObject* object, ClassifyAtom classify, VisitLeaf visit) {
  return Matcher(tree, at, classify, visit).match(object);
}

// ---- td.tree ------------------------------------------------------------------------------------

namespace {

// A leaf in the text of a structure.
struct Star {};

// A TreeDef in Python.
struct Structure {
  SharedTree tree;

  int traverse(visitproc visit, void* arg) const { return tree->traverse(visit, arg); }
};

nb::object unflatten(const Structure& structure, nb::handle leaves) {
  const nb::object all = nb::steal(PySequence_Tuple(leaves.ptr()));
  if (!all.is_valid()) nb::raise_python_error();
  std::vector<nb::object> list;
  for (const nb::handle leaf : nb::borrow<nb::tuple>(all)) list.push_back(nb::borrow(leaf));
  if (list.size() != structure.tree->leaves)
    throw UserError(cat("tree.unflatten: the structure has ", structure.tree->leaves,
                        " leaves, got ", list.size()),
                    calling_line(), "give one for each leaf, in the order of tree.flatten");
  return structure.tree->filled(list);
}

nb::object map_trees(const nb::object& f, const nb::object& first, const nb::args& rest) {
  const FlatTree flat = flatten(first);
  std::vector<std::vector<nb::object>> columns;
  for (size_t i = 0; i < rest.size(); ++i) {
    FlatTree other = flatten(rest[i]);
    if (!other.tree->is_like(*flat.tree))
      throw UserError(cat("tree.map: tree ", i + 2, " has another structure than the first: ",
                          detail::key_change(flat.tree->key("tree"), other.tree->key("tree"))),
                      calling_line(), "give trees of one structure");
    columns.push_back(std::move(other.leaves));
  }
  std::vector<nb::object> mapped;
  for (size_t leaf = 0; leaf < flat.leaves.size(); ++leaf) {
    std::vector<nb::object> arguments{flat.leaves[leaf]};
    for (const auto& column : columns) arguments.push_back(column[leaf]);
    mapped.push_back(nb::steal(PyObject_CallObject(f.ptr(), tuple_of(arguments).ptr())));
    if (!mapped.back().is_valid()) nb::raise_python_error();
  }
  return flat.tree->filled(mapped);
}

nb::list list_of(const std::vector<nb::object>& items) {
  nb::list list;
  for (const nb::object& item : items) list.append(item);
  return list;
}

// The class itself, so that it can be written as a decorator's part.
nb::object register_class(const nb::object& cls, const nb::object& flatten_with,
                          const nb::object& unflatten_with) {
  if (!PyType_Check(cls.ptr()))
    throw UserTypeError(cat("tree.register: ", shown(cls), " is not a class"), calling_line());
  const auto [entry, is_new] =
      registered().try_emplace(cls.ptr(), Registered{flatten_with, unflatten_with});
  if (!is_new)
    throw UserError(cat("tree.register: ", class_name(cls), " is registered already"),
                    calling_line(), "register a class once");
  cls.inc_ref();
  return cls;
}

}  // namespace

void bind_tree(nb::module_& module) {
  nb::class_<Unweakable>(module, "_Unweakable", nb::type_slots(traversed_slots<Unweakable>()),
                         nb::is_weak_referenceable());
  nb::class_<Structure>(module, "TreeDef", nb::type_slots(traversed_slots<Structure>()),
                        "Everything of a structure besides its leaves.")
      .def_prop_ro(
          "num_leaves", [](const Structure& s) { return s.tree->leaves; },
          "How many leaves it has.")
      .def(
          "paths", [](const Structure& s, const std::string& root) { return s.tree->paths(root); },
          nb::arg("root") = "", "The path of each leaf: \"x['image'][0]\" if the root is \"x\".")
      .def("unflatten", unflatten, nb::arg("leaves"), "The structure with these leaves.")
      .def(
          "__eq__", [](const Structure& a, const Structure& b) { return a.tree->is_like(*b.tree); },
          nb::is_operator())
      .def("__hash__", [](const Structure& s) { return std::hash<std::string>()(s.tree->key("")); })
      .def("__repr__", [](const Structure& s) { return "TreeDef(" + s.tree->text() + ")"; });

  nb::class_<Static> fixed(module, "Static", nb::type_slots(traversed_slots<Static>()),
                           "A value that is part of a function's key: one trace for each value.");
  static_class = reinterpret_cast<PyTypeObject*>(fixed.ptr());
  fixed.def(nb::init<nb::object>(), nb::arg("value").none())
      .def_ro("value", &Static::value)
      .def(
          "__eq__",
          [](const Static& a, const Static& b) { return are_equal(a.value.ptr(), b.value.ptr()); },
          nb::is_operator())
      .def("__hash__", [](const Static& a) { return nb::hash(a.value); })
      .def("__repr__", [](const Static& a) { return "td.Static(" + shown(a.value) + ")"; });

  nb::class_<Star>(module, "_Star").def("__repr__", [](const Star&) { return "*"; });
  module.attr("_star") = nb::cast(Star());

  nb::module_ tree = module.def_submodule("tree",
                                          "Structures of tensors: dicts, lists, tuples, "
                                          "named tuples, dataclasses, registered classes.");
  tree.def(
      "flatten",
      [](const nb::object& structure) {
        FlatTree flat = flatten(structure);
        return nb::make_tuple(list_of(flat.leaves), Structure{flat.tree});
      },
      nb::arg("tree").none(), "The leaves, and the TreeDef that puts them together again.");
  tree.def(
      "leaves", [](const nb::object& structure) { return list_of(flatten(structure).leaves); },
      nb::arg("tree").none(), "The leaves, in order; those of a dict in the order of its keys.");
  tree.def(
      "structure", [](const nb::object& structure) { return Structure{flatten(structure).tree}; },
      nb::arg("tree").none(), "The TreeDef.");
  tree.def(
      "paths",
      [](const nb::object& structure, const std::string& root) {
        return flatten(structure).tree->paths(root);
      },
      nb::arg("tree").none(), nb::arg("root") = "", "The path of each leaf.");
  tree.def("unflatten", unflatten, nb::arg("treedef"), nb::arg("leaves"),
           "The structure with these leaves.");
  tree.def("map", map_trees, nb::arg("f"), nb::arg("tree").none(), nb::arg("rest"),
           "f applied to each leaf, or to the leaves of several trees of one structure.");
  tree.def("register", register_class, nb::arg("cls"), nb::arg("flatten"), nb::arg("unflatten"),
           "Makes a class a container: flatten(x) gives (children, data), unflatten(data, "
           "children) gives x again.");
}

}  // namespace tidemark::python
