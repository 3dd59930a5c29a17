// What an application of an op says besides its operands: axes, a shape, a dtype.
//
// Values stand in the order of the op's schema, in two flat lists, so that attributes are cheap to
// copy, compare and hash: words, and sizes, which may be open and which nobody can read as a plain
// number by mistake. A list is its length, then its items.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "tidemark/base/error.h"
#include "tidemark/types/dtype.h"
#include "tidemark/types/shape.h"
#include "tidemark/types/small_vec.h"

namespace tidemark {

// `text` is held as the list of its bytes. Whatever may be open is a `size` or among `sizes`.
enum class AttrKind : uint8_t { integer, integers, boolean, dtype, number, text, size, sizes };

struct AttrDef {
  std::string_view name;
  AttrKind kind = AttrKind::integer;

  constexpr bool is_list() const {
    return kind == AttrKind::integers || kind == AttrKind::sizes || kind == AttrKind::text;
  }
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
  Attrs& add(Dim size) {
    sizes_.push_back(size);
    return *this;
  }
  Attrs& add(std::span<const int64_t> list) {
    add(static_cast<int64_t>(list.size()));
    for (const int64_t item : list) words_.push_back(item);
    return *this;
  }
  Attrs& add(std::span<const Dim> list) {
    add(static_cast<int64_t>(list.size()));
    for (const Dim item : list) sizes_.push_back(item);
    return *this;
  }
  Attrs& append(const Attrs& other) {
    for (const int64_t word : other.words_) words_.push_back(word);
    for (const Dim size : other.sizes_) sizes_.push_back(size);
    return *this;
  }

  // Reading goes in the order of writing.
  class Reader {
   public:
    explicit Reader(const Attrs& attrs) : words_(attrs.words_), sizes_(attrs.sizes_) {}
    int64_t integer() { return words_[at_++]; }
    bool boolean() { return integer() != 0; }
    DType dtype() { return static_cast<DType>(integer()); }
    double number() { return std::bit_cast<double>(integer()); }
    Dim size() {
      check_has_sizes(1);
      return sizes_[size_at_++];
    }
    std::span<const int64_t> integers() {
      const auto count = static_cast<size_t>(integer());
      const std::span<const int64_t> list = words_.subspan(at_, count);
      at_ += count;
      return list;
    }
    std::span<const Dim> sizes() {
      const auto count = static_cast<size_t>(integer());
      check_has_sizes(count);
      const std::span<const Dim> list = sizes_.subspan(size_at_, count);
      size_at_ += count;
      return list;
    }
    // Whether the attributes that follow were left out, as the last ones may be.
    bool ended() const { return at_ == words_.size() && size_at_ == sizes_.size(); }

   private:
    void check_has_sizes(size_t count) const {
      TIDEMARK_CHECK(size_at_ + count <= sizes_.size(), "an attribute holds numbers, not sizes");
    }
    std::span<const int64_t> words_;
    std::span<const Dim> sizes_;
    size_t at_ = 0, size_at_ = 0;
  };
  Reader read() const { return Reader(*this); }
  // All of it, for hashing.
  std::span<const int64_t> words() const { return words_; }
  std::span<const Dim> sizes() const { return sizes_; }

  // Visits each attribute in order with its items: a span of words, or of sizes. The last ones may
  // have been left out.
  template <class F>
  void for_each(std::span<const AttrDef> defs, F visit) const {
    Reader read(*this);
    for (const AttrDef& def : defs) {
      if (read.ended()) return;
      if (def.kind == AttrKind::integers || def.kind == AttrKind::text) {
        visit(def, read.integers());
      } else if (def.kind == AttrKind::sizes) {
        visit(def, read.sizes());
      } else if (def.kind == AttrKind::size) {
        const Dim size = read.size();
        visit(def, std::span<const Dim>(&size, 1));
      } else {
        const int64_t word = read.integer();
        visit(def, std::span<const int64_t>(&word, 1));
      }
    }
  }
  // Replaces every size.
  template <class F>
  void change_sizes(F changed) {
    for (Dim& size : sizes_) size = changed(size);
  }

  // Sizes are equal where that is proven: nothing is asked of the call that is traced.
  friend bool operator==(const Attrs& a, const Attrs& b) {
    return a.words_ == b.words_ &&
           std::equal(a.sizes_.begin(), a.sizes_.end(), b.sizes_.begin(), b.sizes_.end(),
                      [](Dim x, Dim y) { return x.word() == y.word(); });
  }

 private:
  SmallVec<int64_t, 7> words_;
  SmallVec<Dim, 8> sizes_;
};

}  // namespace tidemark
