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

// The sizes that a child sees, or the text of its error.
std::string caches_with(const char* text) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    setenv("TIDEMARK_CACHES", text, 1);
    std::string told;
    try {
      const Caches& seen = caches();
      told = cat(seen.l1_bytes, " ", seen.l2_bytes, " ", seen.l3_bytes);
    } catch (const UserError& error) {
      told = error.what();
    }
    _exit(write(ends[1], told.data(), told.size()) < 0 ? 1 : 0);
  }
  waitpid(child, nullptr, 0);
  char buffer[512];
  const ssize_t size = read(ends[0], buffer, sizeof buffer);
  close(ends[0]);
  close(ends[1]);
  return size < 0 ? "nothing" : std::string(buffer, static_cast<size_t>(size));
}

TEST(Caches, AreThoseThatTheEnvironmentNames) {
  EXPECT_EQ(caches_with("32,256,1024"), "32768 262144 1048576");
  for (const char* wrong : {"32,256", "32,256,1024,", "big", "256,32,1024", "4,8,16", "-1,2,3"}) {
    EXPECT_EQ(caches_with(wrong), cat("TIDEMARK_CACHES is '", wrong,
                                      "', which does not name three sizes of caches\n  set it to "
                                      "the KiB of the levels 1, 2 and 3, "
                                      "smallest first and 8 at least: 32,512,16384"));
  }
}

TEST(Caches, HaveSensibleSizes) {
  EXPECT_GE(caches().l1_bytes, 8 << 10);
  EXPECT_GE(caches().l2_bytes, caches().l1_bytes);
  EXPECT_GE(caches().l3_bytes, caches().l2_bytes);
}

}  // namespace
}  // namespace tidemark::device
