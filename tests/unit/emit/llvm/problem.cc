#include "problem.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/unit/emit/naive.h"
#include "tidemark/base/error.h"

namespace tidemark {

GuardedBytes::GuardedBytes(int64_t bytes, bool is_aligned) : size_(bytes) {
  constexpr int64_t kPage = 4096;
  const int64_t usable = (bytes + 64 + kPage - 1) / kPage * kPage;
  map_bytes_ = usable + 2 * kPage;
  map_ =
      mmap(nullptr, static_cast<size_t>(map_bytes_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TIDEMARK_CHECK(map_ != MAP_FAILED, "mmap of ", map_bytes_);
  std::byte* first = static_cast<std::byte*>(map_) + kPage;
  TIDEMARK_CHECK(mprotect(first, static_cast<size_t>(usable), PROT_READ | PROT_WRITE) == 0, "");
  const int64_t room = is_aligned ? (bytes + 63) / 64 * 64 : bytes;
  data_ = first + usable - room;
}
GuardedBytes::~GuardedBytes() { munmap(map_, static_cast<size_t>(map_bytes_)); }

namespace {

template <class T>
void fill(std::byte* data, int64_t count, std::mt19937_64& random, bool is_tame) {
  static constexpr double special[] = {0.0,
                                       -0.0,
                                       1.0,
                                       -1.0,
                                       0.5,
                                       2.5,
                                       -3.5,
                                       88.7,
                                       -104.2,
                                       710.0,
                                       1e-40,
                                       -1e-310,
                                       3e38,
                                       -1e300,
                                       2147483647.0,
                                       -2147483649.0,
                                       9.3e18,
                                       255.5,
                                       std::numeric_limits<double>::infinity(),
                                       -std::numeric_limits<double>::infinity(),
                                       std::numeric_limits<double>::quiet_NaN()};
  for (int64_t i = 0; i < count; ++i) {
    T value{};
    const uint64_t bits = random();
    if constexpr (std::is_same_v<T, bool>) {
      value = (bits & 1) != 0;
    } else if constexpr (std::is_integral_v<T>) {
      // Small, large, and the ends.
      const uint64_t kind = is_tame ? 0 : (bits >> 60) % 4;
      if (kind == 0) value = static_cast<T>((bits >> 8) % 17 - (std::is_signed_v<T> ? 8 : 0));
      if (kind == 1) value = static_cast<T>(bits);
      if (kind == 2) value = static_cast<T>(static_cast<T>(bits % 3) - 1);
      if (kind == 3) {
        value = (bits & 1) != 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
      }
    } else if (is_tame) {
      value = T(static_cast<float>(static_cast<double>(bits % 4001) / 400.0 - 5.0));
    } else if ((bits >> 62) == 0) {
      const double chosen = special[(bits >> 8) % std::size(special)];
      if constexpr (sizeof(T) == 8) {
        value = T(chosen);
      } else {
        value = T(static_cast<float>(chosen));
      }
    } else if ((bits >> 62) == 1 && sizeof(T) == 2) {
      std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
    } else {
      std::normal_distribution<double> normal(0.0, (bits >> 62) == 2 ? 2.0 : 60.0);
      value = T(static_cast<float>(normal(random)));
    }
    std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), static_cast<const void*>(&value),
                sizeof(T));
  }
}

template <class T>
bool same_element(const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, sizeof(T)) == 0) return true;
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    T x, y;
    std::memcpy(static_cast<void*>(&x), a, sizeof(T));
    std::memcpy(static_cast<void*>(&y), b, sizeof(T));
    if constexpr (sizeof(T) == 8) {
      return std::isnan(x) && std::isnan(y);
    } else {
      return std::isnan(static_cast<float>(x)) && std::isnan(static_cast<float>(y));
    }
  }
}

std::string text_of(const std::byte* at, DType dtype) {
  return visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    T value;
    std::memcpy(static_cast<void*>(&value), at, sizeof(T));
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(T));
    std::ostringstream out;
    out.precision(17);
    if constexpr (std::is_arithmetic_v<T>) {
      out << +value;
    } else {
      out << static_cast<float>(value);
    }
    out << " (0x" << std::hex << word << ")";
    return out.str();
  });
}

// The bytes of all buffers, as one way of running sees them.
struct Memory {
  explicit Memory(const Problem& problem) {
    std::mt19937_64 random(problem.seed);
    const size_t count = problem.nest.buffers.size();
    for (size_t i = 0; i < count; ++i) {
      const BufferRef& ref = problem.nest.buffers[i];
      const int64_t size = size_of(ref.dtype);
      const int64_t columns = std::max<int64_t>(problem.columns, 1);
      int64_t along = size;
      int64_t span = columns;
      if (ref.columns == BufferRef::Columns::repeat) {
        along = 0;
        span = 1;
      }
      if (ref.columns == BufferRef::Columns::strided) {
        along = problem.column_elements * size;
        span = (columns - 1) * std::abs(problem.column_elements) + 1;
      }
      // Rows of streaming buffers start on 64 bytes.
      const int64_t per_line = 64 / size;
      if (problem.is_aligned) span = (span + per_line - 1) / per_line * per_line;
      const int64_t steps = std::max<int64_t>(problem.steps, 1);
      const int64_t rows = std::max<int64_t>(problem.rows, 1);
      movements.push_back({.row = span * steps * size, .step = span * size, .column = along});
      const size_t from = problem.same_as.empty() ? i : static_cast<size_t>(problem.same_as[i]);
      if (from != i) {
        storage.push_back(nullptr);
        starts.push_back(starts[from]);
        continue;
      }
      storage.push_back(
          std::make_unique<GuardedBytes>(span * steps * rows * size, problem.is_aligned));
      std::byte* data = storage.back()->data();
      visit_dtype(ref.dtype, [&](auto zero) {
        fill<decltype(zero)>(data, span * steps * rows, random, problem.is_tame);
      });
      starts.push_back(along < 0 ? data - (columns - 1) * along : data);
    }
    for (const Expr& e : problem.nest.exprs) {
      if (e.op != ExprOp::scalar) continue;
      if (scalars.size() <= static_cast<size_t>(e.ref)) {
        scalars.resize(static_cast<size_t>(e.ref) + 1);
      }
      uint64_t& word = scalars[static_cast<size_t>(e.ref)];
      word = random();
      visit_dtype(e.dtype, [&](auto zero) {
        fill<decltype(zero)>(reinterpret_cast<std::byte*>(&word), 1, random, problem.is_tame);
      });
    }
  }

  KernelArgs arguments(const Problem& problem, std::byte* scratch) const {
    return {.rows = problem.rows,
            .steps = problem.steps,
            .columns = problem.columns,
            .buffers = starts.data(),
            .movements = movements.data(),
            .scalars = scalars.data(),
            .index_base = 5,
            .index_row = 1000,
            .scratch = scratch};
  }

  std::vector<std::unique_ptr<GuardedBytes>> storage;
  std::vector<std::byte*> starts;
  std::vector<Movement> movements;
  std::vector<uint64_t> scalars;
};

void run(const Kernel& kernel, const Problem& problem, const Memory& memory) {
  const GuardedBytes scratch((kernel.scratch_bytes + 63) / 64 * 64, true);
  kernel(memory.arguments(problem, scratch.data()));
}

std::string difference(const Problem& problem, const Memory& expected, const Memory& actual) {
  for (size_t i = 0; i < problem.nest.buffers.size(); ++i) {
    if (expected.storage[i] == nullptr) continue;
    const DType dtype = problem.nest.buffers[i].dtype;
    const int64_t size = size_of(dtype);
    for (int64_t at = 0; at < expected.storage[i]->size(); at += size) {
      const std::byte* a = expected.storage[i]->data() + at;
      const std::byte* b = actual.storage[i]->data() + at;
      const bool same =
          visit_dtype(dtype, [&](auto zero) { return same_element<decltype(zero)>(a, b); });
      if (!same) {
        return cat("buffer ", i, " element ", at / size, ": expected ", text_of(a, dtype), ", got ",
                   text_of(b, dtype), "\nrows ", problem.rows, " steps ", problem.steps,
                   " columns ", problem.columns, " seed ", problem.seed, "\n",
                   to_text(problem.nest));
      }
    }
  }
  return {};
}

}  // namespace

std::string difference(const Problem& problem, const Kernel& kernel) {
  const Memory expected(problem);
  const Memory actual(problem);
  testing::naive_run(problem.nest, expected.arguments(problem, nullptr));
  run(kernel, problem, actual);
  return difference(problem, expected, actual);
}

std::string difference(const Problem& problem, const Kernel& expected, const Kernel& actual) {
  const Memory left(problem);
  const Memory right(problem);
  run(expected, problem, left);
  run(actual, problem, right);
  return difference(problem, left, right);
}

std::vector<device::Isa> isas() {
  std::vector<device::Isa> found = {device::Isa::baseline};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    found.push_back(device::Isa::avx2);
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    found.push_back(device::Isa::avx512);
  }
  return found;
}

int32_t NestBuilder::buffer(DType dtype, BufferRef::Columns columns) {
  nest.buffers.push_back({.dtype = dtype, .columns = columns});
  return static_cast<int32_t>(nest.buffers.size() - 1);
}
int32_t NestBuilder::output(DType dtype, BufferRef::Columns columns) {
  nest.buffers.push_back({.dtype = dtype, .columns = columns, .written = true});
  return static_cast<int32_t>(nest.buffers.size() - 1);
}
int32_t NestBuilder::load(int32_t buffer) {
  return leaf(ExprOp::load, nest.buffers[static_cast<size_t>(buffer)].dtype, buffer);
}
int32_t NestBuilder::op(ExprOp op, DType dtype, int32_t a, int32_t b, int32_t c) {
  nest.exprs.push_back({.op = op, .dtype = dtype, .in = {a, b, c}});
  return static_cast<int32_t>(nest.exprs.size() - 1);
}
int32_t NestBuilder::constant(float value) {
  nest.exprs.push_back({.bits = std::bit_cast<uint32_t>(value)});
  return static_cast<int32_t>(nest.exprs.size() - 1);
}
int32_t NestBuilder::leaf(ExprOp op, DType dtype, int32_t ref) {
  nest.exprs.push_back({.op = op, .dtype = dtype, .ref = ref});
  return static_cast<int32_t>(nest.exprs.size() - 1);
}

}  // namespace tidemark
