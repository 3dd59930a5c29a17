// Runs the passes that the files of this folder name and compares what they make, to the letter.
// With TIDEMARK_REWRITE set the files are written anew, for a person to read as a diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/text/program_file.h"
#include "tidemark/compile/compute.h"
#include "tidemark/ops/text.h"
#include "tidemark/passes/passes.h"

namespace tidemark {
namespace {

class PassText : public testing::TestWithParam<std::string> {};

TEST_P(PassText, IsAsTheFileSays) {
  ProgramFile file = read_program_file(GetParam());
  ASSERT_FALSE(file.sections.empty()) << "no line '---- after PASS'";
  Graph graph = parse_graph(file.program, program_path(GetParam()));
  const passes::Machine machine{.compute = compile::compute};
  for (ProgramFile::Section& section : file.sections) {
    SCOPED_TRACE("after " + section.pass);
    const passes::Pass* pass = passes::find(section.pass);
    ASSERT_NE(pass, nullptr) << "there is no such pass";
    pass->run(graph, machine, {});
    verify(graph);
    const std::string text = to_text(graph);
    if (std::getenv("TIDEMARK_REWRITE") != nullptr) section.text = text;
    EXPECT_EQ(text, section.text);
    // What a pass leaves is still a program, types included.
    EXPECT_EQ(to_text(parse_graph(text, "again.tm")), text);
  }
  if (std::getenv("TIDEMARK_REWRITE") == nullptr) return;
  std::ofstream out(program_path(GetParam()), std::ios::binary);
  out << file.program;
  for (const ProgramFile::Section& section : file.sections)
    out << "---- after " << section.pass << '\n' << section.text;
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(program_names()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace tidemark
