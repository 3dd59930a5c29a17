// Complex tensors in C++: numbers in and out, promotion, text, programs, errors. Values against
// other libraries are in python/tests/test_complex.py.
#include <gtest/gtest.h>

#include <complex>
#include <sstream>

#include "tests/unit/error_of.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/gradients.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/plan.h"
#include "tidemark/api/variable.h"

namespace tidemark {
namespace {

using C32 = std::complex<float>;
using C64 = std::complex<double>;
using namespace std::complex_literals;

std::string text(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

// What went wrong, and the remedy, without the line between them.
template <class F>
std::string said(F f) {
  std::string error = error_of(f);
  const size_t line = error.find("\n  at ");
  if (line != std::string::npos) error.erase(line, error.find('\n', line + 1) - line);
  return error;
}

TEST(Complex, NumbersComeInAndOut) {
  const std::vector<C32> numbers = {{1, 2}, {-3, 0.5}};
  const Tensor z = constant(numbers);
  EXPECT_EQ(z.dtype(), c64);
  EXPECT_EQ(z.size_bytes().count, 16);
  EXPECT_EQ(z.to_vector<C32>(), numbers);
  EXPECT_EQ(z.to_vector<C64>()[1], C64(-3, 0.5));
  EXPECT_EQ(z.span<const C32>()[0], C32(1, 2));
  EXPECT_EQ(z[1].item<C64>(), C64(-3, 0.5));
  EXPECT_EQ(Tensor(C64(1, 2)).dtype(), c128);
  EXPECT_EQ(constant({{1.0, C64(0, 2)}}).to_vector<C32>(), (std::vector<C32>{{1, 0}, {0, 2}}));
  EXPECT_EQ(constant({1, 2}, c128).to_vector<C64>(), (std::vector<C64>{1, 2}));
  EXPECT_EQ(ones({2}).to_vector<C32>(), (std::vector<C32>{1, 1}));
  EXPECT_EQ(full({2}, C64(1, 2), c64).to_vector<C64>(), (std::vector<C64>(2, {1, 2})));
  EXPECT_EQ(text(z), "[ 1.+2.j  -3.+0.5j]");
  EXPECT_EQ(text(z[0]), "(1+2j)");
}

TEST(Complex, PlainNumbersAreWeak) {
  EXPECT_EQ((ones({2}) * 1i).dtype(), c64);
  EXPECT_EQ((1if + ones({2}, f64)).dtype(), c128);
  EXPECT_EQ((ones({2}, i64) + 1i).dtype(), c64);
  EXPECT_EQ((ones({2}, c64) + ones({2}, f64)).dtype(), c128);
  EXPECT_EQ((constant(C64(0, 1)) * 2 + 1).item<C64>(), C64(1, 2));
}

TEST(Complex, PartsAreViews) {
  const Tensor z = complex(constant({1.0, 2.0}), constant({3.0}));
  EXPECT_EQ(real(z).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(imag(z).to_vector<float>(), (std::vector<float>{3, 3}));
  const Tensor pairs = view_as_real(z);
  EXPECT_EQ(pairs.shape(), (Shape{2, 2}));
  EXPECT_EQ(pairs.span<const float>().data(),
            reinterpret_cast<const float*>(z.span<const C32>().data()));
  EXPECT_TRUE(identical(view_as_complex(pairs), z));
  EXPECT_TRUE(identical(view_as_complex(transpose(pairs)), complex(pairs[0], pairs[1])));
}

TEST(Complex, ProgramsPlanWhatTheyTouch) {
  const auto f = [](const Tensor& z, const Tensor& w) {
    return std::tuple(fft::ifft(fft::fft(z) * conj(w)), abs(matmul(z, w)));
  };
  const Tensor z = polar(ones({6, 8}), reshape(arange(48.0), {6, 8})), w = transpose(z)[{all, 0}];
  const auto compiled = function(f);
  const auto [y, size] = compiled(z, w);
  const auto [eager_y, eager_size] = f(z, w);
  EXPECT_TRUE(identical(y, eager_y));
  EXPECT_TRUE(identical(size, eager_size));
  EXPECT_EQ(compiled.profile(z, w).second.touched, compiled.plan(z, w).peak());
}

TEST(Complex, VariablesAreUpdatedInPlace) {
  const Variable v(constant({1.0 + 1i, 2.0}));
  v.assign_add(constant({1i, C64(1)}, c64));
  const auto step = function([&](const Tensor& x) { v.assign(v * x); });
  step(constant({C64(2), 1i}));
  EXPECT_EQ(Tensor(v).to_vector<C64>(), (std::vector<C64>{{2, 4}, {0, 3}}));
  EXPECT_EQ(error_of([&] { v.assign(ones({2})); }).substr(0, 7), "assign:");
}

TEST(Complex, WhatHasNoMeaningIsRefused) {
  const Tensor z = constant({1i, C64(2)});
  EXPECT_EQ(said([&] { (void)(z < z); }),
            "less: complex numbers have no order\n  compare their sizes or one of their parts: "
            "td::abs(z), td::real(z)");
  EXPECT_EQ(said([&] { (void)floor(z); }),
            "floor: does not take complex numbers\n  take it of their parts: td::real(z), "
            "td::imag(z), td::abs(z)");
  EXPECT_EQ(said([&] { (void)cast(z, f32); }),
            "cast: complex numbers in f32 would lose their imaginary parts\n  take one of their "
            "parts: td::real(z), td::imag(z), td::abs(z)");
  EXPECT_EQ(said([&] { (void)z[0].item<float>(); }),
            "item: the element of c64[] is complex\n  read it as a complex number, or one of its "
            "parts: td::real(z)");
  EXPECT_EQ(
      said([&] { (void)z.to_vector<float>(); }),
      "to_vector: the elements of c64[2] are complex\n  read them as complex numbers, or one of "
      "their parts: td::real(z)");
  EXPECT_EQ(said([&] { (void)grad([](const Tensor& x) { return sum(x); })(z); }),
            "grad: the function must return one float, got c64[]\n  take a real number of it: "
            "td::real(y), td::abs(y)");
}

}  // namespace
}  // namespace tidemark
