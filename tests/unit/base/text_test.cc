#include "tidemark/base/text.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

TEST(Bytes, PrintForPeople) {
  EXPECT_EQ(cat(Bytes(0)), "0 B");
  EXPECT_EQ(cat(Bytes(1023)), "1023 B");
  EXPECT_EQ(cat(1_KiB), "1.0 KiB");
  EXPECT_EQ(cat(64_MiB), "64.0 MiB");
  EXPECT_EQ(cat(Bytes(-(3LL << 29))), "-1.5 GiB");
}

TEST(Bytes, AreGrantedInMultiplesOf64) {
  EXPECT_EQ(granted_bytes(0), 0);
  EXPECT_EQ(granted_bytes(1), 64);
  EXPECT_EQ(granted_bytes(64), 64);
  EXPECT_EQ(granted_bytes(65), 128);
}

}  // namespace
}  // namespace tidemark
