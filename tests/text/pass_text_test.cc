// Runs the passes that the files of this folder name and compares what they make, to the letter;
// "layout" lays the program out as it is.
// With TIDEMARK_REWRITE set the files are written anew, for a person to read as a diff.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/text/program_file.h"
#include "tidemark/compile/cpu/compute.h"
#include "tidemark/device/threads.h"
#include "tidemark/layout/layout.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/passes/passes.h"

namespace tidemark {
namespace {

std::string text_of(const run::Program& program, const run::Address& address) {
  std::string text;
  const auto parameters = static_cast<int32_t>(program.parameters.size());
  const auto results = static_cast<int32_t>(program.results.size());
  if (address.buffer >= 0) {
    text = cat("buffer ", address.buffer);
  } else if (address.reg >= 1 && address.reg <= parameters) {
    text = cat("parameter ", address.reg - 1);
  } else if (address.reg > parameters && address.reg <= parameters + results) {
    text = cat("result ", address.reg - 1 - parameters);
  } else {
    text = cat("register ", address.reg);
  }
  return address.offset == 0 ? text : cat(text, " + ", address.offset);
}

// What runs on which memory, and where that lies.
std::string text_of(const run::Program& program) {
  std::string text;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const run::Step& step = program.steps[i];
    text += cat("step ", i, ": ", step.name);
    for (int32_t k = 0; k < step.operands; ++k)
      text += cat(k == 0 ? " of " : ", ",
                  text_of(program, program.addresses[static_cast<size_t>(step.first_operand + k)]));
    text += '\n';
  }
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const run::Buffer& buffer = program.buffers[i];
    text += cat("buffer ", i, ": ", buffer.bytes, " bytes at ", program.offsets[i], " for steps [",
                buffer.lower, ", ", buffer.upper, "), ", name(buffer.byte_class), " of ",
                buffer.name, '\n');
  }
  return text + cat("arena: ", program.arena_bytes, " bytes, ", program.load_bytes, " in use\n");
}

// Of a graph on its own: nothing is donated, no Variable is written.
std::shared_ptr<run::Program> laid_out(const Graph& graph) {
  const device::ThreadsScope one(1);
  compile::Interface interface;
  interface.parameters.resize(graph.body().parameters.size());
  interface.results.resize(graph.body().results.size());
  return compile::layout(graph, interface).program;
}
std::string layout_text(const Graph& graph) { return text_of(*laid_out(compact(graph))); }

class PassText : public testing::TestWithParam<std::string> {};

TEST_P(PassText, IsAsTheFileSays) {
  ProgramFile file = read_program_file(GetParam());
  ASSERT_FALSE(file.sections.empty()) << "no line '---- after PASS'";
  Graph graph = parse_graph(file.program, program_path(GetParam()));
  const passes::Machine machine{.compute = compile::compute};
  for (ProgramFile::Section& section : file.sections) {
    SCOPED_TRACE("after " + section.pass);
    if (section.pass == "layout") {
      const std::string text = layout_text(graph);
      if (std::getenv("TIDEMARK_REWRITE") != nullptr) section.text = text;
      EXPECT_EQ(text, section.text);
      continue;
    }
    const passes::Pass* pass = passes::find(section.pass);
    ASSERT_NE(pass, nullptr) << "there is no such pass";
    pass->run(graph, machine,
              {.needed = [](const Graph& given) { return laid_out(given)->peak_bytes(); },
               .micro_batches = passes::MicroBatches()});
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

TEST(PassTexts, ShowAChangeByEveryPass) {
  std::set<std::string> changing;
  for (const std::string& name : program_names()) {
    const ProgramFile file = read_program_file(name);
    std::string before = to_text(parse_graph(file.program, name));
    for (const ProgramFile::Section& section : file.sections) {
      if (section.text != before) changing.insert(section.pass);
      before = section.text;
    }
  }
  for (const passes::Pass& pass : passes::all_passes())
    EXPECT_TRUE(changing.contains(std::string(pass.name))) << pass.name << " has no file";
}

TEST(PassTexts, TheDocsListEveryPassInOrder) {
  std::ifstream in(TIDEMARK_PROGRAMS "/../../docs/functions.md");
  std::string docs(std::istreambuf_iterator<char>(in), {});
  std::replace(docs.begin(), docs.end(), '\n', ' ');
  std::string list;
  for (const passes::Pass& pass : passes::all_passes())
    list += cat(list.empty() ? "" : ",", " `", pass.name, "`");
  std::string squeezed;
  for (const char c : docs)
    if (c != ' ' || !squeezed.ends_with(' ')) squeezed += c;
  EXPECT_NE(squeezed.find("**Passes.**" + list + ":"), std::string::npos) << list;
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(program_names()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace tidemark
