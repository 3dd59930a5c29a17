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
  // Adds each node's source line as a comment. Parsing drops comments.
  bool sources = false;
};

// Values are numbered in the order of printing, so that graphs that differ only in node numbers
// print the same. The text round-trips.
std::string to_text(const Graph& graph, const TextOptions& options = {});

// A syntax or type error in a text: "model.tm:3:14: expected ')' ..., found ...". Line and column
// count from 1.
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

// How deep regions may be nested.
inline constexpr int kDeepestRegion = 200;

// Parses and validates a graph: every node has operands, attributes, regions and result types that
// its op accepts. The source of a node is its line in the text. Throws TextError.
Graph parse_graph(std::string_view text, std::string_view file_name);

}  // namespace tidemark
