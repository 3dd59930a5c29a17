#include "tidemark/function/function_plan.h"

#include <algorithm>
#include <array>

#include "tidemark/device/threads.h"
#include "tidemark/fit/chunks.h"
#include "tidemark/function/over_budget.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::detail {
namespace {

std::string sizes_text(const std::vector<std::string>& names, std::span<const int64_t> sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i)
    text += cat(i == 0 ? "" : ", ", names[i], " = ", sizes[i]);
  return text;
}

}  // namespace

PlanMaker::PlanMaker(const UserFunction& function, std::shared_ptr<FunctionTrace> of)
    : name(function.options.name.empty() ? "the function" : function.options.name),
      title(function.title()),
      trace(std::move(of)),
      limit_bytes(function.options.cache_limit.count),
      budget(function.options.budget) {}

std::vector<std::string> PlanMaker::open_names() const {
  std::vector<std::string> names;
  for (const SizePlace place : trace->input.open) names.push_back(text_of(place, trace->paths));
  return names;
}

std::shared_ptr<const CompiledFunction> PlanMaker::program_at(
    ProgramKey key, std::span<const int64_t> sizes) const {
  std::copy(sizes.begin(), sizes.end(), key.words.begin() + key.sizes_at);
  return program_for(key);
}

std::shared_ptr<const CompiledFunction> PlanMaker::program_for(const ProgramKey& key) const {
  auto program = trace->program_for(trace, key, limit_bytes);
  const bool is_usual =
      !program->changes.has_value() && !fit::has_automatic_chunk(*program->program);
  if (!budget || (is_usual && program->peak_bytes() <= budget->bytes().count)) return program;
  return trace->program_within(trace, key, budget->bytes().count);
}

std::shared_ptr<const CompiledFunction> PlanMaker::within_budget(
    std::shared_ptr<const CompiledFunction> program) const {
  const int64_t bytes = budget->bytes().count;
  if (!budget->is_available() || program->peak_bytes() <= bytes) return program;
  return trace->program_within(trace, program->key, bytes);
}

// Halves the first open size, with all sizes equal to it (a batch is a dimension of several
// arguments), until it fits.
std::string PlanMaker::smaller_that_fits(const CompiledFunction& program) const {
  const std::span<const int64_t> asked = program.key.sizes();
  if (asked.empty()) return {};
  for (int64_t size = asked[0] / 2; size > 0; size /= 2) {
    const SizeList sizes = sizes_with(program.key, size);
    if (!trace->admits(sizes)) continue;
    const auto smaller = program_at(program.key, sizes);
    if (smaller->peak_bytes() > budget->bytes().count) continue;
    return cat(sizes_text(open_names(), sizes), " fits in ", Bytes(smaller->peak_bytes()));
  }
  return {};
}

namespace {

struct RecomputeLine {
  Source at = Source::none();
  int64_t times = 0;
};

// In the order of files and lines.
std::vector<RecomputeLine> recompute_lines(const TracedGraph& traced) {
  std::vector<RecomputeLine> lines;
  for (const Source line : traced.recomputed) {
    const auto known = std::find_if(lines.begin(), lines.end(), [&](const RecomputeLine& other) {
      return passes::is_same_line(other.at, line);
    });
    if (known == lines.end())
      lines.push_back({line, 1});
    else
      ++known->times;
  }
  std::sort(lines.begin(), lines.end(), [](const RecomputeLine& a, const RecomputeLine& b) {
    return std::pair(std::string_view(a.at.file), a.at.line) <
           std::pair(std::string_view(b.at.file), b.at.line);
  });
  return lines;
}

}  // namespace

PlanNotes PlanMaker::notes_of(const CompiledFunction& program) const {
  PlanNotes notes;
  for (const Trace::Parameter& parameter : trace->traced.parameters) {
    if (parameter.variable == nullptr) continue;
    const VariableState& variable = *parameter.variable;
    const std::lock_guard guard(variable.lock);
    if (!variable.value.has_value())
      notes.unmade_bytes += granted_bytes(variable.shape.size() * size_of(variable.dtype));
  }
  if (program.changes) return notes;
  for (const RecomputeLine& each : recompute_lines(trace->traced)) {
    const auto other =
        program_keeping(trace->traced, program.key, {.rewritten = {.inlined = each.at}});
    if (other == nullptr) continue;
    notes.recomputes.push_back({each.at.known() ? each.at.text() : "?", each.times,
                                program.peak_bytes(), other->peak_bytes()});
  }
  return notes;
}

std::vector<std::string> PlanMaker::remedies_for(const CompiledFunction& program) const {
  std::vector<std::string> remedies;
  for (std::string& remedy :
       std::array{smaller_that_fits(program), fewer_threads_that_fit(program),
                  fewer_slots_that_fit(program), recomputed_layer_that_fits(program),
                  bf16_that_fits(program)})
    if (!remedy.empty()) remedies.push_back(std::move(remedy));
  return remedies;
}

void PlanMaker::check(const std::shared_ptr<const CompiledFunction>& program, Source at) const {
  if (!budget.has_value() || program->peak_bytes() <= budget->bytes().count) return;
  const std::string sizes = sizes_text(open_names(), program->key.sizes());
  throw OverBudget(
      PlanAccess::make(title, program),
      {.subject = sizes.empty() ? name : name + ", for " + sizes,
       .budget = budget->bytes(),
       .usual = program->changes ? program->changes->usual_peak : program->peak_bytes(),
       .remedies = remedies_for(*program)},
      at);
}

Plan PlanMaker::make(std::shared_ptr<const CompiledFunction> program, Source at) const {
  check(program, at);
  const ProgramKey key = program->key;
  PlanNotes notes = notes_of(*program);
  if (key.sizes().empty())
    return with_budgets(PlanAccess::make(title, std::move(program), std::move(notes)), key);
  const std::vector<std::string> names = open_names();
  Plan plan = with_budgets(PlanAccess::make(cat(title, ", for ", sizes_text(names, key.sizes())),
                                            std::move(program), std::move(notes)),
                           key);
  const auto others = [own = *this, key](std::span<const int64_t> sizes, Source call) {
    return own.at_sizes(key, sizes, call);
  };
  return PlanAccess::make_open(std::move(plan), names, others);
}

Plan PlanMaker::with_budgets(Plan plan, const ProgramKey& key) const {
  const auto frontier = [own = trace, key] { return own->frontiers.of(own->traced, key); };
  const auto within = [own = *this, key](Bytes bytes, Source at) {
    PlanMaker other = own;
    other.budget = bytes;
    return other.make(other.program_for(key), at);
  };
  return PlanAccess::with_budgets(std::move(plan), frontier, within);
}

// Scratch of each thread counts.
std::string PlanMaker::fewer_threads_that_fit(const CompiledFunction& program) const {
  if (program.program->threads == 1) return {};
  const device::ThreadsScope one(1);
  ProgramKey key = program.key;
  key.words[0] = 1;
  const auto fewer = ProgramFrontier(trace->traced, key).within(budget->bytes().count);
  if (fewer->peak_bytes() > budget->bytes().count) return {};
  return cat("one thread fits in ", Bytes(fewer->peak_bytes()), ": td::set_num_threads(1)");
}

namespace {

// Nothing if the choice is refused, or the gradients stay as they are.
std::optional<int64_t> peak_with_slots(const TracedGraph& traced, const ProgramKey& key,
                                       Source loop, int64_t slots) try {
  const passes::GradientSettings::AtLine choice{loop, {LoopAttrs::Save::slots, slots}};
  const auto program = program_keeping(traced, key, {.save_at = choice});
  return program == nullptr ? std::nullopt : std::optional(program->peak_bytes());
} catch (const UserError&) {
  return {};
}

}  // namespace

// Whatever the budget, a loop keeps what its user wrote. Halves the slots of one line until they
// fit.
std::string PlanMaker::fewer_slots_that_fit(const CompiledFunction& program) const {
  for (const run::KeptTrips& loop : program.program->kept) {
    const int64_t most = loop.slots > 0 ? loop.slots - 1 : loop.trips / 2;
    for (int64_t slots = most; slots > 0; slots /= 2) {
      const auto peak = peak_with_slots(trace->traced, program.key, loop.source, slots);
      if (!peak) break;
      if (*peak <= budget->bytes().count)
        return cat(".save = td::Save::slots(", slots, ") at ", loop.source.text(), " fits in ",
                   Bytes(*peak));
    }
  }
  return {};
}

namespace {

// Those with a loop that keeps trips for its gradient, each before those around it: a budget drops
// everything else by itself. A few, since each takes a search.
std::vector<std::string> layers_with_loops(const TracedGraph& traced) {
  constexpr size_t most = 8;
  const Graph& graph = traced.as_traced != nullptr ? *traced.as_traced : traced.graph;
  std::vector<std::string> layers;
  for (const auto& [loop, before] : traced.gradients.loops) {
    std::string path = graph.nodes[static_cast<size_t>(loop)].source.layer_path();
    for (; !path.empty() && layers.size() < most;
         path.resize(path.find('/') == std::string::npos ? 0 : path.rfind('/')))
      if (std::find(layers.begin(), layers.end(), path) == layers.end()) layers.push_back(path);
  }
  return layers;
}

}  // namespace

std::string PlanMaker::recomputed_layer_that_fits(const CompiledFunction& program) const {
  const int64_t bytes = budget->bytes().count;
  for (const std::string& layer : layers_with_loops(trace->traced))
    if (const auto peak = peak_with_recomputed(trace->traced, program.key, layer, bytes))
      return cat("td::recompute around layer \"", layer, "\" fits in ", Bytes(*peak));
  return {};
}

// As if its arguments, Variables and literals were in bf16.
std::string PlanMaker::bf16_that_fits(const CompiledFunction& program) const {
  const auto peak = peak_in_bf16(trace->traced, program.key, budget->bytes().count);
  return peak ? cat("bf16 in place of f32 fits in ", Bytes(*peak)) : std::string();
}

// The sizes with another value for the first, and for all that equal it.
SizeList PlanMaker::sizes_with(const ProgramKey& key, int64_t first) const {
  SizeList sizes;
  for (const int64_t size : key.sizes()) sizes.push_back(size == key.sizes()[0] ? first : size);
  return sizes;
}

bool PlanMaker::fits_at(const ProgramKey& key, int64_t first) const {
  const SizeList sizes = sizes_with(key, first);
  return trace->admits(sizes) && program_at(key, sizes)->peak_bytes() <= budget->bytes().count;
}

// Looks upward from `below`, by doubling, then between what fits and what does not.
int64_t PlanMaker::largest_from(const ProgramKey& key, int64_t below, int64_t above) const {
  int64_t found = below;
  while (above <= (int64_t{1} << 40) && fits_at(key, above)) {
    found = below = above;
    above *= 2;
  }
  while (above - below > 1) {
    const int64_t middle = below + (above - below) / 2;
    const bool fits = fits_at(key, middle);
    if (fits) found = middle;
    // Another trace serves small sizes, such as 1: those that fit lie above them.
    const bool is_too_small = found == 0 && !trace->admits(sizes_with(key, middle));
    (fits || is_too_small ? below : above) = middle;
  }
  return found;
}

// A batch is computed in parts if these are equal and whole blocks of its sums, so that it may fit
// where fewer rows do not. Nothing if there is none.
std::optional<int64_t> PlanMaker::next_of_equal_parts(const ProgramKey& key, int64_t size) const {
  constexpr int64_t most = 4096;  // Sixteen parts of 256 rows.
  int64_t last = size + 1;
  for (int64_t unit = 2; unit <= most; unit *= 2) {
    const int64_t next = (size / unit + 1) * unit;
    if (next != last && fits_at(key, next)) return next;
    last = next;
  }
  return {};
}

int64_t PlanMaker::largest(const ProgramKey& key, Source at) const {
  if (key.sizes().empty())
    throw UserError(cat("largest: ", name, " has no open size"), at,
                    "open one: td::function(f, {.input_signature = {td::spec({td::open, 784})}})");
  int64_t found = largest_from(key, 0, std::max<int64_t>(1, key.sizes()[0]));
  while (const auto next = found > 0 ? next_of_equal_parts(key, found) : std::nullopt)
    found = largest_from(key, *next, *next + 1);
  if (found > 0) check_serves("largest", sizes_with(key, found + 1), at);
  return found;
}

void PlanMaker::check_serves(const char* call, std::span<const int64_t> sizes, Source at) const {
  const SizeTable& table = trace->traced.sizes;
  if (const SizeTable::Guard* broken = table.broken(table.evaluate(sizes)))
    throw UserError(cat(call, ": this trace serves only sizes with ", table.text(*broken)), at,
                    "plan for a spec with these sizes: fn.plan(td::spec({64, 784}))");
}

Plan PlanMaker::at_sizes(const ProgramKey& key, std::span<const int64_t> sizes, Source at) const {
  check_serves("at", sizes, at);
  return make(program_at(key, sizes), at);
}

}  // namespace tidemark::detail
