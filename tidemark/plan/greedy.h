// Greedy placement: places buffers one by one in a given order, each into the tightest gap that
// holds it. Obeys every rule of the problem: alignments, fixed offsets, aliases.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/plan/model.h"
#include "tidemark/plan/plan.h"

namespace tidemark::plan {

// Which gap a buffer takes, of those that hold it.
enum class Fit : uint8_t { tightest, lowest };

class Greedy {
 public:
  Greedy(const Problem& problem, const Model& model);

  // Places the model's items in this order, fixed ones first, and returns the tidemark. `offsets()`
  // has the offsets, one per buffer of the problem, until the next call.
  int64_t place(std::span<const int32_t> order, Fit fit);
  std::span<const int64_t> offsets() const { return offsets_; }

  // Throws UserError if two buffers with fixed offsets overlap.
  void check_fixed();

 private:
  struct PlacedItem {
    int64_t begin, end;
    int32_t item;
  };

  void put(int32_t item, int64_t offset);
  void collect(int32_t item);
  void visit(int32_t node, int32_t item);
  int64_t choose(int32_t item, Fit fit) const;
  bool may_share(int32_t a, int32_t b) const;

  const Problem& problem_;
  const Model& model_;
  std::vector<int64_t> offsets_;
  std::vector<std::vector<int32_t>> partners_;  // Per item: its aliases, sorted.
  // A tree over items sorted by begin; each node knows the latest end of those placed below it.
  std::vector<int32_t> by_begin_, rank_, latest_end_;
  int32_t leaves_ = 1;
  std::vector<PlacedItem> taken_;  // The result of `collect`, by offset.
};

// Orders for `Greedy`: ids of items.
std::vector<int32_t> order_by_size(const Model& model);
std::vector<int32_t> order_by_width(const Model& model);
std::vector<int32_t> order_by_area(const Model& model);

}  // namespace tidemark::plan
