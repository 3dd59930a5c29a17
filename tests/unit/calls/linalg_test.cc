// td::linalg where no table of small matrices reaches: large, ill-conditioned and singular ones,
// and what holds however they are called. tests/truth/edges_linalg.py has values and derivatives.
#include "tidemark/calls/linalg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tidemark/api/control_flow.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/plan.h"
#include "tidemark/api/random.h"
#include "tidemark/calls/complex.h"
#include "tidemark/device/threads.h"

namespace tidemark {
namespace {

using Doubles = std::vector<double>;

Tensor drawn(const Shape& shape, DType dtype, uint64_t seed = 1) {
  return random::normal(shape, {.dtype = dtype, .key = random::Key(seed)});
}

Tensor turned(const Tensor& x) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

double largest(const Tensor& x) { return cast(max(abs(x)), f64).item<double>(); }
double epsilon(DType dtype) { return dtype == f32 ? 0x1p-23 : 0x1p-52; }

// |x| in units of the rounding of n products.
double errors(const Tensor& x, int64_t n, double scale = 1) {
  return largest(x) / (epsilon(x.dtype()) * static_cast<double>(n) * scale);
}

// In units of n roundings; LAPACK's own errors are between 0.01 and 1 of these.
constexpr double kFew = 4;

class Large : public testing::TestWithParam<DType> {};

TEST_P(Large, FactorsMultiplyToTheMatrix) {
  for (const int64_t n : {64, 65, 200}) {
    const Tensor a = drawn({n, n}, GetParam());
    const Tensor positive = matmul(a, turned(a)) + eye(n, GetParam());
    const Tensor l = linalg::cholesky(positive);
    EXPECT_LT(errors(matmul(l, turned(l)) - positive, n, largest(positive)), kFew);

    const auto [packed, order] = linalg::lu(a);
    const Tensor lower = tril(packed, -1) + eye(n, GetParam());
    EXPECT_LT(errors(matmul(lower, triu(packed)) - gather(a, order), n, largest(a)), kFew);

    const Tensor b = drawn({n, 5}, GetParam(), 2), x = linalg::solve(a, b);
    EXPECT_LT(errors(matmul(a, x) - b, n, largest(a) * largest(x)), kFew);
    const Tensor y = linalg::cholesky_solve(l, b);
    EXPECT_LT(errors(matmul(positive, y) - b, n, largest(positive) * largest(y)), kFew);
  }
}

TEST_P(Large, BasesAreOrthonormal) {
  const Shape shapes[] = {{64, 64}, {200, 65}, {65, 200}, {2, 130, 100}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(cat(shape));
    const Tensor a = drawn(shape, GetParam());
    const int64_t n = std::max(int64_t{shape[-1]}, int64_t{shape[-2]});
    const auto [q, r] = linalg::qr(a);
    EXPECT_LT(errors(matmul(q, r) - a, n, largest(a)), kFew);
    EXPECT_LT(errors(matmul(turned(q), q) - eye(q.shape()[-1], GetParam()), n), kFew);

    const auto [u, s, vh] = linalg::svd(a);
    EXPECT_LT(errors(matmul(u * expand_dims(s, -2), vh) - a, n, largest(s)), kFew);
    EXPECT_LT(errors(matmul(turned(u), u) - eye(s.shape()[-1], GetParam()), n), kFew);
    EXPECT_LT(errors(matmul(vh, turned(vh)) - eye(s.shape()[-1], GetParam()), n), kFew);
    EXPECT_LT(errors(s - linalg::svdvals(a), n, largest(s)), kFew);

    const auto full = linalg::svd(a, {.full_matrices = true});
    EXPECT_EQ(full.u.shape()[-1], shape[-2]);
    EXPECT_EQ(full.vh.shape()[-2], shape[-1]);
    EXPECT_LT(errors(matmul(turned(full.u), full.u) - eye(shape[-2], GetParam()), n), kFew);
    EXPECT_LT(errors(matmul(full.vh, turned(full.vh)) - eye(shape[-1], GetParam()), n), kFew);
  }
}

void expect_eigenvectors(const Tensor& a) {
  const int64_t n = a.shape()[-1];
  const Tensor symmetric = (a + turned(a)) / 2;
  const auto [values, vectors] = linalg::eigh(a);
  EXPECT_LT(errors(matmul(vectors * values, turned(vectors)) - symmetric, n, largest(values)),
            kFew);
  EXPECT_LT(errors(matmul(turned(vectors), vectors) - eye(n, a.dtype()), n), kFew);
  EXPECT_LT(errors(values - linalg::eigvalsh(a), n, largest(values)), kFew);
  EXPECT_EQ(all(values == sort(values)).item<bool>(), true);
}

TEST_P(Large, EigenvectorsDiagonalize) {
  for (const int64_t n : {64, 65, 200}) expect_eigenvectors(drawn({n, n}, GetParam()));
}

// The first columns are reduced in blocks.
TEST_P(Large, BlocksAreReduced) {
  const int64_t n = 550;
  const Tensor a = drawn({n, n}, GetParam());
  expect_eigenvectors(a);
  const auto [u, s, vh] = linalg::svd(a);
  EXPECT_LT(errors(matmul(u * s, vh) - a, n, largest(s)), kFew);
  EXPECT_LT(errors(matmul(turned(u), u) - eye(n, GetParam()), n), kFew);
  EXPECT_LT(errors(matmul(vh, turned(vh)) - eye(n, GetParam()), n), kFew);
  EXPECT_LT(errors(s - linalg::svdvals(a), n, largest(s)), kFew);
}

// What is left of these matrices after the first step is rounding, and then less than the smallest
// normal number.
TEST_P(Large, BasesOfLowRankAreOrthonormal) {
  for (const int64_t n : {10, 33, 200}) {
    SCOPED_TRACE(cat(n));
    const Tensor column = drawn({n, 1}, GetParam());
    for (const Tensor& a : {ones({n, n}, GetParam()), matmul(column, turned(column))}) {
      const Tensor one = eye(n, GetParam());
      const Tensor q = linalg::qr(a).q, vectors = linalg::eigh(a).vectors;
      const auto [u, s, vh] = linalg::svd(a);
      for (const Tensor& basis : {q, vectors, u, turned(vh)})
        EXPECT_LT(errors(matmul(turned(basis), basis) - one, n), kFew);
    }
  }
}

TEST_P(Large, BasesOfDenormalsAreOrthonormal) {
  const double scale = GetParam() == f32 ? 1e-42 : 1e-320;
  for (const int64_t n : {3, 40}) {
    const Tensor q = linalg::qr(drawn({n, n}, GetParam()) * scale).q;
    EXPECT_LT(errors(matmul(turned(q), q) - eye(n, GetParam()), n), kFew) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, Large, testing::Values(f32, f64),
                         [](const auto& info) { return cat(info.param); });

// ---- extremes -----------------------------------------------------------------------------------

Tensor hilbert(int64_t n) {
  const Tensor i = cast(arange(n), f64);
  return 1.0 / (expand_dims(i, 1) + i + 1);
}

TEST(Linalg, IllConditionedSystemsHaveSmallResiduals) {
  const Tensor a = hilbert(12), b = ones({12}, f64);  // Its condition is about 1e16.
  const Tensor x = linalg::solve(a, b);
  EXPECT_LT(largest(matmul(a, x) - b), 1e-15 * 12 * largest(x));
  const auto [u, s, vh] = linalg::svd(a);
  EXPECT_LT(largest(matmul(u * s, vh) - a), 1e-14);
  EXPECT_NEAR(s[0].item<double>(), 1.7953720595619975, 1e-14);
}

TEST(Linalg, ScalesOfAnySizeKeepTheirDigits) {
  for (const double scale : {1e-300, 1e-150, 1e150, 1e300}) {
    const Tensor a = drawn({9, 6}, f64), square = drawn({7, 7}, f64);
    EXPECT_LT(largest(linalg::svdvals(a * scale) / linalg::svdvals(a) / scale - 1), 1e-13);
    EXPECT_LT(largest(linalg::eigvalsh(square * scale) / linalg::eigvalsh(square) / scale - 1),
              1e-12);
    const auto [q, r] = linalg::qr(a * scale);
    EXPECT_LT(largest(matmul(q, r / scale) - a), 1e-13);
  }
}

Tensor up_to(int64_t n) { return cast(arange(n), f64) + 1; }

// The eigenvalues of second differences, and the singular values of sums, are known.
TEST(Linalg, ValuesAreThoseOfClosedForms) {
  for (const int64_t n : {1, 2, 7, 16, 100, 300}) {
    SCOPED_TRACE(cat(n));
    const auto size = static_cast<double>(n);
    const Tensor beside = triu(tril(ones({n, n}, f64), 1), -1);
    const Tensor differences = 3.0 * eye(n, f64) - beside;
    const Tensor frequencies = up_to(n) * (M_PI / (size + 1));
    EXPECT_LT(largest(linalg::eigvalsh(differences) - (2.0 - 2.0 * cos(frequencies))), 1e-14);
    const Tensor sums = tril(ones({n, n}, f64));
    const Tensor angles = (2.0 * up_to(n) - 1) * (M_PI / (4 * size + 2));
    const Tensor values = 0.5 / sin(angles);
    EXPECT_LT(largest(linalg::svdvals(sums) / values - 1), 1e-15 * (size + 4));
    EXPECT_LT(largest(linalg::svd(sums).s / values - 1), 1e-14 * size);
  }
}

TEST(Linalg, SmallSingularValuesOfDiagonalsKeepTheirDigits) {
  const std::vector<double> values = {3, 1, 1, 0x1p-7, 1e-10, 1e-40, 1e-90, 0};
  const Tensor x = eye(8, f64) * constant(values);
  EXPECT_LT(largest(linalg::svdvals(x) - constant(values)), 1e-15);
  const Tensor ratios = linalg::svdvals(x) / constant(values);
  for (int64_t i = 0; i < 7; ++i) EXPECT_NEAR(ratios[i].item<double>(), 1, 1e-15) << i;
  EXPECT_EQ(linalg::svdvals(x)[7].item<double>(), 0);
  EXPECT_EQ(largest(linalg::svdvals(zeros({5, 3}))), 0);
}

TEST(Linalg, PseudoinversesCutAtTheirTolerance) {
  const Tensor p = linalg::qr(drawn({4, 4}, f64, 2)).q;
  const Tensor columns = linalg::qr(drawn({6, 4}, f64)).q;
  for (const double least : {0.3, 0.11, 0.09, 1e-9, 1e-17}) {
    const Tensor values = constant({1.0, 1.0, 0.5, least}, f64);
    const Tensor a = matmul(columns * values, p);
    const auto inverse_of = [&](double cutoff) {
      const Tensor inverses = where(values <= cutoff, 0.0, 1.0 / values);
      return matmul(turned(p) * inverses, turned(columns));
    };
    const double room = 1e-14 / least;
    EXPECT_LT(largest(linalg::pinv(a, {.rtol = 0.1}) - inverse_of(0.1)), 1e-13) << least;
    if (least > 1e-10) {
      EXPECT_LT(largest(linalg::pinv(a) - inverse_of(0)), room / least) << least;
    }
    EXPECT_LT(largest(linalg::pinv(turned(a), {.rtol = 0.1}) - turned(inverse_of(0.1))), 1e-13);
  }
}

TEST(Linalg, WhatDoesNotExistIsNotANumber) {
  const Tensor mixed = constant({{1.0, 2.0}, {2.0, 1.0}}, f64);
  const Doubles l = linalg::cholesky(mixed).to_vector<double>();
  EXPECT_TRUE(std::isnan(l[0]) && std::isnan(l[2]) && std::isnan(l[3]) && l[1] == 0);
  const Tensor nan = constant({{1.0, NAN}, {2.0, 1.0}}, f64);
  for (const Tensor& each : {linalg::eigh(nan).values, linalg::eigh(nan).vectors,
                             linalg::svd(nan).u, linalg::svdvals(nan), linalg::expm(nan)})
    EXPECT_TRUE(all(isnan(each)).item<bool>());
  const Tensor singular = constant({{1.0, 2.0}, {2.0, 4.0}}, f64);
  EXPECT_FALSE(any(isfinite(linalg::solve(singular, constant({1.0, 1.0}, f64)))).item<bool>());
  EXPECT_EQ(linalg::det(singular).item<double>(), 0);
  EXPECT_EQ(linalg::slogdet(singular).sign.item<double>(), 0);
  EXPECT_EQ(linalg::slogdet(singular).logdet.item<double>(), -INFINITY);
}

// 1 / -0 would be -inf.
TEST(Linalg, SingularValuesOfZeroArePositive) {
  for (const Tensor& x : {ones({2, 2}), ones({2, 3}), zeros({3, 3}), ones({4, 4}, f64)})
    EXPECT_FALSE(any(copysign(1.0, linalg::svdvals(x)) < 0).item<bool>());
}

TEST(Linalg, NormsOfSmallOrdersHaveSlopesAtZeros) {
  const auto slope = [](double ord, const Tensor& x) {
    return grad([=](const Tensor& x) { return linalg::vector_norm(x, {.ord = ord}); })(x);
  };
  const Tensor x = constant({0.0, 4.0}, f64);
  EXPECT_TRUE(identical(slope(0.5, x), constant({0.0, 1.0}, f64)));
  for (const double ord : {-0.5, -1.0, -2.0})
    EXPECT_TRUE(identical(slope(ord, x), constant({0.0, 0.0}, f64))) << ord;
  for (const double ord : {0.5, -1.0, 3.0})
    EXPECT_TRUE(identical(slope(ord, x * 0), constant({0.0, 0.0}, f64))) << ord;
}

TEST(Linalg, EqualEigenvaluesHaveAGradient) {
  const Tensor a = eye(3, f64);
  GradientTape tape;
  tape.watch(a);
  const Tensor trace = sum(linalg::eigvalsh(a));
  EXPECT_EQ(tape.gradient(trace, a).to_vector<double>(), a.to_vector<double>());
}

// u vh, the orthogonal factor of x, is smooth at equal singular values: along dx it turns by
// (dx - dx^T) / 2 at the identity.
TEST(Linalg, EqualSingularValuesHaveTheSlopeOfTheOrthogonalFactor) {
  const Tensor weights = drawn({4, 4}, f64);
  for (const double size : {1.0, 3.0}) {
    const Tensor x = size * eye(4, f64);
    GradientTape tape;
    tape.watch(x);
    const auto [u, s, vh] = linalg::svd(x);
    const Tensor gradient = tape.gradient(sum(matmul(u, vh) * weights), x);
    EXPECT_LT(largest(gradient - (weights - turned(weights)) / (2 * size)), 1e-14) << size;
  }
}

// As reals a complex matrix has every singular value twice.
TEST(Linalg, SingularValuesOfComplexMatricesHaveSecondDerivatives) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 1}, {1, 4}, {2, 3}, {5, 5}}) {
    const auto any = [&, shape = Shape{rows, columns}](uint64_t seed) {
      return complex(drawn(shape, f64, seed), drawn(shape, f64, seed + 1));
    };
    const Tensor z = any(1), along = any(3), weights = drawn({std::min(rows, columns)}, f64, 5);
    const auto gradient = [&](const Tensor& at) {
      GradientTape tape;
      tape.watch(at);
      const Tensor y = sum(linalg::svdvals(at) * weights);
      return tape.gradient(y, at);
    };
    GradientTape tape;
    tape.watch(z);
    const Tensor slope = sum(real(gradient(z) * conj(along)));
    const double step = 1e-5;
    const Tensor want = (gradient(z + step * along) - gradient(z - step * along)) / (2 * step);
    EXPECT_LT(largest(view_as_real(tape.gradient(slope, z) - want)), 1e-7)
        << rows << " x " << columns;
  }
}

TEST(Linalg, RankDeficientMatricesHaveAPseudoinverse) {
  const Tensor a = matmul(drawn({6, 2}, f64), drawn({2, 4}, f64, 2)), p = linalg::pinv(a);
  EXPECT_LT(largest(matmul(matmul(a, p), a) - a), 1e-13);
  EXPECT_LT(largest(matmul(matmul(p, a), p) - p), 1e-13);
  EXPECT_LT(largest(matmul(a, p) - turned(matmul(a, p))), 1e-13);
  const Tensor b = drawn({6}, f64, 3), x = linalg::lstsq(a, b);
  EXPECT_LT(largest(matmul(turned(a), matmul(a, x) - b)), 1e-12);
}

// ---- however it is called -----------------------------------------------------------------------

// Every function of td::linalg, of one square matrix.
std::vector<Tensor> everything(const Tensor& a) {
  const Tensor spd = matmul(a, turned(a)) + eye(a.shape()[-1], a.dtype());
  const auto [sign, logdet] = linalg::slogdet(a);
  const auto [q, r] = linalg::qr(a);
  const auto [values, vectors] = linalg::eigh(a);
  const auto [u, s, vh] = linalg::svd(a);
  return {linalg::cholesky(spd),
          linalg::solve(a, spd),
          linalg::inv(a),
          linalg::det(a),
          sign,
          logdet,
          linalg::lu(a).lu,
          q,
          r,
          values,
          vectors,
          u,
          s,
          vh,
          linalg::pinv(a),
          linalg::expm(a / 8)};
}

class Batches : public testing::TestWithParam<int64_t> {};

TEST_P(Batches, FunctionsThreadsAndBatchesChangeNoBit) {
  const Tensor a = drawn({3, GetParam(), GetParam()}, f32);
  const std::vector<Tensor> want = everything(a);
  const auto same = [&](const std::vector<Tensor>& got, const char* who) {
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got[i].to_vector<float>(), want[i].to_vector<float>()) << who << ", number " << i;
  };
  const auto compiled = function([](const Tensor& x) { return everything(x); });
  same(compiled(a), "a function");
  const int before = num_threads();
  set_num_threads(1);
  same(everything(a), "one thread");
  set_num_threads(3);
  same(everything(a), "three threads");
  set_num_threads(before);
  same(vectorized_map([](const Tensor& x) { return everything(x); }, a), "a map");
  std::vector<Tensor> alone;
  for (int64_t i = 0; i < 3; ++i) {
    const std::vector<Tensor> each = everything(a[i]);
    for (size_t k = 0; k < each.size(); ++k) {
      if (i == 0) alone.push_back(expand_dims(each[k], 0));
      if (i > 0) alone[k] = concat({alone[k], expand_dims(each[k], 0)});
    }
  }
  same(alone, "one by one");
}

INSTANTIATE_TEST_SUITE_P(Sizes, Batches, testing::Values(8, 70),
                         [](const auto& info) { return cat("of", info.param); });

TEST(Linalg, OpenSizesServeEveryMatrix) {
  const auto solved = function([](const Tensor& a, const Tensor& b) {
    GradientTape tape;
    tape.watch(a);
    const Tensor y = linalg::solve(a, b) + linalg::slogdet(a).logdet;
    return tape.gradient(sum(y), a);
  });
  for (const int64_t n : {3, 4, 6, 9}) {
    const Tensor a = drawn({n, n}, f64) + 4 * eye(n, f64), b = drawn({n, 2}, f64, 2);
    const Tensor inverse = linalg::inv(a), x = linalg::solve(a, b);
    const Tensor by_b = matmul(turned(inverse), ones({n, 2}, f64));
    const Tensor want = 2.0 * static_cast<double>(n) * turned(inverse) - matmul(by_b, turned(x));
    EXPECT_LT(largest(solved(a, b) - want), 1e-11) << n;
  }
}

TEST(Linalg, WorkspaceIsPlanned) {
  const auto f = function([](const Tensor& a) {
    const auto [values, vectors] = linalg::eigh(a);
    const auto [u, s, vh] = linalg::svd(vectors * exp(values / 100));
    const auto [q, r] = linalg::qr(matmul(u * s, vh));
    return linalg::solve(matmul(q, r), a);
  });
  const Tensor a = drawn({120, 120}, f32);
  const auto [result, profile] = f.profile(a);
  EXPECT_EQ(profile.touched, profile.planned);
  EXPECT_EQ(result.to_vector<float>(), f(a).to_vector<float>());
}

TEST(Linalg, SixteenBitsAreRoundedOnce) {
  const Tensor a = cast(drawn({4, 4}, f32) + 4 * eye(4), f16), wide = cast(a, f32);
  EXPECT_EQ(linalg::inv(a).to_vector<double>(), cast(linalg::inv(wide), f16).to_vector<double>());
  EXPECT_EQ(linalg::det(a).dtype(), f16);
  EXPECT_EQ(linalg::svdvals(constant({{3, 0}, {0, 4}})).to_vector<float>(),
            (std::vector<float>{4, 3}));
}

}  // namespace
}  // namespace tidemark
