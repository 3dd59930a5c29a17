#include "tidemark/api/tensor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <sstream>

#include "tidemark/api/create.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace {

namespace td = tidemark;

const void* bytes_of(const Tensor& x) { return detail::array_of(x, Source::none()).data; }

// 0, 1, 2, ... in a shape, f32.
Tensor counted(const Shape& shape) {
  return reshape(arange(0, shape.size(), 1, DType::f32), shape);
}

using Floats = std::vector<float>;
Floats list(const Tensor& x) { return x.to_vector<float>(); }

// ---- handles, views and bytes -------------------------------------------------------------------

TEST(Tensor, HoldsNothingUntilItIsGivenAValue) {
  Tensor x;
  EXPECT_FALSE(x.has_value());
  x = ones({2});
  EXPECT_TRUE(x.has_value());
  const Tensor y = std::move(x);
  EXPECT_FALSE(x.has_value());
  EXPECT_EQ(y.size(), 2);
}

TEST(Tensor, GivesItsBytesBackInTheSameStatement) {
  const int64_t before = memory::current().count;
  Tensor x = zeros({1000, 100});
  EXPECT_EQ(memory::current().count - before, 400000);
  x = {};
  EXPECT_EQ(memory::current().count, before);
}

TEST(Tensor, ViewsShareBytes) {
  const Tensor x = counted({4, 6});
  const int64_t before = memory::current().count;
  const Tensor flat = reshape(x, {2, 12}), turned = transpose(x), rows = x[Slice{.begin = 1}],
               back = x[{td::all, Slice{.step = -2}}], row = x[2],
               wide = broadcast_to(x, {3, 4, 6}), more = expand_dims(x, 1), flipped = flip(x, 0),
               less = squeeze(more), parts = split(x, 2, 1)[1];
  EXPECT_EQ(memory::current().count, before);
  EXPECT_EQ(bytes_of(flat), bytes_of(x));
  EXPECT_EQ(bytes_of(turned), bytes_of(x));
  EXPECT_EQ(list(turned)[1], 6);
  EXPECT_EQ(list(rows)[0], 6);
  EXPECT_EQ(list(back[0]), (Floats{5, 3, 1}));
  EXPECT_EQ(list(row), (Floats{12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(wide.shape(), (Shape{3, 4, 6}));
  EXPECT_EQ((wide[{2, 3, 5}].item<float>()), 23);
  EXPECT_EQ(list(flipped)[0], 18);
  EXPECT_EQ(less.shape(), x.shape());
  EXPECT_EQ(list(parts[0]), (Floats{3, 4, 5}));
}

TEST(Tensor, AViewKeepsTheBytesAlive) {
  const int64_t before = memory::current().count;
  Tensor x = counted({100});
  Tensor view = x[Slice{.begin = 90}];
  x = {};
  EXPECT_EQ(memory::current().count - before, 448);
  EXPECT_EQ(view[9].item<int>(), 99);
  view = {};
  EXPECT_EQ(memory::current().count, before);
}

TEST(Tensor, ReshapeCopiesOnlyWhereStridesForbidAView) {
  const Tensor x = counted({4, 6});
  EXPECT_EQ(list(reshape(transpose(x), {24}))[1], 6);
  EXPECT_NE(bytes_of(reshape(transpose(x), {24})), bytes_of(x));
  EXPECT_EQ(bytes_of(reshape(transpose(reshape(x, {4, 3, 2}), {0, 1, 2}), {12, 2})), bytes_of(x));
  const Tensor columns = x[{td::all, Slice{.begin = 0, .end = 4}}];
  EXPECT_EQ(bytes_of(reshape(columns, {4, 2, 2})), bytes_of(x)) << "splitting an axis is a view";
}

TEST(Tensor, RanksAboveSixWork) {
  const Tensor x = counted({2, 1, 2, 3, 1, 2, 2, 2});
  EXPECT_EQ(x.rank(), 8);
  EXPECT_EQ(sum(x).item<float>(), 95 * 96 / 2);
  EXPECT_EQ((transpose(x)[{1, 1, 1, 0, 2, 1, 0, 1}].item<float>()), 95);
  EXPECT_EQ(sum(x, {0, 3, 7}).shape(), (Shape{1, 2, 1, 2, 2}));
  EXPECT_EQ(list(squeeze(x + 1))[5], 6);
}

TEST(Tensor, EmptyTensorsAreTensors) {
  const Tensor none = zeros({0, 3});
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ((none + 1).shape(), (Shape{0, 3}));
  EXPECT_EQ(sum(none).item<float>(), 0);
  EXPECT_EQ(list(sum(none, 0)), (Floats{0, 0, 0}));
  EXPECT_EQ(prod(none).item<float>(), 1);
  EXPECT_FALSE(any(none).item<bool>());
  EXPECT_TRUE(td::all(none).item<bool>());
  EXPECT_EQ(max(none, 1).shape(), (Shape{0}));
  EXPECT_EQ(concat({none, ones({2, 3})}).shape(), (Shape{2, 3}));
  EXPECT_EQ(matmul(none, ones({3, 4})).shape(), (Shape{0, 4}));
  EXPECT_EQ(list(matmul(ones({2, 0}), ones({0, 2}))), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(softmax(none).shape(), (Shape{0, 3}));
  EXPECT_EQ(flip(none).shape(), (Shape{0, 3}));
  EXPECT_EQ(none[Slice{.step = -1}].shape(), (Shape{0, 3}));
  EXPECT_EQ(gather(ones({5, 2}), constant(std::vector<int>())).shape(), (Shape{0, 2}));
  EXPECT_TRUE(none.to_vector<float>().empty());
  EXPECT_TRUE(std::isnan(mean(none).item<float>()));
  EXPECT_EQ(reshape(none, {3, 0, 7}).shape(), (Shape{3, 0, 7}));
}

// ---- writing ------------------------------------------------------------------------------------

TEST(Tensor, AnRvalueIsWrittenOver) {
  for (const int64_t size : {4, 100, 10000}) {
    Tensor x = full({size}, 3.0F);
    const void* const bytes = bytes_of(x);
    const Tensor y = square(std::move(x));
    EXPECT_EQ(bytes_of(y), bytes) << size;
    EXPECT_FALSE(x.has_value());
    EXPECT_EQ(list(y), Floats(static_cast<size_t>(size), 9.0F));
  }
}

TEST(Tensor, AnRvalueThatOthersHoldIsNotWrittenOver) {
  Tensor x = full({100}, 3.0F);
  const Tensor same = x, row = x[Slice{.end = 10}];
  const Tensor y = square(std::move(x));
  EXPECT_NE(bytes_of(y), bytes_of(same));
  EXPECT_EQ(same[0].item<float>(), 3);
  EXPECT_EQ(row[9].item<float>(), 3);
}

TEST(Tensor, AnRvalueThatIsASmallPartOfItsBytesLetsThemGo) {
  const int64_t before = memory::current().count;
  Tensor large = ones({1000, 1000});
  Tensor row = large[0];
  large = {};
  row = square(std::move(row));
  EXPECT_EQ(memory::current().count - before, granted_bytes(1000 * 4));
}

TEST(Tensor, CompoundAssignmentIsInPlaceForTheLastHandle) {
  Tensor x = ones({300});
  const void* const bytes = bytes_of(x);
  const int64_t before = memory::current().count;
  x += 1;
  x *= x;
  x -= ones({300});
  x /= 2;
  EXPECT_EQ(bytes_of(x), bytes);
  EXPECT_EQ(memory::current().count, before);
  EXPECT_EQ(x[7].item<float>(), 1.5F);
  const Tensor other = x;
  x += 1;
  EXPECT_EQ(other[7].item<float>(), 1.5F) << "a write was seen through another handle";
  EXPECT_EQ(x[7].item<float>(), 2.5F);
}

TEST(Tensor, CompoundAssignmentOfABroadcastOperandKeepsTheShape) {
  Tensor x = zeros({2, 3});
  x += constant({1.0F, 2.0F, 3.0F});
  EXPECT_EQ(list(x), (Floats{1, 2, 3, 1, 2, 3}));
  Tensor small = zeros({3});
  small += ones({2, 3});
  EXPECT_EQ(small.shape(), (Shape{2, 3})) << "as x = x + y";
  Tensor n = constant({1, 2});
  n /= 2;
  EXPECT_EQ(n.dtype(), DType::f32) << "as x = x / y";
}

TEST(Update, WritesInPlaceOrIntoACopy) {
  Tensor x = zeros({4, 3});
  const void* const bytes = bytes_of(x);
  x = update(std::move(x), {1, td::all}, 5);
  EXPECT_EQ(bytes_of(x), bytes);
  x = update(std::move(x), {Slice{.step = -2}, 0}, constant({7, 8}));
  EXPECT_EQ(list(x), (Floats{0, 0, 0, 8, 5, 5, 0, 0, 0, 7, 0, 0}));
  const Tensor other = x;
  x = update(std::move(x), {td::ellipsis, 2}, 1);
  EXPECT_EQ((other[{0, 2}].item<float>()), 0);
  EXPECT_EQ((x[{0, 2}].item<float>()), 1);
  const Tensor y = update(other, 0, arange(3));
  EXPECT_EQ(list(y[0]), (Floats{0, 1, 2}));
  EXPECT_EQ(list(other[0]), (Floats{0, 0, 0}));
}

TEST(Update, OfAPartByAnotherPartOfItself) {
  Tensor x = counted({6});
  const Tensor front = x[Slice{.end = -1}];
  x = update(std::move(x), Slice{.begin = 1}, front);
  EXPECT_EQ(list(x), (Floats{0, 0, 1, 2, 3, 4}));
}

// ---- indexing -----------------------------------------------------------------------------------

TEST(Index, TakesNumbersSlicesNewAxesAndEllipsis) {
  const Tensor x = counted({3, 4, 5});
  EXPECT_EQ(x[0].shape(), (Shape{4, 5}));
  EXPECT_EQ((x[{-1, -1, -1}].item<float>()), 59);
  EXPECT_EQ((x[{0, td::all}].shape()), (Shape{4, 5}));
  EXPECT_EQ((x[{td::ellipsis, 0}].shape()), (Shape{3, 4}));
  EXPECT_EQ((x[{1, td::ellipsis, 2}].shape()), (Shape{4}));
  EXPECT_EQ((x[{Slice{.begin = 1, .step = 2}, td::newaxis}].shape()), (Shape{1, 1, 4, 5}));
  EXPECT_EQ((x[{td::newaxis, td::ellipsis, td::newaxis}].shape()), (Shape{1, 3, 4, 5, 1}));
  EXPECT_EQ(list(x[{0, 0, Slice{.begin = -2}}]), (Floats{3, 4}));
  EXPECT_EQ(list(x[{0, 0, Slice{.begin = 3, .step = -2}}]), (Floats{3, 1}));
  EXPECT_EQ(list(x[{0, 0, Slice{.begin = 100}}]), Floats());
  EXPECT_EQ(list(x[{0, 0, Slice{.begin = -100, .end = 100}}]), (Floats{0, 1, 2, 3, 4}));
  EXPECT_EQ(list(x[{0, 0, Slice{.begin = 3, .end = 0, .step = -1}}]), (Floats{3, 2, 1}));
  EXPECT_EQ(x[x.shape()[0] - 1].shape(), (Shape{4, 5}));
}

TEST(Index, TakesMasksAndIntegerTensors) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ(list(x[x > 8]), (Floats{9, 10, 11}));
  EXPECT_EQ(x[x < 0].shape(), (Shape{0}));
  const Tensor rows = constant({true, false, true});
  EXPECT_EQ(x[rows].shape(), (Shape{2, 4}));
  EXPECT_EQ(list(x[rows][1]), (Floats{8, 9, 10, 11}));
  const Tensor columns = constant({3, 0, -1});
  EXPECT_EQ(list(x[{0, columns}]), (Floats{3, 0, 3}));
  EXPECT_EQ((x[{td::all, columns}].shape()), (Shape{3, 3}));
  EXPECT_EQ((x[constant({{0, 1}, {2, 0}})].shape()), (Shape{2, 2, 4}));
}

// NumPy's rule; tests/truth/edges_index.py has every list.
TEST(Index, PutsWhatNumbersAndATensorPickFirstWhereTheyStandApart) {
  const Tensor x = counted({2, 3, 4, 5}), i = constant({0, 1});
  EXPECT_EQ((x[{1, td::all, i}].shape()), (Shape{2, 3, 5}));
  EXPECT_EQ((x[{td::all, 1, i}].shape()), (Shape{2, 2, 5}));
  EXPECT_EQ((x[{td::all, i, td::all, 1}].shape()), (Shape{2, 2, 4}));
  EXPECT_EQ((x[{td::all, 1, td::ellipsis, i, td::all}].shape()), (Shape{2, 2, 5}));
  EXPECT_EQ(list(x[{1, td::all, i, 0}]), (Floats{60, 80, 100, 65, 85, 105}));
}

// ---- reading ------------------------------------------------------------------------------------

TEST(Tensor, ConvertsWhatIsRead) {
  EXPECT_EQ(constant({2.75F}).item<int>(), 2);
  EXPECT_EQ(constant({true}).item<double>(), 1);
  EXPECT_TRUE(static_cast<bool>(constant({3}) > 2));
  EXPECT_EQ(constant({1, 2}).to_vector<double>(), (std::vector<double>{1, 2}));
  EXPECT_EQ(constant({0, 2}).to_vector<bool>(), (std::vector<bool>{false, true}));
  EXPECT_EQ(constant({-1, 300}).to_vector<int16_t>(), (std::vector<int16_t>{-1, 300}));
  EXPECT_EQ(constant({int64_t{1} << 60}, DType::i64).item<int64_t>(), int64_t{1} << 60);
  const Tensor x = counted({2, 2});
  EXPECT_EQ(x.span<const float>()[3], 3);
  EXPECT_EQ(x.size_bytes().count, 16);
}

TEST(Tensor, IdenticalComparesDTypeShapeAndBits) {
  EXPECT_TRUE(identical(counted({2, 3}), transpose(transpose(counted({2, 3})))));
  EXPECT_FALSE(identical(counted({2, 3}), counted({3, 2})));
  EXPECT_FALSE(identical(constant({1}), constant({1.0F})));
  EXPECT_FALSE(identical(constant({0.0F}), constant({-0.0F})));
}

// ---- dtypes -------------------------------------------------------------------------------------

TEST(Promotion, OfTensors) {
  struct {
    DType a, b, both;
  } const table[] = {
      {f32, i32, f32},     {f32, i64, f32},    {f16, i64, f16},     {bf16, f16, f32},
      {bf16, f32, f32},    {f64, f16, f64},    {u8, i32, i32},      {u8, i64, i64},
      {i32, i64, i64},     {boolean, u8, u8},  {boolean, f16, f16}, {boolean, boolean, boolean},
      {f64, boolean, f64}, {i8, i16, i16},     {i8, u8, i16},       {u16, i16, i32},
      {i8, u32, i64},      {u8, u16, u16},     {u32, u64, u64},     {u8, i8, i16},
      {i16, u8, i16},      {u64, i8, f64},     {u64, i64, f64},     {u64, f32, f32},
      {i8, bf16, bf16},    {boolean, u64, u64}};
  for (const auto& row : table) {
    EXPECT_EQ((ones({2}, row.a) + ones({2}, row.b)).dtype(), row.both) << row.a << " " << row.b;
    EXPECT_EQ((ones({2}, row.b) + ones({2}, row.a)).dtype(), row.both) << row.b << " " << row.a;
  }
}

TEST(Promotion, OfPlainNumbers) {
  EXPECT_EQ((ones({2}, f16) * 0.5).dtype(), f16);
  EXPECT_EQ((ones({2}, f16) * 2).dtype(), f16);
  EXPECT_EQ((ones({2}, i32) + 0.5).dtype(), f32);
  EXPECT_EQ((ones({2}, u8) + 1).dtype(), u8);
  EXPECT_EQ((ones({2}, i64) + 1).dtype(), i64);
  EXPECT_EQ((ones({2}, boolean) + 1).dtype(), i32);
  EXPECT_EQ((ones({2}, i64) + true).dtype(), i64);
  EXPECT_EQ((ones({2}, f64) + 1.5F).dtype(), f64);
  EXPECT_EQ(where(constant({true}), 1, 2.5).dtype(), f32);
  // A number stored as a tensor stays weak; stored alone it has its default dtype.
  const Tensor number = 0.5;
  EXPECT_EQ(number.dtype(), f32);
  EXPECT_EQ((ones({2}, f16) * number).dtype(), f16);
  EXPECT_EQ(Tensor(1).dtype(), i32);
  EXPECT_EQ(Tensor(true).dtype(), boolean);
  EXPECT_EQ((ones({2}, f64) * 0.1)[0].item<double>(), 0.1) << "a number meets f64 unrounded";
}

TEST(Promotion, OfOpsWithDTypesOfTheirOwn) {
  EXPECT_EQ((constant({1, 2}) / 2).dtype(), f32);
  EXPECT_EQ((constant({1}, i64) / constant({2}, i64)).dtype(), f32);
  EXPECT_EQ(sqrt(constant({4})).dtype(), f32);
  EXPECT_EQ((constant({1}) == 1).dtype(), boolean);
  EXPECT_EQ(sum(ones({3}, u8)).dtype(), i64);
  EXPECT_EQ(sum(ones({3}, boolean)).item<int>(), 3);
  for (const DType dtype : {i8, i16, u16, u32}) EXPECT_EQ(sum(ones({3}, dtype)).dtype(), i64);
  EXPECT_EQ(sum(ones({3}, u64)).dtype(), u64);
  EXPECT_EQ(cumsum(ones({3}, u64)).dtype(), u64);
  EXPECT_EQ(prod(ones({3}, i32)).dtype(), i64);
  EXPECT_EQ(cumsum(ones({3}, i32)).dtype(), i64);
  EXPECT_EQ(max(ones({3}, u8)).dtype(), u8);
  EXPECT_EQ(argmax(ones({3}, u8)).dtype(), i64);
  EXPECT_EQ(mean(constant({1, 2})).dtype(), f32);
  EXPECT_EQ(mean(constant({1, 2})).item<float>(), 1.5F);
  EXPECT_EQ(concat({ones({1}, i32), ones({1}, f16)}).dtype(), f16);
  EXPECT_EQ(matmul(ones({2, 2}, i32), ones({2, 2}, bf16)).dtype(), bf16);
  EXPECT_EQ(where(constant({1, 0}), 1, 0).dtype(), i32);
}

// What i64 cannot hold.
TEST(LargestIntegers, AreExact) {
  constexpr uint64_t kMost = UINT64_MAX, kHalf = uint64_t{1} << 63;
  const Tensor x = constant(std::vector<uint64_t>{kMost, 5, kHalf});
  EXPECT_EQ(x.dtype(), u64);
  EXPECT_EQ(x.to_vector<uint64_t>(), (std::vector<uint64_t>{kMost, 5, kHalf}));
  EXPECT_EQ(x[0].item<uint64_t>(), kMost);
  EXPECT_EQ(x[0].item<double>(), 0x1p64);
  EXPECT_EQ(x[0].item<float>(), 0x1p64F);
  EXPECT_EQ(cast(x, f64).to_vector<double>(), (std::vector<double>{0x1p64, 5, 0x1p63}));
  EXPECT_EQ(cast(constant({1e30, -1.0, 0x1p63}, f64), u64).to_vector<uint64_t>(),
            (std::vector<uint64_t>{kMost, 0, kHalf}));
  EXPECT_EQ(max(x).item<uint64_t>(), kMost);
  EXPECT_EQ(min(x).item<uint64_t>(), 5U);
  EXPECT_EQ(argmax(x).item<int>(), 0);
  EXPECT_EQ(sort(x).to_vector<uint64_t>(), (std::vector<uint64_t>{5, kHalf, kMost}));
  EXPECT_EQ(cummax(flip(x)).to_vector<uint64_t>(), (std::vector<uint64_t>{kHalf, kHalf, kMost}));
  EXPECT_EQ(floor_divide(x, 2).to_vector<uint64_t>(),
            (std::vector<uint64_t>{kMost / 2, 2, kHalf / 2}));
  EXPECT_EQ((x < kHalf - 1).to_vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ((x >> 63).to_vector<uint64_t>(), (std::vector<uint64_t>{1, 0, 1}));
  EXPECT_EQ((x + 1).to_vector<uint64_t>(), (std::vector<uint64_t>{0, 6, kHalf + 1}));
  EXPECT_EQ(sum(constant(std::vector<uint64_t>{kHalf, kHalf - 1})).item<uint64_t>(), kMost);
}

TEST(Operators, AreTheOpsTheyStandFor) {
  const Tensor a = constant({7, -7}), b = constant({2, 2});
  EXPECT_EQ((a % b).to_vector<int>(), (std::vector<int>{1, 1}));
  EXPECT_EQ(floor_divide(a, b).to_vector<int>(), (std::vector<int>{3, -4}));
  EXPECT_EQ((-a).to_vector<int>(), (std::vector<int>{-7, 7}));
  EXPECT_EQ((a & 3).to_vector<int>(), (std::vector<int>{3, 1}));
  EXPECT_EQ((a | 8).to_vector<int>(), (std::vector<int>{15, -7}));
  EXPECT_EQ((a ^ b).to_vector<int>(), (std::vector<int>{5, -5}));
  EXPECT_EQ((~a).to_vector<int>(), (std::vector<int>{-8, 6}));
  EXPECT_EQ((a << 1).to_vector<int>(), (std::vector<int>{14, -14}));
  EXPECT_EQ((a >> 1).to_vector<int>(), (std::vector<int>{3, -4}));
  EXPECT_EQ(logical_not(a > 0).to_vector<bool>(), (std::vector<bool>{false, true}));
  EXPECT_FALSE(!td::any(a > 0)) << "`!` asks one element for its truth";
  EXPECT_EQ((~(a > 0)).to_vector<bool>(), (std::vector<bool>{false, true}));
  EXPECT_EQ((1 - a).to_vector<int>(), (std::vector<int>{-6, 8}));
  EXPECT_EQ((a >= 7).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ((7 != a).to_vector<bool>(), (std::vector<bool>{false, true}));
}

// A sum over an axis that repeats one element is value times count, rounded once.
TEST(Sum, OverARepeatedAxisIsAProduct) {
  const float third = 1.0F / 3;
  for (const int64_t count : {3, 1000, 100000}) {
    const float want = third * static_cast<float>(count);
    EXPECT_EQ(sum(repeat(constant({third}), count)).item<float>(), want);
    EXPECT_EQ(sum(broadcast_to(third, {7, count}), 1)[3].item<float>(), want);
    EXPECT_EQ(sum(broadcast_to(constant({third, third}), {count, 2}), 0)[1].item<float>(), want);
  }
  const float inner = third + third;
  EXPECT_EQ(sum(broadcast_to(constant({third, third}), {1000, 2})).item<float>(), inner * 1000);
}

// ---- the line that made it ----------------------------------------------------------------------

#define CHARGED(expression, wanted) EXPECT_EQ((expression).source().line, unsigned(wanted))

TEST(Source, OfATensorIsTheLineThatMadeIt) {
  Tensor a = ones({2, 2}), b = ones({2, 2});
  CHARGED(td::ones({2, 2}), __LINE__);
  CHARGED(td::constant({{1, 2}, {3, 4}}), __LINE__);
  CHARGED(a + b, __LINE__);
  CHARGED(a * 2.0f, __LINE__);
  CHARGED(2 - a, __LINE__);
  CHARGED(-a, __LINE__);
  CHARGED(a == b, __LINE__);
  CHARGED(1 != a, __LINE__);
  CHARGED(a / a.shape()[0], __LINE__);
  CHARGED(td::exp(a), __LINE__);
  CHARGED(td::exp(2.0), __LINE__);
  CHARGED(td::maximum(a, 0), __LINE__);
  CHARGED(td::sum(a, {0, 1}, td::keepdims), __LINE__);
  CHARGED(td::all(a > 0), __LINE__);
  CHARGED((a[{0, td::all}]), __LINE__);
  CHARGED((a[{td::Slice{.begin = 1}, td::newaxis}]), __LINE__);
  CHARGED(a[0], __LINE__);
  CHARGED(td::concat({a, b}, 0), __LINE__);
  CHARGED(td::reshape(a, {4}), __LINE__);
  CHARGED(td::softmax(a), __LINE__);
  CHARGED(td::matmul(a, b), __LINE__);
  a += b;
  CHARGED(a, __LINE__ - 1);
  const Tensor c = std::move(a) * 2;
  CHARGED(c, __LINE__ - 1);
  a = td::update(c, 0, 1);
  CHARGED(a, __LINE__ - 1);
}

TEST(Source, OfACompositeIsTheLineThatCalledIt) {
  const Tensor a = ones({2, 2}), x = ones({1, 4, 4, 1});
  CHARGED(td::mean(a, 0), __LINE__);
  CHARGED(td::gelu(a), __LINE__);
  CHARGED(td::layer_norm(a), __LINE__);
  CHARGED(td::attention(a, a, a), __LINE__);
  CHARGED(td::eye(3), __LINE__);
  CHARGED(td::one_hot(td::constant({1}), 2), __LINE__);
  CHARGED(td::tril(a), __LINE__);
  CHARGED(td::max_pool(x), __LINE__);
  CHARGED(td::linspace(0, 1, 5), __LINE__);
  CHARGED(td::std(a), __LINE__);
}

// ---- printing -----------------------------------------------------------------------------------

TEST(Print, LooksLikeNumPys) {
  const auto text = [](const Tensor& x) {
    std::ostringstream out;
    out << x;
    return out.str();
  };
  EXPECT_EQ(text(constant({{1, 2}, {30, 4}})), "[[ 1  2]\n [30  4]]");
  EXPECT_EQ(text(constant({1.0F, 2.5F, -3.25F})), "[ 1.    2.5  -3.25]");
  EXPECT_EQ(text(constant({true, false})), "[ True False]");
  EXPECT_EQ(text(constant({-128, 65}, i8)), "[-128   65]");
  EXPECT_EQ(text(constant(std::vector<uint64_t>{UINT64_MAX, 0})),
            "[18446744073709551615                    0]");
  EXPECT_EQ(text(arange(2000)), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(text(zeros({0})), "[]");
  EXPECT_EQ(text(zeros({2, 0, 3})), "[]");
  EXPECT_EQ(text(zeros({0, 2}, DType::i64)), "[]");
  // 16-bit floats have the digits that name them among their own.
  EXPECT_EQ(text(constant({0.1, 3.14159, -2.0}, DType::f16)), "[ 0.1   3.14 -2.  ]");
  EXPECT_EQ(text(constant({0.1, 3.14159, -2.0}, DType::bf16)), "[ 0.1   3.14 -2.  ]");
  EXPECT_EQ(text(constant({1e-7, 6e-8, 0.0}, DType::f16)), "[1.e-07 6.e-08 0.e+00]");
  EXPECT_EQ(text(constant({65504.0, 1.0}, DType::f16)), "[6.55e+04 1.00e+00]");
  EXPECT_EQ(text(constant(0.1, DType::f16)), "0.1");
  EXPECT_EQ(text(constant({NAN, INFINITY, 1.0F})), "[nan inf  1.]");
  EXPECT_EQ(text(Tensor()), "<no tensor>");
}

TEST(Reading, TruncatesAndSaturates) {
  const Tensor x = constant({1e30, -1e30, double{NAN}, -7.9, 40000.5}, DType::f64);
  EXPECT_EQ(x.to_vector<int16_t>(), (std::vector<int16_t>{32767, -32768, 0, -7, 32767}));
  EXPECT_EQ(x.to_vector<uint64_t>(), (std::vector<uint64_t>{UINT64_MAX, 0, 0, 0, 40000}));
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, -7, 40000}));
  const auto read = [&]<class T>(T) {
    std::vector<T> list;
    for (int64_t i = 0; i < x.size(); ++i) list.push_back(x[i].item<T>());
    return list;
  };
  EXPECT_EQ(read(int16_t{}), x.to_vector<int16_t>());
  EXPECT_EQ(read(int32_t{}), x.to_vector<int32_t>());
  EXPECT_EQ(read(uint8_t{}), x.to_vector<uint8_t>());
  EXPECT_EQ(read(uint32_t{}), x.to_vector<uint32_t>());
  EXPECT_EQ(read(int64_t{}), x.to_vector<int64_t>());
  EXPECT_EQ(read(uint64_t{}), x.to_vector<uint64_t>());
  EXPECT_EQ(constant({300, -1}).to_vector<int16_t>(), (std::vector<int16_t>{300, -1}));
  EXPECT_EQ(constant({0.5F, 2.0F}).to_vector<long double>(), (std::vector<long double>{0.5L, 2}));
}

TEST(Index, TakesStepsOfAnySize) {
  const Tensor x = counted({5, 2});
  const auto rows = [&](const Slice& slice) { return list(x[{slice, 0}]); };
  EXPECT_EQ(rows({.step = INT64_MAX}), (Floats{0}));
  EXPECT_EQ(rows({.step = INT64_MIN}), (Floats{8}));
  EXPECT_EQ(rows({.begin = 1, .step = INT64_MAX}), (Floats{2}));
  EXPECT_EQ(rows({.begin = INT64_MIN, .end = INT64_MAX, .step = 3}), (Floats{0, 6}));
  EXPECT_EQ(rows({.begin = INT64_MAX, .end = INT64_MIN, .step = -3}), (Floats{8, 2}));
  EXPECT_EQ(rows({.begin = 4, .end = 1, .step = INT64_MAX}), (Floats{}));
  EXPECT_EQ(rows({.begin = 1, .end = 4, .step = INT64_MIN}), (Floats{}));
  EXPECT_EQ(rows({.step = 5}), (Floats{0}));
  EXPECT_EQ(rows({.step = 4}), (Floats{0, 8}));
}

TEST(Index, AMaskTakesOneTensorOfPositions) {
  const Tensor x = counted({100, 10});
  const Tensor mask = transpose(transpose(x) >= 995);
  EXPECT_EQ(list(x[mask]), (Floats{995, 996, 997, 998, 999}));
  EXPECT_EQ(list(x[x < 0]), (Floats{}));
  EXPECT_EQ((x[{3, x[3] == x[3]}].size()), 10);
}

// The examples of the documentation compile and say what they say.
TEST(Documentation, ItsFirstExampleWorks) {
  td::Tensor x = td::constant({{1, 2, 3}, {4, 5, 6}}, td::f32);
  td::Tensor y = (x - td::mean(x, 0)) / (td::std(x, 0, td::keepdims) + 1e-6);
  EXPECT_NEAR((y[{0, 2}].item<float>()), -1, 1e-5);
  EXPECT_TRUE(td::all(y < 10).item<bool>());
  x = td::update(std::move(x), {0, td::all}, 0);
  EXPECT_EQ(td::sum(x).item<float>(), 15);
  EXPECT_EQ(td::cast(x, td::bf16).dtype(), td::bf16);
  EXPECT_EQ(td::clip(x, 1, 5).to_vector<int>(), (std::vector<int>{1, 1, 1, 4, 5, 5}));
  EXPECT_EQ(td::reshape(x, {x.shape()[0], -1}).shape(), (td::Shape{2, 3}));
}

TEST(Update, LeavesItsOperandAloneWhenItFails) {
  Tensor x = arange(4);
  EXPECT_THROW(x = update(std::move(x), {Slice{.begin = 1}}, zeros({9}, DType::i32)), UserError);
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Update, TakesItsValueFromItsOperand) {
  Tensor x = constant({{1, 2}, {3, 4}});
  x = update(std::move(x), {0}, x[1]);
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{3, 4, 3, 4}));
}

TEST(Tensor, APlainNumberKeepsAllItsDigits) {
  const Tensor rate = 0.1;
  const Tensor x = constant({3.0}, DType::f64);
  EXPECT_EQ((x * rate).item<double>(), 3.0 * 0.1);
}

TEST(Sum, OverARepeatedAxisIsRoundedOnceInEveryDtype) {
  const Tensor half = constant(0.001, DType::f16);
  const double value = half.item<double>();
  const Tensor many = sum(broadcast_to(half, {100000}));
  EXPECT_EQ(many.item<float>(), static_cast<float>(float16(static_cast<float>(value * 100000))));
  // The count does not fit 24 bits.
  const Tensor single = sum(broadcast_to(constant(1.0F), {(1 << 24) + 1}));
  EXPECT_EQ(single.item<float>(), static_cast<float>((1 << 24) + 1.0));
}

struct UsesTensorsAtTheEnd {
  ~UsesTensorsAtTheEnd() {
    if (sum(exp(ones({300}) * 0) + 1).item<float>() != 600) std::abort();
  }
};

// Ops work in static destructors and in threads that outlive main.
TEST(Tensor, WorksWhileTheProgramEnds) {
  EXPECT_EXIT(
      {
        static const UsesTensorsAtTheEnd at_the_end;
        compile::set_emitter(compile::Emitter::llvm);
        softmax(ones({20, 30}) + 1);
        std::thread([] {
          for (;;) softmax(tanh(ones({20, 30}) + 1));
        }).detach();
        usleep(2000);
        std::exit(7);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace tidemark
