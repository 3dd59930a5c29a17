// The modes of a thread: training or evaluation, on which some layers depend (dropout, batch
// statistics), and the dtype that parameters are read as.
//
// They belong to the thread and are part of a function's key: a function that is called in several
// modes has a trace for each.
#pragma once

#include <optional>

#include "tidemark/types/dtype.h"

namespace tidemark {

// Mixed precision while it lives: a trainable f32 Variable is read as `dtype`, bf16 or f16, and a
// product of that dtype and f32 is of that dtype. So activations take half the bytes, while
// Variables, their gradients and their updates stay f32. With f32 it is off:
//
//   td::Autocast on(td::bf16);
//   td::Tensor y = model(x);
class Autocast {
 public:
  explicit Autocast(DType dtype, Source at = Source::here());
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  DType previous_;
};
// The dtype of the innermost Autocast on this thread; f32 if there is none.
DType autocast();

namespace nn {

// Evaluation unless a Training is alive on this thread.
bool is_training();

// Training mode while it lives; evaluation mode with `false`:
//
//   td::nn::Training on;
//   step(batch);
class Training {
 public:
  explicit Training(bool on = true);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

 private:
  bool previous_;
};

}  // namespace nn

namespace detail {

// All modes of a thread, to be set elsewhere or later.
struct Mode {
  bool training = false;
  DType autocast = DType::f32;
  static Mode now();
  bool operator==(const Mode&) const = default;
};
class ModeScope {
 public:
  explicit ModeScope(Mode mode) : training_(mode.training), autocast_(mode.autocast) {}

 private:
  nn::Training training_;
  Autocast autocast_;
};

// The dtype that trainable Variables of this dtype are read as.
inline DType dtype_read(DType variable) { return variable == DType::f32 ? autocast() : variable; }
// The dtype of a product of these.
DType product_dtype(DType a, DType b);

}  // namespace detail
}  // namespace tidemark
