#include "tidemark/grad/gradient_tape.h"

#include "tidemark/base/output.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/ops.h"
#include "tidemark/grad/pullback.h"
#include "tidemark/grad/tape.h"
#include "tidemark/trace/control_flow_core.h"

namespace tidemark {

// ---- Gradient -----------------------------------------------------------------------------------

const RowGradient& Gradient::rows(Source at) const {
  if (!is_rows())
    throw UserError("rows: this gradient is dense", at, "check is_rows() first, or use dense()");
  return *rows_;
}

Tensor Gradient::dense(Source at) const {
  if (!is_rows()) return dense_;
  const SourceScope scope(at);
  return scatter_add(zeros(type_.shape, type_.dtype, at), rows_->indices, rows_->rows, 0, at);
}

Tensor::Tensor(const Gradient& gradient, Source at) {
  if (gradient.is_rows()) {
    const TensorType type{gradient.dtype(), gradient.shape()};
    const auto bytes = Bytes(type.shape.size() * size_of(type.dtype));
    detail::warn(
        cat("a gradient of ", gradient.rows().indices.size(), " rows became dense: ", type, ", ",
            bytes, "\n  use gradient.rows(), or gradient.dense() where that is meant"),
        at.resolve());
  }
  *this = gradient.dense(at);
}

// ---- the tape -----------------------------------------------------------------------------------

namespace {

std::unique_ptr<detail::Tape> started(const TapeOptions& options, Source at) {
  std::unique_ptr<detail::Tape> tape = detail::make_tape(at);
  tape->persistent = options.persistent;
  tape->watches_variables = options.watch_variables;
  tape->start();
  return tape;
}

// Concatenates the rows of all lookups of a Variable.
RowGradient joined(const std::vector<RowGradient>& rows, const Shape& shape, Source at) {
  Shape row = shape;
  row.erase(0);
  std::vector<Tensor> indices, values;
  for (const RowGradient& each : rows) {
    const Tensor flat = reshape(each.indices, {-1}, at);
    Shape many = row;
    many.insert(0, flat.shape()[0]);
    indices.push_back(cast(flat, DType::i64, at));
    values.push_back(reshape(each.rows, many, at));
  }
  if (indices.size() == 1) return {indices[0], values[0]};
  return {concat(indices, 0, at), concat(values, 0, at)};
}

Tensor dense_of(const detail::PartialGradient& found, const TensorType& type, Source at) {
  Tensor sum = found.dense;
  if (!found.rows.empty()) {
    const RowGradient rows = joined(found.rows, type.shape, at);
    sum = scatter_add(sum.has_value() ? sum : zeros(type.shape, type.dtype, at), rows.indices,
                      rows.rows, 0, at);
  }
  return sum.dtype() == type.dtype ? sum : cast(sum, type.dtype, at);
}

[[noreturn]] void not_connected(std::string_view source, Source at) {
  throw UserError(cat("gradient: the target does not depend on ", source), at,
                  "watch it before it is used, or pass {.unconnected = td::Unconnected::zero}");
}

}  // namespace

GradientTape::GradientTape(TapeOptions options, Source at)
    : options_(options), tape_(started(options, at)) {}
GradientTape::~GradientTape() = default;

void GradientTape::watch_one(const Tensor& tensor, Source at) { tape_->watch(tensor, at); }

void GradientTape::watch(const Variable& variable, Source at) {
  const bool watches = std::exchange(tape_->watches_variables, true);
  const Tensor value = detail::read_variable(*detail::VariableState::of(variable), at);
  tape_->saw(*detail::VariableState::of(variable), value);
  tape_->watches_variables = watches;
}

void GradientTape::compute(const std::vector<Tensor>& targets, detail::Sources& sources,
                           const GradientOptions& options, Source at) {
  const SourceScope scope(at);
  const std::vector<Tensor>& given = options.output_gradients.list();
  if (!given.empty() && given.size() != targets.size())
    throw UserError(
        cat("gradient: ", given.size(), " output gradients for ", targets.size(), " targets"), at,
        "give one for each tensor of the target, or none");
  std::vector<Tensor> seeds;
  for (size_t i = 0; i < targets.size(); ++i) {
    const TensorType type = detail::type_of(targets[i], at);
    if (!is_differentiable(type.dtype))
      throw UserError(cat("gradient: the target must be floats, got ", type), at,
                      "cast it to a float dtype");
    if (given.empty() && is_complex(type.dtype))
      throw UserError(cat("gradient: the target must be real, got ", type), at,
                      "take a real number of it, td::real(y) or td::abs(y), or give its output "
                      "gradients");
    if (given.empty()) {
      seeds.push_back(detail::repeated_number(1, type, at));
      continue;
    }
    const Tensor seed = detail::tensor_of(given[i], at, type.dtype);
    if (seed.shape() != type.shape)
      throw UserError(cat("gradient: the target is ", type, ", and its output gradient is ",
                          detail::type_of(seed, at)),
                      at, "give it the shape of the target");
    seeds.push_back(seed);
  }
  const std::vector<detail::PartialGradient> found =
      tape_->gradient(targets, seeds, sources.tensors, sources.variables, at);
  for (size_t i = 0; i < found.size(); ++i) {
    const bool is_tensor = i < sources.tensors.size();
    const size_t variable = i - sources.tensors.size();
    const TensorType type = is_tensor ? detail::type_of(sources.tensors[i], at)
                                      : TensorType{sources.variables[variable].dtype(),
                                                   sources.variables[variable].shape()};
    Gradient gradient;
    if (found[i].connected() && !is_tensor && !found[i].dense.has_value())
      gradient = Gradient(joined(found[i].rows, type.shape, at), type);
    else if (found[i].connected())
      gradient = dense_of(found[i], type, at);
    else if (options.unconnected == Unconnected::zero)
      gradient = zeros(type.shape, type.dtype, at);
    else if (options.unconnected == Unconnected::error)
      not_connected(is_tensor ? cat("source ", i, ", ", type)
                              : cat("Variable \"", sources.variables[variable].name(), "\""),
                    at);
    if (is_tensor)
      sources.of_tensors.push_back(gradient.has_value() ? gradient.dense(at) : Tensor());
    else
      sources.of_variables.push_back(std::move(gradient));
  }
}

namespace {

// While it lives, gradients leave the tape as it is.
class Persistent {
 public:
  explicit Persistent(detail::Tape& tape)
      : tape_(tape), was_(std::exchange(tape.persistent, true)) {}
  ~Persistent() { tape_.persistent = was_; }
  Persistent(const Persistent&) = delete;
  Persistent& operator=(const Persistent&) = delete;

 private:
  detail::Tape& tape_;
  bool was_;
};

}  // namespace

Tensor GradientTape::jacobian(const Tensor& y, const Tensor& x, Source at) {
  return jacobian(y, std::vector<Tensor>{x}, Unconnected::zero, at)[0];
}

std::vector<Tensor> GradientTape::jacobian(const Tensor& y, const std::vector<Tensor>& sources,
                                           Unconnected unconnected, Source at) {
  const SourceScope scope(at);
  const TensorType type = detail::type_of(y, at);
  if (is_complex(type.dtype))
    throw UserError(cat("jacobian: the target must be real, got ", type), at,
                    "take the jacobians of its parts: td::real(y), td::imag(y)");
  const int64_t count = type.shape.size();
  detail::MapParts parts{.name = "jacobian"};
  parts.walked = {eye(count, type.dtype, at)};
  parts.element_path = [](size_t) { return std::string("the gradient"); };
  parts.trips = count;
  parts.body = [&](const std::vector<Tensor>& slices) {
    const GradientOptions options{.output_gradients = reshape(slices[0], type.shape, at)};
    return gradient(y, sources, options, at);
  };
  std::vector<Tensor> jacobians, connected = sources;
  {
    const Persistent passes(*tape_);
    if (unconnected != Unconnected::zero)
      connected = gradient(y, sources, {.unconnected = unconnected}, at);
    jacobians = detail::run_map(parts, at);
  }
  if (!tape_->persistent) tape_->release();
  for (size_t i = 0; i < sources.size(); ++i) {
    Shape shape = type.shape;
    for (const Dim size : sources[i].shape()) shape.push_back(size);
    jacobians[i] = connected[i].has_value() ? reshape(jacobians[i], shape, at) : Tensor();
  }
  return jacobians;
}

std::vector<Variable> GradientTape::watched_variables() const { return tape_->watched_variables(); }
Bytes GradientTape::saved_bytes() const { return Bytes(tape_->saved_bytes()); }
void GradientTape::stop() { tape_->stop(); }
void GradientTape::release() { tape_->release(); }
void GradientTape::reset() { tape_ = started(options_, tape_->at); }

GradientTape::Pause::Pause(GradientTape& tape) : tape_(tape.tape_->is_running() ? &tape : nullptr) {
  if (tape_ != nullptr) tape_->stop();
}
// The tape may have been reset meanwhile.
GradientTape::Pause::~Pause() {
  if (tape_ != nullptr) tape_->tape_->start();
}

}  // namespace tidemark
