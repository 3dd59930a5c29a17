// Bytes in use by slot, with fast questions about ranges of slots: a tree over them knows the least
// and the most below each of its nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidemark::fit {

// Bytes that are added to the slots from `begin` up to `end`.
struct RangeChange {
  int32_t begin = 0, end = 0;
  int64_t bytes = 0;
};

class Profile {
 public:
  explicit Profile(size_t slots);

  const std::vector<int64_t>& bytes() const { return bytes_; }
  // The most of all slots, or of a range that is not empty.
  int64_t most() const { return bytes_.empty() ? 0 : nodes_[1].most; }
  int64_t most(int32_t begin, int32_t end) const;
  // How many bytes above the limit go if the change is made, summed over its slots; less than 0 if
  // more come.
  int64_t relief(const RangeChange& change, int64_t limit) const;
  void apply(std::span<const RangeChange> changes);

 private:
  struct Node {
    int64_t least = 0, most = 0;
  };
  int64_t relief_below(size_t node, int32_t first, int32_t count, const RangeChange& change,
                       int64_t limit) const;

  std::vector<int64_t> bytes_;
  int32_t leaves_ = 1;       // A power of two, at least the number of slots.
  std::vector<Node> nodes_;  // The root is 1, and below n are 2n and 2n + 1.
};

// Changes that do not overlap, in order, and together do what the given ones do. Replaces `parts`.
void take_apart(std::span<const RangeChange> changes, std::vector<RangeChange>& parts);

}  // namespace tidemark::fit
