#include "tests/programs/differentiated.h"

#include "tidemark/base/error.h"
#include "tidemark/passes/gradient/differentiate_again.h"
#include "tidemark/passes/passes.h"

namespace tidemark::testing {

namespace {

// The program, and gradients that are appended to it.
class Differentiated {
 public:
  explicit Differentiated(const RandomProgram& program) : made_(program) {
    const Graph& from = program.graph;
    std::vector<Value> parameters;
    for (const Value parameter : from.body().parameters) {
      parameters.push_back(graph_.add_parameter(Graph::kBody, from.type(parameter), at_));
      if (is_float(from.type(parameter).dtype)) sources_.push_back(parameters.back());
    }
    results_ = append_copy(from, Graph::kBody, graph_, Graph::kBody, parameters,
                           [](const Node&) { return false; });
  }

  // Of the float results from this one on, weighted by further parameters. Whether there are any.
  bool add_gradients(size_t first, bool is_recorded) {
    const passes::GradientSettings settings{.is_recorded = is_recorded};
    passes::Differentiation asked{.scope = &body_, .into = &body_, .settings = &settings};
    asked.watched = asked.sources = sources_;
    for (size_t r = first; r < results_.size(); ++r) {
      const TensorType type = graph_.type(results_[r]);
      if (!is_float(type.dtype)) continue;
      const Value weights = graph_.add_parameter(Graph::kBody, type, at_);
      asked.seeds.emplace_back(results_[r], passes::ScopedValue{weights, &body_});
      // Gradients are drawn by numbers that no other parameter has.
      const size_t seed = 1000 + made_.interface.parameters.size();
      made_.interface.parameters.push_back({.name = std::to_string(seed)});
    }
    const size_t before = results_.size();
    for (const passes::ValueGradient& each : passes::differentiate(asked, history_, at_)) {
      if (!each.dense) continue;
      results_.push_back(each.dense.value);
      made_.interface.results.push_back({.updates = -1, .name = "gradient"});
    }
    graph_.body().results = results_;
    return results_.size() > before;
  }

  size_t results() const { return results_.size(); }
  const passes::GradientHistory& history() const { return history_; }
  RandomProgram program() const { return program_of(graph_); }
  RandomProgram again(const passes::GradientSettings& settings) const {
    return program_of(passes::differentiate_again(graph_, history_, settings).value());
  }

 private:
  RandomProgram program_of(Graph graph) const {
    RandomProgram program = made_;
    passes::remove_dead(graph);
    program.graph = compact(graph);
    return program;
  }

  const Source at_ = Source::none();
  RandomProgram made_;
  Graph graph_;
  RegionScope body_{.graph = &graph_};
  std::vector<Value> sources_, results_;
  passes::GradientHistory history_;
};

}  // namespace

std::optional<RandomProgram> differentiated(const RandomProgram& program) try {
  Differentiated made(program);
  if (!made.add_gradients(0, false)) return {};
  return made.program();
} catch (const UserError&) {
  return {};
}

std::optional<DifferentiatedAgain> differentiated_again(const RandomProgram& program) try {
  Differentiated made(program);
  const size_t first = made.results();
  if (!made.add_gradients(0, true)) return {};
  made.add_gradients(first, false);
  return DifferentiatedAgain{.usual = made.program(),
                             .repeated = made.again({}),
                             .least = made.again({.most_kept = 0}),
                             .loops = made.history().costs.size()};
} catch (const UserError&) {
  return {};
}

}  // namespace tidemark::testing
