#include "tidemark/fit/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "tidemark/layout/builder.h"
#include "tidemark/ops/op_def.h"

namespace tidemark::fit {
namespace {

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

// What the program of a schedule does to need fewer bytes.
std::vector<Decision> decisions_of(const Variant& variant, const Variant::Program& program) {
  std::vector<Decision> list;
  if (!variant.change().empty())
    list.push_back({.what = variant.change(), .cost = variant.change_cost()});
  for (Decision& each : decisions_of(program.graph, program.repeats))
    list.push_back(std::move(each));
  return list;
}

ProgramRef as_it_is(const Variant& variant) {
  return std::make_shared<FoundProgram>(
      FoundProgram{&variant, {}, variant.peak_bytes(), variant.peak_bytes(), variant.cost()});
}

}  // namespace

Search::Search(VariantList variants)
    : variants_(std::move(variants)),
      usual_(as_it_is(*variants_[0])),
      least_bytes_(fit::least_bytes(variants_)) {}

bool Search::has_few_steps() const { return variants_[0]->steps() <= kFewSteps; }

// A program of the variant that needs at most `limit` bytes and less work than `most_seconds`. The
// layout may need a little more than the model says, since buffers leave gaps: then the model gets
// a lower target.
Search::Attempt Search::attempt(const Variant& variant, Effort effort, int64_t limit,
                                double most_seconds) {
  constexpr int kTries = 4;
  int64_t target = limit;
  for (int i = 0; i < kTries; ++i) {
    std::optional<Variant::Found> found = variant.find(target, effort);
    if (!found || found->peak_bytes > limit) return {nullptr, found ? found->peak_bytes : kNone};
    Variant::Program program = variant.make(found->schedule);
    Cost cost = variant.cost();
    for (const Repeat& repeat : program.repeats) cost += repeat.cost;
    if (cost.seconds >= most_seconds) break;
    std::vector<Decision> decisions = decisions_of(variant, program);
    compile::Layout layout =
        laid_out(compact(std::move(program.graph)), variant.interface(), limit);
    const int64_t peak = layout.program->peak_bytes();
    if (peak <= limit) {
      latest_ = std::make_shared<FoundProgram>(FoundProgram{
          &variant, std::move(found->schedule), limit, peak, with_work_of(cost, *layout.program)});
      latest_made_ = {std::move(layout), std::move(decisions)};
      return {latest_, peak};
    }
    target -= peak - limit;
  }
  return {nullptr, limit};
}

ProgramRef Search::cheapest_within(int64_t limit) {
  ProgramRef best;
  // What was the best one so far may become it again: another way, or another order of the best.
  const Variant *closest = nullptr, *other_way = nullptr, *other_order = nullptr;
  int64_t least_bytes = kNone;
  const auto least = [&] { return best ? best->cost.seconds : INFINITY; };
  const auto try_with = [&](const Variant& variant, Effort effort) {
    if (!variant.allows(effort) || variant.cost().seconds >= least()) return;
    const Attempt made = attempt(variant, effort, limit, least());
    if (made.found && best && best->variant != &variant)
      (best->variant->change() == variant.change() ? other_order : other_way) = best->variant;
    if (made.found) best = made.found;
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
  if (best && !best->schedule) return best;
  const auto try_again = [&](const Variant* variant) {
    if (variant && variant != closest) try_with(*variant, Effort::thorough);
  };
  if (closest) try_with(*closest, Effort::thorough);
  try_again(other_way);
  if (other_order && other_order->change() == best->variant->change()) try_again(other_order);
  return best;
}

Search::Made Search::make(const FoundProgram& found) {
  if (&found == latest_.get()) {
    latest_ = nullptr;
    return std::exchange(latest_made_, {});
  }
  const Variant& variant = *found.variant;
  if (!found.schedule) {
    const Variant::Program as_it_is{variant.graph().copy(), {}};
    return {compile::layout(as_it_is.graph, variant.interface()), decisions_of(variant, as_it_is)};
  }
  Variant::Program program = variant.make(*found.schedule);
  std::vector<Decision> decisions = decisions_of(variant, program);
  return {laid_out(compact(std::move(program.graph)), variant.interface(), found.limit),
          std::move(decisions)};
}

}  // namespace tidemark::fit
