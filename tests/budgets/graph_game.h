// A small program as a pebble game, and a schedule of the game as a program.
#pragma once

#include <functional>
#include <vector>

#include "tests/budgets/exhaustive.h"
#include "tidemark/layout/layout.h"

namespace tidemark::testing {

// The game of a graph that is ready to be laid out. Its body has no control flow but fusion groups;
// no parameter is donated, and no result updates a Variable.
struct GraphGame {
  Game game;
  std::vector<int32_t> nodes;  // By step.
  std::vector<Value> values;   // By value of the game.
};

// The work of a node, at least 1.
using WorkOf = std::function<int64_t(const Graph& graph, const Node& node)>;
GraphGame game_of(const Graph& graph, const compile::Interface& interface, const WorkOf& work);

// The bytes that a node reads and writes, and the multiplications of a matrix product.
int64_t simple_work(const Graph& graph, const Node& node);

// The graph with the steps of the schedule: steps that run again are copies of nodes.
Graph replayed(const Graph& graph, const GraphGame& of, const std::vector<Pebble>& pebbles,
               const PebbleSchedule& schedule);

}  // namespace tidemark::testing
