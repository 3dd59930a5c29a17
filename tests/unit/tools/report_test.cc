#include "tests/unit/tools/command_test.h"

namespace tidemark::tools {
namespace {

class ReportCommand : public CommandTest {
 protected:
  ReportCommand() {
    write("in.tm",
          "function f(%x: f32[4, 1000]) {\n"
          "  %a: f32[4, 1000] = exp(%x)\n"
          "  %c: f32[4] = sum(%a) {axes = [1], keepdims = false}\n"
          "  return %c\n"
          "}\n");
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
};

TEST_F(ReportCommand, MakesAPageOfAProgram) {
  const Ran made = run("report in.tm");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "in.html\n");
  const std::string page = read("in.html");
  EXPECT_EQ(page.find("<!doctype html>"), 0U);
  EXPECT_NE(page.find("function \\\"f\\\""), std::string::npos);
  EXPECT_NE(page.find("in.tm:3"), std::string::npos) << "lines are those of the program";
}

TEST_F(ReportCommand, MakesTheSamePageOfThePlansJson) {
  EXPECT_EQ(run("report in.tm --no-jit").code, 0);
  write("plan.json", run("plan in.tm --no-jit --json").out);
  EXPECT_EQ(run("report plan.json --output=other.html").out, "other.html\n");
  EXPECT_EQ(read("in.html"), read("other.html"));
}

TEST_F(ReportCommand, AddsPlansForOtherBudgetsIfAsked) {
  EXPECT_EQ(run("report in.tm --tradeoff").code, 0);
  EXPECT_NE(read("in.html").find("\"kind\": \"tradeoff\""), std::string::npos);
  write("plan.json", run("plan in.tm --json").out);
  for (const std::string files : {"plan.json", "in.tm plan.json"}) {
    const Ran refused = run("report --tradeoff --output=other.html " + files);
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.err,
              "tidemark: report: --tradeoff needs one program, FILE.tm\n"
              "  tidemark report --help lists the options\n");
  }
}

TEST_F(ReportCommand, TakesValuesWithASpaceAndWithASign) {
  EXPECT_EQ(run("report in.tm --output a.html").out, "a.html\n");
  EXPECT_EQ(run("report in.tm --output=b.html").out, "b.html\n");
  EXPECT_EQ(read("a.html"), read("b.html"));
  EXPECT_EQ(run("run in.tm --seed 3").out, run("run in.tm --seed=3").out);
  EXPECT_EQ(run("show in.tm --after fuse").out, run("show in.tm --after=fuse").out);
  write("in.csv", "id,lower,upper,size\na,0,2,8\nb,1,3,8\n");
  EXPECT_EQ(run("pack in.csv --capacity=16").code, run("pack in.csv --capacity 16").code);
  EXPECT_EQ(run("pack in.csv --capacity=8").code, 1);
  EXPECT_EQ(
      run("report in.tm --output").err,
      "tidemark: report: --output needs a value\n  tidemark report --help lists the options\n");
  EXPECT_EQ(
      run("plan in.tm --seed=3").err,
      "tidemark: plan: there is no option '--seed=3'\n  tidemark plan --help lists the options\n");
}

TEST_F(ReportCommand, ComparesTwoFiles) {
  write("plan.json", run("plan in.tm --no-jit --json").out);
  const Ran made = run("report in.tm plan.json --output=two.html");
  EXPECT_EQ(made.code, 0) << made.err;
  const std::string page = read("two.html");
  const std::string kind = "\"kind\": \"plan\"";
  const size_t first = page.find(kind);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(page.find(kind, first + 1), std::string::npos);
}

TEST_F(ReportCommand, DrawsAPlanAndARunOfIt) {
  const Ran ran = run("run in.tm --profile=profile.json --trace=trace.json");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(run("report in.tm profile.json").out, "in.html\n");
  EXPECT_NE(read("in.html").find("\"kind\": \"profile\""), std::string::npos);
  EXPECT_EQ(run("report profile.json").out, "profile.html\n");
  EXPECT_NE(read("trace.json").find("\"traceEvents\""), std::string::npos);
  EXPECT_EQ(
      run("run in.tm --profile=none/p.json").err,
      "tidemark: run: none/p.json cannot be saved: none/p.json.saving: No such file or directory\n"
      "  name a file in a folder that is there and may be written to\n");
}

TEST_F(ReportCommand, SaysWhatIsWrong) {
  const auto fails = [&](const std::string& arguments, const std::string& text) {
    const Ran ran = run("report " + arguments);
    EXPECT_EQ(ran.code, 2) << arguments;
    EXPECT_EQ(ran.err, text) << arguments;
  };
  const std::string more = "\n  tidemark report --help lists the options\n";
  fails("", "tidemark: report: expected a file" + more);
  fails("--open in.tm", "tidemark: report: there is no option '--open'" + more);
  fails("in.tm in.tm in.tm", "tidemark: report: expected one file or two, got 3" + more);
  fails("nothing.json",
        "tidemark: report: cannot read 'nothing.json': No such file or directory\n");
  fails("in.tm --output=in.tm",
        "tidemark: report: the page would replace 'in.tm'; give another --output" + more);
  fails("in.tm --output=none/page.html",
        "tidemark: report: none/page.html cannot be saved: none/page.html.saving: No such file or "
        "directory\n  name a file in a folder that is there and may be written to\n");
  write("broken.json", "{\"kind\": \"plan\",\n \"peak\" 3}");
  fails("broken.json", "tidemark: broken.json:2: expected ':', found '3'\n");
  const std::string written =
      "\n  give a file written by tidemark plan FILE.tm --json, Plan::to_json or "
      "Profile::to_json\n";
  write("other.json", "{\"a\": 1}");
  fails("other.json",
        "tidemark: report: 'other.json' is not a plan: it has no \"function\"" + written);
  write("half.json", "{\"kind\": \"profile\", \"function\": \"f\"}");
  fails("half.json",
        "tidemark: report: 'half.json' is not a profile: it has no \"planned\"" + written);
  const std::string profile =
      "{\"kind\": \"profile\", \"function\": \"f\", \"planned\": 1, \"touched\": 1, \"time_ns\": "
      "1, "
      "\"steps\": []}";
  write("a.json", profile);
  write("b.json", profile);
  fails("a.json b.json",
        "tidemark: report: both files are profiles\n  give a plan and its profile, or two plans\n");
  fails("in.tm a.json --no-jit",
        "tidemark: report: the plan and the profile differ: 2 and 0 steps\n"
        "  give a plan and a run of the same function and sizes\n");
  EXPECT_EQ(run("report --help").code, 0);
}

TEST_F(ReportCommand, RefusesARunOfOtherSizes) {
  write("two.tm",
        "function f(%x: f32[4, 1000]) {\n"
        "  %a: f32[4, 1000] = cumsum(%x) {axis = 1, reverse = false}\n"
        "  %c: f32[4, 1000] = cumsum(%a) {axis = 0, reverse = false}\n"
        "  return %c\n"
        "}\n");
  EXPECT_EQ(run("run two.tm --profile=run.json").code, 0);
  EXPECT_EQ(run("report two.tm run.json").code, 0);
  std::string larger = read("two.tm");
  for (size_t at = larger.find("1000"); at != std::string::npos; at = larger.find("1000"))
    larger.replace(at, 4, "9000");
  write("larger.tm", larger);
  const std::string remedy = "\n  give a plan and a run of the same function and sizes\n";
  const std::string differ = "tidemark: report: the plan and the profile differ";
  EXPECT_EQ(run("report larger.tm run.json").err,
            differ + ": 288000 bytes at once, and a run that was planned for 32000" + remedy);
  EXPECT_EQ(run("report run.json larger.tm").code, 2);
  // As many bytes, in other steps.
  std::string renamed = read("run.json");
  renamed.replace(renamed.find("cumsum"), 6, "gather");
  write("renamed.json", renamed);
  EXPECT_EQ(run("report two.tm renamed.json").err,
            differ + " at step 0: cumsum with 32000 bytes, and gather with 32000 bytes" + remedy);
}

}  // namespace
}  // namespace tidemark::tools
