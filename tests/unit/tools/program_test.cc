#include "tests/unit/tools/command_test.h"

namespace tidemark::tools {
namespace {

// Runs `tidemark plan` and `tidemark run` in a folder of its own.
class ProgramFile : public CommandTest {
 protected:
  ProgramFile() {
    std::ofstream(folder_ / "in.tm") << "function f(%x: f32[4, 1000]) {\n"
                                        "  %a: f32[4, 1000] = exp(%x)\n"
                                        "  %t: f32[1000, 4] = transpose(%a) {order = [1, 0]}\n"
                                        "  %b: f32[1000, 4] = multiply(%t, %t)\n"
                                        "  %c: f32[4] = sum(%b) {axes = [0], keepdims = false}\n"
                                        "  return %c\n"
                                        "}\n";
  }
};

TEST_F(ProgramFile, IsPlanned) {
  setenv("TIDEMARK_KERNELS", "llvm", 1);  // The plan of an interpreter has its scratch in it.
  const Ran plan = run("plan in.tm --no-jit");
  unsetenv("TIDEMARK_KERNELS");
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(plan.out.find("function \"f\" needs "), 0U) << plan.out;
  EXPECT_NE(plan.out.find("at step 1 of 3 (multiply, in.tm:4)"), std::string::npos) << plan.out;
  const Ran json = run("plan in.tm --json");
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(
      json.out.find(
          "{\"version\": 1, \"kind\": \"plan\", \"function\": \"function \\\"f\\\"\", \"peak\": "),
      0U)
      << json.out;
}

TEST_F(ProgramFile, RunsTheSameFusedAndNot) {
  const Ran fused = run("run in.tm --seed=3");
  const Ran unfused = run("run in.tm --seed=3 --no-jit");
  EXPECT_EQ(fused.code, 0) << fused.err;
  EXPECT_EQ(unfused.code, 0) << unfused.err;
  const auto results = [](const std::string& out) { return out.substr(0, out.find("planned")); };
  EXPECT_EQ(results(fused.out), results(unfused.out));
  EXPECT_NE(results(fused.out), results(run("run in.tm --seed=4").out));
}

TEST_F(ProgramFile, SaysWhatIsWrong) {
  const Ran missing = run("plan nothing.tm");
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err, "tidemark: plan: cannot read 'nothing.tm': No such file or directory\n");
  EXPECT_EQ(run("run in.tm --seed=x").err,
            "tidemark: run: 'x' is not a seed: give a whole number from 0 up\n"
            "  tidemark run --help lists the options\n");
  EXPECT_EQ(run("run").code, 2);
  EXPECT_EQ(run("plan --help").code, 0);
}

}  // namespace
}  // namespace tidemark::tools
