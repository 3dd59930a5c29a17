// That a call of a compiled function needs no heap. Replaces operator new, so it is a program of
// its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

// AddressSanitizer has an operator new of its own and minds another.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;

// Not inlined: the compiler would see free meet what it knows as new.
[[gnu::noinline]] void* operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* const data = std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { std::free(data); }
#endif

namespace {

namespace td = tidemark;

TEST(Call, NeedsNoHeap) {
  if (!kCounts) GTEST_SKIP() << "AddressSanitizer's operator new cannot be replaced";
  const td::MachineCode machine;
  const auto one = td::function([](const td::Tensor& x) { return x + 1.0; });
  const auto more =
      td::function([](const td::Tensor& x, const td::Tensor& y, const td::Tensor& rate) {
        const td::Tensor z = td::transpose(x) * rate;
        return std::pair{td::exp(z) + y, td::sum(z, 0)};
      });
  const td::Tensor x = td::ones({40, 40}), y = td::ones({40});
  const td::Tensor turned = td::transpose(x);
  td::Tensor given = td::ones({4});
  // A line is charged for what it makes, and has a record from its first call on.
  const auto call_one = [&] { one(x); };
  const auto call_more = [&] { more(x, y, 0.5); };
  const auto call_all = [&] {
    call_one();
    call_more();
    more(turned, y, 3.0);
    given = one(std::move(given));
  };
  const auto allocations_of = [](const auto& call) {
    for (int i = 0; i < 3; ++i) call();
    const int64_t before = allocations.load();
    for (int i = 0; i < 100; ++i) call();
    return allocations.load() - before;
  };
  EXPECT_EQ(allocations_of(call_one), 0);
  EXPECT_EQ(allocations_of(call_more), 0);
  // Calls of other kinds in turn make one record each, of what ran last.
  EXPECT_LE(allocations_of(call_all), 400);
}

}  // namespace
