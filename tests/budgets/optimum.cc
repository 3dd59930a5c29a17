#include "tests/budgets/optimum.h"

#include "tidemark/ops/text/text.h"

namespace tidemark::testing {

// Nine of ten functions need far fewer.
constexpr int64_t kMostStates = 100'000;

std::optional<Optimum> optimum_of(const RandomTraining& training, const WorkOf& work) try {
  training.function.plan(training.specs());
  Graph graph = parse_graph(training.function.text(), "random training");
  compile::Interface interface;
  interface.parameters.resize(graph.body().parameters.size());
  interface.results.resize(graph.body().results.size());
  const int64_t peak_bytes = compile::layout(graph, interface).program->peak_bytes();
  GraphGame game = game_of(graph, interface, work);
  Exhaustive search(game.game, kMostStates);
  PebbleSchedule least = search.least_peak();
  Optimum found{.graph = std::move(graph),
                .interface = std::move(interface),
                .peak_bytes = peak_bytes,
                .floor_bytes = least.peak_bytes,
                .game = std::move(game),
                .search = std::move(search),
                .least = std::move(least)};
  for (const int64_t quarter : {1, 2, 3}) {
    const int64_t budget = found.floor_bytes + (found.peak_bytes - found.floor_bytes) * quarter / 4;
    found.points.push_back({budget, found.search.least_work(budget).value()});
  }
  return found;
} catch (const TooManyStates&) {
  return {};
}

}  // namespace tidemark::testing
