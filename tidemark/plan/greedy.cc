#include "tidemark/plan/greedy.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "tidemark/base/error.h"

namespace tidemark::plan {
namespace {

int64_t align_up(int64_t offset, int64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

template <class Key>
std::vector<int32_t> sorted_by(const Model& model, Key key) {
  std::vector<int32_t> order(model.items.size());
  std::iota(order.begin(), order.end(), 0);
  // Sorted by key, then lifetime and size, then index, so that permuting the input can only permute
  // equal buffers.
  std::ranges::sort(order, [&](int32_t a, int32_t b) {
    const Item &x = model.items[a], &y = model.items[b];
    if (key(x) != key(y)) return key(x) > key(y);
    if (x.begin != y.begin) return x.begin < y.begin;
    if (x.end != y.end) return x.end > y.end;
    return x.size != y.size ? x.size > y.size : a < b;
  });
  return order;
}

}  // namespace

std::vector<int32_t> order_by_size(const Model& model) {
  return sorted_by(model, [](const Item& item) { return item.size; });
}
std::vector<int32_t> order_by_width(const Model& model) {
  return sorted_by(model, [](const Item& item) { return item.end - item.begin; });
}
std::vector<int32_t> order_by_area(const Model& model) {
  return sorted_by(model, [](const Item& item) {
    return static_cast<double>(item.size) * (item.end - item.begin);
  });
}

Greedy::Greedy(const Problem& problem, const Model& model)
    : problem_(problem),
      model_(model),
      offsets_(problem.buffers.size()),
      by_begin_(model.items.size()),
      rank_(model.items.size()) {
  const auto count = static_cast<int32_t>(model.items.size());
  std::iota(by_begin_.begin(), by_begin_.end(), 0);
  std::ranges::sort(by_begin_, {}, [&](int32_t i) { return std::pair(model.items[i].begin, i); });
  for (int32_t i = 0; i < count; ++i) rank_[by_begin_[i]] = i;
  leaves_ = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(count, 1))));
  latest_end_.resize(2 * static_cast<size_t>(leaves_));
  if (problem.aliases.empty()) return;
  std::vector<int32_t> item_of(problem.buffers.size(), -1);
  for (int32_t i = 0; i < count; ++i) item_of[model.buffers[i]] = i;
  partners_.resize(model.items.size());
  for (const Alias& alias : problem.aliases) {
    const int32_t a = item_of[alias.first], b = item_of[alias.second];
    if (a < 0 || b < 0 || a == b) continue;
    partners_[a].push_back(b);
    partners_[b].push_back(a);
  }
  for (std::vector<int32_t>& list : partners_) std::ranges::sort(list);
}

bool Greedy::may_share(int32_t a, int32_t b) const {
  return !partners_.empty() && std::ranges::binary_search(partners_[a], b);
}

void Greedy::put(int32_t item, int64_t offset) {
  offsets_[model_.buffers[item]] = offset;
  const int32_t end = model_.items[item].end;
  for (int32_t node = leaves_ + rank_[item]; node > 0 && latest_end_[node] < end; node /= 2) {
    latest_end_[node] = end;
  }
}

// Fills `taken_` with the placed items that are alive together with `item` and may not share bytes
// with it.
void Greedy::collect(int32_t item) {
  taken_.clear();
  visit(1, item);
  std::ranges::sort(taken_, {}, &PlacedItem::begin);
}

void Greedy::visit(int32_t node, int32_t item) {
  const Item& mine = model_.items[item];
  if (latest_end_[node] <= mine.begin) return;
  if (node < leaves_) {
    visit(2 * node, item);
    // The right half begins no earlier than its first leaf does.
    const int levels = std::bit_width(static_cast<uint32_t>(leaves_)) -
                       std::bit_width(static_cast<uint32_t>(2 * node + 1));
    const int32_t first = ((2 * node + 1) << levels) - leaves_;
    if (first < static_cast<int32_t>(by_begin_.size()) &&
        model_.items[by_begin_[first]].begin < mine.end) {
      visit(2 * node + 1, item);
    }
    return;
  }
  const int32_t other = by_begin_[node - leaves_];
  const Item& theirs = model_.items[other];
  if (theirs.begin >= mine.end || may_share(item, other)) return;
  const int32_t buffer = model_.buffers[other];
  const int64_t offset = offsets_[buffer];
  taken_.push_back({offset, offset + problem_.buffers[buffer].size_bytes, other});
}

int64_t Greedy::choose(int32_t item, Fit fit) const {
  const Buffer& buffer = problem_.buffers[model_.buffers[item]];
  int64_t top = 0, best = -1, best_gap = std::numeric_limits<int64_t>::max();
  for (const PlacedItem& taken : taken_) {
    const int64_t offset = align_up(top, buffer.alignment);
    if (taken.begin - offset >= buffer.size_bytes) {
      if (fit == Fit::lowest) return offset;
      if (taken.begin - top < best_gap) {
        best_gap = taken.begin - top;
        best = offset;
      }
    }
    top = std::max(top, taken.end);
  }
  return best >= 0 ? best : align_up(top, buffer.alignment);
}

int64_t Greedy::place(std::span<const int32_t> order, Fit fit) {
  std::ranges::fill(latest_end_, -1);
  std::ranges::fill(offsets_, 0);
  for (size_t i = 0; i < problem_.buffers.size(); ++i) {
    if (problem_.buffers[i].fixed_offset) offsets_[i] = *problem_.buffers[i].fixed_offset;
  }
  auto fixed = [&](int32_t item) -> const std::optional<int64_t>& {
    return problem_.buffers[model_.buffers[item]].fixed_offset;
  };
  if (!model_.plain) {
    for (int32_t item : order) {
      if (fixed(item)) put(item, *fixed(item));
    }
  }
  for (int32_t item : order) {
    if (fixed(item)) continue;
    collect(item);
    put(item, choose(item, fit));
  }
  return tidemark_of(problem_, offsets_);
}

void Greedy::check_fixed() {
  std::ranges::fill(latest_end_, -1);
  for (int32_t item = 0; item < static_cast<int32_t>(model_.items.size()); ++item) {
    const int32_t index = model_.buffers[item];
    const Buffer& buffer = problem_.buffers[index];
    if (!buffer.fixed_offset) continue;
    const int64_t begin = *buffer.fixed_offset, end = begin + buffer.size_bytes;
    collect(item);
    for (const PlacedItem& taken : taken_) {
      if (taken.begin >= end || begin >= taken.end) continue;
      throw UserError(cat("place: buffers ", model_.buffers[taken.item], " and ", index,
                          " are fixed at offsets ", taken.begin, " and ", begin,
                          ", where they overlap while both are alive"));
    }
    put(item, begin);
  }
}

}  // namespace tidemark::plan
