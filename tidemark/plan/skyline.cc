#include "tidemark/plan/skyline.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace tidemark::plan {

// Finds the unplaced item of highest priority within a range of sections: a two-dimensional tree
// over (begin, end) whose nodes know the best unplaced item below them. Items are known by their
// rank, 0 being the best, so that two are compared by one number.
class Skyline::Finder {
 public:
  explicit Finder(std::span<const Item> items)
      : order_(items.size()), ranks_(items.size()), place_by_rank_(items.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    place_of_.resize(items.size());
    leaf_of_.resize(items.size());
    if (!items.empty()) build(items, {0, static_cast<int32_t>(items.size())}, 0, -1);
    for (size_t place = 0; place < order_.size(); ++place) {
      const Item& item = items[order_[place]];
      place_of_[order_[place]] = static_cast<int32_t>(place);
      lifetimes_.push_back({item.begin, item.end});
    }
  }

  // Ties go to the lower index, so that the answer does not depend on the shape of the tree.
  void reset(std::span<const double> priority) {
    by_rank_.resize(priority.size());
    std::iota(by_rank_.begin(), by_rank_.end(), 0);
    std::ranges::sort(by_rank_, [&](int32_t a, int32_t b) {
      return priority[a] != priority[b] ? priority[a] > priority[b] : a < b;
    });
    for (size_t rank = 0; rank < by_rank_.size(); ++rank) {
      place_by_rank_[rank] = place_of_[by_rank_[rank]];
      ranks_[place_by_rank_[rank]] = static_cast<int32_t>(rank);
    }
    for (size_t node = nodes_.size(); node-- > 0;) update(nodes_[node]);
  }

  // The best item within [begin, end), or -1.
  int32_t best_within(int32_t begin, int32_t end) const {
    int32_t best = kNone;
    if (!nodes_.empty()) descend(nodes_[0], {begin, end}, best);
    return best == kNone ? -1 : by_rank_[best];
  }

  void close(int32_t item) {
    const int32_t place = place_of_[item], rank = ranks_[place];
    ranks_[place] = kNone;
    for (int32_t node = leaf_of_[item]; node >= 0; node = nodes_[node].parent) {
      Node& at = nodes_[node];
      if (at.best != rank) break;
      update(at);
    }
  }

 private:
  static constexpr int32_t kLeafSize = 8;
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

  struct Range {
    int32_t begin, end;
  };
  struct Node {
    int32_t max_begin, min_end;
    int32_t first, last;  // Places of `order_` below.
    int32_t parent, left, right;
    int32_t best;  // The rank of the best open one below, or kNone.
  };

  int32_t build(std::span<const Item> items, Range places, int axis, int32_t parent) {
    const auto index = static_cast<int32_t>(nodes_.size());
    const auto [first, last] = places;
    Node node{.max_begin = -1,
              .min_end = std::numeric_limits<int32_t>::max(),
              .first = first,
              .last = last,
              .parent = parent,
              .left = -1,
              .right = -1,
              .best = kNone};
    for (int32_t i = first; i < last; ++i) {
      node.max_begin = std::max(node.max_begin, items[order_[i]].begin);
      node.min_end = std::min(node.min_end, items[order_[i]].end);
    }
    nodes_.push_back(node);
    if (last - first <= kLeafSize) {
      for (int32_t i = first; i < last; ++i) leaf_of_[order_[i]] = index;
      return index;
    }
    const int32_t middle = (first + last) / 2;
    std::nth_element(order_.begin() + first, order_.begin() + middle, order_.begin() + last,
                     [&](int32_t a, int32_t b) {
                       const int32_t x = axis == 0 ? items[a].begin : items[a].end;
                       const int32_t y = axis == 0 ? items[b].begin : items[b].end;
                       return x != y ? x < y : a < b;
                     });
    const int32_t left = build(items, {first, middle}, 1 - axis, index);
    const int32_t right = build(items, {middle, last}, 1 - axis, index);
    nodes_[index].left = left;
    nodes_[index].right = right;
    return index;
  }

  void update(Node& node) {
    node.best = node.left < 0
                    ? *std::min_element(ranks_.begin() + node.first, ranks_.begin() + node.last)
                    : std::min(nodes_[node.left].best, nodes_[node.right].best);
  }

  bool is_within(int32_t place, Range range) const {
    return lifetimes_[place].begin >= range.begin && lifetimes_[place].end <= range.end;
  }

  void descend(const Node& node, Range range, int32_t& best) const {
    if (node.best >= best || node.max_begin < range.begin || node.min_end > range.end) return;
    if (is_within(place_by_rank_[node.best], range)) {
      best = node.best;
      return;
    }
    if (node.left < 0) {
      for (int32_t place = node.first; place < node.last; ++place)
        if (ranks_[place] < best && is_within(place, range)) best = ranks_[place];
      return;
    }
    const Node &left = nodes_[node.left], &right = nodes_[node.right];
    const bool left_first = left.best < right.best;
    descend(left_first ? left : right, range, best);
    descend(left_first ? right : left, range, best);
  }

  std::vector<int32_t> order_, place_of_;  // The item at each place of the tree, and the inverse.
  std::vector<int32_t> leaf_of_;           // By item.
  std::vector<Range> lifetimes_;           // By place.
  std::vector<int32_t> ranks_;             // By place; kNone where the item is placed already.
  std::vector<int32_t> by_rank_, place_by_rank_;
  std::vector<Node> nodes_;
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
