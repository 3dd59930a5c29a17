#include "tools/show.h"

#include <iostream>
#include <string>

#include "tidemark/base/error.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/passes/passes.h"
#include "tools/program_file.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark show FILE.tm [--after=PASS|all]

Reads a program, checks it, and prints it. docs/ir.md describes the syntax.

options:
  --after=PASS  run the passes up to this one, in order, and print the result
  --after=all   print the program, then the result of each pass

)";

constexpr const char* kExitCodes = "\nexit code: 0 done; 2 bad input or usage.\n";

std::string pass_names(const char* between) {
  std::string names;
  for (const passes::Pass& pass : passes::all_passes())
    names += cat(names.empty() ? "" : between, pass.name);
  return names;
}

struct Options {
  std::string input;
  std::string after;  // A pass, "all", or nothing.
};

[[noreturn]] void usage(const std::string& problem) { usage_error("show", problem); }

Options parse(Arguments arguments) {
  Options options;
  for (const std::string& argument : with_values("show", arguments, {"--after"})) {
    if (const auto pass = value_of(argument, "--after")) {
      options.after = *pass;
      if (options.after != "all" && passes::find(options.after) == nullptr)
        usage(cat("there is no pass '", options.after, "', only ", pass_names(", ")));
    } else {
      take_file("show", argument, options.input);
    }
  }
  need_file("show", options.input);
  return options;
}

}  // namespace

int show_command(Arguments arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::cout << kHelp << "passes: " << pass_names(", ") << '\n' << kExitCodes;
      return 0;
    }
  }
  const Options options = parse(arguments);
  Graph graph = read_program(options.input, "show");
  const bool all = options.after == "all";
  if (options.after.empty() || all) std::cout << to_text(graph);
  if (options.after.empty()) return 0;
  const passes::Machine machine = compile::machine_of(compile::backend_of(device::kHostMemory));
  for (const passes::Pass& pass : passes::all_passes()) {
    pass.run(graph, machine, {});
    verify(graph);
    if (all) std::cout << "---- after " << pass.name << '\n';
    if (all || pass.name == options.after) std::cout << to_text(graph);
    if (pass.name == options.after) break;
  }
  return 0;
}

}  // namespace tidemark::tools
