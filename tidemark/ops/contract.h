// Contractions: matrix products and convolutions. Each output is a sum over k in blocks of 256; a
// block is an fma chain from zero in increasing k, and block results are added in order.
#pragma once

#include <algorithm>

#include "tidemark/loops/product_block.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::ops {

// The attributes of a convolution by name, an item for each axis of the image: (height, width), or
// (depth, height, width).
struct ConvSpec {
  static constexpr size_t kMostAxes = 3;
  int64_t stride[kMostAxes] = {1, 1, 1};
  // Open if they depend on an open size of the image. Negative padding crops.
  Dim pad_low[kMostAxes] = {0, 0, 0};
  Dim pad_high[kMostAxes] = {0, 0, 0};
  int64_t dilation[kMostAxes] = {1, 1, 1};
  int64_t groups = 1;
  // Pixels lie this far apart, with nothing between them: the gradient by the image is the
  // convolution of a gradient that is spread by the strides. An empty list says 1 for all axes.
  int64_t spread[kMostAxes] = {1, 1, 1};
  // Whether it adds up channel by channel (contract.h in emit/contract), so that parts of the
  // channels can be computed one after another. Of flat images of f32 or f64 in one group, which
  // are not spread.
  bool by_channel = false;
  // Of the gradient by the kernel (conv_kernel): the sizes of the windows. Else none.
  AxisList taps = {};
  size_t axes = 2;

  static ConvSpec from(const Attrs& attrs);
  Attrs attrs() const;
  // The output's size along axis 0, 1, ... of the image.
  Dim out_size(size_t axis, Dim in, int64_t kernel) const;
  bool is_spread() const {
    return std::any_of(spread, spread + axes, [](int64_t apart) { return apart > 1; });
  }
};

namespace rule {
TensorType infer_matmul(const InferContext& context);
TensorType infer_distances(const InferContext& context);
TensorType infer_weighted_differences(const InferContext& context);
TensorType infer_accumulate(const InferContext& context);
TensorType infer_conv2d(const InferContext& context);
TensorType infer_conv3d(const InferContext& context);
TensorType infer_accumulate_conv2d(const InferContext& context);
TensorType infer_conv_kernel(const InferContext& context);
Term grad_matmul(const GradContext& context, int index);
Term grad_distances(const GradContext& context, int index);
Term grad_weighted_differences(const GradContext& context, int index);
Term grad_conv(const GradContext& context, int index);
Term grad_conv_kernel(const GradContext& context, int index);
void reference_matmul(const ReferenceContext& context);
void reference_distances(const ReferenceContext& context);
void reference_weighted_differences(const ReferenceContext& context);
void reference_accumulate(const ReferenceContext& context);
void reference_conv(const ReferenceContext& context);
void reference_accumulate_conv2d(const ReferenceContext& context);
void reference_conv_kernel(const ReferenceContext& context);
}  // namespace rule

inline constexpr AttrDef kConvAttrs[] = {{"stride", AttrKind::integers, AttrRole::window},
                                         {"pad_low", AttrKind::sizes, AttrRole::window_padding},
                                         {"pad_high", AttrKind::sizes, AttrRole::window_padding},
                                         {"dilation", AttrKind::integers, AttrRole::window},
                                         {"groups", AttrKind::integer, AttrRole::groups},
                                         {"spread", AttrKind::integers},
                                         {"by_channel", AttrKind::boolean}};

inline constexpr CallDef kMatmulCalls[] = {
    {"matmul", "a: tensor, b: tensor, transpose_a: bool = false, transpose_b: bool = false"}};
inline constexpr NamedOp matmul = {
    .name = "matmul",
    .brief = "Matrix products over the last two axes; the others broadcast.",
    .family = Family::contract,
    .arity = 2,
    .accepts = TypeSet::numbers,
    .batching = Batching::broadcasts,
    .cutting = Cutting::product,
    .calls = kMatmulCalls,
    .infer = rule::infer_matmul,
    .grad = rule::grad_matmul,
    .reference = rule::reference_matmul,
    .routine = Routine::matmul,
};
// A product of matrices in which distances take the place of sums of products.
inline constexpr AttrDef kDistancesAttrs[] = {{"euclidean", AttrKind::boolean}};
inline constexpr NamedOp distances = {
    .name = "distances",
    .brief = "Euclidean distances of the rows of a from the columns of b, over the last two axes.",
    .family = Family::contract,
    .arity = 2,
    .accepts = TypeSet::floats,
    .batching = Batching::broadcasts,
    .attrs = kDistancesAttrs,
    .infer = rule::infer_distances,
    .grad = rule::grad_distances,
    .reference = rule::reference_distances,
    .routine = Routine::distances,
};
// What the slopes of distances add up, without the loss of digits that a difference of two products
// would have where points are close.
inline constexpr NamedOp weighted_differences = {
    .name = "weighted_differences",
    .brief =
        "For each row of a, the sum over the rows of b of their differences from it, by weights "
        "of [rows of a, rows of b].",
    .family = Family::contract,
    .arity = 3,
    .accepts = TypeSet::floats,
    .batching = Batching::broadcasts,
    .infer = rule::infer_weighted_differences,
    .grad = rule::grad_weighted_differences,
    .reference = rule::reference_weighted_differences,
    .routine = Routine::weighted_differences,
};
inline constexpr CallDef kConv2dCalls[] = {
    {"conv2d",
     "x: tensor, w: tensor, strides: ints = [1, 1], padding: valid|same|pairs = valid, dilations: "
     "ints = [1, 1], groups: int = 1, layout: nhwc|nchw = nhwc"}};
inline constexpr NamedOp conv2d = {
    .name = "conv2d",
    .brief = "Windows of an NHWC image times a [height, width, in, out] kernel.",
    .family = Family::contract,
    .arity = 2,
    .accepts = TypeSet::numbers,
    .cutting = Cutting::convolution,
    .attrs = kConvAttrs,
    .calls = kConv2dCalls,
    .infer = rule::infer_conv2d,
    .grad = rule::grad_conv,
    .reference = rule::reference_conv,
    .routine = Routine::conv,
};
inline constexpr CallDef kConv3dCalls[] = {
    {"conv3d",
     "x: tensor, w: tensor, strides: ints = [1, 1, 1], padding: valid|same|pairs = valid, "
     "dilations: ints = [1, 1, 1], groups: int = 1, layout: nhwc|nchw = nhwc"}};
inline constexpr NamedOp conv3d = {
    .name = "conv3d",
    .brief = "Windows of an NDHWC image times a [depth, height, width, in, out] kernel.",
    .family = Family::contract,
    .arity = 2,
    .accepts = TypeSet::numbers,
    .attrs = kConvAttrs,
    .calls = kConv3dCalls,
    .infer = rule::infer_conv3d,
    .grad = rule::grad_conv,
    .reference = rule::reference_conv,
    .routine = Routine::conv,
};

// The kernel that would have this gradient. The sums of a convolution in groups have no form as a
// convolution of other operands without copies of these.
inline constexpr AttrDef kConvKernelAttrs[] = {
    {"stride", AttrKind::integers, AttrRole::window},
    {"pad_low", AttrKind::sizes, AttrRole::window_padding},
    {"pad_high", AttrKind::sizes, AttrRole::window_padding},
    {"dilation", AttrKind::integers, AttrRole::window},
    {"groups", AttrKind::integer, AttrRole::groups},
    {"spread", AttrKind::integers},
    {"by_channel", AttrKind::boolean},
    {"taps", AttrKind::integers, AttrRole::window}};
inline constexpr NamedOp conv_kernel = {
    .name = "conv_kernel",
    .brief = "The gradient of a convolution by its kernel, of an image and that by the result.",
    .family = Family::contract,
    .arity = 2,
    .accepts = TypeSet::floats,
    .attrs = kConvKernelAttrs,
    .infer = rule::infer_conv_kernel,
    .grad = rule::grad_conv_kernel,
    .reference = rule::reference_conv_kernel,
    .routine = Routine::conv,
};

// Only in programs. A product computed in parts along k, each but the last a multiple of 256 long
// and starting from -0, is bit-identical to the whole product. The result may alias the first
// operand.
inline constexpr NamedOp accumulate = {
    .name = "accumulate",
    .brief = "The first operand plus the product of the others, block by block of k.",
    .family = Family::contract,
    .arity = 3,
    .accepts = TypeSet::numbers,
    .infer = rule::infer_accumulate,
    .no_gradient = "it is part of programs only",
    .reference = rule::reference_accumulate,
    .routine = Routine::accumulate,
    .updates_first = true,
};

// The same for a convolution by channel, in parts along the channels.
inline constexpr NamedOp accumulate_conv2d = {
    .name = "accumulate_conv2d",
    .brief = "The first operand plus the convolution of the others, channel by channel.",
    .family = Family::contract,
    .arity = 3,
    .accepts = TypeSet::numbers,
    .attrs = kConvAttrs,
    .infer = rule::infer_accumulate_conv2d,
    .no_gradient = "it is part of programs only",
    .reference = rule::reference_accumulate_conv2d,
    .routine = Routine::accumulate_conv2d,
    .updates_first = true,
};

inline constexpr const NamedOp* kContractOps[] = {&conv2d,    &conv3d, &conv_kernel,
                                                  &distances, &matmul, &weighted_differences};

}  // namespace tidemark::ops
