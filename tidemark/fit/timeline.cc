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
      local_(model.steps.size()),
      profile_(model.steps.size()),
      is_marked_(model.steps.size()),
      reading_(model.values.size()) {
  for (size_t v = 0; v < model.values.size(); ++v)
    points_[v].push_back({.slot = model.values[v].step});
  for (size_t s = 0; s < model.steps.size(); ++s)
    for (const int32_t read : model.steps[s].reads)
      points_[at(read)].push_back({.slot = static_cast<int32_t>(s), .readers = 1});
  for (size_t v = 0; v < points_.size(); ++v)
    for (size_t i = 1; i < points_[v].size(); ++i)
      add_between(static_cast<int32_t>(v), points_[v][i - 1].slot, points_[v][i].slot, 1);
  for (int32_t slot = 0; at(slot) < local_.size(); ++slot) {
    local_[at(slot)] = in_slot(slot);
    changes_.push_back({slot, slot + 1, local_[at(slot)] + model.offset[at(slot)]});
  }
  commit();
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

Timeline::Point& Timeline::write(int32_t value, size_t i) {
  Point& point = points_[at(value)][i];
  undo_.push_back({Undo::What::write_point, value, static_cast<int32_t>(i), point});
  return point;
}

void Timeline::insert(int32_t value, size_t i, const Point& made) {
  undo_.push_back({Undo::What::insert_point, value, static_cast<int32_t>(i)});
  std::vector<Point>& points = points_[at(value)];
  points.insert(points.begin() + static_cast<int64_t>(i), made);
}

void Timeline::erase(int32_t value, size_t i) {
  std::vector<Point>& points = points_[at(value)];
  undo_.push_back({Undo::What::erase_point, value, static_cast<int32_t>(i), points[i]});
  points.erase(points.begin() + static_cast<int64_t>(i));
}

// Values that are results of the region hold bytes of their own and count nothing.
void Timeline::add_between(int32_t value, int32_t begin, int32_t end, int64_t sign) {
  if (model_->values[at(value)].is_given || begin + 1 >= end) return;
  changes_.push_back({begin + 1, end, sign * bytes(value)});
}

void Timeline::mark(int32_t slot) {
  if (is_marked_[at(slot)]) return;
  is_marked_[at(slot)] = true;
  marked_.push_back(slot);
}

// With the changes of the transaction so far.
bool Timeline::fits_between(int32_t value, int32_t begin, int32_t end) {
  const RangeChange held{begin + 1, end, bytes(value)};
  if (held.begin >= held.end) return true;
  nearby_.assign(1, held);
  for (const RangeChange& each : changes_)
    if (each.begin < held.end && held.begin < each.end)
      nearby_.push_back(
          {std::max(each.begin, held.begin), std::min(each.end, held.end), each.bytes});
  if (nearby_.size() == 1) return profile_.most(held.begin, held.end) + held.bytes <= limit_;
  take_apart(nearby_, parts_);
  int32_t done = held.begin;  // Between parts nothing changes.
  const auto fits = [&](int32_t from, int32_t to, int64_t added) {
    return from >= to || profile_.most(from, to) + added <= limit_;
  };
  for (const RangeChange& part : parts_) {
    if (!fits(done, part.begin, 0) || !fits(part.begin, part.end, part.bytes)) return false;
    done = part.end;
  }
  return fits(done, held.end, 0);
}

// Point `i` is made again, or held since the point before.
void Timeline::set_again(int32_t value, size_t i, bool again) {
  write(value, i).again = again;
  const int32_t before = points_[at(value)][i - 1].slot, slot = points_[at(value)][i].slot;
  add_between(value, before, slot, again ? -1 : 1);
  mark(before);
  mark(slot);
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
  const auto index = static_cast<int32_t>(place - list.begin());
  undo_.push_back({Undo::What::insert_step, slot, index});
  list.insert(place, step);
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
  std::vector<int32_t>& list = repeated_[at(slot)];
  const auto place = std::lower_bound(list.begin(), list.end(), step);
  const auto index = static_cast<int32_t>(place - list.begin());
  undo_.push_back({Undo::What::erase_step, slot, index, {}, step});
  list.erase(place);
  seconds_ -= again.cost.seconds;
  for (const int32_t read : again.reads) release(read, slot);
}

bool Timeline::prefers_hold(int32_t value, int32_t begin, int32_t slot) {
  const ModelStep& maker = model_->steps[at(model_->values[at(value)].step)];
  if (!maker.can_repeat) return true;
  if (2 * bytes(value) <= dropped_bytes_) {
    depends_ = true;
    if (inputs_ == Inputs::held) return true;
  }
  return fits_between(value, begin, slot);
}

// One more repeated step reads the value in a slot.
void Timeline::need(int32_t value, int32_t slot) {
  if (model_->values[at(value)].is_given) return;
  size_t i = find(value, slot);
  const std::vector<Point>& points = points_[at(value)];
  mark(slot);
  if (i < points.size() && points[i].slot == slot) {
    ++write(value, i).readers;
    return;
  }
  const bool is_held = i < points.size() && !points[i].again;
  const int32_t before = points[i - 1].slot;
  insert(value, i, {.slot = slot, .readers = 1});
  if (is_held) return add_between(value, slot - 1, slot + 1, -1);
  if (prefers_hold(value, before, slot)) {
    add_between(value, before, slot, 1);
    return mark(before);
  }
  write(value, i).again = true;
  repeat(model_->values[at(value)].step, slot);
  if (failed_) return;
  // It may now be kept for its next reader, which had it made again.
  i = find(value, slot);
  if (i + 1 >= points.size()) return;
  const Point next = points[i + 1];
  if (!next.again || !fits_between(value, slot, next.slot)) return;
  set_again(value, i + 1, false);
  stop_repeating(model_->values[at(value)].step, next.slot);
}

// A repeated step no longer reads the value in a slot.
void Timeline::release(int32_t value, int32_t slot) {
  if (model_->values[at(value)].is_given) return;
  const size_t i = find(value, slot);
  const std::vector<Point>& points = points_[at(value)];
  mark(slot);
  if (--write(value, i).readers > 0) return;
  const bool was_again = points[i].again;
  const int32_t step = model_->values[at(value)].step, before = points[i - 1].slot;
  const bool is_held_on = i + 1 < points.size() && !points[i + 1].again;
  const int32_t next = is_held_on ? points[i + 1].slot : slot;
  erase(value, i);
  if (!was_again) {
    if (is_held_on)
      add_between(value, slot - 1, slot + 1, 1);
    else
      add_between(value, before, slot, -1);
    return mark(before);
  }
  if (is_held_on) {  // Made again where it is read next.
    write(value, i).again = true;
    add_between(value, slot, next, -1);
    repeat(step, next);
    if (failed_) return;
  }
  stop_repeating(step, slot);
}

// ---- bytes --------------------------------------------------------------------------------------

// A step runs: its results exist, some in the bytes of an operand, and operands go that nobody
// reads any more.
void Timeline::run_in_slot(int32_t number, int32_t slot, int64_t& alive, int64_t& most) const {
  const ModelStep& step = model_->steps[at(number)];
  const bool is_again = number != slot;
  int64_t made = 0, reused = 0, unread = 0;
  for (int32_t v = step.first_value; v < step.first_value + step.values; ++v) {
    if (model_->values[at(v)].is_given) continue;
    const std::vector<Point>& points = points_[at(v)];
    const size_t i = is_again ? find(v, slot) : 0;
    if (is_again && (i >= points.size() || points[i].slot != slot || !points[i].again)) continue;
    made += bytes(v);
    const bool goes_on = i + 1 < points.size() && !points[i + 1].again;
    if (reading_[at(v)].remaining == 0 && !goes_on) unread += bytes(v);
  }
  const auto is_last = [&](int32_t read) {
    return reading_[at(read)].remaining == 1 && !reading_[at(read)].goes_on;
  };
  for (const int32_t read : step.overwrites)
    if (is_last(read)) reused += bytes(read);
  alive += made;
  most = std::max(most, alive - std::min(made, reused) + step.inside.bytes);
  for (const int32_t read : step.reads) {
    if (is_last(read)) alive -= bytes(read);
    --reading_[at(read)].remaining;
  }
  alive -= unread;
}

// The most bytes of values that are made or read in a slot, with workspace.
int64_t Timeline::in_slot(int32_t slot) const {
  int64_t alive = 0;
  const auto read_all = [&](int32_t step) {
    for (const int32_t read : model_->steps[at(step)].reads) {
      Reading& reading = reading_[at(read)];
      if (reading.remaining++ > 0) continue;
      // A result of the region counts nothing, whether it goes on or not.
      const std::vector<Point>& points = points_[at(read)];
      const size_t i = find(read, slot);
      const bool is_given = model_->values[at(read)].is_given;
      reading.goes_on = is_given || (i + 1 < points.size() && !points[i + 1].again);
      if (!is_given && i > 0 && !points[i].again) alive += bytes(read);
    }
  };
  for (const int32_t step : repeated_[at(slot)]) read_all(step);
  read_all(slot);
  int64_t most = alive;
  for (const int32_t step : repeated_[at(slot)]) run_in_slot(step, slot, alive, most);
  run_in_slot(slot, slot, alive, most);
  return most;
}

Timeline::Effect Timeline::judge() {
  Effect effect;
  effect.depends = depends_;
  if (failed_) return effect;
  for (const int32_t slot : marked_) {
    const int64_t now = in_slot(slot);
    if (now == local_[at(slot)]) continue;
    new_local_.emplace_back(slot, now);
    changes_.push_back({slot, slot + 1, now - local_[at(slot)]});
  }
  effect.is_valid = effect.is_possible = true;
  effect.seconds = seconds_ - old_seconds_;
  take_apart(changes_, parts_);
  for (const RangeChange& part : parts_) {
    effect.relief += profile_.relief(part, limit_);
    if (part.bytes > 0 && profile_.most(part.begin, part.end) + part.bytes > limit_)
      effect.is_possible = false;
  }
  return effect;
}

// ---- transactions -------------------------------------------------------------------------------

void Timeline::begin_transaction(Inputs inputs) {
  old_seconds_ = seconds_;
  inputs_ = inputs;
}

Timeline::Effect Timeline::drop(int32_t value, int32_t slot, Inputs inputs) {
  begin_transaction(inputs);
  dropped_bytes_ = bytes(value);
  set_again(value, find(value, slot), true);
  repeat(model_->values[at(value)].step, slot);
  return judge();
}

Timeline::Effect Timeline::hold(int32_t value, int32_t slot) {
  begin_transaction(Inputs::repeated);
  set_again(value, find(value, slot), false);
  stop_repeating(model_->values[at(value)].step, slot);
  return judge();
}

void Timeline::commit() {
  profile_.apply(changes_);
  for (const auto& [slot, bytes] : new_local_) local_[at(slot)] = bytes;
  end_transaction();
}

void Timeline::roll_back() {
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) {
    using What = Undo::What;
    const bool is_point = undo->what <= What::erase_point;
    if (is_point) {
      std::vector<Point>& points = points_[at(undo->number)];
      const auto place = points.begin() + undo->index;
      if (undo->what == What::write_point) *place = undo->point;
      if (undo->what == What::insert_point) points.erase(place);
      if (undo->what == What::erase_point) points.insert(place, undo->point);
    } else {
      std::vector<int32_t>& steps = repeated_[at(undo->number)];
      const auto place = steps.begin() + undo->index;
      if (undo->what == What::insert_step) steps.erase(place);
      if (undo->what == What::erase_step) steps.insert(place, undo->step);
    }
  }
  seconds_ = old_seconds_;
  end_transaction();
}

void Timeline::end_transaction() {
  for (const int32_t slot : marked_) is_marked_[at(slot)] = false;
  undo_.clear();
  changes_.clear();
  new_local_.clear();
  marked_.clear();
  depth_ = 0;
  failed_ = depends_ = false;
}

}  // namespace tidemark::fit
