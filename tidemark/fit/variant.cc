#include "tidemark/fit/variant.h"

#include <algorithm>

#include "tidemark/base/text.h"
#include "tidemark/fit/bodies.h"
#include "tidemark/fit/exact.h"
#include "tidemark/fit/rematerialize.h"
#include "tidemark/fit/timeline.h"
#include "tidemark/run/work.h"

namespace tidemark::fit {
namespace {

// The bytes of the arena in use at each step of the model, as laid out.
std::vector<int64_t> measured(const compile::Layout& layout, const RegionModel& model) {
  const run::Program& program = *layout.program;
  std::vector<int64_t> alive(program.steps.size() + 1);
  for (const run::Buffer& buffer : program.buffers) {
    if (buffer.arena != 0 || buffer.memory != program.home || buffer.bytes == 0) continue;
    alive[static_cast<size_t>(buffer.lower)] += buffer.bytes;
    alive[std::min(static_cast<size_t>(buffer.upper), alive.size() - 1)] -= buffer.bytes;
  }
  int64_t now = 0;
  for (int64_t& bytes : alive) bytes = now += bytes;
  std::vector<int64_t> most;
  for (const int32_t position : model.position) {
    const auto first = alive.begin() + layout.first_step[static_cast<size_t>(position)],
               end = alive.begin() + layout.first_step[static_cast<size_t>(position) + 1];
    most.push_back(first == end ? 0 : *std::max_element(first, end));
  }
  return most;
}

ModelOptions options_of(const Graph& graph, const compile::Interface& interface) {
  ModelOptions options;
  options.replaced_by.assign(interface.parameters.size(), -1);
  for (size_t k = 0; k < interface.results.size(); ++k)
    if (const int32_t updated = interface.results[k].updates; updated >= 0)
      options.replaced_by[static_cast<size_t>(updated)] = static_cast<int32_t>(k);
  for (const compile::Interface::Parameter& parameter : interface.parameters)
    options.donated.push_back(parameter.donated);
  options.inside = with_bodies(workspace_of(graph, interface));
  return options;
}

std::optional<compile::Interface> with_most_scratch(const compile::Interface& usual,
                                                    std::optional<int64_t> most_scratch) {
  if (!most_scratch) return {};
  compile::Interface own = usual;
  own.most_scratch = most_scratch;
  return own;
}

// Steps that run on fewer threads than the program has, and the time that they take longer.
struct FewerThreads {
  int64_t steps = 0;
  double seconds = 0;
};
FewerThreads on_fewer_threads(const run::Program& program) {
  FewerThreads found;
  for (const run::Step& step : program.steps) {
    if (step.threads == 0) continue;
    ++found.steps;
    found.seconds +=
        seconds_of(step.work) * (static_cast<double>(program.threads) / step.threads - 1);
  }
  return found;
}

}  // namespace

std::string both(const std::string& change, const std::string& other) {
  return change.empty() || other.empty() ? change + other : cat(change, "; ", other);
}

Cost with_work_of(const Cost& cost, const run::Program& program) {
  const run::StepWork work = run::planned_work(program);
  return {work.flop, work.bytes_moved, cost.seconds};
}

Graph OrderedGraph::copy() const {
  Graph made = *graph;
  for (size_t i = 0; i < order.size(); ++i) made.regions[i].nodes = order[i];
  return made;
}

OrderedGraph::Order order_of(const Graph& graph) {
  OrderedGraph::Order order;
  for (const Region& region : graph.regions) order.push_back(region.nodes);
  return order;
}

Variant::Variant(OrderedGraph graph, std::string change, const compile::Interface& usual,
                 std::optional<int64_t> most_scratch)
    : graph_(std::move(graph)),
      change_(std::move(change)),
      interface_(usual),
      own_(with_most_scratch(usual, most_scratch)) {
  if (graph_.order.empty())
    measure(*graph_.graph);
  else
    measure(graph_.copy());
}

// The model, and what the layout says.
void Variant::measure(const Graph& graph) {
  model_ = model_of(graph, Graph::kBody, options_of(graph, interface()));
  const compile::Layout layout = compile::layout(graph, interface());
  cost_ = with_work_of(cost_of(graph, Graph::kBody), *layout.program);
  if (own_) {
    const FewerThreads fewer = on_fewer_threads(*layout.program);
    change_ = both(change_, cat("runs ", fewer.steps, " steps on fewer threads, for less scratch"));
    change_cost_.seconds = fewer.seconds;
    cost_ += change_cost_;
  }
  peak_ = layout.program->peak_bytes();
  results_ = layout.program->result_bytes(layout.program->home);
  if (is_searchable(model_)) any_order_ = model_;
  calibrate(model_, Timeline(model_).profile(), measured(layout, model_));
  least_ = results_ + Timeline(model_).least();
}

bool Variant::allows(Effort effort) const {
  if (effort == Effort::all) return any_order_.has_value();
  return effort == Effort::greedy || steps() <= kMostToImprove;
}

std::optional<Variant::Found> Variant::find(int64_t bytes, Effort effort) const {
  if (effort != Effort::all) return drop_to(bytes - results_, effort);
  std::optional<std::vector<int32_t>> steps = least_work(*any_order_, bytes - results_);
  if (!steps) return {};
  return Found{{.steps = std::move(*steps)}, bytes};
}

// Where bodies of control flow have too many bytes in use, they get fewer.
Variant::Found Variant::drop_to(int64_t limit, Effort effort) const {
  constexpr int kRounds = 4;
  Found found;
  found.schedule.improves_bodies = effort == Effort::thorough;
  RegionModel model = model_;
  Graph shrunk;
  for (int i = 0;; ++i) {
    Timeline timeline(model);
    const bool is_within = rematerialize(model, timeline, limit);
    if (!is_within && i + 1 < kRounds && shrink_over(timeline, model, shrunk, found.schedule))
      continue;
    if (effort == Effort::thorough) improve(model, timeline);
    found.peak_bytes = results_ + timeline.peak();
    found.schedule.steps = steps_of(timeline);
    return found;
  }
}

// Returns whether any has fewer.
bool Variant::shrink_over(const Timeline& timeline, RegionModel& model, Graph& shrunk,
                          Schedule& schedule) const {
  const size_t before = schedule.shrinks.size();
  for (size_t s = 0; s < model.steps.size(); ++s) {
    ModelStep& step = model.steps[s];
    const int64_t excess = timeline.profile()[s] - timeline.limit();
    if (excess <= 0 || !has_bodies(graph_.graph->nodes[static_cast<size_t>(step.node)])) continue;
    if (shrunk.nodes.empty()) shrunk = graph_.copy();
    std::vector<Repeat> repeats;
    const int64_t fewer = shrink_bodies(shrunk, step.node, excess, schedule.improves_bodies,
                                        with_bodies(workspace_of(shrunk, interface())), repeats);
    step.inside.bytes -= fewer;
    if (fewer > 0) schedule.shrinks.push_back({step.node, excess});
  }
  return schedule.shrinks.size() > before;
}

Variant::Program Variant::make(const Schedule& schedule) const {
  Program program{graph_.copy(), {}};
  for (const auto& [node, bytes] : schedule.shrinks)
    shrink_bodies(program.graph, node, bytes, schedule.improves_bodies,
                  with_bodies(workspace_of(program.graph, interface())), program.repeats);
  for (const Repeat& each :
       apply(program.graph, Graph::kBody, model_, executions_of(model_, schedule.steps)))
    program.repeats.push_back(each);
  return program;
}

}  // namespace tidemark::fit
