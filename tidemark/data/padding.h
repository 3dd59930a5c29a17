// Elements of different sizes as one, filled up to a common shape. Internal to data/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tidemark/data/stage.h"

namespace tidemark::data {

class Padding {
 public:
  // `what` is the stage, for errors.
  Padding(PaddingOptions options, const char* what, Source at);

  // Rows of one element with a new first axis. Sizes of -1 in the options become `open`, or the
  // largest among the rows. A UserError if the rows differ in more than sizes, or do not fit.
  Element stacked(std::span<const Element> rows, std::optional<int64_t> open = {}) const;

 private:
  Shape shape_of(std::span<const Element> rows, size_t leaf, std::optional<int64_t> open) const;
  void check_alike(std::span<const Element> rows) const;
  void check_count(const Element& row) const;
  double value_of(size_t leaf) const;
  Element padded(const Element& row, std::span<const Shape> shapes) const;

  PaddingOptions options_;
  const char* what_;
  Source at_;
};

}  // namespace tidemark::data
