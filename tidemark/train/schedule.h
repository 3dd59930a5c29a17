// Learning rates that change with the number of updates made.
//
//   td::nn::Adam optimizer({.learning_rate = td::nn::schedules::warm_up(
//                               100, td::nn::schedules::cosine(1e-3, {.steps = 10'000}))});
//
// A schedule is a function of tensors, so that in a traced step the rate is computed by the program
// itself: nothing is traced again when it changes.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tidemark/api/tensor.h"
#include "tidemark/api/variable_walk.h"

namespace tidemark::nn {

// The rate of the update number `step`, counted from 0: a scalar f64 for a scalar f64.
class Schedule {
 public:
  // A constant rate.
  template <Number T>
  Schedule(T rate) : constant_(static_cast<double>(rate)) {}
  template <class F>
    requires(!std::same_as<F, Schedule> && !Number<F> &&
             std::is_invocable_r_v<Tensor, const F&, const Tensor&>)
  Schedule(F rate) : rate_(std::move(rate)) {}

  bool is_constant() const { return rate_ == nullptr; }
  // The rate of the first update, if it is constant.
  double constant() const { return constant_; }
  Tensor operator()(const Tensor& step) const;

 private:
  double constant_ = 0;
  std::function<Tensor(const Tensor& step)> rate_;
};

}  // namespace tidemark::nn

namespace tidemark::detail {
template <>
inline constexpr bool is_function<nn::Schedule> = true;
}  // namespace tidemark::detail

namespace tidemark::nn {

struct ExponentialOptions {
  double factor = 0.96;    // The rate is multiplied by this
  double steps = 1000;     // over so many updates:
  bool staircase = false;  // all at once at the end, or gradually.
};
struct CosineOptions {
  double steps = 1000;  // Half a cosine wave from the rate to `least`, which then stays.
  double least = 0;
};

namespace schedules {

Schedule constant(double rate);
// A rate from each of these steps on: {{0, 0.1}, {1000, 0.01}}. The first step must be 0.
Schedule piecewise(std::vector<std::pair<int64_t, double>> rates, Source at = Source::here());
Schedule exponential(double rate, ExponentialOptions options = {}, Source at = Source::here());
Schedule cosine(double rate, CosineOptions options = {}, Source at = Source::here());
// A linear warm-up to the first rate of `then`: 1 / steps of it at the first update, all of it at
// update `steps`; then `then`, from its start.
Schedule warm_up(int64_t steps, Schedule then, Source at = Source::here());

}  // namespace schedules
}  // namespace tidemark::nn
