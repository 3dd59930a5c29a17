// A linked list that can compare the positions of two elements in O(1).
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "tidemark/base/work.h"

namespace tidemark::passes {

// The numbers 0 to n - 1, initially in order. Each has a label, and labels increase along the list;
// moving an element gives it a label between two others. If none is free, the labels around it are
// spread over a range that is not too full: O(log n) per move on average (Bender, Cole, Demaine,
// Farach-Colton and Zito, "Two simplified algorithms for maintaining order in a list").
class LabelledList {
 public:
  explicit LabelledList(size_t count) : elements_(count) {
    const auto size = static_cast<int32_t>(count);
    for (int32_t i = 0; i < size; ++i) {
      at(i).label = (static_cast<uint64_t>(i) + 1) << kSpacing;
      at(i).next = i + 1 < size ? i + 1 : -1;
      at(i).previous = i - 1;
    }
    first_ = size > 0 ? 0 : -1;
  }

  bool is_before(int32_t a, int32_t b) const { return at(a).label < at(b).label; }

  void remove(int32_t each) {
    const int32_t before = at(each).previous, after = at(each).next;
    (before < 0 ? first_ : at(before).next) = after;
    if (after >= 0) at(after).previous = before;
  }

  // Right behind the other.
  void move_behind(int32_t each, int32_t other) {
    remove(each);
    if (label_behind(other) - at(other).label < 2) spread(other);
    at(each).label = std::midpoint(at(other).label, label_behind(other));
    const int32_t after = at(other).next;
    at(each).next = after;
    at(each).previous = other;
    at(other).next = each;
    if (after >= 0) at(after).previous = each;
  }

  std::vector<int32_t> all() const {
    std::vector<int32_t> list;
    for (int32_t each = first_; each >= 0; each = at(each).next) list.push_back(each);
    return list;
  }

 private:
  static constexpr int kSpacing = 20, kBits = 62;

  struct Element {
    uint64_t label = 0;
    int32_t next = -1, previous = -1;
  };
  Element& at(int32_t index) { return elements_[static_cast<size_t>(index)]; }
  const Element& at(int32_t index) const { return elements_[static_cast<size_t>(index)]; }
  uint64_t label_behind(int32_t each) const {
    const int32_t after = at(each).next;
    return after < 0 ? uint64_t{1} << kBits : at(after).label;
  }

  // Ranges of 2, 4, 8, ... labels around the element, until one is sparse: the larger, the sparser.
  void spread(int32_t around) {
    double most = 1;
    int32_t begin = around, end = around;  // The last of them.
    uint64_t count = 1;
    for (int bits = 1; bits <= kBits; ++bits) {
      const uint64_t size = uint64_t{1} << bits, low = at(around).label & ~(size - 1);
      for (int32_t p = at(begin).previous; p >= 0 && at(p).label >= low; p = at(p).previous) {
        begin = p;
        ++count;
      }
      for (int32_t n = at(end).next; n >= 0 && at(n).label - low < size; n = at(n).next) {
        end = n;
        ++count;
      }
      most /= kSparser;
      // Each must have a free label after it.
      if (static_cast<double>(count) > most * static_cast<double>(size) || size < 2 * count)
        continue;
      Work::add(static_cast<int64_t>(count));
      const uint64_t gap = size / count;
      uint64_t label = low;
      for (int32_t each = begin;; each = at(each).next) {
        at(each).label = label;
        label += gap;
        if (each == end) return;
      }
    }
  }
  static constexpr double kSparser = 1.4;  // By doubling: 2^62 / 1.4^62 elements have room.

  std::vector<Element> elements_;
  int32_t first_ = -1;
};

}  // namespace tidemark::passes
