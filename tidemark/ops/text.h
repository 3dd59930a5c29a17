// Programs as text: what `tidemark show` prints and .tm files hold. docs/ir.md has the grammar.
//
//   function step(%0: f32[64, 784], %1: f32[784, 10]) {
//     %2: f32[64, 10] = matmul(%0, %1)
//     %3: f32[] = constant 2.5
//     %4: f32[64, 10] = multiply(%2, %3)
//     return %4
//   }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/ir/graph.h"

namespace tidemark {

struct TextOptions {
  // The line that each node comes from, as a comment behind it. Comments do not survive parsing.
  bool sources = false;
};

// Values are numbered as they are printed, so that graphs that differ in the numbers of their nodes
// alone print the same. Parsing the text and printing again gives the same text.
std::string to_text(const Graph& graph, const TextOptions& options = {});

// Where a text breaks the rules: "model.tm:3:14: expected ')' ..., found ...". Both from one.
class TextError : public UserError {
 public:
  TextError(std::string_view file, int64_t line, int64_t column, const std::string& problem,
            std::string_view remedy);
  int64_t line() const { return line_; }
  int64_t column() const { return column_; }

 private:
  int64_t line_;
  int64_t column_;
};

// How deep regions may stand in regions.
inline constexpr int kDeepestRegion = 200;

// The graph that a text means, checked: every node has the operands, attributes, regions and result
// types that its op asks for. Nodes come from the lines of the text. Throws TextError.
Graph parse_graph(std::string_view text, std::string_view file_name);

}  // namespace tidemark
