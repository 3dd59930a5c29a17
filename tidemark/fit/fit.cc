#include "tidemark/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tidemark/layout/builder.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::fit {
namespace {

constexpr double kRatio = 0.985;      // Of a target to the one before it.
constexpr double kFineRatio = 0.996;  // Of limits between two targets.
// Points of a trade-off: so many targets lie between two.
constexpr int kTargetsOfAPoint = 4;
constexpr int kHalvings = 4;
constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr size_t kFewSteps = 1000;  // Of programs whose orders are all compared.

compile::Layout laid_out(const Graph& graph, const compile::Interface& interface,
                         int64_t enough_bytes) {
  compile::Placements placements;
  placements.enough_bytes = enough_bytes;
  return compile::layout(graph, interface, placements);
}

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

Frontier::Frontier(std::vector<Alternative> alternatives, const compile::Interface& interface)
    : variants_(variants_of(std::move(alternatives), interface)),
      least_bytes_(fit::least_bytes(variants_)) {
  searched_[0] = as_it_is(*variants_[0]);
}

Cost Frontier::usual_cost() const { return variants_[0]->cost(); }
int64_t Frontier::usual_peak() const { return variants_[0]->peak_bytes(); }

// ---- one limit ----------------------------------------------------------------------------------

Frontier::RungRef Frontier::as_it_is(const Variant& variant) const {
  return std::make_shared<Rung>(
      Rung{&variant, {}, variant.peak_bytes(), variant.peak_bytes(), variant.cost()});
}

// A program of the variant that needs at most `limit` bytes and less work than `most_seconds`. The
// layout may need a little more than the model says, since buffers leave gaps: then the model gets
// a lower target.
Frontier::Attempt Frontier::attempt(const Variant& variant, Effort effort, int64_t limit,
                                    double most_seconds) const {
  constexpr int kTries = 4;
  int64_t target = limit;
  for (int i = 0; i < kTries; ++i) {
    std::optional<Variant::Found> found = variant.find(target, effort);
    if (!found || found->peak_bytes > limit) return {nullptr, found ? found->peak_bytes : kNone};
    Variant::Program program = variant.make(found->schedule);
    Cost cost = variant.cost();
    for (const Repeat& repeat : program.repeats) cost += repeat.cost;
    if (cost.seconds >= most_seconds) break;
    const compile::Layout layout =
        laid_out(compact(std::move(program.graph)), variant.interface(), limit);
    const int64_t peak = layout.program->peak_bytes();
    if (peak <= limit)
      return {std::make_shared<Rung>(Rung{&variant, std::move(found->schedule), limit, peak,
                                          with_work_of(cost, *layout.program)}),
              peak};
    target -= peak - limit;
  }
  return {nullptr, limit};
}

// The cheapest program found that needs at most `limit` bytes. Of a large program, the first order
// that fits is taken.
Frontier::RungRef Frontier::cheapest_within(int64_t limit) const {
  RungRef best;
  const Variant* closest = nullptr;
  int64_t least_bytes = kNone;
  const auto least = [&] { return best ? best->cost.seconds : INFINITY; };
  const auto try_with = [&](const Variant& variant, Effort effort) {
    if (!variant.allows(effort) || variant.cost().seconds >= least()) return;
    const Attempt made = attempt(variant, effort, limit, least());
    if (made.rung) best = made.rung;
    if (made.least_bytes >= least_bytes) return;
    least_bytes = made.least_bytes;
    closest = &variant;
  };
  for (const std::unique_ptr<Variant>& variant : variants_) {
    const bool is_settled =
        best && variant->steps() > kFewSteps && best->variant->change() == variant->change();
    if (variant->peak_bytes() <= limit) {
      if (variant->cost().seconds < least()) best = as_it_is(*variant);
    } else if (variant->least_bytes() <= limit && !is_settled) {
      try_with(*variant, Effort::all);
      try_with(*variant, Effort::greedy);
    }
  }
  if (best && best->schedule) closest = best->variant;
  if (closest && !(best && !best->schedule)) try_with(*closest, Effort::thorough);
  return best;
}

// ---- rungs --------------------------------------------------------------------------------------

int64_t Frontier::target(int number) const {
  return static_cast<int64_t>(static_cast<double>(usual_peak()) * std::pow(kRatio, number));
}

const Frontier::RungRef& Frontier::searched(int number) {
  if (const auto known = searched_.find(number); known != searched_.end()) return known->second;
  return searched_.emplace(number, cheapest_within(target(number))).first->second;
}

// The number of the lowest target that something is found for, by bisection.
int Frontier::lowest_rung() {
  if (lowest_) return *lowest_;
  int found = 0, fails = 1;
  while (target(fails) >= least_bytes_) ++fails;
  while (fails - found > 1) {
    const int middle = found + (fails - found) / 2;
    (searched(middle) ? found : fails) = middle;
  }
  lowest_ = found;
  return found;
}

// The program for a target. If the search finds none, one for a larger target may do. The first
// target is that of the usual program, which may need no bytes at all.
Frontier::RungRef Frontier::rung(int number) {
  const bool can_be = number == 0 || target(number) >= least_bytes_;
  if (can_be && searched(number)) return searched(number);
  const RungRef above = rung(std::min(number - 1, lowest_rung()));
  return above && above->peak_bytes <= target(number) ? above : nullptr;
}

// The program for a target, lowered until it lies between its target and the next one: budgets
// between two targets get the program of the lower one.
Frontier::RungRef Frontier::settled(int number) {
  RungRef found = rung(number);
  while (found && found->peak_bytes <= target(number + 1) && target(number + 1) >= least_bytes_)
    if (const RungRef next = rung(++number)) found = next;
  return found;
}

// Between the last target that something is found for and the next one: the least bytes that any
// step needs are tried if they lie there, then the gap is halved a few times.
const std::vector<Frontier::RungRef>& Frontier::last_rungs() {
  if (!last_.empty()) return last_;
  std::vector<RungRef> found = {settled(lowest_rung())};
  const auto try_at = [&](int64_t limit) {
    const RungRef next = cheapest_within(limit);
    if (next) found.push_back(next);
    return next != nullptr;
  };
  int64_t failed = target(lowest_rung() + 1);
  if (least_bytes_ > failed && least_bytes_ < found.back()->peak_bytes)
    failed = try_at(least_bytes_) ? found.back()->peak_bytes : least_bytes_;
  for (int i = 0; i < kHalvings && failed + 1 < found.back()->peak_bytes; ++i) {
    const int64_t limit = failed + (found.back()->peak_bytes - failed) / 2;
    if (!try_at(limit)) failed = limit;
  }
  last_ = std::move(found);
  return last_;
}

// Programs between a target and the next one, from the upper one down. Those of a small program lie
// far apart, and a budget between two targets may have room for one that neither target gives.
const std::vector<Frontier::RungRef>& Frontier::between(int number) {
  std::vector<RungRef>& list = between_[number];
  if (!list.empty()) return list;
  const int64_t end = target(number + 1);
  for (RungRef next = settled(number); next && next->peak_bytes > end;) {
    list.push_back(next);
    const auto limit = static_cast<int64_t>(static_cast<double>(next->peak_bytes) * kFineRatio);
    next = is_small() && number < lowest_rung() && limit > end ? cheapest_within(limit) : nullptr;
  }
  return list;
}

Frontier::RungRef Frontier::chosen(int64_t bytes) {
  if (usual_peak() <= bytes) return searched(0);
  int number = 0;
  while (target(number + 1) >= std::max(bytes, least_bytes_)) ++number;
  // The peak of a large program lies close below its target.
  const bool can_fit = variants_[0]->steps() <= kFewSteps ||
                       4 * (target(number) - bytes) <= target(number) - target(number + 1);
  if (can_fit)
    for (const RungRef& each : between(number))
      if (each->peak_bytes <= bytes) return each;
  if (const RungRef found = settled(number + 1); found && found->peak_bytes <= bytes) return found;
  for (const RungRef& last : last_rungs())
    if (last->peak_bytes <= bytes) return last;
  return nullptr;
}

// ---- what is asked ------------------------------------------------------------------------------

Fit Frontier::build(const Rung& rung) const {
  Fit fit;
  fit.again = rung.cost - usual_cost();
  if (!rung.variant->change().empty())
    fit.decisions.push_back({.what = rung.variant->change(), .cost = rung.variant->change_cost()});
  if (!rung.schedule) {
    fit.layout = compile::layout(rung.variant->graph().copy(), rung.variant->interface());
    return fit;
  }
  Variant::Program program = rung.variant->make(*rung.schedule);
  for (Decision& each : decisions_of(program.graph, program.repeats))
    fit.decisions.push_back(std::move(each));
  fit.layout = laid_out(compact(std::move(program.graph)), rung.variant->interface(), rung.limit);
  return fit;
}

std::optional<Fit> Frontier::at_most(int64_t bytes) {
  const RungRef rung = chosen(bytes);
  return rung ? std::optional(build(*rung)) : std::nullopt;
}

int64_t Frontier::floor_bytes() { return last_rungs().back()->peak_bytes; }

Fit Frontier::floor() { return build(*last_rungs().back()); }

std::vector<Frontier::Point> Frontier::points() {
  std::vector<RungRef> all = last_rungs();
  for (int number = 0; number < lowest_rung(); number += kTargetsOfAPoint)
    all.push_back(settled(number));
  // A budget of its bytes may give another program, if others lie close by.
  std::erase_if(all, [&](const RungRef& each) {
    return each == nullptr || chosen(each->peak_bytes) != each;
  });
  std::sort(all.begin(), all.end(), [](const RungRef& a, const RungRef& b) {
    return std::pair(a->peak_bytes, a->cost.seconds) < std::pair(b->peak_bytes, b->cost.seconds);
  });
  std::vector<Point> points;
  double least = INFINITY;
  // From the floor up: a point that takes longer than one that needs less is dominated.
  for (const RungRef& each : all) {
    if (each->cost.seconds >= least) continue;
    least = each->cost.seconds;
    points.push_back({each->peak_bytes, each->cost - usual_cost()});
  }
  std::reverse(points.begin(), points.end());
  return points;
}

}  // namespace tidemark::fit
