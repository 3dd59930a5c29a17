#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/pack.h"
#include "tools/program.h"
#include "tools/report.h"
#include "tools/show.h"

namespace tidemark::tools {
namespace {

int version_command(Arguments) {
  std::cout << "tidemark " << TIDEMARK_VERSION << '\n';
  return 0;
}

// In the order `--help` shows them.
constexpr Command kCommands[] = {
    {"tour", "shows what Tidemark does, in a minute", tour_command},
    {"pack", "place buffers with lifetimes at offsets, close to the load", pack_command},
    {"show", "print a program, and what passes make of it", show_command},
    {"plan", "what a program needs, before it runs", plan_command},
    {"run", "run a program, and measure what it used", run_command},
    {"report", "plans and runs as one HTML page; two plans compared", report_command},
    {"version", "the version of this build", version_command},
};

int help(std::ostream& out) {
  out << "usage: tidemark COMMAND [ARGUMENT...]\n\n"
         "Tensors with every byte accounted for, and a planner for memory.\n\ncommands:\n";
  for (const Command& command : kCommands) {
    std::string name = command.name;
    name.resize(10, ' ');
    out << "  " << name << command.brief << '\n';
  }
  out << "\ntidemark COMMAND --help tells more of one.\n";
  return &out == &std::cout ? 0 : 2;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return help(std::cerr);
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    return help(std::cout);
  }
  for (const Command& command : kCommands) {
    if (arguments[0] == command.name) return command.run(Arguments(arguments).subspan(1));
  }
  std::cerr << "tidemark: there is no command '" << arguments[0] << "'\n\n";
  return help(std::cerr);
}

}  // namespace
}  // namespace tidemark::tools

int main(int argc, char** argv) {
  try {
    return tidemark::tools::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << "tidemark: " << error.what() << '\n';
    return 2;
  }
}
