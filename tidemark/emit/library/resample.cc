#include "tidemark/emit/library/resample.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tidemark/base/error.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/library/resample_kernels.h"

namespace tidemark::library {
namespace {

const ResampleKernels& kernels() {
  switch (device::isa()) {
    case device::Isa::avx512:
      return avx512::resample_kernels;
    case device::Isa::avx2:
      return avx2::resample_kernels;
    case device::Isa::baseline:
      break;
  }
  return baseline::resample_kernels;
}

// Of the resampling from `in` to `out` samples, whichever of the two it computes.
struct Weights {
  int64_t in, out;
  Sampling sampling;
  double step, wide;  // From sample to sample of the result, and of the kernel.

  explicit Weights(const Resample& p)
      : in(p.transposed ? p.to : p.from),
        out(p.transposed ? p.from : p.to),
        sampling(p.sampling),
        step(static_cast<double>(in) / static_cast<double>(out)),
        wide(p.antialias && in > out ? step : 1) {}

  double reach() const { return (sampling == Sampling::cubic ? 2 : 1) * wide; }
  // Of one sample of the result.
  int64_t most_terms() const {
    if (sampling == Sampling::nearest) return 1;
    if (sampling == Sampling::mean) return std::min(in, in / out + 2);
    return std::min(in, static_cast<int64_t>(2 * reach()) + 2);
  }

  // Visits (j, weight) of sample i, in increasing j.
  template <class Visit>
  void for_each(int64_t i, Visit&& visit) const {
    if (sampling == Sampling::nearest) return visit((2 * i + 1) * in / (2 * out), 1.0);
    if (sampling == Sampling::mean) {
      const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
      for (int64_t j = begin; j < end; ++j) visit(j, 1.0 / static_cast<double>(end - begin));
      return;
    }
    const double center = (static_cast<double>(i) + 0.5) * step - 0.5;
    const auto begin = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(center - reach())));
    const auto end = std::min<int64_t>(in, static_cast<int64_t>(std::floor(center + reach())) + 1);
    double sum = 0;
    for (int64_t j = begin; j < end; ++j) sum += raw(center, j);
    for (int64_t j = begin; j < end; ++j)
      if (raw(center, j) != 0) visit(j, raw(center, j) / sum);
  }

 private:
  double raw(double center, int64_t j) const {
    const double t = std::fabs(static_cast<double>(j) - center) / wide;
    if (sampling == Sampling::linear) return t < 1 ? 1 - t : 0;
    if (t >= 2) return 0;
    return t < 1 ? (1.5 * t - 2.5) * t * t + 1 : ((-0.5 * t + 2.5) * t - 4) * t + 2;
  }
};

// The terms of each row of the result.
struct Table {
  WeightedRow* terms;
  int64_t* first;  // One more than there are rows.

  void build(const Resample& p) {
    const Weights weights(p);
    if (p.transposed) return build_transposed(p, weights);
    int64_t count = 0;
    for (int64_t i = 0; i < p.to; ++i) {
      first[i] = count;
      weights.for_each(i, [&](int64_t j, double w) { terms[count++] = {j * p.inner, w}; });
    }
    first[p.to] = count;
  }

 private:
  // Counts, then fills: outputs come in increasing order for every input.
  void build_transposed(const Resample& p, const Weights& weights) {
    std::fill_n(first, p.to + 1, 0);
    for (int64_t i = 0; i < p.from; ++i)
      weights.for_each(i, [&](int64_t j, double) { ++first[j]; });
    int64_t before = 0;
    for (int64_t j = 0; j < p.to; ++j) before += std::exchange(first[j], before);
    for (int64_t i = 0; i < p.from; ++i)
      weights.for_each(i, [&](int64_t j, double w) { terms[first[j]++] = {i * p.inner, w}; });
    for (int64_t j = p.to; j > 0; --j) first[j] = first[j - 1];
    first[0] = 0;
  }
};

int64_t whole_lines(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t terms_bytes(const Resample& p) {
  const Weights weights(p);
  return whole_lines(weights.out * weights.most_terms() *
                     static_cast<int64_t>(sizeof(WeightedRow)));
}

template <class T>
void run(const Resample& p, const Table& table, void (*kernel)(const WeightedRows<T>&),
         const std::byte* in, std::byte* out) {
  const int64_t grain = std::max<int64_t>(1, 16384 / p.inner);
  device::parallel_for(p.outer * p.to, grain, [&](int64_t begin, int64_t end, int) {
    while (begin < end) {
      const int64_t entry = begin / p.to, stop = std::min(end, (entry + 1) * p.to);
      kernel({.in = reinterpret_cast<const T*>(in) + entry * p.from * p.inner,
              .out = reinterpret_cast<T*>(out) + entry * p.to * p.inner,
              .inner = p.inner,
              .terms = table.terms,
              .first = table.first,
              .begin = begin - entry * p.to,
              .end = stop - entry * p.to});
      begin = stop;
    }
  });
}

int64_t table_bytes(const Resample& p) {
  return terms_bytes(p) + whole_lines((p.to + 1) * static_cast<int64_t>(sizeof(int64_t)));
}
Table built(const Resample& p, std::byte* scratch) {
  Table table{reinterpret_cast<WeightedRow*>(scratch),
              reinterpret_cast<int64_t*>(scratch + terms_bytes(p))};
  table.build(p);
  return table;
}

// A piece is a row of the result; between the two axes it is in scratch.
struct Axes {
  Resample down, across;

  explicit Axes(const ResampleImages& p)
      : down{.dtype = p.dtype,
             .inner = p.w * p.c,
             .from = p.h,
             .to = p.to_h,
             .sampling = p.sampling,
             .antialias = p.antialias},
        across(down) {
    across.inner = p.c;
    across.from = p.w;
    across.to = p.to_w;
  }
  int64_t grain() const { return std::max<int64_t>(1, 16384 / down.inner); }
  int64_t row_bytes() const { return whole_lines(down.inner * size_of(down.dtype)); }
};

template <class T>
void run_images(const ResampleImages& p, int threads, void (*kernel)(const WeightedRows<T>&),
                const std::byte* in, std::byte* out, std::byte* scratch) {
  const Axes axes(p);
  const Table down = built(axes.down, scratch);
  const Table across = built(axes.across, scratch += table_bytes(axes.down));
  scratch += table_bytes(axes.across);
  const int64_t row = axes.down.inner;
  const auto work = [&](int64_t begin, int64_t end, int worker) {
    T* const between = reinterpret_cast<T*>(scratch + worker * axes.row_bytes());
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t image = piece / p.to_h, i = piece % p.to_h;
      kernel({.in = reinterpret_cast<const T*>(in) + image * p.h * row,
              .out = between - i * row,
              .inner = row,
              .terms = down.terms,
              .first = down.first,
              .begin = i,
              .end = i + 1});
      kernel({.in = between,
              .out = reinterpret_cast<T*>(out) + piece * p.to_w * p.c,
              .inner = p.c,
              .terms = across.terms,
              .first = across.first,
              .end = p.to_w});
    }
  };
  device::parallel_for(p.n * p.to_h, axes.grain(), threads, work);
}

}  // namespace

int64_t resample_scratch_bytes(const Resample& p) {
  const device::FloatEnvironment environment;
  return terms_bytes(p) + (p.to + 1) * static_cast<int64_t>(sizeof(int64_t));
}

void resample(const Resample& p, const std::byte* in, std::byte* out, std::byte* scratch) {
  const device::FloatEnvironment environment;
  const Table table = built(p, scratch);
  if (p.dtype == DType::f64) return run<double>(p, table, kernels().rows_f64, in, out);
  TIDEMARK_CHECK(p.dtype == DType::f32, "resample: ", p.dtype);
  run<float>(p, table, kernels().rows_f32, in, out);
}

int64_t resample_images_scratch_bytes(const ResampleImages& p, int threads) {
  const device::FloatEnvironment environment;
  const Axes axes(p);
  return table_bytes(axes.down) + table_bytes(axes.across) +
         device::workers_of(p.n * p.to_h, axes.grain(), threads) * axes.row_bytes();
}

void resample_images(const ResampleImages& p, int threads, const std::byte* in, std::byte* out,
                     std::byte* scratch) {
  const device::FloatEnvironment environment;
  if (p.dtype == DType::f64)
    return run_images<double>(p, threads, kernels().rows_f64, in, out, scratch);
  TIDEMARK_CHECK(p.dtype == DType::f32, "resample_images: ", p.dtype);
  run_images<float>(p, threads, kernels().rows_f32, in, out, scratch);
}

}  // namespace tidemark::library
