// Lesson 10: nothing grows by itself. 100 calls that stack 10,000 small tensors each, and 10,000
// calls of an accumulator, hold after the last call what they held after the second.
#include <cstdio>
#include <tuple>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

namespace {

// What tensors hold, the cache of the function, and pages of the process.
struct Held {
  td::Bytes tensors, cache, resident;
};
template <class F>
Held held_by(const F& f) {
  return {td::memory::current(), f.cache_info().bytes, td::memory::ledger().resident};
}

// Calls it again and again; true where nothing grew.
template <class F, class X>
bool stays_flat(const char* what, int calls, const F& f, const X& x) {
  std::printf("%s\n", what);
  for (int call = 0; call < 2; ++call) f(x);
  held_by(f);  // Asking has costs of its own the first time.
  const Held before = held_by(f);
  const double time = lesson::milliseconds([&] {
    for (int call = 0; call < calls; ++call) f(x);
  });
  const Held after = held_by(f);
  std::printf("  planned %s bytes a call, %.3f ms a call\n",
              lesson::digits(f.plan(x).peak().count).c_str(), time / calls);
  std::printf("  after %d calls: tensors %+lld bytes, cache %+lld, resident %+lld\n", calls,
              static_cast<long long>((after.tensors - before.tensors).count),
              static_cast<long long>((after.cache - before.cache).count),
              static_cast<long long>((after.resident - before.resident).count));
  return after.tensors == before.tensors && after.cache == before.cache;
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const td::Tensor x = td::constant({1, 2}, td::f32);
  const int64_t elements = small ? 100 : 10'000;
  const auto stacked = td::function([elements](const td::Tensor& first) {
    const auto [array, last] = td::fori_loop(
        0, elements,
        [](const td::Tensor& i, td::TensorArray each, const td::Tensor& now) {
          return std::tuple{std::move(each).write(i, now), now + 1};
        },
        std::tuple{td::TensorArray(td::f32, {.size = elements, .element_shape = td::Shape{2}}),
                   first});
    return array.stack();
  });
  const auto accumulated = td::function([](const td::Tensor& start) {
    return td::fori_loop(
        0, 100, [](const td::Tensor& i, const td::Tensor& sum) { return sum + i; }, start);
  });
  const bool stacks = stays_flat("stack 10,000 tensors of [2]", small ? 10 : 100, stacked, x);
  const bool sums =
      stays_flat("add 100 numbers up", small ? 100 : 10'000, accumulated, td::constant(0.5f));
  return stacks && sums ? 0 : 1;
}
