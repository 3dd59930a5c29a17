// Names for parts of a program, so that reports can say which layer bytes belong to.
//
//   td::NameScope encoder("encoder");
//   {
//     td::NameScope dense("dense");
//     h = td::matmul(x, w);            // In "encoder/dense".
//   }
//
// Scopes nest and belong to their thread. What is asked for inside one carries its path with its
// line: nodes of a trace, the steps and buffers they become, and the text of errors.
#pragma once

#include <cstdint>
#include <string_view>

#include "tidemark/base/source.h"

namespace tidemark {

class NameScope {
 public:
  explicit NameScope(std::string_view name, Source at = Source::here());
  ~NameScope() { detail::charged.layer = previous_; }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

  // The path of the innermost scope of this thread, or nothing.
  static std::string_view current();

 private:
  uint32_t previous_;
};

namespace detail {

// The most paths a process keeps. Further ones are charged to the scope around them: names that
// count (one for each step of a training) cannot fill the memory.
inline constexpr uint32_t kMostLayers = 1 << 16;

// The path that a number stands for. It stays valid.
std::string_view layer_path(uint32_t layer);

}  // namespace detail
}  // namespace tidemark
