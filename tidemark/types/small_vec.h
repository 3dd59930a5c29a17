// A vector of plain data with inline storage for N elements. Shapes and strides use it, so that the
// metadata of a tensor of up to six axes needs no heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

namespace tidemark {

template <class T, int N>
class SmallVec {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVec() {}
  explicit SmallVec(size_t size, T value = T{}) { resize(size, value); }
  SmallVec(std::initializer_list<T> list) { assign(list.begin(), list.size()); }
  explicit SmallVec(std::span<const T> list) { assign(list.data(), list.size()); }
  SmallVec(const SmallVec& other) { copy(other); }
  SmallVec(SmallVec&& other) noexcept { steal(other); }
  SmallVec& operator=(const SmallVec& other) {
    if (this != &other) copy(other);
    return *this;
  }
  SmallVec& operator=(SmallVec&& other) noexcept {
    if (this != &other) {
      release();
      steal(other);
    }
    return *this;
  }
  ~SmallVec() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return heap_ != nullptr ? heap_ : inside_; }
  const T* data() const { return heap_ != nullptr ? heap_ : inside_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  operator std::span<const T>() const { return {data(), size_}; }

  void push_back(T value) {
    reserve(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() { --size_; }
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void resize(size_t size, T value = T{}) {
    reserve(size);
    if (size > size_) std::fill(data() + size_, data() + size, value);
    size_ = static_cast<uint32_t>(size);
  }
  void clear() { size_ = 0; }

  friend bool operator==(const SmallVec& a, const SmallVec& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void copy(const SmallVec& other) {
    if (other.heap_ != nullptr || heap_ != nullptr) return assign(other.data(), other.size());
    copy_inside(other);
    size_ = other.size_;
  }
  // The inline storage is copied whole: a fixed number of bytes compiles to a few moves.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
  void copy_inside(const SmallVec& other) {
    std::memcpy(static_cast<void*>(inside_), other.inside_, sizeof(inside_));
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  void assign(const T* from, size_t count) {
    reserve(count);
    std::copy_n(from, count, data());
    size_ = static_cast<uint32_t>(count);
  }
  void reserve(size_t wanted) {
    if (wanted <= capacity_) return;
    const size_t capacity = std::max<size_t>(wanted, size_t{2} * capacity_);
    T* larger = new T[capacity];
    std::copy_n(data(), size_, larger);
    delete[] heap_;
    heap_ = larger;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  void steal(SmallVec& other) noexcept {
    if (other.heap_ != nullptr) {
      heap_ = std::exchange(other.heap_, nullptr);
      capacity_ = std::exchange(other.capacity_, N);
    } else {
      copy_inside(other);
    }
    size_ = std::exchange(other.size_, 0);
  }
  void release() {
    delete[] heap_;
    heap_ = nullptr;
    capacity_ = N;
  }

  T* heap_ = nullptr;
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  union {  // Uninitialised until elements are added.
    T inside_[N];
  };
};

using Strides = SmallVec<int64_t, 6>;
using AxisList = SmallVec<int64_t, 6>;

}  // namespace tidemark
