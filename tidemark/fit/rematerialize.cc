#include "tidemark/fit/rematerialize.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace tidemark::fit {
namespace {

// A schedule that does this many times the work of the region is given up.
constexpr double kMostWork = 8;

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

class Rematerializer {
 public:
  Rematerializer(const RegionModel& model, Timeline& timeline, const DropOrder& order)
      : model_(model), timeline_(timeline), order_(order) {
    for (const ModelStep& step : model.steps) most_seconds_ += kMostWork * step.cost.seconds;
  }

  bool run() {
    while (timeline_.is_over() && !is_too_much() && (drop_some(true) || drop_some(false))) {
    }
    const bool reached = !timeline_.is_over();
    hold_again();
    return reached;
  }

 private:
  bool is_too_much() const { return timeline_.seconds_again() > most_seconds_; }

  // By slot: how many slots before it have too many bytes in use.
  std::vector<int32_t> count_over() const {
    std::vector<int32_t> counts = {0};
    for (const int64_t bytes : timeline_.profile())
      counts.push_back(counts.back() + (bytes > timeline_.limit() ? 1 : 0));
    return counts;
  }

  // Relief for a second of work; work that is nearly free is not divided by. If strict, no slot may
  // rise above the limit, or further above it.
  double score_of(const Timeline::Effect& effect, bool is_strict) const {
    const bool counts = effect.is_valid && effect.relief > 0 && (!is_strict || effect.is_possible);
    if (!counts) return 0;
    const double relief = order_.relief_power == 1
                              ? static_cast<double>(effect.relief)
                              : std::pow(static_cast<double>(effect.relief), order_.relief_power);
    return relief / std::max(effect.seconds, 1e-9);
  }

  // The better of the two ways to provide inputs.
  void rate(Candidate& candidate, bool is_strict) {
    for (const Timeline::Inputs inputs : {Timeline::Inputs::repeated, Timeline::Inputs::held}) {
      const Timeline::Effect effect = timeline_.drop(candidate.value, candidate.slot, inputs);
      timeline_.roll_back();
      const double score = score_of(effect, is_strict);
      if (score <= candidate.score) continue;
      candidate.score = score;
      candidate.inputs = inputs;
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
      const Timeline::Effect effect = timeline_.drop(best.value, best.slot, best.inputs);
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
    struct Drop {
      double seconds = 0;
      int32_t value = -1, slot = 0;
    };
    std::vector<Drop> drops;
    for (size_t v = 0; v < model_.values.size(); ++v)
      for (const Timeline::Point& point : timeline_.points(static_cast<int32_t>(v)))
        if (point.again)
          drops.push_back({model_.steps[static_cast<size_t>(model_.values[v].step)].cost.seconds,
                           static_cast<int32_t>(v), point.slot});
    std::stable_sort(drops.begin(), drops.end(),
                     [](const Drop& a, const Drop& b) { return a.seconds > b.seconds; });
    for (const Drop& drop : drops) {
      if (!timeline_.is_made_again(drop.value, drop.slot)) continue;
      const Timeline::Effect effect = timeline_.hold(drop.value, drop.slot);
      if (effect.is_possible && effect.seconds < 0)
        timeline_.commit();
      else
        timeline_.roll_back();
    }
  }

  const RegionModel& model_;
  Timeline& timeline_;
  const DropOrder& order_;
  double most_seconds_ = 0;
};

}  // namespace

bool rematerialize(const RegionModel& model, Timeline& timeline, int64_t limit,
                   const DropOrder& order) {
  timeline.set_limit(limit);
  return Rematerializer(model, timeline, order).run();
}

}  // namespace tidemark::fit
