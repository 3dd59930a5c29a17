#include "tidemark/plan/improve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tidemark::plan {

Improver::Improver(const Model& model, Skyline& skyline)
    : model_(model), skyline_(skyline), crowded_(model.sections) {
  best_.height = std::numeric_limits<int64_t>::max();
}

double Improver::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<double>(random_ >> 11) / 9007199254740992.0;
}

int64_t Improver::pack(const std::vector<double>& priority, SearchLimit& limit) {
  const int64_t height = skyline_.pack(priority);
  limit.spend(1 + std::ssize(model_.items) / 16);
  if (height < best_.height) {
    best_.height = height;
    best_.offsets.assign(skyline_.offsets().begin(), skyline_.offsets().end());
    best_priority_ = priority;
    limit.note(height * model_.unit_bytes);
  }
  return height;
}

void Improver::start(int64_t goal, SearchLimit& limit) {
  using Priority = double (*)(double width, double size);
  // Width alone suits nested lifetimes, size alone few kinds of sizes; the rest lie between.
  constexpr Priority kPriorities[] = {
      [](double width, double size) { return width * size; },
      [](double width, double) { return width; },
      [](double, double size) { return size; },
      [](double width, double size) { return width * std::sqrt(size); },
      [](double width, double size) { return std::sqrt(width) * size; },
  };
  trial_.resize(model_.items.size());
  for (Priority rule : kPriorities) {
    for (size_t i = 0; i < model_.items.size(); ++i) {
      const Item& item = model_.items[i];
      trial_[i] = rule(item.end - item.begin, static_cast<double>(item.size));
    }
    pack(trial_, limit);
    if (best_.height <= goal || limit.over()) break;
  }
  priority_ = best_priority_;
  offsets_ = best_.offsets;
  height_ = best_.height;
}

// Fills `trial_` with the current priorities, changed near the peak.
void Improver::nudge(int64_t goal) {
  trial_ = priority_;
  // Sometimes only the worst offenders, sometimes all.
  const auto line = static_cast<int64_t>(static_cast<double>(goal) +
                                         static_cast<double>(height_ - goal) * random());
  constexpr int32_t kReach = 200;
  std::ranges::fill(crowded_, 0);
  for (size_t i = 0; i < trial_.size(); ++i) {
    const Item& item = model_.items[i];
    if (offsets_[i] + item.size <= line) continue;
    trial_[i] *= 1 + 4 * random();
    if (random() < 0.3) {
      const int32_t end = std::min(item.end, item.begin + kReach);
      std::fill(crowded_.begin() + item.begin, crowded_.begin() + end, 1);
    }
  }
  if (random() < 0.5) return;
  for (size_t i = 0; i < trial_.size(); ++i) {
    const Item& item = model_.items[i];
    if (crowded_[item.begin] || crowded_[item.end - 1]) trial_[i] *= 0.7 + 0.6 * random();
  }
}

void Improver::improve(int64_t goal, int64_t rounds, SearchLimit& limit) {
  for (; rounds > 0 && best_.height > goal && !limit.over(); --rounds) {
    nudge(goal);
    const int64_t height = pack(trial_, limit);
    const bool slightly_worse = static_cast<double>(height) < 1.005 * static_cast<double>(height_);
    if (height <= height_ || (slightly_worse && random() < 0.02)) {
      if (height < height_) stalled_ = 0;
      std::swap(priority_, trial_);
      offsets_.assign(skyline_.offsets().begin(), skyline_.offsets().end());
      height_ = height;
    } else if (++stalled_ > 100) {
      priority_ = best_priority_;
      offsets_ = best_.offsets;
      height_ = best_.height;
      stalled_ = 0;
    }
  }
}

}  // namespace tidemark::plan
