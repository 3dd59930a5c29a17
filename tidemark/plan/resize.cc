#include "tidemark/plan/resize.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "tidemark/base/error.h"

namespace tidemark::plan {
namespace {

// Finds direct neighbours by a sweep over time with the stack of live buffers: a birth makes the
// new buffer a neighbour of those next to it, a death makes neighbours of the two it was between.
class Stack {
 public:
  // `rank` orders buffers from below: by offset, empty ones first.
  explicit Stack(std::span<const int32_t> rank) : rank_(rank) {}

  void birth(int32_t buffer) {
    const auto at = alive_.insert({rank_[buffer], buffer}).first;
    if (at != alive_.begin()) link(std::prev(at)->second, buffer);
    if (std::next(at) != alive_.end()) link(buffer, std::next(at)->second);
  }
  void death(int32_t buffer) {
    const auto after = alive_.erase(alive_.find({rank_[buffer], buffer}));
    if (after != alive_.begin() && after != alive_.end()) {
      link(std::prev(after)->second, after->second);
    }
  }
  // With aliases, direct neighbours are not enough: take every pair.
  void birth_among_aliases(int32_t buffer, const std::set<std::pair<int32_t, int32_t>>& aliases) {
    for (const auto& [rank, other] : alive_) {
      if (aliases.contains({std::min(buffer, other), std::max(buffer, other)})) continue;
      rank < rank_[buffer] ? link(other, buffer) : link(buffer, other);
    }
    alive_.insert({rank_[buffer], buffer});
  }
  void forget(int32_t buffer) { alive_.erase({rank_[buffer], buffer}); }

  // Pairs (upper, lower), sorted, each once.
  std::vector<std::pair<int32_t, int32_t>> links() && {
    std::ranges::sort(links_);
    links_.erase(std::ranges::unique(links_).begin(), links_.end());
    return std::move(links_);
  }

 private:
  void link(int32_t lower, int32_t upper) { links_.emplace_back(upper, lower); }

  std::span<const int32_t> rank_;
  std::set<std::pair<int32_t, int32_t>> alive_;
  std::vector<std::pair<int32_t, int32_t>> links_;
};

using Links = std::vector<std::pair<int32_t, int32_t>>;

Links direct_links(const Problem& problem, std::span<const int32_t> rank) {
  std::set<std::pair<int32_t, int32_t>> aliases;
  for (const Alias& alias : problem.aliases) {
    aliases.insert({std::min(alias.first, alias.second), std::max(alias.first, alias.second)});
  }
  // (time, is a birth, buffer): deaths first, lifetimes being half-open.
  std::vector<std::pair<std::pair<int64_t, bool>, int32_t>> events;
  for (int32_t i = 0; i < std::ssize(problem.buffers); ++i) {
    events.push_back({{problem.buffers[i].lifetime.begin, true}, i});
    events.push_back({{problem.buffers[i].lifetime.end, false}, i});
  }
  std::ranges::sort(events);
  Stack stack(rank);
  for (const auto& [when, buffer] : events) {
    if (aliases.empty()) {
      when.second ? stack.birth(buffer) : stack.death(buffer);
    } else {
      when.second ? stack.birth_among_aliases(buffer, aliases) : stack.forget(buffer);
    }
  }
  return std::move(stack).links();
}

// Drops links that two others imply, except for buffers with very many links, where that would take
// longer than following them.
constexpr int32_t kMostLooked = 64;

void reduce(Links& links, size_t buffers) {
  std::vector<int32_t> starts(buffers + 1);
  for (const auto& [upper, lower] : links) ++starts[upper + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  auto is_below = [&](int32_t lower, int32_t upper) {
    const auto begin = links.begin() + starts[upper], end = links.begin() + starts[upper + 1];
    return std::binary_search(begin, end, std::pair{upper, lower});
  };
  std::vector<char> implied(links.size());
  for (size_t i = 0; i < links.size(); ++i) {
    const auto [upper, lower] = links[i];
    if (starts[upper + 1] - starts[upper] > kMostLooked) continue;
    for (int32_t j = starts[upper]; j < starts[upper + 1] && !implied[i]; ++j) {
      implied[i] = links[j].second != lower && is_below(lower, links[j].second);
    }
  }
  size_t kept = 0;
  for (size_t i = 0; i < links.size(); ++i) {
    if (!implied[i]) links[kept++] = links[i];
  }
  links.resize(kept);
}

}  // namespace

Relation below_relation(const Problem& problem, const Placement& placement) {
  TIDEMARK_CHECK(placement.offsets.size() == problem.buffers.size(), "one offset per buffer");
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].fixed_offset) {
      throw UserError(cat("below_relation: buffer ", i, " has a fixed offset and could not move"));
    }
  }
  Relation relation;
  relation.order.resize(problem.buffers.size());
  std::iota(relation.order.begin(), relation.order.end(), 0);
  std::ranges::sort(relation.order, [&](int32_t a, int32_t b) {
    const int64_t x = placement.offsets[a], y = placement.offsets[b];
    if (x != y) return x < y;
    const int64_t p = problem.buffers[a].size_bytes, q = problem.buffers[b].size_bytes;
    return p != q ? p < q : a < b;
  });
  std::vector<int32_t> rank(relation.order.size());
  for (size_t k = 0; k < rank.size(); ++k) rank[relation.order[k]] = static_cast<int32_t>(k);
  Links links = direct_links(problem, rank);
  reduce(links, rank.size());

  std::vector<int32_t> first(rank.size() + 1);
  for (const auto& [upper, lower] : links) ++first[upper + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  relation.starts.push_back(0);
  for (int32_t buffer : relation.order) {
    for (int32_t i = first[buffer]; i < first[buffer + 1]; ++i) {
      relation.below.push_back(links[i].second);
    }
    relation.starts.push_back(static_cast<int32_t>(relation.below.size()));
    relation.alignment.push_back(problem.buffers[buffer].alignment);
  }
  return relation;
}

int64_t resized(const Relation& relation, std::span<const int64_t> size_bytes,
                std::span<int64_t> offsets) {
  TIDEMARK_CHECK(size_bytes.size() == relation.order.size(), "one size per buffer");
  TIDEMARK_CHECK(offsets.size() == relation.order.size(), "one offset per buffer");
  int64_t tidemark = 0;
  for (size_t k = 0; k < relation.order.size(); ++k) {
    int64_t offset = 0;
    for (int32_t i = relation.starts[k]; i < relation.starts[k + 1]; ++i) {
      const int32_t lower = relation.below[i];
      offset = std::max(offset, offsets[lower] + size_bytes[lower]);
    }
    const int64_t alignment = relation.alignment[k];
    // Alignments are nearly always powers of two; a division would dominate the cost.
    if ((alignment & (alignment - 1)) == 0) {
      offset = (offset + alignment - 1) & -alignment;
    } else {
      offset = (offset + alignment - 1) / alignment * alignment;
    }
    const int32_t buffer = relation.order[k];
    offsets[buffer] = offset;
    if (size_bytes[buffer] > 0) tidemark = std::max(tidemark, offset + size_bytes[buffer]);
  }
  return tidemark;
}

Placement resized(const Relation& relation, std::span<const int64_t> size_bytes) {
  Placement placement;
  placement.offsets.resize(relation.order.size());
  placement.tidemark_bytes = resized(relation, size_bytes, placement.offsets);
  return placement;
}

}  // namespace tidemark::plan
