// What tells one trace of a function from another: the types of its arguments' leaves, of which
// some sizes may be open. Internal to the library.
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
  uint64_t repeats = 0;  // Axes along which a view repeats one element: a sum over them multiplies.
};
LeafType leaf_type(const Argument& argument, Source at);
// "f32[2, 3]", "size 4", "a float", "nothing"
std::string text_of(const LeafType& leaf);

// How a number comes into a program: exact, whatever dtype it meets there.
DType number_dtype(Weak weak);

// A size among the leaves: an axis of a tensor, or a Dim, whose axis is -1.
struct SizePlace {
  int32_t leaf = 0, axis = 0;
  friend auto operator<=>(const SizePlace&, const SizePlace&) = default;
};
using LeafTypes = std::vector<LeafType>;
Dim size_at(const LeafTypes& leaves, SizePlace place);
// The same of a call, whose leaf is a tensor with bytes or a Dim.
Dim size_at(std::span<const Argument> leaves, SizePlace place);
void set_size(LeafTypes& leaves, SizePlace place, Dim size);
// Every place of these leaves.
std::vector<SizePlace> places_of(const LeafTypes& leaves);
// "argument 0, dimension 1"; "argument 2" where it is a Dim.
std::string text_of(SizePlace place, const std::vector<std::string>& paths);

// The same but for sizes.
bool are_alike(const LeafTypes& a, const LeafTypes& b);
// Alike, with equal sizes wherever none is open.
bool match(const LeafTypes& leaves, const LeafTypes& known, const std::vector<SizePlace>& open);
// The same of a call's leaves, without looking up more than it takes: false also where a leaf is no
// tensor with bytes.
bool match(std::span<const Argument> leaves, const LeafTypes& known,
           const std::vector<SizePlace>& open);

// A UserError where the tensors among the leaves are not what the signature says.
void check_signature(const std::vector<TensorSpec>& signature, const LeafTypes& leaves,
                     const Arguments& arguments, const std::string& title, Source at);
// The places that a signature opens.
std::vector<SizePlace> open_places(const std::vector<TensorSpec>& signature,
                                   const LeafTypes& leaves);

}  // namespace tidemark::detail
