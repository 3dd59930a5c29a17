// Gradients of whole models, which bench/gradients measures and bench/peers/run compares with those
// of others. Each call makes a function of its own: nothing of it is traced or compiled yet.
#pragma once

#include "bench/prepared.h"

namespace tidemark::bench {

// A step of SGD of 784-1024-1024-1024-10, batch 1024.
Prepared mlp_step();
// The gradient of softmax cross-entropy by the logits, 2048 x 32768.
Prepared softmax_ce();
// The gradient of 4 residual 3 x 3 convolutions of 64 channels by their weights, 16 x 56 x 56.
Prepared conv_step();
// A step of SGD of a language model: 4 layers of 256, 4 heads, 256 words of 8192, batch 4.
Prepared gpt_step();
// The value and gradient of an LSTM by its weights: 128 steps, batch 32, 128 units.
Prepared lstm_grad();
// The gradient of 1,000 x tanh(c.a), 128 x 128, by a; everything is kept.
Prepared loop_grad();
// 10,000 of the same; what is kept has 16 MiB.
Prepared loop_grad_long();
inline constexpr int64_t kLongLoopSaves = int64_t{16} << 20;

}  // namespace tidemark::bench
