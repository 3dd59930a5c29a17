// Ops that only programs have: literals, sizes, groups, control flow. Their typing is
// done where they are made, and passes and lowerings know them by name.
#pragma once

#include "tidemark/ops/contract.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/structure.h"

namespace tidemark::ops {

inline constexpr std::string_view kProgramOnly = "it is part of programs only";

inline constexpr AttrDef kConstantAttrs[] = {
    {"dtype", AttrKind::dtype}, {"real", AttrKind::number}, {"whole", AttrKind::integer}};
// What a node of control flow hands to its regions stands in its inputs in the order below; then
// come the captured values that every region also takes, last.
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
// Nodes fused into one kernel: its region's parameters are its inputs.
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
// Inputs: the number of trips (i64, rank 0) where `counted`, the carries, the arrays walked one
// slice of the first axis a trip, captures. Regions: the body, with parameters trip (i64), carries,
// slices, captures, and results carries, elements to stack; where not `counted` and `trips` is not
// exact, a second region, the condition, with parameters trip, carries, captures and one bool.
// Results: the carries, then the stacked arrays. `trips`: the number of trips, or the most there
// may be, or -1. Exactly one of three holds: counted (an input gives the number), a condition
// region (while), neither (`trips` is the number).
// What a gradient needs of its trips are more results. Where `marks` is not 0, the result of that
// number says what was kept: i64[1], the number of trips gone; or i64[2 * slots], that number, how
// many checkpoints there are, and of each the trip that starts from it and the row it lies in.
// Then the checkpoints follow, one array [slots, ...] for each carry whose bit `kept` has. Row 0 is
// the state that the last trip started from. `save` and `amount` say what is kept (LoopAttrs), and
// `saved` how many of the last stacked arrays are there for a gradient.
inline constexpr NamedOp loop = {.name = "loop",
                                 .brief = "A region run again and again on values it carries.",
                                 .family = Family::control,
                                 .arity = -1,
                                 .attrs = kLoopAttrs,
                                 .no_gradient = kProgramOnly,
                                 .flow = Flow::loop};
// A loop walked backwards: its trips again, from checkpoints, and what goes back over each, from
// the last to the first. Inputs: the loop's marks, its checkpoints, one for each carry, the carries
// it started with, what goes back carries (backs), arrays walked with the loop's trips, captures.
// Regions: the loop's body, with parameters trip, carries, slices, captures, and results carries;
// going back, with parameters trip, carries at the start of the trip, backs, slices, captures, and
// results backs, elements to stack. Results: the backs, then the stacked arrays. `trips`: the
// number of trips; where `counted`, only the marks say that, and it is the most or -1. `reverse`:
// the loop walks its arrays from the last slice. For its own gradient it says whether going back is
// `linear` in the backs and the last `seeds` slices, and what the loop was to keep (`save`,
// `amount`). A back whose result is the start of a trip is the end of the trip before.
inline constexpr NamedOp reverse_loop = {.name = "reverse_loop",
                                         .brief = "A loop walked backwards from checkpoints.",
                                         .family = Family::control,
                                         .arity = -1,
                                         .attrs = kReverseAttrs,
                                         .no_gradient = kProgramOnly,
                                         .flow = Flow::reverse_loop};
// Inputs: arrays walked one slice of the first axis a trip, captures. Region: parameters slices,
// captures; results elements to stack. `alive`: how many trips may be under way at once; 0: one for
// each thread, where there are twice as many trips. `why`: for people, why a body goes slice by
// slice that was to take all at once.
inline constexpr NamedOp map = {.name = "map",
                                .brief = "A region run on every slice of arrays, apart.",
                                .family = Family::control,
                                .arity = -1,
                                .attrs = kMapAttrs,
                                .no_gradient = kProgramOnly,
                                .flow = Flow::map};

// A region run once, in the place of the node: what a gradient takes for one thing. Inputs: what
// the region takes. With one region, its gradient runs it again and keeps nothing of it. With two,
// the second is its gradient: parameters are the values that `saved` names, then the gradients of
// the first `outputs` results (further results are only kept for it); results are the gradients by
// the inputs that `by` names. `saved`: inputs, then results, counted on from the inputs.
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

inline constexpr AttrDef kTransferAttrs[] = {{"memory", AttrKind::integer}};
// The operand in another memory; 0 is the host's. Every other node computes in the memory of its
// operands; control flow, effects and results of regions are the host's.
inline constexpr NamedOp transfer = {.name = "transfer",
                                     .brief = "The operand copied to another memory.",
                                     .family = Family::piece,
                                     .attrs = kTransferAttrs,
                                     .infer = rule::infer_stop_gradient,
                                     .no_gradient = kProgramOnly,
                                     .transfers = true};

inline constexpr const NamedOp* kProgramOps[] = {&accumulate, &call,    &cond, &constant,
                                                 &group,      &loop,    &map,  &reverse_loop,
                                                 &size_value, &transfer};

}  // namespace tidemark::ops
