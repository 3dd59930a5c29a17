// The number of bytes that may be written at an address.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tidemark/base/text.h"

namespace tidemark::compile {

// Blocks are allocated in multiples of 64 bytes, and only the owner of a block may write its
// padding: the slots of a stacked array are exactly one element apart. A Room is therefore made
// either as owned or as a part, and cannot be compared with a number of bytes.
class Room {
 public:
  Room() = default;
  // An allocation or a buffer of an arena, which shares no block with anything else.
  static Room owned(int64_t bytes) { return Room(granted_bytes(bytes)); }
  // A part of an array whose neighbours belong to others: a slot, a row, an argument.
  static Room part(int64_t bytes) { return Room(bytes); }
  // The bytes that can be written at both places.
  static Room at_either(Room a, Room b) { return Room(std::min(a.bytes_, b.bytes_)); }

  // Whether so many bytes can be written.
  bool holds(int64_t bytes) const { return bytes <= bytes_; }
  // Whether they fill all blocks: a smaller value would occupy blocks that it does not use.
  bool fits(int64_t bytes) const {
    return holds(bytes) && granted_bytes(bytes) == granted_bytes(bytes_);
  }

 private:
  explicit Room(int64_t bytes) : bytes_(bytes) {}
  int64_t bytes_ = 0;
};

}  // namespace tidemark::compile
