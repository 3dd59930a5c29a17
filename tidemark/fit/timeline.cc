#include "tidemark/fit/timeline.h"

#include <algorithm>

namespace tidemark::fit {
namespace {

// A chain of repeated steps longer than this is not worth looking at.
constexpr int32_t kMostDepth = 128;

}  // namespace

Timeline::Timeline(const RegionModel& model)
    : model_(&model),
      points_(model.values.size()),
      repeated_(model.steps.size()),
      through_(model.steps.size()),
      local_(model.steps.size()),
      profile_(model.steps.size()),
      is_marked_(model.steps.size()),
      is_saved_(model.values.size()),
      remaining_(model.values.size()) {
  for (size_t v = 0; v < model.values.size(); ++v)
    points_[v].push_back({.slot = model.values[v].step});
  for (size_t s = 0; s < model.steps.size(); ++s)
    for (const int32_t read : model.steps[s].reads)
      points_[at(read)].push_back({.slot = static_cast<int32_t>(s), .readers = 1});
  for (size_t v = 0; v < points_.size(); ++v)
    for (size_t i = 1; i < points_[v].size(); ++i)
      add_between(static_cast<int32_t>(v), points_[v][i - 1].slot, points_[v][i].slot, 1);
  for (size_t s = 0; s < local_.size(); ++s) {
    local_[s] = in_slot(static_cast<int32_t>(s));
    profile_[s] = through_[s] + local_[s] + model.offset[s];
  }
  ranges_.clear();
  low_ = 0;
  high_ = -1;
}

int64_t Timeline::peak() const {
  return profile_.empty() ? 0 : *std::max_element(profile_.begin(), profile_.end());
}

void Timeline::set_limit(int64_t bytes) {
  limit_ = bytes;
  over_ = static_cast<int32_t>(
      std::count_if(profile_.begin(), profile_.end(), [&](int64_t used) { return used > bytes; }));
}

int64_t Timeline::least() const {
  int64_t most = 0;
  const auto counted = [&](int32_t value) {
    return model_->values[at(value)].is_given ? 0 : bytes(value);
  };
  for (size_t s = 0; s < model_->steps.size(); ++s) {
    const ModelStep& step = model_->steps[s];
    int64_t read = 0, made = 0, reused = 0;
    for (const int32_t value : step.reads) read += counted(value);
    for (const int32_t value : step.overwrites) reused += counted(value);
    for (int32_t r = 0; r < step.values; ++r) made += counted(step.first_value + r);
    const int64_t needed = read + made - std::min(made, reused) + step.inside.least;
    most = std::max(most, needed + model_->offset[s]);
  }
  return most;
}

// The first point at or after a slot.
size_t Timeline::find(int32_t value, int32_t slot) const {
  const std::vector<Point>& points = points_[at(value)];
  const auto found =
      std::lower_bound(points.begin(), points.end(), slot,
                       [](const Point& point, int32_t wanted) { return point.slot < wanted; });
  return static_cast<size_t>(found - points.begin());
}

bool Timeline::is_made_again(int32_t value, int32_t slot) const {
  const size_t i = find(value, slot);
  const std::vector<Point>& points = points_[at(value)];
  return i < points.size() && points[i].slot == slot && points[i].again;
}

// ---- changes ------------------------------------------------------------------------------------

std::vector<Timeline::Point>& Timeline::change(int32_t value) {
  if (!is_saved_[at(value)]) {
    is_saved_[at(value)] = true;
    old_points_.emplace_back(value, points_[at(value)]);
  }
  return points_[at(value)];
}

std::vector<int32_t>& Timeline::change_repeated(int32_t slot) {
  old_repeated_.emplace_back(slot, repeated_[at(slot)]);
  return repeated_[at(slot)];
}

// Values that are results of the region hold bytes of their own and count nothing.
void Timeline::add_between(int32_t value, int32_t begin, int32_t end, int64_t sign) {
  if (model_->values[at(value)].is_given || begin + 1 >= end) return;
  const int64_t change = sign * bytes(value);
  for (int32_t slot = begin + 1; slot < end; ++slot) through_[at(slot)] += change;
  ranges_.push_back({begin + 1, end, change});
  low_ = high_ < low_ ? begin + 1 : std::min(low_, begin + 1);
  high_ = std::max(high_, end - 1);
}

void Timeline::mark(int32_t slot) {
  if (is_marked_[at(slot)]) return;
  is_marked_[at(slot)] = true;
  marked_.push_back(slot);
  low_ = high_ < low_ ? slot : std::min(low_, slot);
  high_ = std::max(high_, slot);
}

bool Timeline::fits_between(int32_t value, int32_t begin, int32_t end) const {
  for (int32_t slot = begin + 1; slot < end; ++slot) {
    const int64_t used = through_[at(slot)] + local_[at(slot)] + model_->offset[at(slot)];
    if (used + bytes(value) > limit_) return false;
  }
  return true;
}

// Point `i` is made again, or held since the point before.
void Timeline::set_again(int32_t value, size_t i, bool again) {
  std::vector<Point>& points = change(value);
  points[i].again = again;
  add_between(value, points[i - 1].slot, points[i].slot, again ? -1 : 1);
  mark(points[i - 1].slot);
  mark(points[i].slot);
}

void Timeline::repeat(int32_t step, int32_t slot) {
  const ModelStep& again = model_->steps[at(step)];
  std::vector<int32_t>& list = repeated_[at(slot)];
  const auto place = std::lower_bound(list.begin(), list.end(), step);
  mark(slot);
  if (place != list.end() && *place == step) return;
  const bool is_readable =
      std::all_of(again.parameters.begin(), again.parameters.end(),
                  [&](int32_t parameter) { return model_->readable_until[at(parameter)] >= slot; });
  if (!again.can_repeat || !is_readable || ++depth_ > kMostDepth) {
    failed_ = true;
    return;
  }
  const auto index = place - list.begin();
  std::vector<int32_t>& changed = change_repeated(slot);
  changed.insert(changed.begin() + index, step);
  seconds_ += again.cost.seconds;
  for (const int32_t read : again.reads) {
    need(read, slot);
    if (failed_) return;
  }
}

// Unless another of its results is still made again there.
void Timeline::stop_repeating(int32_t step, int32_t slot) {
  const ModelStep& again = model_->steps[at(step)];
  mark(slot);
  for (int32_t r = 0; r < again.values; ++r)
    if (is_made_again(again.first_value + r, slot)) return;
  std::vector<int32_t>& list = change_repeated(slot);
  list.erase(std::find(list.begin(), list.end(), step));
  seconds_ -= again.cost.seconds;
  for (const int32_t read : again.reads) release(read, slot);
}

bool Timeline::prefers_hold(int32_t value, int32_t begin, int32_t slot) const {
  const ModelStep& maker = model_->steps[at(model_->values[at(value)].step)];
  if (!maker.can_repeat) return true;
  if (inputs_ == Inputs::held && 2 * bytes(value) <= dropped_bytes_) return true;
  return fits_between(value, begin, slot);
}

// One more repeated step reads the value in a slot.
void Timeline::need(int32_t value, int32_t slot) {
  if (model_->values[at(value)].is_given) return;
  size_t i = find(value, slot);
  std::vector<Point>& points = change(value);
  if (i < points.size() && points[i].slot == slot) {
    ++points[i].readers;
    return mark(slot);
  }
  const bool is_held = i < points.size() && !points[i].again;
  const int32_t before = points[i - 1].slot;
  points.insert(points.begin() + static_cast<int64_t>(i), {.slot = slot, .readers = 1});
  mark(slot);
  if (is_held) {
    add_between(value, slot - 1, slot + 1, -1);
    return;
  }
  if (prefers_hold(value, before, slot)) {
    add_between(value, before, slot, 1);
    return mark(before);
  }
  points[i].again = true;
  repeat(model_->values[at(value)].step, slot);
  if (failed_) return;
  // It may now be kept for its next reader, which had it made again.
  i = find(value, slot);
  if (i + 1 >= points_[at(value)].size()) return;
  const Point next = points_[at(value)][i + 1];
  if (!next.again || !fits_between(value, slot, next.slot)) return;
  set_again(value, i + 1, false);
  stop_repeating(model_->values[at(value)].step, next.slot);
}

// A repeated step no longer reads the value in a slot.
void Timeline::release(int32_t value, int32_t slot) {
  if (model_->values[at(value)].is_given) return;
  const size_t i = find(value, slot);
  std::vector<Point>& points = change(value);
  mark(slot);
  if (--points[i].readers > 0) return;
  const Point gone = points[i];
  const int32_t step = model_->values[at(value)].step, before = points[i - 1].slot;
  const bool is_held_on = i + 1 < points.size() && !points[i + 1].again;
  const int32_t next = is_held_on ? points[i + 1].slot : slot;
  points.erase(points.begin() + static_cast<int64_t>(i));
  if (!gone.again) {
    if (is_held_on)
      add_between(value, slot - 1, slot + 1, 1);
    else
      add_between(value, before, slot, -1);
    return mark(before);
  }
  if (is_held_on) {  // Made again where it is read next.
    points[i].again = true;
    add_between(value, slot, next, -1);
    repeat(step, next);
    if (failed_) return;
  }
  stop_repeating(step, slot);
}

// ---- bytes --------------------------------------------------------------------------------------

// The most bytes of values that are made or read in a slot, with workspace.
int64_t Timeline::in_slot(int32_t slot) const {
  int64_t alive = 0, most = 0;
  const auto is_counted = [&](int32_t value) { return !model_->values[at(value)].is_given; };
  // Whether it is held when the slot begins, and when it ends.
  const auto comes_in = [&](int32_t value) {
    const size_t i = find(value, slot);
    return i > 0 && !points_[at(value)][i].again;
  };
  const auto goes_on = [&](int32_t value) {
    const size_t i = find(value, slot);
    return i + 1 < points_[at(value)].size() && !points_[at(value)][i + 1].again;
  };
  const auto run = [&](int32_t number, bool is_again) {
    const ModelStep& step = model_->steps[at(number)];
    int64_t made = 0, reused = 0, unread = 0;
    for (int32_t v = step.first_value; v < step.first_value + step.values; ++v) {
      if (!is_counted(v) || (is_again && !is_made_again(v, slot))) continue;
      made += bytes(v);
      if (remaining_[at(v)] == 0 && !goes_on(v)) unread += bytes(v);
    }
    for (const int32_t read : step.overwrites)
      if (is_counted(read) && remaining_[at(read)] == 1 && !goes_on(read)) reused += bytes(read);
    alive += made;
    most = std::max(most, alive - std::min(made, reused) + step.inside.bytes);
    for (const int32_t read : step.reads)
      if (is_counted(read) && --remaining_[at(read)] == 0 && !goes_on(read)) alive -= bytes(read);
    alive -= unread;
  };
  const auto for_each = [&](auto visit) {
    for (const int32_t number : repeated_[at(slot)]) visit(number, true);
    visit(slot, false);
  };
  for_each([&](int32_t number, bool) {
    for (const int32_t read : model_->steps[at(number)].reads) {
      if (!is_counted(read)) continue;
      if (remaining_[at(read)]++ == 0 && comes_in(read)) alive += bytes(read);
    }
  });
  most = alive;
  for_each(run);
  return most;
}

Timeline::Effect Timeline::judge() {
  Effect effect;
  if (failed_) return effect;
  for (const int32_t slot : marked_) {
    old_local_.emplace_back(slot, local_[at(slot)]);
    local_[at(slot)] = in_slot(slot);
  }
  effect.is_valid = effect.is_possible = true;
  effect.seconds = seconds_ - old_seconds_;
  for (int32_t slot = low_; slot <= high_; ++slot) {
    const int64_t before = profile_[at(slot)];
    const int64_t now = through_[at(slot)] + local_[at(slot)] + model_->offset[at(slot)];
    if (now > limit_ && now > before) effect.is_possible = false;
    effect.relief += std::max(before, limit_) - std::max(now, limit_);
  }
  return effect;
}

// ---- transactions -------------------------------------------------------------------------------

Timeline::Effect Timeline::drop(int32_t value, int32_t slot, Inputs inputs) {
  old_seconds_ = seconds_;
  inputs_ = inputs;
  dropped_bytes_ = bytes(value);
  set_again(value, find(value, slot), true);
  repeat(model_->values[at(value)].step, slot);
  return judge();
}

Timeline::Effect Timeline::hold(int32_t value, int32_t slot) {
  old_seconds_ = seconds_;
  inputs_ = Inputs::repeated;
  set_again(value, find(value, slot), false);
  stop_repeating(model_->values[at(value)].step, slot);
  return judge();
}

void Timeline::commit() {
  for (int32_t slot = low_; slot <= high_; ++slot) {
    const int64_t now = through_[at(slot)] + local_[at(slot)] + model_->offset[at(slot)];
    over_ += (now > limit_ ? 1 : 0) - (profile_[at(slot)] > limit_ ? 1 : 0);
    profile_[at(slot)] = now;
  }
  end_transaction();
}

void Timeline::roll_back() {
  for (const RangeChange& range : ranges_)
    for (int32_t slot = range.begin; slot < range.end; ++slot) through_[at(slot)] -= range.bytes;
  for (const auto& [slot, bytes] : old_local_) local_[at(slot)] = bytes;
  for (auto& [value, points] : old_points_) points_[at(value)].swap(points);
  for (auto change = old_repeated_.rbegin(); change != old_repeated_.rend(); ++change)
    repeated_[at(change->first)].swap(change->second);
  seconds_ = old_seconds_;
  end_transaction();
}

void Timeline::end_transaction() {
  for (const auto& [value, points] : old_points_) is_saved_[at(value)] = false;
  for (const int32_t slot : marked_) is_marked_[at(slot)] = false;
  old_points_.clear();
  old_repeated_.clear();
  ranges_.clear();
  old_local_.clear();
  marked_.clear();
  low_ = 0;
  high_ = -1;
  depth_ = 0;
  failed_ = false;
}

}  // namespace tidemark::fit
