// How many bytes may be written behind an address.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tidemark/base/text.h"

namespace tidemark::compile {

// Blocks are granted in multiples of 64 bytes, and only who owns a block may write its last bytes:
// the slots of a stacked array are exactly as far apart as an element is long. So a Room is made
// by saying which of the two it is, and cannot be compared with a number of bytes.
class Room {
 public:
  Room() = default;
  // Of an allocation or a buffer of an arena: nobody else has a byte of its blocks.
  static Room owned(int64_t bytes) { return Room(granted_bytes(bytes)); }
  // Of something inside an array that others have parts of: a slot, a row, an argument.
  static Room part(int64_t bytes) { return Room(bytes); }
  // What can be written at either of two places.
  static Room at_either(Room a, Room b) { return Room(std::min(a.bytes_, b.bytes_)); }

  // Whether these bytes can be written here.
  bool holds(int64_t bytes) const { return bytes <= bytes_; }
  // Whether they are worth it: what needs fewer blocks would keep some that it has no use for.
  bool fits(int64_t bytes) const {
    return holds(bytes) && granted_bytes(bytes) == granted_bytes(bytes_);
  }

 private:
  explicit Room(int64_t bytes) : bytes_(bytes) {}
  int64_t bytes_ = 0;
};

}  // namespace tidemark::compile
