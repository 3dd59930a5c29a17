// Everything that users call on tensors, as data: op objects (td::tanh), functions of one op
// (td::reshape), functions made of several (td::layer_norm), control flow (td::scan), prints and
// checks. Documentation, `tidemark ops` and bindings for other languages are made from it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tidemark/ops/op_def.h"

namespace tidemark {

// "axis: int = -1". The fields of an options struct are listed as arguments, in their order.
struct Argument {
  std::string_view name;
  // tensor, tensors, numbers, int, ints, pairs, size, shape, shapes, axes, dtype, float, bool,
  // text, key, save, callback; function and functions: of the user; structure: a user's type with
  // tensors in it; parts: texts, numbers and tensors; or a choice of words: "valid|same".
  std::string_view kind;
  // Empty: the argument is required. "none": it is optional, and the brief says what leaving it out
  // means.
  std::string_view fallback = {};
};

struct Callable {
  std::string_view name;       // As in C++: "softmax", "random::normal".
  std::string_view arguments;  // "x: tensor, axis: int = -1"
  std::string_view results;    // "tensor", or names and kinds if there are several.
  std::string_view brief;      // One sentence.
  const OpDef* op = nullptr;   // Null for a composite.

  std::vector<Argument> argument_list() const;
};

// Op objects and then functions of one op, both in the order of the catalogue; then composites in
// the order of their headers. A name with several signatures has several entries.
std::span<const Callable> callables();

}  // namespace tidemark
