// Problems like those real training graphs pose, made from a seed.
//
// A step of training runs the layers forward, then backward. Each layer's operations make results
// that die a few steps later, and save some for the backward pass, where they die in reverse order.
// Some layers also hand a result to a layer far ahead (a skip), backward passes leave gradients of
// weights that live to the end of the step, and small statistics of odd sizes live for any length.
// What makes packing hard is many sizes at once, so each stage of the network has its own, and
// short-lived buffers that straddle those that are saved.
#pragma once

#include <cstdint>

#include "tidemark/plan/plan.h"

namespace tidemark::bench {

struct TrainingShape {
  int32_t buffers = 1000;  // About; the last layer is finished.
  uint64_t seed = 1;
  double saved = 0.35;             // Share of results kept for the backward pass.
  double kept = 40;                // At most about this many are kept at once.
  double skips = 0.30;             // Share of layers that hand a result far ahead.
  double gradients = 0.10;         // Share of backward results that live to the end.
  double long_temporaries = 0.15;  // Share of results that outlive their layer by a few layers.
  int32_t size_kinds = 8;          // Distinct sizes in one stage.
  bool ordinary = false;           // One stage, few sizes: a plain transformer.
};

plan::Problem training_problem(const TrainingShape& shape);

}  // namespace tidemark::bench
