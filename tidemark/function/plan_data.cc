#include "tidemark/function/plan_data.h"

#include <algorithm>
#include <map>

#include "tidemark/base/error.h"
#include "tidemark/device/memory.h"
#include "tidemark/run/watch.h"
#include "tidemark/run/work.h"

namespace tidemark {
namespace {

using run::Program;

std::string line_of(Source at) { return at.known() ? at.text() : std::string("?"); }

// The arenas of a map's bodies are one buffer in the enclosing arena.
bool counts(const Program& program, const run::Buffer& buffer) {
  return buffer.arena == 0 && buffer.memory == program.home && buffer.bytes > 0;
}

// The bytes alive at each step, results included.
std::vector<int64_t> alive_at(const Program& program) {
  std::vector<int64_t> alive(program.steps.size() + 1);
  for (const run::Buffer& buffer : program.buffers) {
    if (!counts(program, buffer)) continue;
    alive[static_cast<size_t>(buffer.lower)] += buffer.bytes;
    if (static_cast<size_t>(buffer.upper) < alive.size())
      alive[static_cast<size_t>(buffer.upper)] -= buffer.bytes;
  }
  int64_t now = program.result_bytes(program.home);
  for (int64_t& bytes : alive) bytes = now += bytes;
  alive.resize(program.steps.size());
  return alive;
}

std::string reason_of(const Program& program, const run::Buffer& buffer) {
  const auto last = static_cast<size_t>(buffer.upper - 1);
  std::string text(name(buffer.byte_class));
  if (!buffer.saved_for.empty())
    text += cat(" for the gradient of ", buffer.saved_for, " (", line_of(buffer.saved_at), ")");
  text += cat(": made by ", buffer.name);
  if (last < program.steps.size() && buffer.upper - 1 > buffer.lower)
    text += cat(", read last by step ", last, " (", program.steps[last].name, ")");
  return text;
}

std::string reason_of(const run::Result& result) {
  std::string text = cat(name(result.byte_class), ": ", result.name);
  if (result.why_not_in_place.empty()) return text;
  return cat(text, ", not in place: ", result.why_not_in_place);
}

bool is_alive_at(const Program& program, const run::Buffer& buffer, int64_t step) {
  return counts(program, buffer) && buffer.lower <= step && step < buffer.upper;
}

bool is_operand(const Program& program, const run::Step& step, int32_t buffer) {
  const std::span<const run::Address> operands =
      std::span(program.addresses)
          .subspan(static_cast<size_t>(step.first_operand), static_cast<size_t>(step.operands));
  return std::any_of(operands.begin(), operands.end(),
                     [&](const run::Address& operand) { return operand.buffer == buffer; });
}

// Why a buffer is alive at a step.
std::string held_for(const Program& program, size_t number, int64_t step) {
  const run::Buffer& buffer = program.buffers[number];
  if (buffer.byte_class == ByteClass::workspace) return "workspace of this step";
  if (buffer.lower == step) return "made by this step";
  const auto last = static_cast<size_t>(buffer.upper - 1);
  if (buffer.upper - 1 == step ||
      is_operand(program, program.steps[static_cast<size_t>(step)], static_cast<int32_t>(number)))
    return cat("made by ", buffer.name, ", read by this step");
  if (last >= program.steps.size()) return cat("made by ", buffer.name, ", kept until the end");
  return cat("made by ", buffer.name, ", kept for step ", last, " (", program.steps[last].name,
             ")");
}

std::vector<PlanStep> timeline_of(const Program& program) {
  const std::vector<int64_t> alive = alive_at(program);
  std::vector<PlanStep> timeline;
  timeline.reserve(program.steps.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Source at = program.steps[i].source;
    timeline.push_back({program.steps[i].name, line_of(at), at.layer_path(), Bytes(alive[i])});
  }
  return timeline;
}

std::vector<PlanTensor> tensors_at(const Program& program, int64_t step) {
  std::vector<PlanTensor> tensors;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const run::Buffer& buffer = program.buffers[i];
    if (!is_alive_at(program, buffer, step)) continue;
    tensors.push_back({cat(buffer.dtype, buffer.shape), line_of(buffer.source),
                       buffer.source.layer_path(), reason_of(program, buffer), Bytes(buffer.bytes),
                       held_for(program, i, step)});
  }
  for (const run::Result& result : program.results) {
    if (result.parameter >= 0 || result.bytes == 0 || result.memory != program.home) continue;
    tensors.push_back({cat(result.dtype, result.shape), line_of(result.source),
                       result.source.layer_path(), reason_of(result), Bytes(result.bytes), ""});
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const PlanTensor& a, const PlanTensor& b) { return a.bytes > b.bytes; });
  return tensors;
}

}  // namespace

const PlanLists::Made& PlanLists::of(const Program& program, int64_t peak_step) {
  std::call_once(once_, [&] {
    made_ = {.timeline = timeline_of(program), .at_peak = tensors_at(program, peak_step)};
  });
  return made_;
}

namespace {

double share_of(const fit::Cost& again, const fit::Cost& usual) {
  return usual.seconds > 0 ? again.seconds / usual.seconds : 0;
}

}  // namespace

std::string detail::memory_name(int32_t number) {
  return std::string(device::memory(number).name());
}

Plan detail::PlanAccess::make(std::string title, std::shared_ptr<const CompiledFunction> compiled,
                              PlanNotes notes) {
  auto data = std::make_shared<Plan::Data>();
  const Program& program = *compiled->program;
  data->title = std::move(title);
  data->notes = std::move(notes);
  data->compiled = std::move(compiled);
  for (const run::Place& parameter : program.parameters)
    if (parameter.memory == program.home)
      data->classes[static_cast<int>(parameter.byte_class)] += parameter.bytes;
  for (const run::Result& result : program.results) {
    if (result.parameter < 0 && result.memory == program.home)
      data->classes[static_cast<int>(result.byte_class)] += result.bytes;
  }
  const std::vector<int64_t> alive = alive_at(program);
  if (!alive.empty())
    data->peak_step = std::max_element(alive.begin(), alive.end()) - alive.begin();
  // The arena by class: the live bytes at its peak; bytes lost to fragmentation count as temporary.
  int64_t listed = 0;
  for (const run::Buffer& buffer : program.buffers) {
    if (!is_alive_at(program, buffer, data->peak_step)) continue;
    data->classes[static_cast<int>(buffer.byte_class)] += buffer.bytes;
    listed += buffer.bytes;
  }
  const int64_t arena = program.peak_bytes() - program.result_bytes(program.home);
  data->classes[static_cast<int>(ByteClass::temporaries)] += arena - listed;
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

Plan detail::PlanAccess::with_budgets(Plan plan,
                                      std::function<std::shared_ptr<ProgramFrontier>()> frontier,
                                      std::function<Plan(Bytes, Source)> within) {
  auto data = std::make_shared<Plan::Data>(*plan.data_);
  data->frontier = std::move(frontier);
  data->within = std::move(within);
  plan.data_ = std::move(data);
  return plan;
}

Plan detail::PlanAccess::with_other_choices(Plan plan,
                                            std::vector<std::vector<run::KeptTrips>> others) {
  auto data = std::make_shared<Plan::Data>(*plan.data_);
  data->other_choices = std::move(others);
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
  return program.arena_bytes + program.result_bytes();
}
Bytes Plan::peak() const { return data_->compiled->peak_bytes(); }
Bytes Plan::first_call() const { return peak() + data_->notes.unmade_bytes; }
Bytes Plan::floor() const { return data_->frontier ? data_->frontier()->floor_bytes() : peak(); }

std::vector<TradeoffPoint> Plan::tradeoff() const {
  std::vector<TradeoffPoint> list;
  const std::shared_ptr<detail::ProgramFrontier> frontier = data_->frontier();
  const fit::Cost usual = frontier->usual_cost();
  for (const fit::Frontier::Point& point : frontier->points())
    list.push_back({point.peak_bytes, point.again.flop, point.again.bytes_moved,
                    share_of(point.again, usual), (usual.seconds + point.again.seconds) * 1e3});
  return list;
}

Plan Plan::within(Budget budget, Source at) const { return data_->within(budget.bytes(), at); }

std::vector<PlanDecision> Plan::decisions() const {
  std::vector<PlanDecision> list;
  if (!data_->compiled->changes) return list;
  for (const fit::Decision& each : data_->compiled->changes->decisions)
    list.push_back({each.what, each.source.known() ? each.source.text() : "",
                    each.source.layer_path(), each.times, each.bytes, each.cost.flop,
                    share_of(each.cost, data_->compiled->changes->usual), each.op});
  return list;
}

double Plan::flop() const { return run::planned_work(*data_->compiled->program).flop; }
double Plan::bytes_moved() const {
  return run::planned_work(*data_->compiled->program).bytes_moved;
}

double Plan::more_work() const {
  const auto& changes = data_->compiled->changes;
  return changes ? share_of(changes->again, changes->usual) : 0;
}

Bytes Plan::usual_peak() const {
  const auto& changes = data_->compiled->changes;
  return changes ? changes->usual_peak : peak();
}

Bytes Plan::load() const {
  const Program& program = *data_->compiled->program;
  for (const run::DeviceArena& arena : program.device_arenas)
    if (arena.memory == program.home) return arena.load_bytes;
  return program.load_bytes;
}
Bytes Plan::of(ByteClass byte_class) const { return data_->classes[static_cast<int>(byte_class)]; }
std::vector<PlanRecompute> Plan::recomputes() const { return data_->notes.recomputes; }
std::vector<PlanMemory> Plan::memories() const {
  const Program& program = *data_->compiled->program;
  std::vector<PlanMemory> list = {{"host", arena(), program.load_bytes}};
  for (const run::DeviceArena& arena : program.device_arenas)
    list.push_back({detail::memory_name(arena.memory),
                    arena.bytes + program.result_bytes(arena.memory), arena.load_bytes});
  return list;
}
const std::vector<PlanStep>& Plan::timeline() const& { return data_->timeline(); }
std::vector<PlanStep> Plan::timeline() && { return data_->timeline(); }
int64_t Plan::peak_step() const { return data_->peak_step; }
const std::vector<std::string>& Plan::open_sizes() const& { return data_->open_sizes; }
std::vector<std::string> Plan::open_sizes() && { return data_->open_sizes; }
const std::vector<PlanTensor>& Plan::at_peak() const& { return data_->at_peak(); }
std::vector<PlanTensor> Plan::at_peak() && { return data_->at_peak(); }

namespace {

std::vector<PlanBlame> blame(const std::vector<PlanTensor>& tensors,
                             std::string PlanTensor::* where) {
  std::map<std::string_view, PlanBlame> found;
  for (const PlanTensor& tensor : tensors) {
    PlanBlame& each = found[tensor.*where];
    each.where = tensor.*where;
    each.bytes = each.bytes + tensor.bytes;
    ++each.tensors;
  }
  std::vector<PlanBlame> list;
  for (auto& [name, each] : found) list.push_back(std::move(each));
  std::stable_sort(list.begin(), list.end(),
                   [](const PlanBlame& a, const PlanBlame& b) { return a.bytes > b.bytes; });
  return list;
}

}  // namespace

std::vector<PlanBlame> Plan::by_line() const { return blame(data_->at_peak(), &PlanTensor::line); }
std::vector<PlanBlame> Plan::by_layer() const {
  return blame(data_->at_peak(), &PlanTensor::layer);
}

namespace {

std::string memory_label(int32_t number) {
  return number == device::kHostMemory ? "host" : detail::memory_name(number);
}

}  // namespace

std::vector<PlanBuffer> Plan::buffers() const {
  const Program& program = *data_->compiled->program;
  std::vector<PlanBuffer> list;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const run::Buffer& buffer = program.buffers[i];
    if (buffer.bytes == 0) continue;
    PlanBuffer& made = list.emplace_back();
    made.name = buffer.name;
    made.type = cat(buffer.dtype, buffer.shape);
    made.line = line_of(buffer.source);
    made.layer = buffer.source.layer_path();
    made.reason = reason_of(program, buffer);
    made.byte_class = buffer.byte_class;
    made.bytes = buffer.bytes;
    made.offset = program.offsets[i];
    made.begin = buffer.lower;
    made.end = buffer.upper;
    made.memory = memory_label(buffer.memory);
    made.arena = buffer.arena;
  }
  int64_t offset = program.arena_bytes;
  for (const run::Result& result : program.results) {
    if (result.parameter >= 0 || result.bytes == 0) continue;
    PlanBuffer& made = list.emplace_back();
    made.name = result.name;
    made.type = cat(result.dtype, result.shape);
    made.line = line_of(result.source);
    made.layer = result.source.layer_path();
    made.reason = reason_of(result);
    made.byte_class = result.byte_class;
    made.bytes = result.bytes;
    made.end = static_cast<int64_t>(program.steps.size());
    made.memory = memory_label(result.memory);
    if (result.memory != 0) continue;  // In bytes of its own.
    made.offset = offset;
    offset += result.bytes;
  }
  return list;
}

void detail::PlanAccess::add_seen(const Program& program, const run::Watch& watch,
                                  Profile& profile) {
  const std::vector<int64_t> planned = alive_at(program), seen = watch.in_use();
  const int64_t results = program.result_bytes(program.home);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Source at = program.steps[i].source;
    const run::Watch::StepRuns& ran = watch.steps()[i];
    const run::StepWork work = program.steps[i].work * static_cast<double>(ran.runs);
    profile.steps.push_back({program.steps[i].name, line_of(at), at.layer_path(), Bytes(planned[i]),
                             Bytes(results + seen[i]), ran.runs, ran.time_ns, work.flop,
                             work.bytes_moved});
    profile.flop += work.flop;
    profile.bytes_moved += work.bytes_moved;
  }
  for (const run::Watch::Slice& slice : watch.slices())
    profile.slices.push_back({slice.step, slice.thread, slice.begin_ns, slice.end_ns});
  profile.slices_left_out = watch.slices_left_out();
}

}  // namespace tidemark
