// Sizes that are open: expressions of them, what is proven, what is guarded.
#include "tidemark/types/size.h"

#include <gtest/gtest.h>

#include "tidemark/base/error.h"

namespace tidemark {
namespace {

class Sizes : public testing::Test {
 protected:
  SizeTable table;
  SizeScope scope{&table};
  Dim n = table.add_argument(6, "n");
  Dim m = table.add_argument(4, "m");

  int64_t at(Dim size, int64_t n_value, int64_t m_value) const {
    return table.at(size, table.evaluate(std::vector<int64_t>{n_value, m_value}));
  }
  bool serves(int64_t n_value, int64_t m_value) const {
    return table.broken(table.evaluate(std::vector<int64_t>{n_value, m_value})) == nullptr;
  }
  // Proven: no guard was needed.
  bool is_proven(Dim a, Dim b) const { return a.word() == b.word(); }
};

// What identifies a size is no number, and no number becomes one.
template <class A, class B>
concept CanBeAdded = requires(A a, B b) { a + b; };
static_assert(!std::is_convertible_v<SizeWord, int64_t> &&
              !std::is_convertible_v<int64_t, SizeWord>);
static_assert(!std::is_convertible_v<SizeWord, Dim> && !std::is_convertible_v<Dim, SizeWord>);
static_assert(!CanBeAdded<SizeWord, int64_t> && !CanBeAdded<SizeWord, Dim> &&
              !CanBeAdded<SizeWord, SizeWord>);

TEST_F(Sizes, AreNoNumbersThatComputeAsWords) {
  try {
    (void)Dim(static_cast<int64_t>(n.word()));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        cat(static_cast<int64_t>(n.word()),
            " is not a size\n  sizes are at least 0, and their product must fit in 63 bits")
            .c_str());
  }
}

TEST_F(Sizes, KeepArithmeticOpen) {
  const Dim sum = 2 * n + m - 3;
  EXPECT_TRUE(sum.is_traced());
  EXPECT_EQ(at(sum, 10, 7), 24);
  EXPECT_EQ(at(n / m, 10, 3), 3);
  EXPECT_EQ(at(larger(n, m) - smaller(n, m), 2, 9), 7);
  EXPECT_EQ(at(Dim(100) / n, 7, 1), 14);
}

TEST_F(Sizes, AreOneWhereTheyAreProvablyEqual) {
  EXPECT_TRUE(is_proven(n + m, m + n));
  EXPECT_TRUE(is_proven(n * m * 12, 3 * m * (4 * n)));
  EXPECT_TRUE(is_proven(n + n, 2 * n));
  EXPECT_TRUE(is_proven((n + m) - m, n));
  EXPECT_TRUE(is_proven((n * 28 * 28) / 784, n));
  EXPECT_TRUE(is_proven((n * m * 6) / (m * 2), 3 * n));
  EXPECT_TRUE(is_proven((4 * n + 8) / 4, n + 2));
  EXPECT_TRUE(is_proven(4 * (n + m), 4 * m + 4 * n));
  EXPECT_EQ((n - n).known_or(-1), 0);
  EXPECT_EQ((n * 0).known_or(-1), 0);
  EXPECT_FALSE(is_proven((n / 4) * 4, n));
  EXPECT_FALSE(is_proven(n, m));
}

TEST_F(Sizes, GuardWhatTheCallDecided) {
  EXPECT_FALSE(n == m);
  EXPECT_TRUE(serves(7, 5));
  EXPECT_FALSE(serves(5, 5));
  EXPECT_TRUE(m == 4);
  EXPECT_TRUE(serves(7, 4));
  EXPECT_FALSE(serves(7, 5));
  EXPECT_FALSE(is_less(n, 3));
  EXPECT_FALSE(serves(2, 4));
  EXPECT_TRUE(table.closed().empty());
}

TEST_F(Sizes, AreClosedByReadingThem) {
  const int64_t value = n + 1;
  EXPECT_EQ(value, 7);
  EXPECT_TRUE(serves(6, 99));
  EXPECT_FALSE(serves(5, 99));
  ASSERT_EQ(table.closed().size(), 1U);
  EXPECT_EQ(table.closed()[0].argument, 0);
  EXPECT_TRUE(m < 5);
  EXPECT_EQ(table.closed().size(), 2U);
}

TEST_F(Sizes, KnowTheLineThatReadThem) {
  const Shape shape{n, 3};
  int trips = 0;
  for (int64_t i = 0; i < shape[0]; ++i) ++trips;
  EXPECT_EQ(trips, 6);
  ASSERT_EQ(table.closed().size(), 1U);
  EXPECT_EQ(table.closed()[0].at.text(), cat("size_test.cc:", __LINE__ - 3));
}

TEST_F(Sizes, DivideByNothingThatMayBeZero) {
  const Dim one = n / n;
  EXPECT_EQ(one.known_or(-1), 1);
  EXPECT_FALSE(serves(0, 4));
}

TEST_F(Sizes, SaySoInWords) {
  EXPECT_EQ(cat(Shape{n, 3}), "[6?, 3]");
  EXPECT_EQ(table.text(n * 4 + 1), "((n) * 4) + 1");
  EXPECT_EQ(table.text(n - 1), "(n) - 1");
  EXPECT_EQ(table.text(larger(n, m) / 2), "(max(m; n)) / 2");
  EXPECT_FALSE(n == 1);
  EXPECT_FALSE(is_less(m, 3));
  const std::vector<int64_t> values = table.evaluate(std::vector<int64_t>{1, 4});
  EXPECT_EQ(table.text(*table.broken(values)), "n is not 1");
  const std::vector<int64_t> others = table.evaluate(std::vector<int64_t>{6, 2});
  EXPECT_EQ(table.text(*table.broken(others)), "m >= 3");
}

TEST_F(Sizes, HaveNoValueInAnotherTrace) {
  SizeTable other;
  other.add_argument(3, "k");
  const SizeScope inner(&other);
  try {
    (void)int64_t{n};
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "a size was used outside of the function it was traced in\n  return the tensor "
                 "from the function and read its shape there");
  }
}

TEST(Dim, OfASignatureHasNoValue) {
  try {
    (void)int64_t{Dim(open)};
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "the value of an open size was read, but it is known only at the call\n  "
                 "compute with it as a Dim, or write a number in the signature");
  }
}

}  // namespace
}  // namespace tidemark
