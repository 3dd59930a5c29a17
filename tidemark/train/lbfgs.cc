#include "tidemark/train/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/gradient_tape.h"
#include "tidemark/api/mode.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"
#include "tidemark/base/interrupt.h"

namespace tidemark::nn {
namespace {

// The conditions of Wolfe: the loss decreases by at least this part of what the slope promises, and
// the slope becomes smaller than this part.
constexpr double kDecrease = 1e-4, kSlope = 0.9;
// A bracket this small, in units of the largest change of a parameter, is not searched further.
constexpr double kSmallest = 1e-9;

std::vector<Variable> trained_of(const NamedVariables& named, Source at) {
  std::vector<Variable> trained;
  for (const auto& [name, variable] : named)
    if (variable.trainable() && is_float(variable.dtype())) trained.push_back(variable);
  if (trained.empty())
    throw UserError("LBFGS: the model has no trainable Variable", at,
                    "Variables are found in a model's fields: a class with private ones writes "
                    "TIDEMARK_FIELDS(a_, b_), a closure is given as nn::Lambda(f, layers)");
  return trained;
}

Tensor dot(const Tensor& a, const Tensor& b) {
  return sum(cast(a, DType::f64) * cast(b, DType::f64));
}

// What is known of one point on the line.
struct Point {
  double step = 0;
  double loss = 0;
  double slope = 0;  // Along the line.
  bool is_finite() const { return std::isfinite(loss) && std::isfinite(slope); }
};

// The minimum of the cubic through two points with their slopes, within bounds.
double cubic_minimum(const Point& a, const Point& b, double low, double high) {
  const Point &left = a.step <= b.step ? a : b, &right = a.step <= b.step ? b : a;
  const double both =
      left.slope + right.slope - 3 * (left.loss - right.loss) / (left.step - right.step);
  const double square = both * both - left.slope * right.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double root = std::sqrt(square);
  const double found =
      right.step - (right.step - left.step) *
                       ((right.slope + root - both) / (right.slope - left.slope + 2 * root));
  return std::isfinite(found) ? std::clamp(found, low, high) : (low + high) / 2;
}

// All parameters as one vector, and the vectors of the method.
class Problem {
 public:
  Problem(std::function<Tensor()> loss, std::vector<Variable> variables, int64_t memory, Source at)
      : loss_(std::move(loss)),
        variables_(std::move(variables)),
        memory_(memory),
        at_(at),
        evaluate_(function([this] { return evaluated(); }, {.name = "lbfgs"}, at)),
        begin_line_(function(
            [this](const Tensor& curved, const Tensor& newest) { return line(curved, newest); },
            {.name = "lbfgs"}, at)),
        move_to_(function([this](const Tensor& step) { move(step); }, {.name = "lbfgs"}, at)),
        remember_(function(
            [this](const Tensor& step, const Tensor& place) { return remembered(step, place); },
            {.name = "lbfgs"}, at)) {
    for (const Variable& variable : variables_) size_ += variable.shape(at).size();
    const bool is_double = std::all_of(variables_.begin(), variables_.end(),
                                       [](const Variable& v) { return v.dtype() == DType::f64; });
    dtype_ = is_double ? DType::f64 : DType::f32;
    const auto vector = [&](const char* name, const Shape& shape) {
      return Variable(zeros(shape, dtype_), {.name = name, .trainable = false}, at);
    };
    start_ = vector("lbfgs/start", {size_});
    direction_ = vector("lbfgs/direction", {size_});
    gradient_ = vector("lbfgs/gradient", {size_});
    before_ = vector("lbfgs/before", {size_});
    steps_ = vector("lbfgs/steps", {memory, size_});
    changes_ = vector("lbfgs/changes", {memory, size_});
    scales_ = Variable(zeros({memory}, DType::f64), {.trainable = false}, at);
  }

  // The loss, the slope along the direction and the largest element of the gradient, where the
  // parameters are.
  struct Seen {
    double loss, slope, largest;
  };
  Seen evaluate() const {
    const std::vector<Tensor> numbers = evaluate_();
    return {numbers[0].item<double>(), numbers[1].item<double>(), numbers[2].item<double>()};
  }
  // Takes the parameters as the start of a line, whose direction is computed from the history, or
  // is the steepest one. Returns the sum and the maximum of the direction's magnitudes and the
  // slope.
  struct Line {
    double total, largest, slope;
  };
  Line begin_line(bool is_steepest) const {
    const std::vector<Tensor> numbers = begin_line_(is_steepest ? 0.0 : 1.0, newest_);
    return {numbers[0].item<double>(), numbers[1].item<double>(), numbers[2].item<double>()};
  }
  void move_to(double step) const { move_to_(step); }
  // Adds the step that was taken to the history, unless its curvature is not positive.
  void remember(double step) {
    const int64_t place = (newest_ + 1) % memory_;
    if (remember_(step, place).item<bool>()) newest_ = place;
  }

 private:
  std::vector<Tensor> evaluated() const {
    GradientTape tape;
    Tensor loss;
    {
      const Autocast as_called(autocast_);
      const UserCode user;
      loss = loss_();
    }
    if (loss.size() != 1)
      throw UserError(cat("LBFGS: the loss is ", loss.dtype(), loss.shape(), ", not one number"),
                      at_, "return its mean: td::mean(x)");
    const std::vector<Gradient> parts = tape.gradient(loss, variables_, {}, at_);
    const auto pause = tape.stop_recording();
    std::vector<Tensor> flat;
    for (const Gradient& part : parts) flat.push_back(cast(reshape(part.dense(at_), {-1}), dtype_));
    const Tensor all = concat(flat, 0);
    gradient_->assign(all);
    return {cast(reshape(loss, {}), DType::f64), dot(all, *direction_),
            cast(max(abs(all)), DType::f64)};
  }

  // Two passes over the history, from the newest step to the oldest and back.
  Tensor curved(const Tensor& newest) const {
    Tensor found = gradient_->value();
    std::vector<Tensor> places, parts;
    for (int64_t back = 0; back < memory_; ++back) {
      const Tensor place = remainder(newest - back, memory_);
      const Tensor part = gather(*scales_, place) * dot(gather(*steps_, place), found);
      found = found - cast(part, dtype_) * gather(*changes_, place);
      places.push_back(place);
      parts.push_back(part);
    }
    const Tensor last = gather(*changes_, newest);
    const Tensor squares = dot(last, last), scale = gather(*scales_, newest);
    const Tensor first = where(squares > 0, 1.0 / (scale * squares), 1.0);
    found = found * cast(where(scale > 0, first, 1.0), dtype_);
    for (int64_t back = memory_; back-- > 0;) {
      const Tensor& place = places[static_cast<size_t>(back)];
      const Tensor part = gather(*scales_, place) * dot(gather(*changes_, place), found);
      found =
          found + cast(parts[static_cast<size_t>(back)] - part, dtype_) * gather(*steps_, place);
    }
    return found;
  }

  std::vector<Tensor> line(const Tensor& is_curved, const Tensor& newest) const {
    std::vector<Tensor> flat;
    for (const Variable& variable : variables_)
      flat.push_back(cast(reshape(variable, {-1}), dtype_));
    start_->assign(concat(flat, 0));
    before_->assign(*gradient_);
    const Tensor chosen = where(is_curved > 0, curved(newest), *gradient_);
    direction_->assign(-chosen);
    return {cast(sum(abs(chosen)), DType::f64), cast(max(abs(chosen)), DType::f64),
            -dot(chosen, *gradient_)};
  }

  void move(const Tensor& step) const {
    int64_t begin = 0;
    for (const Variable& variable : variables_) {
      const int64_t end = begin + variable.shape().size();
      const Tensor next = (*start_)[Slice{.begin = begin, .end = end}] +
                          cast(step, dtype_) * (*direction_)[Slice{.begin = begin, .end = end}];
      variable.assign(cast(reshape(next, variable.shape()), variable.dtype()));
      begin = end;
    }
  }

  Tensor remembered(const Tensor& step, const Tensor& place) const {
    const Tensor taken = cast(step, dtype_) * *direction_, change = *gradient_ - *before_;
    const Tensor curvature = dot(taken, change);
    const Tensor is_good = curvature > 1e-10 * dot(change, change);
    const Tensor at = reshape(place, {1});
    const auto put = [&](const Variable& rows, const Tensor& row) {
      rows.scatter_update(at, expand_dims(where(is_good, row, gather(rows, place)), 0));
    };
    put(*steps_, taken);
    put(*changes_, change);
    put(*scales_, 1.0 / curvature);
    return is_good;
  }

  std::function<Tensor()> loss_;
  std::vector<Variable> variables_;
  int64_t memory_;
  Source at_;
  DType autocast_ = autocast();  // Of the loss; the vectors are not narrower than Variables.
  int64_t size_ = 0;
  DType dtype_ = DType::f32;
  int64_t newest_ = 0;  // The row of the last step in the history.
  std::optional<Variable> start_, direction_, gradient_, before_, steps_, changes_;
  std::optional<Variable> scales_;  // One over the curvature of each step; 0: there is none.
  Function<std::vector<Tensor>()> evaluate_;
  Function<std::vector<Tensor>(const Tensor&, const Tensor&)> begin_line_;
  Function<void(const Tensor&)> move_to_;
  Function<Tensor(const Tensor&, const Tensor&)> remember_;
};

// A step along the line that satisfies Wolfe's strong conditions: first a bracket is looked for,
// then it is made smaller.
class LineSearch {
 public:
  LineSearch(const Problem& problem, Point start, double largest, int64_t evaluations)
      : problem_(problem), start_(start), largest_(largest), left_(evaluations) {}

  // The point where the parameters are afterwards.
  Point run(double first) {
    Point before = start_, now = look(first);
    while (left_ > 0) {
      if (!now.is_finite()) {
        now = look((before.step + now.step) / 2);
        continue;
      }
      if (!decreases(now) || (before.step > 0 && now.loss >= before.loss)) return zoom(before, now);
      if (is_flat(now)) return now;
      if (now.slope >= 0) return zoom(now, before);
      const double step = now.step, least = step + 0.01 * (step - before.step);
      const double next = cubic_minimum(before, now, least, 10 * step);
      before = now;
      now = look(next);
    }
    return best_of(before, now);
  }
  int64_t evaluations() const { return evaluations_; }
  double largest_gradient() const { return gradient_; }

 private:
  Point look(double step) {
    problem_.move_to(step);
    const Problem::Seen seen = problem_.evaluate();
    --left_;
    ++evaluations_;
    at_ = step;
    gradient_ = seen.largest;
    return {step, seen.loss, seen.slope};
  }
  bool decreases(const Point& point) const {
    return point.loss <= start_.loss + kDecrease * point.step * start_.slope;
  }
  bool is_flat(const Point& point) const { return std::abs(point.slope) <= -kSlope * start_.slope; }

  // `low` is the better end of the bracket.
  Point zoom(Point low, Point high) {
    bool was_at_edge = false;
    while (left_ > 0 && std::abs(high.step - low.step) * largest_ > kSmallest) {
      const double least = std::min(low.step, high.step), most = std::max(low.step, high.step);
      double step = cubic_minimum(low, high, least, most);
      // Close to an end twice in a row, it would hardly make the bracket smaller.
      const double margin = 0.1 * (most - least);
      const bool is_at_edge = std::min(step - least, most - step) < margin;
      if (is_at_edge && (was_at_edge || step <= least || step >= most))
        step = step - least < most - step ? least + margin : most - margin;
      was_at_edge = is_at_edge;
      const Point now = look(step);
      if (!now.is_finite() || !decreases(now) || now.loss >= low.loss) {
        high = now;
      } else {
        if (is_flat(now)) return now;
        if (now.slope * (high.step - low.step) >= 0) high = low;
        low = now;
      }
    }
    return back_to(low);
  }
  Point best_of(const Point& a, const Point& b) {
    return back_to(b.is_finite() && b.loss < a.loss ? b : a);
  }
  // Where the search ends elsewhere than it looked last, that point is evaluated again.
  Point back_to(const Point& point) { return point.step == at_ ? point : look(point.step); }

  const Problem& problem_;
  Point start_;
  double largest_, gradient_ = 0, at_ = 0;
  int64_t left_, evaluations_ = 0;
};

}  // namespace

LBFGS::LBFGS(LBFGSOptions options, Source at) : options_(options) {
  if (options.memory < 1 || options.max_iterations < 0 || options.max_evaluations < 1)
    throw UserError(cat("LBFGS: .memory is ", options.memory, ", .max_iterations ",
                        options.max_iterations, ", .max_evaluations ", options.max_evaluations),
                    at, "give at least 1, 0 and 1");
  if (!(options.learning_rate > 0))
    throw UserError(cat("LBFGS: .learning_rate is ", options.learning_rate), at,
                    "give a number above 0");
}

LBFGSResult LBFGS::minimize_named(const std::function<Tensor()>& loss, const NamedVariables& named,
                                  Source at) const {
  const SourceScope scope(at);
  Problem problem(loss, trained_of(named, at), options_.memory, at);
  const Autocast off(DType::f32);
  const Problem::Seen first = problem.evaluate();
  LBFGSResult result{
      .loss = first.loss, .gradient = first.largest, .evaluations = 1, .stopped = {}};
  const auto ends = [&](const char* why, bool converged) {
    result.stopped = why;
    result.converged = converged;
  };
  bool is_steepest = true;
  while (result.stopped.empty()) {
    detail::poll_interrupt();
    if (!std::isfinite(result.loss) || !std::isfinite(result.gradient))
      ends("the loss or its gradient is not finite", false);
    else if (result.gradient <= options_.tolerance_gradient)
      ends("the gradient is within its tolerance", true);
    else if (result.iterations == options_.max_iterations)
      ends("all iterations were made", false);
    if (!result.stopped.empty()) break;
    Problem::Line line = problem.begin_line(is_steepest);
    if (!(line.slope < 0) && !is_steepest) {
      is_steepest = true;  // The estimate of the curvature is of no use.
      continue;
    }
    const double length =
        options_.learning_rate * (is_steepest ? std::min(1.0, 1.0 / line.total) : 1.0);
    LineSearch search(problem, {0, result.loss, line.slope}, line.largest,
                      options_.max_evaluations);
    const Point found = search.run(length);
    problem.remember(found.step);
    const double change = std::abs(found.loss - result.loss), moved = found.step * line.largest;
    is_steepest = false;
    ++result.iterations;
    result.evaluations += search.evaluations();
    result.loss = found.loss;
    result.gradient = search.largest_gradient();
    if (result.gradient > options_.tolerance_gradient &&
        (change <= options_.tolerance_change || moved <= options_.tolerance_change))
      ends("the change is within its tolerance", true);
  }
  return result;
}

}  // namespace tidemark::nn
