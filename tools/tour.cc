// `tidemark tour`: what Tidemark does, shown by the lessons of examples/, each a process of its
// own.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "tidemark/base/error.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

namespace fs = std::filesystem;

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

// Beside the command where it was built, or where it was installed.
fs::path folder_of_lessons() {
  const fs::path command = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* place : {"../examples", "../libexec/tidemark"}) {
    const fs::path folder = (command / place).lexically_normal();
    if (fs::exists(folder / kLessons[0].program)) return folder;
  }
  throw UserError("tour: the lessons are not beside this command", Source::none(),
                  "build them: cmake --build BUILD --target examples");
}

// The exit code; -1 where it did not end by itself.
int run_program(const fs::path& program, bool small) {
  std::string path = program.string(), option = "--small";
  char* const arguments[] = {path.data(), small ? option.data() : nullptr, nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, path.c_str(), nullptr, nullptr, arguments, environ) != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int tour_command(Arguments arguments) {
  bool small = false;
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      std::cout << kHelp;
      return 0;
    }
    if (argument != "--small") usage_error("tour", "there is no option '" + argument + "'");
    small = true;
  }
  const fs::path folder = folder_of_lessons();
  const auto start = std::chrono::steady_clock::now();
  int number = 0;
  for (const Lesson& lesson : kLessons) {
    std::cout << "\n== " << ++number << " of " << std::size(kLessons) << ": " << lesson.title
              << "  (examples/" << lesson.program << ".cc)\n\n"
              << std::flush;
    const int code = run_program(folder / lesson.program, small);
    if (code == 0) continue;
    std::cerr << "tidemark tour: " << lesson.program << " failed, exit code " << code << '\n';
    return 1;
  }
  const auto elapsed = std::chrono::steady_clock::now() - start;
  std::printf("\nThat was Tidemark, in %.0f s.\n", std::chrono::duration<double>(elapsed).count());
  return 0;
}

}  // namespace tidemark::tools
