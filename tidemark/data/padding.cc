#include "tidemark/data/padding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tidemark/api/create.h"
#include "tidemark/api/extend.h"
#include "tidemark/api/ops.h"

namespace tidemark::data {

Padding::Padding(PaddingOptions options, const char* what, Source at)
    : options_(std::move(options)), what_(what), at_(at) {
  for (const std::vector<int64_t>& shape : options_.shapes)
    for (const int64_t size : shape)
      if (size < -1)
        throw UserError(cat(what, ": a size of ", size, " in shapes"), at,
                        "give sizes of 0 or more, and -1 for the longest of the batch");
}

double Padding::value_of(size_t leaf) const {
  if (options_.values.empty()) return 0;
  return options_.values.size() == 1 ? options_.values[0] : options_.values[leaf];
}

void Padding::check_count(const Element& row) const {
  const size_t tensors = row.tensors.size();
  const auto need = [&](size_t given, const char* name, bool one_for_all) {
    if (given == 0 || given == tensors || (one_for_all && given == 1)) return;
    throw UserError(cat(what_, ": ", given, " ", name, " for elements of ", tensors, " tensors"),
                    at_, "give one for each tensor of an element");
  };
  need(options_.shapes.size(), "shapes", false);
  need(options_.values.size(), "values", true);
}

void Padding::check_alike(std::span<const Element> rows) const {
  const auto key = [](const Element& row) { return row.form == nullptr ? "" : row.form->key; };
  const std::vector<LeafType> first = leaf_types(rows[0]);
  for (size_t r = 1; r < rows.size(); ++r) {
    const std::vector<LeafType> types = leaf_types(rows[r]);
    const bool alike = key(rows[0]) == key(rows[r]) &&
                       std::equal(first.begin(), first.end(), types.begin(), types.end(),
                                  [](const LeafType& a, const LeafType& b) {
                                    return a.dtype == b.dtype && a.shape.rank() == b.shape.rank();
                                  });
    if (alike) continue;
    throw UserError(cat("data: ", what_, " pads sizes, but row 0 is ", text_of(first), ", row ", r,
                        " is ", text_of(types)),
                    at_, "make them alike with map first, or remove the others with filter");
  }
}

Shape Padding::shape_of(std::span<const Element> rows, size_t leaf,
                        std::optional<int64_t> open) const {
  const int64_t rank = rows[0].tensors[leaf].rank();
  std::vector<int64_t> wanted(static_cast<size_t>(rank), -1);
  if (!options_.shapes.empty()) wanted = options_.shapes[leaf];
  if (static_cast<int64_t>(wanted.size()) != rank)
    throw UserError(cat("data: ", what_, ": shapes has ", wanted.size(), " sizes for a tensor ",
                        rows[0].tensors[leaf].dtype(), rows[0].tensors[leaf].shape()),
                    at_, "give one size for each axis, -1 for the longest of the batch");
  Shape shape;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t size = wanted[static_cast<size_t>(axis)];
    int64_t longest = 0;
    for (const Element& row : rows)
      longest = std::max<int64_t>(longest, row.tensors[leaf].shape()[axis]);
    shape.push_back(size >= 0 ? size : open.value_or(longest));
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    const Shape& has = rows[r].tensors[leaf].shape();
    for (int64_t axis = 0; axis < rank; ++axis)
      if (has[axis] > shape[axis])
        throw UserError(cat("data: ", what_, ": row ", r, " is ", rows[r].tensors[leaf].dtype(),
                            has, ", which does not fit into ", shape),
                        at_, "pad to a larger shape, or remove the element with filter");
  }
  return shape;
}

Element Padding::padded(const Element& row, std::span<const Shape> shapes) const {
  Element made{{}, row.form};
  for (size_t leaf = 0; leaf < shapes.size(); ++leaf) {
    const Tensor& tensor = row.tensors[leaf];
    Padding2 widths;
    for (int64_t axis = 0; axis < tensor.rank(); ++axis)
      widths.emplace_back(0, int64_t{shapes[leaf][axis]} - int64_t{tensor.shape()[axis]});
    const bool fits = tensor.shape() == shapes[leaf];
    made.tensors.push_back(
        fits ? tensor
             : pad(tensor, widths,
                   cast(constant(std::vector{value_of(leaf)}, Shape(), at_), tensor.dtype(), at_),
                   at_));
  }
  return made;
}

Element Padding::stacked(std::span<const Element> rows, std::optional<int64_t> open) const {
  check_count(rows[0]);
  check_alike(rows);
  std::vector<Shape> shapes;
  Element like{{}, rows[0].form};
  for (size_t leaf = 0; leaf < rows[0].tensors.size(); ++leaf) {
    shapes.push_back(shape_of(rows, leaf, open));
    like.tensors.push_back(
        tidemark::detail::unwritten(rows[0].tensors[leaf].dtype(), shapes.back(), at_));
  }
  const auto count = static_cast<int64_t>(rows.size());
  RowBlock block(like, count, at_);
  like = {};
  for (int64_t row = 0; row < count; ++row)
    write_row(padded(rows[static_cast<size_t>(row)], shapes), block.from(0), row);
  return block.take(count);
}

}  // namespace tidemark::data
