// The implementation of control_flow.h on lists of tensors, without the user's structures. In eager
// code bodies run directly; in a trace they become regions of a node. Internal to the library.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tidemark/ops/loop_attrs.h"
#include "tidemark/tensor/tensor.h"

namespace tidemark::detail {

using Tensors = std::vector<Tensor>;
// The path of tensor number i in the user's structure: "carry[1]".
using PathOf = std::function<std::string(size_t)>;

// ---- branches -----------------------------------------------------------------------------------

// A dense copy if the tensor is a broadcast: as in a function, the result of a branch has its own
// elements.
Tensor not_a_view(const Tensor& tensor, Source at);

// The condition as a tensor; throws a UserError unless it is one bool.
Tensor condition_of(const Operand& chosen, std::string_view name, Source at);
// An index as a tensor; throws a UserError unless it is one integer.
Tensor index_of(const Operand& index, std::string_view name, Source at);
bool is_tracing();
Tensors trace_cond(const Tensor& chosen, const std::function<Tensors()>& if_true,
                   const std::function<Tensors()>& if_false, const PathOf& path, Source at);

// A branch whose results are chosen after both sides were traced, as a rewritten `if` statement
// needs: what one side did not set is an empty tensor there, and becomes zeros.
struct BranchParts {
  std::string_view name;  // "if"
  std::function<void()> if_true = {}, if_false = {};
  std::function<std::pair<Tensors, Tensors>()> results = {};
  PathOf path = {};
};
Tensors trace_branch(const Tensor& chosen, const BranchParts& parts, Source at);
[[noreturn]] void structure_differs(std::string_view problem, std::string_view one,
                                    std::string_view other, Source at);

// ---- loops and maps -----------------------------------------------------------------------------

struct LoopParts {
  std::string_view name;  // "while_loop"
  Tensors carries = {};
  PathOf carry_path = {};
  std::vector<Shape> invariants = {};
  // Takes the carries and returns the next ones, followed by the elements to stack. `number` is the
  // number of the trip, counted from `lower` if there are bounds.
  std::function<Tensors(const Tensor& number, Tensors carries, Tensors slices)> body = {};
  PathOf element_path = {};
  std::function<Tensor(const Tensors& carries)> condition = {};
  Dim trips = -1;                 // The number of trips; a bound if there is a condition.
  Tensor lower = {}, upper = {};  // Bounds instead of a number of trips.
  Tensors walked = {};            // A trip gets one slice along the first axis of each.
  bool reverse = false;
  std::string_view shape_remedy = {};  // What to write if a carry changes its shape.
  // What is kept for the gradient: the kind and its number.
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
  Dim alive = 1;             // The number of bodies that may run at once; td::open: as many as fit.
  bool all_at_once = false;  // Batch the body, if each of its ops can be batched.
};
Tensors run_map(const MapParts& parts, Source at);

// The number of slices; throws a UserError unless all tensors have the same number.
Dim common_length(const Tensors& walked, const PathOf& path, std::string_view name, Source at);
// Throws a UserError if an option is less than `least`.
void check_count(std::string_view name, std::string_view option, int64_t count, int64_t least,
                 Source at);

// Refuses parallel_iterations beside an automatic chunk.
[[noreturn]] void chunk_is_automatic(std::string_view name, Source at);

// ---- shared by eager and traced code ------------------------------------------------------------

Tensors trace_loop(const LoopParts& parts, Source at);
Tensors trace_map(const MapParts& parts, Source at);
void check_invariants(const LoopParts& parts, Source at);
// Whether an invariant allows this shape.
bool is_within(const Shape& shape, const Shape& invariant);
[[noreturn]] void carry_changed(const LoopParts& parts, size_t carry, const TensorType& before,
                                const TensorType& after, Source at);
// The dtype of fori_loop's number: that of the bounds, or i32 if they are plain numbers.
DType number_dtype_of(const LoopParts& parts, Source at);

}  // namespace tidemark::detail
