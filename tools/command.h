// The subcommands of `tidemark`. Each takes the arguments after its own name and returns the exit
// code: 0 done, 1 the answer is no, 2 bad input or usage. Each answers --help on standard output,
// beginning with its usage; `tidemark completion` reads its options there.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::tools {

using Arguments = std::span<const std::string>;

struct Command {
  const char* name;
  const char* brief;  // One line for `tidemark --help`.
  int (*run)(Arguments arguments);
};
// All of them, in the order `--help` shows them: main.cc has the table.
std::span<const Command> commands();

int tour_command(Arguments arguments);
int ops_command(Arguments arguments);
int doctor_command(Arguments arguments);
int bench_command(Arguments arguments);
int completion_command(Arguments arguments);

// Prints the text if --help is among the arguments.
bool asked_for_help(Arguments arguments, const char* text);
// Throws a usage error: "pack: expected a file", with a hint to --help.
[[noreturn]] void usage_error(const char* command, const std::string& problem);
[[noreturn]] void unknown_option(const char* command, const std::string& option);
// The arguments, with each of these options joined to its value: "--output page.html" becomes
// "--output=page.html".
std::vector<std::string> with_values(const char* command, Arguments arguments,
                                     std::initializer_list<std::string_view> options);
// The value, if the argument is this option.
std::optional<std::string> value_of(const std::string& argument, std::string_view option);
// Takes an argument that is not an option: the one file that the command reads.
void take_file(const char* command, const std::string& argument, std::string& file);
void need_file(const char* command, const std::string& file);

// The folder, built or installed beside the command, that has this file; empty if there is none.
std::string folder_beside(std::span<const char* const> places, const std::string& file);
// Runs a program with these arguments and returns its exit code; -1 if it was killed by a signal.
int run_program(const std::string& path, Arguments arguments);

}  // namespace tidemark::tools
