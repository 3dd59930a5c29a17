// Training or evaluation mode, on which some layers depend (dropout, batch statistics).
//
// The mode belongs to the thread and is part of a function's key: a function that is called in both
// modes has a trace for each.
#pragma once

namespace tidemark::nn {

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

}  // namespace tidemark::nn
