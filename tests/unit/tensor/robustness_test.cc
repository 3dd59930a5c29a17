// Every allocation an op makes is failed once, at the pool, at the page-mapping function and at
// operator new. Afterwards the accounts are as before, no operand has changed, and the same op
// gives the same bits.
#include <gtest/gtest.h>

#include <dirent.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <ostream>
#include <string_view>
#include <vector>

#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/device/fault.h"
#include "tidemark/tidemark.h"

namespace {

std::atomic<int64_t> new_countdown{0};
std::atomic<int64_t> live_blocks{0};

void* allocate_or_strike(size_t bytes) {
  const int64_t left = new_countdown.load(std::memory_order_relaxed);
  const bool strikes = left > 0 && new_countdown.fetch_sub(1) == 1;
  void* const data = strikes ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) throw std::bad_alloc();
  live_blocks.fetch_add(1, std::memory_order_relaxed);
  return data;
}

void give_back(void* data) {
  if (data != nullptr) live_blocks.fetch_sub(1, std::memory_order_relaxed);
  std::free(data);
}

}  // namespace

// Not inlined: the compiler would see free meet what it knows as new.
[[gnu::noinline]] void* operator new(size_t bytes) { return allocate_or_strike(bytes); }
[[gnu::noinline]] void* operator new[](size_t bytes) { return allocate_or_strike(bytes); }
// The library's own of these would call the ones above, a sanitizer's would not.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate_or_strike(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void* operator new[](size_t bytes, const std::nothrow_t& none) noexcept {
  return operator new(bytes, none);
}
[[gnu::noinline]] void operator delete(void* data) noexcept { give_back(data); }
[[gnu::noinline]] void operator delete[](void* data) noexcept { give_back(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { give_back(data); }
[[gnu::noinline]] void operator delete[](void* data, size_t) noexcept { give_back(data); }

namespace tidemark {
namespace {

using device::fault::Site;

struct Case {
  const char* name;
  std::function<Tensor()> run;
};

struct Operands {
  Tensor x = random::normal({130, 70}, {.key = random::Key(1)});
  Tensor row = random::normal({70}, {.key = random::Key(2)});
  Tensor cube = random::normal({6, 40, 50}, {.key = random::Key(3)});
  Tensor image = random::normal({2, 20, 20, 8}, {.key = random::Key(4)});
  Tensor kernel = random::normal({3, 3, 8, 16}, {.key = random::Key(5)});
  Tensor ids = random::integers({300}, {.low = 0, .high = 130, .key = random::Key(6)});
};

std::vector<Case> cases(const Operands& o) {
  return {
      {"pointwise", [&o] { return exp(o.x) + o.row; }},
      {"transposed", [&o] { return transpose(o.x) * 2; }},
      {"in place", [&o] { return square(o.x + 1); }},
      {"sum by lanes", [&o] { return sum(o.x, 1); }},
      {"sum by columns", [&o] { return sum(o.x, 0); }},
      {"sum over uneven axes", [&o] { return sum(transpose(o.cube, {2, 0, 1}), {0, 2}); }},
      {"sum of all", [&o] { return sum(o.cube); }},
      {"argmax", [&o] { return argmax(o.cube, 1); }},
      {"softmax", [&o] { return softmax(o.x) + softmax(o.cube, 1)[{0, Slice{}, 0}][0]; }},
      {"concat", [&o] { return concat({o.x, o.x * 2}, 1); }},
      {"pad", [&o] { return pad(o.x, {{1, 2}, {0, 3}}); }},
      {"reshape of a view", [&o] { return reshape(transpose(o.x), {-1}); }},
      {"gather", [&o] { return gather(transpose(o.x), o.ids, 1); }},
      {"scatter_add", [&o] { return scatter_add(o.x, o.ids, gather(o.x, o.ids)); }},
      {"cumsum", [&o] { return cumsum(o.x, 1); }},
      {"mask", [&o] { return o.x[o.x > 0.5]; }},
      {"matmul", [&o] { return matmul(o.x, o.x, {.transpose_b = true}); }},
      {"conv2d", [&o] { return conv2d(o.image, o.kernel, {.padding = Padding::same}); }},
      {"max_pool", [&o] { return max_pool(o.image); }},
      {"layer_norm", [&o] { return layer_norm(o.x); }},
      {"random",
       [] { return random::normal({500}, {.dtype = DType::bf16, .key = random::Key(7)}); }},
      {"update", [&o] { return update(o.x, {0, all}, 7); }},
      {"one_hot", [&o] { return one_hot(o.ids, 9); }},
      {"large", [] { return ones({2 << 20}) * 3; }},
      {"constant", [] { return constant({{1, 2}, {3, 4}}, DType::f64); }},
  };
}

void arm(int where, int64_t k) {
  if (where == 2)
    new_countdown = k + 1;
  else
    device::fault::arm(where == 0 ? Site::pool : Site::mapping, k);
}

// True when the armed fault has not struck: the op has fewer allocations than that.
bool disarm(int where) {
  if (where == 2) return new_countdown.exchange(0) > 0;
  return device::fault::disarm(where == 0 ? Site::pool : Site::mapping);
}

void fail_every_allocation(int where) {
  // Compiling is outside the promise, and each op runs twice before it is judged, so that kernels
  // and caches exist.
  const compile::Emitter before = compile::emitter();
  compile::set_emitter(compile::Emitter::tile);
  const Operands operands;
  int struck = 0;
  for (const Case& c : cases(operands)) {
    const Tensor expected = c.run();
    c.run();
    for (int64_t k = 0; k < 1000; ++k) {
      memory::release();
      const int64_t held = memory::current().count;
      bool failed = false;
      arm(where, k);
      try {
        c.run();
      } catch (const OutOfMemory&) {
        failed = true;
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      const bool beyond = disarm(where);
      EXPECT_EQ(memory::current().count, held) << c.name << ", allocation " << k;
      EXPECT_TRUE(identical(c.run(), expected)) << c.name << ", allocation " << k;
      if (beyond) break;
      struck += failed ? 1 : 0;
    }
  }
  compile::set_emitter(before);
  EXPECT_GT(struck, 0);
}

TEST(OpFault, AtThePool) { fail_every_allocation(0); }
TEST(OpFault, AtTheMappingFunction) { fail_every_allocation(1); }
TEST(OpFault, AtOperatorNew) { fail_every_allocation(2); }

TEST(BorrowFault, LetsTheCallbackGo) {
  const auto token = std::make_shared<int>();
  float number = 1;
  int refused = 0;
  bool beyond = false;
  for (int64_t k = 0; !beyond && k < 100; ++k) {
    arm(2, k);
    try {
      borrow(std::span(&number, 1), {1}, [token] {});
    } catch (const std::bad_alloc&) {
      ++refused;
    } catch (const OutOfMemory&) {
      ++refused;
    }
    beyond = disarm(2);
    EXPECT_EQ(token.use_count(), 1) << "allocation " << k;
  }
  EXPECT_GT(refused, 2) << "the callback's own two, and the line's";
}

int64_t count_entries(const char* folder) {
  DIR* const open = opendir(folder);
  int64_t count = 0;
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

int64_t count_mappings() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  int64_t lines = 0;
  for (int c = std::getc(maps); c != EOF; c = std::getc(maps)) lines += c == '\n' ? 1 : 0;
  std::fclose(maps);
  return lines;
}

struct Footprint {
  int64_t current, cached, blocks, code, mappings, threads, files;
  bool operator==(const Footprint&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Footprint& f) {
  return out << "bytes " << f.current << ", cached " << f.cached << ", heap blocks " << f.blocks
             << ", code " << f.code << ", mappings " << f.mappings << ", threads " << f.threads
             << ", files " << f.files;
}

// Sanitizers map and cache memory of their own, in their own time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAlone = false;
#else
constexpr bool kAlone = true;
#endif

Footprint footprint() {
  return {memory::current().count,
          memory::cached().count,
          live_blocks.load(),
          compile::code_bytes(),
          kAlone ? count_mappings() : 0,
          count_entries("/proc/self/task"),
          count_entries("/proc/self/fd")};
}

void run_all(const std::vector<Case>& list, int times) {
  for (int i = 0; i < times; ++i) {
    for (const Case& c : list) c.run();
  }
}

TEST(OpSoak, IsFlatAfterTwoPasses) {
  const char* const counts = std::getenv("TIDEMARK_TEST_COUNTS");
  const bool full = counts != nullptr && std::string_view(counts) == "full";
  const int times = !kAlone ? 5 : full ? 2000 : 50;  // Under sanitizers a pass is slow.
  const compile::Emitter before = compile::emitter();
  // A composite of small tensors becomes a program within so many calls.
  const int calls_before_programs = kAlone ? 1400 : 2;
  const Operands operands;
  const std::vector<Case> list = cases(operands);
  run_all(list, calls_before_programs);
  for (const compile::Emitter emitter : {compile::Emitter::tile, compile::Emitter::llvm}) {
    compile::set_emitter(emitter);
    run_all(list, 2);
    run_all(list, times);
    const Footprint once = footprint();
    run_all(list, 2 * times);
    EXPECT_EQ(footprint(), once);
  }
  compile::set_emitter(before);
}

}  // namespace
}  // namespace tidemark
