// Orders the nodes of each region so that few bytes are alive at once.
//
// The candidates are the program's own order, a greedy one, depth first from the results, and for
// small regions the optimum, found by search over the sets of nodes that have run. Their bytes are
// estimated, which is fast; for a small graph the layout then decides between the best candidate
// and the program's own order. Effects keep their order. Nodes that may fail come before the first
// write to a Variable unless they depend on it: otherwise that write needs a shadow copy, whose
// bytes count. Updates that are possible in place in the program's own order stay possible.
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tidemark/base/interrupt.h"
#include "tidemark/base/text.h"
#include "tidemark/base/work.h"
#include "tidemark/ops/op_def.h"
#include "tidemark/passes/fallible.h"
#include "tidemark/passes/overwrite.h"
#include "tidemark/passes/passes.h"

namespace tidemark::passes {
namespace {

constexpr size_t kMostToSearch = 24;       // Nodes.
constexpr size_t kMostSets = 100'000;      // Sets of nodes looked at by the search.
constexpr size_t kMostForGreedy = 20'000;  // Nodes.
constexpr size_t kMostEdges = 1'000'000;   // From what may fail to writes.
constexpr size_t kMostToCompare = 256;     // Nodes, of a graph that is laid out in both orders.

using ItemList = SmallVec<int32_t, 4>;

struct Item {
  // The bytes of its results, alive until their last reader has run. Results of the region count
  // nothing: their bytes exist from the start.
  int64_t bytes = 0;
  int64_t inside = 0;  // What it needs besides while it runs: bodies of control flow, scratch.
  ItemList before;     // Items that must have run.
  ItemList reads;      // Items whose bytes it reads, each once.
  // The items among them that a result can overwrite if this is their last reader; at most one for
  // each result.
  ItemList overwrites;
  ItemList after;
  int32_t readers = 0;
  bool is_fallible = false;
  bool checks_first = false;  // Fails, if it does, before it writes.
  int64_t shadow = 0;         // Of a Variable that it writes: bytes, if something may fail later.
};

// A stable sort that takes no heap where there are few.
template <class Less>
void sort_few(ItemList& list, Less less) {
  constexpr size_t few = 16;
  if (list.size() > few) return std::stable_sort(list.begin(), list.end(), less);
  for (auto at = list.begin(); at != list.end(); ++at)
    std::rotate(std::upper_bound(list.begin(), at, *at, less), at, at + 1);
}

// Tables by node number. One object serves the whole graph, since each node is in one region.
struct Nodes {
  explicit Nodes(size_t count)
      : root(count, -1), shown(count, -1), item(count, -1), readers(count) {}
  std::vector<int32_t> root;      // The item whose bytes it shows.
  std::vector<int32_t> shown;     // Of a view, the node whose bytes it shows; else -1.
  std::vector<int32_t> item;      // Its own; -1 of parameters.
  std::vector<ItemList> readers;  // Of its bytes, in the program's own order.
};

class Orderer {
 public:
  // `updates`: for each result the parameter that it may overwrite, or -1. In the body these are
  // Variables.
  Orderer(Graph& graph, RegionId region, std::vector<int32_t> updates, const OrderOptions& options,
          Nodes& nodes)
      : graph_(graph),
        region_(graph.regions[static_cast<size_t>(region)]),
        is_body_(region == Graph::kBody),
        updates_(std::move(updates)),
        options_(options),
        nodes_(nodes) {
    updates_.resize(region_.results.size(), -1);
  }

  // Orders the region and returns its estimated peak.
  int64_t run() {
    collect();
    keep_in_place();
    const bool moves = hold_back_writes();
    link();
    std::vector<int32_t> best(items_.size());
    for (size_t i = 0; i < best.size(); ++i) best[i] = static_cast<int32_t>(i);
    Bytes least = cost_of(best);
    const auto consider = [&](std::vector<int32_t> order) {
      if (order.size() != items_.size()) return;
      const Bytes cost = cost_of(order);
      if (!is_less(cost, least)) return;
      least = cost;
      best = std::move(order);
    };
    if (moves) consider(program_order());
    if (is_body_ && options_.only != OrderOptions::Only::best) {
      least.peak = std::numeric_limits<int64_t>::max();
      using Only = OrderOptions::Only;
      consider(options_.only == Only::greedy
                   ? greedy()
                   : depth_first(options_.only == Only::depth_first_from_last));
      return take(best);
    }
    if (options_.frees_early) consider(freeing_early());
    if (items_.size() <= kMostForGreedy) consider(greedy());
    if (has_ready_inputs()) {
      consider(depth_first(false, true));
      consider(depth_first(true, true));
    }
    consider(depth_first(false));
    consider(depth_first(true));
    if (items_.size() <= kMostToSearch) consider(search(least.peak));
    return take(best);
  }

 private:
  Item& item(int32_t number) { return items_[static_cast<size_t>(number)]; }

  // Gives the region this order and returns its estimated peak.
  int64_t take(const std::vector<int32_t>& order) {
    std::vector<int32_t> nodes;
    for (const int32_t item : order) nodes.push_back(region_.nodes[static_cast<size_t>(item)]);
    region_.nodes = std::move(nodes);
    return peak_of(order);
  }

  // Of an order: the most bytes in use, and those of all steps added up.
  struct Bytes {
    int64_t peak = 0;
    double sum = 0;
  };
  bool is_less(const Bytes& a, const Bytes& b) const {
    return a.peak < b.peak || (options_.frees_early && a.peak == b.peak && a.sum < b.sum);
  }

  void collect() {
    items_.resize(region_.nodes.size());
    find_given();
    std::vector<int32_t> last_reader(items_.size(), -1);  // By item.
    int32_t last_effect = -1;
    const std::vector<bool> fallible = fallible_nodes(graph_, region_);
    const std::vector<int32_t> looked = looked_before(graph_, region_);
    for (size_t i = 0; i < region_.nodes.size(); ++i) {
      const auto self = static_cast<int32_t>(i);
      const Node& node = graph_.nodes[static_cast<size_t>(region_.nodes[i])];
      Item& made = items_[i];
      const bool is_view = node.op->view != nullptr;
      root_of(region_.nodes[i]) = self;
      item_of(region_.nodes[i]) = self;
      made.is_fallible = fallible[i];
      if (looked[i] >= 0) made.before.push_back(looked[i]);
      made.checks_first = node.op->family == Family::index;
      if (is_view) nodes_.shown[static_cast<size_t>(region_.nodes[i])] = shown(node.inputs[0]);
      for (const Value input : node.inputs) {
        ItemList& readers = readers_of(shown(input));
        if (readers.empty() || readers.back() != self) readers.push_back(self);
        const int32_t maker = item_of(input.node);
        if (maker < 0) continue;  // A parameter.
        made.before.push_back(maker);
        const int32_t from = root_of(input.node);
        if (is_view) root_of(region_.nodes[i]) = from;
        if (std::exchange(last_reader[static_cast<size_t>(from)], self) != self)
          made.reads.push_back(from);
      }
      const bool is_group = node.op->flow == Flow::group;
      for (size_t k = 0; k < node.regions.size() && !is_group; ++k) {
        std::vector<int32_t> carried = k == 0 ? carried_by(node) : std::vector<int32_t>();
        Orderer inner(graph_, node.regions[k], std::move(carried), options_, nodes_);
        made.inside = std::max(made.inside, inner.run());
      }
      if (options_.scratch) made.inside = std::max(made.inside, options_.scratch(graph_, node));
      if (!is_view && node.op->family != Family::source) {
        for (size_t r = 0; r < node.results.size(); ++r) {
          const TensorType& type = node.results[r];
          const Value value{region_.nodes[i], static_cast<int16_t>(r)};
          // The bytes of open sizes are not known here.
          if (!type.shape.is_open() && !given_.contains(key_of(value)))
            made.bytes += granted_bytes(type.shape.size() * size_of(type.dtype));
        }
      }
      find_overwritten(
          graph_, node,
          [&](Value input) {
            const int32_t from = item_of(input.node) < 0 ? -1 : root_of(input.node);
            return from < 0 || item(from).bytes == 0 ? -1 : from;
          },
          made.overwrites);
      if (has_effect(graph_, node)) {
        if (last_effect >= 0) made.before.push_back(last_effect);
        last_effect = self;
      }
    }
  }

  static int64_t key_of(Value value) { return int64_t{value.node} << 16 | value.result; }

  // Collects the results of the region and the values that they are views of.
  void find_given() {
    for (Value result : region_.results) {
      while (given_.insert(key_of(result)).second) {
        const Node& node = graph_.node(result);
        if (node.op == nullptr || node.op->view == nullptr) break;
        result = node.inputs[0];
      }
    }
  }

  int32_t& root_of(int32_t node) { return nodes_.root[static_cast<size_t>(node)]; }
  int32_t& item_of(int32_t node) { return nodes_.item[static_cast<size_t>(node)]; }
  ItemList& readers_of(int32_t node) { return nodes_.readers[static_cast<size_t>(node)]; }

  // The node whose bytes a value refers to, through views; it may be a parameter.
  int32_t shown(Value value) const {
    const int32_t through = nodes_.shown[static_cast<size_t>(value.node)];
    return through < 0 ? value.node : through;
  }

  // For each result of a loop's body, the parameter that it becomes in the next trip.
  static std::vector<int32_t> carried_by(const Node& node) {
    if (node.op->flow != Flow::loop) return {};
    std::vector<int32_t> carried;
    const int64_t carries = node.attrs.read().integer();
    for (int64_t k = 0; k < carries; ++k) carried.push_back(static_cast<int32_t>(1 + k));
    return carried;
  }

  // A node that can update an array in place, and is its last reader in the program's own order,
  // stays the last.
  void keep_in_place() {
    const auto keep_last = [&](int32_t writer, int32_t array) {
      const ItemList& readers = readers_of(array);
      if (!readers.empty() && readers.back() > writer) return;
      for (const int32_t reader : readers)
        if (reader != writer) item(writer).before.push_back(reader);
    };
    for (size_t i = 0; i < items_.size(); ++i) {
      const Node& node = graph_.nodes[static_cast<size_t>(region_.nodes[i])];
      if (node.op->updates_first) keep_last(static_cast<int32_t>(i), shown(node.inputs[0]));
    }
    for (size_t k = 0; k < updates_.size(); ++k) {
      const int32_t result = region_.results[k].node;
      if (updates_[k] < 0 || item_of(result) < 0) continue;
      const int32_t writer = root_of(result);
      keep_last(writer, region_.parameters[static_cast<size_t>(updates_[k])].node);
      const TensorType& type = graph_.type(region_.results[k]);
      if (is_body_ && !type.shape.is_open())
        item(writer).shadow += granted_bytes(type.shape.size() * size_of(type.dtype));
    }
  }

  // Puts nodes that may fail before writes they do not depend on: those that depend on no write
  // before all writes, and all of them before writes that no fallible node depends on. Returns
  // whether a node has to move.
  bool hold_back_writes() {
    const std::vector<bool> needed = needed_by_fallible();
    std::vector<int32_t> fallible, early, writes, last;
    std::vector<bool> depends(items_.size());
    for (size_t i = 0; i < items_.size(); ++i) {
      const Item& each = items_[i];
      const auto number = static_cast<int32_t>(i);
      for (const int32_t from : each.before)
        depends[i] = depends[i] || depends[static_cast<size_t>(from)];
      const bool is_early =
          each.is_fallible && !depends[i] && (each.shadow == 0 || each.checks_first);
      if (each.is_fallible) fallible.push_back(number);
      if (is_early) early.push_back(number);
      if (each.shadow > 0 && !is_early)
        (needed[i] || each.is_fallible ? writes : last).push_back(number);
      depends[i] = depends[i] || each.shadow > 0;
    }
    const bool moves = put_before(early, writes);
    return put_before(fallible, last) || moves;
  }

  // The items that fallible items depend on.
  std::vector<bool> needed_by_fallible() const {
    std::vector<bool> needed(items_.size());
    for (size_t i = items_.size(); i-- > 0;) {
      if (!needed[i] && !items_[i].is_fallible) continue;
      for (const int32_t from : items_[i].before) needed[static_cast<size_t>(from)] = true;
    }
    return needed;
  }

  // Returns whether their present order is different.
  bool put_before(const std::vector<int32_t>& first, const std::vector<int32_t>& then) {
    if (first.empty() || then.empty() || first.size() * then.size() > kMostEdges) return false;
    for (const int32_t each : then) {
      for (const int32_t earlier : first) item(each).before.push_back(earlier);
    }
    return first.back() > then.front();
  }

  void link() {
    for (size_t i = 0; i < items_.size(); ++i) {
      Work::add(static_cast<int64_t>(1 + items_[i].before.size() + items_[i].reads.size()));
      for (const int32_t from : items_[i].before)
        item(from).after.push_back(static_cast<int32_t>(i));
      for (const int32_t from : items_[i].reads) ++item(from).readers;
    }
  }

  // The state of a simulated run: for each item the number of readers still to run.
  struct State {
    std::vector<int32_t> readers;
    int64_t alive = 0, peak = 0;
    double sum = 0;
  };
  State start() {
    State state;
    state.readers.reserve(items_.size());
    for (const Item& each : items_) state.readers.push_back(each.readers);
    return state;
  }
  void step(State& state, int32_t number) {
    const Item& now = item(number);
    int64_t reused = 0;
    for (const int32_t from : now.overwrites)
      if (state.readers[static_cast<size_t>(from)] == 1) reused += item(from).bytes;
    state.alive += now.bytes;
    state.peak = std::max(state.peak, state.alive - std::min(reused, now.bytes) + now.inside);
    for (const int32_t from : now.reads) {
      if (--state.readers[static_cast<size_t>(from)] == 0) state.alive -= item(from).bytes;
    }
    if (now.readers == 0) state.alive -= now.bytes;
    state.sum += static_cast<double>(state.alive);
  }
  State run_in(const std::vector<int32_t>& order) {
    State state = start();
    for (const int32_t number : order) step(state, number);
    return state;
  }
  int64_t peak_of(const std::vector<int32_t>& order) { return run_in(order).peak; }

  // The peak plus the shadow copies of Variables that are written before a fallible item.
  Bytes cost_of(const std::vector<int32_t>& order) {
    const State state = run_in(order);
    Bytes cost{state.peak, state.sum};
    bool may_fail = false;
    for (auto number = order.rbegin(); number != order.rend(); ++number) {
      const Item& each = item(*number);
      if (may_fail || (each.is_fallible && !each.checks_first)) cost.peak += each.shadow;
      may_fail = may_fail || each.is_fallible;
    }
    return cost;
  }

  std::vector<int32_t> missing() {
    std::vector<int32_t> counts;
    counts.reserve(items_.size());
    for (const Item& each : items_) counts.push_back(static_cast<int32_t>(each.before.size()));
    return counts;
  }

  // The program's own order, changed only where the constraints require it.
  std::vector<int32_t> program_order() {
    std::vector<int32_t> waits = missing(), order;
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    for (size_t i = 0; i < items_.size(); ++i)
      if (waits[i] == 0) ready.push(static_cast<int32_t>(i));
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const int32_t later : item(order.back()).after)
        if (--waits[static_cast<size_t>(later)] == 0) ready.push(later);
    }
    return order;
  }

  // The bytes in use after an item has run, less those before it.
  int64_t growth(const State& state, int32_t number) {
    const Item& candidate = item(number);
    int64_t change = candidate.readers == 0 ? 0 : candidate.bytes;
    for (const int32_t from : candidate.reads)
      if (state.readers[static_cast<size_t>(from)] == 1) change -= item(from).bytes;
    return change;
  }

  // The program's own order, but an item that leaves fewer bytes in use runs as soon as it can:
  // gradients are applied when they are known, so that one of them is alive at a time.
  std::vector<int32_t> freeing_early() {
    State state = start();
    std::vector<int32_t> waits = missing(), order, frees;
    std::vector<bool> done(items_.size());
    const auto look_at = [&](int32_t number) {
      if (!done[static_cast<size_t>(number)] && waits[static_cast<size_t>(number)] == 0 &&
          growth(state, number) < 0)
        frees.push_back(number);
    };
    const auto run = [&](int32_t number) {
      done[static_cast<size_t>(number)] = true;
      order.push_back(number);
      step(state, number);
      for (const int32_t later : item(number).after) --waits[static_cast<size_t>(later)];
      for (const int32_t later : item(number).after) look_at(later);
      for (const int32_t from : item(number).reads)
        if (state.readers[static_cast<size_t>(from)] == 1)
          for (const int32_t reader : item(from).after) look_at(reader);
    };
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    std::vector<bool> listed(items_.size());
    const auto list_ready = [&](int32_t number) {
      if (waits[static_cast<size_t>(number)] > 0 || listed[static_cast<size_t>(number)]) return;
      listed[static_cast<size_t>(number)] = true;
      ready.push(number);
    };
    for (size_t i = 0; i < items_.size(); ++i) list_ready(static_cast<int32_t>(i));
    while (!ready.empty() || !frees.empty()) {
      int32_t next = -1;
      if (!frees.empty()) {
        next = frees.back();
        frees.pop_back();
      } else {
        next = ready.top();
        ready.pop();
      }
      if (done[static_cast<size_t>(next)]) continue;
      run(next);
      for (const int32_t later : item(next).after) list_ready(later);
    }
    return order;
  }

  // Greedy: always the ready item that frees the most bytes or takes the fewest.
  std::vector<int32_t> greedy() {
    State state = start();
    std::vector<int32_t> waits = missing();
    std::vector<int32_t> ready, order;
    size_t first = 0;  // Of those that are ready still.
    for (size_t i = 0; i < items_.size(); ++i)
      if (waits[i] == 0) ready.push_back(static_cast<int32_t>(i));
    while (first < ready.size()) {
      size_t best = first;
      int64_t least = std::numeric_limits<int64_t>::max();
      // Examining a few is enough, and bounds the time when thousands are ready.
      for (size_t i = first; i < std::min<size_t>(ready.size(), first + 64); ++i) {
        const int64_t change = growth(state, ready[i]);
        if (change < least) {
          least = change;
          best = i;
        }
      }
      const int32_t chosen = ready[best];
      std::copy_backward(ready.begin() + static_cast<int64_t>(first),
                         ready.begin() + static_cast<int64_t>(best),
                         ready.begin() + static_cast<int64_t>(best) + 1);
      ++first;
      step(state, chosen);
      order.push_back(chosen);
      for (const int32_t later : item(chosen).after)
        if (--waits[static_cast<size_t>(later)] == 0) ready.push_back(later);
    }
    return order;
  }

  // Whether nothing has to run before an item, or it is a view of such an item.
  bool waits_for_nothing(int32_t number) {
    const ItemList& before = item(number).before;
    return std::all_of(before.begin(), before.end(), [&](int32_t from) {
      return item(from).before.empty() && shows(number, from);
    });
  }
  bool shows(int32_t number, int32_t from) {
    const int32_t node = region_.nodes[static_cast<size_t>(number)];
    return root_of(node) == from;
  }
  // Whether an item that takes bytes waits for nothing.
  bool has_ready_inputs() {
    return std::any_of(items_.begin(), items_.end(), [](const Item& each) {
      return each.before.empty() && each.readers > 0 && each.bytes > 0;
    });
  }

  // Depth first: each item directly after its inputs, larger inputs first, starting from each item
  // without readers, in forward or reverse order. A training step updates its layers from first to
  // last but has their gradients from last to first. With `ready_last`, an input that waits for
  // nothing, such as a weight in another float type, comes directly before its reader: before the
  // other inputs it would exist while they are computed.
  std::vector<int32_t> depth_first(bool from_last, bool ready_last = false) {
    std::vector<int32_t> order;
    std::vector<uint8_t> state(items_.size());  // 0 new, 1 open, 2 done.
    std::vector<bool> is_read(items_.size());   // By the item looked at.
    std::vector<int32_t> stack;
    order.reserve(items_.size());
    for (size_t i = 0; i < items_.size(); ++i) {
      const size_t root = from_last ? items_.size() - 1 - i : i;
      if (!items_[root].after.empty()) continue;
      stack.push_back(static_cast<int32_t>(root));
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
        ItemList inputs = item(top).before;
        Work::add(static_cast<int64_t>(1 + inputs.size()));
        tidemark::detail::poll_interrupt();
        // Items that must only come before it, and are not read by it, hold no bytes for it.
        const auto held = [&](int32_t input) {
          if (ready_last && waits_for_nothing(input)) return int64_t{-1};
          return is_read[static_cast<size_t>(input)] ? item(input).bytes
                                                     : std::numeric_limits<int64_t>::max();
        };
        for (const int32_t read : item(top).reads) is_read[static_cast<size_t>(read)] = true;
        sort_few(inputs, [&](int32_t a, int32_t b) { return held(a) < held(b); });
        for (const int32_t read : item(top).reads) is_read[static_cast<size_t>(read)] = false;
        for (const int32_t input : inputs)
          if (state[static_cast<size_t>(input)] == 0) stack.push_back(input);
      }
    }
    return order;
  }

  // The optimum by dynamic programming over sets: the live bytes depend on which nodes have run,
  // not on their order. Returns an empty order if there are too many sets.
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
          if (wanted || reads_through_views(static_cast<int32_t>(i), set)) alive += each.bytes;
        }
        for (size_t i = 0; i < count; ++i) {
          const auto number = static_cast<int32_t>(i);
          const Item& each = items_[i];
          if (has(number) || !std::all_of(each.before.begin(), each.before.end(), has)) continue;
          int64_t reused = 0;
          for (const int32_t from : each.overwrites)
            if (is_last_reader(number, from, set)) reused += item(from).bytes;
          const int64_t peak =
              std::max(here.peak, alive + each.bytes - std::min(reused, each.bytes) + each.inside);
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
  // Whether all other readers of an item's bytes have run.
  bool is_last_reader(int32_t reader, int32_t from, uint64_t set) {
    return !reads_through_views(from, set | uint64_t{1} << reader);
  }
  // Whether an item that has not run reads these bytes, directly or through a view.
  bool reads_through_views(int32_t number, uint64_t set) {
    for (size_t i = 0; i < items_.size(); ++i) {
      if ((set >> i & 1) != 0) continue;
      const ItemList& reads = items_[i].reads;
      if (std::find(reads.begin(), reads.end(), number) != reads.end()) return true;
    }
    return false;
  }

  Graph& graph_;
  Region& region_;
  bool is_body_;
  std::vector<int32_t> updates_;
  const OrderOptions& options_;
  Nodes& nodes_;
  std::vector<Item> items_;
  std::unordered_set<int64_t> given_;
};

}  // namespace

namespace {

using NodeLists = std::vector<std::vector<int32_t>>;

NodeLists lists_of(const Graph& graph) {
  NodeLists lists;
  for (const Region& region : graph.regions) lists.push_back(region.nodes);
  return lists;
}

void exchange(Graph& graph, NodeLists& lists) {
  for (size_t i = 0; i < lists.size(); ++i) std::swap(graph.regions[i].nodes, lists[i]);
}

// The nodes that are steps of their own: those inside fusion groups have no order.
size_t count_ordered(const Graph& graph, RegionId region = Graph::kBody) {
  const std::vector<int32_t>& numbers = graph.regions[static_cast<size_t>(region)].nodes;
  size_t count = numbers.size();
  for (const int32_t number : numbers) {
    const Node& node = graph.nodes[static_cast<size_t>(number)];
    if (node.op->flow == Flow::group) continue;
    for (const RegionId inner : node.regions) count += count_ordered(graph, inner);
  }
  return count;
}

}  // namespace

void order(Graph& graph, std::span<const int32_t> updates, const OrderOptions& options) {
  add_index_checks(graph, updates);
  const bool compares =
      options.needed && !options.frees_early && count_ordered(graph) <= kMostToCompare;
  NodeLists others;
  if (compares) others = lists_of(graph);
  Nodes nodes(graph.nodes.size());
  Orderer(graph, Graph::kBody, {updates.begin(), updates.end()}, options, nodes).run();
  if (!compares || lists_of(graph) == others) return;
  // Only the layout knows all values that share bytes.
  const int64_t found = options.needed(graph);
  exchange(graph, others);
  if (found < options.needed(graph)) exchange(graph, others);
}

}  // namespace tidemark::passes
