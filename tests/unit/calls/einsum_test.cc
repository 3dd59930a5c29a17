#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
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

TEST(Einsum, OfSeveralOperandsIsWhatTheLoopsGive) {
  const struct {
    std::vector<std::string> letters;
    std::string result;
  } cases[] = {{{"ij", "jk", "kl"}, "il"},      {{"ij", "jk", "kl"}, ""},
               {{"i", "i", "i"}, "i"},          {{"ij", "kj", "j", "k"}, "ik"},
               {{"ii", "ij", "jk"}, "k"},       {{"ab", "cd", "ef"}, "fa"},
               {{"abc", "cd", "db", "ae"}, "e"}};
  const std::map<char, int64_t> sizes = {{'a', 2}, {'b', 3}, {'c', 2}, {'d', 4}, {'e', 3},
                                         {'f', 2}, {'i', 3}, {'j', 4}, {'k', 2}, {'l', 5}};
  uint64_t seed = 100;
  for (const auto& each : cases) {
    std::vector<Tensor> operands;
    std::string text;
    for (const std::string& letters : each.letters) {
      Shape shape;
      for (const char letter : letters) shape.push_back(sizes.at(letter));
      operands.push_back(drawn(shape, ++seed));
      text += (text.empty() ? "" : ",") + letters;
    }
    text += "->" + each.result;
    expect_near(einsum(text, operands), by_loops(each.letters, each.result, operands), text);
  }
  // More than are searched for the best order.
  std::vector<Tensor> many(12, drawn({3, 3}, 7));
  const std::string chain = "ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl,lm->am";
  Tensor product = many[0];
  for (int i = 1; i < 12; ++i) product = matmul(product, many[0]);
  expect_near(einsum(chain, many), product.to_vector<double>(), chain);
}

TEST(Einsum, EllipsisStandsForTheOtherAxes) {
  const Tensor a = drawn({2, 1, 3, 4}, 1), b = drawn({5, 4, 6}, 2), c = drawn({6}, 3);
  const auto same = [](const Tensor& got, const Tensor& want) {
    EXPECT_EQ(got.shape(), want.shape());
    expect_near(got, want.to_vector<double>(), "einsum with ...");
  };
  same(einsum("...ij,...jk->...ik", a, b), matmul(a, b));
  same(einsum("...ij,...jk", a, b), matmul(a, b));
  same(einsum("...ij,...jk,...k->...i", {a, b, c}),
       squeeze(matmul(matmul(a, b), expand_dims(c, 1)), -1));
  same(einsum("i...->...i", a), transpose(a, {1, 2, 3, 0}));
  same(einsum("...", a), a);
  same(einsum("...j->j", a), sum(a, {0, 1, 2}));
  same(einsum("...ii->...i", drawn({2, 3, 3}, 4)), diagonal(drawn({2, 3, 3}, 4)));
}

// The cheap order of a chain of matrices ends with a vector: from the right, nothing larger than a
// vector is made.
TEST(Einsum, TheOrderOfProductsSavesBytes) {
  const Tensor a = drawn({200, 200}, 1), v = drawn({200}, 2);
  const auto chain = function(
      [](const Tensor& m, const Tensor& x) { return einsum("ij,jk,kl,l->i", {m, m, m, x}); });
  EXPECT_TRUE(
      allclose(chain(a, v), matmul(a, matmul(a, matmul(a, v))), {.rtol = 1e-10}).item<bool>());
  EXPECT_LT(chain.plan(a, v).peak(), Bytes(200 * 200 * 8));
}

}  // namespace
}  // namespace tidemark
