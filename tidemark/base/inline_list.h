// A list with room for N elements in itself, so that a short one needs no heap. For plain data
// types/small_vec.h does the same.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace tidemark {

template <class T, size_t N>
class InlineList {
 public:
  InlineList() {}
  InlineList(InlineList&& other) noexcept { take(other); }
  InlineList& operator=(InlineList&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }
  InlineList(const InlineList&) = delete;
  InlineList& operator=(const InlineList&) = delete;
  ~InlineList() { clear(); }

  T& emplace_back() {
    if (size_ < N) return *std::construct_at(inside() + size_++);
    return emplace_outside();
  }
  void push_back(T value) { emplace_back() = std::move(value); }
  void clear() {
    std::destroy_n(data(), size_ <= N ? size_ : 0);
    many_.clear();
    size_ = 0;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ <= N ? inside() : many_.data(); }
  const T* data() const { return const_cast<InlineList*>(this)->data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  operator std::span<const T>() const { return {data(), size_}; }

 private:
  T* inside() { return std::launder(reinterpret_cast<T*>(inside_)); }
  // Once there are too many, all of them are outside.
  T& emplace_outside() {
    if (size_ == N) {
      for (size_t i = 0; i < N; ++i) many_.push_back(std::move(inside()[i]));
      std::destroy_n(inside(), N);
    }
    ++size_;
    return many_.emplace_back();
  }
  // This one is empty.
  void take(InlineList& other) {
    if (other.size_ <= N) std::uninitialized_move_n(other.inside(), other.size_, inside());
    many_ = std::move(other.many_);
    size_ = other.size_;
    other.clear();
  }

  alignas(T) std::byte inside_[N * sizeof(T)];
  std::vector<T> many_;
  size_t size_ = 0;
};

}  // namespace tidemark
