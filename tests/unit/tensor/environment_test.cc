// Environment variables that say nonsense: each is an error that names it, in a process of its own,
// since what they say is asked once.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace tidemark {
namespace {

using Setting = std::pair<const char*, const char*>;

[[noreturn]] void say(const std::vector<Setting>& settings, const std::function<void()>& act) {
  for (const auto& [name, value] : settings) setenv(name, value, 1);
  const std::string text = error_of(act);
  std::fputs(text.c_str(), stderr);
  std::_Exit(0);
}

// The text as a regular expression that matches it alone.
std::string exactly(const std::string& text) {
  std::string pattern = "^";
  for (const char c : text) {
    if (std::string("()[]{}.*+?^$|\\").find(c) != std::string::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

class Environment : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

#define EXPECT_SAYS(settings, act, text) \
  EXPECT_EXIT(say(settings, act), ::testing::ExitedWithCode(0), exactly(text))

TEST_F(Environment, RefusesWhatIsNoNumberOfThreads) {
  const auto act = [] { (void)td::num_threads(); };
  for (const std::string text : {"four", "4x", "0", "-1", "257", " 4", "99999999999999999999"}) {
    EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_THREADS", text.c_str()}}), act,
                "TIDEMARK_THREADS is '" + text +
                    "', which is not a number from 1 to 256\n"
                    "  set it to a number from 1 to 256, or unset it");
  }
  EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_THREADS", "256"}}), act, "no error");
  EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_THREADS", ""}}), act, "no error");
}

TEST_F(Environment, RefusesAnOpWhileTheNumberOfThreadsIsNonsense) {
  EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_THREADS", "all"}}),
              [] { (void)td::exp(td::ones({512, 512})); },
              "TIDEMARK_THREADS is 'all', which is not a number from 1 to 256\n"
              "  set it to a number from 1 to 256, or unset it");
}

TEST_F(Environment, RefusesUnknownInstructionSets) {
  EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_ISA", "sse9"}}),
              [] { (void)td::matmul(td::ones({100, 100}), td::ones({100, 100})); },
              "TIDEMARK_ISA is 'sse9', which is not baseline, avx2 or avx512\n"
              "  set it to baseline, avx2 or avx512, or unset it");
}

TEST_F(Environment, RefusesUnknownKernels) {
  EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_KERNELS", "LLVM"}}),
              [] { (void)td::softmax(td::ones({100, 100})); },
              "TIDEMARK_KERNELS is 'LLVM', which is not automatic, llvm, tile or checked\n"
              "  set it to automatic, llvm, tile or checked, or unset it");
}

TEST_F(Environment, RefusesOtherThanZeroAndOneForHugePages) {
  EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_HUGE_PAGES", "yes"}}),
              [] { (void)td::zeros({4 << 20}); },
              "TIDEMARK_HUGE_PAGES is 'yes', which is not 0 or 1\n"
              "  set it to 0 or 1, or unset it");
}

TEST_F(Environment, RefusesOtherThanZeroAndOneForPrintingIr) {
  EXPECT_SAYS((std::vector<Setting>{{"TIDEMARK_PRINT_IR", "true"}, {"TIDEMARK_KERNELS", "llvm"}}),
              [] { (void)td::softmax(td::ones({100, 100})); },
              "TIDEMARK_PRINT_IR is 'true', which is not 0 or 1\n"
              "  set it to 0 or 1, or unset it");
}

}  // namespace
}  // namespace tidemark
