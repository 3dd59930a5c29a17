// Plans and profiles as text.
#include <algorithm>
#include <ostream>
#include <sstream>

#include "tidemark/base/text.h"
#include "tidemark/function/decision_text.h"
#include "tidemark/function/plan_data.h"
#include "tidemark/run/treeverse.h"

namespace tidemark {
namespace {

std::string line_of(Source at) { return at.known() ? at.text() : std::string("?"); }

std::string choice_text(const run::KeptTrips& kept) {
  const std::string name = kept.every > 0   ? cat("every(", kept.every, ")")
                           : kept.slots > 0 ? cat("slots(", kept.slots, ")")
                                            : "all";
  const std::string text = cat(name, ": ", Bytes(kept.bytes));
  if (kept.trips < 0) return text;
  const int64_t first_time = std::max<int64_t>(0, kept.trips - 1);
  const int64_t advances = kept.every > 0   ? run::advances_every(kept.trips, kept.every)
                           : kept.slots > 0 ? run::fewest_advances(kept.trips, kept.slots)
                                            : first_time;
  return cat(text, ", ", advances - first_time, " trips run again");
}

// The bytes that a loop stores for its gradient, then those under other choices.
std::string kept_text(const run::KeptTrips& kept, const std::vector<run::KeptTrips>& others) {
  const std::string trips = kept.trips < 0
                                ? "trips without a bound"
                                : cat(kept.is_exact ? "" : "at most ", kept.trips, " trips");
  std::string text =
      cat("the loop at ", line_of(kept.source), " keeps, of ", trips, ", ", choice_text(kept));
  for (size_t i = 0; i < others.size(); ++i)
    text += cat(i == 0 ? " (or " : "; ", choice_text(others[i]));
  return others.empty() ? text : text + ")";
}

std::string recompute_text(const PlanRecompute& mark) {
  const std::string where =
      cat("recompute at ", mark.line, mark.times > 1 ? cat(", ", mark.times, " times,") : "");
  if (mark.saves().count <= 0)
    return cat(where, " saves nothing: the peak without it is ", mark.without);
  return cat(where, " saves ", mark.saves(), ": the peak without it is ", mark.without);
}

// The bytes of Variables, and of those that are allocated by the first call.
std::string variables_text(int64_t all, int64_t unmade) {
  if (unmade == 0) return cat(Bytes(all), " (there already, not counted)");
  const std::string made = cat(Bytes(unmade), " made by the first call and kept, not counted");
  return unmade == all ? cat(Bytes(all), " (", made, ")")
                       : cat(Bytes(all), " (", made, "; the rest is there already)");
}

// A plot of the bytes in use over the steps; each character shows the maximum of one or several
// steps. The full height is the peak.
std::string sparkline(const std::vector<PlanStep>& timeline, Bytes peak) {
  constexpr size_t most = 72;
  const char* const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t columns = std::min(most, timeline.size());
  std::string text;
  for (size_t i = 0; i < columns; ++i) {
    int64_t highest = 0;
    const size_t end = (i + 1) * timeline.size() / columns;
    for (size_t step = i * timeline.size() / columns; step < end; ++step)
      highest = std::max(highest, timeline[step].in_use.count);
    const double share =
        peak.count == 0 ? 0 : static_cast<double>(highest) / static_cast<double>(peak.count);
    text += heights[std::clamp(static_cast<int>(share * 8), 0, 7)];
  }
  return text;
}

void pad(std::string& text, size_t width) {
  text.append(width > text.size() ? width - text.size() : 0, ' ');
}

// The largest tensors in use at the peak, in columns.
std::string peak_table(const std::vector<PlanTensor>& tensors, size_t most) {
  const size_t rows = std::min(most, tensors.size());
  size_t types = 0, lines = 0;
  std::vector<std::string> places;
  for (size_t i = 0; i < rows; ++i) {
    const PlanTensor& tensor = tensors[i];
    places.push_back(tensor.line + (tensor.layer.empty() ? "" : ", in " + tensor.layer));
    types = std::max(types, tensor.type.size());
    lines = std::max(lines, places.back().size());
  }
  std::string text;
  for (size_t i = 0; i < rows; ++i) {
    const std::string bytes = cat(tensors[i].bytes);
    std::string row =
        "\n    " + std::string(bytes.size() < 10 ? 10 - bytes.size() : 0, ' ') + bytes;
    row += "  " + tensors[i].type;
    pad(row, 5 + 10 + 2 + types);
    row += "  " + places[i];
    pad(row, 5 + 10 + 2 + types + 2 + lines);
    text += row + "  " + tensors[i].reason;
  }
  if (rows < tensors.size()) text += cat("\n    and ", tensors.size() - rows, " more");
  return text;
}

// What a budget did and what it cost, one line for each sentence.
std::string budget_text(const Plan& plan) {
  constexpr size_t most = 6;
  std::string text =
      plan.peak() < plan.usual_peak()
          ? cat("\n  the budget brings it down from ", plan.usual_peak(), ", with ",
                detail::more_work_text(plan.more_work()), ": ")
          : cat("\n  the budget has room for more than the usual ", plan.usual_peak(), ": ");
  const std::vector<std::string> sentences = detail::decision_sentences(plan.decisions(), most);
  if (sentences.empty()) return text + "its steps run in another order";
  text.pop_back();
  for (const std::string& sentence : sentences) text += cat("\n    ", sentence);
  return text;
}

}  // namespace

std::string Plan::explain() const {
  TextStream out;
  out << data_->title << " needs " << peak() << " at once (" << peak().count << " bytes)";
  if (peak() != usual_peak()) out << budget_text(*this);
  for (int i = 0; i < kByteClasses; ++i) {
    if (data_->classes[i] == 0) continue;
    const auto which = static_cast<ByteClass>(i);
    const bool beside = which == ByteClass::arguments || which == ByteClass::constants ||
                        which == ByteClass::packed;
    out << "\n  " << name(which) << ' ';
    if (which == ByteClass::variables)
      out << variables_text(data_->classes[i], data_->notes.unmade_bytes);
    else
      out << Bytes(data_->classes[i]) << (beside ? " (there already, not counted)" : "");
  }
  const std::vector<PlanMemory> all = memories();
  for (size_t i = 1; i < all.size(); ++i)
    out << "\n  in memory \"" << all[i].name << "\": " << all[i].bytes << " (" << all[i].bytes.count
        << " bytes)";
  const std::vector<run::KeptTrips>& kept = data_->compiled->program->kept;
  for (size_t i = 0; i < kept.size(); ++i) {
    const bool has_others = i < data_->other_choices.size();
    out << "\n  "
        << kept_text(kept[i], has_others ? data_->other_choices[i] : std::vector<run::KeptTrips>());
  }
  for (const PlanRecompute& each : recomputes()) out << "\n  " << recompute_text(each);
  if (data_->peak_step >= 0) {
    const PlanStep& step = data_->timeline()[static_cast<size_t>(data_->peak_step)];
    out << "\n  " << sparkline(data_->timeline(), peak()) << "\n  the most is in use at step "
        << data_->peak_step << " of " << data_->timeline().size() << " (" << step.name << ", "
        << step.line << (step.layer.empty() ? "" : ", in ") << step.layer << ')';
    out << peak_table(data_->at_peak(), 5);
  }
  out << '\n';
  return out.str();
}

std::string Plan::to_text() const {
  TextStream out;
  out << explain() << "  load " << load() << ", arena "
      << Bytes(data_->compiled->program->arena_bytes) << ", threads "
      << data_->compiled->program->threads << "\n  steps:\n";
  for (size_t i = 0; i < data_->timeline().size(); ++i) {
    const PlanStep& step = data_->timeline()[i];
    out << "  " << i << "  " << step.in_use << "  " << step.name << "  " << step.line << '\n';
  }
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const Plan& plan) { return out << plan.explain(); }

std::ostream& operator<<(std::ostream& out, const Profile& profile) {
  out << "planned " << profile.planned << ", touched " << profile.touched << '\n';
  for (const ProfileMemory& memory : profile.memories) {
    out << "  in memory \"" << memory.name << "\": planned " << memory.planned << ", touched "
        << memory.touched << '\n';
  }
  for (const std::string& path : profile.donated) out << "  donated: " << path << '\n';
  for (const std::string& why : profile.not_donated) out << "  not donated: " << why << '\n';
  return out;
}

std::ostream& operator<<(std::ostream& out, const CacheInfo& info) {
  out << info.entries.size() << " traces in the cache, " << info.bytes << " of " << info.limit
      << "; " << info.traces << " made, " << info.evictions << " dropped";
  if (info.remade > 0)
    out << ", " << info.remade << " made again after that: give it a larger .cache_limit";
  out << '\n';
  for (const CacheEntry& entry : info.entries) {
    out << "  (" << entry.signature << "): " << entry.calls << " calls, " << entry.bytes
        << ", traced in " << entry.trace_ms << " ms, compiled in " << entry.compile_ms
        << " ms; why: " << entry.reason << '\n';
  }
  return out;
}

}  // namespace tidemark
