// What a function would be without one of its td::recompute. Internal to the library.
#pragma once

#include <utility>

#include "tidemark/base/source.h"

namespace tidemark::detail {

// In its life, functions that td::recompute at this line made are traced as what they are made of.
class WithoutRecompute {
 public:
  explicit WithoutRecompute(Source at) : at_(at), outer_(std::exchange(current_, this)) {}
  ~WithoutRecompute() { current_ = outer_; }
  WithoutRecompute(const WithoutRecompute&) = delete;
  WithoutRecompute& operator=(const WithoutRecompute&) = delete;
  static bool is_left_out(Source at) {
    return current_ != nullptr && current_->at_.text() == at.text();
  }

 private:
  static constinit thread_local const WithoutRecompute* current_;
  Source at_;
  const WithoutRecompute* outer_;
};

}  // namespace tidemark::detail
