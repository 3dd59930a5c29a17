// Ops that occur only in programs: literals, sizes, fusion groups, control flow. Their types are
// set by the code that creates the nodes.
#pragma once

#include "tidemark/ops/contract.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/structure.h"

namespace tidemark::ops {

inline constexpr std::string_view kProgramOnly = "it is part of programs only";

inline constexpr AttrDef kConstantAttrs[] = {
    {"dtype", AttrKind::dtype}, {"real", AttrKind::number}, {"whole", AttrKind::integer}};
// The inputs of a control-flow node come in the order described below. The captures, which every
// region takes too, come last.
inline constexpr AttrDef kLoopAttrs[] = {
    {"carries", AttrKind::integer}, {"slices", AttrKind::integer},  {"stacked", AttrKind::integer},
    {"trips", AttrKind::size},      {"reverse", AttrKind::boolean}, {"counted", AttrKind::boolean},
    {"save", AttrKind::integer},    {"amount", AttrKind::integer},  {"saved", AttrKind::integer},
    {"marks", AttrKind::integer},   {"kept", AttrKind::integer}};
inline constexpr AttrDef kReverseAttrs[] = {
    {"carries", AttrKind::integer}, {"backs", AttrKind::integer},  {"slices", AttrKind::integer},
    {"stacked", AttrKind::integer}, {"trips", AttrKind::size},     {"reverse", AttrKind::boolean},
    {"counted", AttrKind::boolean}, {"linear", AttrKind::boolean}, {"seeds", AttrKind::integer},
    {"save", AttrKind::integer},    {"amount", AttrKind::integer}};
inline constexpr AttrDef kMapAttrs[] = {{"slices", AttrKind::integer},
                                        {"trips", AttrKind::size},
                                        {"alive", AttrKind::size},
                                        {"why", AttrKind::text}};
inline constexpr AttrDef kTextAttr[] = {{"text", AttrKind::text}};

// One number, rank 0: `real` where the dtype is a float, else `whole`.
inline constexpr NamedOp constant = {.name = "constant",
                                     .brief = "A number.",
                                     .family = Family::source,
                                     .arity = 0,
                                     .attrs = kConstantAttrs,
                                     .no_gradient = kProgramOnly,
                                     .literal = Literal::number};
// A fusion group: the nodes of its region become one kernel. The region's parameters are its
// inputs.
inline constexpr NamedOp group = {.name = "group",
                                  .brief = "Nodes that become one kernel.",
                                  .family = Family::control,
                                  .arity = -1,
                                  .no_gradient = kProgramOnly,
                                  .flow = Flow::group};
// Inputs: the condition (bool, rank 0), captures. Regions: then, else; parameters: captures.
inline constexpr NamedOp cond = {.name = "cond",
                                 .brief = "One of two regions, chosen by a bool.",
                                 .family = Family::control,
                                 .arity = -1,
                                 .no_gradient = kProgramOnly,
                                 .flow = Flow::cond};
// Inputs: the number of trips (i64, rank 0) if `counted`, the carries, the arrays of which each
// trip reads one slice of the first axis, captures. Regions: the body, with parameters trip (i64),
// carries, slices, captures, and results carries, elements to stack. A while loop has a second
// region, the condition, with parameters trip, carries, captures, and one bool as result. Results:
// the carries, then the stacked arrays. `trips`: the number of trips, or an upper bound, or -1. A
// loop is of exactly one of three kinds: counted (an input is the number of trips), while (it has a
// condition region), or fixed (`trips` is the number). Residuals of a gradient are further results.
// If `marks` is not 0, the result with that index describes them: i64[1] holds the number of trips
// that ran; i64[2 * slots] holds that number, the number of checkpoints, and for each checkpoint
// the trip that starts from it and its row. The checkpoints follow, one array [slots, ...] for each
// carry whose bit is set in `kept`. Row 0 is the state at the start of the last trip. `save` and
// `amount` are the choice of what to store (LoopAttrs); `saved` is how many of the last stacked
// arrays are residuals.
inline constexpr NamedOp loop = {.name = "loop",
                                 .brief = "A region run again and again on values it carries.",
                                 .family = Family::control,
                                 .arity = -1,
                                 .attrs = kLoopAttrs,
                                 .no_gradient = kProgramOnly,
                                 .flow = Flow::loop};
// The backward pass of a loop that stored checkpoints: from the last trip to the first, it
// recomputes the state at the start of the trip from a checkpoint and runs the backward region.
// Inputs: the loop's marks; its checkpoints, one array for each carry; the initial carries; the
// carries of the backward pass ("backs"); arrays of which each trip reads a slice; captures.
// Regions: the loop's body, with parameters trip, carries, slices, captures, and results carries;
// the backward region, with parameters trip, carries at the start of the trip, backs, slices,
// captures, and results backs, elements to stack. Results: the backs, then the stacked arrays.
// `trips`: the number of trips; if `counted`, the marks hold the number and `trips` is an upper
// bound or -1. `reverse`: the loop reads its arrays from the last slice. For the gradient of this
// node itself: whether the backward region is `linear` in the backs and the last `seeds` slices,
// and what the loop was asked to save (`save`, `amount`).
inline constexpr NamedOp reverse_loop = {.name = "reverse_loop",
                                         .brief = "A loop walked backwards from checkpoints.",
                                         .family = Family::control,
                                         .arity = -1,
                                         .attrs = kReverseAttrs,
                                         .no_gradient = kProgramOnly,
                                         .flow = Flow::reverse_loop};
// Inputs: arrays of which each trip reads one slice of the first axis, captures. Region: parameters
// slices, captures; results elements to stack. `alive`: how many trips may run at once; 0: one for
// each thread, if there are at least twice as many trips as threads; open: as many as the budget
// has room for, or the same as 0 without one. `why`: for reports, the reason why the body of a
// vectorized_map could not be batched.
inline constexpr NamedOp map = {.name = "map",
                                .brief = "A region run on every slice of arrays, apart.",
                                .family = Family::control,
                                .arity = -1,
                                .attrs = kMapAttrs,
                                .no_gradient = kProgramOnly,
                                .flow = Flow::map};

// A region that runs once and that gradients treat as a unit. Inputs: the region's parameters. With
// one region, the gradient rematerializes it: it runs again and stores no residuals. With two, the
// second is its gradient: its parameters are the values that `saved` names, then the gradients of
// the first `outputs` results (further results are residuals only); its results are the gradients
// by the inputs that `by` names. `saved` numbers the inputs, then the results.
inline constexpr AttrDef kCallAttrs[] = {
    {"outputs", AttrKind::integer}, {"saved", AttrKind::integers}, {"by", AttrKind::integers}};
inline constexpr NamedOp call = {.name = "call",
                                 .brief = "A region run once, with a gradient of its own.",
                                 .family = Family::control,
                                 .arity = -1,
                                 .attrs = kCallAttrs,
                                 .no_gradient = kProgramOnly,
                                 .flow = Flow::call};

inline constexpr AttrDef kSizeAttrs[] = {{"size", AttrKind::size}, {"dtype", AttrKind::dtype}};
// An open size as a number, rank 0. It becomes a constant when the sizes are known.
inline constexpr NamedOp size_value = {.name = "size_value",
                                       .brief = "An open size.",
                                       .family = Family::source,
                                       .arity = 0,
                                       .attrs = kSizeAttrs,
                                       .no_gradient = kProgramOnly,
                                       .literal = Literal::size};

namespace rule {
Term grad_transfer(const GradContext& context, int index);
}

inline constexpr AttrDef kTransferAttrs[] = {{"memory", AttrKind::integer}};
// Copies the operand to another memory; 0 is the host's. Every node but the transfers computes in
// the memory of its operands; layout.h says where results of control flow lie.
inline constexpr NamedOp transfer = {.name = "transfer",
                                     .brief = "The operand copied to another memory.",
                                     .family = Family::piece,
                                     .attrs = kTransferAttrs,
                                     .infer = rule::infer_stop_gradient,
                                     .grad = rule::grad_transfer,
                                     .transfers = true};
// Copies the first operand to the memory of the second, whose elements are not read: the gradient
// of a transfer goes back to where the operand lies, which is known when the program is laid out.
inline constexpr NamedOp transfer_back = {
    .name = "transfer_back",
    .brief = "The first operand copied to the memory of the second.",
    .family = Family::piece,
    .arity = 2,
    .infer = rule::infer_stop_gradient,
    .grad = rule::grad_transfer,
    .transfers = true};

inline constexpr const NamedOp* kProgramOps[] = {&accumulate,
                                                 &accumulate_conv2d,
                                                 &call,
                                                 &cond,
                                                 &constant,
                                                 &group,
                                                 &loop,
                                                 &map,
                                                 &reverse_loop,
                                                 &size_value,
                                                 &transfer,
                                                 &transfer_back,
                                                 &view_as_complex,
                                                 &view_as_real};

}  // namespace tidemark::ops
