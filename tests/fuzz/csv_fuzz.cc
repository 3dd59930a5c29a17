// Feeds arbitrary bytes to the reader of problems. What it accepts must survive a round trip: the
// written copy is accepted too and means the same.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tidemark/plan/csv.h"

namespace {

using tidemark::plan::CsvProblem;

void require(bool condition) {
  if (!condition) std::abort();
}

CsvProblem read(const std::string& text) {
  std::istringstream in(text);
  return tidemark::plan::read_csv(in, "fuzz.csv");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  CsvProblem csv;
  try {
    csv = read(text);
  } catch (const tidemark::plan::CsvError& error) {
    require(error.line() >= 1 && error.column() >= 1);
    return 0;
  }
  tidemark::plan::Placement placement;
  placement.offsets.assign(csv.problem.buffers.size(), 7);
  std::ostringstream out;
  tidemark::plan::write_csv(out, csv, placement);
  // Offsets are refused where a problem is read: the column goes by another name.
  std::string written = out.str();
  written.replace(written.find(",offset\n"), 7, ",placed");
  const CsvProblem again = read(written);
  require(again.ids == csv.ids);
  require(again.problem.buffers.size() == csv.problem.buffers.size());
  for (size_t i = 0; i < csv.problem.buffers.size(); ++i) {
    const auto &a = csv.problem.buffers[i], &b = again.problem.buffers[i];
    require(a.size_bytes == b.size_bytes && a.alignment == b.alignment);
    require(a.lifetime.begin == b.lifetime.begin && a.lifetime.end == b.lifetime.end);
  }
  return 0;
}
