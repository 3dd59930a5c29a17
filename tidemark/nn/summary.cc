#include "tidemark/nn/summary.h"

#include <algorithm>
#include <iomanip>
#include <ostream>
#include <set>

#include "tidemark/api/function.h"
#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/base/output.h"
#include "tidemark/nn/layer_scope.h"

namespace tidemark::detail {
namespace {

using nn::AnyLayer;
using nn::Summary;
using nn::SummaryRow;
using LayerProgram = Function<Tensor(Tensor)>;

// The observed call of a layer.
struct LayerCallRecord {
  std::string kind, name;
  AnyLayer layer;
  TensorSpec input;
  std::string output;
};

// "f32[?, 10]": open sizes, and sizes derived from them, print "?" regardless of the example.
std::string type_text(const Tensor& x) {
  Shape shape = x.shape();
  for (int64_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis].is_open()) shape.set(axis, open);
  return cat(x.dtype(), shape);
}
TensorSpec known_spec(const Tensor& x) { return spec(closed(x.shape()), x.dtype()); }

class Listing final : public LayerObserver {
 public:
  std::vector<LayerCallRecord> calls;

 private:
  void saw(const LayerCall& call) override {
    calls.push_back(
        {call.kind, call.name, call.layer, known_spec(call.input), type_text(call.output)});
  }
};

LayerProgram program_of(const AnyLayer& layer, Source at) {
  return LayerProgram(layer, {.name = "summary"}, at);
}

int64_t elements_of(const Variable& variable) { return variable.shape().size(); }
Bytes bytes_of(const Variable& variable) {
  return granted_bytes(elements_of(variable) * size_of(variable.dtype()));
}

// The path of a layer: the model's name of its first Variable, without the layer's own part.
std::string place_of(const NamedVariables& own, const NamedVariables& all) {
  if (own.empty()) return {};
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const auto& each) { return each.second.same_as(own[0].second); });
  if (found == all.end()) return {};
  const std::string& whole = found->first;
  if (whole.size() <= own[0].first.size()) return {};
  return whole.substr(0, whole.size() - own[0].first.size() - 1);
}

void count_parameters(const NamedVariables& variables, VariablesOnce& counted, SummaryRow& row) {
  for (const auto& [name, variable] : variables) {
    if (!variable.has_shape() || !counted.add(variable)) continue;
    row.parameters += elements_of(variable);
    row.parameter_bytes = row.parameter_bytes + bytes_of(variable);
  }
}

void add_bytes(const AnyLayer& layer, const TensorSpec& input, SummaryRow& row, Source at) {
  const LayerProgram program = program_of(layer, at);
  const Plan plan = program.plan(input, {}, at);
  row.temporaries = plan.peak() - plan.of(ByteClass::outputs);
  row.saved = program.saved_for_gradient(input, at);
}

SummaryRow row_of(const LayerCallRecord& call, const NamedVariables& all, VariablesOnce& counted,
                  Source at) {
  const NamedVariables own = nn::named_variables(call.layer);
  SummaryRow row{.name = place_of(own, all), .kind = call.kind, .output = call.output};
  if (row.name.empty()) row.name = call.name;
  count_parameters(own, counted, row);
  add_bytes(call.layer, call.input, row, at);
  return row;
}

// Layers that the model calls but that are not among its fields, although others are.
void warn_of_hidden(const std::vector<LayerCallRecord>& calls, const NamedVariables& variables,
                    Source at) {
  if (variables.empty()) return;  // A model that is a closure has none.
  for (const LayerCallRecord& call : calls) {
    const NamedVariables own = nn::named_variables(call.layer);
    const auto is_own = [&](const auto& each) { return each.second.same_as(own[0].second); };
    if (own.empty() || std::any_of(variables.begin(), variables.end(), is_own)) continue;
    warn(cat("the model calls a layer, ", layer_title(call.kind.c_str(), call.name),
             ", that is not one of its fields: checkpoints, variables() and copies leave it out\n  "
             "name the fields of the class that holds it, TIDEMARK_FIELDS(a_, b_), or give a "
             "closure as td::nn::Lambda(f, layers)"),
         at);
    return;
  }
}

// The sum of the model's output, and its gradients by the trainable Variables.
Bytes training_peak(const AnyLayer& model, const std::vector<Variable>& variables,
                    const TensorSpec& input, Source at) {
  const auto step = [model, variables, at](const Tensor& x) {
    GradientTape tape({}, at);
    const Tensor loss = sum(cast(model(x, at), DType::f32, at), {}, Keep::no, at);
    std::vector<Tensor> results{loss};
    for (Gradient& gradient : tape.gradient(loss, variables, {}, at)) {
      if (gradient.is_rows())
        results.push_back(gradient.rows(at).rows);
      else
        results.push_back(gradient.dense(at));
    }
    return results;
  };
  const nn::Training on;
  return function(step, {.name = "summary"}, at).plan(input, {}, at).peak();
}

// ---- as text ------------------------------------------------------------------------------------

// "1,234,567"
std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (auto place = static_cast<int64_t>(text.size()) - 3; place > 0; place -= 3)
    text.insert(static_cast<size_t>(place), ",");
  return text;
}

using Line = std::vector<std::string>;

Line line_of(const SummaryRow& row) {
  return {row.name,
          row.kind,
          row.output,
          grouped(row.parameters),
          cat(row.parameter_bytes),
          cat(row.saved),
          cat(row.temporaries)};
}

constexpr size_t kTextColumns = 3;  // The other columns are numbers, aligned right.

void print_line(std::ostream& out, const Line& line, const std::vector<size_t>& widths) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    const std::string space(widths[i] - line[i].size(), ' ');
    text += (i == 0 ? "" : "  ") + (i < kTextColumns ? line[i] + space : space + line[i]);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  out << text << '\n';
}

}  // namespace

void build_model(const AnyLayer& model, const NamedVariables& variables, const TensorSpec& input,
                 Source at) {
  const SourceScope scope(at);
  Listing listing;
  // Open sizes stay open: with size 1 the windows of a convolution would not fit.
  program_of(model, at).plan(input, {}, at);
  warn_of_hidden(listing.calls, variables, at);
}

Summary summarize(const AnyLayer& model, const NamedVariables& variables, const TensorSpec& input,
                  Source at) {
  const SourceScope scope(at);
  Summary summary;
  summary.had_open_sizes = input.shape.is_open();
  std::vector<LayerCallRecord> calls;
  {
    Listing listing;
    const auto noting = [&](const Tensor& x) {
      summary.input = known_spec(x);
      return model(x, at);
    };
    summary.forward_peak = program_of(noting, at).plan(input, {}, at).peak();
    calls = std::move(listing.calls);
  }
  warn_of_hidden(calls, variables, at);
  const TensorSpec& known = summary.input;
  VariablesOnce counted;
  for (const LayerCallRecord& call : calls)
    summary.rows.push_back(row_of(call, variables, counted, at));

  std::vector<Variable> trained;
  VariablesOnce all;
  count_parameters(variables, all, summary.total);
  for (const auto& [name, variable] : variables) {
    if (!variable.trainable() || !variable.has_shape()) continue;
    trained.push_back(variable);
    summary.trainable += elements_of(variable);
  }
  summary.total.name = "all";
  add_bytes(model, known, summary.total, at);
  summary.training_peak = training_peak(model, trained, known, at);
  return summary;
}

}  // namespace tidemark::detail

namespace tidemark::nn {

std::ostream& operator<<(std::ostream& out, const Summary& summary) {
  using detail::line_of;
  std::vector<detail::Line> lines{
      {"layer", "", "output", "parameters", "bytes", "saved", "temporaries"}};
  for (const SummaryRow& row : summary.rows) lines.push_back(line_of(row));
  lines.push_back(line_of(summary.total));
  std::vector<size_t> widths(lines[0].size());
  for (const detail::Line& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  for (const detail::Line& line : lines) detail::print_line(out, line, widths);
  out << "trained: " << detail::grouped(summary.trainable) << " of "
      << detail::grouped(summary.total.parameters) << " parameters\n"
      << "a call needs " << summary.forward_peak << " at once, one with gradients "
      << summary.training_peak << '\n';
  if (summary.had_open_sizes)
    out << "bytes are those of an input " << summary.input.dtype << summary.input.shape
        << ": \"?\" may be any size\n";
  return out;
}

}  // namespace tidemark::nn
