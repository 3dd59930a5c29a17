#include "tidemark/fit/rematerialize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <queue>
#include <random>

namespace tidemark::fit {
namespace {

// A schedule that does this many times the work of the region is given up.
constexpr double kMostWork = 8;
// Of `improve`.
constexpr int kMostVainRounds = 40;
constexpr int64_t kMostTransactions = 40'000;

// A value that is held until a point, and could be dropped before it.
struct Candidate {
  double score = 0;  // Relief for a second of work, when it was last looked at.
  int32_t value = -1, slot = 0;
  Timeline::Inputs inputs = Timeline::Inputs::repeated;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score < b.score;
    return a.value != b.value ? a.value > b.value : a.slot > b.slot;
  }
};

// How drops are compared.
struct DropOrder {
  double relief_power = 1;  // A drop counts relief^power for a second of work.
  double nearly = 0.8;  // One that is at least this good, compared with the best known, is taken.
  double chance = 0;    // Each score is multiplied by up to 1 more than this.
};

// A point where a value is made again.
struct Drop {
  int32_t value = -1, slot = 0;
};

class Rematerializer {
 public:
  Rematerializer(const RegionModel& model, Timeline& timeline)
      : model_(model), timeline_(timeline) {
    for (const ModelStep& step : model.steps) most_seconds_ += kMostWork * step.cost.seconds;
  }

  bool run() {
    while (timeline_.is_over() && !is_too_much() && (drop_some(true) || drop_some(false))) {
    }
    if (is_too_much()) return false;
    const bool reached = !timeline_.is_over();
    hold_again();
    return reached;
  }

  void improve() {
    if (model_.steps.empty()) return;  // A body that only passes values on.
    Timeline best = timeline_;
    for (int vain = 0; vain < kMostVainRounds && transactions_ < kMostTransactions; ++vain) {
      order_.relief_power = std::array{0.5, 1.0, 2.0}[below(3)];
      order_.nearly = 1;
      order_.chance = std::array{0.0, 0.25, 0.5, 1.0}[below(4)];
      take_back_some();
      run();
      if (is_better_than(best)) {
        best = timeline_;
        vain = 0;
      } else {
        timeline_ = best;
      }
    }
    timeline_ = std::move(best);
  }

 private:
  bool is_too_much() const { return timeline_.seconds_again() > most_seconds_; }
  size_t below(size_t end) { return random_() % end; }

  // Fewer bytes above the limit, then less work.
  bool is_better_than(const Timeline& other) const {
    const auto rank = [](const Timeline& timeline) {
      return std::pair(std::max(timeline.peak(), timeline.limit()), timeline.seconds_again());
    };
    return rank(timeline_) < rank(other);
  }

  std::vector<Drop> drops() const {
    std::vector<Drop> list;
    for (int32_t v = 0; static_cast<size_t>(v) < model_.values.size(); ++v)
      for (const Timeline::Point& point : timeline_.points(v))
        if (point.again) list.push_back({v, point.slot});
    return list;
  }
  const ModelStep& maker_of(const Drop& drop) const {
    const int32_t step = model_.values[static_cast<size_t>(drop.value)].step;
    return model_.steps[static_cast<size_t>(step)];
  }

  // Of values that are made in some stretch of the program, or made again in one.
  void take_back_some() {
    const size_t slots = model_.steps.size(), width = 1 + below(std::max<size_t>(1, slots / 2));
    const auto middle = static_cast<int64_t>(below(slots));
    const bool by_maker = below(2) == 0;
    const size_t quarters = 2 + below(3);
    for (const Drop& drop : drops()) {
      const int32_t where =
          by_maker ? model_.values[static_cast<size_t>(drop.value)].step : drop.slot;
      if (2 * static_cast<size_t>(std::abs(where - middle)) > width || below(4) >= quarters ||
          !timeline_.is_made_again(drop.value, drop.slot))
        continue;
      if (hold(drop).is_valid)
        timeline_.commit();
      else
        timeline_.roll_back();
    }
  }

  Timeline::Effect hold(const Drop& drop) {
    ++transactions_;
    return timeline_.hold(drop.value, drop.slot);
  }
  Timeline::Effect drop(const Candidate& candidate, Timeline::Inputs inputs) {
    ++transactions_;
    return timeline_.drop(candidate.value, candidate.slot, inputs);
  }

  // By slot: how many slots before it have too many bytes in use.
  std::vector<int32_t> count_over() const {
    std::vector<int32_t> counts = {0};
    for (const int64_t bytes : timeline_.profile())
      counts.push_back(counts.back() + (bytes > timeline_.limit() ? 1 : 0));
    return counts;
  }

  // Relief for a second of work; work that is nearly free is not divided by. If strict, no slot may
  // rise above the limit, or further above it.
  double score_of(const Timeline::Effect& effect, bool is_strict) {
    const bool counts = effect.is_valid && effect.relief > 0 && (!is_strict || effect.is_possible);
    if (!counts) return 0;
    const auto bytes = static_cast<double>(effect.relief);
    const double relief = order_.relief_power == 1 ? bytes : std::pow(bytes, order_.relief_power);
    const double luck =
        order_.chance == 0 ? 1 : 1 + order_.chance * static_cast<double>(below(1024)) / 1024;
    return luck * relief / std::max(effect.seconds, 1e-9);
  }

  // The better of the two ways to provide inputs.
  void rate(Candidate& candidate, bool is_strict) {
    for (const Timeline::Inputs inputs : {Timeline::Inputs::repeated, Timeline::Inputs::held}) {
      const Timeline::Effect effect = drop(candidate, inputs);
      timeline_.roll_back();
      if (const double score = score_of(effect, is_strict); score > candidate.score) {
        candidate.score = score;
        candidate.inputs = inputs;
      }
      if (!effect.depends) return;
    }
  }

  std::priority_queue<Candidate> candidates(bool is_strict) {
    std::vector<Candidate> list;
    const std::vector<int32_t> over = count_over();
    for (size_t v = 0; v < model_.values.size(); ++v) {
      const ModelValue& value = model_.values[v];
      if (value.is_given || !model_.steps[static_cast<size_t>(value.step)].can_repeat) continue;
      const std::vector<Timeline::Point>& points = timeline_.points(static_cast<int32_t>(v));
      for (size_t i = 1; i < points.size(); ++i) {
        const auto begin = static_cast<size_t>(points[i - 1].slot) + 1,
                   end = static_cast<size_t>(points[i].slot);
        if (points[i].again || begin >= end || over[begin] == over[end]) continue;
        list.push_back({0, static_cast<int32_t>(v), points[i].slot});
      }
    }
    for (Candidate& each : list) rate(each, is_strict);
    std::erase_if(list, [](const Candidate& each) { return each.score <= 0; });
    return std::priority_queue<Candidate>(std::less<Candidate>(), std::move(list));
  }

  bool is_held_before(const Candidate& candidate) const {
    const std::vector<Timeline::Point>& points = timeline_.points(candidate.value);
    return std::any_of(points.begin() + 1, points.end(), [&](const Timeline::Point& point) {
      return point.slot == candidate.slot && !point.again;
    });
  }

  // Scores are brought up to date when a candidate is the best: most only become worse. One that is
  // nearly as good as the next one seems to be is taken.
  bool drop_some(bool is_strict) {
    std::priority_queue<Candidate> queue = candidates(is_strict);
    bool dropped = false;
    while (!queue.empty() && timeline_.is_over() && !is_too_much()) {
      Candidate best = queue.top();
      queue.pop();
      if (!is_held_before(best)) continue;
      const Timeline::Effect effect = drop(best, best.inputs);
      best.score = score_of(effect, is_strict);
      const bool is_best =
          best.score > 0 && (queue.empty() || best.score >= order_.nearly * queue.top().score);
      if (is_best) {
        timeline_.commit();
        dropped = true;
        continue;
      }
      timeline_.roll_back();
      if (best.score > 0) queue.push(best);
    }
    return dropped;
  }

  // Values that need not be dropped after all, those with the most work first.
  void hold_again() {
    std::vector<Drop> list = drops();
    std::stable_sort(list.begin(), list.end(), [&](const Drop& a, const Drop& b) {
      return maker_of(a).cost.seconds > maker_of(b).cost.seconds;
    });
    for (const Drop& each : list) {
      if (!timeline_.is_made_again(each.value, each.slot)) continue;
      const Timeline::Effect effect = hold(each);
      if (effect.is_possible && effect.seconds < 0)
        timeline_.commit();
      else
        timeline_.roll_back();
    }
  }

  const RegionModel& model_;
  Timeline& timeline_;
  DropOrder order_;
  double most_seconds_ = 0;
  int64_t transactions_ = 0;
  std::mt19937_64 random_{1};
};

}  // namespace

bool rematerialize(const RegionModel& model, Timeline& timeline, int64_t limit) {
  timeline.set_limit(limit);
  return Rematerializer(model, timeline).run();
}

void improve(const RegionModel& model, Timeline& timeline) {
  Rematerializer(model, timeline).improve();
}

}  // namespace tidemark::fit
