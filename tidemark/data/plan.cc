#include "tidemark/data/plan.h"

#include <algorithm>
#include <iomanip>
#include <ostream>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"

namespace tidemark::data {
namespace {

std::string bytes_text(Bytes bytes, bool known) {
  if (known) return cat(bytes);
  return bytes.count == 0 ? "unknown" : cat("over ", bytes);
}

}  // namespace

bool DatasetPlan::is_known() const {
  return std::all_of(stages_.begin(), stages_.end(),
                     [](const StageBytes& stage) { return stage.known; });
}

Bytes DatasetPlan::known_bytes() const {
  int64_t sum = 0;
  for (const StageBytes& stage : stages_) sum += stage.bytes.count;
  return sum;
}

Bytes DatasetPlan::total(Source at) const {
  for (const StageBytes& stage : stages_)
    if (!stage.known)
      throw UserError(
          cat("data: the bytes of ", stage.stage, " (", stage.at.text(), ") are ", stage.note), at,
          "ask is_known() first, or known_bytes() for the rest");
  return known_bytes();
}

std::string DatasetPlan::to_text() const {
  TextStream out;
  out << *this;
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const DatasetPlan& plan) {
  size_t name_width = 5, line_width = 4;
  for (const StageBytes& stage : plan.stages()) {
    name_width = std::max(name_width, stage.stage.size());
    line_width = std::max(line_width, stage.at.text().size());
  }
  const auto row = [&](const std::string& name, const std::string& line, const std::string& bytes,
                       const std::string& note) {
    TextStream text;
    text << std::left << std::setw(static_cast<int>(name_width)) << name << "  "
         << std::setw(static_cast<int>(line_width)) << line << std::right << std::setw(14) << bytes;
    if (!note.empty()) text << "  " << note;
    out << text.str() << '\n';
  };
  row("stage", "line", "bytes", "");
  for (const StageBytes& stage : plan.stages())
    row(stage.stage, stage.at.text(), bytes_text(stage.bytes, stage.known), stage.note);
  row("total", "", bytes_text(plan.known_bytes(), plan.is_known()), "");
  return out;
}

}  // namespace tidemark::data
