#include "tidemark/train/optimizer_parameter.h"

#include <utility>

#include "tidemark/api/create.h"
#include "tidemark/api/gradients.h"
#include "tidemark/api/ops.h"

namespace tidemark::nn {
namespace {

// The line that called the optimizer, to which its internal functions are charged too.
thread_local Source called_from = Source::none();

// The dtype of an update: 16-bit floats are too coarse for small steps.
DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

SharedNumbers as(const SharedNumbers& shared, DType dtype) {
  SharedNumbers converted;
  for (const Tensor& number : shared.numbers) converted.numbers.push_back(cast(number, dtype));
  if (shared.scale) converted.scale = cast(*shared.scale, dtype);
  return converted;
}

// Row gradients with each index once: the first occurrence of an index receives the sum of all its
// rows, in the order of the indices.
struct DistinctRows {
  DistinctRows(const Tensor& indices, const Tensor& rows, Dim table_rows)
      // Indices may be negative.
      : places(first_equal(where(indices < 0, indices + table_rows, indices))),
        sums(scatter_add(zeros_like(rows), places, rows)) {}

  // For each index, the sum of all its rows.
  Tensor for_each() const { return gather(sums, places); }

  Tensor places;  // For each index, the position of its sum.
  Tensor sums;    // Zero at other positions.
};

Tensor flat_indices(const Gradient& gradient) { return reshape(gradient.rows().indices, {-1}); }

Tensor sum_of_squares(const Tensor& x) { return sum(square(x)); }

// Rows without a gradient stay unchanged.
void keep_others(ParameterStep& step, const ParameterStep& old) {
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < old.gradient.rank(); ++axis) axes.push_back(axis);
  const Tensor touched = any(old.gradient != 0, axes, keepdims);
  step.parameter = where(touched, step.parameter, old.parameter);
  for (size_t i = 0; i < old.slots.size(); ++i)
    step.slots[i] = where(touched, step.slots[i], old.slots[i]);
}

}  // namespace

void note_caller() { called_from = Source::none().resolve(); }
Source noted_caller() { return called_from; }

Tensor scale_to(const Tensor& squares, double most) { return most / maximum(sqrt(squares), most); }

Parameter::Parameter(Variable variable, std::string name, std::shared_ptr<const Kind> kind)
    : variable_(std::move(variable)),
      name_(std::move(name)),
      kind_(std::move(kind)),
      squares_(function(
          [this](const Tensor& gradient) {
            const SourceScope scope(called_from);
            return sum_of_squares(cast(gradient, dtype()));
          },
          named())),
      row_squares_(function(
          [this](const Tensor& indices, const Tensor& rows) {
            const SourceScope scope(called_from);
            return sum_of_squares(DistinctRows(indices, rows, variable_.shape()[0]).sums);
          },
          named())),
      update_(function([this](const Tensor& gradient,
                              const SharedNumbers& shared) { update_all(gradient, shared, false); },
                       named())),
      update_rows_(
          function([this](const Tensor& indices, const Tensor& rows,
                          const SharedNumbers& shared) { update_rows(indices, rows, shared); },
                   named())),
      accumulate_rows_(function(
          [this](const Tensor& indices, const Tensor& rows) {
            const SourceScope scope(called_from);
            accumulated_->assign(scatter_add(*accumulated_, indices, rows));
          },
          named())),
      accumulated_squares_(function(
          [this] {
            const SourceScope scope(called_from);
            return sum_of_squares(mean_of_accumulated());
          },
          named())),
      update_accumulated_(function(
          [this](const SharedNumbers& shared) { use_accumulated(shared, false); }, named())),
      update_table_(function([this](const SharedNumbers& shared) { use_accumulated(shared, true); },
                             named())) {
  const UpdateRule& rule = kind_->rule;
  for (size_t i = 0; i < rule.slots.size(); ++i)
    slots_.push_back(declared(rule.slots[i], i < rule.initial.size() ? rule.initial[i] : 0));
  if (kind_->options.accumulate > 1) accumulated_ = declared("accumulated", 0);
}

void Parameter::walk(const detail::VariablePath& path, const detail::SeeVariable& see) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const detail::VariablePath slot = path.field(kind_->rule.slots[i]);
    see(slot.field(name_), slots_[i]);
  }
  if (!accumulated_) return;
  const detail::VariablePath sums = path.field("accumulated");
  see(sums.field(name_), *accumulated_);
}

DType Parameter::dtype() const { return wide(variable_.dtype()); }

FunctionOptions Parameter::named() const { return {.name = cat(kind_->rule.name, " of ", name_)}; }

Variable Parameter::declared(const std::string& slot, double initial) const {
  return Variable(variable_.shape(),
                  [initial](const Shape& shape, DType type) { return full(shape, initial, type); },
                  {.name = cat(kind_->rule.name, "/", slot, "/", name_),
                   .trainable = false,
                   .dtype = dtype(),
                   .made_once = true});
}

// One row for each of the flat indices.
Tensor Parameter::rows_of(const Gradient& gradient) const {
  Shape shape = variable_.shape();
  shape.set(0, -1);
  return cast(reshape(gradient.rows().rows, shape), dtype());
}

// ---- updates ------------------------------------------------------------------------------------

Tensor Parameter::squares(const Gradient& gradient) const {
  note_caller();
  return gradient.is_rows() ? row_squares_(flat_indices(gradient), rows_of(gradient))
                            : squares_(gradient.dense());
}

void Parameter::update(const Gradient& gradient, const SharedNumbers& shared) const {
  note_caller();
  if (gradient.is_rows())
    update_rows_(flat_indices(gradient), rows_of(gradient), as(shared, dtype()));
  else
    update_(gradient.dense(), as(shared, dtype()));
}

// The new values of the part of the parameter that is updated.
ParameterStep Parameter::next(ParameterStep step, const SharedNumbers& shared,
                              const Tensor& squares) const {
  const OptimizerOptions& options = kind_->options;
  step.decays = options.decays == nullptr || options.decays(variable_);
  Tensor length = squares;
  if (shared.scale) {
    step.gradient = step.gradient * *shared.scale;
    length = length * square(*shared.scale);
  }
  if (options.clip_norm) step.gradient = step.gradient * scale_to(length, *options.clip_norm);
  kind_->rule.apply(step, shared.numbers);
  return step;
}

void Parameter::update_all(const Tensor& gradient, const SharedNumbers& shared,
                           bool rows_apart) const {
  const SourceScope scope(called_from);
  const ParameterStep old{.parameter = cast(variable_, dtype()),
                          .gradient = cast(gradient, dtype()),
                          .slots = {slots_.begin(), slots_.end()}};
  ParameterStep step = next(old, shared, sum_of_squares(old.gradient));
  if (rows_apart) keep_others(step, old);
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].assign(step.slots[i]);
  variable_.assign(cast(step.parameter, variable_.dtype()));
}

void Parameter::update_rows(const Tensor& indices, const Tensor& rows,
                            const SharedNumbers& shared) const {
  const SourceScope scope(called_from);
  const DistinctRows distinct(indices, rows, variable_.shape()[0]);
  ParameterStep old{.parameter = cast(gather(variable_, indices), dtype()),
                    .gradient = distinct.for_each(),
                    .slots = {}};
  for (const Variable& slot : slots_) old.slots.push_back(gather(slot, indices));
  const ParameterStep step = next(std::move(old), shared, sum_of_squares(distinct.sums));
  // Equal indices write equal values.
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].scatter_update(indices, step.slots[i]);
  variable_.scatter_update(indices, cast(step.parameter, variable_.dtype()));
}

// ---- several calls for one update ---------------------------------------------------------------

void Parameter::accumulate(const Gradient& gradient) const {
  note_caller();
  if (gradient.is_rows())
    accumulate_rows_(flat_indices(gradient), rows_of(gradient));
  else
    accumulated_->assign_add(cast(gradient.dense(), dtype()));
}

Tensor Parameter::mean_of_accumulated() const {
  return *accumulated_ * (1.0 / static_cast<double>(kind_->options.accumulate));
}

Tensor Parameter::accumulated_squares() const {
  note_caller();
  return accumulated_squares_();
}

void Parameter::update_by_accumulated(const SharedNumbers& shared) const {
  note_caller();
  (is_table_ ? update_table_ : update_accumulated_)(as(shared, dtype()));
}

void Parameter::use_accumulated(const SharedNumbers& shared, bool rows_apart) const {
  const SourceScope scope(called_from);
  update_all(mean_of_accumulated(), shared, rows_apart);
  accumulated_->assign(zeros_like(*accumulated_));
}

}  // namespace tidemark::nn
