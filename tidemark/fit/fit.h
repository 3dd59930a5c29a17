// Makes a program need fewer bytes, at the price of work that is done again.
//
// A Frontier starts from one or more ways to compute the same results (an order that frees bytes
// early, loops that keep fewer states), drops values that can be computed again, and asks the
// layout for the bytes of each attempt. Its points run from the usual program down to the smallest
// one that was found. A budget takes the first point that fits, so a smaller budget never gets a
// larger program.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/fit/cost.h"
#include "tidemark/fit/variants.h"
#include "tidemark/layout/layout.h"

namespace tidemark::fit {

// A line of the program that does something else to need fewer bytes.
struct Decision {
  std::string what;  // "computes matmul again"
  Source source = Source::none();
  int64_t times = 1;
  int64_t bytes = 0;    // Of the values that are not held.
  Cost cost = {};       // Of the work that is done again.
  std::string op = {};  // What runs again: "matmul", "multiply + add"; empty if nothing does.
};

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
  Cost usual_cost() const;
  int64_t usual_peak() const;
  // A program that needs at most this many bytes; nothing if none was found.
  std::optional<Fit> at_most(int64_t bytes);
  // The least that any program found needs.
  int64_t floor_bytes();
  Fit floor();
  // From the usual program to the floor; no point needs more bytes and more time than another.
  std::vector<Point> points();

 private:
  // A program, and how it is made.
  struct Rung {
    const Variant* variant = nullptr;
    std::optional<Schedule> schedule;  // Nothing: the variant as it is.
    int64_t limit = 0;                 // That it was searched for.
    int64_t peak_bytes = 0;
    Cost cost;
  };
  using RungRef = std::shared_ptr<const Rung>;  // Null: none was found.

  // Whether all schedules can be looked at.
  bool is_small() const { return variants_[0]->allows(Effort::all); }
  // The program for a budget.
  RungRef chosen(int64_t bytes);
  int64_t target(int number) const;
  RungRef rung(int number);
  RungRef settled(int number);
  const RungRef& searched(int number);
  int lowest_rung();
  const std::vector<RungRef>& between(int number);
  const std::vector<RungRef>& last_rungs();
  RungRef cheapest_within(int64_t limit) const;
  RungRef as_it_is(const Variant& variant) const;
  struct Attempt {
    RungRef rung;
    int64_t least_bytes = 0;  // How close the model came.
  };
  Attempt attempt(const Variant& variant, Effort effort, int64_t limit, double most_seconds) const;
  Fit build(const Rung& rung) const;

  const VariantList variants_;  // The usual program first.
  const int64_t least_bytes_;
  std::map<int, RungRef> searched_;              // By number.
  std::map<int, std::vector<RungRef>> between_;  // By number of the upper target.
  std::optional<int> lowest_;
  std::vector<RungRef> last_;  // The floor last, and rungs just above it.
};

}  // namespace tidemark::fit
