// Makes a program need fewer bytes, at the price of work that is done again.
//
// A Frontier starts from one or more ways to compute the same results (an order that frees bytes
// early, loops that keep fewer states), drops values that can be computed again, and asks the
// layout for the bytes of each attempt.
//
// Its programs are one list, from the usual program down to the floor, each with fewer bytes than
// the one before. A budget takes the first that fits, so a smaller budget never gets a larger
// program. The list is made in stretches, when a budget looks at them. What is in a stretch depends
// on the program only, and never on the budgets that were asked for:
//
//   limit 0           limit 1              limit 2         ...     last limit
//   | usual  .   .    |   .      .         | .             ...     | .    .   floor
//     stretch 0           stretch 1          stretch 2               last stretch
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tidemark/fit/search.h"

namespace tidemark::fit {

struct Fit {
  compile::Layout layout;
  std::vector<Decision> decisions;
  Cost again;  // Work beside that of the usual program.
};

class Frontier {
 public:
  struct Point {
    int64_t peak_bytes = 0;
    Cost again;  // Work beside that of the usual program.
  };

  // The first alternative is the usual program. The interface must outlive the frontier.
  Frontier(std::vector<Alternative> alternatives, const compile::Interface& interface);

  // Of the usual program.
  Cost usual_cost() const { return search_.usual()->cost; }
  int64_t usual_peak() const { return search_.usual()->peak_bytes; }
  // A program that needs at most this many bytes; nothing if none was found.
  std::optional<Fit> at_most(int64_t bytes);
  // The least that any program found needs.
  int64_t floor_bytes() { return last_stretch().back()->peak_bytes; }
  Fit floor() { return build(*last_stretch().back()); }
  // From the usual program to the floor; no point needs more bytes and more time than another.
  std::vector<Point> points();

 private:
  using Stretch = std::vector<ProgramRef>;  // The largest program first.

  int64_t limit(int number) const;
  const ProgramRef& within_limit(int number);
  int last_limit();
  const Stretch& stretch(int number);
  const Stretch& last_stretch();
  int first_stretch_for(int64_t bytes) const;
  ProgramRef first_within(int64_t bytes);
  Fit build(const FoundProgram& found);

  Search search_;
  std::map<int, ProgramRef> within_limit_;  // By number of the limit.
  std::map<int, Stretch> stretches_;        // By number of the upper limit.
  std::optional<int> last_limit_;
  Stretch last_stretch_;
};

}  // namespace tidemark::fit
