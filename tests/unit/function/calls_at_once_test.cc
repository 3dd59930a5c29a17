// Calls that hold their memory at the same moment: each has its own, and of those that do not all
// fit exactly one is refused.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory_resource>
#include <mutex>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;
using namespace std::chrono_literals;

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

// ---- calls that wait ----------------------------------------------------------------------------

// Long enough that no test sees its end.
constexpr auto kLong = 24h;

void until_so_many_wait(int64_t calls) {
  while (td::memory::waiting().calls != calls) std::this_thread::yield();
}

// Calls whose plan is their result, of so many floats, so that whoever holds it holds all.
class CallsThatWait : public testing::Test {
 protected:
  using Twice = td::Function<td::Tensor(const td::Tensor&)>;
  static Twice twice(td::WaitFor most) {
    return td::function([](const td::Tensor& x) { return x * 2; }, {.when_full = most});
  }
  ~CallsThatWait() override { td::memory::set_limit(limit_); }
  // Leaves room for so many bytes, beside what is held now.
  static void leave_room(int64_t bytes) {
    td::memory::release();
    td::memory::set_limit(td::memory::current() + td::Bytes(bytes));
  }

  td::Bytes limit_ = td::memory::limit();
};

TEST_F(CallsThatWait, AreAllServedWhereThereIsRoomForOne) {
  const auto f =
      td::function([](const td::Tensor& x) { return td::sum(td::matmul(td::exp(x), x) + 1, 0); },
                   {.when_full = td::wait_for(kLong)});
  const td::Tensor x = td::random::normal({100, 100}, {.key = td::random::Key(1)});
  const td::Bytes planned = f.plan(x).peak();
  const std::vector<float> right = f(x).to_vector<float>();
  const int64_t refused = td::memory::waiting().refused;
  const td::Bytes before = td::memory::current();
  leave_room(planned.count);
  td::memory::reset_peak();
  std::atomic<int> same{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int call = 0; call < 60; ++call) same += f(x).to_vector<float>() == right ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 480);
  EXPECT_EQ(td::memory::peak(), before + planned);
  EXPECT_EQ(td::memory::current(), before);
  EXPECT_EQ(td::memory::waiting().refused, refused);
  EXPECT_EQ(td::memory::waiting().calls, 0);
}

// The small calls would fit while the large one waits, and of them only one fits at a time.
TEST_F(CallsThatWait, AreServedInTheOrderInWhichTheyCame) {
  const auto f = twice(td::wait_for(kLong));
  const td::Tensor large = td::ones({10000}), small = td::ones({6000});
  f(large), f(small);
  leave_room(40000);
  td::Tensor held = td::ones({3000});
  const int64_t served = td::memory::waiting().served;
  std::mutex lock;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t) {
    threads.emplace_back([&, t] {
      const td::Tensor result = f(t == 0 ? large : small);
      const std::lock_guard guard(lock);
      order.push_back(t);
    });
    until_so_many_wait(t + 1);
  }
  EXPECT_EQ(td::memory::waiting().bytes.count, 40000 + 4 * 24000);
  EXPECT_GE(td::memory::waiting().longest_ms, 0);
  EXPECT_TRUE(order.empty());
  held = {};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(td::memory::waiting().served, served + 5);
  EXPECT_EQ(td::memory::waiting().calls, 0);
}

TEST_F(CallsThatWait, FindTheRoomOfALargerLimit) {
  const auto f = twice(td::wait_for(kLong));
  const td::Tensor x = td::ones({10000});
  f(x);
  leave_room(39999);
  td::Tensor result;
  std::thread waiting([&] { result = f(x); });
  until_so_many_wait(1);
  td::memory::set_limit(limit_);
  waiting.join();
  EXPECT_EQ(result.to_vector<float>(), std::vector<float>(10000, 2));
}

// The Variable is free while the call waits: the thread that releases memory may need it first.
TEST_F(CallsThatWait, LockNothingMeanwhile) {
  const td::Variable v(td::zeros({10000}));
  const auto f = td::function(
      [v](const td::Tensor& x) {
        v.assign_add(x);
        return v * 2;
      },
      {.when_full = td::wait_for(kLong)});
  const td::Tensor x = td::ones({10000});
  f(x);
  leave_room(40000);
  td::Tensor held = td::ones({10000}), result;
  std::thread waiting([&] { result = f(x); });
  until_so_many_wait(1);
  v.assign(td::Tensor(x));
  held = {};
  waiting.join();
  EXPECT_EQ(v.value().to_vector<float>(), std::vector<float>(10000, 2));
  EXPECT_EQ(result.to_vector<float>(), std::vector<float>(10000, 4));
}

// The measured time is the one number that a test cannot know.
std::string without_time(const std::string& text) {
  return std::regex_replace(text, std::regex("the first for [0-9.e+]+ m?s"), "the first for T");
}

TEST_F(CallsThatWait, AreRefusedWithNumbersWhenTheTimeIsUp) {
  const auto f = twice(td::wait_for(1ms));
  const td::Tensor x = td::ones({10000});
  f(x);
  leave_room(50000);
  const int64_t refused = td::memory::waiting().refused;
  const td::Tensor held = f(x);  // The thread that waits holds what it waits for.
  const unsigned line = __LINE__ + 1;
  const std::string text = td::error_of<td::OutOfMemory>([&] { f(x); });
  const std::string begin =
      td::cat("out of memory: a call of a function needs 39.1 KiB, ", td::memory::current(), " of ",
              td::memory::limit(), " are in use, ");
  EXPECT_EQ(text.substr(0, begin.size()), begin) << text;
  const size_t rest = text.find(" cached");
  ASSERT_NE(rest, std::string::npos) << text;
  EXPECT_EQ(without_time(text.substr(rest, text.find("\n  largest") - rest)),
            td::cat(" cached; waited 1 ms\n  at calls_at_once_test.cc:", line,
                    "\n  waiting: 1 call for 39.1 KiB, the first for T; this one was number 1"))
      << text;
  EXPECT_NE(text.find("\n  free results you no longer need (x = {}), allow more time: .when_full = "
                      "td::wait_for(...), or raise the limit: td::memory::set_limit"),
            std::string::npos)
      << text;
  EXPECT_EQ(td::memory::waiting().refused, refused + 1);
}

// One that gives up in the middle of the queue, and one at its front, leave it to the others.
TEST_F(CallsThatWait, LeaveTheQueueToOthersWhenTheirTimeIsUp) {
  const auto patient = twice(td::wait_for(kLong)), hasty = twice(td::wait_for(0ms));
  const td::Tensor x = td::ones({10000});
  patient(x), hasty(x);
  leave_room(40000);
  td::Tensor held = td::ones({10000});
  std::thread first([&] { patient(x); });
  until_so_many_wait(1);
  const std::string text = td::error_of<td::OutOfMemory>([&] { hasty(x); });
  EXPECT_NE(without_time(text).find("waiting: 2 calls for 78.1 KiB, the first for T; this one was "
                                    "number 2\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(td::memory::waiting().calls, 1);
  held = {};
  first.join();
  EXPECT_EQ(td::memory::waiting().calls, 0);
}

TEST_F(CallsThatWait, AreRefusedAtOnceWhereNoWaitHelps) {
  const auto f = twice(td::wait_for(kLong));
  const td::Tensor x = td::ones({10000});
  f(x);
  td::memory::set_limit(td::Bytes(39999));
  const std::string text = td::error_of<td::OutOfMemory>([&] { f(x); });
  EXPECT_NE(text.find("\n  ask for less, or raise the limit: td::memory::set_limit"),
            std::string::npos)
      << text;
}

struct Interrupted {};

TEST_F(CallsThatWait, CanBeInterrupted) {
  const auto f = twice(td::wait_for(kLong));
  const td::Tensor x = td::ones({10000});
  f(x);
  leave_room(39999);
  td::set_interrupt_check([] { throw Interrupted(); }, 0);
  EXPECT_THROW(f(x), Interrupted);
  td::set_interrupt_check(nullptr);
  EXPECT_EQ(td::memory::waiting().calls, 0);
  td::memory::set_limit(limit_);
  EXPECT_EQ(f(x).to_vector<float>(), std::vector<float>(10000, 2));
}

TEST_F(CallsThatWait, WaitUnderATapeToo) {
  const auto f = twice(td::wait_for(0ms));
  const td::Tensor x = td::ones({10000});
  f(x);
  td::GradientTape tape;
  tape.watch(x);
  leave_room(39999);
  const std::string text = td::error_of<td::OutOfMemory>([&] { f(x); });
  EXPECT_NE(text.find("; waited 0 ms\n"), std::string::npos) << text;
}

TEST(WaitFor, TakesNoNegativeTime) {
  EXPECT_EQ(td::error_of([] { td::wait_for(-1s, td::Source::none()); }),
            "wait_for: a call cannot wait -1 seconds\n  give the longest time that it may wait: "
            "td::wait_for(100ms)");
}

TEST(Waiting, Prints) {
  std::ostringstream text;
  text << td::memory::Waiting{.calls = 2, .bytes = td::Bytes(2048), .longest_ms = 1.5, .served = 3};
  EXPECT_EQ(text.str(),
            "2 calls wait for 2.0 KiB, the first for 1.5 ms; 3 served after a wait, 0 refused "
            "after it");
}

}  // namespace
