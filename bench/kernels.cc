// kernels [seconds per row]: compiled kernels against what the machine can do. Prints how long they
// take to compile, then pass or miss for how fast they run on one thread, next to hand-written
// intrinsics and to roofs measured in the same run.
#include <immintrin.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/bars.h"
#include "bench/interleave.h"
#include "tidemark/emit/llvm/jit.h"

#define TIDEMARK_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]]

namespace tidemark::bench {
namespace {

// The thread's own time: how long compiling takes does not depend on who else wants the core.
double cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
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
  return _mm512_scalef_ps(value, whole);
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

// A compiled kernel with memory to run on: buffer 0 is read, buffer 1 written.
class Runner {
 public:
  Runner(const Nest& nest, device::Isa isa, float* x, float* y)
      : kernel_(compile_nest(nest, isa)),
        scratch_(static_cast<size_t>(kernel_->scratch_bytes) + 64),
        buffers_{reinterpret_cast<std::byte*>(x), reinterpret_cast<std::byte*>(y)} {}

  std::function<void()> over(int64_t rows, int64_t steps, int64_t columns) {
    return [this, rows, steps, columns] {
      const Movement along = {columns * steps * 4, columns * 4, 4};
      const Movement movements[] = {along, along};
      const auto scratch = reinterpret_cast<uintptr_t>(scratch_.data());
      (*kernel_)({.rows = rows,
                  .steps = steps,
                  .columns = columns,
                  .buffers = buffers_,
                  .movements = movements,
                  .scratch = reinterpret_cast<std::byte*>((scratch + 63) / 64 * 64)});
    };
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::byte> scratch_;
  std::byte* buffers_[2];
};

// How our time compares with theirs, both in the same interleaved run.
struct Race {
  double ours_s = 0, theirs_s = 0, ratio = 0;  // theirs / ours: the more the better.
};
Race race(double budget_s, std::function<void()> ours, std::function<void()> theirs) {
  std::vector<Candidate> both = {{"ours", std::move(ours)}, {"theirs", std::move(theirs)}};
  interleave(both, budget_s, false);
  return {both[0].best(), both[1].best(),
          std::max(both[1].best() / both[0].best(), both[1].tenth() / both[0].tenth())};
}

std::string text(const char* format, double a, double b) {
  char buffer[96];
  std::snprintf(buffer, sizeof(buffer), format, a, b);
  return buffer;
}

Bar beside_hand(const char* name, const Race& race, int64_t elements) {
  const double ns = 1e9 / static_cast<double>(elements);
  return {name, 1 / race.ratio, 1.2, false,
          text("%.3f ns an element, %.3f by hand", race.ours_s * ns, race.theirs_s * ns)};
}
Bar beside_roof(const char* name, double limit, const Race& race, int64_t bytes) {
  const double gigabytes = static_cast<double>(bytes) * 1e-9;
  return {name, race.ratio, limit, true,
          text("ours %.1f GB/s, roof %.1f", gigabytes / race.ours_s, gigabytes / race.theirs_s)};
}

std::vector<Bar> kernel_bars(device::Isa isa, double budget_s) {
  constexpr int64_t kMany = int64_t{16} << 20, kMiddling = int64_t{1} << 20, kFew = 2048;
  float* const x = memory(kMany);
  float* const y = memory(kMany);
  Runner exponential(single(ExprOp::exp), isa, x, y), tangent(single(ExprOp::tanh), isa, x, y),
      streaming(square_plus(true), isa, x, y), lanes(sum(Nest::Order::lanes), isa, x, y),
      columns(sum(Nest::Order::columns), isa, x, y), soft(softmax(), isa, x, y);
  const auto hand = [&](void (*f)(const float*, float*, int64_t), int64_t n) {
    return [=] { f(x, y, n); };
  };
  std::vector<Bar> bars;
  bars.push_back(beside_hand("exp of 2048 floats / by hand",
                             race(budget_s, exponential.over(1, 1, kFew), hand(exp_all, kFew)),
                             kFew));
  bars.push_back(beside_hand("tanh of 2048 floats / by hand",
                             race(budget_s, tangent.over(1, 1, kFew), hand(tanh_all, kFew)), kFew));
  bars.push_back(beside_roof(
      "x*x*2+1 of 16 Mi floats / streaming copy", 0.85,
      race(budget_s, streaming.over(1, 1, kMany), hand(copy_streaming, kMany)), 8 * kMany));
  bars.push_back(beside_roof("sum of 16 Mi floats / reading", 0.85,
                             race(budget_s, lanes.over(1, 1, kMany), hand(read, kMany)),
                             4 * kMany));
  bars.push_back(beside_roof("sum of 16384 x 1024 along axis 0 / reading", 0.8,
                             race(budget_s, columns.over(1, kMany / 1024, 1024), hand(read, kMany)),
                             4 * kMany));
  bars.push_back(beside_roof("sum of 256 Ki x 64 along axis 0 / reading", 0.8,
                             race(budget_s, columns.over(1, kMany / 64, 64), hand(read, kMany)),
                             4 * kMany));
  bars.push_back(beside_roof("softmax 1024 x 1024 / copy of that size", 0.7,
                             race(budget_s, soft.over(1024, 1, 1024), hand(copy, kMiddling)),
                             8 * kMiddling));
  return bars;
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
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  using namespace tidemark;
  if (!__builtin_cpu_supports("avx512dq")) {
    std::puts("the code by hand needs AVX-512, which this CPU lacks");
    return 0;
  }
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1.0;
  bench::compile_times(device::Isa::avx512);
  return bench::print_all(bench::kernel_bars(device::Isa::avx512, budget_s)) == 0 ? 0 : 1;
}
