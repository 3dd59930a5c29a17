#include "tidemark/device/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "held.h"
#include "tidemark/device/limit.h"
#include "tidemark/device/mapping.h"
#include "tidemark/device/sanitizer.h"
#include "tidemark/device/scope.h"

namespace tidemark::device {
namespace {

class ThreadsGuard {
 public:
  explicit ThreadsGuard(int count) : before_(num_threads()) { set_num_threads(count); }
  ~ThreadsGuard() { set_num_threads(before_); }

 private:
  int before_;
};

// Runs jobs until every worker has taken part in one, or gives up: a worker that wakes late finds
// the work done.
template <class Body>
void until_all_take_part(int threads, Body body) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(threads));
  for (int attempt = 0; attempt < 1'000'000; ++attempt) {
    parallel_for(threads * 4, 1, [&](int64_t, int64_t, int worker) {
      ++seen[static_cast<size_t>(worker)];
      body(worker);
      std::this_thread::yield();
    });
    bool all = true;
    for (const auto& count : seen) all = all && count > 0;
    if (all) return;
    usleep(100);
  }
  FAIL() << "some worker never ran";
}

TEST(ParallelFor, CoversEveryIndexOnceInWholeGrains) {
  for (const int threads : {1, 2, 5}) {
    const ThreadsGuard guard(threads);
    for (const int64_t count : {0, 1, 7, 64, 1000, 4099}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        parallel_for(count, grain, [&](int64_t begin, int64_t end, int worker) {
          EXPECT_EQ(begin % grain, 0);
          EXPECT_TRUE((end - begin) % grain == 0 || end == count);
          EXPECT_GE(worker, 0);
          EXPECT_LT(worker, threads);
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        for (const auto& hit : hits) ASSERT_EQ(hit, 1);
      }
    }
  }
}

TEST(ParallelFor, UsesAllItsThreads) {
  const ThreadsGuard guard(5);
  until_all_take_part(5, [](int) {});
}

TEST(ParallelFor, CarriesAnExceptionBackAndWorksOn) {
  for (const int threads : {1, 2, 5}) {
    const ThreadsGuard guard(threads);
    for (int round = 0; round < 50; ++round) {
      try {
        parallel_for(100, 1, [&](int64_t, int64_t end, int) {
          if (end > 50) throw std::runtime_error("piece");
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "piece");
      }
      std::atomic<int64_t> sum{0};
      parallel_for(100, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
      EXPECT_EQ(sum, 100);
    }
  }
}

TEST(ParallelFor, RunsNestedCallsOnTheCaller) {
  const ThreadsGuard guard(3);
  std::atomic<int64_t> sum{0};
  parallel_for(12, 1, [&](int64_t begin, int64_t end, int) {
    const auto self = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(100, 1, [&](int64_t b, int64_t e, int worker) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        EXPECT_EQ(worker, 0);
        sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 1200);
}

TEST(ParallelFor, ServesSeveralCallersAtOnce) {
  const ThreadsGuard guard(2);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        parallel_for(64, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 64);
}

TEST(ParallelFor, RunsInTheIeeeEnvironmentOnEveryThread) {
  // Flush to zero and denormals are zero; rounding upward; a trap on division by zero.
  for (const unsigned mode : {0x9FC0U, 0x5F80U, 0x1D80U}) {
    for (const int threads : {1, 2, 5}) {
      const ThreadsGuard guard(1);  // Workers are made with the mode set.
      const unsigned before = _mm_getcsr();
      _mm_setcsr(mode);
      set_num_threads(threads);
      std::atomic<int> wrong{0};
      const auto look = [&](int) {
        if (_mm_getcsr() != 0x1F80U) ++wrong;
      };
      if (threads == 1) {
        parallel_for(10, 1, [&](int64_t, int64_t, int worker) { look(worker); });
      } else {
        until_all_take_part(threads, look);
      }
      const unsigned after = _mm_getcsr();
      _mm_setcsr(before);
      EXPECT_EQ(wrong, 0);
      EXPECT_EQ(after, mode);
    }
  }
}

TEST(ParallelFor, LeavesTheCallersModesAloneWhenABodyThrows) {
  const ThreadsGuard guard(2);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x9FC0U);
  try {
    parallel_for(10, 1, [](int64_t, int64_t, int) { throw 1; });
  } catch (int) {
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after, 0x9FC0U);
}

TEST(Workers, BlockAllSignals) {
  const ThreadsGuard guard(3);
  const pthread_t caller = pthread_self();
  std::atomic<int> open{0};
  until_all_take_part(3, [&](int) {
    if (pthread_equal(pthread_self(), caller) != 0) return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGPROF}) {
      if (sigismember(&mask, number) != 1) ++open;
    }
  });
  EXPECT_EQ(open, 0);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGINT), 0);
}

TEST(Workers, HaveStacksOfOurs) {
  const ThreadsGuard guard(3);
  const pthread_t caller = pthread_self();
  until_all_take_part(3, [&](int) {
    if (pthread_equal(pthread_self(), caller) != 0) return;
    int local = 0;
    const auto* const here = reinterpret_cast<const std::byte*>(&local);
    bool found = false;
    for (const MappedRange& range : mapped_ranges()) {
      if (range.owner == MappingOwner::stacks && range.begin <= here && here < range.end) {
        found = true;
      }
    }
#ifndef TIDEMARK_ASAN  // There a local variable may stand on a stack of the sanitizer's.
    EXPECT_TRUE(found);
#endif
    (void)found;
  });
  int64_t stacks = 0;
  for (const MappedRange& range : mapped_ranges()) {
    if (range.owner == MappingOwner::stacks) ++stacks;
  }
  EXPECT_EQ(stacks, 2);
  set_num_threads(1);
  for (const MappedRange& range : mapped_ranges()) {
    EXPECT_NE(range.owner, MappingOwner::stacks) << "an ended worker left its stack";
  }
}

// The permissions, as in "rw-p", of the page that holds this address.
std::string permissions(const std::byte* address) {
  std::ifstream maps("/proc/self/maps");
  const auto want = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char mode[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, mode) == 3 && begin <= want &&
        want < end) {
      return mode;
    }
  }
  return "unmapped";
}

TEST(Workers, HaveAClosedPageBelowTheirStacks) {
  const ThreadsGuard guard(3);
  until_all_take_part(3, [](int) {});
  int stacks = 0;
  for (const MappedRange& range : mapped_ranges()) {
    if (range.owner != MappingOwner::stacks) continue;
    ++stacks;
    EXPECT_EQ(permissions(range.begin), "---p");
    EXPECT_EQ(permissions(range.begin + kPageBytes - 1), "---p");
    EXPECT_EQ(permissions(range.begin + kPageBytes), "rw-p");
    EXPECT_EQ(permissions(range.end - 1), "rw-p");
  }
  EXPECT_EQ(stacks, 2);
}

TEST(Workers, AreBuiltAgainInAForkedChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not allow new threads after a fork";
#endif
  const ThreadsGuard guard(3);
  until_all_take_part(3, [](int) {});
  const int64_t held_before = in_use();
  const Held kept = make(1000);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<int64_t> sum{0};
    std::set<pthread_t> threads;
    for (int i = 0; i < 100'000 && threads.size() < 2; ++i) {
      sum = 0;
      pthread_t ran[3] = {};
      parallel_for(12, 1, [&](int64_t begin, int64_t end, int worker) {
        sum += end - begin;
        ran[worker] = pthread_self();
        usleep(100);
      });
      for (const pthread_t thread : ran) {
        if (thread != pthread_t{}) threads.insert(thread);
      }
    }
    const Held held = make(5000);
    const bool exact = in_use() == held_before + 1024 + 5056;
    _exit(sum == 12 && threads.size() >= 2 && exact ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  until_all_take_part(3, [](int) {});
}

TEST(Workers, AllowAForkWhileOthersAllocateAndCompute) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a fork beside other threads may catch the sanitizer's own locks";
#endif
  const ThreadsGuard guard(2);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      const Held a = make(64);
      const Held b = make(3000);
      const Held c = make(100'000);
      parallel_for(64, 1, [](int64_t, int64_t, int) {});
    }
  });
  for (int i = 0; i < 30; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(600);  // A lock left taken would hang the child.
      const Held a = make(64);
      const Held b = make(3000);
      const Held c = make(2'000'000);
      std::atomic<int64_t> sum{0};
      parallel_for(64, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
      _exit(sum == 64 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  stop = true;
  busy.join();
}

TEST(Workers, LeaveTheCallersCoreToTheCaller) {
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  if (CPU_COUNT(&mask) < 2 || CPU_COUNT(&mask) > 16 || !cores_are_ours()) {
    GTEST_SKIP() << "workers are not pinned here";
  }
  const ThreadsGuard guard(2);
  until_all_take_part(2, [](int) {});
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    std::atomic<int> met{0};
    until_all_take_part(2, [&](int worker) {
      if (worker == 1 && sched_getcpu() == cpu) ++met;
    });
    EXPECT_EQ(met, 0) << "on core " << cpu;
  }
  sched_setaffinity(0, sizeof(mask), &mask);
}

TEST(Workers, AreNotMoreThanTheCallerHasRoomFor) {
  const ThreadsGuard guard(4);
  std::atomic<int> highest{0};
  for (int i = 0; i < 100; ++i) {
    parallel_for(64, 1, 2, [&](int64_t, int64_t, int worker) {
      int seen = highest.load();
      while (worker > seen && !highest.compare_exchange_weak(seen, worker)) {
      }
    });
    parallel_for(64, 1, [](int64_t, int64_t, int) {});
  }
  EXPECT_LT(highest, 2);
}

TEST(Workers, CountIsSettable) {
  const ThreadsGuard guard(2);
  EXPECT_EQ(num_threads(), 2);
  set_num_threads(7);
  EXPECT_EQ(num_threads(), 7);
  try {
    set_num_threads(0);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "set_num_threads: 0 threads\n  give a number from 1 to 256");
  }
  EXPECT_EQ(num_threads(), 7);
}

TEST(Workers, ScopesTravelToThem) {
  const ThreadsGuard guard(3);
  auto* const scope = new ScopeAccount("scope", nullptr);
  set_current_scope(scope);
  std::atomic<int> foreign{0};
  until_all_take_part(3, [&](int) {
    const Held held = make(1000);
    if (held->storage.scope != scope) ++foreign;
  });
  set_current_scope(nullptr);
  EXPECT_EQ(foreign, 0);
  EXPECT_EQ(scope->current, 0);
  EXPECT_GE(scope->peak, 1024);
  const int64_t peak = scope->peak;
  until_all_take_part(3, [&](int) { make(100'000).reset(); });
  EXPECT_EQ(scope->peak, peak) << "a worker kept the scope of an earlier job";
  release(scope);
}

TEST(Shares, AreToldOfEveryWorkerThatTookPart) {
  const ThreadsGuard threads(3);
  std::atomic<int> told[3] = {};
  const auto tell = [&](int worker, int64_t begin_ns, int64_t end_ns) {
    EXPECT_LE(begin_ns, end_ns);
    ++told[worker];
  };
  const AllTakePart all;
  {
    const SharesScope shares(tell);
    parallel_for(3, 1, [](int64_t, int64_t, int) {});
  }
  parallel_for(3, 1, [](int64_t, int64_t, int) {});  // Nobody is told of this one.
  for (const std::atomic<int>& each : told) EXPECT_EQ(each.load(), 1);
}

TEST(FloatEnvironment, ComesAndGoes) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x9FC0U);
  {
    const FloatEnvironment environment;
    EXPECT_EQ(_mm_getcsr(), 0x1F80U);
  }
  EXPECT_EQ(_mm_getcsr(), 0x9FC0U);
  _mm_setcsr(before);
}

}  // namespace
}  // namespace tidemark::device
