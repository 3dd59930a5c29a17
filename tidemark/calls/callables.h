// Everything that users call on tensors, as data: op objects (td::tanh), functions of one op
// (td::reshape), functions made of several (td::layer_norm), control flow (td::scan), prints and
// checks. Documentation, `tidemark ops` and bindings for other languages are made from it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tidemark/ops/op_def.h"

namespace tidemark {

// "axis: int = -1". Fields of options stand in the list as arguments of their own, in their order.
struct Argument {
  std::string_view name;
  // tensor, tensors, numbers, int, ints, pairs, size, shape, shapes, axes, dtype, float, bool,
  // text, key, save, callback; function, functions: of the user; structure: tensors in a type of
  // the user's; parts: texts, numbers and tensors; or the words that it may be: "valid|same".
  std::string_view kind;
  // Empty: it must be given. "none": it may be left out, and the brief says what that means.
  std::string_view fallback = {};
};

struct Callable {
  std::string_view name;       // As in C++: "softmax", "random::normal".
  std::string_view arguments;  // "x: tensor, axis: int = -1"
  std::string_view results;    // "tensor", or with names where there are several.
  std::string_view brief;      // One sentence.
  const OpDef* op = nullptr;   // Null where it is made of several.

  std::vector<Argument> argument_list() const;
};

// Op objects in the order of the catalogue, then functions in the order of their headers. A name
// with several signatures comes once for each.
std::span<const Callable> callables();

}  // namespace tidemark
