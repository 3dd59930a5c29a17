// The attributes of a node: everything that its op needs besides operands, such as axes, a shape or
// a dtype.
//
// Values are stored in the order of the op's schema, in two flat lists, so that attributes are
// cheap to copy, compare and hash: one of words and one of sizes, which may be open. The storage
// kind of each attribute is kept too, so that reading a size as a number is caught. A list is
// stored as its length, then its items.
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

// A `text` is stored as the list of its bytes. A value that may be open is a `size` or one of
// `sizes`.
enum class AttrKind : uint8_t { integer, integers, boolean, dtype, number, text, size, sizes };

// The meaning of an attribute for the axes of its op. Checks, batching and slicing go by the role,
// never by the attribute's name. "Per axis": a list with one item for each axis of the first
// operand.
enum class AttrRole : uint8_t {
  none,            // Nothing.
  axis,            // The number of one axis of the first operand.
  axes,            // The numbers of some, in increasing order.
  permutation,     // The number of each, in the order of the result.
  shape,           // The sizes of the result.
  slice_begin,     // Per axis: the first element of a slice.
  slice_size,      // Per axis: how many elements it has.
  slice_step,      // Per axis: how far they are apart.
  padding,         // Per axis: how many elements are put in; 0 leaves the axis alone.
  window,          // Per axis of an image: a stride or a dilation.
  window_padding,  // Per axis of an image: elements put around it, or taken away.
  groups,          // Of channels.
};

struct AttrDef {
  std::string_view name;
  AttrKind kind = AttrKind::integer;
  AttrRole role = AttrRole::none;

  constexpr bool is_list() const {
    return kind == AttrKind::integers || kind == AttrKind::sizes || kind == AttrKind::text;
  }
  // Whether its items are numbers of axes.
  constexpr bool numbers_axes() const {
    return role == AttrRole::axis || role == AttrRole::axes || role == AttrRole::permutation;
  }
  // Whether its items are sizes of the result, an item for each axis.
  constexpr bool holds_sizes() const {
    return role == AttrRole::shape || role == AttrRole::slice_size;
  }
  // Whether it has an item for each axis.
  constexpr bool is_per_axis() const {
    return holds_sizes() || role == AttrRole::permutation || role == AttrRole::slice_begin ||
           role == AttrRole::slice_step || role == AttrRole::padding;
  }
  // The item that leaves an axis as it is, where that is a number.
  constexpr int64_t neutral_item() const { return role == AttrRole::slice_step ? 1 : 0; }
};

class Attrs {
 public:
  // What an attribute is held as.
  enum class StorageKind : uint8_t { number, numbers, size, sizes };

  Attrs() = default;

  Attrs& add(int64_t value) {
    note(StorageKind::number);
    words_.push_back(value);
    return *this;
  }
  Attrs& add(bool value) { return add(static_cast<int64_t>(value)); }
  Attrs& add(DType value) { return add(static_cast<int64_t>(value)); }
  Attrs& add(double value) { return add(std::bit_cast<int64_t>(value)); }
  Attrs& add(Dim size) {
    note(StorageKind::size);
    sizes_.push_back(size);
    return *this;
  }
  Attrs& add(std::span<const int64_t> list) {
    note(StorageKind::numbers);
    words_.push_back(static_cast<int64_t>(list.size()));
    for (const int64_t item : list) words_.push_back(item);
    return *this;
  }
  Attrs& add(std::span<const Dim> list) {
    note(StorageKind::sizes);
    words_.push_back(static_cast<int64_t>(list.size()));
    for (const Dim item : list) sizes_.push_back(item);
    return *this;
  }
  Attrs& append(const Attrs& other) {
    for (uint32_t i = 0; i < other.count_; ++i) note(other.held(i));
    for (const int64_t word : other.words_) words_.push_back(word);
    for (const Dim size : other.sizes_) sizes_.push_back(size);
    return *this;
  }

  // Reading goes in the order of writing. It is an InternalError to read what is not there, or a
  // size as a number.
  class Reader {
   public:
    explicit Reader(const Attrs& attrs) : attrs_(&attrs) {}
    int64_t integer() {
      expect(StorageKind::number);
      return attrs_->words_[at_++];
    }
    bool boolean() { return integer() != 0; }
    DType dtype() { return static_cast<DType>(integer()); }
    double number() { return std::bit_cast<double>(integer()); }
    Dim size() {
      expect(StorageKind::size);
      return attrs_->sizes_[size_at_++];
    }
    std::span<const int64_t> integers() {
      expect(StorageKind::numbers);
      return list_of<int64_t>(attrs_->words_, at_);
    }
    std::span<const Dim> sizes() {
      expect(StorageKind::sizes);
      return list_of<Dim>(attrs_->sizes_, size_at_);
    }
    // Whether the attributes that follow were left out, as the last ones may be.
    bool ended() const { return next_ == attrs_->count_; }

   private:
    void expect(StorageKind held) {
      if (ended() || attrs_->held(next_) != held) [[unlikely]]
        attrs_->misread(next_, held);
      ++next_;
    }
    template <class Item>
    std::span<const Item> list_of(std::span<const Item> items, size_t& from) {
      const auto count = static_cast<size_t>(attrs_->words_[at_++]);
      const std::span<const Item> list = items.subspan(from, count);
      from += count;
      return list;
    }
    const Attrs* attrs_;
    size_t at_ = 0, size_at_ = 0;
    uint32_t next_ = 0;
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
    return a.held_ == b.held_ && a.count_ == b.count_ && a.words_ == b.words_ &&
           std::equal(a.sizes_.begin(), a.sizes_.end(), b.sizes_.begin(), b.sizes_.end(),
                      [](Dim x, Dim y) { return x.word() == y.word(); });
  }

 private:
  StorageKind held(uint32_t which) const {
    return static_cast<StorageKind>(held_ >> 2 * which & 3);
  }
  void note(StorageKind held) {
    TIDEMARK_CHECK(count_ < 32, "an op has more than 32 attributes");
    held_ |= static_cast<uint64_t>(held) << 2 * count_++;
  }
  [[noreturn]] void misread(uint32_t which, StorageKind wanted) const;

  SmallVec<int64_t, 7> words_;
  SmallVec<Dim, 8> sizes_;
  uint64_t held_ = 0;  // Two bits an attribute.
  uint32_t count_ = 0;
};

}  // namespace tidemark
