// The tour at its reduced size: every lesson succeeds, and what was planned is what was measured.
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

TEST_F(Tour, ShowsEveryLessonAndWhatWasPlannedIsWhatWasMeasured) {
  setenv("TIDEMARK_KERNELS", "llvm", 1);  // Interpreters have scratch, more than is touched.
  const Ran ran = run("tour --small");
  unsetenv("TIDEMARK_KERNELS");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("== 1 of 14: A first tensor  (examples/01_first_tensor.cc)\n"),
            std::string::npos);
  EXPECT_NE(ran.out.find("== 14 of 14: "), std::string::npos);
  EXPECT_NE(ran.out.find("11_captured_state.cc:14: 1 was frozen into the program, and is 2 now"),
            std::string::npos);
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
  EXPECT_NE(run("tour --help").out.find("usage: tidemark tour [--small]"), std::string::npos);
  const Ran ran = run("tour --fast");
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.err,
            "tidemark: tour: there is no option '--fast'\n  tidemark tour --help tells more\n");
}

}  // namespace
}  // namespace tidemark::tools
