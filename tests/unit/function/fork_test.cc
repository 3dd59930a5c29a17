// Forks while other threads are in the middle of something: no child hangs or dies, whatever it
// then does itself. g++ 12's sanitizers have locks of their own that a fork may catch.
#include <gtest/gtest.h>

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

// Runs `act` in a child; whether it came to its end. A lock left taken would hang it.
bool ends_in_child(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    try {
      act();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Two threads act again and again, and a child of each of many forks does the same once.
void expect_forks_beside(const std::function<void()>& act, int forks = 40) {
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (; !stop; ++rounds) act();
    });
  }
  bool well = true;
  for (int i = 0; i < forks && well; ++i) {
    // At another moment each time, and never before the threads have gone on.
    for (const int seen = rounds; rounds == seen && rounds < 1 << 30;) usleep(17U * (i % 50U));
    well = ends_in_child(act);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(well);
}

TEST(Fork, BesideEagerOps) {
  const td::Tensor x = td::ones({64, 64});
  expect_forks_beside([&] { (void)(td::matmul(x, x) + td::exp(x)); });
}

TEST(Fork, BesideFunctionCalls) {
  const td::Tensor x = td::ones({8});
  const auto f = td::function([](const td::Tensor& a) { return a * 2; });
  (void)f(x);
  expect_forks_beside([&] { (void)f(x); });
}

// The child has none of the threads that were waiting, and its own calls are the first.
TEST(Fork, BesideCallsThatWait) {
  const td::Bytes limit = td::memory::limit();
  const td::Tensor x = td::ones({10000}), small = td::ones({1000});
  const auto f = td::function([](const td::Tensor& a) { return a * 2; },
                              {.when_full = td::wait_for(std::chrono::hours(24))});
  f(x), f(small);
  td::memory::release();
  td::memory::set_limit(td::memory::current() + td::Bytes(39999));
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { f(x); });
  while (td::memory::waiting().calls != 2) std::this_thread::yield();
  EXPECT_TRUE(ends_in_child([&] {
    if (td::memory::waiting().calls != 0) throw UserError("a call waits that has no thread");
    (void)f(small);
  }));
  td::memory::set_limit(limit);
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, BesideFunctionsThatAssign) {
  const td::Tensor x = td::ones({8});
  const td::Variable v(td::zeros({8}));
  const auto f = td::function([v](const td::Tensor& a) { v.assign_add(a); });
  f(x);
  expect_forks_beside([&] { f(x); });
}

// A step that was caught in the middle would leave the two apart.
TEST(Fork, AChildSeesNoStepHalfDone) {
  const td::Variable a(td::zeros({100000})), b(td::zeros({100000}));
  const auto step = td::function([a, b] {
    a.assign_add(1);
    b.assign_add(1);
  });
  step();
  std::atomic<bool> stop{false};
  std::thread stepping([&] {
    while (!stop) step();
  });
  bool well = true;
  for (int i = 0; i < 30 && well; ++i) {
    usleep(37U * static_cast<unsigned>(i));
    well = ends_in_child([&] {
      if (!td::identical(a.value(), b.value())) throw UserError("half a step");
      step();
    });
  }
  stop = true;
  stepping.join();
  EXPECT_TRUE(well);
}

TEST(Fork, BesideAssignments) {
  const td::Variable v(td::zeros({8}));
  expect_forks_beside([&] { v.assign_add(1); });
}

TEST(Fork, BesideTapesAndNewFunctions) {
  const td::Tensor x = td::ones({8});
  expect_forks_beside([&] {
    td::GradientTape tape;
    tape.watch(x);
    (void)tape.gradient(td::sum(x * x), x);
    const auto f = td::function([](const td::Tensor& a) { return a; });
  });
}

TEST(Fork, BesideTracingAndCompiling) {
  const td::Tensor x = td::ones({8});
  std::atomic<int> number{0};
  expect_forks_beside(
      [&] {
        const double other = ++number;
        (void)td::function([other](const td::Tensor& a) {
          const td::nn::Sequential model{td::nn::Dense(3)};
          return td::sum(td::tanh(a * other));
        })(x);
      },
      15);
}

TEST(Fork, BesidePrinting) {
  td::set_print_sink([](std::string_view) {});
  expect_forks_beside([] { td::print("x"); });
  td::set_print_sink(nullptr);
}

TEST(Fork, BesideDatasetsWithThreads) {
  const auto walk = [] {
    const auto rows = td::data::from_tensor_slices(td::ones({32, 4}))
                          .map([](const td::Tensor& a) { return a + 1; }, {.parallel = 2})
                          .batch(4)
                          .prefetch(2);
    int count = 0;
    for (const td::Tensor& batch : rows) count += static_cast<int>(batch.shape()[0]);
    if (count != 32) throw UserError("rows are missing");
  };
  expect_forks_beside(walk, 20);
}

// The first walk of a cache, which others wait for, may be that of a thread the child has not.
TEST(Fork, BesideACacheThatIsFilled) {
  const auto rows = td::data::range(200)
                        .map([](const td::Tensor& a) {
                          usleep(100);
                          return a + 1;
                        })
                        .cache();
  std::thread filling([&] {
    for (const td::Tensor& row : rows) (void)row;
  });
  usleep(2000);
  EXPECT_TRUE(ends_in_child([&] {
    for (const td::Tensor& row : rows) (void)row;
  }));
  filling.join();
}

TEST(Fork, AWalkWithThreadsEndsInTheParentAlone) {
  const auto mapped =
      td::data::range(100).map([](const td::Tensor& a) { return a + 1; }, {.parallel = 2});
  const auto ahead = td::data::range(100).prefetch(3);
  auto walk = mapped.begin();
  auto other = ahead.begin();
  EXPECT_TRUE(ends_in_child([&] {
    const std::string text = error_of([&] { ++walk; });
    if (text.substr(0, text.find("\n  at ")) !=
        "map(parallel 2): this iteration began before the process forked, and its threads do not "
        "exist in the child")
      throw UserError(text);
    if (text.substr(text.rfind('\n')) != "\n  start the iteration in the child")
      throw UserError(text);
    const std::string second = error_of([&] { ++other; });
    if (!second.starts_with("prefetch(3): this iteration began before the process forked"))
      throw UserError(second);
    int count = 0;
    for (const td::Tensor& row : mapped) count += static_cast<int>(row.size());
    if (count != 100) throw UserError("rows are missing");
    // Letting go of what was begun waits for nobody.
    const auto dropped = std::move(walk), also = std::move(other);
  }));
  ++walk;
  ++other;
}

TEST(Fork, InsideOfAnInitializerGoesOnOnBothSides) {
  bool well = false;
  const td::Variable v(td::Shape{3}, [&](const td::Shape& shape, td::DType) {
    well = ends_in_child([&] { (void)td::exp(td::ones(shape)); });
    return td::ones(shape);
  });
  (void)v.value();
  EXPECT_TRUE(well);
}

}  // namespace
}  // namespace tidemark
#endif
