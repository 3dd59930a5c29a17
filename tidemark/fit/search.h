// The cheapest program within a number of bytes, of all variants.
#pragma once

#include <memory>
#include <optional>
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

// A program, and how it is made.
struct FoundProgram {
  const Variant* variant = nullptr;
  std::optional<Schedule> schedule;  // Nothing: the variant as it is.
  int64_t limit = 0;                 // That it was searched for.
  int64_t peak_bytes = 0;
  Cost cost;
};
using ProgramRef = std::shared_ptr<const FoundProgram>;  // Null: none was found.

class Search {
 public:
  // The first variant is the usual program.
  explicit Search(VariantList variants);

  const ProgramRef& usual() const { return usual_; }
  // No program needs less.
  int64_t least_bytes() const { return least_bytes_; }
  // Whether all schedules can be looked at.
  bool is_small() const { return variants_[0]->allows(Effort::all); }
  // Whether programs close to each other are worth their search.
  bool has_few_steps() const;

  // Of a large program, the first order that fits is taken.
  ProgramRef cheapest_within(int64_t limit);

  struct Made {
    compile::Layout layout;
    std::vector<Decision> decisions;
  };
  Made make(const FoundProgram& found);

 private:
  struct Attempt {
    ProgramRef found;
    int64_t least_bytes = 0;  // How close the model came.
  };
  Attempt attempt(const Variant& variant, Effort effort, int64_t limit, double most_seconds);

  const VariantList variants_;
  const ProgramRef usual_;
  const int64_t least_bytes_;
  // The program that was found last, which is often the one that is wanted.
  ProgramRef latest_;
  Made latest_made_;
};

}  // namespace tidemark::fit
