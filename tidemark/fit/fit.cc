#include "tidemark/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tidemark/compile/pipeline.h"
#include "tidemark/fit/bodies.h"
#include "tidemark/fit/rematerialize.h"
#include "tidemark/fit/separate.h"
#include "tidemark/layout/builder.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::fit {
namespace {

constexpr int kRungs =
    32;  // Targets between the usual program and the least that can be hoped for.

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

ModelOptions options_of(const compile::Interface& interface) {
  ModelOptions options;
  options.replaced_by.assign(interface.parameters.size(), -1);
  for (size_t k = 0; k < interface.results.size(); ++k)
    if (const int32_t updated = interface.results[k].updates; updated >= 0)
      options.replaced_by[static_cast<size_t>(updated)] = static_cast<int32_t>(k);
  for (const compile::Interface::Parameter& parameter : interface.parameters)
    options.donated.push_back(parameter.donated);
  return options;
}

passes::Scratch workspace_of(const Graph& graph, int32_t memory) {
  return compile::machine_of(compile::backend_of(memory)).scratch_in(graph);
}

// For the nodes that the graph has now.
decltype(ModelOptions::inside) inside_of(const Graph& graph, int32_t memory) {
  return with_bodies(workspace_of(graph, memory));
}

// Steps that free bytes run as soon as they can.
void order_again(Graph& graph, const compile::Interface& interface) {
  passes::order(graph, interface.updates(),
                {.scratch = workspace_of(graph, interface.home), .frees_early = true});
  graph = compact(std::move(graph));
}

}  // namespace

// An alternative with the model of its bytes.
class Frontier::Base {
 public:
  Base(Alternative alternative, const compile::Interface& interface)
      : graph_(std::move(alternative.graph)),
        change_(std::move(alternative.change)),
        home_(interface.home),
        cost_(cost_of(graph_, Graph::kBody)) {
    const compile::Layout layout = compile::layout(graph_, interface);
    peak_ = layout.program->peak_bytes();
    results_ = layout.program->result_bytes(layout.program->home);
    ModelOptions options = options_of(interface);
    options.inside = inside_of(graph_, interface.home);
    model_ = model_of(graph_, Graph::kBody, options);
    calibrate(model_, Timeline(model_).profile(), measured(layout, model_));
    least_ = results_ + Timeline(model_).least();
  }

  const Graph& graph() const { return graph_; }
  const std::string& change() const { return change_; }
  const Cost& cost() const { return cost_; }
  int64_t peak_bytes() const { return peak_; }
  int64_t least_bytes() const { return least_; }  // No schedule of these steps needs less.

  struct Attempt {
    bool reached = false;  // By the model.
    Graph graph;
    std::vector<Repeat> repeats;
  };
  Attempt drop_to(int64_t bytes) const {
    constexpr int kRounds = 4;
    const int64_t limit = bytes - results_;
    Attempt attempt;
    attempt.graph = graph_;
    RegionModel model = model_;
    for (int i = 0; i < kRounds; ++i) {
      Timeline timeline(model);
      attempt.reached = rematerialize(model, timeline, limit);
      if (attempt.reached || i + 1 == kRounds || !shrink_over(limit, timeline, model, attempt)) {
        for (const Repeat& each : apply(attempt.graph, Graph::kBody, model, timeline))
          attempt.repeats.push_back(each);
        break;
      }
    }
    attempt.graph = compact(std::move(attempt.graph));
    return attempt;
  }

 private:
  // Where control flow runs with too many bytes in use, its bodies get fewer. Returns whether any
  // has.
  bool shrink_over(int64_t limit, const Timeline& timeline, RegionModel& model,
                   Attempt& attempt) const {
    bool shrunk = false;
    for (size_t s = 0; s < model.steps.size(); ++s) {
      const int64_t excess = timeline.profile()[s] - limit;
      if (excess <= 0) continue;
      ModelStep& step = model.steps[s];
      const int64_t fewer = shrink_bodies(attempt.graph, step.node, excess,
                                          inside_of(attempt.graph, home_), attempt.repeats);
      step.inside.bytes -= fewer;
      shrunk = shrunk || fewer > 0;
    }
    return shrunk;
  }

  Graph graph_;
  std::string change_;
  int32_t home_;
  Cost cost_;
  int64_t peak_ = 0, results_ = 0, least_ = 0;
  RegionModel model_;
};

struct Frontier::Rung {
  const Base* base = nullptr;
  int64_t target = -1;  // Values of the base are dropped to this, by the model; -1: none is.
  int64_t limit = -1;   // And the layout is within this.
  int64_t peak_bytes = 0;
  Cost cost;
};

Frontier::Frontier(std::vector<Alternative> alternatives, const compile::Interface& interface)
    : interface_(interface) {
  for (Alternative& each : alternatives) {
    Graph early = each.graph, apart = each.graph;
    const std::string change = each.change;
    bases_.push_back(std::make_unique<Base>(std::move(each), interface));
    order_again(early, interface);
    bases_.push_back(std::make_unique<Base>(Alternative{std::move(early), change}, interface));
    if (!separate_sums(apart)) continue;
    order_again(apart, interface);
    bases_.push_back(std::make_unique<Base>(Alternative{std::move(apart), change}, interface));
  }
  const Base& usual = *bases_[0];
  rungs_.push_back({&usual, -1, -1, usual.peak_bytes(), usual.cost()});
  next_ = static_cast<double>(usual.peak_bytes());
}

Frontier::~Frontier() = default;

Cost Frontier::usual_cost() const { return bases_[0]->cost(); }
int64_t Frontier::usual_peak() const { return bases_[0]->peak_bytes(); }

compile::Layout Frontier::laid_out(const Graph& graph, int64_t enough_bytes) const {
  compile::Placements placements;
  placements.enough_bytes = enough_bytes;
  return compile::layout(graph, interface_, placements);
}

// The cheapest program found that needs at most `limit` bytes.
std::optional<Frontier::Rung> Frontier::climb_down(int64_t limit) const {
  constexpr int kTries = 4;
  std::optional<Rung> best;
  const auto consider = [&](const Rung& rung) {
    if (!best || rung.cost.seconds < best->cost.seconds) best = rung;
  };
  for (const std::unique_ptr<Base>& base : bases_) {
    if (base->peak_bytes() <= limit) {
      consider({base.get(), -1, -1, base->peak_bytes(), base->cost()});
      continue;
    }
    if (base->least_bytes() > limit || (best && base->cost().seconds >= best->cost.seconds))
      continue;
    // The layout may need a little more than the model says: buffers leave gaps.
    int64_t target = limit;
    for (int i = 0; i < kTries; ++i) {
      const Base::Attempt attempt = base->drop_to(target);
      const int64_t peak = laid_out(attempt.graph, limit).program->peak_bytes();
      if (peak <= limit) {
        Cost cost = base->cost();
        for (const Repeat& repeat : attempt.repeats) cost += repeat.cost;
        consider({base.get(), target, limit, peak, cost});
        break;
      }
      if (!attempt.reached) break;
      target -= peak - limit;
    }
  }
  return best;
}

// Targets go down in equal ratios until nothing is found any more; then the last step is halved a
// few times. Returns false at the floor.
bool Frontier::next_rung() {
  constexpr double kRatio = 0.94;
  constexpr int kMostFailures = 3, kHalvings = 4;
  if (failures_ > kMostFailures + kHalvings) return false;
  const int64_t reached = rungs_.back().peak_bytes;
  int64_t limit = 0;
  if (failures_ < kMostFailures) {
    next_ *= kRatio;
    limit = std::min(static_cast<int64_t>(next_), reached - 1);
  } else {
    limit = failed_ + (reached - failed_) / 2;
  }
  const std::optional<Rung> rung = limit > 0 && limit < reached ? climb_down(limit) : std::nullopt;
  if (rung) rungs_.push_back(*rung);
  if (failures_ >= kMostFailures) {
    if (!rung) failed_ = limit;
    ++failures_;
  } else if (rung) {
    failures_ = 0;
  } else if (failures_++ == 0) {
    failed_ = limit;
  }
  return true;
}

namespace {

std::string name_of(const Graph& graph, const Node& node) {
  if (node.op->flow != Flow::group) return std::string(node.op->name);
  return compile::group_name(graph, node);
}

// Nodes of one line and layer that run again are one decision.
std::vector<Decision> decisions_of(const Graph& graph, const std::vector<Repeat>& repeats) {
  std::map<std::tuple<std::string, unsigned, uint32_t, std::string>, Decision> found;
  for (const Repeat& repeat : repeats) {
    const Node& node = graph.nodes[static_cast<size_t>(repeat.node)];
    const std::string name = name_of(graph, node);
    Decision& each = found[{node.source.file, node.source.line, node.source.layer, name}];
    each.times = each.op.empty() ? 1 : each.times + 1;
    each.what = "computes " + name + " again";
    each.op = name;
    each.source = node.source;
    each.bytes += repeat.bytes;
    each.cost += repeat.cost;
  }
  std::vector<Decision> list;
  for (auto& [key, each] : found) list.push_back(std::move(each));
  std::stable_sort(list.begin(), list.end(),
                   [](const Decision& a, const Decision& b) { return a.bytes > b.bytes; });
  return list;
}

}  // namespace

Fit Frontier::build(const Rung& rung) const {
  Fit fit;
  std::vector<Repeat> repeats;
  if (rung.target < 0) {
    fit.layout = compile::layout(rung.base->graph(), interface_);
  } else {
    Base::Attempt attempt = rung.base->drop_to(rung.target);
    fit.layout = laid_out(attempt.graph, rung.limit);
    repeats = std::move(attempt.repeats);
  }
  if (!rung.base->change().empty()) fit.decisions.push_back({.what = rung.base->change()});
  for (Decision& each : decisions_of(rung.base->graph(), repeats))
    fit.decisions.push_back(std::move(each));
  fit.again = rung.cost - usual_cost();
  return fit;
}

std::optional<Fit> Frontier::at_most(int64_t bytes) {
  for (size_t i = 0;; ++i) {
    while (i >= rungs_.size())
      if (!next_rung()) return {};
    if (rungs_[i].peak_bytes <= bytes) return build(rungs_[i]);
  }
}

int64_t Frontier::floor_bytes() {
  while (next_rung()) {
  }
  return rungs_.back().peak_bytes;
}

Fit Frontier::floor() {
  floor_bytes();
  return build(rungs_.back());
}

std::vector<Frontier::Point> Frontier::points() {
  floor_bytes();
  std::vector<Point> points;
  double least = INFINITY;
  // From the floor up: a point that takes longer than one that needs less is dominated.
  for (auto rung = rungs_.rbegin(); rung != rungs_.rend(); ++rung) {
    const double seconds = rung->cost.seconds;
    if (seconds >= least) continue;
    least = seconds;
    points.push_back({rung->peak_bytes, rung->cost - usual_cost()});
  }
  std::reverse(points.begin(), points.end());
  return points;
}

}  // namespace tidemark::fit
