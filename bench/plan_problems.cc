#include "bench/plan_problems.h"

#include <algorithm>
#include <vector>

namespace tidemark::bench {
namespace {

// Splitmix64: the standard library's distributions differ between implementations.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
  uint64_t next() {
    uint64_t x = (state_ += 0x9e3779b97f4a7c15ULL);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  bool chance(double p) { return static_cast<double>(next() >> 11) < p * 9007199254740992.0; }

 private:
  uint64_t state_;
};

}  // namespace

plan::Problem training_problem(const TrainingShape& shape) {
  constexpr int32_t kResultsPerLayer = 12;
  Random random(shape.seed);
  // A layer gives 12 results forward and as many backward.
  const int32_t layers = std::max<int32_t>(2, shape.buffers / (2 * kResultsPerLayer));
  const int32_t stages = shape.ordinary ? 1 : 4;
  const int64_t steps = int64_t{2} * layers * kResultsPerLayer + 1;

  std::vector<std::vector<int64_t>> sizes(stages);
  for (std::vector<int64_t>& kinds : sizes) {
    const int64_t base = 64 * (64 + random.below(4096));
    for (int32_t i = 0; i < (shape.ordinary ? 3 : shape.size_kinds); ++i) {
      // Sizes within a stage differ by up to a factor of 64, evenly over the octaves.
      const int64_t octave = base << random.below(6);
      kinds.push_back(shape.ordinary ? base << i : (octave + random.below(octave)) / 64 * 64);
    }
  }
  plan::Problem problem;
  auto add = [&](int64_t begin, int64_t end, int64_t size) {
    end = std::clamp(end, begin + 1, steps);
    problem.buffers.push_back({.lifetime = {begin, end}, .size_bytes = size});
  };
  // However deep the network, the number of results kept is bounded, as by recomputing: the
  // deeper, the fewer layers keep theirs.
  const double saved = std::min(shape.saved, shape.kept / (double{kResultsPerLayer} * layers));
  for (int32_t layer = 0; layer < layers; ++layer) {
    const std::vector<int64_t>& kinds = sizes[layer * stages / layers];
    for (int32_t i = 0; i < kResultsPerLayer; ++i) {
      const int64_t size =
          random.chance(0.15) ? 64 * (1 + random.below(8)) : kinds[random.below(std::ssize(kinds))];
      const int64_t made = int64_t{layer} * kResultsPerLayer + i;
      const int64_t mirror = steps - 1 - made;  // Where the backward pass reaches this operation.
      if (random.chance(saved)) {
        add(made, mirror + random.below(4), size);
      } else if (random.chance(shape.skips / kResultsPerLayer)) {
        add(made, made + random.below(std::min<int64_t>(mirror - made, 40 * kResultsPerLayer)) + 1,
            size);
      } else if (random.chance(shape.long_temporaries)) {
        add(made, made + 1 + random.below(4 * kResultsPerLayer), size);
      } else {
        add(made, made + 2 + random.below(kResultsPerLayer), size);
      }
      if (random.chance(std::min(shape.gradients, 200.0 / layers / kResultsPerLayer))) {
        add(mirror, steps, size / 8 / 64 * 64 + 64);
      } else {
        add(mirror, mirror + 2 + random.below(kResultsPerLayer),
            kinds[random.below(std::ssize(kinds))]);
      }
    }
  }
  return problem;
}

}  // namespace tidemark::bench
