#include "tidemark/emit/library/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/library/fft_kernels.h"

namespace tidemark::library {
namespace {

constexpr int64_t kLargestPrime = 13;

// Empty if a factor is too large.
FourierFactors factors_of(int64_t length) {
  FourierFactors found{.length = length};
  for (const int64_t r : {4, 2, 3, 5, 7, 11, 13}) {
    for (; length % r == 0; length /= r) found.factors[found.count++] = static_cast<int8_t>(r);
  }
  return length == 1 ? found : FourierFactors{.length = 0};
}

template <class T>
const FourierKernels<T>& kernels() {
  const auto choose = [](const auto& f32, const auto& f64) -> const FourierKernels<T>& {
    if constexpr (sizeof(T) == sizeof(float))
      return f32;
    else
      return f64;
  };
  switch (device::isa()) {
    case device::Isa::avx512:
      return choose(avx512::fft_f32, avx512::fft_f64);
    case device::Isa::avx2:
      return choose(avx2::fft_f32, avx2::fft_f64);
    default:
      return choose(baseline::fft_f32, baseline::fft_f64);
  }
}

// How a call is cut up. It depends on sizes alone.
struct Layout {
  explicit Layout(const Fourier& work) : factors(factors_of(work.count)) {
    is_chirp = factors.length == 0;
    if (is_chirp) {
      int64_t length = 1;
      while (length < 2 * work.count - 1) length *= 2;
      factors = factors_of(length);
    }
    rows = work.outer * work.inner;
    // Rows side by side are vectors; more of them would leave the second cache.
    const int64_t fits = kCacheBytes / (4 * factors.length * size_of(work.dtype));
    lanes = 1;
    while (lanes < kMostLanes && 2 * lanes <= std::min(fits, rows)) lanes *= 2;
    groups = (rows + lanes - 1) / lanes;
    grain = std::max<int64_t>(1, 8192 / (factors.length * lanes));
    element_bytes = size_of(work.dtype);
  }
  // The table of roots; for a chirp also the chirp and the transform of its conjugate.
  int64_t shared_bytes(int64_t count) const {
    return lines(2 * factors.length) +
           (is_chirp ? lines(2 * count) + lines(2 * factors.length) : 0);
  }
  // Two arrays of complex numbers.
  int64_t worker_bytes() const { return lines(4 * factors.length * lanes); }
  int64_t lines(int64_t elements) const { return (elements * element_bytes + 63) / 64 * 64; }

  static constexpr int64_t kCacheBytes = 512 << 10, kMostLanes = 16;
  FourierFactors factors;
  bool is_chirp = false;
  int64_t rows = 1, lanes = 1, groups = 1, grain = 1, element_bytes = 4;
};

struct Root {
  double re = 1, im = 0;
};

// exp(-2 pi i j / n), accurate to the last place: sines and cosines are taken in the first eighth
// of a turn only, and turned and mirrored from there.
Root root(int64_t j, int64_t n) {
  const int64_t eighth = 8 * j / n, over = 8 * j % n;  // j / n is (eighth + over / n) / 8.
  const bool mirrored = eighth % 2 == 1;
  const double part = static_cast<double>(mirrored ? n - over : over) / static_cast<double>(n);
  double c = std::cos(part * (std::numbers::pi / 4)), s = std::sin(part * (std::numbers::pi / 4));
  if (mirrored) std::swap(c, s);
  const Root quarters[] = {{c, -s}, {-s, -c}, {-c, s}, {s, c}};
  return quarters[eighth / 2];
}

template <class T>
class Transformer {
 public:
  Transformer(const Fourier& work, std::byte* scratch)
      : work_(work), layout_(work), kernels_(kernels<T>()) {
    const int64_t n = layout_.factors.length;
    roots_ = taken(scratch, n);
    if (layout_.is_chirp) {
      chirp_ = taken(scratch, work.count);
      spectrum_ = taken(scratch, n);
    }
    buffers_ = scratch;
  }

  void run(int threads) const {
    const int64_t n = layout_.factors.length;
    for (int64_t j = 0; j <= n / 8; ++j) set_roots(j, n);
    if (n % 8 != 0)
      for (int64_t j = n / 8 + 1; j < n; ++j) set(roots_, j, root(j, n));
    if (layout_.is_chirp) make_chirp();
    device::parallel_for(layout_.groups, layout_.grain, threads,
                         [&](int64_t begin, int64_t end, int worker) {
                           for (int64_t i = begin; i < end; ++i) group(i, worker);
                         });
  }

 private:
  Split<T> taken(std::byte*& scratch, int64_t count) const {
    T* const first = reinterpret_cast<T*>(scratch);
    scratch += layout_.lines(2 * count);
    return {first, first + count};
  }
  // Of a worker: one of two.
  Split<T> buffer(int worker, int number) const {
    const int64_t count = layout_.factors.length * layout_.lanes;
    T* const first = reinterpret_cast<T*>(buffers_ + worker * layout_.worker_bytes());
    return {first + 2 * number * count, first + (2 * number + 1) * count};
  }
  static void set(Split<T> to, int64_t place, Root value) {
    to.re[place] = static_cast<T>(value.re);
    to.im[place] = static_cast<T>(value.im);
  }
  // Root j of the first eighth, and if there are whole eighths its images in the others.
  void set_roots(int64_t j, int64_t n) const {
    const auto [c, s] = root(j, n);
    set(roots_, j, {c, s});
    if (n % 8 != 0) return;
    set(roots_, n / 4 - j, {-s, -c});
    set(roots_, n / 4 + j, {s, -c});
    set(roots_, n / 2 - j, {-c, s});
    set(roots_, n / 2 + j, {-c, -s});
    set(roots_, 3 * n / 4 - j, {s, c});
    set(roots_, 3 * n / 4 + j, {-s, c});
    if (j > 0) set(roots_, n - j, {c, -s});
  }

  // exp(-pi i k k / n), and the transform of its conjugate, which goes around both ends.
  void make_chirp() const {
    const int64_t n = work_.count, length = layout_.factors.length;
    for (int64_t k = 0; k < n; ++k) {
      __extension__ typedef unsigned __int128 Wide;
      const auto square = static_cast<Wide>(k) * static_cast<Wide>(k);
      set(chirp_, k, root(static_cast<int64_t>(square % static_cast<Wide>(2 * n)), 2 * n));
    }
    const Split<T> x = buffer(0, 0), y = buffer(0, 1);
    std::fill_n(x.re, length, T{0});
    std::fill_n(x.im, length, T{0});
    for (int64_t k = 0; k < n; ++k) {
      const int64_t mirrored = (length - k) % length;
      x.re[k] = x.re[mirrored] = chirp_.re[k];
      x.im[k] = x.im[mirrored] = -chirp_.im[k];
    }
    const Split<T> found = kernels_.transform(layout_.factors, roots_, x, y, 1);
    const T share = T{1} / static_cast<T>(length);
    for (int64_t k = 0; k < length; ++k) {
      spectrum_.re[k] = found.re[k] * share;
      spectrum_.im[k] = found.im[k] * share;
    }
  }

  // Swapping re and im before and after turns a transform into that of the other direction.
  static Split<T> swapped(Split<T> x) { return {x.im, x.re}; }

  void group(int64_t number, int worker) const {
    const int64_t first = number * layout_.lanes;
    const int64_t lanes = std::min(layout_.lanes, layout_.rows - first);
    Split<T> x = buffer(worker, 0);
    load(work_.inverse ? swapped(x) : x, first, lanes);
    x = layout_.is_chirp ? by_chirp(x, buffer(worker, 1), lanes)
                         : kernels_.transform(layout_.factors, roots_, x, buffer(worker, 1), lanes);
    store(work_.inverse ? swapped(x) : x, first, lanes);
  }

  Split<T> by_chirp(Split<T> x, Split<T> y, int64_t lanes) const {
    const int64_t n = work_.count, length = layout_.factors.length;
    kernels_.multiply(x, chirp_, n, lanes);
    std::fill(x.re + n * lanes, x.re + length * lanes, T{0});
    std::fill(x.im + n * lanes, x.im + length * lanes, T{0});
    Split<T> made = kernels_.transform(layout_.factors, roots_, x, y, lanes);
    kernels_.multiply(made, spectrum_, length, lanes);
    const Split<T> other = made.re == x.re ? y : x;
    made =
        swapped(kernels_.transform(layout_.factors, roots_, swapped(made), swapped(other), lanes));
    kernels_.multiply(made, chirp_, n, lanes);
    return made;
  }

  // The offset of the first pair of a row.
  int64_t offset_of(int64_t row) const {
    return (row / work_.inner * work_.count * work_.inner + row % work_.inner) * 2;
  }
  // Calls f(offset of a pair, its place side by side) for rows [first, first + lanes). Rows that
  // lie side by side in memory are taken pair by pair, others a few lines of the caches at a time.
  template <class F>
  void each_pair(int64_t first, int64_t lanes, const F& f) const {
    const int64_t count = work_.count, inner = work_.inner;
    if (first % inner + lanes <= inner) {
      const int64_t offset = offset_of(first);
      for (int64_t k = 0; k < count; ++k)
        for (int64_t l = 0; l < lanes; ++l) f(offset + 2 * (k * inner + l), k * lanes + l);
      return;
    }
    constexpr int64_t kPairs = 16;
    for (int64_t begin = 0; begin < count; begin += kPairs) {
      const int64_t end = std::min(begin + kPairs, count);
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t offset = offset_of(first + l);
        for (int64_t k = begin; k < end; ++k) f(offset + 2 * k * inner, k * lanes + l);
      }
    }
  }
  void load(Split<T> x, int64_t first, int64_t lanes) const {
    const T* const from = reinterpret_cast<const T*>(work_.from);
    each_pair(first, lanes, [=](int64_t offset, int64_t place) {
      x.re[place] = from[offset];
      x.im[place] = from[offset + 1];
    });
  }
  void store(Split<T> x, int64_t first, int64_t lanes) const {
    const T scale = static_cast<T>(work_.scale);
    T* const to = reinterpret_cast<T*>(work_.to);
    each_pair(first, lanes, [=](int64_t offset, int64_t place) {
      to[offset] = x.re[place] * scale;
      to[offset + 1] = x.im[place] * scale;
    });
  }

  const Fourier& work_;
  const Layout layout_;
  const FourierKernels<T>& kernels_;
  Split<T> roots_, chirp_, spectrum_;
  std::byte* buffers_ = nullptr;
};

}  // namespace

int64_t fft_scratch_bytes(const Fourier& work, int threads) {
  const Layout layout(work);
  if (layout.rows == 0) return 0;
  return layout.shared_bytes(work.count) +
         device::workers_of(layout.groups, layout.grain, threads) * layout.worker_bytes();
}

void fft(const Fourier& work, int threads, std::byte* scratch) {
  if (work.outer * work.inner == 0) return;
  if (work.dtype == DType::f64) return Transformer<double>(work, scratch).run(threads);
  Transformer<float>(work, scratch).run(threads);
}

}  // namespace tidemark::library
