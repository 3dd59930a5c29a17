#include "tidemark/train/schedule.h"

#include <numbers>
#include <string>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/base/error.h"

namespace tidemark::nn {
namespace {

Tensor number(double value) { return tidemark::constant(value, DType::f64); }

void check_steps(const char* name, double steps, Source at) {
  if (steps > 0) return;
  throw UserError(cat("schedules::", name, ": .steps is ", steps), at,
                  "give the number of updates, at least 1");
}

}  // namespace

Tensor Schedule::operator()(const Tensor& step) const {
  if (is_constant()) return number(constant_);
  const Tensor rate = cast(rate_(step), DType::f64);
  if (rate.rank() != 0)
    throw UserError(cat("a learning rate is one number, the schedule gave ", rate.shape()),
                    rate.source(), "give a tensor of shape []");
  return rate;
}

namespace schedules {

Schedule constant(double rate) { return rate; }

Schedule piecewise(std::vector<std::pair<int64_t, double>> rates, Source at) {
  if (rates.empty() || rates.front().first != 0)
    throw UserError("schedules::piecewise: there is no rate for step 0", at,
                    "make the first pair {0, rate}");
  for (size_t i = 1; i < rates.size(); ++i) {
    if (rates[i].first <= rates[i - 1].first)
      throw UserError(cat("schedules::piecewise: step ", rates[i].first, " comes after step ",
                          rates[i - 1].first),
                      at, "give the steps in increasing order");
  }
  return Schedule([rates = std::move(rates)](const Tensor& step) {
    Tensor rate = number(rates.front().second);
    for (size_t i = 1; i < rates.size(); ++i)
      rate = where(step < rates[i].first, rate, number(rates[i].second));
    return rate;
  });
}

Schedule exponential(double rate, ExponentialOptions options, Source at) {
  check_steps("exponential", options.steps, at);
  return Schedule([=](const Tensor& step) {
    const Tensor passed = step / options.steps;
    return rate * pow(number(options.factor), options.staircase ? floor(passed) : passed);
  });
}

Schedule cosine(double rate, CosineOptions options, Source at) {
  check_steps("cosine", options.steps, at);
  return Schedule([=](const Tensor& step) {
    const Tensor angle = minimum(step / options.steps, 1.0) * std::numbers::pi;
    return options.least + (rate - options.least) * 0.5 * (1.0 + cos(angle));
  });
}

Schedule warm_up(int64_t steps, Schedule then, Source at) {
  check_steps("warm_up", static_cast<double>(steps), at);
  return Schedule([steps, then = std::move(then)](const Tensor& step) {
    const Tensor part = minimum((step + 1.0) / static_cast<double>(steps), 1.0);
    return part * then(maximum(step - static_cast<double>(steps), 0.0));
  });
}

}  // namespace schedules
}  // namespace tidemark::nn
