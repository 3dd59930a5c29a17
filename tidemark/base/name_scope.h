// Names for parts of a program, so that reports can say which layer bytes belong to.
//
//   td::NameScope encoder("encoder");
//   {
//     td::NameScope dense("dense");
//     h = td::matmul(x, w);            // In "encoder/dense".
//   }
//
// Scopes nest and belong to their thread. Everything that is created inside one carries the scope's
// path along with its source line: nodes of a trace, the steps and buffers they become, and the
// text of errors.
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

  // The path of the innermost scope of this thread, or an empty text.
  static std::string_view current();

 private:
  uint32_t previous_;
};

namespace detail {

// The most paths a process stores. Further ones are charged to the scope around them, so that
// numbered names (one for each training step) cannot fill the memory.
inline constexpr uint32_t kMostLayers = 1 << 16;

// The path with this number. It stays valid.
std::string_view layer_path(uint32_t layer);

}  // namespace detail
}  // namespace tidemark
