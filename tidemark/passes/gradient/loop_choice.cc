// Chooses what a loop keeps for its gradient, and with that the kind of gradient.
#include "tidemark/base/error.h"
#include "tidemark/passes/gradient/loop_gradient.h"
#include "tidemark/types/size.h"

namespace tidemark::passes {

SaveChoice automatic_choice(const LoopCost& cost, int64_t most_kept, const SizeValue& value) {
  if (cost.trips.is_any()) return {LoopAttrs::Save::slots, 32};
  const int64_t trips = std::max<int64_t>(1, value(cost.trips));
  int64_t bytes = 0;
  for (const TensorType& type : cost.of_trip) {
    int64_t elements = 1;
    for (const Dim size : type.shape) elements *= value(size);
    bytes += elements * size_of(type.dtype);
  }
  if (bytes <= most_kept / trips) return {LoopAttrs::Save::all, 0};
  int64_t slots = 1;
  while (slots * slots < trips) ++slots;
  return {LoopAttrs::Save::slots, slots};
}

SaveChoice thinned_choice(const LoopCost& cost, int thinned, const SizeValue& value) {
  constexpr int64_t unbounded = 32, fewest = 4;
  const int64_t trips = cost.trips.is_any() ? 2 * unbounded : value(cost.trips);
  return {LoopAttrs::Save::slots, std::max(fewest, trips >> thinned)};
}

namespace {

SaveChoice choose(const ControlQuestion& asked, const Node& loop) {
  const GradientSettings& settings = asked.settings;
  LoopCost cost{.trips = LoopAttrs(loop).trips, .of_trip = residuals_of_trip(asked.graph(), loop)};
  const auto value = [&](Dim size) {
    return settings.sizes != nullptr && size.is_traced() ? settings.sizes->hint(size)
                                                         : size.known_or(1);
  };
  cost.chosen = settings.thinned ? thinned_choice(cost, *settings.thinned, value)
                                 : automatic_choice(cost, settings.most_kept, value);
  if (settings.history != nullptr && !cost.trips.is_any()) settings.history->costs.push_back(cost);
  return cost.chosen;
}

// Records a loop of the trace before its first gradient changes it.
void note_before(const ControlQuestion& asked, const Node& loop, const LoopAttrs& attrs) {
  const GradientSettings& settings = asked.settings;
  if (settings.history == nullptr || asked.number >= settings.first_made) return;
  if (settings.is_inside) settings.history->can_repeat = false;
  settings.history->loops.try_emplace(
      asked.number,
      GradientHistory::LoopBefore{
          .told = {attrs.save, attrs.amount},
          .results = loop.results.size(),
          .body_results =
              asked.graph().regions[static_cast<size_t>(loop.regions[0])].results.size()});
}

}  // namespace

ValueGradients loop_gradient(const ControlQuestion& asked) {
  Node& node = asked.graph().nodes[static_cast<size_t>(asked.number)];
  LoopAttrs attrs(node);
  note_before(asked, node, attrs);
  const auto& save_at = asked.settings.save_at;
  const bool is_at_line = save_at && is_same_line(node.source, save_at->at);
  if (is_at_line || attrs.save == LoopAttrs::Save::automatic) {
    const SaveChoice chosen = is_at_line ? save_at->choice : choose(asked, node);
    attrs.save = chosen.save;
    attrs.amount = chosen.amount;
    node.attrs = attrs.attrs();
  }
  // Without carries there is no state to restart from.
  if (attrs.carries == 0) attrs.save = LoopAttrs::Save::all;
  const bool needs_bound =
      attrs.save == LoopAttrs::Save::all || attrs.save == LoopAttrs::Save::every;
  if (needs_bound && attrs.trips.is_any()) {
    throw UserError(
        cat("gradient: save = ", attrs.save == LoopAttrs::Save::all ? "all" : "every",
            " takes memory in proportion to the number of trips, which has no bound in this loop"),
        asked.at, "give max_iterations, or save = td::Save::slots(32)");
  }
  const SaveChoice choice = attrs.save == LoopAttrs::Save::bytes
                                ? asked.settings.choose_within(asked, attrs.amount)
                                : SaveChoice{attrs.save, attrs.amount};
  // A gradient that will itself be differentiated is always a reverse_loop, so that its bits do not
  // depend on what is kept.
  const bool is_stacked =
      choice.save == LoopAttrs::Save::all && (attrs.carries == 0 || !asked.settings.is_recorded);
  return is_stacked ? stacked_gradient(asked) : checkpointed_gradient(asked, choice);
}

}  // namespace tidemark::passes
