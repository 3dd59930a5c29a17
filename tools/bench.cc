// `tidemark bench`: the benchmarks, by name.
#include <filesystem>
#include <iostream>
#include <string>

#include "tidemark/base/error.h"
#include "tidemark/base/json.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark bench [NAME [ARGUMENT...]] [--json]

Runs a benchmark with the arguments after its name; most take the number of seconds for each row.
Without a name it lists the benchmarks and whether they are built. NAME is one of
  bars|budget_planning|budgets|compile_cost|datasets|eager|functions|gradients|kernels|loops|
  matmul|peer_cases|plan|plan_time|tile

options:
  --json   print the list, or the figures of `plan`, as JSON

exit code: 0 done; 1 a bar was missed; 2 bad usage, or the benchmark is not built.
)";

struct Bench {
  const char* name;
  const char* brief;
};
constexpr Bench kBenches[] = {
    {"bars", "every benchmark, and whether the bars the project sets itself are met"},
    {"budget_planning", "what it costs to find programs within budgets"},
    {"budgets", "every budget of a model: bytes kept, the floor, and the time it costs"},
    {"datasets", "passes over a dataset against plain copies of its rows"},
    {"compile_cost", "how the time to trace and plan grows with the number of nodes"},
    {"eager", "what an op costs in eager code, and the first tensor of a process"},
    {"functions", "what a call, a trace and compiling cost"},
    {"gradients",
     "gradients of whole models: memory and time, beside the peers that are installed"},
    {"kernels", "kernels against the speed of memory and of the arithmetic units"},
    {"loops", "loops of small bodies"},
    {"matmul", "matrix products and convolutions against oneDNN"},
    {"peer_cases", "one case of those that are compared with other libraries (bench/peers/run)"},
    {"plan", "the memory planner on hard instances"},
    {"plan_time", "what a plan costs: tracing, passes and layout"},
    {"tile", "the interpreter of kernels"},
};

// The folder of the benchmarks; they are not installed.
std::string path_of(const std::string& name) {
  constexpr const char* places[] = {"../bench"};
  const std::string folder = folder_beside(places, name);
  return folder.empty() ? folder : folder + "/" + name;
}

int list(bool json) {
  if (json) std::cout << '[';
  bool first = true;
  for (const Bench& bench : kBenches) {
    const bool built = !path_of(bench.name).empty();
    if (json) {
      std::cout << (first ? "" : ",\n ") << "{\"name\": " << json_quoted(bench.name)
                << ", \"brief\": " << json_quoted(bench.brief)
                << ", \"built\": " << (built ? "true" : "false") << '}';
    } else {
      std::string name = bench.name;
      name.resize(12, ' ');
      std::cout << name << bench.brief << (built ? "" : " (not built)") << '\n';
    }
    first = false;
  }
  if (json) std::cout << "]\n";
  return 0;
}

std::string known_names() {
  std::string names;
  for (const Bench& bench : kBenches) names += cat(names.empty() ? "" : ", ", bench.name);
  return names;
}

}  // namespace

int bench_command(Arguments arguments) {
  if (arguments.empty()) return list(false);
  const std::string& name = arguments[0];
  if (asked_for_help(arguments.first(1), kHelp)) return 0;
  if (name == "--json" && arguments.size() == 1) return list(true);
  if (name.starts_with("-")) unknown_option("bench", name);
  bool known = false;
  for (const Bench& bench : kBenches) known |= name == bench.name;
  if (!known) usage_error("bench", cat("there is no benchmark '", name, "', only ", known_names()));
  const std::string path = path_of(name);
  if (path.empty())
    throw UserError(cat("bench: ", name, " is not built beside this command"), Source::none(),
                    cat("build it: cmake --build BUILD --target bench_", name));
  const int code = run_program(path, arguments.subspan(1));
  if (code >= 0) return code;
  throw DeviceError(cat("bench: ", name, " was killed by a signal"));
}

}  // namespace tidemark::tools
