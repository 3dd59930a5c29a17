#include "tidemark/api/plan.h"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "tidemark/api/plan_data.h"
#include "tidemark/base/error.h"
#include "tidemark/device/memory.h"
#include "tidemark/run/treeverse.h"

namespace tidemark {
namespace {

using run::Program;

std::string line_of(Source at) { return at.known() ? at.text() : std::string("?"); }

// Bytes of a map's bodies stand in the arena around them as one buffer.
bool counts(const run::Buffer& buffer) {
  return buffer.arena == 0 && buffer.memory == 0 && buffer.bytes > 0;
}

int64_t own_results(const Program& program) {
  int64_t bytes = 0;
  for (const run::Result& result : program.results)
    if (result.parameter < 0) bytes += result.bytes;
  return bytes;
}

// The bytes alive at each step, results included.
std::vector<int64_t> alive_at(const Program& program) {
  std::vector<int64_t> alive(program.steps.size() + 1);
  for (const run::Buffer& buffer : program.buffers) {
    if (!counts(buffer)) continue;
    alive[static_cast<size_t>(buffer.lower)] += buffer.bytes;
    if (static_cast<size_t>(buffer.upper) < alive.size())
      alive[static_cast<size_t>(buffer.upper)] -= buffer.bytes;
  }
  int64_t now = own_results(program);
  for (int64_t& bytes : alive) bytes = now += bytes;
  alive.resize(program.steps.size());
  return alive;
}

std::string reason_of(const Program& program, const run::Buffer& buffer) {
  const auto last = static_cast<size_t>(buffer.upper - 1);
  std::string text = cat(name(buffer.byte_class), ": made by ", buffer.name);
  if (last < program.steps.size() && buffer.upper - 1 > buffer.lower)
    text += cat(", read last by step ", last, " (", program.steps[last].name, ")");
  return text;
}

std::string reason_of(const run::Result& result) {
  const std::string text = cat(name(result.byte_class), ": ", result.name);
  if (result.why_not_in_place.empty()) return text;
  return cat(text, ", not in place: ", result.why_not_in_place);
}

// What a loop keeps of its trips for a gradient, then what it could keep instead.
std::string kept_text(const run::KeptTrips& kept) {
  const auto slots = [&](int64_t count) {
    return cat("slots(", count, "): ", Bytes(count * kept.state_bytes));
  };
  const auto again = [&](int64_t advances) {
    const int64_t first_time = std::max<int64_t>(0, kept.trips - 1);
    return cat(", ", advances - first_time, " trips run again");
  };
  const std::string loop = cat("the loop at ", line_of(kept.source), " keeps, of ");
  if (kept.trips < 0) return cat(loop, "trips without a bound, ", slots(kept.slots));
  int64_t root = 1;
  while (root * root < kept.trips) ++root;
  std::vector<std::string> choices;
  const auto add_slots = [&](int64_t count) {
    choices.push_back(slots(count) + again(run::fewest_advances(kept.trips, count)));
  };
  const auto add_every = [&](int64_t every) {
    const int64_t states = std::max<int64_t>(1, (kept.trips + every - 1) / every) + every - 1;
    choices.push_back(cat("every(", every, "): ", Bytes(states * kept.state_bytes),
                          again(run::advances_every(kept.trips, every))));
  };
  const bool is_all = kept.slots == 0;
  if (kept.every > 0)
    add_every(kept.every);
  else if (!is_all)
    add_slots(kept.slots);
  choices.push_back(cat("all: ", Bytes(is_all ? kept.bytes : kept.trips * kept.state_bytes),
                        again(std::max<int64_t>(0, kept.trips - 1))));
  if (kept.slots != root || kept.every > 0) add_slots(root);
  if (kept.every != root) add_every(root);
  std::string text =
      cat(loop, kept.is_exact ? "" : "at most ", kept.trips, " trips, ", choices[0], " (or ");
  for (size_t i = 1; i < choices.size(); ++i) text += cat(i == 1 ? "" : "; ", choices[i]);
  return text + ")";
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out + '"';
}

}  // namespace

std::string detail::memory_name(int32_t number) {
  return std::string(device::memory(number).name());
}

Plan detail::PlanAccess::make(std::string title, std::shared_ptr<const CompiledFunction> compiled) {
  auto data = std::make_shared<Plan::Data>();
  const Program& program = *compiled->program;
  data->title = std::move(title);
  data->compiled = std::move(compiled);
  for (const run::Place& parameter : program.parameters)
    data->classes[static_cast<int>(parameter.byte_class)] += parameter.bytes;
  for (const run::Result& result : program.results) {
    if (result.parameter < 0) data->classes[static_cast<int>(result.byte_class)] += result.bytes;
  }
  const std::vector<int64_t> alive = alive_at(program);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    data->timeline.push_back(
        {program.steps[i].name, line_of(program.steps[i].source), Bytes(alive[i])});
  }
  if (!alive.empty())
    data->peak_step = std::max_element(alive.begin(), alive.end()) - alive.begin();
  // The arena by class: what is alive at its peak; what placement wastes is temporary too.
  int64_t listed = 0;
  for (const run::Buffer& buffer : program.buffers) {
    if (!counts(buffer) || buffer.lower > data->peak_step || buffer.upper <= data->peak_step)
      continue;
    data->at_peak.push_back({cat(buffer.dtype, buffer.shape), line_of(buffer.source),
                             reason_of(program, buffer), Bytes(buffer.bytes)});
    data->classes[static_cast<int>(buffer.byte_class)] += buffer.bytes;
    listed += buffer.bytes;
  }
  data->classes[static_cast<int>(ByteClass::temporaries)] += program.arena_bytes - listed;
  for (const run::Result& result : program.results) {
    if (result.parameter >= 0) continue;
    data->at_peak.push_back({cat(result.dtype, result.shape), line_of(result.source),
                             reason_of(result), Bytes(result.bytes)});
  }
  std::stable_sort(data->at_peak.begin(), data->at_peak.end(),
                   [](const PlanTensor& a, const PlanTensor& b) { return a.bytes > b.bytes; });
  Plan plan;
  plan.data_ = std::move(data);
  return plan;
}

Plan detail::PlanAccess::make_open(Plan plan, std::vector<std::string> open_sizes,
                                   std::function<Plan(std::span<const int64_t>, Source)> at_sizes) {
  auto data = std::make_shared<Plan::Data>(*plan.data_);
  data->open_sizes = std::move(open_sizes);
  data->at_sizes = std::move(at_sizes);
  plan.data_ = std::move(data);
  return plan;
}

Plan Plan::at(const std::vector<int64_t>& sizes, Source at) const {
  const auto listed = [&] {
    std::string text;
    for (const std::string& name : data_->open_sizes) text += cat(text.empty() ? "" : "; ", name);
    return text.empty() ? std::string("none is open") : text;
  };
  if (sizes.size() != data_->open_sizes.size())
    throw UserError(
        cat("at: ", sizes.size(), " sizes for a plan with ", data_->open_sizes.size(), " open"), at,
        cat("give one for each, in order: ", listed()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0)
      throw UserError(cat("at: ", data_->open_sizes[i], " cannot be ", sizes[i]), at,
                      "a size is a number from 0 up");
  }
  return sizes.empty() ? *this : data_->at_sizes(sizes, at);
}

Plan::Plan() = default;
Plan::~Plan() = default;
Plan::Plan(const Plan&) = default;
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(const Plan&) = default;
Plan& Plan::operator=(Plan&&) noexcept = default;

Bytes Plan::arena() const {
  const Program& program = *data_->compiled->program;
  return program.arena_bytes + own_results(program);
}
Bytes Plan::peak() const { return arena(); }
Bytes Plan::floor() const { return arena(); }
Bytes Plan::load() const { return data_->compiled->program->load_bytes; }
Bytes Plan::of(ByteClass byte_class) const { return data_->classes[static_cast<int>(byte_class)]; }
std::vector<PlanMemory> Plan::memories() const {
  std::vector<PlanMemory> list = {{"host", peak(), load()}};
  for (const run::DeviceArena& arena : data_->compiled->program->device_arenas)
    list.push_back({detail::memory_name(arena.memory), arena.bytes, arena.load_bytes});
  return list;
}
const std::vector<PlanStep>& Plan::timeline() const { return data_->timeline; }
int64_t Plan::peak_step() const { return data_->peak_step; }
const std::vector<std::string>& Plan::open_sizes() const { return data_->open_sizes; }
const std::vector<PlanTensor>& Plan::at_peak() const { return data_->at_peak; }

std::string Plan::explain() const {
  std::ostringstream out;
  out << data_->title << " needs " << peak() << " at once (" << peak().count << " bytes)";
  for (int i = 0; i < kByteClasses; ++i) {
    if (data_->classes[i] == 0) continue;
    const auto which = static_cast<ByteClass>(i);
    const bool beside = which == ByteClass::arguments || which == ByteClass::variables ||
                        which == ByteClass::constants || which == ByteClass::packed;
    out << "\n  " << name(which) << ' ' << Bytes(data_->classes[i])
        << (beside ? " (there already, not counted)" : "");
  }
  const std::vector<PlanMemory> all = memories();
  for (size_t i = 1; i < all.size(); ++i)
    out << "\n  in memory \"" << all[i].name << "\": " << all[i].bytes << " (" << all[i].bytes.count
        << " bytes)";
  for (const run::KeptTrips& kept : data_->compiled->program->kept)
    out << "\n  " << kept_text(kept);
  if (data_->peak_step >= 0) {
    const PlanStep& step = data_->timeline[static_cast<size_t>(data_->peak_step)];
    out << "\n  the most is in use at step " << data_->peak_step << " of " << data_->timeline.size()
        << " (" << step.name << ", " << step.line << ')';
    for (size_t i = 0; i < std::min<size_t>(5, data_->at_peak.size()); ++i) {
      const PlanTensor& tensor = data_->at_peak[i];
      out << "\n    " << tensor.type << ' ' << tensor.bytes << ", " << tensor.reason << " ("
          << tensor.line << ')';
    }
  }
  out << '\n';
  return out.str();
}

std::string Plan::to_text() const {
  std::ostringstream out;
  out << explain() << "  load " << load() << ", arena "
      << Bytes(data_->compiled->program->arena_bytes) << ", threads "
      << data_->compiled->program->threads << "\n  steps:\n";
  for (size_t i = 0; i < data_->timeline.size(); ++i) {
    const PlanStep& step = data_->timeline[i];
    out << "  " << i << "  " << step.in_use << "  " << step.name << "  " << step.line << '\n';
  }
  return out.str();
}

std::string Plan::to_json() const {
  std::ostringstream out;
  out << "{\"version\": 1, \"function\": " << json_text(data_->title)
      << ", \"peak\": " << peak().count << ", \"arena\": " << data_->compiled->program->arena_bytes
      << ", \"load\": " << load().count << ", \"threads\": " << data_->compiled->program->threads
      << ", \"classes\": {";
  for (int i = 0; i < kByteClasses; ++i) {
    out << (i == 0 ? "" : ", ") << '"' << name(static_cast<ByteClass>(i))
        << "\": " << data_->classes[i];
  }
  out << "}, \"memories\": [";
  const std::vector<PlanMemory> all = memories();
  for (size_t i = 0; i < all.size(); ++i) {
    out << (i == 0 ? "" : ", ") << "{\"name\": " << json_text(all[i].name)
        << ", \"bytes\": " << all[i].bytes.count << ", \"load\": " << all[i].load.count << '}';
  }
  out << "], \"peak_step\": " << data_->peak_step << ", \"at_peak\": [";
  for (size_t i = 0; i < data_->at_peak.size(); ++i) {
    const PlanTensor& tensor = data_->at_peak[i];
    out << (i == 0 ? "" : ", ") << "{\"type\": " << json_text(tensor.type)
        << ", \"bytes\": " << tensor.bytes.count << ", \"line\": " << json_text(tensor.line)
        << ", \"reason\": " << json_text(tensor.reason) << '}';
  }
  out << "], \"timeline\": [";
  for (size_t i = 0; i < data_->timeline.size(); ++i) {
    const PlanStep& step = data_->timeline[i];
    out << (i == 0 ? "" : ", ") << "{\"step\": " << json_text(step.name)
        << ", \"line\": " << json_text(step.line) << ", \"in_use\": " << step.in_use.count << '}';
  }
  out << "]}\n";
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
      << "; " << info.traces << " made, " << info.evictions << " dropped\n";
  for (const CacheEntry& entry : info.entries) {
    out << "  (" << entry.signature << "): " << entry.calls << " calls, " << entry.bytes
        << ", traced in " << entry.trace_ms << " ms, compiled in " << entry.compile_ms
        << " ms; why: " << entry.reason << '\n';
  }
  return out;
}

}  // namespace tidemark
