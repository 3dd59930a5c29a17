#include "tidemark/fit/variants.h"

#include <algorithm>
#include <utility>

#include "tidemark/compile/pipeline.h"
#include "tidemark/fit/bodies.h"
#include "tidemark/fit/separate.h"

namespace tidemark::fit {
namespace {

using Only = passes::OrderOptions::Only;

// The most scratch that any step needs.
int64_t most_scratch_of(const Graph& graph, const compile::Interface& interface,
                        std::optional<int64_t> limit) {
  compile::Interface with = interface;
  with.most_scratch = limit;
  const compile::Layout layout = compile::layout(graph, with);
  int64_t most = 0;
  for (const run::Buffer& buffer : layout.program->buffers)
    if (buffer.byte_class == ByteClass::workspace) most = std::max(most, buffer.bytes);
  return most;
}

constexpr const char* kInTurn = "maps run one body at a time";

class VariantMaker {
 public:
  explicit VariantMaker(const compile::Interface& interface)
      : interface_(interface),
        has_threads_(compile::backend_of(interface.home).machine().threads > 1) {}

  VariantList run(std::vector<Alternative> alternatives) {
    add({alternatives[0].graph}, {});
    known_.push_back(order_of(usual()));
    for (Alternative& each : alternatives) {
      add_orders_of(std::exchange(each, {}));
      known_.clear();
    }
    if (has_threads_) add_with_less_scratch();
    return std::move(variants_);
  }

 private:
  const Graph& usual() const { return *variants_[0]->graph().graph; }
  // Whether all schedules can be looked at.
  bool is_small() const { return variants_[0]->allows(Effort::all); }
  // Whether more orders than the best one are worth their search.
  bool has_few_steps() const { return variants_[0]->allows(Effort::thorough); }

  // Steps that free bytes run as soon as they can.
  void order(Graph& graph, Only only = Only::best) const {
    passes::order(graph, interface_.updates(),
                  {.scratch = workspace_of(graph, interface_), .frees_early = true, .only = only});
  }

  void add(OrderedGraph graph, const std::string& change,
           std::optional<int64_t> most_scratch = {}) {
    variants_.push_back(
        std::make_unique<Variant>(std::move(graph), change, interface_, most_scratch));
  }
  OrderedGraph ordered(Graph graph) const {
    order(graph);
    return {std::make_shared<Graph>(compact(std::move(graph)))};
  }

  void add_orders_of(const Alternative& alternative) {
    const Graph& graph = *alternative.graph;
    if (is_small())
      for (const Only only : {Only::greedy, Only::depth_first, Only::depth_first_from_last})
        add_order(alternative, only);
    if (has_large_sums(graph)) add(ordered(with_sums_apart(graph)), alternative.change);
    if (has_threads_) add_in_turn(alternative);
    add_order(alternative, Only::best);
    if (has_few_steps()) add_order(alternative, Only::greedy);
  }

  void add_in_turn(const Alternative& alternative) {
    Graph graph = *alternative.graph;
    if (run_bodies_in_turn(graph))
      add(ordered(std::move(graph)), both(alternative.change, kInTurn));
  }

  // Unless the alternative has a variant of this order.
  void add_order(const Alternative& alternative, Only only) {
    OrderedGraph graph = in_order(alternative.graph, only);
    if (std::find(known_.begin(), known_.end(), graph.order) != known_.end()) return;
    known_.push_back(graph.order);
    add(std::move(graph), alternative.change);
  }
  OrderedGraph in_order(const std::shared_ptr<const Graph>& graph, Only only) const {
    Graph copy = *graph;
    order(copy, only);
    OrderedGraph::Order found = order_of(copy);
    if (copy.nodes.size() == graph->nodes.size()) return {graph, std::move(found)};
    return {std::make_shared<Graph>(std::move(copy)), std::move(found)};
  }

  // Once with the threads that no step needs more scratch for than the largest of one thread's,
  // once with one thread for each step that has scratch. In large programs of which scratch is a
  // small part that would take more time than it is worth.
  void add_with_less_scratch() {
    constexpr int64_t kSmallPart = 100;
    const int64_t all = most_scratch_of(usual(), interface_, {}),
                  one = most_scratch_of(usual(), interface_, 0);
    const bool is_small_part = (all - one) * kSmallPart <= least_bytes(variants_);
    if (all == one || (!is_small() && is_small_part)) return;
    Graph graph = usual();
    const std::string change = run_bodies_in_turn(graph) ? kInTurn : "";
    const OrderedGraph made = ordered(std::move(graph));
    for (const int64_t most : {one, int64_t{0}}) add(made, change, most);
  }

  const compile::Interface& interface_;
  const bool has_threads_;
  VariantList variants_;
  std::vector<OrderedGraph::Order> known_;  // Of the alternative.
};

}  // namespace

VariantList variants_of(std::vector<Alternative> alternatives,
                        const compile::Interface& interface) {
  return VariantMaker(interface).run(std::move(alternatives));
}

int64_t least_bytes(const VariantList& variants) {
  int64_t least = variants[0]->peak_bytes();
  for (const std::unique_ptr<Variant>& variant : variants)
    least = std::min({least, variant->least_bytes(), variant->peak_bytes()});
  return std::max<int64_t>(1, least);
}

}  // namespace tidemark::fit
