// Every gradient rule of the catalogue against central differences, in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/sweep/cases.h"
#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/ops/structure.h"

namespace tidemark::sweep {
namespace {

double* data(const Tensor& tensor) {
  return reinterpret_cast<double*>(detail::array_of(tensor, Source::none()).data);
}

// sum(weights * op(operands)), in plain loops.
double loss(const Case& c, const std::vector<Tensor>& operands, const Tensor& weights) {
  const std::vector<double> y = run(*c.op, operands, c.attrs).to_vector<double>();
  double total = 0;
  for (size_t i = 0; i < y.size(); ++i) total += data(weights)[i] * y[i];
  return total;
}

// The derivative of the loss by one element of one operand.
double slope(const Case& c, std::vector<Tensor>& operands, const Tensor& weights, size_t operand,
             int64_t element, double step) {
  double& x = data(operands[operand])[element];
  const double before = x;
  x = before + step;
  const double high = loss(c, operands, weights);
  x = before - step;
  const double low = loss(c, operands, weights);
  x = before;
  return (high - low) / (2 * step);
}

class Gradient : public testing::TestWithParam<const OpDef*> {};

TEST_P(Gradient, AgreesWithCentralDifferences) {
  const OpDef& op = *GetParam();
  const std::vector<Case> cases = smooth_cases_of(op);
  ASSERT_FALSE(cases.empty());
  // A cast to f32 is linear but for its rounding, which a large step drowns.
  const double step = op.self == &ops::cast ? 0x1p-4 : 1e-6;
  int compared = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(described(c));
    std::vector<Tensor> operands;
    for (const Tensor& operand : c.operands) operands.push_back(dense_copy(operand));
    const Tensor y = run(op, operands, c.attrs);
    const Tensor weights = drawn(DType::f64, y.shape(), {-1, 1}, 99);

    detail::TensorBuilder builder(Source::none());
    std::vector<Term> terms;
    for (const Tensor& operand : operands) terms.push_back(builder.add(operand));
    const Term g = builder.add(y.dtype() == DType::f64 ? weights : cast(weights, y.dtype()));
    std::vector<Term> results, gradients(static_cast<size_t>(op.results));
    for (int r = 0; r < op.results; ++r)
      results.push_back(builder.add(run(op, operands, c.attrs, r)));
    gradients[0] = g;
    const GradContext context{g, terms, results[0], c.attrs, gradients, results};
    for (size_t i = 0; i < operands.size(); ++i) {
      const Term rule = op.grad(op.self, context, static_cast<int>(i));
      if (operands[i].dtype() != DType::f64) {
        EXPECT_FALSE(rule) << "operand " << i << " is not a float, and yet has a gradient";
        continue;
      }
      ASSERT_TRUE(rule) << "operand " << i << " has no gradient";
      EXPECT_EQ(rule.type(), (TensorType{DType::f64, operands[i].shape()})) << "operand " << i;
      const std::vector<double> found = builder.tensor(rule).to_vector<double>();
      ASSERT_EQ(found.size(), static_cast<size_t>(operands[i].size()));
      for (int64_t e = 0; e < operands[i].size(); ++e) {
        const double want = slope(c, operands, weights, i, e, step);
        const double got = found[static_cast<size_t>(e)];
        ASSERT_NEAR(got, want, 2e-7 * (10 + std::fabs(want)))
            << "operand " << i << ", element " << e;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 0);
}

std::vector<const OpDef*> differentiable() {
  std::vector<const OpDef*> list;
  for (const OpDef& op : catalogue()) {
    // What gradients take for a constant is none: that is what it is for.
    if (op.grad != nullptr && op.self != &ops::stop_gradient) list.push_back(&op);
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Gradient, testing::ValuesIn(differentiable()),
                         [](const testing::TestParamInfo<const OpDef*>& info) {
                           return std::string(info.param->name);
                         });

TEST(StopGradient, HasAGradientOfZero) {
  detail::TensorBuilder builder(Source::none());
  const Term x[] = {builder.add(drawn(DType::f64, {3}, {-1, 1}, 1))};
  const Term g = builder.add(ones({3}, DType::f64));
  const OpDef& op = def_of(&ops::stop_gradient);
  const Term rule = op.grad(op.self, {g, x, x[0], {}}, 0);
  EXPECT_EQ(builder.tensor(rule).to_vector<double>(), (std::vector<double>{0, 0, 0}));
}

TEST(Catalogue, EveryOpSaysWhatItIs) {
  for (const OpDef& op : catalogue()) {
    EXPECT_FALSE(op.name.empty());
    EXPECT_FALSE(op.brief.empty()) << op.name;
    EXPECT_TRUE(op.brief.ends_with(".")) << op.name << ": a brief is a sentence";
    EXPECT_LT(op.sample.low, op.sample.high) << op.name;
    EXPECT_EQ(find_op(op.name), &op) << "two ops are called " << op.name;
    EXPECT_EQ(&def_of(op.self), &op) << op.name;
    EXPECT_FALSE(cases_of(op).empty()) << op.name << " is not in the sweep";
  }
}

TEST(Catalogue, EveryOpHasAGradientOrSaysWhyNot) {
  for (const OpDef& op : catalogue()) {
    EXPECT_NE(op.grad != nullptr, !op.no_gradient.empty())
        << op.name << ": needs a gradient, or a reason for having none, and not both";
  }
}

TEST(Catalogue, EveryOpButDrawsHasAReference) {
  for (const OpDef& op : catalogue()) {
    const bool derived = op.family == Family::reduce || op.family == Family::row ||
                         (op.family == Family::pointwise && op.value != nullptr);
    EXPECT_TRUE(derived || op.reference != nullptr || op.family == Family::random) << op.name;
  }
}

}  // namespace
}  // namespace tidemark::sweep
