// What an application of an op says besides its operands: axes, a shape, a dtype.
//
// Values stand in one flat list of words in the order of the op's schema, so that attributes are
// cheap to copy, compare and hash. A list is its length, then its items.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "tidemark/types/dtype.h"
#include "tidemark/types/small_vec.h"

namespace tidemark {

// `text` is held as the list of its bytes; `size` is one that may be open, as those in lists may.
enum class AttrKind : uint8_t { integer, integers, boolean, dtype, number, text, size };

struct AttrDef {
  std::string_view name;
  AttrKind kind = AttrKind::integer;
};

class Attrs {
 public:
  Attrs() = default;

  Attrs& add(int64_t value) {
    words_.push_back(value);
    return *this;
  }
  Attrs& add(bool value) { return add(static_cast<int64_t>(value)); }
  Attrs& add(DType value) { return add(static_cast<int64_t>(value)); }
  Attrs& add(double value) { return add(std::bit_cast<int64_t>(value)); }
  Attrs& add(std::span<const int64_t> list) {
    add(static_cast<int64_t>(list.size()));
    for (const int64_t item : list) words_.push_back(item);
    return *this;
  }

  // Reading goes in the order of writing.
  class Reader {
   public:
    explicit Reader(const Attrs& attrs) : words_(attrs.words_) {}
    int64_t integer() { return words_[at_++]; }
    bool boolean() { return integer() != 0; }
    DType dtype() { return static_cast<DType>(integer()); }
    double number() { return std::bit_cast<double>(integer()); }
    std::span<const int64_t> integers() {
      const auto count = static_cast<size_t>(integer());
      const std::span<const int64_t> list = words_.subspan(at_, count);
      at_ += count;
      return list;
    }

   private:
    std::span<const int64_t> words_;
    size_t at_ = 0;
  };
  Reader read() const { return Reader(*this); }
  // All of it, for hashing.
  std::span<const int64_t> words() const { return words_; }

  // Replaces every size, and every item of every list of integers.
  template <class F>
  void change_sizes(std::span<const AttrDef> defs, F item) {
    size_t at = 0;
    for (const AttrDef& def : defs) {
      if (at == words_.size()) return;
      if (def.kind == AttrKind::size) words_[at] = item(words_[at]);
      const int64_t value = words_[at++];
      if (def.kind != AttrKind::integers && def.kind != AttrKind::text) continue;
      for (const size_t end = at + static_cast<size_t>(value); at < end; ++at)
        if (def.kind == AttrKind::integers) words_[at] = item(words_[at]);
    }
  }

  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  SmallVec<int64_t, 10> words_;
};

}  // namespace tidemark
