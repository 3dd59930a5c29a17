// The axes that a reduction or a squeeze works on: 1, -1 or {0, 1}; an empty list means every axis.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <vector>

#include "tidemark/types/small_vec.h"

namespace tidemark {

class Axes {
 public:
  Axes() = default;
  template <std::integral I>
  Axes(I axis) : list_{static_cast<int64_t>(axis)}, every_(false) {}
  Axes(std::initializer_list<int64_t> axes) : list_(axes), every_(false) {}
  Axes(const std::vector<int64_t>& axes) : list_(std::span<const int64_t>(axes)), every_(false) {}

  bool every() const { return every_; }
  const AxisList& list() const { return list_; }

 private:
  AxisList list_;
  bool every_ = true;
};

enum class Keep : bool { no, yes };
inline constexpr Keep keepdims = Keep::yes;

}  // namespace tidemark
