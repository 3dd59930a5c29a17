// Calls that hold their memory at the same moment: each has its own, and of those that do not all
// fit exactly one is refused.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <memory_resource>
#include <thread>
#include <vector>

#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;

constexpr int kThreads = 8;

// Memory whose blocks of one size are given back by all threads together: whoever comes first
// holds what it has until the last has come.
class MeetingResource : public std::pmr::memory_resource {
 public:
  explicit MeetingResource(size_t bytes) : bytes_(bytes) { td::memory::set_resource(this); }
  ~MeetingResource() override { td::memory::set_resource(nullptr); }

  void leave() { all_.arrive_and_drop(); }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* data, size_t bytes, size_t alignment) override {
    if (bytes == bytes_) all_.arrive_and_wait();
    std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  size_t bytes_;
  std::barrier<> all_{kThreads};
};

class CallsAtOnce : public testing::Test {
 protected:
  CallsAtOnce() {
    const td::Plan plan = f_.plan(x_);
    planned_ = plan.peak();
    arena_ = planned_ - plan.of(td::ByteClass::outputs);
    f_(x_);
    td::memory::release();
  }
  ~CallsAtOnce() override { td::memory::set_limit(limit_); }

  // How many calls were refused.
  int run() {
    MeetingResource resource(static_cast<size_t>(arena_.count));
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        try {
          f_(x_);
        } catch (const td::OutOfMemory&) {
          ++refused;
          resource.leave();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return refused;
  }

  td::Function<td::Tensor(const td::Tensor&)> f_ =
      td::function([](const td::Tensor& x) { return td::sum(td::matmul(td::exp(x), x) + 1, 0); });
  td::Tensor x_ = td::random::normal({100, 100}, {.key = td::random::Key(1)});
  td::Bytes planned_, arena_, limit_ = td::memory::limit();
};

TEST_F(CallsAtOnce, HoldWhatIsPlannedEach) {
  const td::Bytes before = td::memory::current();
  td::memory::reset_peak();
  EXPECT_EQ(run(), 0);
  EXPECT_EQ((td::memory::peak() - before).count, kThreads * planned_.count);
  EXPECT_EQ(td::memory::current(), before);
}

TEST_F(CallsAtOnce, OfThoseThatLackOneByteOneIsRefused) {
  const td::Bytes before = td::memory::current();
  for (int round = 0; round < 20; ++round) {
    td::memory::set_limit(before + td::Bytes(kThreads * planned_.count - 1));
    EXPECT_EQ(run(), 1);
    EXPECT_EQ(td::memory::current(), before);
  }
}

// Each writes what the other reads: they lock both in one order, or would wait for each other.
TEST(CallsThatAssign, NeverWaitForEachOther) {
  const td::Variable a(td::ones({4})), b(td::ones({4}));
  const auto first = td::function([a, b] { a.assign(a * 0.5 + b); });
  const auto second = td::function([a, b] { b.assign(b * 0.5 + a * 0.25); });
  first();
  second();
  std::thread one([&] {
    for (int i = 0; i < 20000; ++i) first();
  });
  std::thread two([&] {
    for (int i = 0; i < 20000; ++i) second();
  });
  one.join();
  two.join();
}

// What a call reads of several Variables is of one moment, though another thread writes them.
TEST(CallsThatRead, SeeOneMoment) {
  const td::Variable a(td::zeros({4})), b(td::zeros({4}));
  const auto step = td::function([a, b] {
    a.assign_add(1);
    b.assign_add(1);
  });
  const auto difference = td::function([a, b] { return td::sum(td::abs(a - b)); });
  step();
  std::atomic<bool> stop{false};
  std::thread stepping([&] {
    while (!stop) step();
  });
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(difference().item<float>(), 0);
  stop = true;
  stepping.join();
}

}  // namespace
