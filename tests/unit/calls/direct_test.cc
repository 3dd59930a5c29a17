// Shortcuts of eager code have the bits of the composites, which functions run.
#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"
#include "tidemark/calls/images.h"
#include "tidemark/calls/ordered.h"

namespace tidemark {
namespace {

Tensor drawn(const Shape& shape, DType dtype, uint64_t seed = 1) {
  const Tensor x = random::uniform(shape, {.low = -9, .high = 9, .key = random::Key(seed)});
  return cast(x, dtype);
}

// As f64, exactly; NaNs as one.
std::vector<uint64_t> bits(const Tensor& x) {
  std::vector<uint64_t> list;
  for (const double value : cast(x, f64).to_vector<double>())
    list.push_back(std::bit_cast<uint64_t>(std::isnan(value) ? 1.5 : value));
  return list;
}

void expect_alike(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const Tensor eager = f(x), traced = function(f)(x);
  EXPECT_EQ(eager.dtype(), traced.dtype());
  EXPECT_EQ(eager.shape(), traced.shape());
  EXPECT_EQ(bits(eager), bits(traced));
}

constexpr DType kDTypes[] = {bf16, f32, f64, i8};

TEST(Direct, BandsOfMatrices) {
  for (const DType dtype : kDTypes) {
    for (const Shape& shape :
         {Shape{3, 4}, Shape{5, 2}, Shape{2, 3, 3}, Shape{0, 3}, Shape{3, 0}}) {
      for (const int64_t diagonal : {-7, -1, 0, 3}) {
        const Tensor x = drawn(shape, dtype);
        expect_alike([=](const Tensor& y) { return tril(y, diagonal); }, x);
        expect_alike([=](const Tensor& y) { return triu(y, diagonal); }, x);
      }
    }
  }
  const Tensor x = constant({{-0.0, -INFINITY}, {NAN, -1.0}});
  expect_alike([](const Tensor& y) { return tril(transpose(y)); }, x);
  EXPECT_EQ(bits(tril(x)), bits(constant({{-0.0, 0.0}, {NAN, -1.0}})));
}

TEST(Direct, Diagonals) {
  for (const DType dtype : kDTypes) {
    for (const int64_t offset : {-3, 0, 1, 4}) {
      const Tensor x = drawn({6}, dtype);
      expect_alike([=](const Tensor& y) { return diag(y, offset); }, x);
      expect_alike([=](const Tensor& y) { return diag(flip(y, 0), offset); }, x);
    }
    for (const auto& [rows, columns] : {std::pair{3, 3}, {2, 5}, {5, 2}, {0, 4}})
      expect_alike(
          [=, m = rows, n = columns](const Tensor& y) { return eye(m, n, dtype) * (y * 0 + 1); },
          ones({}, dtype));
  }
}

TEST(Direct, CrossProducts) {
  for (const DType dtype : {f16, f32, f64, i32}) {
    const Tensor b = drawn({5, 3}, dtype, 2);
    expect_alike([=](const Tensor& a) { return cross(a, b); }, drawn({5, 3}, dtype));
    expect_alike([=](const Tensor& a) { return cross(a, b); }, drawn({3}, dtype));
    expect_alike([=](const Tensor& a) { return cross(a, transpose(b), 0); }, drawn({3, 5}, dtype));
  }
}

TEST(Direct, PaddingByOwnElements) {
  for (const PadMode mode : {PadMode::reflect, PadMode::symmetric, PadMode::edge}) {
    for (const Padding2& widths :
         {Padding2{{0, 0}, {1, 2}, {3, 0}, {0, 0}}, Padding2{{1, 1}, {0, 0}, {0, 2}, {2, 1}},
          Padding2{{0, 0}, {0, 0}, {0, 0}, {0, 0}}}) {
      const auto padded = [=](const Tensor& y) { return pad(y, widths, mode); };
      for (const DType dtype : {f16, f32, f64, i8})
        expect_alike(padded, drawn({2, 4, 5, 3}, dtype));
      expect_alike([=](const Tensor& y) { return padded(transpose(y)); }, drawn({3, 5, 4, 2}, f32));
    }
  }
}

TEST(Direct, NearestPixels) {
  for (const DType dtype : {f16, f32, f64, u8, i64}) {
    for (const Shape& sizes : {Shape{3, 9}, Shape{8, 2}, Shape{5, 7}, Shape{1, 1}})
      expect_alike([=](const Tensor& y) { return resize(y, sizes, {.method = Resizing::nearest}); },
                   drawn({2, 5, 7, 3}, dtype));
  }
}

// The height shrinks: rows are resampled in both directions one by one.
TEST(Direct, ResampledPixels) {
  for (const Resizing method : {Resizing::bilinear, Resizing::bicubic}) {
    for (const bool antialias : {false, true}) {
      const auto resized = [=](const Tensor& y, const Shape& sizes, ImageLayout layout) {
        return resize(y, sizes, {.method = method, .antialias = antialias, .layout = layout});
      };
      for (const DType dtype : {f16, f32, f64, u8}) {
        for (const Shape& sizes : {Shape{3, 4}, Shape{1, 1}, Shape{4, 15}, Shape{9, 12}})
          expect_alike([=](const Tensor& y) { return resized(y, sizes, ImageLayout::nhwc); },
                       drawn({2, 6, 11, 3}, dtype));
      }
      expect_alike([=](const Tensor& y) { return resized(y, {25, 20}, ImageLayout::nhwc); },
                   drawn({3, 50, 40, 24}, f32));
      expect_alike([=](const Tensor& y) { return resized(y, {4, 5}, ImageLayout::nchw); },
                   drawn({2, 3, 9, 8}, f32));
      expect_alike([=](const Tensor& y) { return resized(y, {4, 5}, ImageLayout::nhwc); },
                   drawn({0, 9, 8, 2}, f32));
    }
  }
}

TEST(Direct, TrueIndices) {
  for (const Shape& shape : {Shape{700}, Shape{3, 300}, Shape{2, 3, 4}, Shape{0, 3}, Shape{3, 0}}) {
    const Tensor x = cast(drawn(shape, i32) > 2, i32);
    const int64_t count = nonzero(x).size.item<int64_t>();
    EXPECT_EQ(count, sum(x).item<int64_t>());
    expect_alike([=](const Tensor& y) { return nonzero(y, {.max_size = count}).indices; }, x);
    EXPECT_EQ(bits(nonzero(x).indices), bits(nonzero(x, {.max_size = count}).indices));
    EXPECT_EQ(nonzero(x).indices.shape(), nonzero(x, {.max_size = count}).indices.shape());
  }
  EXPECT_EQ(nonzero(constant(2.5)).indices.shape(), (Shape{1, 0}));
}

TEST(Direct, DistinctElements) {
  for (const DType dtype : kDTypes) {
    const Tensor x = drawn({7, 9}, dtype);
    const Unique found = unique(x);
    const Unique same = unique(x, {.max_size = found.size.item<int64_t>()});
    EXPECT_EQ(bits(found.values), bits(same.values));
    EXPECT_EQ(bits(found.inverse), bits(same.inverse));
    EXPECT_EQ(found.inverse.shape(), x.shape());
    EXPECT_EQ(bits(found.counts), bits(same.counts));
  }
  const Tensor special = constant({-0.0, NAN, 0.0, NAN, -0.0, INFINITY});
  const Unique found = unique(special), same = unique(special, {.max_size = 3});
  EXPECT_EQ(bits(found.values), bits(same.values));
  EXPECT_EQ(bits(found.counts), bits(same.counts));
}

TEST(Direct, Counts) {
  const Tensor x = drawn({500}, i32);
  expect_alike([](const Tensor& y) { return bincount(y, {.length = 6}); }, x);
  for (const DType dtype : {f32, f64}) {
    const Tensor list = concat({drawn({400}, dtype), cast(drawn({90}, i32), dtype),
                                cast(constant({NAN, INFINITY, -INFINITY, 9.0, -9.0}), dtype)});
    for (const int64_t bins : {1, 7, 18, 300}) {
      const HistogramOptions options{.bins = bins, .low = -9, .high = 9};
      expect_alike([=](const Tensor& y) { return histogram(y, options).counts; }, list);
    }
    const HistogramOptions narrow{.bins = 4, .low = 1, .high = std::nextafter(1.0F, 2.0F)};
    expect_alike([=](const Tensor& y) { return histogram(y, narrow).counts; }, list);
  }
}

// Values by hand, and the bits of functions, which compute by parts.
TEST(Direct, ComplexProductsAndConjugates) {
  const Tensor z = view_as_complex(constant({{1.0f, 2.0f}, {-3.0f, 0.5f}, {0.0f, -1.0f}}));
  const Tensor w = view_as_complex(constant({{4.0f, -1.0f}, {2.0f, 2.0f}, {-0.0f, 3.0f}}));
  EXPECT_EQ(bits(view_as_real(z * w)), bits(constant({{6.0, 7.0}, {-7.0, -5.0}, {3.0, 0.0}})));
  EXPECT_EQ(bits(view_as_real(conj(z))), bits(constant({{1.0, -2.0}, {-3.0, -0.5}, {0.0, 1.0}})));
  for (const DType dtype : {f32, f64}) {
    for (const int64_t count : {0, 1, 2, 5, 9001}) {
      const Tensor pairs = drawn({count, 4}, dtype);
      expect_alike(
          [](const Tensor& y) { return view_as_real(conj(view_as_complex(reshape(y, {-1, 2})))); },
          pairs);
      expect_alike(
          [](const Tensor& y) {
            const std::vector<Tensor> parts = split(y, 2, 1);
            return view_as_real(view_as_complex(parts[0]) * view_as_complex(parts[1]));
          },
          pairs);
    }
  }
}

// A caller that flushes denormals to zero, as PyTorch can be told to.
TEST(Direct, DoesNotTakeTheFloatModesOfTheCaller) {
  const Tensor x = constant({1e-40, 0.0, -1e-40, 2e-40}, f32);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040U);
  const Unique distinct = unique(x);
  const Histogram counted = histogram(x, {.bins = 2, .low = 0, .high = 1});
  _mm_setcsr(before);
  EXPECT_EQ(distinct.counts.to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(counted.counts.to_vector<int64_t>(), (std::vector<int64_t>{3, 0}));
}

}  // namespace
}  // namespace tidemark
