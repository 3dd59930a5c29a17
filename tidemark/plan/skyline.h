// Skyline packing, for large problems: always fills the lowest valley.
//
// The floor over time is a row of flat segments. On the lowest one goes the buffer of highest
// priority that fits between its ends; if none fits, the segment is lifted to its lower neighbour,
// and the bytes between are lost. Long lifetimes first is a good priority for training graphs:
// residuals of the backward pass nest, and short-lived buffers fill in above. A search over
// priorities does better still: see `improve`.
//
// One pass takes O(n log n) for n buffers in practice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tidemark/plan/model.h"

namespace tidemark::plan {

class Skyline {
 public:
  // Lifetimes in sections; the items' sizes are the heights to pack.
  Skyline(std::span<const Item> items, int32_t sections);
  ~Skyline();

  // Packs by these priorities, highest first, and returns the height reached. `offsets()` has the
  // offsets until the next call.
  int64_t pack(std::span<const double> priority);
  std::span<const int64_t> offsets() const { return offsets_; }

 private:
  class Finder;

  void split(int32_t segment, int32_t at);
  void merge_with_next(int32_t segment);

  std::vector<Item> items_;
  int32_t sections_;
  std::unique_ptr<Finder> finder_;
  std::vector<int64_t> offsets_;
  // The row of segments, each known by its first section.
  std::vector<int32_t> next_, previous_;
  std::vector<int64_t> floor_;
};

}  // namespace tidemark::plan
