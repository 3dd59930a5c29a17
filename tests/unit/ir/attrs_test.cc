#include "tidemark/ir/attrs.h"

#include <gtest/gtest.h>

#include "tests/unit/error_of.h"
#include "tidemark/types/size.h"

namespace tidemark {
namespace {

class Attributes : public testing::Test {
 protected:
  SizeTable table;
  SizeScope scope{&table};
  Dim n = table.add_argument(6, "n");
  bool nothing_was_asked() const {
    return table.broken(table.evaluate(std::vector<int64_t>{9})) == nullptr;
  }
  // A number, sizes, numbers, a size.
  Attrs attrs = Attrs().add(int64_t{3}).add(DimList{n, 2}).add(AxisList{4, 5}).add(n + 1);
};

TEST_F(Attributes, KeepOpenSizesApartFromNumbers) {
  Attrs::Reader read = attrs.read();
  EXPECT_EQ(read.integer(), 3);
  const std::span<const Dim> sizes = read.sizes();
  EXPECT_EQ(sizes.size(), 2);
  EXPECT_EQ(sizes[0].word(), n.word());
  EXPECT_EQ(sizes[1].known_or(-1), 2);
  EXPECT_EQ(AxisList(read.integers()), (AxisList{4, 5}));
  EXPECT_FALSE(read.ended());
  EXPECT_EQ(read.size().word(), (n + 1).word());
  EXPECT_TRUE(read.ended());
  EXPECT_TRUE(nothing_was_asked());
}

TEST_F(Attributes, AreNotReadAsWhatTheyAreNot) {
  const auto misread = [](auto read) { return error_of<InternalError>(read); };
  EXPECT_EQ(misread([&] { (void)attrs.read().size(); }),
            "attribute 0 is a number, and is read as a size");
  EXPECT_EQ(misread([&] { (void)attrs.read().integers(); }),
            "attribute 0 is a number, and is read as a list of numbers");
  Attrs::Reader second = attrs.read();
  second.integer();
  EXPECT_EQ(misread([&] { (void)Attrs::Reader(second).integers(); }),
            "attribute 1 is a list of sizes, and is read as a list of numbers");
  EXPECT_EQ(misread([&] { (void)Attrs::Reader(second).integer(); }),
            "attribute 1 is a list of sizes, and is read as a number");
  EXPECT_EQ(misread([] { (void)Attrs().read().sizes(); }),
            "attribute 0 is not there, and is read as a list of sizes");
}

TEST_F(Attributes, AreOneBehindTheOther) {
  Attrs both = Attrs().add(true);
  both.append(attrs);
  Attrs::Reader read = both.read();
  EXPECT_TRUE(read.boolean());
  EXPECT_EQ(read.integer(), 3);
  EXPECT_EQ(read.sizes().size(), 2);
}

// A list of two sizes is not two sizes, nor a size the number that it may be.
TEST_F(Attributes, AreEqualWhereTheyAreOfOneKind) {
  EXPECT_EQ(Attrs().add(DimList{n}), Attrs().add(DimList{n}));
  EXPECT_NE(Attrs().add(DimList{n}), Attrs().add(DimList{6}));
  EXPECT_NE(Attrs().add(DimList{2}), Attrs().add(int64_t{1}).add(Dim(2)));
  EXPECT_NE(Attrs().add(AxisList{}), Attrs().add(DimList{}));
  EXPECT_TRUE(nothing_was_asked());
}

}  // namespace
}  // namespace tidemark
