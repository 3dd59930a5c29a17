// The types of a call's leaves, which select the trace; some sizes may be open. Internal to the
// library.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "tidemark/function/function_call.h"
#include "tidemark/ops/typing.h"
#include "tidemark/types/array_ref.h"

namespace tidemark::detail {

struct LeafType {
  TensorType type = {};
  Weak weak = Weak::no;
  bool is_size = false;
  Dim size = 0;  // Of a Dim.
  bool is_empty = false;
  uint64_t repeats = 0;  // A bit for each broadcast axis: a sum over these multiplies.
  int32_t memory = 0;    // Where its bytes lie; kAnyMemory of a spec.

  static constexpr int32_t kAnyMemory = -1;
};
LeafType leaf_type(const Argument& argument, Source at);
// "f32[2, 3]", "size 4", "a float", "nothing"
std::string text_of(const LeafType& leaf);

// The dtype in which a plain number is passed to a program: wide enough to be exact.
DType number_dtype(Weak weak);

// The position of a size among the leaves: an axis of a tensor, or a Dim, whose axis is -1.
struct SizePlace {
  int32_t leaf = 0, axis = 0;
  friend auto operator<=>(const SizePlace&, const SizePlace&) = default;
};
using LeafTypes = std::vector<LeafType>;
Dim size_at(const LeafTypes& leaves, SizePlace place);
// The size at that position in a call, whose leaf is a concrete tensor or a Dim.
Dim size_at(std::span<const Argument> leaves, SizePlace place);
void set_size(LeafTypes& leaves, SizePlace place, Dim size);
// The positions of all sizes of these leaves.
std::vector<SizePlace> places_of(const LeafTypes& leaves);
// "argument 0, dimension 1"; "argument 2" for a Dim.
std::string text_of(SizePlace place, const std::vector<std::string>& paths);

// Whether two types are equal except for sizes.
bool are_alike(const LeafTypes& a, const LeafTypes& b);
// Whether they are also equal in all sizes that are not open.
bool match(const LeafTypes& leaves, const LeafTypes& known, const std::vector<SizePlace>& open);
// The same for a call's leaves, computed lazily; false also if a leaf is not a concrete tensor.
bool match(std::span<const Argument> leaves, const LeafTypes& known,
           const std::vector<SizePlace>& open);

// A UserError if the tensors among the leaves do not match the signature.
void check_signature(const std::vector<TensorSpec>& signature, const LeafTypes& leaves,
                     const Arguments& arguments, const std::string& title, Source at);
// The positions of the open sizes of a signature.
std::vector<SizePlace> open_places(const std::vector<TensorSpec>& signature,
                                   const LeafTypes& leaves);

}  // namespace tidemark::detail
