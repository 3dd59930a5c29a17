// A schedule with rematerialization: which values are held between their readers, and which are
// dropped and computed again.
//
// Time is counted in slots, one for each step of the region. In the slot of a step, dropped values
// that it reads are computed again first; then the step runs. So the state is a list of points for
// each value, the slots where it is made or read; between two points it is either held, or dropped
// and made again at the later one. Steps that run again read values too, which adds points.
//
// Changes are made in a transaction, which is judged by the bytes in use and then committed or
// rolled back.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/fit/profile.h"
#include "tidemark/fit/region_model.h"

namespace tidemark::fit {

class Timeline {
 public:
  explicit Timeline(const RegionModel& model);

  // How inputs that a repeated step lacks are provided.
  enum class Inputs : uint8_t {
    repeated,  // Computed again, unless they can be held within the limit.
    held,      // Held if they are smaller than the value that is dropped, else the same.
  };

  struct Point {
    int32_t slot = 0;
    int32_t readers = 0;  // The steps that read it in this slot; 0 where it is made.
    bool again = false;   // Made again here, not held since the point before.
  };
  const std::vector<Point>& points(int32_t value) const { return points_[at(value)]; }
  // The steps that run again before the step of a slot, in order.
  const std::vector<int32_t>& repeated(int32_t slot) const { return repeated_[at(slot)]; }
  bool is_made_again(int32_t value, int32_t slot) const;

  // Bytes in use, by slot.
  const std::vector<int64_t>& profile() const { return profile_.bytes(); }
  int64_t peak() const { return profile_.most(); }
  // No choice of what is dropped needs less: the values that one step reads and makes.
  int64_t least() const;
  // The estimated time of all repeated steps.
  double seconds_again() const { return seconds_; }

  // The limit under which values may be held longer than they are now.
  void set_limit(int64_t bytes) { limit_ = bytes; }
  int64_t limit() const { return limit_; }
  // Whether a slot has more bytes in use than the limit.
  bool is_over() const { return peak() > limit_; }

  // What a transaction does to the bytes in use.
  struct Effect {
    bool is_valid = false;     // The steps can run again where they have to.
    bool is_possible = false;  // No slot rises above both the limit and its former bytes.
    int64_t relief = 0;        // The bytes above the limit that are gone, summed over slots.
    double seconds = 0;        // Work that is added.
    bool depends = false;      // On how inputs are provided.
  };
  // Drops a value before one of its points.
  Effect drop(int32_t value, int32_t slot, Inputs inputs);
  // Holds a dropped value until one of its points.
  Effect hold(int32_t value, int32_t slot);
  // Ends the transaction that the last call made.
  void commit();
  void roll_back();

 private:
  static size_t at(int32_t number) { return static_cast<size_t>(number); }
  int64_t bytes(int32_t value) const { return model_->values[at(value)].bytes; }

  size_t find(int32_t value, int32_t slot) const;
  Point& write(int32_t value, size_t point);
  void insert(int32_t value, size_t point, const Point& made);
  void erase(int32_t value, size_t point);
  void add_between(int32_t value, int32_t begin, int32_t end, int64_t sign);
  void mark(int32_t slot);
  bool fits_between(int32_t value, int32_t begin, int32_t end);
  void set_again(int32_t value, size_t point, bool again);
  void repeat(int32_t step, int32_t slot);
  void stop_repeating(int32_t step, int32_t slot);
  void need(int32_t value, int32_t slot);
  void release(int32_t value, int32_t slot);
  bool prefers_hold(int32_t value, int32_t begin, int32_t slot);
  int64_t in_slot(int32_t slot) const;
  void run_in_slot(int32_t step, int32_t slot, int64_t& alive, int64_t& most) const;
  void begin_transaction(Inputs inputs);
  Effect judge();
  void end_transaction();

  const RegionModel* model_;
  std::vector<std::vector<Point>> points_;      // By value.
  std::vector<std::vector<int32_t>> repeated_;  // By slot.
  std::vector<int64_t> local_;                  // By slot: the most of what is made or read in it.
  Profile profile_;
  int64_t limit_ = 0;
  double seconds_ = 0;

  // The transaction: how each change of points and repeated steps is undone, and the bytes that are
  // added if it is committed.
  struct Undo {
    enum class What : uint8_t { write_point, insert_point, erase_point, insert_step, erase_step };
    What what;
    int32_t number = 0;  // The value or the slot.
    int32_t index = 0;
    Point point = {};
    int32_t step = -1;
  };
  std::vector<Undo> undo_;
  std::vector<RangeChange> changes_;
  std::vector<std::pair<int32_t, int64_t>> new_local_;
  std::vector<int32_t> marked_;
  std::vector<bool> is_marked_;
  double old_seconds_ = 0;
  bool failed_ = false, depends_ = false;
  int32_t depth_ = 0;
  Inputs inputs_ = Inputs::repeated;
  int64_t dropped_bytes_ = 0;

  // What is known of the values that are read in a slot while its bytes are counted.
  struct Reading {
    int32_t remaining = 0;  // Reads to come; 0 in between.
    bool goes_on = false;   // It is held after the slot.
  };
  mutable std::vector<Reading> reading_;     // By value.
  std::vector<RangeChange> nearby_, parts_;  // Room for questions about ranges.
};

}  // namespace tidemark::fit
