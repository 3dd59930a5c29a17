#include "tidemark/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tidemark/compile/pipeline.h"
#include "tidemark/fit/bodies.h"
#include "tidemark/fit/exact.h"
#include "tidemark/fit/rematerialize.h"
#include "tidemark/fit/separate.h"
#include "tidemark/layout/builder.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/run/work.h"

namespace tidemark::fit {
namespace {

constexpr size_t kFewSteps = 256;  // Of programs that get several tries.
// Of a target to the one before it.
constexpr double kRatio = 0.94, kSmallRatio = 0.985;
constexpr int kMostFailures = 3;
constexpr int kHalvings = 4;
// A program that takes this many times the work of the usual one is not compared with others.
constexpr double kEnough = 1.02;

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

passes::Scratch workspace_of(const Graph& graph, const compile::Interface& interface) {
  return compile::machine_of(compile::backend_of(interface.home), interface.most_scratch)
      .scratch_in(graph);
}

// For the nodes that the graph has now.
decltype(ModelOptions::inside) inside_of(const Graph& graph, const compile::Interface& interface) {
  return with_bodies(workspace_of(graph, interface));
}

// Steps that free bytes run as soon as they can.
Graph order_again(Graph graph, const compile::Interface& interface,
                  passes::OrderOptions::Only only = passes::OrderOptions::Only::best) {
  passes::order(graph, interface.updates(),
                {.scratch = workspace_of(graph, interface), .frees_early = true, .only = only});
  return compact(std::move(graph));
}

// What the program will compute and move, as its run will count it.
Cost with_work_of(Cost cost, const run::Program& program) {
  const run::StepWork work = run::planned_work(program);
  return {work.flop, work.bytes_moved, cost.seconds};
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

struct Frontier::Rung {
  // How the program is made of its base.
  enum class Way : uint8_t { as_it_is, dropped, searched };

  const Base* base = nullptr;
  Way way = Way::as_it_is;
  int64_t target = 0;  // For the model.
  int64_t limit = 0;   // For the layout.
  int64_t peak_bytes = 0;
  Cost cost;
};

// An alternative with the model of its bytes.
class Frontier::Base {
 public:
  Base(Alternative alternative, bool is_searched, const compile::Interface& usual)
      : graph_(std::move(alternative.graph)), change_(std::move(alternative.change)) {
    if (alternative.most_scratch) {
      own_ = usual;
      own_->most_scratch = alternative.most_scratch;
    }
    interface_ = own_ ? &*own_ : &usual;
    const compile::Layout layout = compile::layout(graph_, *interface_);
    peak_ = layout.program->peak_bytes();
    results_ = layout.program->result_bytes(layout.program->home);
    cost_ = with_work_of(cost_of(graph_, Graph::kBody), *layout.program);
    if (own_) {
      const FewerThreads fewer = on_fewer_threads(*layout.program);
      change_ = cat("runs ", fewer.steps, " steps on fewer threads, for less scratch");
      change_cost_.seconds = fewer.seconds;
      cost_ += change_cost_;
    }
    ModelOptions options = options_of(*interface_);
    options.inside = inside_of(graph_, *interface_);
    model_ = model_of(graph_, Graph::kBody, options);
    is_searched_ = is_searched && is_searchable(model_);
    if (is_searched_) searched_model_ = model_;
    calibrate(model_, Timeline(model_).profile(), measured(layout, model_));
    least_ = results_ + Timeline(model_).least();
  }

  const Graph& graph() const { return graph_; }
  // Whether all schedules are searched; the search does not depend on the order of the graph.
  bool is_searched() const { return is_searched_; }
  const compile::Interface& interface() const { return *interface_; }
  const std::string& change() const { return change_; }
  const Cost& change_cost() const { return change_cost_; }
  const Cost& cost() const { return cost_; }
  int64_t peak_bytes() const { return peak_; }
  int64_t least_bytes() const { return least_; }  // No schedule of these steps needs less.

  struct Attempt {
    bool reached = false;  // By the model.
    Graph graph;           // To be compacted; until then it has the nodes that the repeats name.
    std::vector<Repeat> repeats;
  };
  // For programs of a few steps: the least work of all schedules, if the search ends.
  std::optional<Attempt> search_to(int64_t bytes) const {
    const auto steps = least_work(searched_model_, bytes - results_);
    if (!steps) return {};
    Attempt attempt{.reached = true, .graph = graph_, .repeats = {}};
    attempt.repeats = apply(attempt.graph, Graph::kBody, model_, executions_of(model_, *steps));
    return attempt;
  }
  std::optional<Attempt> make(Rung::Way way, int64_t bytes) const {
    if (way == Rung::Way::searched) return search_to(bytes);
    return drop_to(bytes);
  }

 private:
  Attempt drop_to(int64_t bytes) const {
    constexpr int kRounds = 4;
    const int64_t limit = bytes - results_;
    Attempt attempt;
    attempt.graph = graph_;
    RegionModel model = model_;
    for (int i = 0; i < kRounds; ++i) {
      Timeline timeline(model);
      attempt.reached = drop_in(model, timeline, limit);
      if (attempt.reached || i + 1 == kRounds || !shrink_over(limit, timeline, model, attempt)) {
        for (const Repeat& each :
             apply(attempt.graph, Graph::kBody, model, executions_of(model, timeline)))
          attempt.repeats.push_back(each);
        break;
      }
    }
    return attempt;
  }

  // A small program gets several tries, of which the one with the least work is taken.
  static bool drop_in(const RegionModel& model, Timeline& timeline, int64_t limit) {
    bool reached = rematerialize(model, timeline, limit);
    if (model.steps.size() > kFewSteps) return reached;
    for (const double power : {1.0, 0.5, 2.0, 8.0}) {
      Timeline other(model);
      const bool also = rematerialize(model, other, limit, {.relief_power = power, .nearly = 1});
      if (also < reached || (also == reached && other.seconds_again() >= timeline.seconds_again()))
        continue;
      timeline = std::move(other);
      reached = also;
    }
    return reached;
  }

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
                                          inside_of(attempt.graph, *interface_), attempt.repeats);
      step.inside.bytes -= fewer;
      shrunk = shrunk || fewer > 0;
    }
    return shrunk;
  }

  Graph graph_;
  std::string change_;
  std::optional<compile::Interface> own_;  // With a limit on scratch.
  const compile::Interface* interface_ = nullptr;
  Cost change_cost_, cost_;
  int64_t peak_ = 0, results_ = 0, least_ = 0;
  bool is_searched_ = false;
  RegionModel model_;
  RegionModel searched_model_;  // Without corrections, which hold for one order only.
};

Frontier::Frontier(const std::vector<Alternative>& alternatives,
                   const compile::Interface& interface)
    : interface_(interface) {
  add({alternatives[0].graph}, true);
  const bool has_threads = compile::backend_of(interface.home).machine().threads > 1;
  for (const Alternative& each : alternatives) {
    if (is_small()) {
      using Only = passes::OrderOptions::Only;
      for (const Only only : {Only::greedy, Only::depth_first, Only::depth_first_from_last})
        add({order_again(each.graph, interface, only), each.change}, false);
    }
    add({order_again(each.graph, interface), each.change}, &each != &alternatives[0]);
    Graph apart = each.graph;
    if (separate_sums(apart)) {
      add({apart, each.change}, false);
      add({order_again(std::move(apart), interface), each.change}, true);
    }
    Graph in_turn = each.graph;
    if (run_bodies_in_turn(in_turn) && has_threads)
      add({order_again(std::move(in_turn), interface), "maps run one body at a time"}, false);
  }
  if (has_threads) add_with_less_scratch(alternatives[0].graph);
  const Base& usual = *bases_[0];
  rungs_[0] = Rung{&usual, Rung::Way::as_it_is, 0, 0, usual.peak_bytes(), usual.cost()};
}

void Frontier::add(Alternative alternative, bool is_searched) {
  bases_.push_back(std::make_unique<Base>(std::move(alternative), is_searched, interface_));
}

namespace {

// The most scratch that any step needs.
int64_t most_scratch_of(const Graph& graph, const compile::Interface& interface,
                        std::optional<int64_t> limit) {
  compile::Interface with = interface;
  with.most_scratch = limit;
  int64_t most = 0;
  for (const run::Buffer& buffer : compile::layout(graph, with).program->buffers)
    if (buffer.byte_class == ByteClass::workspace) most = std::max(most, buffer.bytes);
  return most;
}

}  // namespace

// Once with the threads that no step needs more scratch for than the largest of one thread's, once
// with one thread for each step that has scratch. In large programs of which scratch is a small
// part that would take more time than it is worth.
void Frontier::add_with_less_scratch(const Graph& graph) {
  constexpr int64_t kSmallPart = 100;
  const int64_t all = most_scratch_of(graph, interface_, {}),
                one = most_scratch_of(graph, interface_, 0);
  if (all == one || (!is_small() && (all - one) * kSmallPart <= least_bytes())) return;
  Graph in_turn = graph;
  run_bodies_in_turn(in_turn);
  const Graph ordered = order_again(std::move(in_turn), interface_);
  for (const int64_t most : {one, int64_t{0}}) add({.graph = ordered, .most_scratch = most}, true);
}

bool Frontier::is_small() const { return bases_[0]->is_searched(); }

Frontier::~Frontier() = default;

Cost Frontier::usual_cost() const { return bases_[0]->cost(); }
int64_t Frontier::usual_peak() const { return bases_[0]->peak_bytes(); }

compile::Layout Frontier::laid_out(const Base& base, const Graph& graph, int64_t enough_bytes) {
  compile::Placements placements;
  placements.enough_bytes = enough_bytes;
  return compile::layout(graph, base.interface(), placements);
}

// The layout may need a little more than the model says, since buffers leave gaps: then the model
// gets a lower target.
template <class Way>
std::optional<Frontier::Rung> Frontier::attempt(const Base& base, Way way, int64_t limit) const {
  constexpr int kTries = 4;
  int64_t target = limit;
  for (int i = 0; i < kTries; ++i) {
    std::optional<Base::Attempt> made = base.make(way, target);
    if (!made) return {};
    const compile::Layout layout = laid_out(base, compact(std::move(made->graph)), limit);
    const int64_t peak = layout.program->peak_bytes();
    if (peak <= limit) {
      Cost cost = base.cost();
      for (const Repeat& repeat : made->repeats) cost += repeat.cost;
      return Rung{&base, way, target, limit, peak, with_work_of(cost, *layout.program)};
    }
    if (!made->reached) return {};
    target -= peak - limit;
  }
  return {};
}

// The cheapest program found that needs at most `limit` bytes.
std::optional<Frontier::Rung> Frontier::climb_down(int64_t limit) const {
  std::optional<Rung> best;
  const auto consider = [&](const std::optional<Rung>& rung) {
    if (rung && (!best || rung->cost.seconds < best->cost.seconds)) best = rung;
  };
  for (const std::unique_ptr<Base>& base : bases_) {
    if (base->peak_bytes() <= limit) {
      consider(Rung{base.get(), Rung::Way::as_it_is, 0, 0, base->peak_bytes(), base->cost()});
      continue;
    }
    const bool is_cheap = best && best->cost.seconds <= kEnough * usual_cost().seconds;
    if (base->least_bytes() > limit || is_cheap ||
        (best && base->cost().seconds >= best->cost.seconds))
      continue;
    if (base->is_searched()) consider(attempt(*base, Rung::Way::searched, limit));
    consider(attempt(*base, Rung::Way::dropped, limit));
  }
  return best;
}

int64_t Frontier::target(int number) const {
  const double ratio = is_small() ? kSmallRatio : kRatio;
  return static_cast<int64_t>(static_cast<double>(usual_peak()) * std::pow(ratio, number));
}

const std::optional<Frontier::Rung>& Frontier::rung(int number) {
  if (const auto known = rungs_.find(number); known != rungs_.end()) return known->second;
  return rungs_.emplace(number, climb_down(target(number))).first->second;
}

int64_t Frontier::least_bytes() const {
  int64_t least = bases_[0]->least_bytes();
  for (const std::unique_ptr<Base>& base : bases_) least = std::min(least, base->least_bytes());
  return std::max<int64_t>(1, least);
}

// Whether nothing is found for a target and those after it.
bool Frontier::is_bottom(int number) {
  for (int i = 0; i < kMostFailures && target(number + i) >= least_bytes(); ++i)
    if (rung(number + i)) return false;
  return true;
}

// The program for a target, which lies between it and the next one unless there is none: then
// budgets between two targets get the program of the lower one.
std::optional<Frontier::Rung> Frontier::settled(int number) {
  std::optional<Rung> found;
  for (; target(number) >= least_bytes(); ++number) {
    if (const std::optional<Rung>& next = rung(number))
      found = next;
    else if (found || is_bottom(number))
      return found;
    if (found && found->peak_bytes > target(number + 1)) return found;
  }
  return found;
}

// The number of the lowest target that something is found for. A small program has many targets:
// then the number is bisected.
int Frontier::lowest_rung() {
  int found = 0;
  if (!is_small()) {
    for (int number = 1; !is_bottom(number); ++number)
      if (rung(number)) found = number;
    return found;
  }
  int fails = 1;
  while (target(fails) >= least_bytes()) ++fails;
  while (fails - found > 1) {
    const int middle = found + (fails - found) / 2;
    (rung(middle) ? found : fails) = middle;
  }
  return found;
}

// Below the last target that something is found for: the least bytes that any step needs are tried,
// then the gap is halved a few times.
const std::vector<Frontier::Rung>& Frontier::last_rungs() {
  if (last_) return *last_;
  std::vector<Rung> found = {*rung(lowest_rung())};
  const auto try_at = [&](int64_t limit) {
    const std::optional<Rung> next = climb_down(limit);
    if (next) found.push_back(*next);
    return next.has_value();
  };
  int64_t failed = least_bytes();
  if (failed < found.back().peak_bytes && !try_at(failed)) {
    for (int i = 0; i < kHalvings && failed + 1 < found.back().peak_bytes; ++i) {
      const int64_t limit = failed + (found.back().peak_bytes - failed) / 2;
      if (!try_at(limit)) failed = limit;
    }
  }
  last_ = std::move(found);
  return *last_;
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
  if (!rung.base->change().empty())
    fit.decisions.push_back({.what = rung.base->change(), .cost = rung.base->change_cost()});
  if (rung.way == Rung::Way::as_it_is) {
    fit.layout = compile::layout(rung.base->graph(), rung.base->interface());
  } else {
    std::optional<Base::Attempt> made = rung.base->make(rung.way, rung.target);
    for (Decision& each : decisions_of(made->graph, made->repeats))
      fit.decisions.push_back(std::move(each));
    fit.layout = laid_out(*rung.base, compact(std::move(made->graph)), rung.limit);
  }
  fit.again = rung.cost - usual_cost();
  return fit;
}

std::optional<Frontier::Rung> Frontier::chosen(int64_t bytes) {
  if (usual_peak() <= bytes) return rung(0);
  int number = 0;
  while (target(number + 1) >= bytes && target(number + 1) > 0) ++number;
  for (const int candidate : {number, number + 1}) {
    const std::optional<Rung> found = settled(candidate);
    if (found && found->peak_bytes <= bytes) return found;
  }
  for (const Rung& last : last_rungs())
    if (last.peak_bytes <= bytes) return last;
  return {};
}

std::optional<Fit> Frontier::at_most(int64_t bytes) {
  const std::optional<Rung> rung = chosen(bytes);
  return rung ? std::optional(build(*rung)) : std::nullopt;
}

int64_t Frontier::floor_bytes() { return last_rungs().back().peak_bytes; }

Fit Frontier::floor() { return build(last_rungs().back()); }

std::vector<Frontier::Point> Frontier::points() {
  std::vector<Rung> all;
  for (int number = 0; number == 0 || !is_bottom(number); ++number)
    if (const std::optional<Rung>& found = rung(number)) all.push_back(*found);
  all.insert(all.end(), last_rungs().begin(), last_rungs().end());
  // A budget of its bytes may give another program, if others lie close by.
  std::erase_if(all, [&](const Rung& each) {
    const std::optional<Rung> given = chosen(each.peak_bytes);
    return !given || given->peak_bytes != each.peak_bytes ||
           given->cost.seconds != each.cost.seconds;
  });
  std::sort(all.begin(), all.end(), [](const Rung& a, const Rung& b) {
    return std::pair(a.peak_bytes, a.cost.seconds) < std::pair(b.peak_bytes, b.cost.seconds);
  });
  std::vector<Point> points;
  double least = INFINITY;
  // From the floor up: a point that takes longer than one that needs less is dominated.
  for (const Rung& each : all) {
    if (each.cost.seconds >= least) continue;
    least = each.cost.seconds;
    points.push_back({each.peak_bytes, each.cost - usual_cost()});
  }
  std::reverse(points.begin(), points.end());
  return points;
}

}  // namespace tidemark::fit
