// `tidemark completion`: scripts for shell completion.
//
// The options of a command are read from its help text, so that there is no second list to keep up
// to date.
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tidemark/base/text.h"
#include "tools/command.h"

namespace tidemark::tools {
namespace {

constexpr const char* kHelp =
    R"help(usage: tidemark completion bash|zsh|fish

Prints a script that completes the subcommands of tidemark and their options.

  bash   eval "$(tidemark completion bash)"     in ~/.bashrc
  zsh    eval "$(tidemark completion zsh)"      in ~/.zshrc, after compinit
  fish   tidemark completion fish > ~/.config/fish/completions/tidemark.fish

exit code: 0 done; 2 bad usage.
)help";

// The words that may follow the name of a command.
struct Words {
  std::string command, brief;
  std::vector<std::string> options;  // "--json", "--after=".
  std::vector<std::string> choices;  // Written `bash|zsh|fish`.
  bool files = false;
};

std::string help_of(const Command& command) {
  TextStream text;
  std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
  const std::vector<std::string> asked = {"--help"};
  command.run(asked);
  std::cout.rdbuf(before);
  return text.str();
}

// "--after=PASS" and "--capacity" of lines that describe an option.
void add_option(Words& words, const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == 0 || begin == std::string::npos || line.compare(begin, 2, "--") != 0) return;
  const size_t end = line.find_first_of("= ", begin);
  std::string option = line.substr(begin, end - begin);
  if (end != std::string::npos && line[end] == '=') option += '=';
  if (words.options.empty() || words.options.back() != option) words.options.push_back(option);
}

void add_usage(Words& words, const std::string& line) {
  std::istringstream parts(line);
  for (std::string part; parts >> part;) {
    if (part.find("FILE") != std::string::npos) words.files = true;
    if (part.find('|') == std::string::npos || part.find_first_of("[-") == 0) continue;
    std::istringstream choices(part);
    for (std::string choice; std::getline(choices, choice, '|');) words.choices.push_back(choice);
  }
}

std::vector<Words> all_words() {
  std::vector<Words> all;
  for (const Command& command : commands()) {
    Words& words = all.emplace_back();
    words.command = command.name;
    words.brief = command.brief;
    std::istringstream lines(help_of(command));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("usage:") || line.find('|') != std::string::npos) add_usage(words, line);
      add_option(words, line);
    }
    words.options.push_back("--help");
  }
  return all;
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& each : list) text += cat(text.empty() ? "" : " ", each);
  return text;
}

std::string all_of(const Words& words) {
  const std::string choices = joined(words.choices);
  return cat(choices, choices.empty() ? "" : " ", joined(words.options));
}

std::string command_names(const std::vector<Words>& all) {
  std::string names;
  for (const Words& words : all) names += cat(names.empty() ? "" : " ", words.command);
  return names;
}

void print_bash(const std::vector<Words>& all) {
  std::cout << "_tidemark() {\n"
               "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words='' files=''\n"
               "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
               "    words='"
            << command_names(all)
            << " --help'\n"
               "  else\n"
               "    case \"${COMP_WORDS[1]}\" in\n";
  for (const Words& words : all) {
    std::cout << "      " << words.command << ") words='" << all_of(words) << '\''
              << (words.files ? " files=yes" : "") << " ;;\n";
  }
  std::cout << "    esac\n"
               "  fi\n"
               "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
               "  if [ -n \"$files\" ] && [[ \"$current\" != -* ]]; then\n"
               "    mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\")\n"
               "  fi\n"
               "  if [ \"${#COMPREPLY[@]}\" -eq 1 ] && [[ \"${COMPREPLY[0]}\" == *= ]]; then\n"
               "    compopt -o nospace\n"
               "  fi\n"
               "}\n"
               "complete -o filenames -F _tidemark tidemark\n";
}

// Quotes and colons are special there.
std::string plain(const std::string& text) {
  std::string kept;
  for (const char c : text) kept += c == '\'' || c == ':' ? ' ' : c;
  return kept;
}

void print_zsh(const std::vector<Words>& all) {
  std::cout << "#compdef tidemark\n_tidemark() {\n  local -a commands\n  commands=(\n";
  for (const Words& words : all)
    std::cout << "    '" << words.command << ':' << plain(words.brief) << "'\n";
  std::cout << "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n"
               "  fi\n  case \"$words[2]\" in\n";
  for (const Words& words : all) {
    std::cout << "    " << words.command << ") compadd -- " << all_of(words)
              << (words.files ? "; _files" : "") << " ;;\n";
  }
  std::cout << "  esac\n}\ncompdef _tidemark tidemark\n";
}

void print_fish(const std::vector<Words>& all) {
  std::cout << "complete -c tidemark -f\n";
  for (const Words& words : all) {
    std::cout << "complete -c tidemark -n __fish_use_subcommand -a " << words.command << " -d '"
              << plain(words.brief) << "'\n";
    const std::string seen =
        cat("complete -c tidemark -n '__fish_seen_subcommand_from ", words.command, "'");
    for (const std::string& option : words.options) std::cout << seen << " -a '" << option << "'\n";
    for (const std::string& choice : words.choices) std::cout << seen << " -a '" << choice << "'\n";
    if (words.files) std::cout << seen << " -F\n";
  }
}

}  // namespace

int completion_command(Arguments arguments) {
  if (asked_for_help(arguments, kHelp)) return 0;
  if (arguments.size() != 1) usage_error("completion", "expected a shell: bash, zsh or fish");
  const std::string& shell = arguments[0];
  if (shell.starts_with("-")) unknown_option("completion", shell);
  if (shell == "bash")
    print_bash(all_words());
  else if (shell == "zsh")
    print_zsh(all_words());
  else if (shell == "fish")
    print_fish(all_words());
  else
    usage_error("completion", cat("'", shell, "' is not supported: use bash, zsh or fish"));
  return 0;
}

}  // namespace tidemark::tools
