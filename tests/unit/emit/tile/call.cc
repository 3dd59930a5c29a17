#include "tests/unit/emit/tile/call.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "tests/unit/emit/naive.h"
#include "tidemark/base/error.h"
#include "tidemark/emit/llvm/jit.h"
#include "tidemark/emit/tile/tile.h"

namespace tidemark::testing {
namespace {

constexpr int64_t kGuard = 64;

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};

void run(const Kernel& kernel, KernelArgs args) {
  const auto bytes = static_cast<size_t>((kernel.scratch_bytes + 63) / 64 * 64);
  const std::unique_ptr<std::byte, Free> scratch(
      static_cast<std::byte*>(std::aligned_alloc(64, std::max<size_t>(bytes, 64))));
  std::memset(scratch.get(), 0xab, bytes);
  args.scratch = scratch.get();
  kernel(args);
}

void run_tile(const Nest& nest, device::Isa isa, const KernelArgs& args) {
  run(*make_tile_kernel(nest, isa), args);
}

}  // namespace

std::vector<device::Isa> available_isas() {
  using device::Isa;
  std::vector<Isa> result = {Isa::baseline};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    result.push_back(Isa::avx2);
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    result.push_back(Isa::avx512);
  }
  return result;
}

Call::Call(Nest nest, int64_t rows, int64_t steps, int64_t columns) : nest_(std::move(nest)) {
  sizes_.rows = rows;
  sizes_.steps = steps;
  sizes_.columns = columns;
  const bool lanes = nest_.order == Nest::Order::lanes;
  for (size_t i = 0; i < nest_.buffers.size(); ++i) {
    const bool cells = std::ranges::any_of(
        nest_.finish, [&](const Store& s) { return s.buffer == static_cast<int32_t>(i); });
    Steps by = {steps * columns, columns, 1};
    if (nest_.buffers[i].columns == BufferRef::Columns::repeat) by = {steps, 1, 0};
    if (cells) by = lanes ? Steps{1, 0, 0} : Steps{columns, 0, 1};
    steps_.push_back(by);
    aliases_.push_back(static_cast<int32_t>(i));
  }
}

Call& Call::layout(int32_t buffer, Steps steps) {
  steps_[buffer] = steps;
  return *this;
}
Call& Call::alias(int32_t buffer, int32_t other) {
  aliases_[buffer] = other;
  return *this;
}
Call& Call::scalars(std::vector<uint64_t> words) {
  scalars_ = std::move(words);
  return *this;
}
Call& Call::index(int64_t base, int64_t row) {
  sizes_.index_base = base;
  sizes_.index_row = row;
  return *this;
}
Call& Call::seed(uint64_t seed) {
  seed_ = seed;
  return *this;
}

Call::Memory Call::make_memory() const {
  Memory memory;
  memory.blocks.resize(nest_.buffers.size());
  std::mt19937_64 random(seed_);
  for (size_t i = 0; i < nest_.buffers.size(); ++i) {
    if (aliases_[i] != static_cast<int32_t>(i)) {
      memory.bases.push_back(memory.bases[aliases_[i]]);
      memory.extents.push_back(memory.extents[aliases_[i]]);
      continue;
    }
    const DType dtype = nest_.buffers[i].dtype;
    const bool lanes = nest_.order == Nest::Order::lanes;
    const bool cells = std::ranges::any_of(
        nest_.finish, [&](const Store& s) { return s.buffer == static_cast<int32_t>(i); });
    const int64_t steps = cells ? 1 : sizes_.steps;
    const int64_t columns = cells && lanes ? 1 : sizes_.columns;
    int64_t least = 0;
    int64_t most = 0;
    const auto reach = [&](int64_t by, int64_t count) {
      (by < 0 ? least : most) += by * std::max<int64_t>(count - 1, 0);
    };
    reach(steps_[i].row, sizes_.rows);
    reach(steps_[i].step, steps);
    reach(steps_[i].column, columns);
    const bool empty = sizes_.rows == 0 || steps == 0 || columns == 0;
    const int64_t count = empty ? 0 : most - least + 1;
    const int64_t size = size_of(dtype);
    std::vector<std::byte>& block = memory.blocks[i];
    block.assign(count * size + 2 * kGuard, std::byte{0x77});
    // Drawing each element anew would take most of the test's time.
    std::array<uint64_t, 509> values;
    for (uint64_t& value : values) value = random_value(dtype, random);
    for (int64_t k = 0; k < count; ++k) {
      write_element(dtype, &block[kGuard + k * size], values[(k * k + k / 7) % values.size()]);
    }
    std::byte* const begin = block.data() + kGuard;
    memory.bases.push_back(begin - least * size);
    memory.extents.push_back({begin, begin + count * size});
  }
  return memory;
}

KernelArgs Call::args(const Memory& memory) const {
  KernelArgs args = sizes_;
  movements_.clear();
  for (size_t i = 0; i < steps_.size(); ++i) {
    const int64_t size = size_of(nest_.buffers[i].dtype);
    movements_.push_back({steps_[i].row * size, steps_[i].step * size, steps_[i].column * size});
  }
  args.buffers = memory.bases.data();
  args.movements = movements_.data();
  args.scalars = scalars_.data();
  return args;
}

std::string Call::compare(const Memory& expected, const Memory& actual) const {
  for (size_t i = 0; i < nest_.buffers.size(); ++i) {
    const std::vector<std::byte>& a = expected.blocks[i];
    const std::vector<std::byte>& b = actual.blocks[i];
    const DType dtype = nest_.buffers[i].dtype;
    const auto size = static_cast<size_t>(size_of(dtype));
    for (size_t k = 0; k < a.size(); k += size) {
      const uint64_t want = read_element(dtype, &a[k]);
      const uint64_t got = read_element(dtype, &b[k]);
      if (same(dtype, want, got)) continue;
      return cat("buffer ", i, ", element ",
                 static_cast<int64_t>(k / size) - kGuard / size_of(dtype), ": ", std::hex, got,
                 ", not ", want, "\n");
    }
  }
  return "";
}

std::string Call::differences() const {
  const Memory expected = make_memory();
  naive_run(nest_, args(expected));
  std::string text;
  for (const device::Isa isa : available_isas()) {
    for (const bool checking : {false, true}) {
      const Memory actual = make_memory();
      KernelArgs call = args(actual);
      if (checking) call.extents = actual.extents.data();
      run_tile(nest_, isa, call);
      const std::string found = compare(expected, actual);
      if (found.empty()) continue;
      text += cat(device::name(isa), checking ? ", checking" : "", ": ", found);
    }
  }
  if (!text.empty()) {
    text +=
        cat("at ", sizes_.rows, " x ", sizes_.steps, " x ", sizes_.columns, "\n", to_text(nest_));
  }
  return text;
}

std::string Call::compiled_differences(device::Isa isa) const {
  const std::unique_ptr<Kernel> kernel = compile_nest(nest_, isa);
  if (kernel == nullptr) return cat("not compiled:\n", to_text(nest_));
  const Memory expected = make_memory();
  naive_run(nest_, args(expected));
  const Memory actual = make_memory();
  run(*kernel, args(actual));
  const std::string found = compare(expected, actual);
  if (found.empty()) return "";
  return cat(device::name(isa), ", compiled: ", found, "at ", sizes_.rows, " x ", sizes_.steps,
             " x ", sizes_.columns, "\n", to_text(nest_));
}

std::string Call::message_when_cut(int32_t buffer, int64_t bytes) const {
  Memory memory = make_memory();
  (bytes > 0 ? memory.extents[buffer].end : memory.extents[buffer].begin) -= bytes;
  KernelArgs call = args(memory);
  call.extents = memory.extents.data();
  try {
    run_tile(nest_, available_isas().back(), call);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

int32_t NestBuilder::buffer(DType dtype, BufferRef::Columns columns) {
  nest.buffers.push_back({.dtype = dtype, .columns = columns});
  return static_cast<int32_t>(nest.buffers.size()) - 1;
}
int32_t NestBuilder::output(DType dtype, BufferRef::Columns columns) {
  nest.buffers.push_back({.dtype = dtype, .columns = columns, .written = true});
  return static_cast<int32_t>(nest.buffers.size()) - 1;
}
int32_t NestBuilder::add(Expr expr) {
  nest.exprs.push_back(expr);
  return static_cast<int32_t>(nest.exprs.size()) - 1;
}
int32_t NestBuilder::load(int32_t buffer) {
  return add({.op = ExprOp::load, .dtype = nest.buffers[buffer].dtype, .ref = buffer});
}
int32_t NestBuilder::constant(DType dtype, double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return add({.op = ExprOp::constant,
              .dtype = dtype,
              .bits = naive_apply(ExprOp::cast, dtype, f64, bits, 0, 0)});
}
int32_t NestBuilder::scalar(DType dtype, int32_t ref) {
  return add({.op = ExprOp::scalar, .dtype = dtype, .ref = ref});
}
int32_t NestBuilder::cell(int32_t cell, DType dtype) {
  return add({.op = ExprOp::cell, .dtype = dtype, .ref = cell});
}
int32_t NestBuilder::index() { return add({.op = ExprOp::index, .dtype = i64}); }
int32_t NestBuilder::apply(ExprOp op, DType dtype, int32_t a, int32_t b, int32_t c) {
  return add({.op = op, .dtype = dtype, .in = {a, b, c}});
}
int32_t NestBuilder::apply(ExprOp op, int32_t a, int32_t b, int32_t c) {
  return apply(op, nest.exprs[a].dtype, a, b, c);
}
int32_t NestBuilder::fold(Monoid monoid, int32_t expr) {
  nest.sweeps.back().folds.push_back({nest.cells, expr, monoid});
  return nest.cells++;
}

}  // namespace tidemark::testing
