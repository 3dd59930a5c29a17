// summary: the layers of a model with their outputs and memory, before it runs.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tidemark/api/plan.h"
#include "tidemark/nn/layer.h"
#include "tidemark/nn/variables.h"

namespace tidemark::nn {

struct SummaryRow {
  std::string name = {};    // The path of its Variables: "blocks/0/up".
  std::string kind = {};    // "nn::Dense".
  std::string output = {};  // "f32[8, 128]"; an open size is "?".
  int64_t parameters = 0;   // Elements of its Variables; 0 if they are shared with a row above.
  Bytes parameter_bytes = {};
  Bytes saved = {};        // Residuals of its gradient, besides its input and its Variables.
  Bytes temporaries = {};  // The peak of a call, without its output.
};

// Prints as a table.
struct Summary {
  std::vector<SummaryRow> rows;
  SummaryRow total;  // Of the whole model; memory that layers share counts once.
  int64_t trainable = 0;
  Bytes forward_peak;           // Of a call of the model, in evaluation mode.
  Bytes training_peak;          // Of a call with all gradients, in training mode.
  TensorSpec input;             // The input that the figures are for.
  bool had_open_sizes = false;  // Whether some of its sizes are examples for open sizes.
};
std::ostream& operator<<(std::ostream& out, const Summary& summary);

}  // namespace tidemark::nn

namespace tidemark::detail {
nn::Summary summarize(const nn::AnyLayer& model, const NamedVariables& variables,
                      const TensorSpec& input, Source at);
void build_model(const nn::AnyLayer& model, const NamedVariables& variables,
                 const TensorSpec& input, Source at);
}  // namespace tidemark::detail

namespace tidemark::nn {

// For an input of this type. If sizes are open, the bytes are those of an example, as in plans,
// which the table names. Nothing runs and nothing is allocated, but the layers get their shapes.
template <LayerFunction Model>
Summary summary(const Model& model, const TensorSpec& input, Source at = Source::here()) {
  return detail::summarize(model, named_variables(model), input, at);
}

// Sets the shapes of all layers, as a first call would. Nothing runs and nothing is allocated.
template <LayerFunction Model>
void build(const Model& model, const TensorSpec& input, Source at = Source::here()) {
  detail::build_model(model, named_variables(model), input, at);
}

}  // namespace tidemark::nn
