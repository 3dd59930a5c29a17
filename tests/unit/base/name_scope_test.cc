#include "tidemark/base/name_scope.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tidemark/base/error.h"

namespace tidemark {
namespace {

Source line_seven() { return Source::here("user.cc", 7, "main"); }

TEST(NameScope, PathsNest) {
  EXPECT_EQ(NameScope::current(), "");
  const NameScope encoder("encoder");
  {
    const NameScope dense("dense");
    EXPECT_EQ(NameScope::current(), "encoder/dense");
  }
  {
    const NameScope dense("dense");
    EXPECT_EQ(NameScope::current(), "encoder/dense");
  }
  EXPECT_EQ(NameScope::current(), "encoder");
}

TEST(NameScope, BelongsToItsThread) {
  const NameScope encoder("encoder");
  std::thread([] { EXPECT_EQ(NameScope::current(), ""); }).join();
}

TEST(NameScope, SourcesCarryTheInnermostLayerKnown) {
  EXPECT_EQ(line_seven().resolve().layer, 0U);
  const NameScope encoder("encoder");
  const Source recorded = line_seven().resolve();
  EXPECT_EQ(recorded.layer_path(), "encoder");
  const NameScope inner("inner");
  EXPECT_EQ(line_seven().resolve().layer_path(), "encoder/inner");
  // What was recorded keeps its own: the gradient of a layer belongs to the layer.
  EXPECT_EQ(recorded.resolve().layer_path(), "encoder");
  const SourceScope charged(recorded);
  EXPECT_EQ(Source::here("composite.cc", 12, "norm").resolve().layer_path(), "encoder");
}

TEST(NameScope, ErrorsNameIt) {
  const NameScope encoder("encoder");
  EXPECT_STREQ(UserError("bad", line_seven(), "do this").what(),
               "bad\n  at user.cc:7, in encoder\n  do this");
  const SourceScope scope(line_seven());
  EXPECT_STREQ(UserError("bad", Source::here("composite.cc", 12, "norm")).what(),
               "bad\n  at user.cc:7 [composite.cc:12], in encoder");
  const UserCode user;
  EXPECT_STREQ(UserError("bad").what(), "bad");
}

TEST(NameScope, NeedsAName) {
  try {
    const NameScope scope("", line_seven());
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "NameScope: the name is empty\n  at user.cc:7\n  give the part a name");
  }
  EXPECT_EQ(NameScope::current(), "");
}

TEST(NameScope, NamesThatCountDoNotFillTheMemory) {
  const NameScope outer("steps");
  for (uint32_t i = 0; i < detail::kMostLayers; ++i) {
    const NameScope step(std::to_string(i));
    ASSERT_LT(detail::charged.layer, detail::kMostLayers);
  }
  const NameScope late("late");
  EXPECT_EQ(NameScope::current(), "steps");
}

TEST(NameScope, CostsASourceNoRoom) { EXPECT_EQ(sizeof(Source), 3 * sizeof(void*)); }

}  // namespace
}  // namespace tidemark
