// Which taps of a convolution meet a pixel of the image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "tidemark/emit/contract/contract.h"
#include "tidemark/emit/contract/work.h"

namespace tidemark::contraction {

// Taps [begin, end) of one axis lie inside the image.
struct Taps {
  int64_t begin = 0, end = 0;
  bool operator==(const Taps&) const = default;
};

// The taps that output `at` of an axis sees.
inline Taps taps_inside(int64_t at, int64_t stride, int64_t pad, int64_t dilation, int64_t taps,
                        int64_t size) {
  const int64_t first = at * stride - pad;
  const int64_t begin = first >= 0 ? 0 : std::min(taps, divide_up(-first, dilation));
  const int64_t end = first >= size ? begin : std::min(taps, divide_up(size - first, dilation));
  return {begin, std::max(begin, end)};
}

// The outputs of one axis that meet the same residue of taps, as the axis of a convolution of
// pixels without gaps. Output i of it is output first_out + i * out_step of the whole axis, and tap
// t is tap first_tap + t * tap_step.
struct PhaseAxis {
  int64_t in = 1, out = 1, taps = 1;
  int64_t stride = 1, pad = 0, dilation = 1;
  int64_t first_out = 0, out_step = 1, first_tap = 0, tap_step = 1;

  Taps taps_at(int64_t at) const { return taps_inside(at, stride, pad, dilation, taps, in); }
};

// Outputs [begin, end) of an axis that see the same taps.
struct Stretch {
  int64_t begin = 0, end = 0;
  Taps taps;
};

// The longest from `begin` on.
inline Stretch next_stretch(const PhaseAxis& axis, int64_t begin, int64_t limit) {
  Stretch stretch{begin, begin + 1, axis.taps_at(begin)};
  if (axis.taps > 0 && stretch.taps == Taps{0, axis.taps}) {
    const int64_t last = axis.in - 1 + axis.pad - (axis.taps - 1) * axis.dilation;
    stretch.end = std::min(limit, last / axis.stride + 1);
  }
  while (stretch.end < limit && axis.taps_at(stretch.end) == stretch.taps) ++stretch.end;
  return stretch;
}

// One axis of a convolution as Convolution states it.
struct WholeAxis {
  int64_t in, out, taps, stride, pad, dilation, spread;

  // Outputs this far apart meet the same taps.
  int64_t phases() const { return spread / std::gcd(stride, spread); }
  PhaseAxis phase(int64_t number) const {
    const int64_t period = phases(), step = spread / std::gcd(dilation, spread);
    PhaseAxis axis{.in = in, .out = divide_up(out - number, period), .taps = 0};
    axis.first_out = number;
    axis.out_step = period;
    axis.stride = period * stride / spread;
    axis.tap_step = step;
    axis.dilation = step * dilation / spread;
    for (int64_t tap = 0; tap < std::min(step, taps); ++tap) {
      const int64_t at = number * stride - pad + tap * dilation;
      if (at % spread != 0) continue;
      axis.first_tap = tap;
      axis.taps = divide_up(taps - tap, step);
      axis.pad = -at / spread;
    }
    return axis;
  }
};

// The part of a convolution whose outputs meet the same residue of taps along every axis.
struct Phase {
  PhaseAxis z, y, x;
};

inline WholeAxis z_axis(const Convolution& p) {
  return {p.d, p.out_d, p.kd, p.stride_d, p.pad_front, p.dilation_d, p.spread_d};
}
inline WholeAxis y_axis(const Convolution& p) {
  return {p.h, p.out_h, p.kh, p.stride_h, p.pad_top, p.dilation_h, p.spread_h};
}
inline WholeAxis x_axis(const Convolution& p) {
  return {p.w, p.out_w, p.kw, p.stride_w, p.pad_left, p.dilation_w, p.spread_w};
}

// Calls visit(axis) for each phase of an axis that has outputs; one if it is not spread.
template <class Visit>
void for_each_phase(const WholeAxis& axis, Visit&& visit) {
  for (int64_t i = 0; i < std::min(axis.phases(), axis.out); ++i) visit(axis.phase(i));
}
// Calls visit(phase) for each phase of frames like z.
template <class Visit>
void for_each_phase(const Convolution& p, const PhaseAxis& z, Visit&& visit) {
  for_each_phase(y_axis(p), [&](const PhaseAxis& y) {
    for_each_phase(x_axis(p), [&](const PhaseAxis& x) { visit(Phase{z, y, x}); });
  });
}
template <class Visit>
void for_each_phase(const Convolution& p, Visit&& visit) {
  for_each_phase(z_axis(p), [&](const PhaseAxis& z) { for_each_phase(p, z, visit); });
}

}  // namespace tidemark::contraction
