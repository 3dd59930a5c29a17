#include "tidemark/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidemark::fit {
namespace {

constexpr double kRatio = 0.985;      // Of a limit to the one before it.
constexpr double kFineRatio = 0.999;  // Of a program to the one before it, at most.
constexpr int kLimitsOfAPoint = 4;    // Of a trade-off.
constexpr int kHalvings = 4;          // To find the floor.

}  // namespace

Frontier::Frontier(std::vector<Alternative> alternatives, const compile::Interface& interface)
    : search_(variants_of(std::move(alternatives), interface)) {
  within_limit_[0] = search_.usual();
}

// ---- limits -------------------------------------------------------------------------------------

int64_t Frontier::limit(int number) const {
  return static_cast<int64_t>(static_cast<double>(usual_peak()) * std::pow(kRatio, number));
}

const ProgramRef& Frontier::within_limit(int number) {
  const auto known = within_limit_.find(number);
  if (known != within_limit_.end()) return known->second;
  // Kept once it is found: a search may fail for want of memory.
  ProgramRef found;
  if (limit(number) >= search_.least_bytes()) found = search_.cheapest_within(limit(number));
  return within_limit_.emplace(number, std::move(found)).first->second;
}

// The lowest limit that something is found for, by bisection.
int Frontier::last_limit() {
  if (last_limit_) return *last_limit_;
  int found = 0, fails = 1;
  while (limit(fails) >= search_.least_bytes()) ++fails;
  while (fails - found > 1) {
    const int middle = found + (fails - found) / 2;
    (within_limit(middle) ? found : fails) = middle;
  }
  last_limit_ = found;
  return found;
}

// ---- stretches ----------------------------------------------------------------------------------

// The programs with no more bytes than a limit, and more than the next one. Those of a small
// program lie far apart, so that each is worth its search. A program below the next limit is left
// to the stretch that it is in.
const Frontier::Stretch& Frontier::stretch(int number) {
  const auto known = stretches_.find(number);
  if (known != stretches_.end()) return known->second;
  Stretch list;
  const int64_t end = limit(number + 1);
  for (ProgramRef next = within_limit(number); next && next->peak_bytes > end;) {
    list.push_back(next);
    const auto below = static_cast<int64_t>(static_cast<double>(next->peak_bytes) * kFineRatio);
    next = search_.is_small() && below > end ? search_.cheapest_within(below) : nullptr;
  }
  return stretches_.emplace(number, std::move(list)).first->second;
}

// What follows the last limit, whatever its bytes. The least bytes that any step needs are tried if
// the next limit is below them; then the gap to what fails is halved a few times.
const Frontier::Stretch& Frontier::last_stretch() {
  if (!last_stretch_.empty()) return last_stretch_;
  Stretch list = stretch(last_limit());
  if (list.empty()) list.push_back(within_limit(last_limit()));
  const auto try_at = [&](int64_t bytes) {
    const ProgramRef next = search_.cheapest_within(bytes);
    if (next) list.push_back(next);
    return next != nullptr;
  };
  const int64_t least = search_.least_bytes();
  int64_t failed = limit(last_limit() + 1);
  if (least > failed && least < list.back()->peak_bytes && !try_at(least)) failed = least;
  failed = std::max(failed, least - 1);
  for (int i = 0; i < kHalvings && failed + 1 < list.back()->peak_bytes; ++i) {
    const int64_t middle = failed + (list.back()->peak_bytes - failed) / 2;
    if (!try_at(middle)) failed = middle;
  }
  return last_stretch_ = std::move(list);
}

// The one that the bytes lie in. That of a large program has one program, close below its limit:
// it is only looked at where that may fit.
int Frontier::first_stretch_for(int64_t bytes) const {
  int number = 0;
  while (limit(number + 1) >= std::max(bytes, search_.least_bytes())) ++number;
  const int64_t upper = limit(number);
  const bool may_fit = search_.has_few_steps() || 4 * (upper - bytes) <= upper - limit(number + 1);
  return may_fit ? number : number + 1;
}

ProgramRef Frontier::first_within(int64_t bytes) {
  if (usual_peak() <= bytes) return search_.usual();
  const auto first_in = [&](const Stretch& list) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const ProgramRef& each) {
      return each->peak_bytes <= bytes;
    });
    return found == list.end() ? nullptr : *found;
  };
  for (int number = first_stretch_for(bytes);; ++number) {
    if (ProgramRef found = first_in(stretch(number))) return found;
    if (!within_limit(number) && number >= last_limit()) return first_in(last_stretch());
  }
}

// ---- what is asked ------------------------------------------------------------------------------

Fit Frontier::build(const FoundProgram& found) {
  Search::Made made = search_.make(found);
  return {std::move(made.layout), std::move(made.decisions), found.cost - usual_cost()};
}

std::optional<Fit> Frontier::at_most(int64_t bytes) {
  const ProgramRef found = first_within(bytes);
  return found ? std::optional(build(*found)) : std::nullopt;
}

std::vector<Frontier::Point> Frontier::points() {
  Stretch all = last_stretch();
  for (int number = 0; number < last_limit(); number += kLimitsOfAPoint)
    if (!stretch(number).empty()) all.push_back(stretch(number).front());
  // A budget of its bytes may give another program, if others lie close by.
  std::erase_if(all,
                [&](const ProgramRef& each) { return first_within(each->peak_bytes) != each; });
  std::sort(all.begin(), all.end(), [](const ProgramRef& a, const ProgramRef& b) {
    return std::pair(a->peak_bytes, a->cost.seconds) < std::pair(b->peak_bytes, b->cost.seconds);
  });
  std::vector<Point> points;
  double least = INFINITY;
  // From the floor up: a point that takes longer than one that needs less is dominated.
  for (const ProgramRef& each : all) {
    if (each->cost.seconds >= least) continue;
    least = each->cost.seconds;
    points.push_back({each->peak_bytes, each->cost - usual_cost()});
  }
  std::reverse(points.begin(), points.end());
  return points;
}

}  // namespace tidemark::fit
