// Budget: the most bytes that a call of a function may add.
#pragma once

#include <optional>

#include "tidemark/base/text.h"

namespace tidemark {

// A number of bytes, or what the memory limit leaves.
//
//   auto step = td::function(f, {.budget = 64_MiB});
//   auto other = td::function(f, {.budget = td::Budget::available});
class Budget {
 public:
  constexpr Budget(Bytes bytes) : bytes_(bytes) {}
  // What td::memory::limit() leaves beside the bytes in use when a plan is made.
  static const Budget available;

  // The bytes that it is now.
  Bytes bytes() const;
  bool is_available() const { return !bytes_.has_value(); }

 private:
  constexpr Budget() = default;
  std::optional<Bytes> bytes_;
};

}  // namespace tidemark
