// A list with room for N elements in itself, so that a short one needs no heap. Elements are
// default-made and moved; types/small_vec.h is the same for plain data.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace tidemark {

template <class T, size_t N>
class InlineList {
 public:
  InlineList() = default;
  InlineList(const InlineList&) = default;
  InlineList& operator=(const InlineList&) = default;
  InlineList(InlineList&& other) noexcept
      : inside_(std::move(other.inside_)),
        many_(std::move(other.many_)),
        size_(std::exchange(other.size_, 0)) {}
  InlineList& operator=(InlineList&& other) noexcept {
    inside_ = std::move(other.inside_);
    many_ = std::move(other.many_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~InlineList() = default;

  T& emplace_back() {
    if (size_ < N) return inside_[size_++];
    return emplace_outside();
  }
  void push_back(T value) { emplace_back() = std::move(value); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ <= N ? inside_.data() : many_.data(); }
  const T* data() const { return size_ <= N ? inside_.data() : many_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  operator std::span<const T>() const { return {data(), size_}; }

 private:
  // Once there are too many, all of them are outside.
  T& emplace_outside() {
    if (size_ == N)
      many_.assign(std::move_iterator(inside_.begin()), std::move_iterator(inside_.end()));
    ++size_;
    return many_.emplace_back();
  }

  std::array<T, N> inside_ = {};
  std::vector<T> many_;
  size_t size_ = 0;
};

}  // namespace tidemark
