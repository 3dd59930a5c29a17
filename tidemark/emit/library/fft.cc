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

// Empty if a factor is too large.
FourierFactors factors_of(int64_t length) {
  FourierFactors found{.length = length};
  for (const int64_t r : {8, 4, 2, 3, 5, 7, 11, 13}) {
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
  explicit Layout(const Fourier& work) {
    const bool is_real = work.kind != FourierKind::complex;
    half = is_real && work.count % 2 == 0 ? work.count / 2 : 0;
    size = half > 0 ? half : work.count;
    factors = factors_of(size);
    is_chirp = factors.length == 0;
    if (is_chirp) {
      int64_t length = 1;
      while (length < 2 * size - 1) length *= 2;
      factors = factors_of(length);
    }
    rows = work.outer * work.inner;
    // A row by itself stays in the first cache and has vectors of its own, best where the first
    // pass is of radix 8. Other rows side by side are vectors; more of them would leave the second
    // cache.
    const bool has_eights = factors.factors[0] == 8 && factors.length >= 8 * kFirstsTogether;
    is_alone = work.inner == 1 && has_eights;
    for (int i = 0; i < factors.count; ++i) turns += factors.turns_of(i, is_alone);
    const bool is_one = is_alone || (work.inner == 1 && factors.length >= kLongRow);
    const int64_t fits = is_one ? 1 : kCacheBytes / (4 * factors.length * size_of(work.dtype));
    lanes = 1;
    while (lanes < kMostLanes && 2 * lanes <= std::min(fits, rows)) lanes *= 2;
    groups = (rows + lanes - 1) / lanes;
    grain = std::max<int64_t>(1, 8192 / (factors.length * lanes));
    element_bytes = size_of(work.dtype);
  }
  // The tables of roots and turns; those that take reals apart; for a chirp also the chirp and the
  // transform of its conjugate.
  int64_t shared_bytes() const {
    return (factors.has_sums() ? lines(2 * factors.length) : 0) + lines(turns) +
           (half > 0 ? lines(2 * (half + 1)) : 0) +
           (is_chirp ? lines(2 * size) + lines(2 * factors.length) : 0);
  }
  // Of one of two arrays of complex numbers of a worker; the transform of reals has one more. The
  // real and the imaginary parts begin with a line of the caches, and not at the same place of one
  // of 4 KiB.
  int64_t buffer_count() const { return lines((factors.length + 1) * lanes) / element_bytes; }
  int64_t worker_bytes() const { return lines(4 * buffer_count()); }
  int64_t lines(int64_t elements) const { return (elements * element_bytes + 63) / 64 * 64; }

  static constexpr int64_t kCacheBytes = 512 << 10, kMostLanes = 16, kLongRow = 4096;
  FourierFactors factors;
  bool is_chirp = false;
  int64_t half = 0;   // Of an even number of reals.
  int64_t size = 1;   // Of the complex transform.
  int64_t turns = 0;  // What those of all passes take.
  bool is_alone = false;
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

// Calls set(j, root j of n) for j < count. Of f32, a root is the product of two of f64, one of
// every kFine and one of the first kFine.
template <class T, class Set>
void for_each_root(int64_t count, int64_t n, Set set) {
  constexpr int64_t kFine = sizeof(T) == sizeof(float) ? 64 : 1;
  Root fine[kFine];
  for (int64_t j = 0; j < std::min(kFine, count); ++j) fine[j] = root(j, n);
  for (int64_t begin = 0; begin < count; begin += kFine) {
    const Root a = root(begin, n);
    for (int64_t j = begin; j < std::min(begin + kFine, count); ++j) {
      const Root& b = fine[j - begin];
      set(j, static_cast<T>(a.re * b.re - a.im * b.im), static_cast<T>(a.re * b.im + a.im * b.re));
    }
  }
}

template <class T>
class Transformer {
 public:
  Transformer(const Fourier& work, std::byte* scratch)
      : work_(work), layout_(work), kernels_(kernels<T>()) {
    const int64_t n = layout_.factors.length;
    tables_.factors = layout_.factors;
    if (tables_.factors.has_sums()) tables_.roots = taken(scratch, n);
    turns_ = reinterpret_cast<T*>(scratch);
    tables_.turns = turns_;
    tables_.is_alone = layout_.is_alone;
    scratch += layout_.lines(layout_.turns);
    if (layout_.half > 0) halves_ = taken(scratch, layout_.half + 1);
    if (layout_.is_chirp) {
      chirp_ = taken(scratch, layout_.size);
      spectrum_ = taken(scratch, n);
    }
    buffers_ = scratch;
    // Without sums, nobody reads the roots once the turns are there, nor a buffer before.
    if (!tables_.factors.has_sums()) tables_.roots = buffer(0, 0);
  }

  void run(int threads) const {
    set_roots();
    set_turns();
    for_each_root<T>(layout_.half > 0 ? layout_.half + 1 : 0, work_.count,
                     [this](int64_t j, T re, T im) { set(halves_, j, re, im); });
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
    const int64_t count = layout_.buffer_count();
    T* const first = reinterpret_cast<T*>(buffers_ + worker * layout_.worker_bytes());
    return {first + 2 * number * count, first + (2 * number + 1) * count};
  }
  static void set(Split<T> to, int64_t place, T re, T im) {
    to.re[place] = re;
    to.im[place] = im;
  }
  // If there are whole eighths, those of the first and their images in the others.
  void set_roots() const {
    const int64_t n = layout_.factors.length;
    if (n % 8 != 0) {
      for_each_root<T>(n, n, [this](int64_t j, T re, T im) { set(tables_.roots, j, re, im); });
      return;
    }
    for_each_root<T>(n / 8 + 1, n, [this, n](int64_t j, T c, T s) {
      set(tables_.roots, j, c, s);
      set(tables_.roots, n / 4 - j, -s, -c);
      set(tables_.roots, n / 4 + j, s, -c);
      set(tables_.roots, n / 2 - j, -c, s);
      set(tables_.roots, n / 2 + j, -c, -s);
      set(tables_.roots, 3 * n / 4 - j, s, c);
      set(tables_.roots, 3 * n / 4 + j, -s, c);
      if (j > 0) set(tables_.roots, n - j, c, -s);
    });
  }

  void set_turns() const {
    const FourierFactors& factors = layout_.factors;
    T* to = turns_;
    int64_t length = factors.length;
    for (int i = 0; i < factors.count; ++i) {
      if (i == 0 && layout_.is_alone)
        set_first_turns(to);
      else if (factors.turns_of(i, layout_.is_alone) > 0)
        set_turns_of(length, factors.factors[i], to);
      to += factors.turns_of(i, layout_.is_alone);
      length /= factors.factors[i];
    }
  }
  void set_first_turns(T* to) const {
    const int64_t m = layout_.factors.length / 8;
    for (int64_t begin = 0; begin < m; begin += kFirstsTogether)
      for (int64_t k = 1; k < 8; ++k, to += 2 * kFirstsTogether)
        for (int64_t i = 0; i < kFirstsTogether; ++i) {
          const int64_t place = k * (first_of_block(begin, m) + i);
          to[i] = tables_.roots.re[place];
          to[i + kFirstsTogether] = tables_.roots.im[place];
        }
  }
  void set_turns_of(int64_t length, int64_t r, T* to) const {
    const int64_t apart = layout_.factors.length / length;
    for (int64_t p = 0; p < length / r; ++p)
      for (int64_t k = 1; k < r; ++k, to += 2) {
        to[0] = tables_.roots.re[p * k * apart];
        to[1] = tables_.roots.im[p * k * apart];
      }
  }

  // exp(-pi i k k / n), and the transform of its conjugate, which goes around both ends.
  void make_chirp() const {
    const int64_t n = layout_.size, length = layout_.factors.length;
    for (int64_t k = 0; k < n; ++k) {
      __extension__ typedef unsigned __int128 Wide;
      const auto square = static_cast<Wide>(k) * static_cast<Wide>(k);
      const Root turn = root(static_cast<int64_t>(square % static_cast<Wide>(2 * n)), 2 * n);
      set(chirp_, k, static_cast<T>(turn.re), static_cast<T>(turn.im));
    }
    const Split<T> x = buffer(0, 0), y = buffer(0, 1);
    std::fill_n(x.re, length, T{0});
    std::fill_n(x.im, length, T{0});
    for (int64_t k = 0; k < n; ++k) {
      const int64_t mirrored = (length - k) % length;
      x.re[k] = x.re[mirrored] = chirp_.re[k];
      x.im[k] = x.im[mirrored] = -chirp_.im[k];
    }
    const Split<T> found = kernels_.transform(tables_, {}, x, y, 1);
    const T share = T{1} / static_cast<T>(length);
    for (int64_t k = 0; k < length; ++k) {
      spectrum_.re[k] = found.re[k] * share;
      spectrum_.im[k] = found.im[k] * share;
    }
  }

  struct Rows {
    int64_t first, count;
    int worker;
  };

  void group(int64_t number, int worker) const {
    const int64_t first = number * layout_.lanes;
    const Rows rows{first, std::min(layout_.lanes, layout_.rows - first), worker};
    switch (work_.kind) {
      case FourierKind::complex:
        return complex_rows(rows);
      case FourierKind::of_reals:
        return layout_.half > 0 ? from_pairs_of_reals(rows) : from_reals(rows);
      case FourierKind::to_reals:
        return layout_.half > 0 ? to_pairs_of_reals(rows) : to_reals(rows);
    }
  }

  // Of what is at `ends`, or in the first buffer of the worker.
  Split<T> transformed(const Rows& rows, const FourierEnds<T>& ends) const {
    const Split<T> x = buffer(rows.worker, 0), y = buffer(rows.worker, 1);
    if (!layout_.is_chirp) return kernels_.transform(tables_, ends, x, y, rows.count);
    if (ends.from.first != nullptr) kernels_.load(ends.from, x, rows.count);
    const Split<T> made = ends.swapped ? swapped(by_chirp(swapped(x), swapped(y), rows.count))
                                       : by_chirp(x, y, rows.count);
    if (ends.to.first != nullptr) kernels_.store(ends.to, made, ends.scale, rows.count);
    return made;
  }

  static Split<T> swapped(Split<T> x) { return {x.im, x.re}; }

  Split<T> by_chirp(Split<T> x, Split<T> y, int64_t lanes) const {
    const int64_t n = layout_.size, length = layout_.factors.length;
    kernels_.multiply(x, chirp_, n, lanes);
    std::fill(x.re + n * lanes, x.re + length * lanes, T{0});
    std::fill(x.im + n * lanes, x.im + length * lanes, T{0});
    Split<T> made = kernels_.transform(tables_, {}, x, y, lanes);
    kernels_.multiply(made, spectrum_, length, lanes);
    const Split<T> other = made.re == x.re ? y : x;
    made = kernels_.transform(tables_, {.swapped = true}, made, other, lanes);
    kernels_.multiply(made, chirp_, n, lanes);
    return made;
  }

  const T* from() const { return reinterpret_cast<const T*>(work_.from); }
  T* to() const { return reinterpret_cast<T*>(work_.to); }

  // Calls f(offset of the first pair, row_step, the first lane, rows) for rows that lie equally far
  // apart: all of them, or those of one outer index.
  template <class F>
  void each_run(const Rows& rows, const F& f) const {
    const int64_t count = work_.count, inner = work_.inner;
    if (inner == 1) return f(rows.first * count * 2, 2 * count, 0, rows.count);
    for (int64_t lane = 0; lane < rows.count;) {
      const int64_t row = rows.first + lane;
      const int64_t run = std::min(rows.count - lane, inner - row % inner);
      f((row / inner * count * inner + row % inner) * 2, 2, lane, run);
      lane += run;
    }
  }
  void complex_rows(const Rows& rows) const {
    const Split<T> x = buffer(rows.worker, 0);
    FourierEnds<T> ends{.scale = static_cast<T>(work_.scale), .swapped = work_.inverse};
    const int64_t pair_step = 2 * work_.inner;
    each_run(rows, [&](int64_t offset, int64_t row_step, int64_t lane, int64_t run) {
      const FourierRows<const T> part{from() + offset, pair_step, row_step, work_.count, run};
      if (run == rows.count) {
        ends.from = part;
        ends.to = {to() + offset, pair_step, row_step, work_.count, run};
      } else {
        kernels_.load(part, {x.re + lane, x.im + lane}, rows.count);
      }
    });
    const Split<T> made = transformed(rows, ends);
    if (ends.to.first != nullptr) return;
    each_run(rows, [&](int64_t offset, int64_t row_step, int64_t lane, int64_t run) {
      kernels_.store({to() + offset, pair_step, row_step, work_.count, run},
                     {made.re + lane, made.im + lane}, ends.scale, rows.count);
    });
  }

  int64_t kept() const { return work_.count / 2 + 1; }
  const T* reals_from(const Rows& rows) const { return from() + rows.first * work_.count; }
  T* reals_to(const Rows& rows) const { return to() + rows.first * work_.count; }

  void from_pairs_of_reals(const Rows& rows) const {
    const Split<T> made =
        transformed(rows, {.from = {reals_from(rows), 2, work_.count, layout_.half, rows.count}});
    kernels_.apart(made, halves_, layout_.half, rows.count);
    std::fill_n(made.im, rows.count, T{0});
    std::fill_n(made.im + layout_.half * rows.count, rows.count, T{0});
    store_kept(made, rows);
  }
  void to_pairs_of_reals(const Rows& rows) const {
    const Split<T> x = load_kept(rows);
    kernels_.together(x, halves_, layout_.half, rows.count);
    transformed(rows, {.to = {reals_to(rows), 2, work_.count, layout_.half, rows.count},
                       .scale = static_cast<T>(2 * work_.scale),
                       .swapped = true});
  }

  // An odd number of them.
  void from_reals(const Rows& rows) const {
    const Split<T> x = buffer(rows.worker, 0);
    for (int64_t l = 0; l < rows.count; ++l)
      for (int64_t k = 0; k < work_.count; ++k)
        set(x, k * rows.count + l, reals_from(rows)[l * work_.count + k], T{0});
    const Split<T> made = transformed(rows, {});
    std::fill_n(made.im, rows.count, T{0});
    store_kept(made, rows);
  }
  void to_reals(const Rows& rows) const {
    const Split<T> x = load_kept(rows);
    const int64_t lanes = rows.count;
    std::fill_n(x.im, lanes, T{0});
    for (int64_t k = kept(); k < work_.count; ++k)
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t mirrored = (work_.count - k) * lanes + l;
        set(x, k * lanes + l, x.re[mirrored], -x.im[mirrored]);
      }
    const Split<T> made = transformed(rows, {.swapped = true});
    const T scale = static_cast<T>(work_.scale);
    for (int64_t l = 0; l < lanes; ++l)
      for (int64_t k = 0; k < work_.count; ++k)
        reals_to(rows)[l * work_.count + k] = made.re[k * lanes + l] * scale;
  }

  // The numbers that stand for a conjugate too, times a factor.
  void weigh(Split<T> x, int64_t lanes, T factor) const {
    const int64_t end = (work_.count + 1) / 2 * lanes;
    for (int64_t i = lanes; i < end; ++i) {
      x.re[i] *= factor;
      x.im[i] *= factor;
    }
  }
  Split<T> load_kept(const Rows& rows) const {
    const Split<T> x = buffer(rows.worker, 0);
    kernels_.load({from() + rows.first * 2 * kept(), 2, 2 * kept(), kept(), rows.count}, x,
                  rows.count);
    if (work_.adjoint) weigh(x, rows.count, T{0.5});
    return x;
  }
  void store_kept(Split<T> made, const Rows& rows) const {
    if (work_.adjoint) weigh(made, rows.count, T{2});
    kernels_.store({to() + rows.first * 2 * kept(), 2, 2 * kept(), kept(), rows.count}, made,
                   static_cast<T>(work_.scale), rows.count);
  }

  const Fourier& work_;
  const Layout layout_;
  const FourierKernels<T>& kernels_;
  FourierTables<T> tables_;
  T* turns_ = nullptr;
  Split<T> halves_, chirp_, spectrum_;
  std::byte* buffers_ = nullptr;
};

}  // namespace

int64_t fft_scratch_bytes(const Fourier& work, int threads) {
  const Layout layout(work);
  if (layout.rows == 0) return 0;
  return layout.shared_bytes() +
         device::workers_of(layout.groups, layout.grain, threads) * layout.worker_bytes();
}

void fft(const Fourier& work, int threads, std::byte* scratch) {
  if (work.outer * work.inner == 0) return;
  const device::FloatEnvironment environment;  // Of the tables, and of work on the caller.
  if (work.dtype == DType::f64) return Transformer<double>(work, scratch).run(threads);
  Transformer<float>(work, scratch).run(threads);
}

}  // namespace tidemark::library
