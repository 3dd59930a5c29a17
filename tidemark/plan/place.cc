// From a problem to a placement: quick passes first, then searches, until the limits say stop.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tidemark/base/error.h"
#include "tidemark/plan/check.h"
#include "tidemark/plan/corner_search.h"
#include "tidemark/plan/greedy.h"
#include "tidemark/plan/improve.h"
#include "tidemark/plan/model.h"
#include "tidemark/plan/order_search.h"
#include "tidemark/plan/plan.h"
#include "tidemark/plan/search_limit.h"
#include "tidemark/plan/skyline.h"

namespace tidemark::plan {
namespace {

// With more buffers one step of exact search is too expensive to succeed.
constexpr size_t kMostForCornerSearch = 2000;
constexpr size_t kMostForOrderSearch = 64;
constexpr int64_t kImproveRounds = 60;  // Before exact search has its first turn.

class Planner {
 public:
  Planner(const Problem& problem, const Limits& limits)
      : problem_(problem), model_(make_model(problem)), limit_(limits) {
    result_.load_bytes = load_bytes(problem);
    result_.bound_bytes = simple_bound(problem, model_);
    result_.placement.tidemark_bytes = std::numeric_limits<int64_t>::max();
  }

  Result run() {
    if (model_.plain) {
      plain();
    } else {
      general();
    }
    const int64_t tidemark = result_.placement.tidemark_bytes;
    if (tidemark > result_.bound_bytes) {
      result_.proof = Proof::none;
    } else if (!searched_bound_) {
      result_.proof = Proof::load;
    } else {
      result_.proof = Proof::search;
    }
    result_.nodes = limit_.nodes();
    return std::move(result_);
  }

 private:
  // Low enough to stop: nothing lower exists, or nothing lower was requested.
  int64_t goal() const { return std::max(result_.bound_bytes, limit_.limits().capacity_bytes); }
  bool done() const { return result_.placement.tidemark_bytes <= goal() || limit_.over(); }

  void offer(Placement placement) {
    if (placement.tidemark_bytes >= result_.placement.tidemark_bytes) return;
    result_.placement = std::move(placement);
    limit_.note(result_.placement.tidemark_bytes);
  }
  void prove(int64_t bound_bytes) {
    if (bound_bytes <= result_.bound_bytes) return;
    result_.bound_bytes = bound_bytes;
    searched_bound_ = true;
  }

  void plain() {
    Skyline skyline(model_.items, model_.sections);
    Improver improver(model_, skyline);
    auto improve = [&](int64_t rounds) {
      improver.improve(goal() / model_.unit_bytes, rounds, limit_);
      offer(to_placement(problem_, model_, improver.best().offsets));
    };
    improver.start(goal() / model_.unit_bytes, limit_);
    offer(to_placement(problem_, model_, improver.best().offsets));
    const bool exact = model_.items.size() <= kMostForCornerSearch;
    // Rounding to the alignment hides less than one alignment from the search below.
    if (model_.slop_bytes > 0 && model_.items.size() <= kMostForOrderSearch && !done())
      search_orders(20'000);
    while (!done()) {
      improve(kImproveRounds);
      if (exact && !done()) search_corners();
      if (exhausted_) break;
    }
  }

  void search_orders(int64_t nodes) {
    OrderSearch search(problem_, model_);
    const bool finished = search.run(result_.placement.tidemark_bytes, goal(), nodes, limit_);
    if (search.tidemark() < result_.placement.tidemark_bytes) {
      offer({{search.offsets().begin(), search.offsets().end()}, search.tidemark()});
    }
    if (finished && result_.placement.tidemark_bytes > goal()) {
      prove(result_.placement.tidemark_bytes);
    }
  }

  // One round of a binary search over capacities, each with the same number of steps; the next
  // round has twice as many. A capacity that times out counts as impossible for the rest of the
  // round, but proves nothing.
  void search_corners() {
    if (!corners_) corners_ = std::make_unique<CornerSearch>(model_.items, model_.sections);
    const int64_t unit = model_.unit_bytes;
    int64_t low = (goal() + unit - 1) / unit;
    bool first = true;
    // If a capacity was requested, most of the time is spent on it.
    const bool only_goal =
        limit_.limits().capacity_bytes >= result_.bound_bytes && corner_rounds_++ % 4 != 3;
    while (!done()) {
      const int64_t high = (result_.placement.tidemark_bytes + unit - 1) / unit;
      if (low >= high) {
        if (result_.bound_bytes + model_.slop_bytes > (high - 1) * unit) exhausted_ = true;
        break;
      }
      // The lowest first: a tight capacity leaves little to try.
      const int64_t capacity = first ? low : low + (high - 1 - low) / 2;
      first = false;
      switch (corners_->run(capacity, effort_, limit_)) {
        case CornerSearch::Outcome::found:
          offer(to_placement(problem_, model_, corners_->offsets()));
          break;
        case CornerSearch::Outcome::impossible:
          prove((capacity + 1) * unit - model_.slop_bytes);
          [[fallthrough]];
        case CornerSearch::Outcome::stopped:
          low = capacity + 1;
          break;
      }
      if (only_goal) break;
    }
    effort_ *= 2;
  }

  void general() {
    Greedy greedy(problem_, model_);
    greedy.check_fixed();
    const auto count = static_cast<int64_t>(model_.items.size());
    auto attempt = [&](const std::vector<int32_t>& order, Fit fit) {
      const int64_t tidemark = greedy.place(order, fit);
      limit_.spend(1 + count / 16);
      if (tidemark < result_.placement.tidemark_bytes) {
        offer({{greedy.offsets().begin(), greedy.offsets().end()}, tidemark});
      }
      return tidemark;
    };
    std::vector<int32_t> best;
    int64_t best_tidemark = std::numeric_limits<int64_t>::max();
    for (const auto& order :
         {order_by_size(model_), order_by_area(model_), order_by_width(model_)}) {
      for (Fit fit : {Fit::tightest, Fit::lowest}) {
        const int64_t tidemark = attempt(order, fit);
        if (tidemark < best_tidemark) {
          best_tidemark = tidemark;
          best = order;
        }
        if (done()) return;
      }
    }
    if (model_.items.size() <= kMostForOrderSearch) {
      search_orders(limit_.nodes_left() / 2);
      if (done()) return;
    }
    climb(greedy, attempt, best, best_tidemark);
  }

  // Moves a buffer that ends at the top, or a random one, earlier in the order.
  template <class Attempt>
  void climb(Greedy& greedy, Attempt attempt, std::vector<int32_t> order, int64_t tidemark) {
    uint64_t random = 0x9e3779b97f4a7c15ULL;
    auto below = [&](size_t n) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      return static_cast<size_t>(random % n);
    };
    std::vector<int64_t> offsets = result_.placement.offsets;
    while (!done()) {
      std::vector<size_t> top;
      for (size_t i = 0; i < order.size(); ++i) {
        const int32_t buffer = model_.buffers[order[i]];
        if (offsets[buffer] + problem_.buffers[buffer].size_bytes == tidemark) top.push_back(i);
      }
      const size_t from =
          !top.empty() && below(2) == 0 ? top[below(top.size())] : below(order.size());
      std::vector<int32_t> trial = order;
      const size_t to = below(from + 1);
      std::rotate(trial.begin() + to, trial.begin() + from, trial.begin() + from + 1);
      const int64_t reached = attempt(trial, below(4) == 0 ? Fit::lowest : Fit::tightest);
      if (reached > tidemark) continue;
      tidemark = reached;
      order = std::move(trial);
      offsets.assign(greedy.offsets().begin(), greedy.offsets().end());
    }
  }

  const Problem& problem_;
  Model model_;
  SearchLimit limit_;
  Result result_;
  bool searched_bound_ = false;  // The bound comes from a search, not from the load.
  bool exhausted_ = false;       // No search can add anything.
  std::unique_ptr<CornerSearch> corners_;
  int64_t effort_ = 10'000;
  int64_t corner_rounds_ = 0;
};

}  // namespace

std::string_view name(Proof proof) {
  switch (proof) {
    case Proof::none:
      return "none";
    case Proof::load:
      return "load";
    case Proof::search:
      return "search";
  }
  return "?";
}

Result place(const Problem& problem, const Limits& limits) {
  Result result = Planner(problem, limits).run();
#ifdef TIDEMARK_DEBUG
  const std::optional<Fault> fault = check_placement(problem, result.placement);
  TIDEMARK_CHECK(!fault, fault->text());
#endif
  return result;
}

}  // namespace tidemark::plan
