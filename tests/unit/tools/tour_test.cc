// The tour at its reduced size: every question is answered, and what was planned is what was
// measured.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/tools/command_test.h"

namespace tidemark::tools {
namespace {

class Tour : public CommandTest {};

// The last words of each row of a table: planned, measured, milliseconds.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::vector<std::string> words;
    for (std::string word; parts >> word;) words.push_back(word);
    const bool is_row =
        words.size() > 3 && line.starts_with("  ") && words.back().find('.') != std::string::npos &&
        words[words.size() - 2].find_first_not_of("0123456789,") == std::string::npos;
    if (is_row) rows.push_back({words.end() - 3, words.end()});
  }
  return rows;
}

TEST_F(Tour, AnswersEveryQuestionAndWhatWasPlannedIsWhatWasMeasured) {
  setenv("TIDEMARK_KERNELS", "llvm", 1);  // Interpreters have scratch, more than is touched.
  const std::string page = testing::TempDir() + "tour_test_page.html";
  const Ran ran = run("tour --small --report " + page);
  unsetenv("TIDEMARK_KERNELS");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("== Question 1 of 5: A map piles up intermediates. Must it?\n"),
            std::string::npos);
  EXPECT_NE(ran.out.find("== Question 5 of 5: "), std::string::npos);
  EXPECT_NE(ran.out.find("1 was frozen into the program, and is 2 now"), std::string::npos);
  EXPECT_NE(ran.out.find("5_leaks.cc:"), std::string::npos);
  EXPECT_NE(ran.out.find("as a page: " + page + "\n"), std::string::npos);
  EXPECT_TRUE(std::ifstream(page).good());
  std::remove(page.c_str());
  // No colours, no cursor movements.
  EXPECT_EQ(ran.out.find_first_of("\r\x1b"), std::string::npos);
  int planned = 0;
  for (const std::vector<std::string>& row : rows_of(ran.out)) {
    if (row[0] == "-") continue;
    ++planned;
    EXPECT_EQ(row[0], row[1]) << ran.out;
  }
  EXPECT_GE(planned, 20) << ran.out;
}

TEST_F(Tour, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(run("tour --help").out.find("usage: tidemark tour [--small] [--report FILE]"),
            std::string::npos);
  const Ran ran = run("tour --fast");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(
      ran.err,
      "tidemark: tour: there is no option '--fast'\n  tidemark tour --help lists the options\n");
  EXPECT_EQ(run("tour --report").err,
            "tidemark: tour: --report needs a value\n  tidemark tour --help lists the options\n");
}

}  // namespace
}  // namespace tidemark::tools
