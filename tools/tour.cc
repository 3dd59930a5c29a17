// `tidemark tour`: what Tidemark does, shown by the lessons of examples/, each a process of its
// own.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "tidemark/base/error.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: tidemark tour [--small]

Runs the lessons of examples/ one after another: bytes by line, functions whose peak is known before
they run, maps, loops and conditions planned and measured, captured state, and running out of memory.

options:
  --small   the same at sizes that take a moment

exit code: 0 done; 1 a lesson failed; 2 bad usage, or the lessons were not built.
)";

struct Lesson {
  const char* program;
  const char* title;
};
constexpr Lesson kLessons[] = {
    {"01_first_tensor", "A first tensor"},
    {"02_functions", "A function: planned and used"},
    {"03_bytes_by_line", "Every byte has a line"},
    {"04_map_that_repeats", "A map that repeats and sums"},
    {"05_what_tracing_costs", "What tracing costs, and that later calls cost none"},
    {"06_a_billion_normals", "A thousand cubed numbers, known before they are drawn"},
    {"07_three_statements", "Three statements against one expression"},
    {"08_a_condition", "A condition's larger branch"},
    {"09_matrix_power", "The 100th power of a matrix"},
    {"10_flat", "Nothing grows"},
    {"11_captured_state", "Captured state is found"},
    {"12_out_of_memory", "Running out of memory is an answer, not a death"},
    {"13_loop_gradients", "The gradient of a loop within a budget"},
    {"14_what_gradients_keep", "What gradients keep, and what takes bytes away from it"},
};

std::string folder_of_lessons() {
  constexpr const char* places[] = {"../examples", "../libexec/tidemark"};
  const std::string folder = folder_beside(places, kLessons[0].program);
  if (!folder.empty()) return folder;
  throw UserError("tour: the lessons are not beside this command", Source::none(),
                  "build them: cmake --build BUILD --target examples");
}

}  // namespace

int tour_command(Arguments arguments) {
  if (asked_for_help(arguments, kHelp)) return 0;
  for (const std::string& argument : arguments)
    if (argument != "--small") unknown_option("tour", argument);
  const std::string folder = folder_of_lessons();
  const auto start = std::chrono::steady_clock::now();
  int number = 0;
  for (const Lesson& lesson : kLessons) {
    std::cout << "\n== " << ++number << " of " << std::size(kLessons) << ": " << lesson.title
              << "  (examples/" << lesson.program << ".cc)\n\n"
              << std::flush;
    const int code = run_program(folder + "/" + lesson.program, arguments);
    if (code == 0) continue;
    std::cerr << "tidemark tour: " << lesson.program << " failed, exit code " << code << '\n';
    return 1;
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  std::printf("\nThat was Tidemark, in %.0f s.\n", std::chrono::duration<double>(elapsed).count());
  return 0;
}

}  // namespace tidemark::tools
