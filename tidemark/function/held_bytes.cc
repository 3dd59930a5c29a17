#include "tidemark/function/held_bytes.h"

#include <string>
#include <vector>

#include "tidemark/base/heap.h"

namespace tidemark::detail {
namespace {

template <class T>
int64_t of(const std::vector<T>& list) {
  return heap_bytes(list);
}
int64_t of(const std::string& text) { return heap_bytes(text); }
// Short lists are stored inline.
template <class T, int N>
int64_t of(const SmallVec<T, N>& list) {
  return list.size() > N ? static_cast<int64_t>(list.size() * sizeof(T)) : 0;
}

int64_t of(const Region& region) {
  return of(region.parameters) + of(region.nodes) + of(region.results);
}

int64_t of(const Graph& graph) {
  int64_t bytes = of(graph.name) + of(graph.nodes) + of(graph.regions);
  for (const Node& node : graph.nodes)
    bytes += of(node.results) + of(node.inputs) + of(node.regions);
  for (const Region& region : graph.regions) bytes += of(region);
  return bytes;
}

int64_t of(const passes::GradientHistory& history) {
  constexpr int64_t links = 4 * sizeof(void*);
  int64_t bytes = of(history.requests) + of(history.costs) +
                  static_cast<int64_t>(history.loops.size()) *
                      (links + static_cast<int64_t>(sizeof(*history.loops.begin())));
  for (const passes::GradientRequest& each : history.requests) {
    bytes += of(each.watched) + of(each.since) + of(each.seeds) + of(each.sources) +
             of(each.leaves) + of(each.nodes) + of(each.own_gradients) + of(each.found);
    for (const passes::GradientRequest::SourceGradient& found : each.found) bytes += of(found.rows);
  }
  for (const passes::LoopCost& cost : history.costs) bytes += of(cost.of_trip);
  return bytes;
}

template <class Place>
int64_t of_places(const std::vector<Place>& places) {
  int64_t bytes = of(places);
  for (const Place& place : places) bytes += of(place.name);
  return bytes;
}

int64_t of_tasks(const run::Program& program) {
  int64_t bytes = of(program.tasks);
  for (const auto& task : program.tasks) bytes += task->heap_bytes();
  return bytes;
}

}  // namespace

int64_t held_bytes(const TracedGraph& traced) {
  const compile::Interface& interface = traced.interface;
  return of(traced.graph) + of_places(interface.parameters) + of_places(interface.results) +
         of(traced.parameters) + of(traced.argument_leaves) + of(traced.read_back) +
         of(traced.recomputed) + of(traced.numbers) + of(traced.checks) + traced.sizes.bytes() +
         (traced.as_traced != nullptr ? of(*traced.as_traced) : 0) + of(traced.gradients);
}

namespace {

int64_t of(const run::Program& program) {
  int64_t bytes = static_cast<int64_t>(sizeof(program)) + of_places(program.steps) +
                  of(program.addresses) + of(program.loops) + of(program.maps) +
                  of_places(program.buffers) + of(program.offsets) + of(program.device_arenas) +
                  of_places(program.parameters) + of_places(program.results) + of_tasks(program);
  for (const run::Loop& loop : program.loops) bytes += of(loop.carries) + of(loop.walks);
  for (const run::Map& map : program.maps) bytes += of(map.walks);
  for (const run::Result& result : program.results) bytes += of(result.why_not_in_place);
  return bytes;
}

}  // namespace

int64_t held_bytes(const CompiledFunction& compiled) {
  return static_cast<int64_t>(sizeof(compiled)) + of(compiled.parameters) + of(compiled.variables) +
         of(*compiled.program) + heap_bytes(compiled.tasks(), [](const compile::TaskPlan& task) {
           return task.heap_bytes;
         });
}

int64_t held_bytes(const compile::Placements& placements) {
  int64_t bytes = of(placements.arenas) + of(placements.fusions.regions);
  for (const passes::Fusions::OfRegion& region : placements.fusions.regions)
    bytes += of(region.joins);
  for (const compile::Placements::Arena& arena : placements.arenas) {
    const plan::Relation& relation = arena.relation;
    bytes += of(arena.lifetimes) + of(relation.order) + of(relation.starts) + of(relation.below) +
             of(relation.alignment);
  }
  return bytes;
}

}  // namespace tidemark::detail
