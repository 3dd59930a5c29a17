// A small model with named parts, and the gradient of its loss: what the tests of reports draw.
#pragma once

#include <string>
#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark {

struct Weights {
  std::vector<Tensor> up, down;
  Tensor head;
};

inline Weights weights(int64_t blocks, int64_t width, int64_t classes) {
  Weights made;
  for (int64_t i = 0; i < blocks; ++i) {
    made.up.push_back(random::normal({width, 4 * width}, {.stddev = 0.05, .key = random::Key(1)}));
    made.down.push_back(
        random::normal({4 * width, width}, {.stddev = 0.05, .key = random::Key(2)}));
  }
  made.head = random::normal({width, classes}, {.stddev = 0.05, .key = random::Key(3)});
  return made;
}

inline Tensor block(const Tensor& x, const Tensor& up, const Tensor& down) {
  Tensor h;
  {
    const NameScope scope("norm");
    h = (x - mean(x, -1, keepdims)) / (std(x, -1, keepdims) + 1e-5);
  }
  {
    const NameScope scope("up");
    h = gelu(matmul(h, up));
  }
  const NameScope scope("down");
  return x + matmul(h, down);
}

inline Tensor loss(const Tensor& x, const Tensor& labels, const Weights& w) {
  Tensor h = x;
  for (size_t i = 0; i < w.up.size(); ++i) {
    const NameScope scope("block " + std::to_string(i));
    h = block(h, w.up[i], w.down[i]);
  }
  const NameScope scope("head");
  const Tensor logits = matmul(h, w.head);
  const Tensor picked = sum(one_hot(labels, logits.shape()[-1]) * logits, -1);
  return mean(logsumexp(logits, -1) - picked);
}

// The gradients of all weights, for a batch.
inline auto training_step(std::string name = "training step") {
  return function(
      [](const Tensor& x, const Tensor& labels, const Weights& w) {
        return grad([&](const Weights& each) { return loss(x, labels, each); })(w);
      },
      {.name = std::move(name)});
}

}  // namespace tidemark
