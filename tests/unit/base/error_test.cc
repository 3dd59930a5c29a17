#include "tidemark/base/error.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(UserError, NamesTheLineAndTheRemedy) {
  const UserError error("matmul: inner sizes differ", Source::here("a/train.cc", 41, "main"),
                        "transpose one");
  EXPECT_STREQ(error.what(), "matmul: inner sizes differ\n  at train.cc:41\n  transpose one");
  EXPECT_EQ(error.source().line, 41U);
}

TEST(UserError, IsChargedToTheOutermostLibraryCall) {
  const SourceScope outer(Source::here("user.cc", 7, "main"));
  const SourceScope inner(Source::here("composite.cc", 100, "softmax"));
  // The line given follows in brackets where it is another one.
  EXPECT_STREQ(UserError("bad", Source::here("f/composite.cc", 12, "norm")).what(),
               "bad\n  at user.cc:7 [composite.cc:12]");
  EXPECT_STREQ(UserError("bad", Source::here("user.cc", 7, "main"), "do this").what(),
               "bad\n  at user.cc:7\n  do this");
  EXPECT_STREQ(UserError("bad").what(), "bad\n  at user.cc:7");
  EXPECT_EQ(UserError("bad", Source::here("composite.cc", 12, "norm")).source().line, 7U);
  const UserCode callback;
  EXPECT_STREQ(UserError("bad", Source::here("user.cc", 9, "f")).what(), "bad\n  at user.cc:9");
}

TEST(Check, ThrowsAnInternalErrorWithTheCondition) {
  try {
    TIDEMARK_CHECK(1 + 1 == 3, "sum ", 2);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("1 + 1 == 3 does not hold: sum 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace tidemark
