// What the planner's tests share: random problems, and the slow obvious answer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tidemark/plan/plan.h"

namespace tidemark::plan {

// Splitmix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  int64_t below(int64_t n) {
    uint64_t x = (state_ += 0x9e3779b97f4a7c15ULL);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<int64_t>((x ^ (x >> 31)) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t state_;
};

struct RandomShape {
  int64_t buffers = 8;
  int64_t steps = 8;
  int64_t longest = 99;  // Lifetimes have at most this many steps.
  int64_t largest = 9;
  int64_t unit = 1;         // Sizes are multiples of this.
  bool alignments = false;  // Mixed, otherwise all 1.
};

inline Problem random_problem(Random& random, const RandomShape& shape) {
  Problem problem;
  for (int64_t i = 0; i < shape.buffers; ++i) {
    const int64_t begin = random.below(shape.steps);
    const int64_t end = begin + 1 + random.below(std::min(shape.steps - begin, shape.longest));
    problem.buffers.push_back({.lifetime = {begin, end},
                               .size_bytes = shape.unit * (1 + random.below(shape.largest)),
                               .alignment = shape.alignments ? int64_t{1} << random.below(4) : 1});
  }
  return problem;
}

// A problem in which as many bytes as possible are alive at every step: few random buffers, and
// more that fill up what is missing to the load. Those whose load cannot be reached are rare among
// random problems and common among these.
inline Problem tight_problem(Random& random, int64_t buffers, int64_t steps, int64_t largest) {
  for (;;) {
    Problem problem = random_problem(
        random, {.buffers = 3 + random.below(buffers - 4), .steps = steps, .largest = largest});
    std::vector<int64_t> load(steps + 1);
    for (const Buffer& buffer : problem.buffers) {
      for (int64_t t = buffer.lifetime.begin; t < buffer.lifetime.end; ++t) {
        load[t] += buffer.size_bytes;
      }
    }
    const int64_t most = *std::max_element(load.begin(), load.end());
    load[steps] = most;
    for (int64_t begin = 0; begin < steps;) {
      int64_t end = begin + 1;
      while (load[end] == load[begin] && end < steps) ++end;
      if (load[begin] < most) {
        problem.buffers.push_back(
            {.lifetime = {begin, end}, .size_bytes = most - load[begin], .alignment = 1});
      }
      begin = end;
    }
    if (std::ssize(problem.buffers) <= buffers) return problem;
  }
}

// The least tidemark, by trying every order of putting each buffer at its lowest free offset.
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem), at_(problem.buffers.size(), -1) {
    for (size_t i = 0; i < at_.size(); ++i) {
      if (problem.buffers[i].fixed_offset) at_[i] = *problem.buffers[i].fixed_offset;
    }
  }
  int64_t least() {
    // The load is where trying can end.
    for (const Buffer& at : problem_.buffers) {
      int64_t sum = 0;
      for (const Buffer& buffer : problem_.buffers) {
        const bool alive =
            buffer.lifetime.begin <= at.lifetime.begin && at.lifetime.begin < buffer.lifetime.end;
        if (alive) sum += buffer.size_bytes;
      }
      if (problem_.aliases.empty()) enough_ = std::max(enough_, sum);
    }
    go(0);
    return best_;
  }

 private:
  bool apart(size_t a, size_t b) const {
    const Buffer &x = problem_.buffers[a], &y = problem_.buffers[b];
    if (x.lifetime.end <= y.lifetime.begin || y.lifetime.end <= x.lifetime.begin) return true;
    return std::ranges::any_of(problem_.aliases, [&](const Alias& alias) {
      return std::minmax<size_t>(alias.first, alias.second) == std::minmax(a, b);
    });
  }
  int64_t lowest(size_t i) const {
    const Buffer& buffer = problem_.buffers[i];
    for (int64_t offset = 0;; offset += buffer.alignment) {
      bool free = true;
      for (size_t j = 0; j < at_.size() && free; ++j) {
        free = j == i || at_[j] < 0 || apart(i, j) || at_[j] >= offset + buffer.size_bytes ||
               at_[j] + problem_.buffers[j].size_bytes <= offset;
      }
      if (free) return offset;
    }
  }
  void go(int64_t height) {
    if (height >= best_ || best_ <= enough_) return;
    bool complete = true;
    for (size_t i = 0; i < at_.size(); ++i) {
      if (at_[i] >= 0) continue;
      complete = false;
      at_[i] = lowest(i);
      go(std::max(height, at_[i] + problem_.buffers[i].size_bytes));
      at_[i] = -1;
    }
    if (!complete) return;
    for (size_t i = 0; i < at_.size(); ++i) {
      height = std::max(height, at_[i] + problem_.buffers[i].size_bytes);
    }
    best_ = std::min(best_, height);
  }

  const Problem& problem_;
  std::vector<int64_t> at_;
  int64_t best_ = std::numeric_limits<int64_t>::max();
  int64_t enough_ = 0;
};

}  // namespace tidemark::plan
