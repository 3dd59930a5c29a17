// `tidemark plan` with budgets. What it prints is checked against the plan without one, and against
// sizes in bytes that are multiples of a table's rows.
#include <algorithm>

#include "tests/unit/tools/command_test.h"
#include "tidemark/base/json.h"

namespace tidemark::tools {
namespace {

class PlanCommand : public CommandTest {
 protected:
  // A table that is read at once and again at the end, with two others between.
  PlanCommand() {
    setenv("TIDEMARK_KERNELS", "llvm", 1);  // The plan of an interpreter has its scratch in it.
    std::ofstream(folder_ / "in.tm")
        << "function f(%a: f32[?, 8], %b: f32[8, 1000]) {  # A ? here is none.\n"
           "  %t: f32[?, 1000] = matmul(%a, %b)\n"
           "  %u: f32[?, 1000] = cumsum(%t) {axis = 1}\n"
           "  %v: f32[?, 1000] = cumsum(%u)\n"
           "  %w: f32[?, 1000] = cumsum(%v) {axis = 1}\n"
           "  %m: f32[?, 1000] = multiply(%w, %t)\n"
           "  %c: f32[1000] = sum(%m) {axes = [0]}\n"
           "  return %c\n"
           "}\n";
  }
  ~PlanCommand() override { unsetenv("TIDEMARK_KERNELS"); }

  JsonValue json(const std::string& arguments) {
    const Ran ran = run("plan in.tm --json " + arguments);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return parse_json(ran.out, "json");
  }
  static int64_t number(const JsonValue& object, std::string_view name) {
    return static_cast<int64_t>(object.find(name)->number);
  }
};

TEST_F(PlanCommand, ComputesAgainWithinABudget) {
  const int64_t usual = number(json("--size=256"), "peak");
  const JsonValue within = json("--size=256 --budget=" + std::to_string(usual - 1));
  EXPECT_LT(number(within, "peak"), usual);
  EXPECT_EQ(number(within, "usual_peak"), usual);
  ASSERT_EQ(within.find("decisions")->items.size(), 1U);
  EXPECT_EQ(within.find("decisions")->items[0].find("what")->text, "computes matmul again");
  EXPECT_EQ(within.find("decisions")->items[0].find("line")->text, "in.tm:2");
  const Ran text = run("plan in.tm --size=256 --budget=" + std::to_string(usual - 1));
  EXPECT_NE(text.out.find("\n    recomputes matmul at in.tm:2: frees 1000.0 KiB meanwhile, "),
            std::string::npos)
      << text.out;
}

TEST_F(PlanCommand, TakesBytesInUnits) {
  const std::string plan = run("plan in.tm --size=256 --budget=4MiB").out;
  EXPECT_EQ(run("plan in.tm --size=256 --budget 4194304").out, plan);
  EXPECT_EQ(run("plan in.tm --size=256 --budget=4096KiB").out, plan);
  EXPECT_EQ(run("plan in.tm --size=256 --budget=1GiB").out, plan);
  EXPECT_EQ(run("plan in.tm --size=256 --budget=0.5GiB").out, plan);
  EXPECT_EQ(run("plan in.tm --size=256 --budget=4194304B").out, plan);
}

TEST_F(PlanCommand, PrintsTheTradeFromTheUsualProgramToTheFloor) {
  const JsonValue points = json("--size=256 --tradeoff");
  ASSERT_GE(points.items.size(), 2U);
  EXPECT_EQ(number(points.items[0], "peak"), number(json("--size=256"), "peak"));
  EXPECT_EQ(points.items[0].find("more_work")->number, 0);
  const int64_t floor = number(points.items.back(), "peak");
  EXPECT_EQ(number(json("--size=256 --budget=" + std::to_string(floor)), "peak"), floor);
  const Ran table = run("plan in.tm --size=256 --tradeoff");
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(table.out.find("        peak   more work     estimated\n"), 0U) << table.out;
  EXPECT_EQ(static_cast<size_t>(std::count(table.out.begin(), table.out.end(), '\n')),
            1 + points.items.size());
}

TEST_F(PlanCommand, SaysNoBelowTheFloor) {
  const int64_t floor = number(json("--size=256 --tradeoff").items.back(), "peak");
  const Ran refused = run("plan in.tm --size=256 --budget=" + std::to_string(floor - 1));
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err, "tidemark: plan: the budget is " + std::to_string(floor - 1) +
                             " bytes, and the program needs at least " + std::to_string(floor) +
                             " at once\n  --budget=" + std::to_string(floor) + " fits\n");
}

TEST_F(PlanCommand, FindsTheLargestSizeThatFits) {
  const int64_t size = number(json("--largest --budget=1MiB"), "largest");
  const auto code = [&](int64_t rows) {
    return run("plan in.tm --budget=1MiB --size=" + std::to_string(rows)).code;
  };
  EXPECT_EQ(code(size), 0);
  EXPECT_EQ(code(size + 1), 1);
  const Ran text = run("plan in.tm --largest --budget=1MiB");
  EXPECT_EQ(
      text.out.find("the largest size that fits 1.0 MiB is " + std::to_string(size) + ", with "),
      0U)
      << text.out;
  const Ran none = run("plan in.tm --largest --budget=64");
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err,
            "tidemark: plan: the budget is 64 bytes, and not even size 1 fits\n"
            "  tidemark plan in.tm --size=1 --tradeoff shows what would\n");
}

TEST_F(PlanCommand, FindsTheLargestSizeOfAName) {
  std::ofstream(folder_ / "named.tm") << "function f(%x: f32[?rows, ?columns]) {\n"
                                         "  %y: f32[?rows, ?columns] = cumsum(%x)\n"
                                         "  return %y\n"
                                         "}\n";
  const Ran rows = run("plan named.tm --largest=rows --size=columns=256 --budget=64KiB --json");
  EXPECT_EQ(rows.err, "");
  EXPECT_EQ(number(parse_json(rows.out, "json"), "largest"), 64);
  const Ran columns = run("plan named.tm --largest columns= --size rows=32 --budget=64KiB");
  EXPECT_EQ(columns.out, "the largest columns that fits 64.0 KiB is 512, with 64.0 KiB at once\n")
      << columns.err;
  EXPECT_EQ(run("plan named.tm --size=rows=4 --size=columns=8").code, 0);
  EXPECT_EQ(run("plan named.tm --size=4").code, 0) << "all at once";
  EXPECT_EQ(run("show named.tm").code, 0) << "names are for people";
  EXPECT_EQ(run("plan named.tm --largest=rows --budget=64KiB").err,
            "tidemark: plan: sizes of 'named.tm' are open\n  give them a number: --size=64\n");
  EXPECT_EQ(run("plan named.tm --largest=images --size=columns=256 --budget=64KiB").err,
            "tidemark: plan: no size of 'named.tm' is named 'images'\n"
            "  name one: %x: f32[?images, 784]\n");
  EXPECT_EQ(run("plan named.tm --largest=rows --size=columns=256 --budget=64").err,
            "tidemark: plan: the budget is 64 bytes, and not even size 1 fits\n"
            "  tidemark plan named.tm --size=rows=1 --tradeoff shows what would\n");
}

TEST_F(PlanCommand, SaysWhatIsWrong) {
  const auto error = [&](const std::string& arguments) {
    const Ran ran = run("plan " + arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    return ran.err;
  };
  const std::string hint = "\n  tidemark plan --help lists the options\n";
  for (const std::string bad : {"64MB", "x", "-1", "1e9", "1e99999", ""})
    EXPECT_EQ(error("in.tm --budget=" + bad),
              "tidemark: plan: '" + bad +
                  "' is not a number of bytes: write 65536, 64KiB, 1.5MiB or 2GiB" + hint);
  EXPECT_EQ(error("in.tm --size=-1"),
            "tidemark: plan: '-1' is not a size: give a whole number from 0 up" + hint);
  EXPECT_EQ(error("in.tm --largest"), "tidemark: plan: --largest needs a --budget" + hint);
  EXPECT_EQ(
      error("in.tm --largest --budget=1MiB --size=3"),
      "tidemark: plan: --largest looks for the size; leave out --size, or name both sizes" + hint);
  EXPECT_EQ(error("in.tm --tradeoff --budget=1MiB"),
            "tidemark: plan: --tradeoff is of all budgets; leave out --budget" + hint);
  EXPECT_EQ(error("in.tm"),
            "tidemark: plan: sizes of 'in.tm' are open\n  give them a number: --size=64\n");
  std::ofstream(folder_ / "closed.tm") << "function(%x: f32[4]) {\n  return %x\n}\n";
  EXPECT_EQ(error("closed.tm --size=3"),
            "tidemark: plan: no size of 'closed.tm' is open\n  leave one open: %x: f32[?, 784]\n");
}

}  // namespace
}  // namespace tidemark::tools
