// The optimum of a small training function: the least bytes that it can run in, and the least work
// within a budget.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/budgets/graph_game.h"
#include "tests/budgets/random_training.h"

namespace tidemark::testing {

struct Optimum {
  Graph graph;  // As the function runs without a budget.
  compile::Interface interface;
  int64_t peak_bytes = 0;   // Without a budget.
  int64_t floor_bytes = 0;  // The least that any schedule needs.
  GraphGame game;
  Exhaustive search;     // Of the game.
  PebbleSchedule least;  // A schedule with the least peak.
  // Schedules with the least work within budgets between the floor and the peak.
  struct Point {
    int64_t budget_bytes = 0;
    PebbleSchedule schedule;
  };
  std::vector<Point> points = {};

  // The graph with the steps of a schedule that `search` has found.
  Graph replayed(const PebbleSchedule& schedule) const {
    return testing::replayed(graph, game, search.pebbles(), schedule);
  }
};

// The points are a quarter, a half and three quarters of the way from the floor to the peak.
// Nothing if that is out of reach: a search visits too many states.
std::optional<Optimum> optimum_of(const RandomTraining& training, const WorkOf& work = simple_work);

}  // namespace tidemark::testing
