#include "tidemark/fit/profile.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tidemark::fit {

Profile::Profile(size_t slots)
    : bytes_(slots), leaves_(static_cast<int32_t>(std::bit_ceil(std::max<size_t>(1, slots)))) {
  // Leaves that stand for no slot are neither the least nor the most.
  constexpr int64_t far = std::numeric_limits<int64_t>::max() / 4;
  nodes_.assign(2 * static_cast<size_t>(leaves_), {far, -far});
  const RangeChange none{0, static_cast<int32_t>(slots), 0};
  apply({&none, 1});
}

int64_t Profile::most(int32_t begin, int32_t end) const {
  int64_t most = bytes_[static_cast<size_t>(begin)];
  auto from = static_cast<size_t>(begin + leaves_), to = static_cast<size_t>(end + leaves_);
  for (; from < to; from /= 2, to /= 2) {
    if (from % 2 == 1) most = std::max(most, nodes_[from++].most);
    if (to % 2 == 1) most = std::max(most, nodes_[--to].most);
  }
  return most;
}

int64_t Profile::relief(const RangeChange& change, int64_t limit) const {
  return relief_below(1, 0, leaves_, change, limit);
}

int64_t Profile::relief_below(size_t number, int32_t first, int32_t count,
                              const RangeChange& change, int64_t limit) const {
  const int32_t last = first + count;
  if (change.end <= first || last <= change.begin) return 0;
  const auto [least, most] = nodes_[number];
  if (std::max(most, most + change.bytes) <= limit) return 0;
  if (change.begin <= first && last <= change.end) {
    if (std::min(least, least + change.bytes) >= limit) return -change.bytes * count;
    if (count == 1) return std::max(most, limit) - std::max(most + change.bytes, limit);
  }
  const int32_t half = count / 2;
  return relief_below(2 * number, first, half, change, limit) +
         relief_below(2 * number + 1, first + half, half, change, limit);
}

void Profile::apply(std::span<const RangeChange> changes) {
  int32_t begin = leaves_, end = 0;
  for (const RangeChange& change : changes) {
    for (int32_t slot = change.begin; slot < change.end; ++slot)
      bytes_[static_cast<size_t>(slot)] += change.bytes;
    begin = std::min(begin, change.begin);
    end = std::max(end, change.end);
  }
  if (begin >= end) return;
  auto from = static_cast<size_t>(begin + leaves_), to = static_cast<size_t>(end - 1 + leaves_);
  for (size_t node = from; node <= to; ++node) {
    const int64_t now = bytes_[node - static_cast<size_t>(leaves_)];
    nodes_[node] = {now, now};
  }
  while (from > 1) {
    from /= 2;
    to /= 2;
    for (size_t node = from; node <= to; ++node) {
      const Node &a = nodes_[2 * node], &b = nodes_[2 * node + 1];
      nodes_[node] = {std::min(a.least, b.least), std::max(a.most, b.most)};
    }
  }
}

void take_apart(std::span<const RangeChange> changes, std::vector<RangeChange>& parts) {
  parts.clear();
  for (const RangeChange& change : changes) {
    parts.push_back({change.begin, 0, change.bytes});
    parts.push_back({change.end, 0, -change.bytes});
  }
  std::sort(parts.begin(), parts.end(),
            [](const RangeChange& a, const RangeChange& b) { return a.begin < b.begin; });
  size_t count = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < parts.size();) {
    const int32_t begin = parts[i].begin;
    for (; i < parts.size() && parts[i].begin == begin; ++i) bytes += parts[i].bytes;
    if (bytes != 0) parts[count++] = {begin, parts[i].begin, bytes};
  }
  parts.resize(count);
}

}  // namespace tidemark::fit
