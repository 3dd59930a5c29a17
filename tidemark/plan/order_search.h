// Exact search for small problems under any rules: mixed alignments, fixed offsets, aliases.
//
// Take a best placement and move its buffers, from the lowest up, each to the lowest offset that
// those already moved and the fixed ones leave free: nothing rises. So some order of placing each
// buffer at its lowest free offset is best, and one in which offsets never fall. The search walks
// those orders, with the best so far and the load above each buffer as bounds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tidemark/plan/model.h"
#include "tidemark/plan/search_limit.h"

namespace tidemark::plan {

class OrderSearch {
 public:
  OrderSearch(const Problem& problem, const Model& model);

  // Looks for placements with a tidemark below `best`, down to `goal`, for at most `nodes` steps.
  // True if it ended by itself, so that none better than `tidemark()` exists unless that is at most
  // `goal`.
  bool run(int64_t best, int64_t goal, int64_t nodes, SearchLimit& limit);

  // The best found, and its offsets, one per buffer; `best` if nothing better was found.
  int64_t tidemark() const { return best_; }
  std::span<const int64_t> offsets() const { return best_offsets_; }

 private:
  bool descend(int32_t left, int64_t lowest, int64_t height, SearchLimit& limit);
  int64_t lowest_free(int32_t item) const;

  const Problem& problem_;
  const Model& model_;
  std::vector<std::vector<int32_t>> foes_;  // Per item: those it may not share bytes with.
  std::vector<int64_t> at_;                 // Per item: its offset, or -1.
  std::vector<int32_t> order_;              // Items that are not fixed, largest first.
  int64_t best_ = 0, goal_ = 0, nodes_left_ = 0;
  std::vector<int64_t> best_offsets_;
};

}  // namespace tidemark::plan
