// The text of a growth report.
#include <cmath>
#include <iomanip>
#include <ostream>
#include <string>

#include "tidemark/report/growth.h"

namespace tidemark {

const char* name(Growth growth) {
  switch (growth) {
    case Growth::flat:
      return "flat";
    case Growth::filling:
      return "filling";
    case Growth::growing:
      return "growing";
    case Growth::cannot_tell:
      break;
  }
  return "cannot tell yet";
}

Growth WatchReport::verdict() const {
  Growth worst = steps < 32 ? Growth::cannot_tell : Growth::flat;
  const auto rank = [](Growth growth) {
    return growth == Growth::growing       ? 3
           : growth == Growth::cannot_tell ? 2
                                           : growth == Growth::filling;
  };
  for (const GrowthRow& row : rows)
    if (row.kind != "outside Tidemark" && rank(row.growth) > rank(worst)) worst = row.growth;
  return worst;
}

namespace {

// Up to two digits after the point, without trailing zeros.
std::string number_text(double value) {
  std::string text = cat(std::fixed, std::setprecision(2), value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

// Rates below one per step are given per thousand steps.
std::string rate_text(const GrowthRow& row) {
  const bool rare = row.bytes_per_step < 1;
  const double times = rare ? 1000 : 1;
  std::string text = cat("+", Bytes(std::llround(row.bytes_per_step * times)),
                         rare ? " in 1,000 steps" : " a step");
  if (row.count_per_step > 0) text += cat(" (+", number_text(row.count_per_step * times), ")");
  return text;
}

void print(std::ostream& out, const GrowthRow& row) {
  out << "  " << row.kind << ": " << name(row.growth);
  if (row.growth == Growth::filling) out << " (" << row.filled << ')';
  if (row.growth == Growth::growing) out << ", " << rate_text(row);
  out << ": ";
  if (row.count > 0) out << row.count << " x ";
  out << row.what;
  if (row.kind != "outside Tidemark") out << ", " << row.bytes;
  if (!row.line.empty()) out << ", made at " << row.line;
  if (!row.holders.empty()) out << ", held by " << row.holders;
  out << '\n';
}

void print(std::ostream& out, const TraceRow& row) {
  out << "  " << row.name << " (" << row.line << ')';
  if (row.traced > 0) {
    out << ": traced " << row.traced << (row.traced == 1 ? " time" : " times")
        << ", the last because: " << row.reason;
  }
  if (row.captured > 0) {
    out << ": keeps " << row.captured << (row.captured == 1 ? " tensor" : " tensors")
        << " that it captured, " << row.captured_bytes;
  }
  out << '\n';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const WatchReport& report) {
  out << report.steps << (report.steps == 1 ? " step: " : " steps: ") << name(report.verdict())
      << '\n';
  for (const GrowthRow& row : report.rows) print(out, row);
  const bool one = report.flat_lines == 1;
  out << "  " << report.flat_lines << (one ? " other line holds " : " other lines hold ")
      << report.flat_bytes << '\n';
  for (const TraceRow& row : report.traces) print(out, row);
  return out;
}

}  // namespace tidemark
