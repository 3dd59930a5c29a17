// Local search: packs repeatedly, each time with the buffers that ended too high moved forward.
//
// A buffer that ends above the goal was placed too late. Its priority is raised and everything is
// packed again; the result is kept if it is no worse. A little noise around the peak keeps the
// search from cycling.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/plan/model.h"
#include "tidemark/plan/search_limit.h"
#include "tidemark/plan/skyline.h"

namespace tidemark::plan {

struct Packing {
  std::vector<int64_t> offsets;  // Per item, in units.
  int64_t height = 0;
};

class Improver {
 public:
  Improver(const Model& model, Skyline& skyline);

  // Packs by each of a few plain priorities; stops early at `goal`.
  void start(int64_t goal, SearchLimit& limit);
  // Up to `rounds` attempts at something lower; stops at `goal`.
  void improve(int64_t goal, int64_t rounds, SearchLimit& limit);

  const Packing& best() const { return best_; }

 private:
  int64_t pack(const std::vector<double>& priority, SearchLimit& limit);
  double random();
  void nudge(int64_t goal);

  const Model& model_;
  Skyline& skyline_;
  Packing best_;
  std::vector<double> best_priority_;
  // The current state of the search; it may be a little worse than the best.
  std::vector<double> priority_, trial_;
  std::vector<int64_t> offsets_;
  int64_t height_ = 0;
  int64_t stalled_ = 0;
  uint64_t random_ = 0x9e3779b97f4a7c15ULL;
  std::vector<char> crowded_;  // Per section: something above the goal begins or ends near.
};

}  // namespace tidemark::plan
