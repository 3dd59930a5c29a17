// In which order the nodes of a region run, so that the fewest bytes are alive at once.
//
// Several orders are tried and the best is kept: the program's own, so that none is made worse; a
// greedy one; depth first from the results; and for small regions the best there is, by search over
// the sets of nodes that have run. Effects keep their order.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "tidemark/base/text.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

constexpr size_t kMostToSearch = 24;       // Nodes.
constexpr size_t kMostSets = 100'000;      // Sets of nodes looked at by the search.
constexpr size_t kMostForGreedy = 20'000;  // Nodes.

struct Item {
  int64_t bytes = 0;            // Of its results, alive until their last reader has run.
  int64_t inside = 0;           // What it needs besides while it runs: bodies of control flow.
  std::vector<int32_t> before;  // Items that must have run.
  std::vector<int32_t> reads;   // Items whose bytes it reads, each once.
  std::vector<int32_t> after;
  int32_t readers = 0;
  bool is_result = false;
};

class Orderer {
 public:
  Orderer(Graph& graph, Region& region) : graph_(graph), region_(region) {}

  // The peak of the order that the region then has.
  int64_t run() {
    collect();
    std::vector<int32_t> best(items_.size());
    for (size_t i = 0; i < best.size(); ++i) best[i] = static_cast<int32_t>(i);
    int64_t least = peak_of(best);
    const auto consider = [&](std::vector<int32_t> order) {
      if (order.size() != items_.size()) return;
      const int64_t peak = peak_of(order);
      if (peak >= least) return;
      least = peak;
      best = std::move(order);
    };
    if (items_.size() <= kMostForGreedy) consider(greedy());
    consider(depth_first());
    if (items_.size() <= kMostToSearch) consider(search(least));
    std::vector<int32_t> nodes;
    for (const int32_t item : best) nodes.push_back(region_.nodes[static_cast<size_t>(item)]);
    region_.nodes = std::move(nodes);
    return least;
  }

 private:
  Item& item(int32_t number) { return items_[static_cast<size_t>(number)]; }

  void collect() {
    items_.resize(region_.nodes.size());
    root_.assign(graph_.nodes.size(), -1);
    int32_t last_effect = -1;
    for (size_t i = 0; i < region_.nodes.size(); ++i) {
      const auto self = static_cast<int32_t>(i);
      const Node& node = graph_.nodes[static_cast<size_t>(region_.nodes[i])];
      Item& made = items_[i];
      const bool is_view = node.op->view != nullptr;
      root_[static_cast<size_t>(region_.nodes[i])] = self;
      number_[region_.nodes[i]] = self;
      for (const Value input : node.inputs) {
        const auto found = number_.find(input.node);
        if (found == number_.end()) continue;  // A parameter.
        made.before.push_back(found->second);
        const int32_t from = root_[static_cast<size_t>(input.node)];
        if (is_view) root_[static_cast<size_t>(region_.nodes[i])] = from;
        if (std::find(made.reads.begin(), made.reads.end(), from) == made.reads.end())
          made.reads.push_back(from);
      }
      for (const RegionId inner : node.regions) {
        Region& region = graph_.regions[static_cast<size_t>(inner)];
        const bool is_group = node.op->name == "group";
        if (!is_group) made.inside = std::max(made.inside, Orderer(graph_, region).run());
      }
      if (!is_view && node.op->family != Family::source) {
        for (const TensorType& type : node.results) {
          // What an open size takes is not known here.
          if (!type.shape.is_open())
            made.bytes += granted_bytes(type.shape.size() * size_of(type.dtype));
        }
      }
      if (node.op->family == Family::effect || !node.regions.empty()) {
        if (last_effect >= 0) made.before.push_back(last_effect);
        last_effect = self;
      }
    }
    for (const Value result : region_.results) {
      const auto found = number_.find(result.node);
      if (found == number_.end()) continue;
      Item& given = item(root_[static_cast<size_t>(result.node)]);
      given.is_result = true;
      given.bytes = 0;  // Results have bytes of their own from the start.
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      for (const int32_t from : items_[i].before)
        item(from).after.push_back(static_cast<int32_t>(i));
      for (const int32_t from : items_[i].reads) ++item(from).readers;
    }
  }

  // Runs one item on a state of how many readers each still has.
  struct State {
    std::vector<int32_t> readers;
    int64_t alive = 0, peak = 0;
  };
  State start() {
    State state;
    for (const Item& each : items_) state.readers.push_back(each.readers);
    return state;
  }
  void step(State& state, int32_t number) {
    const Item& now = item(number);
    state.alive += now.bytes;
    state.peak = std::max(state.peak, state.alive + now.inside);
    for (const int32_t from : now.reads) {
      if (--state.readers[static_cast<size_t>(from)] == 0 && !item(from).is_result)
        state.alive -= item(from).bytes;
    }
    if (now.readers == 0) state.alive -= now.bytes;
  }
  int64_t peak_of(const std::vector<int32_t>& order) {
    State state = start();
    for (const int32_t number : order) step(state, number);
    return state.peak;
  }

  std::vector<int32_t> missing() {
    std::vector<int32_t> counts;
    for (const Item& each : items_) counts.push_back(static_cast<int32_t>(each.before.size()));
    return counts;
  }

  // Always what frees most, or takes least.
  std::vector<int32_t> greedy() {
    State state = start();
    std::vector<int32_t> waits = missing();
    std::vector<int32_t> ready, order;
    for (size_t i = 0; i < items_.size(); ++i)
      if (waits[i] == 0) ready.push_back(static_cast<int32_t>(i));
    while (!ready.empty()) {
      size_t best = 0;
      int64_t least = std::numeric_limits<int64_t>::max();
      // Looking at a few is enough, and keeps the time in check where thousands are ready.
      for (size_t i = 0; i < std::min<size_t>(ready.size(), 64); ++i) {
        const Item& candidate = item(ready[i]);
        int64_t change = candidate.readers == 0 ? 0 : candidate.bytes;
        for (const int32_t from : candidate.reads) {
          if (state.readers[static_cast<size_t>(from)] == 1) change -= item(from).bytes;
        }
        if (change < least) {
          least = change;
          best = i;
        }
      }
      const int32_t chosen = ready[best];
      ready.erase(ready.begin() + static_cast<int64_t>(best));
      step(state, chosen);
      order.push_back(chosen);
      for (const int32_t later : item(chosen).after)
        if (--waits[static_cast<size_t>(later)] == 0) ready.push_back(later);
    }
    return order;
  }

  // Each item right behind what it needs, larger inputs first.
  std::vector<int32_t> depth_first() {
    std::vector<int32_t> order;
    std::vector<uint8_t> state(items_.size());  // 0 new, 1 open, 2 done.
    for (size_t root = 0; root < items_.size(); ++root) {
      if (!items_[root].after.empty()) continue;
      std::vector<int32_t> stack = {static_cast<int32_t>(root)};
      while (!stack.empty()) {
        const int32_t top = stack.back();
        uint8_t& now = state[static_cast<size_t>(top)];
        if (now != 0) {
          if (now == 1) order.push_back(top);
          now = 2;
          stack.pop_back();
          continue;
        }
        now = 1;
        std::vector<int32_t> inputs = item(top).before;
        std::stable_sort(inputs.begin(), inputs.end(),
                         [&](int32_t a, int32_t b) { return item(a).bytes < item(b).bytes; });
        for (const int32_t input : inputs)
          if (state[static_cast<size_t>(input)] == 0) stack.push_back(input);
      }
    }
    return order;
  }

  // The best order there is, found set by set: what is alive depends on which nodes have run, not
  // on their order. Gives up, with an empty order, where there are too many sets.
  std::vector<int32_t> search(int64_t bound) {
    struct Reached {
      int64_t peak = 0;
      uint64_t from = 0;
      int32_t last = -1;
    };
    const size_t count = items_.size();
    std::unordered_map<uint64_t, Reached> all = {{0, {}}};
    std::vector<uint64_t> layer = {0};
    for (size_t done = 0; done < count; ++done) {
      std::vector<uint64_t> next;
      for (const uint64_t set : layer) {
        const Reached here = all[set];
        const auto has = [&](int32_t i) { return (set >> i & 1) != 0; };
        int64_t alive = 0;
        for (size_t i = 0; i < count; ++i) {
          const Item& each = items_[i];
          if (!has(static_cast<int32_t>(i)) || each.readers == 0) continue;
          bool wanted = false;
          for (const int32_t later : each.after) wanted = wanted || !has(later);
          if (wanted || each.is_result || reads_through_views(static_cast<int32_t>(i), set))
            alive += each.bytes;
        }
        for (size_t i = 0; i < count; ++i) {
          const auto number = static_cast<int32_t>(i);
          const Item& each = items_[i];
          if (has(number) || !std::all_of(each.before.begin(), each.before.end(), has)) continue;
          const int64_t peak = std::max(here.peak, alive + each.bytes + each.inside);
          if (peak >= bound) continue;
          const uint64_t grown = set | uint64_t{1} << i;
          const auto [known, is_new] = all.try_emplace(grown, Reached{peak, set, number});
          if (is_new) next.push_back(grown);
          if (!is_new && peak < known->second.peak) known->second = {peak, set, number};
        }
        if (all.size() > kMostSets) return {};
      }
      layer = std::move(next);
    }
    const uint64_t full = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
    if (all.find(full) == all.end()) return {};
    std::vector<int32_t> order;
    for (uint64_t set = full; set != 0; set = all[set].from) order.push_back(all[set].last);
    std::reverse(order.begin(), order.end());
    return order;
  }
  // Whether an item that has not run reads these bytes through a view of them.
  bool reads_through_views(int32_t number, uint64_t set) {
    for (size_t i = 0; i < items_.size(); ++i) {
      if ((set >> i & 1) != 0) continue;
      const std::vector<int32_t>& reads = items_[i].reads;
      if (std::find(reads.begin(), reads.end(), number) != reads.end()) return true;
    }
    return false;
  }

  Graph& graph_;
  Region& region_;
  std::vector<Item> items_;
  std::vector<int32_t> root_;  // By node: the item whose bytes it shows.
  std::unordered_map<int32_t, int32_t> number_;
};

}  // namespace

void order(Graph& graph) { Orderer(graph, graph.body()).run(); }

}  // namespace tidemark::passes
