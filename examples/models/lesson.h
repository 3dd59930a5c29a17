// What the models share: a step of training as one function, and its bytes as planned and measured.
#pragma once

#include <cstdint>
#include <cstdio>
#include <utility>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace lesson {

// Loss, gradients and update in one compiled function.
template <class Model, class Loss>
auto step_of(Model model, tidemark::nn::Optimizer optimizer, Loss loss) {
  return tidemark::function(
      [model, optimizer, loss](const tidemark::Tensor& x, const tidemark::Tensor& y) {
        tidemark::GradientTape tape;
        tidemark::Tensor error = loss(y, model(x));
        optimizer.minimize(tape, error, model);
        return error;
      },
      {.name = "step"});
}

// Runs one step in train mode, and says what it was to take and what it took.
template <class Step>
void show_step(const Step& step, const tidemark::Tensor& x, const tidemark::Tensor& y) {
  const tidemark::nn::Training on;
  const tidemark::Plan plan = step.plan(x, y);
  const tidemark::Profile profile = step.profile(x, y).second;
  using tidemark::ByteClass;
  std::printf("  parameters and the optimizer's state %14s bytes\n",
              digits(plan.of(ByteClass::variables).count).c_str());
  std::printf("  a step, planned                      %14s bytes beside them, %s of shadow\n",
              digits(plan.peak().count).c_str(), digits(plan.of(ByteClass::shadow).count).c_str());
  std::printf("  a step, measured                     %14s\n",
              digits(profile.touched.count).c_str());
}

// What `main` returns: whether the figure is what the lesson promises.
inline int reached(const char* what, double figure, double least) {
  std::printf("  %s %.3f, at least %.3f was promised\n", what, figure, least);
  return figure >= least ? 0 : 1;
}

}  // namespace lesson
