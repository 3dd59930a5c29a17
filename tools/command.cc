#include "tools/command.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <vector>

#include "tidemark/base/error.h"

namespace tidemark::tools {

bool asked_for_help(Arguments arguments, const char* text) {
  for (const std::string& argument : arguments) {
    if (argument != "--help" && argument != "-h") continue;
    std::cout << text;
    return true;
  }
  return false;
}

void usage_error(const char* command, const std::string& problem) {
  throw UserError(cat(command, ": ", problem), Source::none(),
                  cat("tidemark ", command, " --help lists the options"));
}

void unknown_option(const char* command, const std::string& option) {
  usage_error(command, "there is no option '" + option + "'");
}

std::vector<std::string> with_values(const char* command, Arguments arguments,
                                     std::initializer_list<std::string_view> options) {
  std::vector<std::string> all;
  for (size_t i = 0; i < arguments.size(); ++i) {
    all.push_back(arguments[i]);
    if (std::find(options.begin(), options.end(), arguments[i]) == options.end()) continue;
    if (i + 1 == arguments.size()) usage_error(command, arguments[i] + " needs a value");
    all.back() += "=" + arguments[++i];
  }
  return all;
}

std::optional<std::string> value_of(const std::string& argument, std::string_view option) {
  if (!argument.starts_with(option) || argument.size() == option.size()) return {};
  if (argument[option.size()] != '=') return {};
  return argument.substr(option.size() + 1);
}

void take_file(const char* command, const std::string& argument, std::string& file) {
  if (argument.starts_with("--")) unknown_option(command, argument);
  if (!file.empty())
    usage_error(command, "expected one file, got '" + file + "' and '" + argument + "'");
  file = argument;
}

void need_file(const char* command, const std::string& file) {
  if (file.empty()) usage_error(command, "expected a file");
}

std::string folder_beside(std::span<const char* const> places, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path command = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* place : places) {
    const fs::path folder = (command / place).lexically_normal();
    if (fs::exists(folder / file)) return folder.string();
  }
  return {};
}

int run_program(const std::string& path, Arguments arguments) {
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::cout << std::flush;
  pid_t child = 0;
  if (posix_spawn(&child, path.c_str(), nullptr, nullptr, pointers.data(), environ) != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tidemark::tools
