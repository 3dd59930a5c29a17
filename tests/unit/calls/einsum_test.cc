#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/api/random.h"

namespace tidemark {
namespace {

// Every combination of the letters' values, in plain loops.
std::vector<double> by_loops(const std::vector<std::string>& letters, const std::string& result,
                             const std::vector<Tensor>& operands) {
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < letters.size(); ++i) {
    for (size_t axis = 0; axis < letters[i].size(); ++axis)
      sizes[letters[i][axis]] = operands[i].shape()[static_cast<int64_t>(axis)];
  }
  const auto offset = [&](const std::string& list, std::map<char, int64_t>& at) {
    int64_t place = 0;
    for (const char letter : list) place = place * sizes[letter] + at[letter];
    return static_cast<size_t>(place);
  };
  std::vector<std::vector<double>> values;
  for (const Tensor& operand : operands) values.push_back(operand.to_vector<double>());
  int64_t total = 1, out = 1;
  for (const auto& [letter, size] : sizes) total *= size;
  for (const char letter : result) out *= sizes[letter];
  std::vector<double> sums(static_cast<size_t>(out));
  for (int64_t number = 0; number < total; ++number) {
    std::map<char, int64_t> at;
    int64_t rest = number;
    for (const auto& [letter, size] : sizes) {
      at[letter] = rest % size;
      rest /= size;
    }
    double term = 1;
    for (size_t i = 0; i < letters.size(); ++i) term *= values[i][offset(letters[i], at)];
    sums[offset(result, at)] += term;
  }
  return sums;
}

Tensor drawn(const Shape& shape, uint64_t seed) {
  return random::uniform(shape, {.low = -1, .dtype = f64, .key = random::Key(seed)});
}

void expect_near(const Tensor& got, const std::vector<double>& want, const std::string& what) {
  const std::vector<double> found = got.to_vector<double>();
  ASSERT_EQ(found.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-12) << what;
}

TEST(Einsum, OfTwoOperandsIsWhatTheLoopsGive) {
  const struct {
    std::string a, b, result;
    Shape a_shape, b_shape;
  } cases[] = {{"bij", "bjk", "bik", {2, 3, 4}, {2, 4, 5}},
               {"ij", "jk", "ik", {3, 4}, {4, 5}},
               {"ij", "jk", "ki", {3, 4}, {4, 5}},
               {"i", "i", "", {4}, {4}},
               {"i", "i", "i", {4}, {4}},
               {"i", "j", "ij", {3}, {4}},
               {"i", "j", "ji", {3}, {4}},
               {"ijk", "kj", "i", {2, 3, 4}, {4, 3}},
               {"ij", "kl", "ki", {2, 3}, {4, 5}},
               {"ii", "ij", "j", {3, 3}, {3, 2}},
               {"bi", "bi", "b", {3, 4}, {3, 4}},
               {"ij", "", "ji", {2, 3}, {}},
               {"abc", "cad", "dba", {2, 3, 4}, {4, 2, 5}},
               {"ij", "jk", "", {2, 3}, {3, 4}},
               {"ij", "jk", "ik", {3, 0}, {0, 2}}};
  for (const auto& c : cases) {
    const std::string text = c.a + "," + c.b + "->" + c.result;
    const Tensor a = drawn(c.a_shape, 1), b = drawn(c.b_shape, 2);
    expect_near(einsum(text, a, b), by_loops({c.a, c.b}, c.result, {a, b}), text);
  }
}

TEST(Einsum, OfOneOperandIsWhatTheLoopsGive) {
  const struct {
    std::string a, result;
    Shape shape;
  } cases[] = {{"ij", "ji", {2, 3}},      {"ij", "", {2, 3}},
               {"ij", "j", {2, 3}},       {"ii", "i", {3, 3}},
               {"ii", "", {3, 3}},        {"iji", "ji", {3, 2, 3}},
               {"iii", "i", {3, 3, 3}},   {"ijij", "ij", {2, 3, 2, 3}},
               {"abc", "cab", {2, 3, 4}}, {"", "", {}}};
  for (const auto& c : cases) {
    const Tensor x = drawn(c.shape, 3);
    expect_near(einsum(c.a + "->" + c.result, x), by_loops({c.a}, c.result, {x}),
                c.a + "->" + c.result);
  }
}

TEST(Einsum, WithoutAnArrowTheResultIsInTheOrderOfTheAlphabet) {
  const Tensor x = drawn({2, 3}, 1), y = drawn({3, 4}, 2);
  EXPECT_TRUE(identical(einsum("ba", x), transpose(x)));
  EXPECT_TRUE(identical(einsum("ij, jk", x, y), matmul(x, y)));
  EXPECT_EQ(einsum("ii", drawn({3, 3}, 1)).shape(), Shape{});
}

TEST(Einsum, KeepsTheDTypeOfIntegers) {
  const Tensor x = constant({{1, 2}, {3, 4}});
  EXPECT_EQ(einsum("ij->j", x).dtype(), DType::i32);
  EXPECT_EQ(einsum("ij,jk->k", x, x).to_vector<int>(), (std::vector<int>{22, 32}));
}

}  // namespace
}  // namespace tidemark
