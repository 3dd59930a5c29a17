#include "tests/unit/tools/command_test.h"
#include "tidemark/base/json.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/limit.h"

namespace tidemark::tools {
namespace {

class Doctor : public CommandTest {};

TEST_F(Doctor, FindsTheMachineAndThatAllIsWell) {
  const Ran ran = run("doctor --json");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const JsonValue found = parse_json(ran.out, "doctor");
  EXPECT_EQ(found.find("instructions")->text, device::name(device::isa()));
  EXPECT_EQ(found.find("cores")->number, device::usable_cores());
  EXPECT_GT(found.find("limit for tensors")->number, 0);
  EXPECT_TRUE(found.find("compiled code gives the interpreter's bits")->boolean);
  EXPECT_TRUE(found.find("all threads give the bits of one")->boolean);
  for (const char* name : {"tidemark", "compiler", "LLVM", "CPU", "page", "memory available"})
    EXPECT_NE(found.find(name), nullptr) << name;
}

TEST_F(Doctor, SeesALimitOnTheAddressSpace) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer maps terabytes";
#endif
  const int status = std::system(("(ulimit -v 8000000; '" TIDEMARK_COMMAND "' doctor --json) > '" +
                                  (folder_ / "out.txt").string() + "'")
                                     .c_str());
  EXPECT_EQ(status, 0);
  const JsonValue found = parse_json(read("out.txt"), "doctor");
  EXPECT_EQ(found.find("address space")->number, 8000000.0 * 1024);
  EXPECT_LE(found.find("limit for tensors")->number, 0.9 * 8000000 * 1024);
}

TEST_F(Doctor, TellsPeople) {
  const Ran ran = run("doctor");
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("all threads give the bits of one              yes\n"), std::string::npos)
      << ran.out;
  EXPECT_EQ(run("doctor --fast").code, 2);
}

}  // namespace
}  // namespace tidemark::tools
