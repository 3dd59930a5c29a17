// The `tidemark` command: finds the subcommand and runs it.
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/command.h"
#include "tools/pack.h"
#include "tools/program.h"
#include "tools/report.h"
#include "tools/show.h"

namespace tidemark::tools {
namespace {

constexpr const char* kVersionHelp =
    "usage: tidemark version\n\nPrints the version of this build.\n\nexit code: 0.\n";

int version_command(Arguments arguments) {
  if (asked_for_help(arguments, kVersionHelp)) return 0;
  if (!arguments.empty()) unknown_option("version", arguments[0]);
  std::cout << "tidemark " << TIDEMARK_VERSION << '\n';
  return 0;
}

// In the order `--help` shows them. A new one is a line here and a function in command.h.
constexpr Command kCommands[] = {
    {"tour", "show what Tidemark does, in a minute", tour_command},
    {"pack", "place buffers with lifetimes at offsets, close to the load", pack_command},
    {"show", "print a program, as written and after each pass", show_command},
    {"plan", "print the memory that a program needs, before it runs", plan_command},
    {"run", "run a program, and measure the memory it used", run_command},
    {"report", "draw plans and runs, or compare two plans, as one HTML page", report_command},
    {"ops", "list all ops and functions: signatures, dtypes, gradients", ops_command},
    {"doctor", "describe this machine, and check that Tidemark works on it", doctor_command},
    {"bench", "run a benchmark by name", bench_command},
    {"completion", "print a script for shell completion", completion_command},
    {"version", "print the version of this build", version_command},
};

int help(std::ostream& out) {
  out << "usage: tidemark COMMAND [ARGUMENT...]\n\n"
         "Tensors with every byte accounted for, and a planner for memory.\n\ncommands:\n";
  for (const Command& command : kCommands) {
    std::string name = command.name;
    name.resize(12, ' ');
    out << "  " << name << command.brief << '\n';
  }
  out << "\ntidemark COMMAND --help lists the options of one; docs/command.md has examples.\n"
         "exit codes: 0 done; 1 the answer is no; 2 bad input or usage.\n";
  return &out == &std::cout ? 0 : 2;
}

// The edit distance of two words: insertions, deletions, replacements and swaps of neighbours.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      size_t& here = least[i][j];
      here = i + j;
      if (i == 0 || j == 0) continue;
      const size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      here = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1, least[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        here = std::min(here, least[i - 2][j - 2] + 1);
    }
  }
  return least[a.size()][b.size()];
}

// The most similar command; null if none is similar.
const Command* nearest(const std::string& word) {
  const Command* found = nullptr;
  size_t least = 3;
  for (const Command& command : kCommands) {
    const size_t apart = distance(word, command.name);
    if (apart >= least || apart >= std::string_view(command.name).size()) continue;
    least = apart;
    found = &command;
  }
  return found;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return help(std::cerr);
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    return help(std::cout);
  }
  if (arguments[0] == "--version") return version_command({});
  for (const Command& command : kCommands) {
    if (arguments[0] == command.name) return command.run(Arguments(arguments).subspan(1));
  }
  std::cerr << "tidemark: there is no command '" << arguments[0] << '\'';
  const Command* const meant = nearest(arguments[0]);
  if (meant != nullptr) {
    std::cerr << "; did you mean '" << meant->name << "'?\n";
    return 2;
  }
  std::cerr << "\n\n";
  return help(std::cerr);
}

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace tidemark::tools

int main(int argc, char** argv) {
  try {
    return tidemark::tools::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << "tidemark: " << error.what() << '\n';
    return 2;
  }
}
