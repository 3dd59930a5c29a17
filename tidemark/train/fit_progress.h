// The progress display of fit: a bar on a terminal, else a line for each epoch. Internal to train/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tidemark/train/history.h"

namespace tidemark::nn {

// The content of the bar.
struct BarState {
  int64_t epoch = 1, epochs = 1;
  int64_t batches = 0;
  std::optional<int64_t> of_batches = {};  // If the number of batches is known.
  int64_t examples = 0;
  double seconds = 0;
  double loss = 0;
  Bytes now = {}, peak = {};
};
// At most `columns` long: "epoch 2/10 [=====>      ] 120/300, 3100/s, loss 0.431, 0:12 left, 34.1
// MiB, peak 51.2 MiB"
std::string bar_text(const BarState& state, int columns);

class ProgressDisplay {
 public:
  explicit ProgressDisplay(Progress progress);
  // Called after each batch. Draws at most ten times a second.
  void batch(const BarState& state);
  void epoch(const Epoch& epoch);

 private:
  Progress progress_;
  double drawn_at_ = -1;
};

}  // namespace tidemark::nn
