// One way to compute the results: an alternative in one order, with the model of its bytes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/fit/apply.h"
#include "tidemark/fit/cost.h"
#include "tidemark/fit/region_model.h"
#include "tidemark/layout/layout.h"

namespace tidemark::fit {

class Timeline;

// A graph in some order. Those that differ only in their order share the nodes.
struct OrderedGraph {
  using Order = std::vector<std::vector<int32_t>>;  // By region: its nodes.

  std::shared_ptr<const Graph> graph;
  Order order = {};  // Empty: as the graph has it.

  Graph copy() const;
};
OrderedGraph::Order order_of(const Graph& graph);

// The steps in the order in which they run, some more than once.
struct Schedule {
  // Control flow whose bodies have fewer bytes in use than at first, in the order in which they get
  // fewer.
  struct Shrink {
    int32_t node = -1;
    int64_t bytes = 0;
  };
  std::vector<Shrink> shrinks = {};
  bool improves_bodies = false;  // Whether what bodies drop is chosen again and again.
  std::vector<int32_t> steps = {};
};

// How much a search may cost.
enum class Effort : uint8_t {
  greedy,    // Drops are chosen one by one.
  thorough,  // Then some are taken back and chosen again, many times.
  all,       // Every schedule is looked at; for small programs.
};

// The cost with the work of the program, as its run will count it.
Cost with_work_of(const Cost& cost, const run::Program& program);

// Two changes of one variant, in words.
std::string both(const std::string& change, const std::string& other);

class Variant {
 public:
  // With `most_scratch`, steps that would need more of it run on fewer threads. The interface must
  // outlive the variant.
  Variant(OrderedGraph graph, std::string change, const compile::Interface& interface,
          std::optional<int64_t> most_scratch = {});
  Variant(const Variant&) = delete;
  Variant& operator=(const Variant&) = delete;

  const OrderedGraph& graph() const { return graph_; }
  const compile::Interface& interface() const { return own_ ? *own_ : interface_; }
  const std::string& change() const { return change_; }
  const Cost& change_cost() const { return change_cost_; }  // Of work that takes longer.
  const Cost& cost() const { return cost_; }
  int64_t peak_bytes() const { return peak_; }
  int64_t least_bytes() const { return least_; }  // No schedule of these steps needs less.
  size_t steps() const { return model_.steps.size(); }
  bool allows(Effort effort) const;

  // A schedule within so many bytes, or as close as the search came.
  struct Found {
    Schedule schedule;
    int64_t peak_bytes = 0;  // By the model.
  };
  std::optional<Found> find(int64_t bytes, Effort effort) const;

  struct Program {
    Graph graph;  // To be compacted; until then it has the nodes that the repeats name.
    std::vector<Repeat> repeats;
  };
  Program make(const Schedule& schedule) const;

 private:
  void measure(const Graph& graph);
  Found drop_to(int64_t bytes, Effort effort) const;
  bool shrink_over(const Timeline& timeline, RegionModel& model, Graph& shrunk,
                   Schedule& schedule) const;

  OrderedGraph graph_;
  std::string change_;
  const compile::Interface& interface_;
  std::optional<compile::Interface> own_;  // With a limit on scratch.
  Cost change_cost_, cost_;
  int64_t peak_ = 0, results_ = 0, least_ = 0;
  RegionModel model_;
  // Without the corrections, which hold for one order only; for small programs.
  std::optional<RegionModel> any_order_;
};

}  // namespace tidemark::fit
