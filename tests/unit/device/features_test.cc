#include "tidemark/device/cpu/features.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tidemark/base/error.h"

namespace tidemark::device {
namespace {

// Asks in a child, since the answer is kept: 0, 1, 2 for an instruction set, 9 for a UserError.
int asked_with(const char* text) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("TIDEMARK_ISA", text, 1);
    try {
      _exit(static_cast<int>(isa()));
    } catch (const UserError&) {
      _exit(9);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(Isa, IsWhatTheCompilerSeesAtMost) {
  const int widest = asked_with("");
  EXPECT_EQ(widest >= 1, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(widest >= 2, __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                             __builtin_cpu_supports("avx512dq") &&
                             __builtin_cpu_supports("avx512vl"));
}

TEST(Isa, CanBeNarrowedByTheEnvironment) {
  const int widest = asked_with("");
  EXPECT_EQ(asked_with("baseline"), 0);
  EXPECT_EQ(asked_with("avx2"), widest >= 1 ? 1 : 9);
  EXPECT_EQ(asked_with("avx512"), widest >= 2 ? 2 : 9);
  EXPECT_EQ(asked_with("sse9"), 9);
}

TEST(Caches, HaveSensibleSizes) {
  EXPECT_GE(caches().l1_bytes, 8 << 10);
  EXPECT_GE(caches().l2_bytes, caches().l1_bytes);
  EXPECT_GE(caches().l3_bytes, caches().l2_bytes);
}

}  // namespace
}  // namespace tidemark::device
