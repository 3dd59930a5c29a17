#include "tidemark/emit/contract/integer.h"

#include <algorithm>
#include <type_traits>

#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/taps.h"

namespace tidemark::contraction {
namespace {

// Unsigned, and no narrower than int, so that neither sums nor products overflow.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Sums and products that wrap have the same bits with a sign and without.
template <class F>
void visit_integer(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    default:
      return f(uint64_t{});
  }
}

template <class T>
T multiply_add(T a, T b, T sum) {
  using U = Wrapping<T>;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b) + static_cast<U>(sum));
}

template <class T>
void contract_rows(const Contraction& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t entry = i / p.m, row = i % p.m;
    const Batch::Offsets at = p.batch.at(entry);
    const T* a = reinterpret_cast<const T*>(p.a.data) + at.a + row * p.a.row_stride;
    const T* b = reinterpret_cast<const T*>(p.b.data) + at.b;
    T* c = reinterpret_cast<T*>(p.c.data) + at.c + row * p.c.row_stride;
    std::fill_n(c, p.n, T{0});
    for (int64_t k = 0; k < p.k; ++k) {
      const T x = a[k * p.a.column_stride];
      const T* b_row = b + k * p.b.row_stride;
      if (p.b.column_stride == 1) {
        for (int64_t j = 0; j < p.n; ++j) c[j] = multiply_add(x, b_row[j], c[j]);
      } else {
        for (int64_t j = 0; j < p.n; ++j) {
          c[j] = multiply_add(x, b_row[j * p.b.column_stride], c[j]);
        }
      }
    }
  }
}

// The pixel that tap `tap` of output `at` meets, or -1.
int64_t met(const WholeAxis& axis, int64_t at, int64_t tap) {
  const int64_t place = at * axis.stride - axis.pad + tap * axis.dilation;
  return place >= 0 && place % axis.spread == 0 && place / axis.spread < axis.in
             ? place / axis.spread
             : -1;
}

template <class T>
void convolve_rows(const Convolution& p, int64_t begin, int64_t end) {
  const int64_t channels = p.c_in / p.groups, outputs = p.c_out / p.groups;
  const WholeAxis axes[] = {{p.d, p.out_d, p.kd, p.stride_d, p.pad_front, p.dilation_d, p.spread_d},
                            {p.h, p.out_h, p.kh, p.stride_h, p.pad_top, p.dilation_h, p.spread_h},
                            {p.w, p.out_w, p.kw, p.stride_w, p.pad_left, p.dilation_w, p.spread_w}};
  for (int64_t i = begin; i < end; ++i) {
    const int64_t image = i / p.out_h / p.out_d, z = i / p.out_h % p.out_d, y = i % p.out_h;
    T* out = reinterpret_cast<T*>(p.out) + i * p.out_w * p.c_out;
    std::fill_n(out, p.out_w * p.c_out, T{0});
    for (int64_t x = 0; x < p.out_w; ++x, out += p.c_out) {
      for (int64_t tap = 0; tap < p.kd * p.kh * p.kw; ++tap) {
        const int64_t in_z = met(axes[0], z, tap / p.kw / p.kh);
        const int64_t in_y = met(axes[1], y, tap / p.kw % p.kh);
        const int64_t in_x = met(axes[2], x, tap % p.kw);
        if (in_z < 0 || in_y < 0 || in_x < 0) continue;
        const T* in = reinterpret_cast<const T*>(p.in) + image * p.in_n + in_z * p.in_d +
                      in_y * p.in_h + in_x * p.in_w;
        const T* weight = reinterpret_cast<const T*>(p.weight) + tap * channels * p.c_out;
        for (int64_t o = 0; o < p.c_out; ++o) {
          const T* group = in + o / outputs * channels;
          for (int64_t c = 0; c < channels; ++c) {
            out[o] = multiply_add(group[c], weight[c * p.c_out + o], out[o]);
          }
        }
      }
    }
  }
}

// Enough rows that a piece is worth another thread.
int64_t grain(int64_t steps_per_row) {
  return std::max<int64_t>(1, 100'000 / std::max<int64_t>(1, steps_per_row));
}

}  // namespace

void contract_integers(const Contraction& p) {
  const int64_t batch = p.batch.count();
  visit_integer(p.c.dtype, [&](auto zero) {
    device::parallel_for(batch * p.m, grain(p.n * p.k), [&](int64_t begin, int64_t end, int) {
      contract_rows<decltype(zero)>(p, begin, end);
    });
  });
}

void convolve_integers(const Convolution& p) {
  const int64_t steps = p.out_w * p.kd * p.kh * p.kw * p.c_in / p.groups * p.c_out;
  visit_integer(p.dtype, [&](auto zero) {
    device::parallel_for(
        p.n * p.out_d * p.out_h, grain(steps),
        [&](int64_t begin, int64_t end, int) { convolve_rows<decltype(zero)>(p, begin, end); });
  });
}

}  // namespace tidemark::contraction
