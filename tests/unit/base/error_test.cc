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
  EXPECT_STREQ(UserError("bad", Source::here()).what(), "bad\n  at user.cc:7");
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
