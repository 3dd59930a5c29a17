// A model before it runs: what its layers give, and what they will hold.
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
  std::string name = {};    // Where its Variables stand: "blocks/0/up".
  std::string kind = {};    // "nn::Dense".
  std::string output = {};  // "f32[8, 128]"; a size that is open is "?".
  int64_t parameters = 0;   // Elements of its Variables; of one that stands above, 0.
  Bytes parameter_bytes = {};
  Bytes saved = {};        // What its gradient keeps of a call, beside its input and its Variables.
  Bytes temporaries = {};  // What a call has at its peak beside its output.
};

// Prints as a table.
struct Summary {
  std::vector<SummaryRow> rows;
  SummaryRow total;  // Of the model as a whole: what two layers share, or fuse, counts once.
  int64_t trainable = 0;
  Bytes forward_peak;   // Of a call of the model, in evaluation mode.
  Bytes training_peak;  // Of a call with the gradients by all that is trained, in train mode.
  TensorSpec input;     // What all bytes are for.
  bool had_open_sizes = false;  // Whether sizes of it stand for sizes that are open.
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

// For an input of this type. Where sizes are open, bytes are those of an example, as in plans; the
// table says which. Figures are those of plans: nothing runs and nothing is allocated, but the
// layers take their shapes.
template <LayerFunction Model>
Summary summary(const Model& model, const TensorSpec& input, Source at = Source::here()) {
  return detail::summarize(model, named_variables(model), input, at);
}

// Gives all layers their shapes, as a first call would. Nothing runs and nothing is allocated.
template <LayerFunction Model>
void build(const Model& model, const TensorSpec& input, Source at = Source::here()) {
  detail::build_model(model, named_variables(model), input, at);
}

}  // namespace tidemark::nn
