// Layers in plans, and in what goes wrong.
#include "tidemark/base/name_scope.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/gradients.h"
#include "tidemark/api/ops.h"

namespace td = tidemark;

namespace {

td::Tensor dense(const td::Tensor& x, const td::Tensor& w) {
  const td::NameScope scope("dense");
  return td::tanh(td::matmul(x, w));
}

td::Tensor model(const td::Tensor& x, const td::Tensor& w) {
  td::Tensor h;
  {
    const td::NameScope scope("encoder");
    h = dense(x, w);
  }
  const td::NameScope scope("head");
  return td::sum(td::matmul(h, w));
}

int64_t bytes_of(const std::vector<td::PlanBlame>& list, const std::string& where) {
  for (const td::PlanBlame& blame : list)
    if (blame.where == where) return blame.bytes.count;
  return -1;
}

TEST(NameScope, StepsAndBuffersHaveALayer) {
  const td::MachineCode machine;
  const auto f = td::function(model);
  const td::Plan plan = f.plan(td::spec({100, 64}), td::spec({64, 64}));
  std::vector<std::string> layers;
  for (const td::PlanStep& step : plan.timeline())
    if (layers.empty() || layers.back() != step.layer) layers.push_back(step.layer);
  EXPECT_EQ(layers, (std::vector<std::string>{"encoder/dense", "head"})) << plan.to_text();
  // Both products are alive together: the second reads the first.
  EXPECT_GE(bytes_of(plan.by_layer(), "encoder/dense"), 100 * 64 * 4) << plan.to_text();
  EXPECT_GE(bytes_of(plan.by_layer(), "head"), 100 * 64 * 4);
  EXPECT_EQ(bytes_of(plan.by_layer(), ""), -1) << "everything was made in a scope";
}

TEST(NameScope, GradientsBelongToTheirLayer) {
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& w) {
    return td::grad([&](const td::Tensor& each) { return model(each, w); })(x);
  });
  const td::Plan plan = f.plan(td::spec({100, 64}), td::spec({64, 64}));
  ASSERT_FALSE(plan.timeline().empty());
  for (const td::PlanStep& step : plan.timeline())
    EXPECT_NE(step.layer, "") << step.name << ' ' << step.line;
  EXPECT_EQ(plan.timeline().back().layer, "encoder/dense") << "the way back ends where it began";
}

TEST(NameScope, BlameAddsUpToThePeak) {
  const auto f = td::function(model);
  const td::Plan plan = f.plan(td::spec({100, 64}), td::spec({64, 64}));
  const int64_t in_use = plan.timeline()[static_cast<size_t>(plan.peak_step())].in_use.count;
  for (const std::vector<td::PlanBlame>& list : {plan.by_line(), plan.by_layer()}) {
    int64_t sum = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      sum += list[i].bytes.count;
      EXPECT_GE(list[i > 0 ? i - 1 : 0].bytes, list[i].bytes);
    }
    EXPECT_EQ(sum, in_use);
  }
}

TEST(NameScope, ErrorsNameTheLayer) {
  const td::Tensor x = td::zeros({2, 3}), w = td::zeros({4, 5});
  const std::string text = td::error_of([&] { model(x, w); });
  EXPECT_NE(text.find("name_scope_test.cc:21, in encoder/dense\n"), std::string::npos) << text;
  const auto f = td::function(model);
  const std::string traced = td::error_of([&] { f(x, w); });
  EXPECT_NE(traced.find(", in encoder/dense\n"), std::string::npos) << traced;
}

TEST(NameScope, ExplainNamesTheLayer) {
  const auto f = td::function(model);
  const std::string text = f.plan(td::spec({100, 64}), td::spec({64, 64})).explain();
  EXPECT_NE(text.find(", in head)\n"), std::string::npos) << text;
}

}  // namespace
