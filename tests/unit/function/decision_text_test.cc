// What a budget did to a plan, as people and programs read it.
#include "tidemark/function/decision_text.h"

#include <gtest/gtest.h>

#include "tests/unit/machine_code.h"
#include "tests/unit/report/model.h"
#include "tidemark/base/json.h"

namespace tidemark {
namespace {

PlanDecision again(const std::string& op, const std::string& line, const std::string& layer,
                   Bytes bytes, double more_work, int64_t times = 1) {
  return {.what = "computes " + op + " again",
          .line = line,
          .layer = layer,
          .times = times,
          .bytes = bytes,
          .more_work = more_work,
          .op = op};
}

using Sentences = std::vector<std::string>;

TEST(DecisionText, JoinsWhatOneLayerComputesAgain) {
  EXPECT_EQ(detail::decision_sentences({again("matmul", "model.cc:41", "block 3", 8_MiB, 0.03, 2),
                                        again("gelu", "model.cc:41", "block 3", 4_MiB, 0.001)},
                                       5),
            Sentences({"recomputes gelu and two matmuls of block 3 (model.cc:41): frees 12.0 MiB "
                       "meanwhile, 3.1 % more work"}));
}

TEST(DecisionText, NamesLinesWhereThereIsNoLayer) {
  EXPECT_EQ(detail::decision_sentences({again("exp", "a.cc:1", "", 1_KiB, 0.0001),
                                        again("multiply + add", "a.cc:2", "", 2_KiB, 0.5, 12)},
                                       5),
            Sentences({"recomputes 12 groups of multiply + add at a.cc:2: frees 2.0 KiB meanwhile, "
                       "50.0 % more work",
                       "recomputes exp at a.cc:1: frees 1.0 KiB meanwhile, less than 0.1 % more "
                       "work"}));
}

TEST(DecisionText, ListsTheLargestAndCountsTheRest) {
  std::vector<PlanDecision> decisions;
  for (int i = 1; i <= 5; ++i)
    decisions.push_back(again("exp", cat("a.cc:", i), "", Bytes(i * 1024), 0.01));
  const Sentences sentences = detail::decision_sentences(decisions, 3);
  ASSERT_EQ(sentences.size(), 3U);
  EXPECT_EQ(sentences[0], "recomputes exp at a.cc:5: frees 5.0 KiB meanwhile, 1.0 % more work");
  EXPECT_EQ(sentences[2], "and 3 more: frees 6.0 KiB meanwhile, 3.0 % more work");
}

TEST(DecisionText, ShortensLongLists) {
  std::vector<PlanDecision> decisions;
  for (const char* op : {"exp", "log", "softmax", "tanh", "sin"})
    decisions.push_back(again(op, cat("a.cc:", op), "head", 1_KiB, 0, 2));
  EXPECT_EQ(detail::decision_sentences(decisions, 3),
            Sentences({"recomputes two exps, two logs, two sins and 2 more of head (a.cc:exp, "
                       "a.cc:log, a.cc:softmax and 2 more): frees 5.0 KiB meanwhile, no more "
                       "work"}));
}

TEST(DecisionText, ChoicesOfTheWholeProgramComeFirst) {
  PlanDecision whole;
  whole.what = "keeps tables whole";
  EXPECT_EQ(detail::decision_sentences({again("exp", "a.cc:1", "", 1_KiB, 0.01), whole}, 3),
            Sentences({"keeps tables whole",
                       "recomputes exp at a.cc:1: frees 1.0 KiB meanwhile, 1.0 % more work"}));
}

class BudgetedPlan : public testing::Test {
 protected:
  const MachineCode machine_;
  const Weights weights_ = weights(3, 32, 10);
  const Plan usual_ = training_step().plan(spec({256, 32}), spec({256}, i32), weights_);
  const Plan within_ = usual_.within(Bytes(usual_.peak().count * 2 / 3));
};

TEST_F(BudgetedPlan, SaysFirstWhatTheBudgetDid) {
  ASSERT_FALSE(within_.decisions().empty());
  EXPECT_EQ(within_.usual_peak(), usual_.peak());
  const std::string text = within_.explain();
  const std::string first =
      cat("function \"training step\" needs ", within_.peak(), " at once (", within_.peak().count,
          " bytes)\n  the budget brings it down from ", usual_.peak(), ", with ",
          detail::more_work_text(within_.more_work()), ":\n    recomputes ");
  EXPECT_EQ(text.substr(0, first.size()), first) << text;
  EXPECT_NE(text.find(" of block "), std::string::npos) << text;
  EXPECT_NE(text.find("(model.h:"), std::string::npos) << text;
  EXPECT_EQ(text.find("recomputes group"), std::string::npos) << "groups have names\n" << text;
}

TEST_F(BudgetedPlan, DecisionsOfALineAreApartByLayer) {
  bool has_layers = false;
  for (const PlanDecision& each : within_.decisions()) {
    EXPECT_NE(each.op, "group");
    EXPECT_EQ(each.what, "computes " + each.op + " again");
    has_layers = has_layers || each.layer.starts_with("block ");
  }
  EXPECT_TRUE(has_layers);
}

TEST_F(BudgetedPlan, ThatNeedsNoBudgetSaysNothing) {
  EXPECT_EQ(usual_.explain().find("budget"), std::string::npos);
  EXPECT_EQ(usual_.usual_peak(), usual_.peak());
}

TEST_F(BudgetedPlan, IsJson) {
  const JsonValue json = parse_json(within_.to_json(), "plan");
  EXPECT_EQ(json.find("usual_peak")->number, static_cast<double>(usual_.peak().count));
  EXPECT_EQ(json.find("more_work")->number, within_.more_work());
  const std::vector<PlanDecision> decisions = within_.decisions();
  const std::vector<JsonValue>& listed = json.find("decisions")->items;
  ASSERT_EQ(listed.size(), decisions.size());
  for (size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].find("what")->text, decisions[i].what);
    EXPECT_EQ(listed[i].find("op")->text, decisions[i].op);
    EXPECT_EQ(listed[i].find("line")->text, decisions[i].line);
    EXPECT_EQ(listed[i].find("layer")->text, decisions[i].layer);
    EXPECT_EQ(listed[i].find("times")->number, static_cast<double>(decisions[i].times));
    EXPECT_EQ(listed[i].find("bytes")->number, static_cast<double>(decisions[i].bytes.count));
    EXPECT_EQ(listed[i].find("flop")->number, decisions[i].flop);
    EXPECT_EQ(listed[i].find("more_work")->number, decisions[i].more_work);
  }
  const JsonValue without = parse_json(usual_.to_json(), "plan");
  EXPECT_TRUE(without.find("decisions")->items.empty());
  EXPECT_EQ(without.find("more_work")->number, 0);
}

TEST_F(BudgetedPlan, TradeoffIsJson) {
  const std::vector<TradeoffPoint> points = usual_.tradeoff();
  const JsonValue json = parse_json(to_json(points), "points");
  ASSERT_EQ(json.items.size(), points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(json.items[i].find("peak")->number, static_cast<double>(points[i].peak.count));
    EXPECT_EQ(json.items[i].find("more_work")->number, points[i].more_work);
    EXPECT_EQ(json.items[i].find("flop")->number, points[i].flop);
    EXPECT_EQ(json.items[i].find("bytes_moved")->number, points[i].bytes_moved);
    EXPECT_EQ(json.items[i].find("estimated_ms")->number, points[i].estimated_ms);
  }
}

// The values of its body are dropped in several rounds, and what was computed again is dropped once
// more.
Tensor looped(const Tensor& x) {
  const auto body = [](const Tensor&, const Tensor& a) {
    const Tensor b = cumsum(a, 1) + a, c = cumsum(a, 0), d = cumsum(c, 1) + c, e = cumsum(c, 0);
    return matmul(matmul(matmul(matmul(matmul(e, a), b), c), d), e);
  };
  const Tensor start = cumsum(x, 1);
  return matmul(fori_loop(0, 5, body, start), cumsum(start, 0));
}

TEST(Decisions, OfBodiesNameOpsOfTheBody) {
  const Plan plan = function(looped).plan(spec({32, 32}));
  ASSERT_LT(plan.floor(), plan.peak());
  for (const TradeoffPoint& point : plan.tradeoff()) {
    for (const PlanDecision& each : plan.within(point.peak).decisions()) {
      EXPECT_TRUE(each.op == "matmul" || each.op.starts_with("cumsum") || each.op == "add")
          << each.op;
      EXPECT_TRUE(each.line.starts_with("decision_text_test.cc:")) << each.line;
    }
  }
}

}  // namespace
}  // namespace tidemark
