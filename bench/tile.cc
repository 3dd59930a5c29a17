// The tile interpreter, in nanoseconds per element: the least of many short runs.
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "tidemark/emit/tile/tile.h"

using namespace tidemark;

namespace {

// Time of this thread alone, so that a busy machine does not show.
double now_ns() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double least_ns(const std::function<void()>& work) {
  double least = 1e30;
  const double start = now_ns();
  for (int i = 0; i < 5 || now_ns() - start < 1.5e8; ++i) {
    const double begin = now_ns();
    work();
    least = std::min(least, now_ns() - begin);
  }
  return least;
}

struct Arena {
  std::byte* bytes;
  explicit Arena(int64_t n)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(64, (n + 4095) / 4096 * 4096))) {
    std::memset(bytes, 0, n);
  }
  ~Arena() { std::free(bytes); }
};

float* floats(const Arena& arena) { return reinterpret_cast<float*>(arena.bytes); }

void report(const char* what, double ns, int64_t elements, int64_t bytes_each) {
  const int64_t repeats = std::max<int64_t>(1, 100000 / elements);
  ns /= static_cast<double>(repeats);
  std::printf("%-36s %9.4f ns/element %8.1f GB/s %10.2f us\n", what, ns / elements,
              static_cast<double>(elements * bytes_each) / ns, ns / 1000);
}

// One input, one output (one value per row where `folds`).
void measure(const char* what, const Nest& nest, int64_t rows, int64_t columns, int64_t bytes_each,
             Movement out_by = {}, Movement in_by = {}) {
  const std::unique_ptr<Kernel> kernel = make_tile_kernel(nest);
  const int64_t n = rows * columns;
  Arena in((in_by.column != 0 ? 2 * n : n) * 4 + 64);
  Arena out(n * 4 + 64);
  Arena scratch(kernel->scratch_bytes + 64);
  for (int64_t i = 0; i < n; ++i) floats(in)[i] = static_cast<float>(i % 1000) * 0.004F - 2;
  std::byte* const buffers[] = {in.bytes, out.bytes};
  const Movement packed = {columns * 4, 0, 4};
  const Movement movements[] = {in_by.column != 0 ? in_by : packed,
                                out_by.row != 0 ? out_by : packed};
  KernelArgs args;
  args.rows = rows;
  args.columns = columns;
  args.buffers = buffers;
  args.movements = movements;
  args.scratch = scratch.bytes;
  const int64_t repeats = std::max<int64_t>(1, 100000 / n);
  const double ns = least_ns([&] {
    for (int64_t i = 0; i < repeats; ++i) (*kernel)(args);
  });
  report(what, ns, n, bytes_each);
}

Nest with_buffers(BufferRef::Columns in = BufferRef::Columns::unit) {
  Nest nest;
  nest.buffers = {{.dtype = f32, .columns = in}, {.dtype = f32, .written = true}};
  nest.exprs = {{.op = ExprOp::load, .ref = 0}};
  return nest;
}

Expr constant(float value) {
  return {.op = ExprOp::constant, .bits = std::bit_cast<uint32_t>(value)};
}

Nest unary(ExprOp op) {
  Nest nest = with_buffers();
  nest.exprs.push_back({.op = op, .in = {0, -1, -1}});
  nest.sweeps = {{.stores = {{1, 1}}, .folds = {}}};
  return nest;
}

Nest polynomial(BufferRef::Columns in = BufferRef::Columns::unit) {
  Nest nest = with_buffers(in);
  nest.exprs.push_back(constant(2));
  nest.exprs.push_back(constant(1));
  nest.exprs.push_back({.op = ExprOp::multiply, .in = {0, 0, -1}});
  nest.exprs.push_back({.op = ExprOp::multiply, .in = {3, 1, -1}});
  nest.exprs.push_back({.op = ExprOp::add, .in = {4, 2, -1}});
  nest.sweeps = {{.stores = {{1, 5}}, .folds = {}}};
  return nest;
}

Nest chain(int length) {
  Nest nest = with_buffers();
  for (int i = 0; i < length; ++i) {
    nest.exprs.push_back({.op = i % 2 == 0 ? ExprOp::multiply : ExprOp::add, .in = {i, 0, -1}});
  }
  nest.sweeps = {{.stores = {{1, length}}, .folds = {}}};
  return nest;
}

Nest reduction(Monoid monoid) {
  Nest nest = with_buffers();
  nest.cells = 1;
  nest.exprs.push_back({.op = ExprOp::cell, .ref = 0});
  nest.sweeps = {{.stores = {}, .folds = {{0, 0, monoid}}}};
  nest.finish = {{1, 1}};
  return nest;
}

Nest softmax() {
  Nest nest = with_buffers();
  nest.cells = 2;
  nest.exprs.push_back({.op = ExprOp::cell, .ref = 0});
  nest.exprs.push_back({.op = ExprOp::subtract, .in = {0, 1, -1}});
  nest.exprs.push_back({.op = ExprOp::exp, .in = {2, -1, -1}});
  nest.exprs.push_back({.op = ExprOp::cell, .ref = 1});
  nest.exprs.push_back(constant(1));
  nest.exprs.push_back({.op = ExprOp::divide, .in = {5, 4, -1}});
  nest.exprs.push_back({.op = ExprOp::load, .ref = 1});
  nest.exprs.push_back({.op = ExprOp::multiply, .in = {7, 6, -1}});
  nest.sweeps = {{.stores = {}, .folds = {{0, 0, Monoid::maximum}}},
                 {.stores = {{1, 3}}, .folds = {{1, 3, Monoid::sum}}},
                 {.stores = {{1, 8}}, .folds = {}}};
  return nest;
}

}  // namespace

int main() {
  const int64_t big = int64_t{16} << 20;
  {
    Arena a(big * 4);
    Arena b(big * 4);
    report("memcpy 4096", least_ns([&] {
             for (int i = 0; i < 24; ++i) {
               std::memcpy(b.bytes, a.bytes, 4096 * 4);
               __asm__ volatile("" ::: "memory");
             }
           }),
           4096, 8);
    report("memcpy 64 Ki", least_ns([&] { std::memcpy(b.bytes, a.bytes, 65536 * 4); }), 65536, 8);
    report("memcpy 16 Mi", least_ns([&] { std::memcpy(b.bytes, a.bytes, big * 4); }), big, 8);
  }
  for (const int64_t n : {int64_t{16}, int64_t{4096}, int64_t{65536}, big}) {
    std::printf("n = %ld\n", static_cast<long>(n));
    measure("x*x*2+1", polynomial(), 1, n, 8);
    measure("negate", unary(ExprOp::negate), 1, n, 8);
    measure("exp", unary(ExprOp::exp), 1, n, 8);
    measure("tanh", unary(ExprOp::tanh), 1, n, 8);
    measure("log", unary(ExprOp::log), 1, n, 8);
    measure("erf", unary(ExprOp::erf), 1, n, 8);
    measure("sin", unary(ExprOp::sin), 1, n, 8);
    measure("chain of 60", chain(60), 1, n, 8);
    measure("sum", reduction(Monoid::sum), 1, n, 4, {4, 0, 0});
    measure("max", reduction(Monoid::maximum), 1, n, 4, {4, 0, 0});
  }
  measure("softmax 1024 x 1024", softmax(), 1024, 1024, 8);
  measure("softmax 100000 x 10", softmax(), 100000, 10, 8);
  measure("sum of rows 100000 x 3", reduction(Monoid::sum), 100000, 3, 4, {4, 0, 0});
  measure("sum of rows 10000 x 100", reduction(Monoid::sum), 10000, 100, 4, {4, 0, 0});
  measure("x*x*2+1, rows of 3 in 4", polynomial(), 100000, 3, 8, {12, 0, 4}, {16, 0, 4});
  measure("x*x*2+1 transposed 2048 x 2048", polynomial(BufferRef::Columns::strided), 2048, 2048, 8,
          {}, {4, 0, 2048 * 4});
  return 0;
}
