// Compiled kernels against what the machine can do: time to compile, and time to run next to
// hand-written intrinsics and to roofs measured in the same run. Candidates take turns in short
// samples, and the least of each counts.
#include <immintrin.h>
#include <malloc.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tidemark/emit/llvm/jit.h"

#define TIDEMARK_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]]

namespace tidemark {
namespace {

using Clock = std::chrono::steady_clock;
// The thread's own time: how long compiling takes does not depend on who else wants the core.
double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// ---- Nests

struct Builder {
  Nest nest;
  int32_t expr(ExprOp op, int32_t a = -1, int32_t b = -1, int32_t ref = 0) {
    nest.exprs.push_back({.op = op, .dtype = f32, .in = {a, b, -1}, .ref = ref, .bits = 0});
    return static_cast<int32_t>(nest.exprs.size() - 1);
  }
  int32_t number(float value) {
    const int32_t e = expr(ExprOp::constant);
    nest.exprs.back().bits = std::bit_cast<uint32_t>(value);
    return e;
  }
  Builder() {
    nest.buffers = {BufferRef{}, BufferRef{}};
    nest.buffers[1].written = true;
  }
  void store(int32_t e) { nest.sweeps.push_back({.stores = {{1, e}}, .folds = {}}); }
};

Nest square_plus(bool streams) {
  Builder b;
  const int32_t x = b.expr(ExprOp::load);
  const int32_t doubled = b.expr(ExprOp::multiply, b.expr(ExprOp::multiply, x, x), b.number(2.0F));
  b.store(b.expr(ExprOp::add, doubled, b.number(1.0F)));
  b.nest.buffers[1].streaming = streams;
  return b.nest;
}

Nest single(ExprOp op) {
  Builder b;
  b.store(b.expr(op, b.expr(ExprOp::load)));
  return b.nest;
}

// tanh(x) * sigmoid(x) + exp(x)
Nest gated() {
  Builder b;
  const int32_t x = b.expr(ExprOp::load);
  const int32_t one = b.number(1.0F);
  const int32_t e = b.expr(ExprOp::exp, b.expr(ExprOp::negate, x));
  const int32_t sigmoid = b.expr(ExprOp::divide, one, b.expr(ExprOp::add, one, e));
  const int32_t product = b.expr(ExprOp::multiply, b.expr(ExprOp::tanh, x), sigmoid);
  b.store(b.expr(ExprOp::add, product, b.expr(ExprOp::exp, x)));
  return b.nest;
}

Nest sum(Nest::Order order) {
  Builder b;
  b.nest.order = order;
  b.nest.cells = 1;
  b.nest.sweeps.push_back({.stores = {}, .folds = {{0, b.expr(ExprOp::load), Monoid::sum}}});
  b.nest.finish.push_back({1, b.expr(ExprOp::cell)});
  return b.nest;
}

Nest softmax() {
  Builder b;
  b.nest.cells = 2;
  const int32_t x = b.expr(ExprOp::load);
  const int32_t shifted = b.expr(ExprOp::subtract, x, b.expr(ExprOp::cell));
  const int32_t e = b.expr(ExprOp::exp, shifted);
  const int32_t total = b.expr(ExprOp::cell, -1, -1, 1);
  const int32_t inverse = b.expr(ExprOp::divide, b.number(1.0F), total);
  const int32_t stored = b.expr(ExprOp::load, -1, -1, 1);
  const int32_t y = b.expr(ExprOp::multiply, stored, inverse);
  b.nest.sweeps.push_back({.stores = {}, .folds = {{0, x, Monoid::maximum}}});
  b.nest.sweeps.push_back({.stores = {{1, e}}, .folds = {{1, e, Monoid::sum}}});
  b.nest.sweeps.push_back({.stores = {{1, y}}, .folds = {}});
  return b.nest;
}

// ---- The same by hand

TIDEMARK_AVX512 __m512 exp16(__m512 x) {
  const __m512 clamped =
      _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-104.0F)), _mm512_set1_ps(89.0F));
  const __m512 shifter = _mm512_set1_ps(0x1.8p23F);
  const __m512 shifted = _mm512_fmadd_ps(clamped, _mm512_set1_ps(0x1.715476p0F), shifter);
  const __m512 whole = _mm512_sub_ps(shifted, shifter);
  __m512 rest = _mm512_fmadd_ps(whole, _mm512_set1_ps(-0x1.62e4p-1F), clamped);
  rest = _mm512_fmadd_ps(whole, _mm512_set1_ps(-0x1.7f7d1cp-20F), rest);
  __m512 value = _mm512_set1_ps(0.0013950540451332927F);
  for (const float c :
       {0.008368917740881443F, 0.04166620597243309F, 0.166665181517601F, 0.5F, 1.0F, 1.0F}) {
    value = _mm512_fmadd_ps(value, rest, _mm512_set1_ps(c));
  }
  const __m512i exponent = _mm512_castps_si512(shifted);
  const __m512i half = _mm512_srai_epi32(exponent, 1);
  const __m512i one = _mm512_set1_epi32(0x3f800000);
  const __m512i first = _mm512_add_epi32(_mm512_slli_epi32(half, 23), one);
  const __m512i second =
      _mm512_add_epi32(_mm512_slli_epi32(_mm512_sub_epi32(exponent, half), 23), one);
  value = _mm512_mul_ps(value, _mm512_castsi512_ps(first));
  return _mm512_mul_ps(value, _mm512_castsi512_ps(second));
}

TIDEMARK_AVX512 __m512 tanh16(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 size = _mm512_min_ps(_mm512_abs_ps(x), _mm512_set1_ps(10.0F));
  const __m512 doubled = _mm512_add_ps(size, size);
  const __m512 shifter = _mm512_set1_ps(0x1.8p23F);
  const __m512 shifted = _mm512_fmadd_ps(doubled, _mm512_set1_ps(0x1.715476p0F), shifter);
  const __m512 whole = _mm512_sub_ps(shifted, shifter);
  __m512 rest = _mm512_fmadd_ps(whole, _mm512_set1_ps(-0x1.62e4p-1F), doubled);
  rest = _mm512_fmadd_ps(whole, _mm512_set1_ps(-0x1.7f7d1cp-20F), rest);
  const __m512i scale = _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23),
                                         _mm512_set1_epi32(0x3f800000));
  const __m512 power = _mm512_castsi512_ps(scale);
  __m512 tail = _mm512_set1_ps(0.0013950540451332927F);
  for (const float c : {0.008368917740881443F, 0.04166620597243309F, 0.166665181517601F, 0.5F}) {
    tail = _mm512_fmadd_ps(tail, rest, _mm512_set1_ps(c));
  }
  const __m512 small = _mm512_fmadd_ps(_mm512_mul_ps(rest, rest), tail, rest);
  const __m512 e = _mm512_fmadd_ps(power, small, _mm512_sub_ps(power, one));
  const __m512 ratio = _mm512_div_ps(e, _mm512_add_ps(e, _mm512_set1_ps(2.0F)));
  const __m512 sign = _mm512_and_ps(x, _mm512_set1_ps(-0.0F));
  return _mm512_or_ps(ratio, sign);
}

TIDEMARK_AVX512 void exp_all(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) _mm512_storeu_ps(y + i, exp16(_mm512_loadu_ps(x + i)));
}
TIDEMARK_AVX512 void tanh_all(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) _mm512_storeu_ps(y + i, tanh16(_mm512_loadu_ps(x + i)));
}
TIDEMARK_AVX512 void copy(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) _mm512_storeu_ps(y + i, _mm512_loadu_ps(x + i));
}
TIDEMARK_AVX512 void copy_streaming(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) _mm512_stream_ps(y + i, _mm512_loadu_ps(x + i));
  _mm_sfence();
}
TIDEMARK_AVX512 void read(const float* x, float* y, int64_t n) {
  __m512 sums[4] = {};
  for (int64_t i = 0; i < n; i += 64) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sums[k] = _mm512_add_ps(sums[k], _mm512_loadu_ps(x + i + 16 * k));
  }
  _mm512_storeu_ps(y, (sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// ---- Measuring

float* memory(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float) + (2 << 20);
  void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(map, bytes, MADV_HUGEPAGE);
  const uintptr_t start = (reinterpret_cast<uintptr_t>(map) + (2 << 20) - 1) >> 21 << 21;
  float* data = reinterpret_cast<float*>(start);
  for (int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 1000) * 0.013F - 6.0F;
  return data;
}

struct Candidate {
  std::string name;
  std::function<void(int64_t window)> run;
  double best = 1e30;
};

// Least seconds of one call each; `windows` parts of the memory are visited in turn.
void race(std::vector<Candidate>& candidates, int64_t windows, int calls, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      const auto start = Clock::now();
      for (int i = 0; i < calls; ++i) candidate.run((round + i) % windows);
      candidate.best = std::min(candidate.best, seconds_since(start) / calls);
    }
  }
}

void report(const char* title, const std::vector<Candidate>& candidates, int64_t elements,
            int64_t bytes) {
  std::printf("%s\n", title);
  for (const Candidate& c : candidates) {
    std::printf("  %-28s %8.4f ns/element %8.1f GB/s   %.2f of the first\n", c.name.c_str(),
                c.best * 1e9 / static_cast<double>(elements),
                static_cast<double>(bytes) * 1e-9 / c.best, candidates[0].best / c.best);
  }
}

std::function<void(int64_t)> runner(const Kernel& kernel, float* x, float* y, int64_t rows,
                                    int64_t steps, int64_t columns, int64_t window_elements,
                                    std::byte* scratch) {
  return [=, &kernel](int64_t window) {
    std::byte* buffers[] = {reinterpret_cast<std::byte*>(x + window * window_elements),
                            reinterpret_cast<std::byte*>(y + window * window_elements)};
    const Movement movements[] = {{columns * steps * 4, columns * 4, 4},
                                  {columns * steps * 4, columns * 4, 4}};
    kernel({.rows = rows,
            .steps = steps,
            .columns = columns,
            .buffers = buffers,
            .movements = movements,
            .scalars = nullptr,
            .scratch = scratch});
  };
}

void compile_times(device::Isa isa) {
  const std::pair<const char*, Nest> nests[] = {{"x*x*2+1", square_plus(false)},
                                                {"tanh*sigmoid+exp", gated()},
                                                {"softmax", softmax()},
                                                {"sum along lanes", sum(Nest::Order::lanes)},
                                                {"sum along steps", sum(Nest::Order::columns)}};
  double start = cpu_seconds();
  compile_nest(nests[0].second, isa);
  std::printf("compile, first in the process    %8.2f ms\n", (cpu_seconds() - start) * 1e3);
  for (const auto& [name, nest] : nests) {
    std::vector<double> times;
    int64_t bytes = 0;
    for (int i = 0; i < 41; ++i) {
      start = cpu_seconds();
      const auto kernel = compile_nest(nest, isa);
      times.push_back((cpu_seconds() - start) * 1e3);
      bytes = kernel->code_bytes;
    }
    std::sort(times.begin(), times.end());
    std::printf("compile %-24s %8.2f ms median %8.2f ms least, %ld bytes of pages\n", name,
                times[20], times[0], static_cast<long>(bytes));
  }
  const std::vector<Nest> many(20, gated());
  start = cpu_seconds();
  compile_nests(many, isa);
  std::printf("compile 20 x tanh*sigmoid+exp    %8.2f ms\n", (cpu_seconds() - start) * 1e3);
}

}  // namespace
}  // namespace tidemark

int main() {
  using namespace tidemark;
  if (!__builtin_cpu_supports("avx512dq")) {
    std::puts("needs AVX-512");
    return 0;
  }
  const device::Isa isa = device::Isa::avx512;
  compile_times(isa);

  constexpr int64_t kBig = int64_t{16} << 20;
  float* x = memory(kBig);
  float* y = memory(kBig);
  const auto scratch_kernel = compile_nest(sum(Nest::Order::columns), isa);
  std::vector<char> scratch_bytes(static_cast<size_t>(scratch_kernel->scratch_bytes) + 64);
  std::byte* scratch = reinterpret_cast<std::byte*>(
      (reinterpret_cast<uintptr_t>(scratch_bytes.data()) + 63) / 64 * 64);

  const auto plain = compile_nest(square_plus(false), isa);
  const auto streaming = compile_nest(square_plus(true), isa);
  const auto exponential = compile_nest(single(ExprOp::exp), isa);
  const auto tangent = compile_nest(single(ExprOp::tanh), isa);
  const auto soft = compile_nest(softmax(), isa);
  const auto lanes = compile_nest(sum(Nest::Order::lanes), isa);
  const auto pair = [&](void (*f)(const float*, float*, int64_t), int64_t n, int64_t window) {
    return [=](int64_t w) { f(x + w * window, y + w * window, n); };
  };

  for (const int64_t n : {int64_t{2048}, int64_t{65536}}) {
    std::vector<Candidate> c = {{"copy", pair(copy, n, 0)},
                                {"x*x*2+1", runner(*plain, x, y, 1, 1, n, 0, nullptr)}};
    race(c, 1, static_cast<int>(4'000'000 / n), 60);
    report(n == 2048 ? "L1" : "L2", c, n, 8 * n);
  }
  {
    constexpr int64_t n = 2048;
    std::vector<Candidate> c = {{"exp by hand", pair(exp_all, n, 0)},
                                {"exp", runner(*exponential, x, y, 1, 1, n, 0, nullptr)}};
    race(c, 1, 1000, 60);
    report("exp, L1", c, n, 8 * n);
    c = {{"tanh by hand", pair(tanh_all, n, 0)},
         {"tanh", runner(*tangent, x, y, 1, 1, n, 0, nullptr)}};
    race(c, 1, 1000, 60);
    report("tanh, L1", c, n, 8 * n);
  }
  {
    constexpr int64_t n = kBig;
    std::vector<Candidate> c = {
        {"copy, streaming", pair(copy_streaming, n, 0)},
        {"copy", pair(copy, n, 0)},
        {"x*x*2+1, streaming", runner(*streaming, x, y, 1, 1, n, 0, nullptr)},
        {"x*x*2+1", runner(*plain, x, y, 1, 1, n, 0, nullptr)}};
    race(c, 1, 1, 60);
    report("memory, 16 Mi floats", c, n, 8 * n);
    c = {{"read", pair(read, n, 0)},
         {"sum along lanes", runner(*lanes, x, y, 1, 1, n, 0, nullptr)},
         {"sum along steps, 1024 columns",
          runner(*scratch_kernel, x, y, 1, n / 1024, 1024, 0, scratch)}};
    race(c, 1, 1, 60);
    report("read, 16 Mi floats", c, n, 4 * n);
  }
  {
    constexpr int64_t n = int64_t{1} << 20;
    std::vector<Candidate> c = {
        {"copy", pair(copy, n, 0)},
        {"softmax 1024x1024", runner(*soft, x, y, 1024, 1, 1024, 0, nullptr)}};
    race(c, 1, 4, 100);
    report("softmax", c, n, 8 * n);
  }
  {
    std::vector<Candidate> c = {{"copy", pair(copy, 5 * 8192, 0)},
                                {"rows of 5", runner(*plain, x, y, 8192, 1, 5, 0, nullptr)},
                                {"rows of 20", runner(*plain, x, y, 2048, 1, 20, 0, nullptr)}};
    race(c, 1, 20, 100);
    report("short rows", c, 5 * 8192, 5 * 8192 * 8);
  }
}
