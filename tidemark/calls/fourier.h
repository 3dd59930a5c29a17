// Fourier transforms. What they give is complex: c128 of f64 and c128, else c64.
#pragma once

#include <vector>

#include "tidemark/calls/complex.h"

namespace tidemark::fft {

// Which direction divides by the length: the inverse one, both by its root, or the forward one.
enum class Norm { backward, ortho, forward };

struct AxisOptions {
  std::optional<int64_t> n =
      {};  // The length: longer axes are cut, shorter ones padded with zeros.
  int64_t axis = -1;
  Norm norm = Norm::backward;
};
// Of complex or real numbers. The length is a number of the program: an open one becomes closed.
Tensor fft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());
Tensor ifft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());
// Of reals: the n / 2 + 1 complex numbers that determine the others.
Tensor rfft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());
// The reals with this transform. Imaginary parts that such a transform has not are ignored.
// Without n, the length is even.
Tensor irfft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());

// Of the spectrum of a real signal that is symmetric in time: the reals of length n, without n
// even, whose first n / 2 + 1 numbers are given; and back.
Tensor hfft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());
Tensor ihfft(const Operand& x, const AxisOptions& options = {}, Source at = Source::here());

struct AxesOptions {
  std::vector<int64_t> s = {};     // The length of each axis; none: as they are.
  std::vector<int64_t> axes = {};  // Default: the last ones of `s`, or all.
  Norm norm = Norm::backward;
};
// Along several axes; that of reals is the last one named.
Tensor fftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor ifftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor rfftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor irfftn(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
// Along the last two unless axes are named.
Tensor fft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor ifft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor rfft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());
Tensor irfft2(const Operand& x, const AxesOptions& options = {}, Source at = Source::here());

// The frequencies of the n numbers of a transform, and of the n / 2 + 1 of one of reals, in cycles
// per unit of the spacing `d`.
Tensor fftfreq(int64_t n, double d = 1.0, DType dtype = DType::f32, Source at = Source::here());
Tensor rfftfreq(int64_t n, double d = 1.0, DType dtype = DType::f32, Source at = Source::here());
// The frequency 0 moved to the middle of each axis, and back.
Tensor fftshift(const Operand& x, const Axes& axes = {}, Source at = Source::here());
Tensor ifftshift(const Operand& x, const Axes& axes = {}, Source at = Source::here());

}  // namespace tidemark::fft
