// datasets [seconds per row]: passes over 60,000 rows of 784 floats and their labels, against plain
// copies of the same rows in the same order.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <vector>

#include "bench/bars.h"
#include "bench/interleave.h"
#include "tidemark/tidemark.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

constexpr int64_t kRows = 60'000, kWidth = 784, kBatch = 64;

struct Rows {
  td::Tensor images = td::random::uniform({kRows, kWidth}, {.key = td::random::Key(1)});
  td::Tensor labels = td::arange(kRows);
  td::data::Dataset<std::tuple<td::Tensor, td::Tensor>> all =
      td::data::from_tensor_slices(std::tuple{images, labels});
};

// In the order that the shuffle has: labels are row numbers.
std::vector<int64_t> order_of(const Rows& rows) {
  std::vector<int64_t> order;
  for (const auto& [image, label] : rows.all.shuffle({.seed = 1}).batch(kBatch))
    for (const int64_t row : label.to_vector<int64_t>()) order.push_back(row);
  return order;
}

// One batch after another in the same place.
void copy_rows(const Rows& rows, const std::vector<int64_t>& order, std::vector<float>& batch) {
  const float* images = rows.images.span<const float>().data();
  for (size_t i = 0; i < order.size(); ++i)
    std::memcpy(batch.data() + i % kBatch * kWidth, images + order[i] * kWidth,
                kWidth * sizeof(float));
}

// What is left in the place of the last batch.
bool same_rows(const std::vector<float>& copied, const td::Tensor& batch) {
  const auto given = batch.span<const float>();
  return std::memcmp(copied.data(), given.data(), given.size_bytes()) == 0;
}

Bar gathered(const Rows& rows, double budget_s) {
  const std::vector<int64_t> order = order_of(rows);
  std::vector<float> batch(kBatch * kWidth);
  td::Tensor last;
  const auto batches = rows.all.shuffle({.seed = 1, .reshuffle = false}).batch(kBatch);
  std::vector<Candidate> candidates = {{"memcpy", [&] { copy_rows(rows, order, batch); }},
                                       {"dataset", [&] {
                                          for (const auto& [image, label] : batches)
                                            if (label.shape()[0] < kBatch) last = image;
                                        }}};
  interleave(candidates, budget_s, false);
  if (!same_rows(batch, last)) return {"the dataset gives other rows", 0, 1};
  Bar bar = at_most("shuffled batches, times of memcpy",
                    candidates[1].best() / candidates[0].best(), 1.5);
  char note[64];
  std::snprintf(note, sizeof(note), "%.1f ms a pass", candidates[1].best() * 1e3);
  bar.note = note;
  return bar;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  using namespace tidemark::bench;
  const double budget_s = argc > 1 ? std::atof(argv[1]) : 1;
  if (budget_s <= 0) {
    std::fprintf(stderr, "usage: datasets [seconds per row, 1 by default]\n");
    return 2;
  }
  return print_all({gathered(Rows(), budget_s)}) == 0 ? 0 : 1;
}
