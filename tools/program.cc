#include "tools/program.h"

#include <charconv>
#include <iostream>
#include <string>

#include "tidemark/api/create.h"
#include "tidemark/api/random.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/function/plan_data.h"
#include "tidemark/function/run_function.h"
#include "tidemark/report/report.h"
#include "tools/program_file.h"

namespace tidemark::tools {
namespace {

constexpr const char* kPlanHelp =
    R"(usage: tidemark plan FILE.tm [--json] [--no-jit]

Prints the memory plan of a program: its peak by class, the step and the tensors at the peak, and
every step with the bytes in use. Nothing runs.

options:
  --json     print the plan as JSON; docs/plan_json.md has the schema
  --no-jit   plan the program unfused

exit code: 0 done; 2 bad input or usage.
)";

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
  bool json = false;
  bool fuse = true;
  uint64_t seed = 0;
  std::string profile, trace;  // Where they go, if anywhere.
};

Options parse(Arguments arguments, const char* command, bool is_plan) {
  Options options;
  const std::vector<std::string> joined =
      is_plan ? with_values(command, arguments, {})
              : with_values(command, arguments, {"--seed", "--profile", "--trace"});
  for (const std::string& argument : joined) {
    const auto value = [&](std::string_view option) {
      return is_plan ? std::nullopt : value_of(argument, option);
    };
    if (argument == "--json" && is_plan) {
      options.json = true;
    } else if (argument == "--no-jit") {
      options.fuse = false;
    } else if (const auto number = value("--seed")) {
      const auto [end, error] =
          std::from_chars(number->data(), number->data() + number->size(), options.seed);
      if (error != std::errc() || end != number->data() + number->size())
        usage_error(command, cat("'", *number, "' is not a seed: give a whole number from 0 up"));
    } else if (const auto profile = value("--profile")) {
      options.profile = *profile;
    } else if (const auto trace = value("--trace")) {
      options.trace = *trace;
    } else {
      take_file(command, argument, options.input);
    }
  }
  need_file(command, options.input);
  return options;
}

bool wants_help(Arguments arguments, const char* text) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::cout << text;
    return true;
  }
  return false;
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

Plan plan_of_file(const std::string& path, const char* command, bool fuse) {
  Graph graph = read_program(path, command);
  const std::string title = title_of(graph);
  detail::Arguments leaves;
  for (const Value parameter : graph.body().parameters)
    leaves.leaves.emplace_back().tensor = detail::make_spec(graph.type(parameter), Source::none());
  const detail::TracedGraph traced = as_function(std::move(graph), fuse);
  return detail::PlanAccess::make(title, compiled(traced, leaves));
}

int plan_command(Arguments arguments) {
  if (wants_help(arguments, kPlanHelp)) return 0;
  const Options options = parse(arguments, "plan", true);
  const Plan plan = plan_of_file(options.input, "plan", options.fuse);
  std::cout << (options.json ? plan.to_json() : plan.to_text());
  return 0;
}

int run_command(Arguments arguments) {
  if (wants_help(arguments, kRunHelp)) return 0;
  const Options options = parse(arguments, "run", false);
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
