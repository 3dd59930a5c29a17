// The problem in the planners' form: time cut into sections, heights in units.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/plan/plan.h"

namespace tidemark::plan {

// A buffer in units: a range of sections, between which nothing begins or ends, and a height.
struct Item {
  int32_t begin = 0;
  int32_t end = 0;
  int64_t size = 0;
};

struct Model {
  std::vector<Item> items;       // Buffers of more than zero bytes.
  std::vector<int32_t> buffers;  // The buffer of each item.
  int32_t sections = 0;
  int64_t unit_bytes = 1;  // The bytes of one unit of height.
  int64_t slop_bytes = 0;  // The most that rounding added to any one size.
  // All buffers have the same alignment, nothing is fixed and nothing may overlap: only then are
  // heights whole units, and the fast planners apply.
  bool plain = true;
};

// Throws UserError if no placement can exist.
Model make_model(const Problem& problem);

// The best lower bound that can be computed without search: at least the load.
int64_t simple_bound(const Problem& problem, const Model& model);

// Offsets of items, in units, as a placement of the problem's buffers.
Placement to_placement(const Problem& problem, const Model& model,
                       std::span<const int64_t> item_offsets);

// The highest byte these offsets use, plus one.
int64_t tidemark_of(const Problem& problem, std::span<const int64_t> offsets);

}  // namespace tidemark::plan
