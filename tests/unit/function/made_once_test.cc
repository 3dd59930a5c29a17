// Variables that a function makes while it is traced, where its owner keeps them for later traces.
#include <gtest/gtest.h>

#include "tests/unit/error_of.h"
#include "tidemark/tensor/variable_state.h"
#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;

TEST(MadeOnce, LaterTracesGetTheVariablesOfTheFirst) {
  td::detail::VariablesMade made;
  std::vector<td::Variable> seen;
  const auto f = td::function([&](const td::Tensor& x) {
    const td::detail::MakeOnce once(made);
    for (int i = 0; i < 2; ++i) seen.emplace_back(td::zeros({}));
    seen.push_back(td::Variable::unshaped(
        [](const td::Shape& shape, td::DType dtype) { return td::ones(shape, dtype); }));
    seen[0].assign_add(td::sum(x));
    return td::Tensor(seen[0]);
  });
  EXPECT_EQ(f(td::ones({2})).item<double>(), 2);
  EXPECT_EQ(f(td::ones({3})).item<double>(), 5) << "another trace, the same Variable";
  ASSERT_EQ(seen.size(), 6U);
  EXPECT_FALSE(seen[0].same_as(seen[1]));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(seen[i].same_as(seen[3 + i]));
}

TEST(MadeOnce, OtherShapesAreRefused) {
  td::detail::VariablesMade made;
  const auto f = td::function([&](const td::Tensor& x) {
    const td::detail::MakeOnce once(made);
    const td::Variable v(td::zeros(x.shape()), {.name = "v"}, td::Source::none());
    return v + x;
  });
  f(td::ones({2}));
  EXPECT_EQ(td::error_of([&] { f(td::ones({3, 1})); }),
            "Variable \"v\" was made as f32[2] when the function was first traced, and would be "
            "f32[3, 1] now\n  make it outside of the function, or give it one shape in all traces");
}

}  // namespace
