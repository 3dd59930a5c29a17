// Arguments of a call of a traced function: leaves and structure, as FunctionCore takes them.
#pragma once

#include <memory>
#include <vector>

#include "bindings.h"
#include "signature.h"
#include "tree.h"

namespace tidemark::python {

// A tensor that a call may consume: td.donate(x).
struct Donated {
  Tensor tensor;
};

// The structures that a function has been called with, most recent first. A call with a known one
// makes no new objects; equal structures are one object, so that they are compared without the GIL.
class KnownStructures {
 public:
  // The structure of these arguments; their leaves are added to `leaves`.
  SharedTree find_or_add(const BoundArguments& bound, std::vector<nb::object>& leaves);
  void clear() { known_.clear(); }

  // The structures of arguments and results that traces hold. Nobody but the function and its
  // calls reads them, so it is the function that reports what they hold (holds.h).
  void add_traced(const SharedTree& tree);
  int traverse(visitproc visit, void* arg) const;

 private:
  static constexpr size_t kMost = 256;
  // A tree that has no owner left is deleted under the GIL, so one that has an owner, or had one a
  // moment ago, can be read under the GIL.
  struct Traced {
    const Tree* tree;
    std::weak_ptr<const Tree> owners;
  };
  std::vector<SharedTree> known_;
  std::vector<Traced> traced_;
  size_t alive_ = 0;  // Of the list above, when it was last swept.
};

// One call. It lives for its duration.
class PythonCall {
 public:
  // Arguments as Python's vectorcall passes them.
  PythonCall(const Signature& signature, KnownStructures& known, PyObject* const* arguments,
             Py_ssize_t count, PyObject* names, Source at);
  PythonCall(const PythonCall&) = delete;
  PythonCall& operator=(const PythonCall&) = delete;

  const detail::Arguments& arguments() const { return arguments_; }
  const Tree& tree() const { return *tree_; }

 private:
  const Signature& signature_;
  SharedTree tree_;
  detail::Arguments arguments_;
};

// The arguments of a trace as Python objects, in the order of the parameters.
std::vector<nb::object> rebuilt_arguments(const Tree& tree,
                                          std::span<const detail::Argument> leaves);

// What a traced function returned, taken apart.
detail::TraceResult taken_result(nb::handle result, const std::string& title, Source at);
// A result of a call, put together. Consumes the leaves.
PyObject* filled_result(const Tree& tree, std::span<Tensor> leaves);

}  // namespace tidemark::python
