#include "tidemark/plan/skyline.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace tidemark::plan {

// Finds the unplaced item of highest priority within a range of sections: a two-dimensional tree
// over (begin, end) whose nodes know the best unplaced item below them.
class Skyline::Finder {
 public:
  explicit Finder(std::span<const Item> items) : items_(items), order_(items.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    leaf_of_.resize(items.size());
    if (!items.empty()) build(0, static_cast<int32_t>(items.size()), 0, -1);
  }

  void reset(std::span<const double> priority) {
    priority_ = priority;
    open_.assign(items_.size(), true);
    for (size_t node = nodes_.size(); node-- > 0;) update(nodes_[node]);
  }

  // The best item within [begin, end), or -1.
  int32_t best_within(int32_t begin, int32_t end) const {
    int32_t best = -1;
    if (!nodes_.empty()) descend(0, begin, end, best);
    return best;
  }

  void close(int32_t item) {
    open_[item] = false;
    for (int32_t node = leaf_of_[item]; node >= 0; node = nodes_[node].parent) {
      Node& at = nodes_[node];
      if (at.best != item) break;
      update(at);
    }
  }

 private:
  static constexpr int32_t kLeafSize = 8;

  struct Node {
    int32_t min_begin, max_begin, min_end, max_end;
    int32_t first, last;  // Items of `order_` below.
    int32_t parent, left, right;
    int32_t best;  // Of the open ones below, or -1.
  };

  int32_t build(int32_t first, int32_t last, int axis, int32_t parent) {
    const auto index = static_cast<int32_t>(nodes_.size());
    Node node{.min_begin = std::numeric_limits<int32_t>::max(),
              .max_begin = -1,
              .min_end = std::numeric_limits<int32_t>::max(),
              .max_end = -1,
              .first = first,
              .last = last,
              .parent = parent,
              .left = -1,
              .right = -1,
              .best = -1};
    for (int32_t i = first; i < last; ++i) {
      const Item& item = items_[order_[i]];
      node.min_begin = std::min(node.min_begin, item.begin);
      node.max_begin = std::max(node.max_begin, item.begin);
      node.min_end = std::min(node.min_end, item.end);
      node.max_end = std::max(node.max_end, item.end);
    }
    nodes_.push_back(node);
    if (last - first <= kLeafSize) {
      for (int32_t i = first; i < last; ++i) leaf_of_[order_[i]] = index;
      return index;
    }
    const int32_t middle = (first + last) / 2;
    std::nth_element(order_.begin() + first, order_.begin() + middle, order_.begin() + last,
                     [&](int32_t a, int32_t b) {
                       const int32_t x = axis == 0 ? items_[a].begin : items_[a].end;
                       const int32_t y = axis == 0 ? items_[b].begin : items_[b].end;
                       return x != y ? x < y : a < b;
                     });
    const int32_t left = build(first, middle, 1 - axis, index);
    const int32_t right = build(middle, last, 1 - axis, index);
    nodes_[index].left = left;
    nodes_[index].right = right;
    return index;
  }

  // Ties go to the lower index, so that the answer does not depend on the shape of the tree.
  bool better(int32_t a, int32_t b) const {
    if (a < 0 || b < 0) return b < 0 && a >= 0;
    return priority_[a] != priority_[b] ? priority_[a] > priority_[b] : a < b;
  }

  void update(Node& node) {
    node.best = -1;
    if (node.left < 0) {
      for (int32_t i = node.first; i < node.last; ++i) {
        if (open_[order_[i]] && better(order_[i], node.best)) node.best = order_[i];
      }
      return;
    }
    const int32_t a = nodes_[node.left].best, b = nodes_[node.right].best;
    node.best = better(a, b) ? a : b;
  }

  void descend(int32_t index, int32_t begin, int32_t end, int32_t& best) const {
    const Node& node = nodes_[index];
    if (!better(node.best, best) || node.max_begin < begin || node.min_end > end) return;
    const Item& top = items_[node.best];
    if (top.begin >= begin && top.end <= end) {
      best = node.best;
      return;
    }
    if (node.left < 0) {
      for (int32_t i = node.first; i < node.last; ++i) {
        const int32_t id = order_[i];
        if (open_[id] && items_[id].begin >= begin && items_[id].end <= end && better(id, best)) {
          best = id;
        }
      }
      return;
    }
    const bool left_first = better(nodes_[node.left].best, nodes_[node.right].best);
    descend(left_first ? node.left : node.right, begin, end, best);
    descend(left_first ? node.right : node.left, begin, end, best);
  }

  std::span<const Item> items_;
  std::vector<int32_t> order_, leaf_of_;
  std::vector<Node> nodes_;
  std::span<const double> priority_;
  std::vector<char> open_;
};

Skyline::Skyline(std::span<const Item> items, int32_t sections)
    : items_(items.begin(), items.end()),
      sections_(sections),
      finder_(std::make_unique<Finder>(items_)),
      offsets_(items.size()),
      next_(sections + 1),
      previous_(sections + 1),
      floor_(sections + 1) {}

Skyline::~Skyline() = default;

// Cuts the segment so that another begins at section `at`.
void Skyline::split(int32_t segment, int32_t at) {
  if (segment == at || next_[segment] == at) return;
  const int32_t after = next_[segment];
  next_[segment] = at;
  next_[at] = after;
  previous_[at] = segment;
  if (after < sections_) previous_[after] = at;
  floor_[at] = floor_[segment];
}

void Skyline::merge_with_next(int32_t segment) {
  const int32_t gone = next_[segment];
  next_[segment] = next_[gone];
  if (next_[gone] < sections_) previous_[next_[gone]] = segment;
  next_[gone] = -1;
}

int64_t Skyline::pack(std::span<const double> priority) {
  finder_->reset(priority);
  std::ranges::fill(next_, -1);
  if (items_.empty()) return 0;
  next_[0] = sections_;
  previous_[0] = -1;
  floor_[0] = 0;
  // Stale entries of segments that have changed are skipped.
  using Entry = std::pair<int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> lowest;
  lowest.push({0, 0});
  int64_t height = 0;
  size_t left = items_.size();
  while (left > 0) {
    const auto [floor, found] = lowest.top();
    lowest.pop();
    int32_t segment = found;
    if (next_[segment] < 0 || floor_[segment] != floor) continue;
    while (previous_[segment] >= 0 && floor_[previous_[segment]] == floor) {
      segment = previous_[segment];
    }
    while (next_[segment] < sections_ && floor_[next_[segment]] == floor) merge_with_next(segment);
    const int32_t end = next_[segment];
    const int32_t id = finder_->best_within(segment, end);
    if (id < 0) {
      int64_t wall = std::numeric_limits<int64_t>::max();
      if (previous_[segment] >= 0) wall = floor_[previous_[segment]];
      if (end < sections_) wall = std::min(wall, floor_[end]);
      floor_[segment] = wall;
      lowest.push({wall, segment});
      continue;
    }
    const Item& item = items_[id];
    finder_->close(id);
    --left;
    offsets_[id] = floor;
    split(segment, item.begin);
    split(item.begin, item.end);
    floor_[item.begin] = floor + item.size;
    height = std::max(height, floor + item.size);
    lowest.push({floor_[item.begin], item.begin});
    if (segment != item.begin) lowest.push({floor, segment});
    if (item.end != end) lowest.push({floor, item.end});
  }
  return height;
}

}  // namespace tidemark::plan
