// Problems as text: one line per buffer, the first line names the columns.
//
//   id,lower,upper,size,alignment
//   weights,0,12,4096,64
//
// The columns `id`, `lower`, `upper` and `size` are required, in any order; `alignment` is optional
// (default 1). `write_csv` copies other columns unchanged. Fields are plain: no quotes.
//
// Memory use is proportional to the valid input: reading stops at the first bad line, or at one
// longer than 64 KiB.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/plan/plan.h"

namespace tidemark::plan {

// An error with its position: "buffers.csv:3:7: size is negative: -5". Lines and columns count from
// one; columns count bytes.
class CsvError : public UserError {
 public:
  CsvError(std::string_view file, int64_t line, int64_t column, const std::string& problem);
  int64_t line() const { return line_; }
  int64_t column() const { return column_; }

 private:
  int64_t line_, column_;
};

struct CsvProblem {
  Problem problem;
  std::vector<std::string> ids;   // One per buffer.
  std::string header;             // The first line, as read.
  std::vector<std::string> rows;  // The lines of the buffers, as read.
};

// `file` names the input in errors.
CsvProblem read_csv(std::istream& in, std::string_view file);

// The lines as read, with a last column `offset`.
void write_csv(std::ostream& out, const CsvProblem& csv, const Placement& placement);

}  // namespace tidemark::plan
