#include "tidemark/grad/save_choice.h"

#include <algorithm>

#include "tidemark/compile/pipeline.h"
#include "tidemark/layout/layout.h"
#include "tidemark/passes/gradient/loop_gradient.h"
#include "tidemark/passes/passes.h"

namespace tidemark::detail {
namespace {

bool leave_none(const Node&) { return false; }

// A loop and its gradient as a separate program.
class LoopAlone {
 public:
  LoopAlone(const passes::ControlQuestion& asked, SizeTable& sizes, bool fuse)
      : asked_(asked), fuse_(fuse) {
    const Node node = asked.node();
    read_sizes(sizes, node);
    loop_ = graph_of(asked.graph(), node);
    if (!sizes.empty()) loop_ = compile::at_sizes(loop_, sizes, sizes.hints());
  }

  LoopAttrs attrs() const { return LoopAttrs(loop_.nodes[loop_node()]); }
  // The bytes of one checkpoint of all carries.
  int64_t state_bytes() const {
    int64_t bytes = 2 * static_cast<int64_t>(sizeof(int64_t));
    for (size_t j = 0; j < static_cast<size_t>(attrs().carries); ++j)
      bytes += passes::known_bytes(loop_.nodes[loop_node()].results[j]);
    return bytes;
  }

  // The peak of the program, without its inputs.
  int64_t peak(SaveChoice choice) const {
    Graph graph;
    RegionScope body{.graph = &graph};
    const passes::GradientSettings settings{.is_recorded = asked_.settings.is_recorded,
                                            .choose_within = asked_.settings.choose_within};
    std::vector<Value> inputs;
    for (const Value input : loop_.body().parameters)
      inputs.push_back(graph.add_parameter(Graph::kBody, loop_.type(input), asked_.at));
    const std::vector<Value> results =
        append_copy(loop_, Graph::kBody, graph, Graph::kBody, inputs, leave_none);
    const int32_t number = graph.body().nodes.back();
    passes::ScopedValues gradients(asked_.gradients.size());
    for (size_t r = 0; r < gradients.size(); ++r)
      if (asked_.gradients[r])
        gradients[r] = {
            graph.add_parameter(Graph::kBody, TensorType(graph.type(results[r])), asked_.at),
            &body};
    const passes::ControlQuestion question{.scope = &body,
                                           .number = number,
                                           .into = {body, settings.views},
                                           .settings = settings,
                                           .gradients = gradients,
                                           .wanted = asked_.wanted,
                                           .variables = asked_.variables,
                                           .at = asked_.at};
    const bool stacks = choice.save == LoopAttrs::Save::all && !settings.is_recorded;
    const size_t first = graph.nodes.size();
    std::vector<Value> given;
    for (const passes::ValueGradient& found :
         stacks ? passes::stacked_gradient(question)
                : passes::checkpointed_gradient(question, choice)) {
      if (found.dense) given.push_back(found.dense.value);
      for (const passes::ValueGradient::Rows& rows : found.rows) {
        given.push_back(rows.indices.value);
        given.push_back(rows.rows.value);
      }
    }
    // Marks the nodes as gradients, as in the full graph: passes test for that.
    for (size_t made = first; made < graph.nodes.size(); ++made)
      if (graph.nodes[made].gradient_of == nullptr)
        graph.nodes[made].gradient_of = graph.nodes[static_cast<size_t>(number)].op;
    graph.body().results = std::move(given);
    return planned(graph);
  }

 private:
  size_t loop_node() const { return static_cast<size_t>(loop_.body().nodes.back()); }

  // Bytes depend on the sizes of the current call.
  void read_sizes(SizeTable& sizes, const Node& node) const {
    const auto read = [&](Dim size) {
      if (size.is_traced()) sizes.read(size, asked_.at);
    };
    const auto read_all = [&](const TensorType& type) {
      for (const Dim size : type.shape) read(size);
    };
    for (const Value input : node.inputs) read_all(asked_.graph().type(input));
    for (const TensorType& type : node.results) read_all(type);
    read(LoopAttrs(node).trips);
  }

  static Graph graph_of(const Graph& from, Node node) {
    Graph graph;
    SmallVec<Value, 3> inputs;
    for (const Value input : node.inputs)
      inputs.push_back(
          graph.add_parameter(Graph::kBody, from.type(input), from.node(input).source));
    node.inputs = inputs;
    for (RegionId& id : node.regions) {
      const RegionId fresh = graph.add_region();
      std::vector<Value> parameters;
      for (const Value each : from.regions[static_cast<size_t>(id)].parameters)
        parameters.push_back(graph.add_parameter(fresh, from.type(each), from.node(each).source));
      const std::vector<Value> results =
          append_copy(from, id, graph, fresh, parameters, leave_none);
      graph.regions[static_cast<size_t>(fresh)].results = results;
      id = fresh;
    }
    const int32_t number = graph.add_node(Graph::kBody, std::move(node));
    for (int16_t r = 0; r < std::ssize(graph.nodes[static_cast<size_t>(number)].results); ++r)
      graph.body().results.push_back({number, r});
    return graph;
  }

  int64_t planned(const Graph& graph) const {
    compile::Interface interface;
    interface.parameters.resize(graph.body().parameters.size());
    interface.results.resize(graph.body().results.size());
    const Graph optimised = compile::optimise(graph, compile::pass_options(interface, fuse_));
    return compile::layout(optimised, interface).program->peak_bytes();
  }

  const passes::ControlQuestion& asked_;
  const bool fuse_;
  Graph loop_;
};

// The most slots that fit, given the peak with one slot. The next guess is by linear interpolation
// between known peaks.
int64_t most_slots(const LoopAlone& alone, int64_t bytes, int64_t peak_of_one, int64_t most) {
  int64_t fits = 1, peak_that_fits = peak_of_one, too_many = most + 1;
  const int64_t row = std::max<int64_t>(1, alone.state_bytes());
  int64_t guess = fits + (bytes - peak_that_fits) / row;
  while (fits + 1 < too_many) {
    guess = std::clamp(guess, fits + 1, too_many - 1);
    const int64_t peak = alone.peak({LoopAttrs::Save::slots, guess});
    if (peak <= bytes) {
      fits = guess;
      peak_that_fits = peak;
      guess = fits + std::max<int64_t>(1, (bytes - peak_that_fits) / row);
    } else {
      too_many = guess;
      guess -= std::max<int64_t>(1, (peak - bytes) / row);
    }
  }
  return fits;
}

[[noreturn]] void refuse(int64_t bytes, int64_t least, Source at) {
  throw UserError(
      cat("gradient: save = bytes: this loop and its gradient take at least ", Bytes(least), " (",
          least, " bytes), but may take ", Bytes(bytes), " (", bytes, " bytes)"),
      at, cat("write td::Save::bytes(", least, ") or more"));
}

SaveChoice choose_within(const LoopAlone& alone, int64_t bytes, Source at) {
  const int64_t trips = alone.attrs().trips.known_or(-1);
  const SaveChoice all{LoopAttrs::Save::all, 0};
  int64_t least = INT64_MAX;
  if (trips != -1) least = alone.peak(all);
  if (least <= bytes) return all;
  const int64_t of_one = alone.peak({LoopAttrs::Save::slots, 1});
  least = std::min(least, of_one);
  if (least > bytes) refuse(bytes, least, at);
  const int64_t most = trips == -1 ? bytes / 8 + 1 : std::max<int64_t>(1, trips);
  return {LoopAttrs::Save::slots, most_slots(alone, bytes, of_one, most)};
}

}  // namespace

ChooseWithin choice_by_plans(SizeTable& sizes, bool fuse) {
  return [&sizes, fuse](const passes::ControlQuestion& asked, int64_t bytes) {
    return choose_within(LoopAlone(asked, sizes, fuse), bytes, asked.at);
  };
}

}  // namespace tidemark::detail
