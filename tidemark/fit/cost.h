// The work of a node: arithmetic and memory traffic, and an estimate of its time.
#pragma once

#include "tidemark/ir/graph.h"
#include "tidemark/run/program.h"

namespace tidemark::fit {

struct Cost {
  double flop = 0;         // Additions, multiplications and other scalar operations.
  double bytes_moved = 0;  // Operands read and results written.
  double seconds = 0;      // An estimate, for comparing programs with each other.

  Cost& operator+=(const Cost& other) {
    flop += other.flop;
    bytes_moved += other.bytes_moved;
    seconds += other.seconds;
    return *this;
  }
  friend Cost operator*(const Cost& cost, double times) {
    return {cost.flop * times, cost.bytes_moved * times, cost.seconds * times};
  }
  friend Cost operator-(const Cost& a, const Cost& b) {
    return {a.flop - b.flop, a.bytes_moved - b.bytes_moved, a.seconds - b.seconds};
  }
};

// How long a step takes that computes and moves so much, roughly.
double seconds_of(const run::StepWork& work);

// Of one run of a node, with the regions of control flow: all trips of a loop, and the larger
// branch of a cond. A loop without a known number of trips counts as one trip. A loop that is
// walked backwards from checkpoints includes the trips that it runs again.
Cost cost_of(const Graph& graph, const Node& node);

// Of all nodes of a region.
Cost cost_of(const Graph& graph, RegionId region);

}  // namespace tidemark::fit
