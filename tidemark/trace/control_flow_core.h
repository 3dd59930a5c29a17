// What control_flow.h does once the user's structures are taken apart: lists of tensors go in, and
// come out. In eager code bodies run as they are; in a trace they become regions of a node.
// Internal to the library.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/ops/loop_attrs.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

using Tensors = std::vector<Tensor>;
// Where the tensor of this number stands in the user's structure: "carry[1]".
using PathOf = std::function<std::string(size_t)>;

// ---- one of two ---------------------------------------------------------------------------------

// What a branch gives is a value of its own, not a view that repeats: as in a function.
Tensor not_a_view(const Tensor& tensor, Source at);

// The condition as a tensor; a UserError unless it is one bool.
Tensor condition_of(const Operand& chosen, std::string_view name, Source at);
// An index as a tensor; a UserError unless it is one integer.
Tensor index_of(const Operand& index, std::string_view name, Source at);
bool is_tracing();
Tensors trace_cond(const Tensor& chosen, const std::function<Tensors()>& if_true,
                   const std::function<Tensors()>& if_false, const PathOf& path, Source at);
[[noreturn]] void structure_differs(std::string_view problem, std::string_view one,
                                    std::string_view other, Source at);

// ---- again and again ----------------------------------------------------------------------------

struct LoopParts {
  std::string_view name;  // "while_loop"
  Tensors carries = {};
  PathOf carry_path = {};
  std::vector<Shape> invariants = {};
  // Takes and gives the carries; gives then the elements to stack, one a trip. The number is that
  // of the trip, from `lower` on, where there are bounds.
  std::function<Tensors(const Tensor& number, Tensors carries, Tensors slices)> body = {};
  PathOf element_path = {};
  std::function<Tensor(const Tensors& carries)> condition = {};
  Dim trips = -1;                 // The number of trips, or the most where there is a condition.
  Tensor lower = {}, upper = {};  // Bounds instead of a number of trips.
  Tensors walked = {};            // A trip gets one slice of the first axis of each.
  bool reverse = false;
  // What is kept for the gradient, and how much of it.
  LoopAttrs::Save save = LoopAttrs::Save::automatic;
  int64_t save_amount = 0;
};
// The carries, then the stacked elements.
Tensors run_loop(LoopParts parts, Source at);

struct MapParts {
  std::string_view name;
  Tensors walked = {};
  std::function<Tensors(Tensors slices)> body = {};
  PathOf element_path = {};
  Dim trips = 0;
  Dim alive = 1;             // Trips that may be under way at once.
  bool all_at_once = false;  // The body on whole arrays, where each of its ops can.
};
Tensors run_map(const MapParts& parts, Source at);

// How many slices there are; a UserError where the tensors do not have as many each.
Dim common_length(const Tensors& walked, const PathOf& path, std::string_view name, Source at);
// A UserError where a number given for an option is below 1 (or `least`).
void check_count(std::string_view name, std::string_view option, int64_t count, int64_t least,
                 Source at);

// ---- shared by eager and traced code ------------------------------------------------------------

Tensors trace_loop(const LoopParts& parts, Source at);
Tensors trace_map(const MapParts& parts, Source at);
void check_invariants(const LoopParts& parts, Source at);
// Whether a shape is one of those an invariant allows.
bool is_within(const Shape& shape, const Shape& invariant);
[[noreturn]] void carry_changed(const LoopParts& parts, size_t carry, const TensorType& before,
                                const TensorType& after, Source at);
// The dtype of fori_loop's number: that of the bounds, i32 where they are plain numbers.
DType number_dtype_of(const LoopParts& parts, Source at);

}  // namespace tidemark::detail
