// Random draws, which depend on the key and the position alone, and ranges. A key is an i64 of rank
// 0, used as 64 bits.
#pragma once

#include "tidemark/ops/op_def.h"

namespace tidemark::ops {

namespace rule {
TensorType infer_draw(const InferContext& context);
TensorType infer_draw_by_element(const InferContext& context);
TensorType infer_filled(const InferContext& context);
TensorType infer_fold(const InferContext& context);
void reference_arange(const ReferenceContext& context);
}  // namespace rule

inline constexpr AttrDef kArangeAttrs[] = {{"shape", AttrKind::sizes, AttrRole::shape},
                                           {"dtype", AttrKind::dtype},
                                           {"start", AttrKind::number},
                                           {"step", AttrKind::number},
                                           // Integers are exact: where all are whole, the two
                                           // numbers that count.
                                           {"whole", AttrKind::boolean},
                                           {"whole_start", AttrKind::integer},
                                           {"whole_step", AttrKind::integer}};
// Of the whole numbers 0, 1, ..., count - 1.
Attrs arange_attrs(Dim count, DType dtype);

inline constexpr AttrDef kDrawAttrs[] = {{"shape", AttrKind::sizes, AttrRole::shape},
                                         {"dtype", AttrKind::dtype},
                                         {"a", AttrKind::number},
                                         {"b", AttrKind::number}};

// What is drawn of uniform numbers by a parameter for each element.
enum class Drawn : int64_t {
  log_gamma,  // The logarithm of a gamma draw, by alpha.
  poisson,    // By the rate.
};
inline constexpr AttrDef kByElementAttrs[] = {{"shape", AttrKind::sizes, AttrRole::shape},
                                              {"dtype", AttrKind::dtype},
                                              {"drawn", AttrKind::integer}};
inline constexpr AttrDef kIntegersAttrs[] = {{"shape", AttrKind::sizes, AttrRole::shape},
                                             {"dtype", AttrKind::dtype},
                                             {"low", AttrKind::integer},
                                             {"high", AttrKind::integer}};

inline constexpr std::string_view kNoOperand = "it has no operand to differentiate by";
inline constexpr std::string_view kOfAKey = "keys are not differentiable";
inline constexpr std::string_view kOfADraw = "draws are constants, also by their parameters";

inline constexpr CallDef kArangeCalls[] = {
    {"arange", "stop: tensor", "The numbers from 0 up to, but not including, stop."},
    {"arange", "start: tensor, stop: tensor, step: tensor = 1, dtype: dtype = none"}};
inline constexpr NamedOp arange = {
    .name = "arange",
    .brief =
        "start + i * step: in integers where all are whole, else in f64, rounded once to the "
        "dtype.",
    .family = Family::random,
    .arity = 0,
    .attrs = kArangeAttrs,
    .calls = kArangeCalls,
    .infer = rule::infer_filled,
    .no_gradient = kNoOperand,
    .reference = rule::reference_arange,
    .routine = Routine::arange,
};
inline constexpr NamedOp random_bernoulli = {
    .name = "random_bernoulli",
    .brief = "True with probability a.",
    .family = Family::random,
    .arity = 1,
    .attrs = kDrawAttrs,
    .infer = rule::infer_draw,
    .no_gradient = kOfAKey,
    .routine = Routine::random_bernoulli,
};
inline constexpr NamedOp random_fold = {
    .name = "random_fold",
    .brief = "The key of the child of a key that has this number.",
    .family = Family::random,
    .arity = 2,
    .infer = rule::infer_fold,
    .no_gradient = kOfAKey,
    .routine = Routine::random_fold,
};
inline constexpr NamedOp random_by_element = {
    .name = "random_by_element",
    .brief = "Draws of a distribution with a parameter for each, in f64.",
    .family = Family::random,
    .arity = 2,
    .attrs = kByElementAttrs,
    .infer = rule::infer_draw_by_element,
    .no_gradient = kOfADraw,
    // Uniform draws, as many as each element needs.
    .routine = Routine::random_uniform,
};
inline constexpr NamedOp random_integers = {
    .name = "random_integers",
    .brief = "Whole numbers drawn uniformly from [low, high).",
    .family = Family::random,
    .arity = 1,
    .attrs = kIntegersAttrs,
    .infer = rule::infer_draw,
    .no_gradient = kOfAKey,
    .routine = Routine::random_integers,
};
inline constexpr NamedOp random_normal = {
    .name = "random_normal",
    .brief = "Draws from the normal distribution of mean a and standard deviation b.",
    .family = Family::random,
    .arity = 1,
    .attrs = kDrawAttrs,
    .infer = rule::infer_draw,
    .no_gradient = kOfAKey,
    .routine = Routine::random_normal,
};
inline constexpr NamedOp random_permutation = {
    .name = "random_permutation",
    .brief = "The numbers from 0 up, each once, in a drawn order.",
    .family = Family::random,
    .arity = 1,
    .attrs = kDrawAttrs,
    .infer = rule::infer_draw,
    .no_gradient = kOfAKey,
    .routine = Routine::random_permutation,
};
inline constexpr NamedOp random_uniform = {
    .name = "random_uniform",
    .brief = "Draws spread evenly over [a, b).",
    .family = Family::random,
    .arity = 1,
    .attrs = kDrawAttrs,
    .infer = rule::infer_draw,
    .no_gradient = kOfAKey,
    .routine = Routine::random_uniform,
};

inline constexpr const NamedOp* kRandomOps[] = {
    &arange,          &random_bernoulli, &random_by_element,  &random_fold,
    &random_integers, &random_normal,    &random_permutation, &random_uniform};

}  // namespace tidemark::ops
