// Ops with a side effect and no result: prints and checks. Passes keep them, in program order.
#pragma once

#include "tidemark/ops/op_def.h"
#include "tidemark/ops/program.h"

namespace tidemark::ops {

// In the text of `print` and `check_index`: insert the next operand here. Other items are character
// codes.
inline constexpr int64_t kOperandHere = -1;

inline constexpr NamedOp assert_that = {
    .name = "assert_that",
    .brief =
        "An error with this text where the first operand is not true throughout; shows the "
        "other operands.",
    .family = Family::effect,
    .arity = -1,
    .results = 0,
    .attrs = kTextAttr,
    .no_gradient = kProgramOnly,
    .effect = Effect::assert_that,
};
// The text contains one kOperandHere, for the index.
inline constexpr AttrDef kCheckIndexAttrs[] = {{"text", AttrKind::text}, {"size", AttrKind::size}};
inline constexpr NamedOp check_index = {
    .name = "check_index",
    .brief = "An error with this text where an index points outside an axis of this size.",
    .family = Family::effect,
    .results = 0,
    .attrs = kCheckIndexAttrs,
    .no_gradient = kProgramOnly,
    .effect = Effect::check_index,
};
inline constexpr NamedOp check_numerics = {
    .name = "check_numerics",
    .brief = "An error with this text where an element is infinite or NaN.",
    .family = Family::effect,
    .results = 0,
    .attrs = kTextAttr,
    .no_gradient = kProgramOnly,
    .effect = Effect::check_numerics,
};
inline constexpr NamedOp print = {
    .name = "print",
    .brief = "A line of text with the operands in it.",
    .family = Family::effect,
    .arity = -1,
    .results = 0,
    .attrs = kTextAttr,
    .no_gradient = kProgramOnly,
    .effect = Effect::print,
};

inline constexpr const NamedOp* kEffectOps[] = {&assert_that, &check_index, &check_numerics,
                                                &print};

}  // namespace tidemark::ops
