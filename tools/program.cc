#include "tools/program.h"

#include <charconv>
#include <iostream>
#include <string>

#include "tidemark/api/create.h"
#include "tidemark/api/random.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/function/function_plan.h"
#include "tidemark/function/run_function.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/report/report.h"
#include "tools/program_file.h"

namespace tidemark::tools {
namespace {

constexpr const char* kRunHelp =
    R"(usage: tidemark run FILE.tm [--seed=N] [--no-jit] [--profile=OUT.json] [--trace=OUT.json]

Runs a program on random arguments and prints its results, then the bytes planned and touched. Floats
are drawn from the normal distribution, integers and bools uniformly, integers from 0 to 9.

options:
  --seed=N            draw from this seed (default 0)
  --no-jit            run the program unfused
  --profile=OUT.json  write the memory and time of each step; tidemark report draws it
  --trace=OUT.json    write the time line of steps, for ui.perfetto.dev or chrome://tracing

exit code: 0 done; 2 bad input or usage.
)";

struct Options {
  std::string input;
  bool fuse = true;
  uint64_t seed = 0;
  std::string profile, trace;  // Where they go, if anywhere.
};

uint64_t parse_seed(const std::string& text) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size())
    usage_error("run", cat("'", text, "' is not a seed: give a whole number from 0 up"));
  return seed;
}

Options parse(Arguments arguments) {
  Options options;
  for (const std::string& argument :
       with_values("run", arguments, {"--seed", "--profile", "--trace"})) {
    if (argument == "--no-jit")
      options.fuse = false;
    else if (const auto seed = value_of(argument, "--seed"))
      options.seed = parse_seed(*seed);
    else if (const auto profile = value_of(argument, "--profile"))
      options.profile = *profile;
    else if (const auto trace = value_of(argument, "--trace"))
      options.trace = *trace;
    else
      take_file("run", argument, options.input);
  }
  need_file("run", options.input);
  return options;
}

// The program of a file, as a traced function.
detail::TracedGraph as_function(Graph graph, bool fuse) {
  detail::TracedGraph traced;
  for (size_t i = 0; i < graph.body().parameters.size(); ++i) {
    traced.interface.parameters.push_back({ByteClass::arguments, false, cat("argument ", i)});
    traced.parameters.emplace_back();
    traced.argument_leaves.push_back(static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < graph.body().results.size(); ++i)
    traced.interface.results.push_back({.updates = -1, .name = cat("result ", i)});
  traced.fuse = fuse;
  traced.graph = compile::optimise(std::move(graph), compile::pass_options(traced.interface, fuse));
  return traced;
}

// The program for arguments of these types.
std::shared_ptr<const detail::CompiledFunction> compiled(const detail::TracedGraph& traced,
                                                         const detail::Arguments& arguments) {
  compile::Placements placements;
  return detail::compile_function(traced, detail::program_key(traced, arguments, {}), placements);
}

Tensor drawn(const TensorType& type, const random::Key& key) {
  if (is_float(type.dtype)) return random::normal(type.shape, {.dtype = type.dtype, .key = key});
  if (type.dtype == DType::boolean) return random::bernoulli(type.shape, {.p = 0.5, .key = key});
  return random::integers(type.shape, {.low = 0, .high = 10, .dtype = type.dtype, .key = key});
}

std::string title_of(const Graph& graph) {
  return graph.name.empty() ? std::string("the program") : cat("function \"", graph.name, "\"");
}

}  // namespace

Plan plan_of_text(const std::string& text, const std::string& path, bool fuse) {
  Graph graph = parse_graph(text, path);
  const std::string title = title_of(graph);
  detail::Arguments leaves;
  for (const Value parameter : graph.body().parameters)
    leaves.leaves.emplace_back().tensor = detail::make_spec(graph.type(parameter), Source::none());
  const auto trace = std::make_shared<detail::FunctionTrace>();
  trace->traced = as_function(std::move(graph), fuse);
  detail::PlanMaker maker(detail::UserFunction(), trace);
  maker.title = title;
  return maker.make(maker.program_for(detail::program_key(trace->traced, leaves, {})),
                    Source::none());
}

Plan plan_of_file(const std::string& path, const char* command, bool fuse) {
  return plan_of_text(read_text(path, command), path, fuse);
}

int run_command(Arguments arguments) {
  if (asked_for_help(arguments, kRunHelp)) return 0;
  const Options options = parse(arguments);
  Graph graph = read_program(options.input, "run");
  const std::string title = title_of(graph);
  detail::Arguments leaves;
  const std::vector<random::Key> keys =
      random::Key(options.seed).split(static_cast<int>(graph.body().parameters.size()));
  for (size_t i = 0; i < keys.size(); ++i)
    leaves.leaves.emplace_back().tensor = drawn(graph.type(graph.body().parameters[i]), keys[i]);
  const detail::TracedGraph traced = as_function(std::move(graph), options.fuse);
  const auto program = compiled(traced, leaves);
  Profile profile;
  profile.function = title;
  profile.planned = detail::PlanAccess::make(title, program).peak();
  detail::RunOptions run;
  run.profile = &profile;
  std::vector<Tensor> results(traced.graph.body().results.size());
  program->emit();
  detail::run_function(traced, *program, leaves.leaves, run, results, Source::none());
  for (const Tensor& result : results) std::cout << result << '\n';
  std::cout << "planned " << profile.planned.count << " bytes, touched " << profile.touched.count
            << '\n';
  if (!options.profile.empty())
    report::write_file(options.profile, profile.to_json(), "run", Source::none());
  if (!options.trace.empty()) report::write_trace(options.trace, profile, Source::none());
  return 0;
}

}  // namespace tidemark::tools
