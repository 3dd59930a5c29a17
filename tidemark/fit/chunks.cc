#include "tidemark/fit/chunks.h"

#include <algorithm>

#include "tidemark/ops/op_def.h"

namespace tidemark::fit {

bool has_automatic_chunk(const run::Program& program) {
  return std::any_of(program.maps.begin(), program.maps.end(),
                     [](const run::Map& map) { return map.automatic; });
}

Graph with_chunk(Graph graph, int64_t bodies) {
  for (Node& node : graph.nodes) {
    if (node.op == nullptr || node.op->flow != Flow::map) continue;
    Attrs::Reader read = node.attrs.read();
    const int64_t slices = read.integer();
    const Dim trips = read.size(), alive = read.size();
    if (!alive.is_any()) continue;
    const std::span<const int64_t> why = read.integers();
    node.attrs = Attrs().add(slices).add(trips).add(Dim(bodies)).add(why);
  }
  return graph;
}

std::optional<compile::Layout> most_bodies(const Graph& graph, const compile::Interface& interface,
                                           int64_t bytes) {
  const auto made = [&](int64_t bodies) {
    compile::Interface with = interface;
    with.bodies_at_once = bodies;
    compile::Placements placements;
    placements.enough_bytes = bytes;
    return compile::layout(graph, with, placements);
  };
  const auto fits = [&](const compile::Layout& layout) {
    return layout.program->peak_bytes() <= bytes;
  };
  compile::Layout best = made(2);
  // One body alone has the scratch of all threads, which may be more than that of two.
  if (!fits(best)) {
    best = made(1);
    return fits(best) ? std::optional(std::move(best)) : std::nullopt;
  }
  int64_t most = 2, above = 3;
  for (const run::Map& map : best.program->maps)
    if (map.automatic) above = std::max(above, map.trips + 1);
  const auto consider = [&](int64_t bodies) {
    compile::Layout next = made(bodies);
    if (!fits(next)) {
      above = bodies;
      return;
    }
    most = bodies;
    best = std::move(next);
  };
  consider(above - 1);
  while (above - most > 1) consider(most + (above - most) / 2);
  return best;
}

}  // namespace tidemark::fit
