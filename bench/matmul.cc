// Products and convolutions beside oneDNN and the machine's limits, in one interleaved run.
//
//   matmul [seconds per row] [threads ...]       default: 1.0, then 1 and 2 threads
//
// Each row names its bar and prints pass or miss. A ratio above 1 means ours is faster. oneDNN's
// candidates: the matmul primitive with plain and with pre-packed weights (packed outside the
// clock), and sgemm; for convolution, NHWC images and whatever layout it likes best.
#include <omp.h>
#include <sched.h>
#include <sys/mman.h>
#include <dnnl.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "bench/interleave.h"
#include "bench/roofs.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/emit/contract/contract.h"

namespace tidemark::bench {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float, Free>;

Floats floats(int64_t count) {
  constexpr int64_t huge = 2 << 20;
  const int64_t bytes = (count * 4 + huge - 1) / huge * huge;
  Floats data(static_cast<float*>(std::aligned_alloc(huge, static_cast<size_t>(bytes))));
  madvise(data.get(), static_cast<size_t>(bytes), MADV_HUGEPAGE);
  std::minstd_rand random(7);
  for (int64_t i = 0; i < count; ++i)
    data.get()[i] = static_cast<float>(random() % 2048) / 1024 - 1;
  return data;
}

int missed = 0;

void print_row(const char* name, int threads, double ratio, double tenth_ratio, double bar,
               const std::string& note) {
  const bool pass = std::max(ratio, tenth_ratio) >= bar;
  if (!pass) ++missed;
  std::printf("%-28s %d thread%s  best %5.3f  p10 %5.3f  bar %4.2f  %s  %s\n", name, threads,
              threads == 1 ? " " : "s", ratio, tenth_ratio, bar, pass ? "pass" : "MISS",
              note.c_str());
  std::fflush(stdout);
}

// Ours is candidate 0; the others are rivals.
void compare(const char* name, int threads, std::vector<Candidate>& all, double flops, double bar) {
  double best = 1e9, tenth = 1e9;
  std::string note;
  for (size_t i = 0; i < all.size(); ++i) {
    char text[64];
    std::snprintf(text, sizeof text, "%s %.1f ", all[i].name.c_str(), flops / all[i].best() / 1e9);
    note += text;
    if (i == 0) continue;
    best = std::min(best, all[i].best());
    tenth = std::min(tenth, all[i].tenth());
  }
  print_row(name, threads, best / all[0].best(), tenth / all[0].tenth(), bar, note + "GFLOP/s");
}

Contraction product(int64_t m, int64_t k, int64_t n, float* a, float* b, float* c) {
  const auto ref = [](float* data, int64_t row) {
    return MatrixRef{reinterpret_cast<std::byte*>(data), DType::f32, row, 1};
  };
  return {.m = m, .n = n, .k = k, .a = ref(a, k), .b = ref(b, n), .c = ref(c, n)};
}

struct Dnnl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

dnnl::memory::desc matrix(int64_t rows, int64_t columns, dnnl::memory::format_tag tag) {
  return {{rows, columns}, dnnl::memory::data_type::f32, tag};
}

Candidate dnnl_matmul(Dnnl& dnnl, int64_t m, int64_t k, int64_t n, float* a, float* b, float* c,
                      bool packed) {
  using Tag = dnnl::memory::format_tag;
  const auto plain = Tag::ab;
  const dnnl::matmul::desc desc(matrix(m, k, plain), matrix(k, n, packed ? Tag::any : plain),
                                matrix(m, n, plain));
  const dnnl::matmul::primitive_desc chosen(desc, dnnl.engine);
  const dnnl::matmul primitive(chosen);
  dnnl::memory x({{m, k}, dnnl::memory::data_type::f32, plain}, dnnl.engine, a);
  dnnl::memory w({{k, n}, dnnl::memory::data_type::f32, plain}, dnnl.engine, b);
  dnnl::memory y({{m, n}, dnnl::memory::data_type::f32, plain}, dnnl.engine, c);
  if (packed) {
    dnnl::memory reordered(chosen.weights_desc(), dnnl.engine);
    dnnl::reorder(w, reordered).execute(dnnl.stream, w, reordered);
    dnnl.stream.wait();
    w = reordered;
  }
  const std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
  return {packed ? "packed" : "matmul", [=, &dnnl] {
            primitive.execute(dnnl.stream, arguments);
            dnnl.stream.wait();
          }};
}

void check_close(const char* name, const float* got, const float* want, int64_t count, int64_t k) {
  for (int64_t i = 0; i < count; ++i) {
    if (std::abs(got[i] - want[i]) > 1e-6F * static_cast<float>(k)) {
      std::printf("%s: wrong result at %ld: %g and %g\n", name, static_cast<long>(i),
                  static_cast<double>(got[i]), static_cast<double>(want[i]));
      std::exit(1);
    }
  }
}

struct Size {
  int64_t m, k, n;
};

void bench_product(Dnnl& dnnl, Size size, int threads, double budget_s) {
  const auto [m, k, n] = size;
  const Floats a = floats(m * k), b = floats(k * n), c = floats(m * n), d = floats(m * n);
  const Contraction p = product(m, k, n, a.get(), b.get(), c.get());
  const Floats scratch = floats(contract_scratch_bytes(p, threads) / 4 + 1);
  std::vector<Candidate> all;
  all.push_back(
      {"ours", [&] { contract(p, threads, reinterpret_cast<std::byte*>(scratch.get())); }});
  all.push_back(dnnl_matmul(dnnl, m, k, n, a.get(), b.get(), d.get(), false));
  all.push_back(dnnl_matmul(dnnl, m, k, n, a.get(), b.get(), d.get(), true));
  all.push_back({"sgemm", [&] {
                   dnnl_sgemm('N', 'N', m, n, k, 1.0F, a.get(), k, b.get(), n, 0.0F, d.get(), n);
                 }});
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  const bool at_peak = m == 256 && k == 256 && n == 256 && threads == 1;
  Candidate peak{
      "peak", [] { device::isa() == device::Isa::avx512 ? fma_peak_avx512() : fma_peak_avx2(); }};
  if (at_peak) all.push_back(peak);
  char name[64];
  std::snprintf(name, sizeof name, "%ldx%ldx%ld", static_cast<long>(m), static_cast<long>(k),
                static_cast<long>(n));
  interleave(all, budget_s, threads > 1);
  check_close(name, c.get(), d.get(), m * n, k);
  if (at_peak) {
    peak = all.back();
    all.pop_back();
    const double scale = flops / kPeakFlops;
    char note[64];
    std::snprintf(note, sizeof note, "peak %.1f GFLOP/s", kPeakFlops / peak.best() / 1e9);
    print_row("256x256x256 of fma peak", threads, peak.best() * scale / all[0].best(),
              peak.tenth() * scale / all[0].tenth(), 0.90, note);
  }
  compare(name, threads, all, flops, 0.95);
}

// No bar: small products, and operands that lie the other way round.
void bench_other(Size size, bool turn_a, bool turn_b, double budget_s) {
  const auto [m, k, n] = size;
  const Floats a = floats(m * k), b = floats(k * n), c = floats(m * n), d = floats(m * n);
  Contraction p = product(m, k, n, a.get(), b.get(), c.get());
  if (turn_a) p.a.row_stride = 1, p.a.column_stride = m;
  if (turn_b) p.b.row_stride = 1, p.b.column_stride = k;
  const Floats scratch = floats(contract_scratch_bytes(p, 1) / 4 + 1);
  std::vector<Candidate> all;
  all.push_back({"ours", [&] { contract(p, 1, reinterpret_cast<std::byte*>(scratch.get())); }});
  all.push_back({"sgemm", [&] {
                   dnnl_sgemm(turn_a ? 'T' : 'N', turn_b ? 'T' : 'N', m, n, k, 1.0F, a.get(),
                              turn_a ? m : k, b.get(), turn_b ? k : n, 0.0F, d.get(), n);
                 }});
  interleave(all, budget_s, false);
  char name[64];
  std::snprintf(name, sizeof name, "%ldx%ldx%ld%s%s", static_cast<long>(m), static_cast<long>(k),
                static_cast<long>(n), turn_a ? " A turned" : "", turn_b ? " B turned" : "");
  check_close(name, c.get(), d.get(), m * n, k);
  std::printf("%-28s 1 thread   ours %.2f us, sgemm %.2f us\n", name, all[0].best() * 1e6,
              all[1].best() * 1e6);
}

void bench_vector(bool matrix_first, int threads, double budget_s) {
  constexpr int64_t size = 4096;
  const Floats a = floats(size * size), x = floats(size), y = floats(size);
  Contraction p = matrix_first ? product(size, size, 1, a.get(), x.get(), y.get())
                               : product(1, size, size, x.get(), a.get(), y.get());
  const Floats scratch = floats(contract_scratch_bytes(p, threads) / 4 + 1);
  std::vector<Candidate> all;
  all.push_back(
      {"ours", [&] { contract(p, threads, reinterpret_cast<std::byte*>(scratch.get())); }});
  all.push_back({"read", [&] {
                   device::parallel_for(threads, 1, [&](int64_t begin, int64_t end, int) {
                     const int64_t part = size * size / threads;
                     const float sum = read_all(a.get() + begin * part, (end - begin) * part);
                     __asm__ volatile("" ::"x"(sum));
                   });
                 }});
  interleave(all, budget_s, threads > 1);
  char note[64];
  const double bytes = 4.0 * size * size;
  std::snprintf(note, sizeof note, "ours %.1f read %.1f GB/s", bytes / all[0].best() / 1e9,
                bytes / all[1].best() / 1e9);
  print_row(matrix_first ? "4096x4096 times vector" : "vector times 4096x4096", threads,
            all[1].best() / all[0].best(), all[1].tenth() / all[0].tenth(), 0.85, note);
}

Candidate dnnl_convolution(Dnnl& dnnl, const float* in, const float* weight, float* out,
                           bool any_layout) {
  using Tag = dnnl::memory::format_tag;
  constexpr auto f32 = dnnl::memory::data_type::f32;
  const dnnl::memory::dims in_size = {16, 64, 56, 56}, weight_size = {64, 64, 3, 3};
  const auto images = any_layout ? Tag::any : Tag::nhwc;
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference,
                                             dnnl::algorithm::convolution_direct,
                                             {in_size, f32, images}, {weight_size, f32, Tag::any},
                                             {in_size, f32, images}, {1, 1}, {1, 1}, {1, 1});
  const dnnl::convolution_forward::primitive_desc chosen(desc, dnnl.engine);
  const dnnl::convolution_forward primitive(chosen);
  const auto reordered = [&](const dnnl::memory::desc& want, const dnnl::memory::dims& size,
                             Tag tag, const float* data) {
    dnnl::memory from({size, f32, tag}, dnnl.engine, const_cast<float*>(data));
    dnnl::memory to(want, dnnl.engine);
    dnnl::reorder(from, to).execute(dnnl.stream, from, to);
    dnnl.stream.wait();
    return to;
  };
  const dnnl::memory x = reordered(chosen.src_desc(), in_size, Tag::nhwc, in);
  const dnnl::memory w = reordered(chosen.weights_desc(), weight_size, Tag::hwio, weight);
  const dnnl::memory y = any_layout ? dnnl::memory(chosen.dst_desc(), dnnl.engine)
                                    : dnnl::memory({in_size, f32, Tag::nhwc}, dnnl.engine, out);
  const std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
  return {any_layout ? "any" : "nhwc", [=, &dnnl] {
            primitive.execute(dnnl.stream, arguments);
            dnnl.stream.wait();
          }};
}

void bench_convolution(Dnnl& dnnl, int threads, double budget_s) {
  Convolution p{.n = 16,
                .h = 56,
                .w = 56,
                .c_in = 64,
                .kh = 3,
                .kw = 3,
                .c_out = 64,
                .out_h = 56,
                .out_w = 56,
                .pad_top = 1,
                .pad_left = 1};
  const int64_t count = p.n * p.h * p.w * p.c_in;
  const Floats in = floats(count), weight = floats(9 * 64 * 64), out = floats(count),
               other = floats(count);
  p.in = reinterpret_cast<const std::byte*>(in.get());
  p.in_w = p.c_in;
  p.in_h = p.w * p.in_w;
  p.in_n = p.h * p.in_h;
  p.weight = reinterpret_cast<const std::byte*>(weight.get());
  p.out = reinterpret_cast<std::byte*>(out.get());
  const Floats scratch = floats(convolve_scratch_bytes(p, threads) / 4 + 1);
  std::vector<Candidate> all;
  all.push_back(
      {"ours", [&] { convolve(p, threads, reinterpret_cast<std::byte*>(scratch.get())); }});
  all.push_back(dnnl_convolution(dnnl, in.get(), weight.get(), other.get(), false));
  all.push_back(dnnl_convolution(dnnl, in.get(), weight.get(), other.get(), true));
  interleave(all, budget_s, threads > 1);
  check_close("convolution", out.get(), other.get(), count, 9 * 64);
  compare("conv 3x3 64->64 16x56x56", threads, all, 2.0 * static_cast<double>(count) * 9 * 64,
          0.95);
}

// Starts every thread, then keeps the caller on the first core it may use: workers are pinned to
// the others, and a caller that wanders onto one of those leaves a core idle.
void start_threads(int threads) {
  std::atomic<int> sum{0};
#pragma omp parallel num_threads(threads)
  sum += omp_get_thread_num();
  device::parallel_for(threads, 1,
                       [&](int64_t begin, int64_t, int) { sum += static_cast<int>(begin); });
  cpu_set_t mask, first;
  CPU_ZERO(&first);
  if (threads == 1 || sched_getaffinity(0, sizeof mask, &mask) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) CPU_SET(cpu, &first);
  }
  sched_setaffinity(0, sizeof first, &first);
}

int run(int argc, char** argv) {
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1.0;
  std::vector<int> counts;
  for (int i = 2; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  if (counts.empty()) counts = {1, 2};
  Dnnl dnnl;
  for (const int threads : counts) {
    set_num_threads(threads);
    omp_set_num_threads(threads);
    start_threads(threads);
    for (const Size size : {Size{128, 128, 128}, Size{256, 256, 256}, Size{1024, 1024, 1024},
                            Size{1024, 784, 64}, Size{32, 1024, 1024}, Size{1024, 256, 8192}}) {
      bench_product(dnnl, size, threads, budget_s);
    }
    bench_vector(true, threads, budget_s);
    bench_vector(false, threads, budget_s);
    bench_convolution(dnnl, threads, budget_s);
    if (threads > 1) continue;
    for (const int64_t side : {4, 16, 64}) bench_other({side, side, side}, false, false, 0.2);
    bench_other({1024, 1024, 1024}, true, false, budget_s);
    bench_other({1024, 1024, 1024}, false, true, budget_s);
    bench_other({1024, 1024, 1024}, true, true, budget_s);
  }
  std::printf("%d missed\n", missed);
  return missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) { return tidemark::bench::run(argc, argv); }
