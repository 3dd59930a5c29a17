#include "tests/unit/tools/command_test.h"

namespace tidemark::tools {
namespace {

// Runs `tidemark show` in a folder of its own.
class Show : public CommandTest {
 protected:
  Show() { std::ofstream(folder_ / "in.tm") << kProgram; }
  Ran show(const std::string& arguments) { return run("show " + arguments); }

  static constexpr const char* kProgram =
      "function f(%x: f32[2]) {\n"
      "  %one: f32[] = constant 1\n"
      "  %y: f32[2] = multiply(%x, %one)\n"
      "  %a: f32[2] = exp(%x)\n"
      "  %b: f32[2] = exp(%y)\n"
      "  return %a, %b\n"
      "}\n";
  const std::string printed_ =
      "function f(%0: f32[2]) {\n"
      "  %1: f32[] = constant 1\n"
      "  %2: f32[2] = multiply(%0, %1)\n"
      "  %3: f32[2] = exp(%0)\n"
      "  %4: f32[2] = exp(%2)\n"
      "  return %3, %4\n"
      "}\n";
  const std::string fused_ =
      "function f(%0: f32[2]) {\n"
      "  %1: f32[2] = group(%0)\n"
      "    (%2: f32[2]) {\n"
      "      %3: f32[2] = exp(%2)\n"
      "      return %3\n"
      "    }\n"
      "  return %1, %1\n"
      "}\n";
  const std::string simplified_ =
      "function f(%0: f32[2]) {\n"
      "  %1: f32[] = constant 1\n"
      "  %2: f32[2] = exp(%0)\n"
      "  %3: f32[2] = exp(%0)\n"
      "  return %2, %3\n"
      "}\n";
  const std::string merged_ =
      "function f(%0: f32[2]) {\n"
      "  %1: f32[] = constant 1\n"
      "  %2: f32[2] = exp(%0)\n"
      "  return %2, %2\n"
      "}\n";
  const std::string last_ =
      "function f(%0: f32[2]) {\n"
      "  %1: f32[2] = exp(%0)\n"
      "  return %1, %1\n"
      "}\n";
};

TEST_F(Show, PrintsAProgram) {
  const Ran ran = show("in.tm");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, printed_);
  EXPECT_EQ(ran.err, "");
}

TEST_F(Show, PrintsWhatThePassesUpToOneMade) {
  const Ran ran = show("in.tm --after=merge");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, merged_);
}

TEST_F(Show, PrintsWhatEachPassMade) {
  const Ran ran = show("--after=all in.tm");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, printed_ + "---- after inline_calls\n" + printed_ + "---- after use_pairs\n" +
                         printed_ + "---- after sink_views\n" + printed_ + "---- after fold\n" +
                         printed_ + "---- after join_pads\n" + printed_ + "---- after simplify\n" +
                         simplified_ + "---- after merge\n" + merged_ + "---- after remove_dead\n" +
                         last_ + "---- after trim\n" + last_ + "---- after recompute\n" + last_ +
                         "---- after micro_batches\n" + last_ + "---- after split\n" + last_ +
                         "---- after accumulate\n" + last_ + "---- after fuse\n" + fused_ +
                         "---- after order\n" + fused_);
}

TEST_F(Show, ExplainsItself) {
  const Ran ran = show("--help");
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out.starts_with("usage: tidemark show FILE.tm [--after=PASS|all]\n")) << ran.out;
  EXPECT_NE(ran.out.find("passes: inline_calls, use_pairs, sink_views, fold, join_pads, simplify, "
                         "merge, remove_dead, trim, "
                         "recompute, micro_batches, split, accumulate, fuse, order\n"),
            std::string::npos)
      << ran.out;
}

TEST_F(Show, TellsWhatIsWrong) {
  std::ofstream(folder_ / "bad.tm") << "function f(%x: f32[2]) {\n  return %y\n}\n";
  struct Case {
    const char *arguments, *error;
  };
  const Case cases[] = {
      {"bad.tm",
       "bad.tm:2:10: '%y' is not defined before this line\n"
       "  values are defined before they are read\n"},
      {"", "show: expected a file\n  tidemark show --help lists the options\n"},
      {"in.tm bad.tm",
       "show: expected one file, got 'in.tm' and 'bad.tm'\n  tidemark show --help lists the "
       "options\n"},
      {"--what in.tm",
       "show: there is no option '--what'\n  tidemark show --help lists the options\n"},
      {"--after=lunch in.tm",
       "show: there is no pass 'lunch', only inline_calls, use_pairs, sink_views, fold, join_pads, "
       "simplify, "
       "merge, "
       "remove_dead, "
       "trim, recompute, micro_batches, split, accumulate, fuse, order\n"
       "  tidemark show --help lists the options\n"},
      {"missing.tm", "show: cannot read 'missing.tm': No such file or directory\n"},
      {".", "show: cannot read '.': Is a directory\n"},
  };
  for (const Case& wrong : cases) {
    const Ran ran = show(wrong.arguments);
    EXPECT_EQ(ran.code, 2) << wrong.arguments;
    EXPECT_EQ(ran.out, "") << wrong.arguments;
    EXPECT_EQ(ran.err, "tidemark: " + std::string(wrong.error));
  }
}

}  // namespace
}  // namespace tidemark::tools
