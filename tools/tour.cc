// `tidemark tour`: shows what Tidemark does by running the programs of examples/questions/.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "tidemark/base/error.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark tour [--small] [--report FILE]

Answers five common questions about the memory of tensor programs, each by a program of
examples/questions: the naive way and the right way, with bytes planned, bytes measured and times.
At the end it names a page that shows the memory of a training step.

options:
  --small         use small sizes, which take a moment
  --report FILE   the page to write (default: tidemark_tour.html in the folder for temporary files)

exit code: 0 done; 1 a program failed; 2 bad usage, or the programs were not built.
)";

struct Question {
  const char* program;
  const char* text;
};
constexpr Question kQuestions[] = {
    {"1_map_fn", "A map piles up intermediates. Must it?"},
    {"2_functions", "What does a traced function cost, and when is it traced again?"},
    {"3_loops", "Loops keep every iteration for the gradient. Must they?"},
    {"4_state_in_batches", "A batch stores state that nobody needs. What is kept, and why?"},
    {"5_leaks", "Training leaks. Who holds the bytes, and how is it found?"},
};

std::string folder_of_programs() {
  constexpr const char* places[] = {"../examples", "../libexec/tidemark"};
  const std::string folder = folder_beside(places, kQuestions[0].program);
  if (!folder.empty()) return folder;
  throw UserError("tour: the programs are not beside this command", Source::none(),
                  "build them: cmake --build BUILD --target examples");
}

}  // namespace

int tour_command(Arguments arguments) {
  if (asked_for_help(arguments, kHelp)) return 0;
  std::vector<std::string> options;
  std::string report = std::filesystem::temp_directory_path() / "tidemark_tour.html";
  for (const std::string& argument : with_values("tour", arguments, {"--report"})) {
    if (argument == "--small")
      options.push_back(argument);
    else if (const auto file = value_of(argument, "--report"))
      report = *file;
    else
      unknown_option("tour", argument);
  }
  const std::string folder = folder_of_programs();
  const auto start = std::chrono::steady_clock::now();
  options.insert(options.end(), {"--report", report});
  int number = 0;
  for (const Question& question : kQuestions) {
    std::cout << "\n== Question " << ++number << " of " << std::size(kQuestions) << ": "
              << question.text << "\n   examples/questions/" << question.program
              << ".cc, docs/questions/" << question.program << ".md\n\n"
              << std::flush;
    const int code = run_program(folder + "/" + question.program, options);
    if (code == 0) continue;
    std::cerr << "tidemark tour: " << question.program << " failed, exit code " << code << '\n';
    return 1;
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  std::printf("\nThat was Tidemark, in %.0f s. The memory of question 4's step, as a page: %s\n",
              std::chrono::duration<double>(elapsed).count(), report.c_str());
  return 0;
}

}  // namespace tidemark::tools
