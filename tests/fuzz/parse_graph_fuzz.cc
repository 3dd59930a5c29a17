// Feeds arbitrary bytes to the parser of programs. What it accepts is a valid graph, prints as a
// text that means the same, and stays valid through every pass.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tidemark/ops/text/text.h"
#include "tidemark/passes/passes.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Throws, and so ends the fuzzer, where a pass left a graph that is none.
void require_valid(const tidemark::Graph& graph) {
  verify(graph);
  const std::string text = to_text(graph);
  require(to_text(tidemark::parse_graph(text, "again.tm")) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tidemark::Graph graph;
  try {
    graph = tidemark::parse_graph(text, "fuzz.tm");
  } catch (const tidemark::TextError& error) {
    require(error.line() >= 1 && error.column() >= 1);
    return 0;
  }
  require_valid(graph);
  for (const tidemark::passes::Pass& pass : tidemark::passes::all_passes()) {
    pass.run(graph, {}, {});
    require_valid(graph);
  }
  return 0;
}
