#include "tidemark/plan/order_search.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tidemark/plan/greedy.h"

namespace tidemark::plan {

OrderSearch::OrderSearch(const Problem& problem, const Model& model)
    : problem_(problem), model_(model), foes_(model.items.size()), at_(model.items.size(), -1) {
  std::set<std::pair<int32_t, int32_t>> friends;
  for (const Alias& alias : problem.aliases) {
    friends.insert(std::minmax(alias.first, alias.second));
  }
  const auto count = static_cast<int32_t>(model.items.size());
  for (int32_t a = 0; a < count; ++a) {
    for (int32_t b = 0; b < count; ++b) {
      const Item &x = model.items[a], &y = model.items[b];
      if (a == b || x.begin >= y.end || y.begin >= x.end) continue;
      if (!friends.contains(std::minmax(model.buffers[a], model.buffers[b]))) {
        foes_[a].push_back(b);
      }
    }
  }
  for (int32_t item : order_by_size(model)) {
    const auto& fixed = problem.buffers[model.buffers[item]].fixed_offset;
    if (fixed) {
      at_[item] = *fixed;
    } else {
      order_.push_back(item);
    }
  }
}

bool OrderSearch::run(int64_t best, int64_t goal, int64_t nodes, SearchLimit& limit) {
  best_ = best;
  nodes_left_ = nodes;
  goal_ = goal;
  int64_t height = 0;
  for (size_t i = 0; i < at_.size(); ++i) {
    if (at_[i] >= 0) {
      height = std::max(height, at_[i] + problem_.buffers[model_.buffers[i]].size_bytes);
    }
  }
  return descend(static_cast<int32_t>(order_.size()), 0, height, limit);
}

int64_t OrderSearch::lowest_free(int32_t item) const {
  const Buffer& buffer = problem_.buffers[model_.buffers[item]];
  int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t foe : foes_[item]) {
      if (at_[foe] < 0) continue;
      const int64_t end = at_[foe] + problem_.buffers[model_.buffers[foe]].size_bytes;
      if (at_[foe] < offset + buffer.size_bytes && offset < end) {
        offset = (end + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
        moved = true;
      }
    }
  }
  return offset;
}

bool OrderSearch::descend(int32_t left, int64_t lowest, int64_t height, SearchLimit& limit) {
  if (height >= best_) return true;
  if (left == 0) {
    best_ = height;
    best_offsets_.assign(problem_.buffers.size(), 0);
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      best_offsets_[i] = problem_.buffers[i].fixed_offset.value_or(0);
    }
    for (size_t i = 0; i < at_.size(); ++i) best_offsets_[model_.buffers[i]] = at_[i];
    return true;
  }
  if (--nodes_left_ < 0 || !limit.spend()) return false;
  for (int32_t item : order_) {
    if (at_[item] >= 0) continue;
    const int64_t offset = lowest_free(item);
    const int64_t end = offset + problem_.buffers[model_.buffers[item]].size_bytes;
    if (offset < lowest || end >= best_) continue;
    at_[item] = offset;
    const bool finished = descend(left - 1, offset, std::max(height, end), limit);
    at_[item] = -1;
    if (!finished) return false;
    if (best_ <= goal_) return true;
  }
  return true;
}

}  // namespace tidemark::plan
