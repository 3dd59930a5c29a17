// What all subcommands have in common, and those that are about the command itself.
#include <set>
#include <sstream>
#include <vector>

#include "tests/unit/tools/command_test.h"
#include "tidemark/base/json.h"

namespace tidemark::tools {
namespace {

// The words of lines that begin with `start` after blanks, from there to the first character that
// is not one of `letters`.
std::vector<std::string> words_after(const std::string& text, const std::string& start,
                                     const char* letters) {
  std::vector<std::string> words;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos || line.compare(begin, start.size(), start) != 0) continue;
    const size_t from = begin + start.size();
    words.push_back(line.substr(from, line.find_first_not_of(letters, from) - from));
  }
  return words;
}
constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz-_";

class Commands : public CommandTest {
 protected:
  std::vector<std::string> names() {
    std::vector<std::string> names;
    std::istringstream lines(run("--help").out);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    return names;
  }
  // What bash offers for a line whose last word is being written.
  std::set<std::string> completed(const std::vector<std::string>& words) {
    std::string line = "COMP_WORDS=(";
    for (const std::string& word : words) line += "'" + word + "' ";
    std::ofstream(folder_ / "complete.bash")
        << "compopt() { :; }\neval \"$('" TIDEMARK_COMMAND "' completion bash)\"\n"
        << line << ")\nCOMP_CWORD=" << words.size() - 1
        << "\n_tidemark\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
    const std::string command = "cd '" + folder_.string() + "' && bash complete.bash > offered.txt";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::set<std::string> offered;
    std::istringstream lines(read("offered.txt"));
    for (std::string each; std::getline(lines, each);)
      if (!each.empty()) offered.insert(each);
    return offered;
  }
};

TEST_F(Commands, AllExplainThemselvesAndRefuseWhatTheyDoNotKnow) {
  const std::vector<std::string> all = names();
  EXPECT_GE(all.size(), 10U);
  for (const std::string& name : all) {
    const Ran help = run(name + " --help");
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_EQ(help.out.find("usage: tidemark " + name), 0U) << help.out;
    EXPECT_NE(help.out.find("exit code: 0"), std::string::npos) << help.out;
    EXPECT_EQ(help.err, "") << name;
    if (name == "version") continue;
    const Ran unknown = run(name + " --no-such-option");
    EXPECT_EQ(unknown.code, 2) << name;
    EXPECT_EQ(unknown.err, "tidemark: " + name + ": there is no option '--no-such-option'\n" +
                               "  tidemark " + name + " --help lists the options\n");
  }
}

TEST_F(Commands, ThatAreMistypedAreGuessed) {
  const Ran near = run("paln");
  EXPECT_EQ(near.code, 2);
  EXPECT_EQ(near.err, "tidemark: there is no command 'paln'; did you mean 'plan'?\n");
  const Ran far = run("frobnicate");
  EXPECT_EQ(far.code, 2);
  EXPECT_EQ(far.err.find("tidemark: there is no command 'frobnicate'\n\nusage: "), 0U) << far.err;
  EXPECT_EQ(run("--version").out, run("version").out);
  EXPECT_EQ(run("version 2").code, 2);
  EXPECT_EQ(
      run("version 2").err,
      "tidemark: version: there is no option '2'\n  tidemark version --help lists the options\n");
}

TEST_F(Commands, AreCompletedByBash) {
  const std::vector<std::string> all = names();
  std::set<std::string> expected(all.begin(), all.end());
  expected.insert("--help");
  EXPECT_EQ(completed({"tidemark", ""}), expected);
  EXPECT_EQ(completed({"tidemark", "do"}), std::set<std::string>{"doctor"});
  EXPECT_EQ(completed({"tidemark", "plan", "--j"}), std::set<std::string>{"--json"});
  EXPECT_EQ(completed({"tidemark", "show", "--a"}), std::set<std::string>{"--after="});
  EXPECT_EQ(completed({"tidemark", "completion", ""}),
            (std::set<std::string>{"bash", "zsh", "fish", "--help"}));
  EXPECT_EQ(completed({"tidemark", "bench", "ma"}), std::set<std::string>{"matmul"});
  std::ofstream(folder_ / "model.tm") << "";
  EXPECT_EQ(completed({"tidemark", "plan", "mod"}), std::set<std::string>{"model.tm"});
}

// Every option that a help describes is in every script.
TEST_F(Commands, HaveTheirOptionsInEveryScript) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = run(std::string("completion ") + shell).out;
    for (const std::string& name : names()) {
      const std::string help = run(name + " --help").out;
      for (const std::string& option : words_after(help, "--", kLetters))
        EXPECT_NE(script.find("--" + option), std::string::npos) << shell << ' ' << option;
    }
  }
  const Ran unknown = run("completion tcsh");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err,
            "tidemark: completion: 'tcsh' is not supported: use bash, zsh or fish\n"
            "  tidemark completion --help lists the options\n");
}

TEST_F(Commands, ThatBenchListIsThatOfTheBuild) {
  std::ifstream file(TIDEMARK_BENCH_LIST);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string cmake = text.str();
  std::set<std::string> built, listed;
  for (const std::string& name : words_after(cmake, "tidemark_bench(", kLetters))
    built.insert(name);
  built.erase("first_tensor");  // A process that `eager` starts.
  for (const JsonValue& each : parse_json(run("bench --json").out, "bench").items)
    listed.insert(each.find("name")->text);
  EXPECT_EQ(listed, built);
  std::set<std::string> offered = completed({"tidemark", "bench", ""});
  offered.erase("--help"), offered.erase("--json");
  EXPECT_EQ(offered, built);
  const Ran unknown = run("bench nothing");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err.find("tidemark: bench: there is no benchmark 'nothing', only bars, "), 0U);
}

}  // namespace
}  // namespace tidemark::tools
