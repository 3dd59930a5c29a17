#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/reduce.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

TEST(Catalogue, NamesEachOpOnce) {
  std::set<std::string_view> names;
  for (const OpDef& op : catalogue()) EXPECT_TRUE(names.insert(op.name).second) << op.name;
}

TEST(Catalogue, FindsAnOpByNameAndByObject) {
  EXPECT_EQ(find_op("tanh"), &def_of(&tanh));
  EXPECT_EQ(find_op("sum"), &def_of(&sum));
  EXPECT_EQ(find_op("conv2d"), &def_of(&ops::conv2d));
  EXPECT_EQ(find_op("no such op"), nullptr);
}

TEST(Catalogue, KnowsACopyOfAnOp) {
  const UnaryOp copy = exp;
  EXPECT_EQ(&def_of(&copy), &def_of(&exp));
  const std::function<Tensor(const Tensor&)> held = tanh;
  const Tensor x = constant({0.5, 1.0});
  EXPECT_TRUE(identical(held(x), tanh(x)));
}

// A new op is batched or has its place here: `.batching` is decided for each, not for its family.
TEST(Catalogue, BatchesEveryOpButThese) {
  const std::set<std::string_view> unbatched = {
      // Slices need indices of their own, which one application does not take.
      "first_equal", "gather", "put", "scatter_add", "scatter_max", "scatter_min", "scatter_mul",
      // Its image has a batch axis; a batch of filters has no place.
      "conv2d", "conv3d", "conv_kernel",
      // Drawn by one key.
      "random_bernoulli", "random_by_element", "random_fold", "random_integers", "random_normal",
      "random_permutation", "random_uniform",
      // Without operands.
      "arange"};
  std::set<std::string_view> found;
  for (const OpDef& op : catalogue())
    if (op.batching == Batching::none) found.insert(op.name);
  EXPECT_EQ(found, unbatched);
}

TEST(Catalogue, RecordsLowPrecisionInF32) {
  const DType dtypes[] = {DType::bf16, DType::bf16};
  const Recipe recipe = record(def_of(&add), dtypes);
  for (const Expr& expr : recipe.exprs) EXPECT_EQ(expr.dtype, DType::f32);
}

}  // namespace
}  // namespace tidemark
