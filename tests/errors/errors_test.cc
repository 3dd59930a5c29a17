// Every message a user can meet, with its exact text: a message nobody tests is a message nobody
// reads. "@" stands for the user's line.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/errors/expect_error.h"
#include "tidemark/api/create.h"
#include "tidemark/api/effect.h"
#include "tidemark/api/function.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/api/variable.h"

namespace td = tidemark;
using td::Tensor;

namespace {

Tensor floats(const td::Shape& shape) { return td::zeros(shape); }
Tensor wholes(const td::Shape& shape) { return td::zeros(shape, td::i32); }

TEST(Errors, OfShapesThatDoNotBroadcast) {
  const Tensor a = floats({2, 3}), b = floats({4}), c = floats({2, 1, 5});
  expect_error([&] { a + b; },
               "add: shapes [2, 3] and [4] do not broadcast (3 and 4 at axis -1)\n"
               "  at @\n  sizes must be equal, or one of them 1");
  expect_error([&] { td::where(a > 0, a, b); },
               "where: shapes [2, 3] and [4] do not broadcast (3 and 4 at axis -1)\n"
               "  at @\n  sizes must be equal, or one of them 1");
  expect_error([&] { td::broadcast_to(a, {3, 3}); },
               "broadcast_to: f32[2, 3] does not broadcast to [3, 3]\n"
               "  at @\n  sizes must be equal, or 1 in the operand");
  expect_error([&] { td::broadcast_to(c, {5}); },
               "broadcast_to: f32[2, 1, 5] does not broadcast to [5]\n"
               "  at @\n  sizes must be equal, or 1 in the operand");
  Tensor x = floats({3});
  expect_error([&] { x += a[0][{td::Slice{.end = 2}}]; },
               "add: shapes [3] and [2] do not broadcast (3 and 2 at axis -1)\n"
               "  at @\n  sizes must be equal, or one of them 1");
  EXPECT_TRUE(x.has_value()) << "a call that failed took its operand";
}

TEST(Errors, OfDTypes) {
  const Tensor x = floats({2}), yes = td::zeros({2}, td::boolean), n = wholes({2});
  expect_error([&] { td::subtract(yes, yes); },
               "subtract: takes numbers, got bool\n  at @\n  cast it first: td::cast(x, td::i32)");
  expect_error([&] { td::bitwise_and(x, n); },
               "bitwise_and: takes integers or bool, got f32\n"
               "  at @\n  cast it first: td::cast(x, td::i32)");
  expect_error([&] { td::left_shift(yes, yes); },
               "left_shift: takes integers, got bool\n"
               "  at @\n  cast it first: td::cast(x, td::i32)");
  expect_error([&] { td::matmul(td::zeros({2, 2}, td::boolean), td::zeros({2, 2}, td::boolean)); },
               "matmul: takes numbers, got bool\n  at @\n  cast it first: td::cast(x, td::i32)");
  expect_error([&] { td::conv2d(wholes({1, 3, 3, 1}), wholes({1, 1, 1, 1})); },
               "conv2d: takes floats, got i32\n  at @\n  cast it first: td::cast(x, td::f32)");
  expect_error([&] { td::gather(x, x); },
               "gather: indices must be integers, got f32[2]\n"
               "  at @\n  cast them: td::cast(indices, td::i32)");
  expect_error([&] { td::one_hot(x, 3); },
               "one_hot: indices must be integers, got f32[2]\n"
               "  at @\n  cast them: td::cast(indices, td::i32)");
}

TEST(Errors, OfNumbersThatDoNotFit) {
  const Tensor u = td::zeros({2}, td::u8), n = wholes({2});
  expect_error([&] { u + 300; },
               "add: 300 does not fit u8\n  at @\n  cast the tensor to a wider dtype first");
  expect_error([&] { u - 1 + -1; },
               "add: -1 does not fit u8\n  at @\n  cast the tensor to a wider dtype first");
  expect_error([&] { n * 3000000000; },
               "multiply: 3000000000 does not fit i32\n"
               "  at @\n  cast the tensor to a wider dtype first");
  expect_error([&] { Tensor(3000000000); },
               "3000000000 does not fit i32, the dtype of a plain integer\n"
               "  at @\n  give it a dtype: td::constant(n, td::i64)");
  constexpr uint64_t kMost = UINT64_MAX;
  const std::string too_large =
      "18446744073709551615 does not fit i64, in which plain integers are held\n"
      "  at @\n  give it as a float, static_cast<double>(n), or as a tensor: "
      "td::constant(std::vector<uint64_t>{n}, td::Shape{})";
  expect_error([&] { n + kMost; }, too_large);
  expect_error([&] { Tensor{kMost}; }, too_large);
  expect_error([&] { td::constant({uint64_t{1}, kMost}, td::i64); }, too_large);
  expect_error([&] { td::full({2}, kMost, td::f64); }, too_large);
  expect_error([&] { td::constant({1, 256}, td::u8); },
               "constant: 256 does not fit u8\n"
               "  at @\n  name a wider dtype: td::constant(values, td::i64)");
  expect_error([&] { td::ones({2}, td::i8) - 129; },
               "subtract: 129 does not fit i8\n  at @\n  cast the tensor to a wider dtype first");
  expect_error([&] { td::ones({2}, td::u64) * -1; },
               "multiply: -1 does not fit u64\n  at @\n  cast the tensor to a wider dtype first");
  expect_error([&] { td::arange(0, 40000, 1, td::i16); },
               "arange: 39999 does not fit i16\n"
               "  at @\n  name a wider dtype: td::arange(start, stop, step, td::i64)");
  expect_error([&] { td::random::integers({2}, {.high = 70000, .dtype = td::u16}); },
               "random::integers: [0, 70000) does not fit u16\n"
               "  at @\n  name a wider dtype: {.dtype = td::i64}");
  // A number of u64 beyond i64 does not count from the end.
  const Tensor far = td::constant(std::vector<uint64_t>{0, kMost});
  expect_error([&] { td::gather(n, far); },
               "gather: index 18446744073709551615 is out of range for axis 0 of i32[2]\n"
               "  at @\n  indices go from -2 to 1");
  expect_error(
      [&] { td::scatter_nd(td::reshape(far, {2, 1}), n, {5}); },
      "scatter_nd: index 18446744073709551615 is out of range for axis 0 of the shape [5]\n"
      "  at @\n  indices go from -5 to 4");
  expect_error([&] { td::full({2}, 300, td::u8); },
               "constant: 300 does not fit u8\n  at @\n  cast the tensor to a wider dtype first");
}

TEST(Errors, OfAxes) {
  const Tensor x = floats({2, 3});
  expect_error([&] { td::sum(x, 2); },
               "sum: f32[2, 3] has no axis 2\n  at @\n  axes go from -2 to 1");
  expect_error([&] { td::softmax(x, -3); },
               "softmax: f32[2, 3] has no axis -3\n  at @\n  axes go from -2 to 1");
  expect_error([&] { td::cumsum(floats({})); },
               "cumsum: f32[] has no axis 0\n  at @\n  it is a scalar");
  expect_error([&] { td::sort(floats({})); },
               "sort: f32[] has no axis -1\n  at @\n  it is a scalar");
  expect_error([&] { td::argsort(floats({2, 5}), 2); },
               "argsort: f32[2, 5] has no axis 2\n  at @\n  axes go from -2 to 1");
  expect_error([&] { td::top_k(floats({2, 5}), 6); },
               "top_k: k = 6, but axis 1 of f32[2, 5] has 5 elements\n"
               "  at @\n  k goes from 0 to the size of the axis");
  expect_error([&] { td::max(x, {0, -2}); },
               "max: axis 0 of f32[2, 3] is given twice\n"
               "  at @\n  name each axis once; negative ones count from the end");
  expect_error([&] { td::argmax(floats({2, 3, 4}), {0, 1}); },
               "argmax: takes one axis or none, got 2\n  at @\n  reshape the axes into one first");
  expect_error([&] { td::mean(x, 7); },
               "mean: f32[2, 3] has no axis 7\n  at @\n  axes go from -2 to 1");
  expect_error([&] { td::expand_dims(x, 4); },
               "expand_dims: f32[2, 3] has no axis 4\n  at @\n  axes go from -3 to 2");
  expect_error([&] { td::squeeze(x, 1); },
               "squeeze: axis 1 of f32[2, 3] has size 3, not 1\n"
               "  at @\n  to take one element of it use x[...]; to merge axes use td::reshape");
  expect_error([&] { td::transpose(x, {0, 0}); },
               "transpose: the order must name each of the 2 axes of f32[2, 3] once\n"
               "  at @\n  leave it out to reverse all axes");
  expect_error([&] { td::transpose(x, {0, 2}); },
               "transpose: f32[2, 3] has no axis 2\n  at @\n  axes go from -2 to 1");
  expect_error([&] { td::flip(x, 5); },
               "flip: f32[2, 3] has no axis 5\n  at @\n  axes go from -2 to 1");
  expect_error([&] { td::roll(x, {1, 2, 3}, {0, 1}); },
               "roll: 3 shifts of 2 axes\n  at @\n  give a shift for each axis, or one for all");
  expect_error([&] { td::roll(x, {1, 2}, {0, 2}); },
               "roll: f32[2, 3] has no axis 2\n  at @\n  axes go from -2 to 1");
}

TEST(Errors, OfReductionsOverNothing) {
  expect_error([&] { td::max(floats({0})); },
               "max: f32[0] has no elements along axis 0, so none can be selected\n"
               "  at @\n  check the size first, or add an element with td::concat or td::pad");
  expect_error([&] { td::argmin(floats({3, 0}), 1); },
               "argmin: f32[3, 0] has no elements along axis 1, so none can be selected\n"
               "  at @\n  check the size first, or add an element with td::concat or td::pad");
}

TEST(Errors, OfReshaping) {
  const Tensor x = floats({2, 3});
  expect_error(
      [&] { td::reshape(x, {4}); },
      "reshape: f32[2, 3] has 6 elements, [4] has 4\n"
      "  at @\n  the number of elements must not change; one size may be -1, which is inferred");
  expect_error(
      [&] { td::reshape(x, {4, -1}); },
      "reshape: f32[2, 3] has 6 elements, [4, ?] has a multiple of 4\n"
      "  at @\n  the number of elements must not change; one size may be -1, which is inferred");
  expect_error([&] { td::reshape(x, {-1, -1}); },
               "reshape: [?, ?] has two sizes of -1\n"
               "  at @\n  only one size may be -1; it is inferred from the number of elements");
}

TEST(Errors, OfPuttingTogetherAndTakingApart) {
  const Tensor a = floats({2, 3}), b = floats({2, 4});
  expect_error([&] { td::concat({a, b}, 0); },
               "concat: f32[2, 3] and f32[2, 4] differ in an axis other than 0\n"
               "  at @\n  all other sizes must be equal");
  expect_error([&] { td::concat({a, floats({2})}, 0); },
               "concat: f32[2, 3] and f32[2] differ in an axis other than 0\n"
               "  at @\n  all other sizes must be equal");
  expect_error([&] { td::concat(std::vector<Tensor>()); },
               "concat: the list is empty\n  at @\n  give at least one tensor");
  expect_error([&] { td::stack(std::vector<Tensor>()); },
               "stack: the list is empty\n  at @\n  give at least one tensor");
  expect_error([&] { td::stack({a, b}); },
               "stack: f32[2, 3] and f32[2, 4] have different shapes\n"
               "  at @\n  give them equal shapes first, or use td::concat");
  expect_error([&] { td::split(a, 2, 1); },
               "split: axis 1 of f32[2, 3] does not divide into 2 equal parts\n"
               "  at @\n  give the sizes: td::split(x, {3, 4}, axis)");
  expect_error([&] { td::split(a, {1, 1}, 1); },
               "split: the sizes add up to 2, axis 1 of f32[2, 3] has 3\n"
               "  at @\n  every element must be in one part");
  expect_error([&] { td::split(a, {4, -1}, 1); },
               "split: a part cannot have -1 elements\n  at @\n  sizes must not be negative");
  expect_error([&] { td::pad(a, {{1, 1}}); },
               "pad: 1 widths for the 2 axes of f32[2, 3]\n"
               "  at @\n  give {before, after} for every axis");
  expect_error([&] { td::pad(a, {{1, 1}, {0, -1}}); },
               "pad: widths must not be negative, got {0, -1}\n"
               "  at @\n  use a slice to make a tensor smaller");
  expect_error([&] { td::tile(a, {2, -1}); },
               "tile: counts must not be negative, got -1\n"
               "  at @\n  0 gives an empty tensor, 1 leaves an axis as it is");
  expect_error([&] { td::repeat(a, -1, 0); },
               "repeat: the count must not be negative\n  at @\n  0 gives an empty tensor");
  expect_error([&] { td::diagonal(floats({3})); },
               "diagonal: needs at least two axes, got f32[3]\n"
               "  at @\n  td::diag(x) makes a matrix of a vector");
  expect_error([&] { td::diag(floats({1, 2, 3})); },
               "diag: needs a vector or a matrix, got f32[1, 2, 3]\n"
               "  at @\n  td::diagonal(x) takes the diagonals of the last two axes");
  expect_error([&] { td::meshgrid({floats({2}), floats({2, 3})}); },
               "meshgrid: needs vectors, got f32[2, 3] as number 1\n"
               "  at @\n  flatten it: td::reshape(x, {-1})");
  expect_error([&] { td::diff(floats({3}), -1); },
               "diff: n must not be negative, got -1\n"
               "  at @\n  it is how often differences are taken");
  expect_error([&] { td::cross(floats({3, 2}), floats({3})); },
               "cross: axis -1 must have size 3, got f32[3, 2] and f32[3]\n"
               "  at @\n  name the axis of the coordinates: td::cross(a, b, 0)");
  expect_error([&] { td::cdist(floats({3, 2}), floats({4, 3})); },
               "cdist: needs [..., n, d] and [..., m, d], got f32[3, 2] and f32[4, 3]\n"
               "  at @\n  rows are points: a vector is one point, td::expand_dims(x, 0)");
  expect_error([&] { td::tril(floats({3})); },
               "tril: needs at least two axes, got f32[3]\n"
               "  at @\n  add an axis: td::expand_dims(x, 0)");
  expect_error([&] { td::triu(floats({3})); },
               "triu: needs at least two axes, got f32[3]\n"
               "  at @\n  add an axis: td::expand_dims(x, 0)");
}

TEST(Errors, OfIndices) {
  const Tensor x = floats({5, 3});
  expect_error([&] { td::gather(x, td::constant({0, 5})); },
               "gather: index 5 is out of range for axis 0 of f32[5, 3]\n"
               "  at @\n  indices go from -5 to 4");
  expect_error([&] { td::gather(x, td::constant({-4}), 1); },
               "gather: index -4 is out of range for axis 1 of f32[5, 3]\n"
               "  at @\n  indices go from -3 to 2");
  expect_error([&] { td::take_along_axis(x, wholes({4, 3}), 1); },
               "take_along_axis: f32[5, 3] and indices i32[4, 3] differ in an axis other than 1\n"
               "  at @\n  all other sizes must be equal");
  expect_error([&] { td::take_along_axis(x, td::full({5, 1}, 3), 1); },
               "take_along_axis: index 3 is out of range for axis 1 of f32[5, 3]\n"
               "  at @\n  indices go from -3 to 2");
  expect_error([&] { td::scatter_add(x, td::constant({1}), floats({3})); },
               "scatter_add: updates f32[3] do not fit indices i32[1] along axis 0 of f32[5, 3]\n"
               "  at @\n  they must have the shape [1, 3]");
  expect_error([&] { td::scatter_add(x, td::constant({7}), floats({1, 3})); },
               "scatter_add: index 7 is out of range for axis 0 of f32[5, 3]\n"
               "  at @\n  indices go from -5 to 4");
  expect_error([&] { td::embedding(x, td::constant({9})); },
               "gather: index 9 is out of range for axis 0 of f32[5, 3]\n"
               "  at @\n  indices go from -5 to 4");
  expect_error([&] { td::one_hot(wholes({2}), -1); },
               "one_hot: the depth must not be negative, got -1\n"
               "  at @\n  it is the number of classes");
}

TEST(Errors, OfSubscripts) {
  const Tensor x = floats({5, 3}), flat = floats({4});
  expect_error([&] { x[{0, 1, 2}]; },
               "subscript: 3 indices for the 2 axes of f32[5, 3]\n"
               "  at @\n  give at most one for each axis; td::newaxis adds one");
  expect_error([&] { x[5]; },
               "subscript: index 5 is out of range for axis 0 of f32[5, 3]\n"
               "  at @\n  indices go from -5 to 4");
  expect_error([&] { x[{0, -4}]; },
               "subscript: index -4 is out of range for axis 1 of f32[5, 3]\n"
               "  at @\n  indices go from -3 to 2");
  expect_error([&] { floats({0})[0]; },
               "subscript: index 0 is out of range for axis 0 of f32[0]\n"
               "  at @\n  the axis is empty");
  expect_error([&] { x[{td::ellipsis, td::ellipsis}]; },
               "subscript: it has more than one td::ellipsis\n"
               "  at @\n  write td::all for the other axes");
  expect_error([&] { flat[td::Slice{.step = 0}]; },
               "subscript: the step of a slice must not be 0\n"
               "  at @\n  1 takes every element, -1 every element backwards");
  expect_error([&] { x[flat > 0]; },
               "subscript: the mask bool[4] does not fit f32[5, 3] at axis 0\n"
               "  at @\n  their sizes must be equal");
  const Tensor rows = wholes({2}), columns = wholes({2});
  expect_error([&] { x[{rows, columns + 3}]; },
               "subscript: index 3 is out of range for axis 1 of f32[5, 3]\n"
               "  at @\n  indices go from -3 to 2");
  expect_error([&] { x[{rows, wholes({3})}]; },
               "subscript: shapes [2] and [3] do not broadcast (2 and 3 at axis -1)\n"
               "  at @\n  sizes must be equal, or one of them 1");
  expect_error([&] { x[{rows, floats({2})}]; },
               "subscript: indices must be integers, got f32[2]\n"
               "  at @\n  use td::cast(indices, td::i64)");
  expect_error([&] { x[rows + 7]; },
               "gather: index 7 is out of range for axis 0 of f32[5, 3]\n"
               "  at @\n  indices go from -5 to 4");
  expect_error([&] { td::update(x, rows + 7, 1); },
               "subscript: index 7 is out of range for axis 0 of f32[5, 3]\n"
               "  at @\n  indices go from -5 to 4");
  expect_error([&] { td::update(x, 0, floats({2})); },
               "broadcast_to: f32[2] does not broadcast to [3]\n"
               "  at @\n  sizes must be equal, or 1 in the operand");
}

TEST(Errors, OfContractions) {
  const Tensor a = floats({64, 128});
  expect_error([&] { td::matmul(a, floats({256, 10})); },
               "matmul: inner sizes differ: f32[64, 128] x f32[256, 10] (128 and 256)\n"
               "  at @\n  the last size of the first must equal the last but one of the second");
  expect_error([&] { td::matmul(a, floats({10, 128})); },
               "matmul: inner sizes differ: f32[64, 128] x f32[10, 128] (128 and 10)\n"
               "  at @\n  did you mean to transpose the second operand? {.transpose_b = true}");
  expect_error([&] { td::matmul(floats({}), a); },
               "matmul: operands need at least two axes, got f32[] x f32[64, 128]\n"
               "  at @\n  add an axis: td::expand_dims(v, 0) or td::expand_dims(v, 1)");
  expect_error([&] { td::matmul(floats({2, 3, 4}), floats({3, 4, 5})); },
               "matmul: shapes [2] and [3] do not broadcast (2 and 3 at axis -1)\n"
               "  at @\n  sizes must be equal, or one of them 1");
  expect_error([&] { td::tensordot(a, floats({128}), 2); },
               "tensordot: cannot contract 2 axes of f32[64, 128] and f32[128]\n"
               "  at @\n  both must have that many axes");
  expect_error([&] { td::tensordot(a, floats({64, 5}), 1); },
               "tensordot: the last 1 sizes of f32[64, 128] and the first of f32[64, 5] differ "
               "(128 and 64)\n  at @\n  transpose one of them, or contract fewer axes");
  const Tensor b = floats({128, 64});
  expect_error([&] { td::tensordot(a, b, {.axes_a = {0, 1}, .axes_b = {1}}); },
               "tensordot: 2 axes of f32[64, 128] and 1 of f32[128, 64]\n"
               "  at @\n  each axis of the first goes with one of the second");
  expect_error([&] { td::tensordot(a, b, {.axes_a = {1, -1}, .axes_b = {0, 1}}); },
               "tensordot: axis 1 of f32[64, 128] is given twice\n"
               "  at @\n  name each axis once; negative ones count from the end");
  expect_error([&] { td::tensordot(a, b, {.axes_a = {1}, .axes_b = {-3}}); },
               "tensordot: f32[128, 64] has no axis -3\n  at @\n  axes go from -2 to 1");
  expect_error([&] { td::tensordot(a, b, {.axes_a = {0, 1}, .axes_b = {1, -1}}); },
               "tensordot: axis 1 of f32[128, 64] is given twice\n"
               "  at @\n  name each axis once; negative ones count from the end");
  expect_error([&] { td::tensordot(a, b, {.axes_a = {0, 1}, .axes_b = {0, 1}}); },
               "tensordot: axis 0 of f32[64, 128] and axis 0 of f32[128, 64] differ (64 and 128)\n"
               "  at @\n  axes that are contracted have the same size");
}

TEST(Errors, OfImages) {
  const Tensor x = floats({1, 5, 5, 4});
  expect_error([&] { td::conv2d(floats({5, 5, 4}), floats({3, 3, 4, 8})); },
               "conv2d: needs an image [n, height, width, in] and a kernel [height, width, in, "
               "out], got f32[5, 5, 4] and f32[3, 3, 4, 8]\n"
               "  at @\n  one image alone: td::expand_dims(x, 0)");
  expect_error([&] { td::conv2d(x, floats({3, 3, 3, 8})); },
               "conv2d: f32[1, 5, 5, 4] has 4 channels, the kernel f32[3, 3, 3, 8] takes 3 in each "
               "of 1 groups and gives 8\n  at @\n  channels must be the kernel's inputs times the "
               "groups, and the outputs a multiple of the groups");
  expect_error([&] { td::conv2d(x, floats({3, 3, 4, 8}), {.strides = {0, 1}}); },
               "conv2d: strides and dilations must be at least 1, got 0 and 1\n"
               "  at @\n  leave them out for 1");
  expect_error([&] { td::conv2d(x, floats({3, 6, 4, 8})); },
               "conv2d: a window of 6 does not fit axis 2 of f32[1, 5, 5, 4]\n"
               "  at @\n  use td::Padding::same, or a smaller window");
  expect_error([&] { td::conv2d(x, floats({3, 3, 4, 8}), {.dilations = {3, 1}}); },
               "conv2d: a window of 7 does not fit axis 1 of f32[1, 5, 5, 4]\n"
               "  at @\n  use td::Padding::same, or a smaller window");
  expect_error([&] { td::max_pool(floats({5, 5})); },
               "max_pool: needs an image of four axes, got f32[5, 5]\n"
               "  at @\n  one image alone: td::expand_dims(x, 0)");
  expect_error([&] { td::avg_pool(x, {.size = {0, 2}}); },
               "avg_pool: windows and strides must be at least 1, got 0 and 0\n"
               "  at @\n  a window of 1 with stride 1 leaves the axis as it is");
  expect_error([&] { td::max_pool(x, {.size = {6, 2}}); },
               "max_pool: a window of 6 does not fit axis 1 of f32[1, 5, 5, 4]\n"
               "  at @\n  use td::Padding::same, or a smaller window");
}

TEST(Errors, OfConvolutionsOfOtherAxes) {
  const Tensor row = floats({2, 9, 4}), volume = floats({1, 3, 4, 5, 2});
  expect_error([&] { td::conv1d(floats({9, 4}), floats({3, 4, 8})); },
               "conv1d: needs a row [n, width, in] and a kernel [width, in, out], got f32[9, 4] "
               "and f32[3, 4, 8]\n  at @\n  one row alone: td::expand_dims(x, 0)");
  expect_error([&] { td::conv1d(row, floats({3, 3, 8})); },
               "conv1d: f32[2, 9, 4] has 4 channels, the kernel f32[3, 3, 8] takes 3 in each of 1 "
               "groups and gives 8\n  at @\n  channels must be the kernel's inputs times the "
               "groups, and the outputs a multiple of the groups");
  expect_error([&] { td::conv1d(row, floats({0, 4, 8})); },
               "conv1d: the kernel f32[0, 4, 8] has an empty window\n"
               "  at @\n  a window has at least one tap along every axis");
  const Tensor numbers = td::ones({2, 9, 4}, td::i32);
  const std::string floats_only =
      ": takes floats, got i32\n  at @\n  cast it first: td::cast(x, td::f32)";
  expect_error([&] { td::conv1d(numbers, td::ones({3, 4, 8}, td::i32)); }, "conv1d" + floats_only);
  expect_error([&] { td::conv_transpose1d(numbers, td::ones({3, 8, 4}, td::i32)); },
               "conv_transpose1d" + floats_only);
  expect_error([&] { td::depthwise_conv1d(numbers, td::ones({3, 4, 1}, td::i32)); },
               "depthwise_conv1d" + floats_only);
  expect_error([&] { td::conv_transpose1d(row, floats({2, 8, 4}), {.padding = {{9, 9}}}); },
               "conv_transpose1d: padding of 9 and 9 leaves nothing of axis 1\n"
               "  at @\n  it takes pixels of the result away: give less");
  expect_error([&] { td::conv1d(row, floats({3, 4, 8}), {.padding = {{1, 1}, {1, 1}}}); },
               "conv1d: 2 widths of padding for 1 axis\n"
               "  at @\n  give {before, after} for every axis of the image");
  expect_error([&] { td::conv1d(row, floats({3, 4, 8}), {.padding = {{-1, 1}}}); },
               "conv1d: padding must not be negative, got {-1, 1}\n"
               "  at @\n  use a slice to make an image smaller");
  expect_error([&] { td::conv3d(row, floats({1, 1, 1, 2, 3})); },
               "conv3d: needs an image [n, depth, height, width, in] and a kernel [depth, height, "
               "width, in, out], got f32[2, 9, 4] and f32[1, 1, 1, 2, 3]\n"
               "  at @\n  one image alone: td::expand_dims(x, 0)");
  expect_error([&] { td::conv_transpose3d(volume, floats({2, 2, 2, 3})); },
               "conv_transpose3d: needs an image of 5 axes and a kernel [depth, height, width, "
               "out, in], got f32[1, 3, 4, 5, 2] and f32[2, 2, 2, 3]\n"
               "  at @\n  one image alone: td::expand_dims(x, 0)");
  expect_error([&] { td::conv_transpose1d(row, floats({3, 8, 5})); },
               "conv_transpose1d: f32[2, 9, 4] has 4 channels, the kernel f32[3, 8, 5] takes 5 in "
               "1 group\n  at @\n  the last axis of both is the number of channels, a multiple of "
               "the groups");
  expect_error([&] { td::conv_transpose1d(row, floats({3, 8, 4}), {.sizes = td::Shape{4, 4}}); },
               "conv_transpose1d: 2 sizes for an image of 1 axis\n"
               "  at @\n  give the size of every axis but those of the batch and the channels");
  expect_error(
      [&] { td::conv_transpose1d(row, floats({3, 8, 4}), {.strides = 2, .sizes = td::Shape{21}}); },
      "conv_transpose1d: a convolution of size 21 along axis 1 does not give 9\n"
      "  at @\n  leave the sizes out for the usual ones");
  expect_error([&] { td::depthwise_conv1d(row, floats({3, 5, 1})); },
               "depthwise_conv1d: f32[2, 9, 4] and the kernel f32[3, 5, 1] do not fit\n"
               "  at @\n  the kernel is [width, in, times] for an image of `in` channels");
}

TEST(Errors, OfPatchesAndSizes) {
  const Tensor x = floats({1, 5, 5, 4});
  expect_error([&] { td::pad(x, {{0, 0}, {5, 0}, {0, 0}, {0, 0}}, td::PadMode::reflect); },
               "pad: 5 elements beyond axis 1 of f32[1, 5, 5, 4] are more than it can mirror\n"
               "  at @\n  it has 4 to mirror: pad with an edge or a value");
  expect_error([&] { td::pad(floats({0}), {{1, 0}}, td::PadMode::edge); },
               "pad: axis 0 of f32[0] has no edge to repeat\n"
               "  at @\n  pad an empty axis with a value");
  expect_error([&] { td::pad(x, {{1, 0}}, td::PadMode::edge); },
               "pad: 1 widths for the 4 axes of f32[1, 5, 5, 4]\n"
               "  at @\n  give {before, after} for every axis");
  expect_error([&] { td::pad(floats({3}), {{-2, 0}}, td::PadMode::edge); },
               "pad: widths must not be negative, got {-2, 0}\n"
               "  at @\n  use a slice to make a tensor smaller");
  expect_error([&] { td::resize(x, {4}); },
               "resize: 1 sizes for f32[1, 5, 5, 4]\n"
               "  at @\n  give the size of every axis but those of the batch and the channels");
  expect_error([&] { td::resize(x, {4, 0}); },
               "resize: axis 2 of f32[1, 5, 5, 4] cannot get size 0\n"
               "  at @\n  sizes are at least 1");
  expect_error([&] { td::pixel_shuffle(floats({1, 2, 2, 6}), 2); },
               "pixel_shuffle: 6 channels of f32[1, 2, 2, 6] are no blocks of 2 x 2\n"
               "  at @\n  the channels must be a multiple of the factor squared");
  expect_error([&] { td::pixel_unshuffle(x, 2); },
               "pixel_unshuffle: f32[1, 5, 5, 4] is not made of blocks of 2 x 2 pixels\n"
               "  at @\n  height and width must be multiples of the factor");
  expect_error([&] { td::pixel_shuffle(x, 0); },
               "pixel_shuffle: the factor must be at least 1, got 0\n"
               "  at @\n  2 makes blocks of 2 x 2 pixels");
  expect_error([&] { td::pixel_shuffle(floats({5, 4}), 2); },
               "pixel_shuffle: needs an image of four axes, got f32[5, 4]\n"
               "  at @\n  one image alone: td::expand_dims(x, 0)");
  expect_error([&] { td::adaptive_avg_pool(x, {2}); },
               "adaptive_avg_pool: 1 sizes for f32[1, 5, 5, 4]\n"
               "  at @\n  give the size of every axis but those of the batch and the channels");
  expect_error([&] { td::adaptive_max_pool(x, {2, 0}); },
               "adaptive_max_pool: axis 2 of f32[1, 5, 5, 4] cannot get size 0\n"
               "  at @\n  sizes are at least 1");
  expect_error([&] { td::extract_patches(x, {}); },
               "extract_patches: 0 sizes\n"
               "  at @\n  give the size of windows along one, two or three axes");
  expect_error([&] { td::extract_patches(x, {2, 2}, {.strides = std::vector<int64_t>{1}}); },
               "extract_patches: 1 strides for 2 sizes\n"
               "  at @\n  give as many of them as there are sizes");
  expect_error([&] { td::max_pool3d(x); },
               "max_pool3d: needs an image of five axes, got f32[1, 5, 5, 4]\n"
               "  at @\n  one image alone: td::expand_dims(x, 0)");
}

TEST(Errors, OfCreation) {
  expect_error([&] { td::constant({{1, 2}, {3}}); },
               "constant: lists of different lengths at depth 1 (2 and 1)\n"
               "  at @\n  all lists of one depth must be equally long");
  expect_error([&] { td::constant({{1, 2}, 3}); },
               "constant: numbers and lists are mixed at the same depth\n"
               "  at @\n  put every number inside equally many braces");
  expect_error([&] { td::constant({1, {2}}); },
               "constant: numbers and lists are mixed at the same depth\n"
               "  at @\n  put every number inside equally many braces");
  const std::vector<float> six(6);
  expect_error([&] { td::constant(six, {4}); },
               "constant: 6 elements do not fill the shape [4], which has 4\n"
               "  at @\n  give a shape whose sizes multiply to the number of elements");
  expect_error([&] { td::borrow(std::span(six), {7}); },
               "borrow: 6 elements do not fill the shape [7], which has 7\n"
               "  at @\n  give a shape whose sizes multiply to the number of elements");
  alignas(8) const char bytes[16] = {};
  const std::span odd(reinterpret_cast<const float*>(bytes + 1), 2);
  expect_error([&] { td::borrow(odd, {2}); },
               "borrow: memory is not aligned to 4 bytes, the size of f32\n"
               "  at @\n  copy it: td::constant(memory)");
  expect_error([&] { td::full({2}, floats({2})); },
               "full: the value must be one number, got f32[2]\n"
               "  at @\n  to repeat a tensor use td::broadcast_to or td::tile");
  expect_error([&] { td::arange(0, 10, 0); },
               "arange: cannot go from 0 to 10 in steps of 0\n"
               "  at @\n  the step must not be 0, and all must be finite");
  expect_error([&] { td::arange(0.0, 1e30); },
               "arange: from 0 to 1e+30 in steps of 1 it has 1e+30 elements, too many to count\n"
               "  at @\n  take larger steps");
  expect_error([&] { td::arange(2147483646, 2147483650); },
               "arange: 2147483649 does not fit i32\n"
               "  at @\n  name a wider dtype: td::arange(start, stop, step, td::i64)");
  expect_error([&] { td::arange(250, 260, 1, td::u8); },
               "arange: 259 does not fit u8\n"
               "  at @\n  name a wider dtype: td::arange(start, stop, step, td::i64)");
  expect_error([&] { td::arange(3, -3, -2, td::u8); },
               "arange: -1 does not fit u8\n"
               "  at @\n  name a wider dtype: td::arange(start, stop, step, td::i64)");
  expect_error([&] { td::arange(250.5, 260, 1, td::u8); },
               "arange: 259 does not fit u8\n"
               "  at @\n  name a wider dtype: td::arange(start, stop, step, td::i64)");
  expect_error([&] { td::arange(0, 2e19, 1e19, td::i64); },
               "arange: 1e+19 does not fit i64\n"
               "  at @\n  name a float dtype: td::arange(start, stop, step, td::f64)");
  expect_error([&] { td::arange(INT64_MIN, INT64_MAX, 1, td::i64); },
               "arange: from -9223372036854775808 to 9223372036854775807 in steps of 1 it has "
               "18446744073709551615 elements, too many to count\n  at @\n  take larger steps");
  expect_error([&] { td::linspace(0, 1, -1); },
               "linspace: cannot make -1 numbers\n  at @\n  the count must not be negative");
  expect_error([&] { td::eye(-2); },
               "eye: cannot make -2 rows of -2 columns\n  at @\n  sizes must not be negative");
  expect_error([&] { td::zeros({2, -1}); },
               "a tensor cannot have the shape [2, ?]: sizes must be known and not negative\n"
               "  at @\n  give every size");
  expect_error([&] { td::zeros({int64_t{1} << 40, int64_t{1} << 40}); },
               "a tensor cannot have the shape [1099511627776, 1099511627776]: its bytes do not "
               "fit 63 bits\n  at @\n  make one of the sizes smaller");
  expect_error([&] { td::broadcast_to(1.0f, {int64_t{1} << 40, int64_t{1} << 40}); },
               "a tensor cannot have the shape [1099511627776, 1099511627776]: its bytes do not "
               "fit 63 bits\n  at @\n  make one of the sizes smaller");
  expect_error([&] { td::broadcast_to(1.0f, {2, -1}); },
               "a tensor cannot have the shape [2, ?]: sizes must be known and not negative\n"
               "  at @\n  give every size");
}

TEST(Errors, OfDraws) {
  using namespace td::random;
  const double inf = std::numeric_limits<double>::infinity();
  expect_error([&] { normal({2}, {.dtype = td::i32}); },
               "random::normal: draws floats, not i32\n  at @\n  use td::random::integers");
  expect_error([&] { uniform({2}, {.dtype = td::u8}); },
               "random::uniform: draws floats, not u8\n  at @\n  use td::random::integers");
  expect_error([&] { uniform({2}, {.low = 1, .high = 1}); },
               "random::uniform: empty interval [1, 1)\n  at @\n  low must be less than high");
  expect_error([&] { uniform({2}, {.low = 0, .high = inf}); },
               "random::uniform: [0, inf) is too wide for f32\n"
               "  at @\n  low, high and high - low must be finite");
  expect_error([&] { uniform({2}, {.low = -inf, .high = 0, .dtype = td::f64}); },
               "random::uniform: [-inf, 0) is too wide for f64\n"
               "  at @\n  low, high and high - low must be finite");
  expect_error([&] { uniform({2}, {.low = -1e308, .high = 1e308, .dtype = td::f64}); },
               "random::uniform: [-1e+308, 1e+308) is too wide for f64\n"
               "  at @\n  low, high and high - low must be finite");
  expect_error([&] { integers({2}, {.low = 5, .high = 5}); },
               "random::integers: empty interval [5, 5)\n  at @\n  low must be less than high");
  expect_error([&] { integers({2}, {.dtype = td::f32}); },
               "random::integers: draws integers, not f32\n  at @\n  use td::random::uniform");
  expect_error([&] { integers({2}, {.low = 0, .high = 300, .dtype = td::u8}); },
               "random::integers: [0, 300) does not fit u8\n"
               "  at @\n  name a wider dtype: {.dtype = td::i64}");
  expect_error([&] { bernoulli({2}, {.p = 1.5}); },
               "random::bernoulli: p must be in [0, 1], got 1.5\n"
               "  at @\n  it is the probability of true");
  expect_error([&] { permutation(-1); },
               "random::permutation: cannot permute -1 numbers\n"
               "  at @\n  the count must not be negative");
  expect_error([&] { td::dropout(floats({2}), {.rate = 1}); },
               "dropout: the rate must be in [0, 1), got 1\n"
               "  at @\n  it is the fraction of elements that become zero");
  expect_error([&] { td::dropout(floats({2}), {.rate = inf}); },
               "dropout: the rate must be in [0, 1), got inf\n"
               "  at @\n  it is the fraction of elements that become zero");
}

TEST(Errors, OfReading) {
  const Tensor x = floats({2, 3});
  expect_error([&] { x.item<float>(); },
               "item: needs one element, f32[2, 3] has 6\n"
               "  at @\n  reduce it first (td::sum, td::all), or read all with to_vector");
  expect_error(
      [&] {
        if (x == x) return;
      },
      "item: needs one element, bool[2, 3] has 6\n"
      "  at @\n  reduce it first (td::sum, td::all), or read all with to_vector");
  expect_error([&] { x.span<const double>(); },
               "span: the elements of f32[2, 3] are f32, not f64\n"
               "  at @\n  ask for its own element type, or convert with td::cast");
  expect_error([&] { td::transpose(x).span<const float>(); },
               "span: f32[3, 2] is a view whose elements are not contiguous\n"
               "  at @\n  copy it first: td::identity(x)");
}

TEST(Errors, OfDonatingWhatOthersHold) {
  Tensor x = floats({2, 3});
  const Tensor other = x;
  expect_error([&] { (void)td::donate(x); },
               "donate: f32[2, 3] shares its memory: another handle or a view of it is alive, or "
               "the memory is borrowed\n"
               "  at @\n  drop the other handles first (y = {}), or pass x itself, which is kept");
}

TEST(Errors, OfATensorThatHoldsNothing) {
  const std::string text =
      "an empty Tensor was used: it was never assigned, or it was moved from\n"
      "  at @\n  assign a value first; has_value() tells whether it has one";
  const Tensor none, x = floats({2});
  expect_error([&] { none + x; }, text);
  expect_error([&] { td::sum(none); }, text);
  expect_error([&] { td::softmax(none); }, text);
  expect_error([&] { td::reshape(none, {2}); }, text);
  expect_error([&] { td::concat({x, none}); }, text);
  expect_error([&] { td::matmul(none, x); }, text);
  expect_error([&] { td::conv2d(none, x); }, text);
  expect_error([&] { td::gather(x, none); }, text);
  expect_error([&] { none[0]; }, text);
  expect_error([&] { x[none]; }, text);
  expect_error([&] { td::gelu(none); }, text);
  expect_error([&] { td::cast(none, td::i32); }, text);
  expect_error([&] { none.item<float>(); }, text);
  expect_error([&] { none.to_vector<float>(); }, text);
  expect_error([&] { none.shape(); },
               "an empty Tensor was used: it was never assigned, or it was moved from\n  assign a "
               "value first; has_value() tells whether it has one");
}

// Inside a composite the user's line comes first, and the line of ours that found it follows.
TEST(Errors, InsideACompositeNameBothLines) {
  const Tensor x = floats({2, 3});
  const auto without_inner = [](std::string text) {
    const size_t open = text.find(" [composite.cc:"), close = text.find(']', open + 2);
    if (open == std::string::npos) return td::cat("no inner line in: ", text);
    return text.erase(open, close - open + 1);
  };
  try {
    td::layer_norm(x, {.scale = floats({4})});
    FAIL();
  } catch (const td::UserError& error) {
    EXPECT_EQ(without_inner(error.what()),
              td::cat("multiply: shapes [2, 3] and [4] do not broadcast (3 and 4 at axis -1)\n"
                      "  at errors_test.cc:",
                      error.source().line, "\n  sizes must be equal, or one of them 1"));
  }
  try {
    td::attention(x, floats({5, 4}), x);
    FAIL();
  } catch (const td::UserError& error) {
    EXPECT_EQ(without_inner(error.what()),
              td::cat("matmul: inner sizes differ: f32[2, 3] x f32[4, 5] (3 and 4)\n"
                      "  at errors_test.cc:",
                      error.source().line,
                      "\n  the last size of the first must equal the last but one of the second"));
  }
}

TEST(Errors, OfComposites) {
  const Tensor x = floats({2, 3});
  expect_error([&] { td::attention(floats({3}), x, x); },
               "attention: needs [..., tokens, features], got f32[3], f32[2, 3], f32[2, 3]\n"
               "  at @\n  add the missing axis: td::expand_dims(x, 0)");
  expect_error([&] { td::attention(x, x, x, {.mask = floats({2, 2})}); },
               "attention: the mask is f32[2, 2], not bool\n  at @\n  true keeps a key: pass mask "
               "== 0 for a mask that is added to scores, mask != 0 otherwise");
  expect_error([&] { td::sparse_softmax_cross_entropy(wholes({2, 3}), x); },
               "sparse_softmax_cross_entropy: labels i32[2, 3] need one axis less than logits "
               "f32[2, 3]\n  at @\n  labels are class numbers, one for each row of logits");
  expect_error([&] { td::mse(floats({4, 1}), floats({4})); },
               "mse: f32[4, 1] and f32[4] differ in shape\n"
               "  at @\n  reshape one of them: td::reshape(y, other.shape())");
}

TEST(Errors, OfMemory) {
  expect_error([&] { td::memory::set_limit(0); },
               "set_limit: 0 B is not a limit\n  at @\n  give a positive number of bytes");
  expect_error([&] { static_cast<void>(td::memory::ledger().of("nothing")); },
               "ledger: there is no row 'nothing'\n  print the ledger to see its rows");
  expect_error([&] { static_cast<void>(td::Shape{2, 3}[2]); }, "shape[2, 3] has no axis 2");
  expect_error([&] { static_cast<void>(int64_t{td::Shape{td::open}[0]}); },
               "the value of an open size was read, but it is known only at the call\n"
               "  compute with it as a Dim, or write a number in the signature");
}

TEST(OutOfMemory, SaysWhatWasAskedAndWhoHoldsWhat) {
  const td::Bytes before = td::memory::limit();
  td::memory::release();
  const Tensor held = td::zeros({1024, 256});
  const std::string line = held.source().text();
  td::memory::set_limit(3 << 20);
  const auto refused = [&](const std::function<void()>& call) {
    try {
      call();
    } catch (const td::OutOfMemory& error) {
      EXPECT_EQ(error.source().text().substr(0, 15), "errors_test.cc:");
      std::string text = error.what();
      const std::string at = error.source().text();
      for (size_t i = text.find(at); i != std::string::npos; i = text.find(at))
        text.replace(i, at.size(), "@");
      return text;
    }
    return std::string("nothing was refused");
  };
  EXPECT_EQ(refused([] { td::zeros({1024, 1024}); }),
            "out of memory: f32[1024, 1024] needs 4.0 MiB, 1.0 MiB of 3.0 MiB are in use, 0 B "
            "cached\n  at @\n  largest: f32[1024, 256] 1.0 MiB (" +
                line +
                ", temporaries)\n"
                "  ask for less, or raise the limit: td::memory::set_limit");
  // Made by the library, charged to the user's line.
  EXPECT_EQ(refused([] { td::eye(1700, td::u8); }),
            "out of memory: u8[1700, 1700] needs 2.8 MiB, 1.0 MiB of 3.0 MiB are in use, 0 B "
            "cached\n  at @\n  largest: f32[1024, 256] 1.0 MiB (" +
                line +
                ", temporaries)\n"
                "  free tensors you no longer need (x = {}), or raise the limit: "
                "td::memory::set_limit");
  td::memory::set_limit(before);
  EXPECT_EQ(td::sum(td::zeros({1024, 1024})).item<float>(), 0.0F) << "the next call works";
}

// An op that runs in place and then has no room for its scratch leaves its operand as it was.
TEST(OutOfMemory, LeavesAnOperandGivenAwayAsItWas) {
  const td::Bytes before = td::memory::limit();
  Tensor x = td::ones({1000, 1000});
  td::memory::release();
  td::memory::set_limit(td::memory::current().count);
  bool refused = false;
  try {
    x += 1;
  } catch (const td::OutOfMemory&) {
    refused = true;
  }
  td::memory::set_limit(before);
  ASSERT_TRUE(x.has_value());
  EXPECT_EQ(td::sum(x).item<float>(), refused ? 1e6F : 2e6F);
}

TEST(Errors, OfChecks) {
  const Tensor x = td::constant({{1.0f, NAN, INFINITY}, {2.0f, -INFINITY, 3.0f}});
  expect_error([&] { td::check_numerics(x, "after norm"); },
               "check_numerics: after norm: f32[2, 3] has 1 NaN and 2 Inf, the first at [0, 1]\n"
               "  at @\n  check what it was computed from in the same way, back to the first that "
               "fails");
  expect_error([&] { td::assert_that(x > 1.5, "all large", {x[0], 7}); },
               "assert_that: all large: 3 of 6 are false, the first at [0, 0]\n"
               "  at @\n  f32[3] [ 1. nan inf]\n  i32[] 7");
  expect_error([&] { td::assert_that(false, "never"); }, "assert_that: never\n  at @");
}

TEST(Errors, OfEinsum) {
  const Tensor a = floats({2, 3}), b = floats({4, 5});
  expect_error([&] { td::einsum("ij,jk->ik", a, b); },
               "einsum: \"ij,jk->ik\": j is 3 in f32[2, 3] and 4 in f32[4, 5]\n"
               "  at @\n  a letter stands for one size");
  expect_error([&] { td::einsum("ii", a); },
               "einsum: \"ii\": i is 2 and 3 in f32[2, 3]\n"
               "  at @\n  a letter stands for one size");
  expect_error([&] { td::einsum("ijk,kl", a, b); },
               "einsum: \"ijk,kl\": \"ijk\" has 3 letters, f32[2, 3] has 2 axes\n"
               "  at @\n  give one letter for each axis");
  expect_error([&] { td::einsum("ij,jk", a); },
               "einsum: \"ij,jk\" is of 2 operands, 1 was given\n"
               "  at @\n  separate the letters of operands by commas");
  expect_error([&] { td::einsum("ij->ik", a); },
               "einsum: \"ij->ik\": k of the result is in no operand\n"
               "  at @\n  name an axis of an operand; td::expand_dims adds one of size 1");
  expect_error([&] { td::einsum("ij->ii", a); },
               "einsum: \"ij->ii\": i occurs twice in the result\n"
               "  at @\n  give each axis of the result its own letter");
  expect_error([&] { td::einsum("...j...->j", a); },
               "einsum: \"...j...->j\": cannot read \"...->j\"\n"
               "  at @\n  write letters, a comma between operands, \"->\" before the result, and "
               "\"...\" at most once in each");
  expect_error([&] { td::einsum("...ijk", a); },
               "einsum: \"...ijk\": \"...ijk\" has 3 letters, f32[2, 3] has 2 axes\n"
               "  at @\n  give one letter for each axis");
  expect_error([&] { td::einsum("ij->...", a); },
               "einsum: \"ij->...\": ... of the result is in no operand\n"
               "  at @\n  name an axis of an operand; td::expand_dims adds one of size 1");
  expect_error([&] { td::einsum("...i,...j", {a, b}); },
               "einsum: \"...i,...j\": an axis of ... is 2 in f32[2, 3] and 4 in f32[4, 5]\n"
               "  at @\n  a letter stands for one size");
  expect_error([&] { td::einsum("", std::vector<Tensor>()); },
               "einsum: takes 1 to 31 operands, got 0\n"
               "  at @\n  multiply some of them first");
}

TEST(Errors, OfSearchesAndCounts) {
  const Tensor x = floats({3}), n = wholes({3});
  expect_error([&] { td::searchsorted(floats({2, 3}), floats({3, 3})); },
               "searchsorted: values f32[3, 3] do not fit rows f32[2, 3]\n"
               "  at @\n  give one sorted row, or as many rows as values have");
  expect_error([&] { td::bincount(x); },
               "bincount: needs a list of whole numbers, got f32[3]\n"
               "  at @\n  cast and flatten it: td::reshape(td::cast(x, td::i32), {-1})");
  expect_error([&] { td::bincount(n, {.weights = floats({2})}); },
               "bincount: weights f32[2] do not fit i32[3]\n"
               "  at @\n  give one weight for each number");
  expect_error(
      [&] { td::bincount(td::constant({1, -2})); },
      "bincount: -2 is negative\n"
      "  at @\n  give a length, td::bincount(x, {.length = 100}), to leave such numbers out");
  expect_error([&] { td::function([](const Tensor& i) { return td::bincount(i); })(n); },
               "bincount: the largest number is known only when the function runs\n"
               "  at @\n  give the length: td::bincount(x, {.length = 100})");
  expect_error([&] { td::histogram(x, {.bins = 0}); },
               "histogram: the number of bins must be positive, got 0\n"
               "  at @\n  write {.bins = 10}");
  expect_error([&] { td::histogram(x, {.low = 2, .high = 1}); },
               "histogram: low = 2 is above high = 1\n  at @\n  exchange them");
  expect_error([&] { td::median(floats({2, 0}), 1); },
               "median: f32[2, 0] has no elements to choose from\n"
               "  at @\n  reduce over axes that have elements");
  expect_error([&] { td::quantile(floats({0}), 0.5); },
               "quantile: f32[0] has no elements to choose from\n"
               "  at @\n  reduce over axes that have elements");
  expect_error([&] { td::quantile(x, 50); },
               "quantile: q goes from 0 to 1, got 50\n"
               "  at @\n  the median is 0.5; divide percentages by 100");
  expect_error([&] { td::function([](const Tensor& a) { return td::unique(a).values; })(x); },
               "unique: the number of results is known only when the function runs\n"
               "  at @\n  give a bound, td::unique(x, {.max_size = 100}); `size` is their number");
  expect_error([&] { td::function([](const Tensor& a) { return td::nonzero(a).indices; })(x); },
               "nonzero: the number of results is known only when the function runs\n"
               "  at @\n  give a bound, td::nonzero(x, {.max_size = 100}); `size` is their number");
}

TEST(Errors, OfLinearAlgebra) {
  const std::string matrices =
      "\n  at @\n  the last two axes are a matrix's, those before them a batch's";
  expect_error([&] { td::linalg::cholesky(floats({3})); },
               "cholesky: takes matrices, got f32[3]" + matrices);
  expect_error([&] { td::linalg::svdvals(wholes({})); },
               "svdvals: takes matrices, got i32[]" + matrices);
  expect_error([&] { td::linalg::solve(floats({3}), floats({3})); },
               "solve: takes matrices, got f32[3] and f32[3]" + matrices);
  const std::string square = "\n  at @\n  the last two sizes must be equal";
  expect_error([&] { td::linalg::cholesky(floats({2, 3})); },
               "cholesky: takes square matrices, got f32[2, 3]" + square);
  expect_error([&] { td::linalg::inv(floats({2, 3})); },
               "inv: takes square matrices, got f32[2, 3]" + square);
  expect_error([&] { td::linalg::solve_triangular(floats({5, 2, 3}), floats({3})); },
               "solve_triangular: takes square matrices, got f32[5, 2, 3]" + square);
  expect_error([&] { td::linalg::lstsq(floats({5, 3}), floats({3})); },
               "lstsq: right sides f32[3] do not fit f32[5, 3]\n"
               "  at @\n  they have as many rows as the matrix");
  expect_error([&] { td::linalg::solve(floats({2, 3, 3}), floats({4, 3, 1})); },
               "solve: shapes [2] and [4] do not broadcast (2 and 4 at axis -1)\n"
               "  at @\n  sizes must be equal, or one of them 1");
  expect_error(
      [&] {
        const Tensor x = floats({5, 3});
        td::GradientTape tape;
        tape.watch(x);
        (void)tape.gradient(td::sum(td::linalg::qr(x, {.complete = true}).q), x);
      },
      "qr: the gradient of the complete q of f32[5, 3] is not defined\n"
      "  at @\n  nothing determines its last columns: leave out .complete");
}

TEST(Errors, OfScattersAndSegments) {
  const Tensor x = floats({3, 2}), n = wholes({3});
  expect_error(
      [&] { td::scatter_max(x, n, floats({2, 2})); },
      "scatter_max: updates f32[2, 2] do not fit indices i32[3] along axis 0 of f32[3, 2]\n"
      "  at @\n  they must have the shape [3, 2]");
  expect_error([&] { td::scatter_mul(x, td::constant({3}), floats({1, 2})); },
               "scatter_mul: index 3 is out of range for axis 0 of f32[3, 2]\n"
               "  at @\n  indices go from -3 to 2");
  expect_error([&] { td::scatter_nd(wholes({2, 3}), floats({2}), {4, 5}); },
               "scatter_nd: indices i32[2, 3] do not name elements of the shape [4, 5]\n"
               "  at @\n  their last axis has a whole number for each of the first axes");
  expect_error([&] { td::scatter_nd(wholes({2, 1}), floats({2}), {4, 5}); },
               "scatter_nd: updates f32[2] do not fit indices i32[2, 1] of the shape [4, 5]\n"
               "  at @\n  they must have the shape [2, 5]");
  expect_error([&] { td::scatter_nd(td::constant({{0, 5}}), floats({1}), {4, 5}); },
               "scatter_nd: index 5 is out of range for axis 1 of the shape [4, 5]\n"
               "  at @\n  indices go from -5 to 4");
  expect_error([&] { td::segment_sum(x, wholes({2})); },
               "segment_sum: segments i32[2] do not fit f32[3, 2]\n"
               "  at @\n  give whole numbers, one for each slice of the first axes");
  expect_error([&] { td::function([](const Tensor& i) { return td::segment_max(i, i); })(n); },
               "segment_max: the largest segment is known only when the function runs\n"
               "  at @\n  give their number: td::segment_max(data, segments, 100)");
  expect_error([&] { td::cumprod(x, 2); },
               "cumprod: f32[3, 2] has no axis 2\n"
               "  at @\n  axes go from -2 to 1");
}

TEST(Errors, OfPut) {
  const Tensor x = floats({3, 2});
  expect_error([&] { td::put(x, 3, floats({2})); },
               "put: index 3 is out of range for axis 0 of f32[3, 2]\n"
               "  at @\n  indices go from -3 to 2");
  expect_error([&] { td::put(x, 0, floats({3})); },
               "put: f32[3] does not fit index i32[] of f32[3, 2]\n"
               "  at @\n  it must have the shape [2]");
  expect_error([&] { td::put(x, floats({}), floats({2})); },
               "put: indices must be integers, got f32[]\n"
               "  at @\n  cast them: td::cast(indices, td::i32)");
  expect_error([&] { td::put(floats({}), 0, 1); },
               "put: f32[] is a scalar: it has no axis to index\n"
               "  at @\n  give it one: td::reshape(x, {1})");
}

TEST(Errors, OfVariables) {
  const td::Variable w(floats({2, 3}), {.name = "w"});
  const td::Variable count(wholes({}));
  expect_error([&] { w.assign(floats({3, 2})); },
               "assign: Variable \"w\" is f32[2, 3], the value f32[3, 2]\n"
               "  at @\n  a Variable keeps its shape: reshape or broadcast the value first");
  expect_error([&] { w.assign(wholes({2, 3})); },
               "assign: Variable \"w\" is f32[2, 3], the value i32[2, 3]\n"
               "  at @\n  a Variable keeps its dtype: td::cast(x, variable.dtype())");
  expect_error([&] { count.assign(0.5); },
               "assign: the Variable is i32[], the value f32[]\n"
               "  at @\n  a Variable keeps its dtype: td::cast(x, variable.dtype())");
  expect_error([&] { count.assign_add(0.5); },
               "assign_add: the Variable is i32[], the result would be f32[]\n"
               "  at @\n  a Variable keeps its dtype: td::cast(x, variable.dtype())");
  expect_error([&] { w.assign_sub(floats({4, 2, 3})); },
               "assign_sub: Variable \"w\" is f32[2, 3], the result would be f32[4, 2, 3]\n"
               "  at @\n  a Variable keeps its shape: reshape or broadcast the value first");
  expect_error([&] { w.assign_add(floats({2})); },
               "assign_add: shapes [2, 3] and [2] do not broadcast (3 and 2 at axis -1)\n"
               "  at @\n  sizes must be equal, or one of them 1");
  expect_error([&] { w.assign_slice(2, 0); },
               "subscript: index 2 is out of range for axis 0 of f32[2, 3]\n"
               "  at @\n  indices go from -2 to 1");
  expect_error([&] { w.assign(Tensor()); },
               "an empty Tensor was used: it was never assigned, or it was moved from\n  at @\n  "
               "assign a value first; has_value() tells whether it has one");
  expect_error([&] { td::Variable v({2}, nullptr, {.name = "v"}); },
               "Variable \"v\" was declared without an initializer\n"
               "  at @\n  give a function that returns a tensor of a shape and a dtype");
  const td::Variable wide({2}, [](const td::Shape&, td::DType) { return floats({3}); });
  expect_error([&] { wide.value(); },
               "the Variable is f32[2], its initializer gave f32[3]\n"
               "  at @\n  return a tensor of the shape and dtype that the initializer is given");
  const td::Variable* self = nullptr;
  const td::Variable own({2}, [&](const td::Shape&, td::DType) { return self->value(); });
  self = &own;
  expect_error([&] { own.value(); },
               "the Variable is read by its own initializer\n"
               "  at @\n  an initializer gets a shape and a dtype, and must make its value from "
               "these alone");
}

}  // namespace
