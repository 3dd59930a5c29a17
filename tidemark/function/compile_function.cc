#include "tidemark/function/compile_function.h"

#include <algorithm>
#include <optional>

#include "tidemark/compile/pipeline.h"
#include "tidemark/fit/chunks.h"
#include "tidemark/function/in_bf16.h"
#include "tidemark/function/program_key.h"
#include "tidemark/grad/save_choice.h"
#include "tidemark/layout/emit.h"
#include "tidemark/passes/gradient/loop_gradient.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {

void CompiledFunction::emit() const {
  if (is_emitted()) return;
  compile::emit(layout_);
  is_emitted_.store(true, std::memory_order_release);
}

namespace {

// The graph before passes.
Graph as_traced(const TracedGraph& traced, std::span<const int64_t> sizes) {
  if (traced.as_traced != nullptr) return *traced.as_traced;
  if (sizes.empty()) return traced.graph;
  return compile::at_sizes(traced.graph, traced.sizes, traced.sizes.evaluate(sizes));
}

// Whether loops keep at these sizes what the trace chose.
bool keep_the_same(const TracedGraph& traced, std::span<const int64_t> sizes) {
  if (sizes.empty() || !traced.gradients.has_choices()) return true;
  const std::vector<int64_t> values = traced.sizes.evaluate(sizes);
  const auto value = [&](Dim size) { return traced.sizes.value_of(size, values); };
  const std::vector<passes::LoopCost>& costs = traced.gradients.costs;
  return std::all_of(costs.begin(), costs.end(), [&](const passes::LoopCost& cost) {
    return passes::automatic_choice(cost, passes::kMostKept, value) == cost.chosen;
  });
}

// Nothing where the gradients have to stay as they are.
std::optional<Graph> made_again(const TracedGraph& traced, std::span<const int64_t> sizes,
                                const KeptChoice& choice) {
  SizeTable known;
  return passes::differentiate_again(as_traced(traced, sizes), traced.gradients,
                                     {.choose_within = choice_by_plans(known, traced.fuse),
                                      .thinned = choice.thinned,
                                      .save_at = choice.save_at},
                                     choice.rewritten);
}

}  // namespace

SizedGraph graph_at(const TracedGraph& traced, std::span<const int64_t> sizes) {
  if (!keep_the_same(traced, sizes))
    if (std::optional<Graph> graph = made_again(traced, sizes, {}))
      return {std::move(*graph), false};
  return {as_traced(traced, sizes), true};
}

namespace {

void check_sizes(const TracedGraph& traced, std::span<const int64_t> sizes) {
  for (const NumberCheck& check : traced.checks) {
    if (check.leaf >= 0) continue;
    const int64_t size = traced.sizes.value_of(check.size, traced.sizes.evaluate(sizes));
    check_fits(size, check.dtype, check.op, check.at);
  }
}

// By parameter: whether a result, or the new value of a Variable, aliases it.
struct ParameterUse {
  ParameterUse(const TracedGraph& traced, const run::Program& program)
      : is_result(program.parameters.size()), is_updated(program.parameters.size()) {
    for (size_t k = 0; k < program.results.size(); ++k) {
      if (program.results[k].parameter < 0) continue;
      const auto parameter = static_cast<size_t>(program.results[k].parameter);
      is_result[parameter] = true;
      if (traced.interface.results[k].updates >= 0) is_updated[parameter] = true;
    }
  }
  std::vector<bool> is_result, is_updated;
};

// The source of each parameter in a call, computed once.
void prepare_calls(const TracedGraph& traced, CompiledFunction& compiled) {
  using Kind = CompiledFunction::Parameter::Kind;
  const ParameterUse given(traced, *compiled.program);
  size_t argument = 0;
  int32_t variables = 0;
  for (size_t i = 0; i < traced.parameters.size(); ++i) {
    CompiledFunction::Parameter& made = compiled.parameters.emplace_back();
    if (traced.parameters[i].variable != nullptr) {
      made.kind = Kind::variable;
      made.in_place = given.is_updated[i];
      made.variable = variables++;
    } else if (!traced.parameters[i].is_argument()) {
      made.kind = Kind::capture;
    } else {
      made.leaf = traced.argument_leaves[argument++];
      if (!traced.parameters[i].weak || given.is_result[i]) continue;
      made.kind = Kind::number;
      ++compiled.numbers;
    }
  }
  std::vector<bool> written(traced.parameters.size());
  for (const compile::Interface::Result& result : traced.interface.results)
    if (result.updates >= 0) written[static_cast<size_t>(result.updates)] = true;
  for (size_t i = 0; i < traced.parameters.size(); ++i)
    if (VariableState* const variable = traced.parameters[i].variable.get())
      compiled.variables.push_back({variable, written[i]});
  std::sort(compiled.variables.begin(), compiled.variables.end(),
            [](const auto& a, const auto& b) { return a.variable->id < b.variable->id; });
}

}  // namespace

namespace {

compile::Layout laid_out(const TracedGraph& traced, Graph graph,
                         const compile::Interface& interface, compile::Placements& placements) {
  const Graph optimised = compile::optimise(
      std::move(graph), compile::pass_options(interface, traced.fuse, &placements.fusions), {},
      compile::backend_of(interface.home));
  return compile::layout(optimised, interface, placements);
}

// Where loops keep other things than in the trace, nodes and buffers are others, and lie by
// themselves.
compile::Layout laid_out(const TracedGraph& traced, std::span<const int64_t> sizes,
                         const compile::Interface& interface, compile::Placements& placements) {
  if (sizes.empty()) return compile::layout(traced.graph, interface, placements);
  SizedGraph sized = graph_at(traced, sizes);
  compile::Placements own;
  return laid_out(traced, std::move(sized.graph), interface, sized.is_as_traced ? placements : own);
}

std::optional<compile::Layout> laid_out(const TracedGraph& traced, std::span<const int64_t> sizes,
                                        const compile::Interface& interface,
                                        const KeptChoice& choice) {
  std::optional<Graph> graph = made_again(traced, sizes, choice);
  if (!graph) return {};
  compile::Placements own;
  return laid_out(traced, std::move(*graph), interface, own);
}

compile::Interface interface_of(const TracedGraph& traced, const ProgramKey& key) {
  compile::Interface interface = traced.interface;
  for_each_argument(traced, key,
                    [&](size_t i, ProgramKey::Argument said, std::span<const int64_t> strides) {
                      interface.parameters[i].donated = said == ProgramKey::donated;
                      interface.parameters[i].strides = Strides(strides);
                    });
  return interface;
}

}  // namespace

namespace {

void finish(const TracedGraph& traced, const ProgramKey& key, CompiledFunction& compiled) {
  compiled.key = key;
  prepare_calls(traced, compiled);
}

std::shared_ptr<const Graph> shared(Graph graph) {
  return std::make_shared<Graph>(std::move(graph));
}

fit::Alternative alternative(Graph graph, std::string change) {
  return {shared(std::move(graph)), std::move(change)};
}

Graph optimised(const TracedGraph& traced, const compile::Interface& interface, Graph graph,
                const std::optional<passes::SplitOptions>& split = passes::SplitOptions(),
                const std::optional<passes::MicroBatches>& micro_batches = {}) {
  passes::PassOptions options = compile::pass_options(interface, traced.fuse);
  options.split = split;
  options.micro_batches = micro_batches;
  return compile::optimise(std::move(graph), options, {}, compile::backend_of(interface.home));
}

// The graph of the program without a budget; the trace's own where it has known sizes.
std::shared_ptr<const Graph> usual_graph(const TracedGraph& traced, const ProgramKey& key,
                                         const compile::Interface& interface) {
  if (key.sizes().empty()) return {std::shared_ptr<const void>(), &traced.graph};
  return shared(optimised(traced, interface, graph_at(traced, key.sizes()).graph));
}

// A part of the batch at a time, for the whole function and for what follows its first layers. The
// sums of the layers that are computed in parts take bytes, and so do the activations of the
// others: which share needs least depends on the budget.
constexpr double kSkipped[] = {0, 1.0 / 8, 2.0 / 8, 3.0 / 8, 4.0 / 8, 5.0 / 8, 6.0 / 8, 7.0 / 8};
std::vector<fit::Alternative> with_micro_batches(const TracedGraph& traced,
                                                 const compile::Interface& interface,
                                                 const Graph& graph) {
  std::vector<fit::Alternative> list;
  size_t last = 0;  // Of small functions, several shares are the same layers.
  for (const double skipped : kSkipped) {
    passes::MicroBatches::Made how;
    Graph made = optimised(traced, interface, graph, passes::SplitOptions(),
                           passes::MicroBatches{.skipped = skipped, .made = &how});
    if (skipped == 0 && how.parts == 0) break;
    if (how.parts == 0 || (skipped > 0 && how.skipped == last)) continue;
    last = how.skipped;
    const char* const layers =
        skipped > 0 ? " of the batch after the first layers" : " of the batch";
    list.push_back(alternative(
        std::move(made), cat("computes ", how.parts, " parts", layers, " one after another")));
  }
  return list;
}

// Ways to compute the function that may need fewer bytes: tables whole or in smaller parts, a part
// of the batch at a time, and loops that keep fewer and fewer states. The first is the usual one.
std::vector<fit::Alternative> alternatives_of(const TracedGraph& traced, const ProgramKey& key,
                                              const compile::Interface& interface,
                                              std::shared_ptr<const Graph> usual) {
  const auto optimised = [&](Graph graph, const std::optional<passes::SplitOptions>& split) {
    return detail::optimised(traced, interface, std::move(graph), split);
  };
  std::vector<fit::Alternative> list;
  list.push_back({std::move(usual)});
  if ((key.sizes().empty() && traced.as_traced == nullptr) || !traced.fuse) return list;
  const Graph graph = graph_at(traced, key.sizes()).graph;
  const auto has_more_regions = [&](const Graph& other) {
    return other.regions.size() != list[0].graph->regions.size();
  };
  Graph whole = optimised(graph, std::nullopt);
  if (has_more_regions(whole)) list.push_back(alternative(std::move(whole), "keeps tables whole"));
  Graph fine = optimised(graph, passes::SplitOptions{int64_t{64} << 10, int64_t{32} << 10});
  if (has_more_regions(fine))
    list.push_back(alternative(std::move(fine), "computes tables in smaller parts"));
  for (fit::Alternative& each : with_micro_batches(traced, interface, graph))
    list.push_back(std::move(each));
  if (!traced.gradients.has_choices()) return list;
  int64_t most_trips = 0;
  const std::vector<int64_t> values = traced.sizes.evaluate(key.sizes());
  for (const passes::LoopCost& cost : traced.gradients.costs)
    most_trips = std::max(
        most_trips, cost.trips.is_any() ? int64_t{64} : traced.sizes.value_of(cost.trips, values));
  // A state for every trip is less than all that the trips of a loop have computed.
  const bool keeps_all = std::any_of(
      traced.gradients.costs.begin(), traced.gradients.costs.end(),
      [](const passes::LoopCost& cost) { return cost.chosen.save == LoopAttrs::Save::all; });
  for (int thinned = keeps_all ? 0 : 1; most_trips >> thinned >= 4; ++thinned) {
    std::optional<Graph> kept = made_again(traced, key.sizes(), {.thinned = thinned});
    if (!kept) break;
    list.push_back(alternative(
        optimised(std::move(*kept), passes::SplitOptions()),
        thinned == 0 ? std::string("loops keep only the state of every trip")
                     : cat("loops keep a state for every ", int64_t{1} << thinned, " trips")));
  }
  return list;
}

}  // namespace

namespace {

// Maps with an automatic chunk run one body at a time where bytes are scarce. Each of two bodies
// has the scratch of one thread, which may be less than that of all threads for one.
std::vector<fit::Alternative> with_few_bodies(std::vector<fit::Alternative> list, int threads) {
  const std::shared_ptr<const Graph> usual = list[0].graph;
  for (fit::Alternative& each : list) each.graph = shared(fit::with_chunk(*each.graph, 1));
  if (threads > 1)
    list.push_back(alternative(fit::with_chunk(*usual, 2), "maps run two bodies at once"));
  return list;
}

// How many bodies of maps with an automatic chunk run at once, by line.
std::vector<fit::Decision> chunks_of(const run::Program& program) {
  std::vector<fit::Decision> list;
  for (const run::Step& step : program.steps) {
    if (step.kind != run::Step::Kind::map) continue;
    const run::Map& map = program.maps[static_cast<size_t>(step.control)];
    if (!map.automatic) continue;
    const char* const noun = map.alive == 1 ? " body" : " bodies";
    list.push_back(
        {.what = cat("runs ", map.alive, noun, " of a map at once"), .source = step.source});
  }
  return list;
}

}  // namespace

ProgramFrontier::ProgramFrontier(const TracedGraph& traced, const ProgramKey& key)
    : traced_(traced),
      key_(key),
      interface_(interface_of(traced, key)),
      usual_(usual_graph(traced, key, interface_)) {
  const compile::Layout layout = compile::layout(*usual_, interface_);
  usual_peak_ = layout.program->peak_bytes();
  has_automatic_chunk_ = fit::has_automatic_chunk(*layout.program);
}

fit::Frontier& ProgramFrontier::frontier() {
  if (frontier_) return *frontier_;
  std::vector<fit::Alternative> alternatives = alternatives_of(traced_, key_, interface_, usual_);
  if (has_automatic_chunk_) {
    const int threads = compile::backend_of(interface_.home).machine().threads;
    alternatives = with_few_bodies(std::move(alternatives), threads);
  }
  return frontier_.emplace(std::move(alternatives), interface_);
}

fit::Fit ProgramFrontier::fit_within(int64_t bytes) {
  if (has_automatic_chunk_) {
    if (std::optional<compile::Layout> most = fit::most_bodies(*usual_, interface_, bytes)) {
      std::vector<fit::Decision> decisions = chunks_of(*most->program);
      return {.layout = std::move(*most), .decisions = std::move(decisions), .again = {}};
    }
  }
  std::optional<fit::Fit> fit = frontier().at_most(bytes);
  return fit ? std::move(*fit) : frontier().floor();
}

std::shared_ptr<CompiledFunction> ProgramFrontier::within(int64_t bytes) {
  const std::lock_guard guard(lock_);
  fit::Fit fit = fit_within(bytes);
  auto compiled = std::make_shared<CompiledFunction>(std::move(fit.layout));
  compiled->changes = {std::move(fit.decisions), fit.again, usual_cost(), usual_peak_};
  finish(traced_, key_, *compiled);
  return compiled;
}

int64_t ProgramFrontier::floor_bytes() {
  const std::lock_guard guard(lock_);
  return frontier().floor_bytes();
}

std::vector<fit::Frontier::Point> ProgramFrontier::points() {
  const std::lock_guard guard(lock_);
  return frontier().points();
}

std::shared_ptr<CompiledFunction> compile_function(const TracedGraph& traced, const ProgramKey& key,
                                                   compile::Placements& placements) {
  const compile::Interface interface = interface_of(traced, key);
  check_sizes(traced, key.sizes());
  auto compiled =
      std::make_shared<CompiledFunction>(laid_out(traced, key.sizes(), interface, placements));
  if (traced.budget) {
    const int64_t budget = traced.budget->bytes().count;
    if (compiled->peak_bytes() > budget || fit::has_automatic_chunk(*compiled->program))
      return ProgramFrontier(traced, key).within(budget);
  }
  finish(traced, key, *compiled);
  return compiled;
}

namespace {

// Of the program of an optimised graph within so many bytes, if there is one.
std::optional<int64_t> peak_within(Graph graph, const compile::Interface& interface,
                                   int64_t bytes) {
  fit::Frontier frontier({{shared(std::move(graph))}}, interface);
  const std::optional<fit::Fit> fit = frontier.at_most(bytes);
  return fit ? std::optional(fit->layout.program->peak_bytes()) : std::nullopt;
}

}  // namespace

std::optional<int64_t> peak_with_recomputed(const TracedGraph& traced, const ProgramKey& key,
                                            const std::string& layer, int64_t bytes) try {
  const compile::Interface interface = interface_of(traced, key);
  std::optional<Graph> graph =
      made_again(traced, key.sizes(), {.rewritten = {.recomputed = layer}});
  if (!graph) return {};
  return peak_within(optimised(traced, interface, std::move(*graph)), interface, bytes);
} catch (const UserError&) {
  return {};
}

std::optional<int64_t> peak_in_bf16(const TracedGraph& traced, const ProgramKey& key,
                                    int64_t bytes) try {
  const compile::Interface interface = interface_of(traced, key);
  const bool is_optimised = key.sizes().empty() && traced.as_traced == nullptr;
  std::optional<Graph> graph =
      in_bf16(is_optimised ? traced.graph : graph_at(traced, key.sizes()).graph);
  if (!graph) return {};
  if (!is_optimised) graph = optimised(traced, interface, std::move(*graph));
  return peak_within(std::move(*graph), interface, bytes);
} catch (const UserError&) {
  return {};
}

std::shared_ptr<const run::Program> program_keeping(const TracedGraph& traced,
                                                    const ProgramKey& key,
                                                    const KeptChoice& choice) {
  if (traced.gradients.requests.empty()) return nullptr;
  const std::optional<compile::Layout> made =
      laid_out(traced, key.sizes(), interface_of(traced, key), choice);
  return made ? made->program : nullptr;
}

}  // namespace tidemark::detail
