// Makes a program need fewer bytes, at the price of work that is done again.
//
// A Frontier starts from one or more ways to compute the same results (an order that frees bytes
// early, loops that keep fewer states), drops values that can be computed again, and asks the
// layout for the bytes of each attempt. Its points go down from the usual program to the least that
// it can reach. A budget takes the first point that fits, so that a smaller budget never needs
// more.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/fit/apply.h"
#include "tidemark/fit/cost.h"
#include "tidemark/layout/layout.h"

namespace tidemark::fit {

// A graph that computes the results, optimised and ordered.
struct Alternative {
  Graph graph;
  std::string change = {};  // How it differs from the usual one: "loops keep 23 states".
  // Steps that would need more scratch run on fewer threads.
  std::optional<int64_t> most_scratch = {};
};

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
  Frontier(const std::vector<Alternative>& alternatives, const compile::Interface& interface);
  ~Frontier();

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
  class Base;
  struct Rung;

  void add(Alternative alternative, bool is_searched);
  void add_with_less_scratch(const Graph& graph);
  bool is_small() const;
  int64_t target(int number) const;
  const std::optional<Rung>& rung(int number);
  int64_t least_bytes() const;
  bool is_bottom(int number);
  int lowest_rung();
  std::optional<Rung> settled(int number);
  const std::vector<Rung>& last_rungs();
  std::optional<Rung> climb_down(int64_t limit) const;
  template <class Way>
  std::optional<Rung> attempt(const Base& base, Way way, int64_t limit) const;
  static compile::Layout laid_out(const Base& base, const Graph& graph, int64_t enough_bytes);
  // The program for a budget.
  std::optional<Rung> chosen(int64_t bytes);
  Fit build(const Rung& rung) const;

  const compile::Interface& interface_;
  std::vector<std::unique_ptr<Base>> bases_;
  std::map<int, std::optional<Rung>> rungs_;  // By number: the program for its target, if any.
  std::optional<std::vector<Rung>> last_;     // The floor, and rungs just above it.
};

}  // namespace tidemark::fit
