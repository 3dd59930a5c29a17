// What tapes hold on the heap beside tensors. Replaces operator new, so it is a program of its own.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tidemark/tidemark.h"

namespace {
std::atomic<int64_t> heap_bytes{0};
}  // namespace

// AddressSanitizer has an operator new of its own and minds another.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;

// Not inlined: the compiler would see free meet what it knows as new.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* const data = std::malloc(bytes == 0 ? 1 : bytes);
  if (data == nullptr) throw std::bad_alloc();
  heap_bytes.fetch_add(static_cast<int64_t>(malloc_usable_size(data)), std::memory_order_relaxed);
  return data;
}
[[gnu::noinline]] void operator delete(void* data) noexcept {
  heap_bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(data)), std::memory_order_relaxed);
  std::free(data);
}
[[gnu::noinline]] void operator delete(void* data, size_t) noexcept { operator delete(data); }
#endif

namespace {

namespace td = tidemark;

// What `f` leaves on the heap once it has been done before.
template <class F>
int64_t left_by(const F& f) {
  const int64_t before = heap_bytes.load();
  f();
  return heap_bytes.load() - before;
}

TEST(Tape, ThatIsAskedAgainAndAgainIsFlat) {
  if (!kCounts) GTEST_SKIP() << "AddressSanitizer's operator new cannot be replaced";
  const td::Tensor x = td::ones({4});
  td::Variable w(td::ones({4}), {.name = "w"});
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = td::sum(td::sin(x * w));
  const auto ask = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const td::Tensor slope = tape.gradient(y, x) * 0.5;  // The tape runs on.
      (void)td::Tensor(tape.gradient(y, w));
    }
  };
  ask(100);
  EXPECT_EQ(left_by([&] { ask(1'000); }), 0);
}

// What comes of its own gradients is refused as before, however many there were.
TEST(Tape, RefusesEachOfItsOwnGradients) {
  const td::Tensor x = td::ones({4});
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = td::sum(td::sin(x));
  const td::Tensor first = tape.gradient(y, x), between = td::exp(x);
  const td::Tensor second = tape.gradient(y, x), of_second = second * 2.0;
  const td::Tensor of_first = td::sum(first), of_both = td::sum(of_second * between);
  const td::Tensor allowed = td::sum(between);
  EXPECT_THROW(tape.gradient(of_first, x), td::UserError);
  EXPECT_THROW(tape.gradient(of_both, x), td::UserError);
  EXPECT_TRUE(td::identical(tape.gradient(allowed, x), td::exp(x)));
}

// A loop records what its body does, and no more for what it carries.
TEST(Tape, RecordsATripOfALoopAsItsOps) {
  if (!kCounts) GTEST_SKIP() << "AddressSanitizer's operator new cannot be replaced";
  const td::Tensor x = td::ones({4});
  const auto held = [&](const auto& run) {
    int64_t bytes = 0;
    for (int i = 0; i < 2; ++i) {
      td::GradientTape tape;
      tape.watch(x);
      bytes = left_by([&] { run(); });
    }
    return bytes;
  };
  const int64_t by_hand = held([&] {
    td::Tensor c = x;
    for (int i = 0; i < 400; ++i) c = td::tanh(c);
  });
  const int64_t in_a_loop = held([&] {
    td::fori_loop(0, 400, [](const td::Tensor&, const td::Tensor& c) { return td::tanh(c); }, x);
  });
  EXPECT_LE(in_a_loop, by_hand * 11 / 10);
}

}  // namespace
