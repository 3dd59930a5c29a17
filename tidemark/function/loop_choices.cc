#include "tidemark/function/loop_choices.h"

#include <optional>

#include "tidemark/base/error.h"
#include "tidemark/function/compile_function.h"

namespace tidemark::detail {
namespace {

using Kept = std::vector<run::KeptTrips>;

// The loops of a line, by number.
std::vector<size_t> at_line(const Kept& all, Source at) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < all.size(); ++i)
    if (passes::is_same_line(all[i].source, at)) numbers.push_back(i);
  return numbers;
}

bool is_same_choice(const run::KeptTrips& a, const run::KeptTrips& b) {
  return a.slots == b.slots && a.every == b.every && a.bytes == b.bytes;
}

std::vector<SaveChoice> choices_for(int64_t trips) {
  int64_t root = 1;
  while (root * root < trips) ++root;
  return {
      {LoopAttrs::Save::all, 0}, {LoopAttrs::Save::slots, root}, {LoopAttrs::Save::every, root}};
}

// Empty if the choice is refused.
std::optional<Kept> planned(const TracedGraph& traced, const CompiledFunction& program, Source line,
                            SaveChoice choice) try {
  const auto other = program_keeping(traced, program.key,
                                     {.save_at = passes::GradientSettings::AtLine{line, choice}});
  return other == nullptr ? std::nullopt : std::optional(other->kept);
} catch (const UserError&) {
  return {};
}

}  // namespace

std::vector<std::vector<run::KeptTrips>> other_choices(const TracedGraph& traced,
                                                       const CompiledFunction& program) {
  const Kept& own = program.program->kept;
  std::vector<Kept> others(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const std::vector<size_t> mine = at_line(own, own[i].source);
    if (own[i].trips < 0 || mine.front() != i) continue;
    for (const SaveChoice choice : choices_for(own[i].trips)) {
      const std::optional<Kept> kept = planned(traced, program, own[i].source, choice);
      if (!kept) continue;
      const std::vector<size_t> found = at_line(*kept, own[i].source);
      for (size_t k = 0; k < mine.size(); ++k) {
        // Loops that store nothing are not listed.
        run::KeptTrips other{.source = own[i].source, .trips = own[mine[k]].trips};
        if (k < found.size()) other = (*kept)[found[k]];
        if (!is_same_choice(other, own[mine[k]])) others[mine[k]].push_back(other);
      }
    }
  }
  return others;
}

}  // namespace tidemark::detail
