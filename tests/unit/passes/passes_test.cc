// tests/text tests what passes do.
#include "tidemark/passes/passes.h"

#include <gtest/gtest.h>

namespace tidemark::passes {
namespace {

TEST(Passes, AreFoundByName) {
  for (const Pass& pass : all_passes()) EXPECT_EQ(find(pass.name), &pass);
  EXPECT_EQ(find("no such pass"), nullptr);
}

}  // namespace
}  // namespace tidemark::passes
