// Short rows. A nest that folds rows of a few columns along lanes leaves most lanes empty; the same
// work as a pointwise nest has the rows along its columns, and fills them. Each column of a row is
// a buffer there, and a fold is an expression with the order that nest.h defines, so the bits are
// the same.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tidemark/loops/nest.h"
#include "tidemark/types/small_vec.h"

namespace tidemark::compile {

// Rows of at most this many columns are short.
inline constexpr int64_t kShortRow = 16;
// Rows of at most this many fill some vectors: their kernels know how many columns there are.
inline constexpr int64_t kKnownRow = kLanes;
// Rows that are only folded, once, fill the lanes of a vector well enough if they are longer than
// this: reading columns across rows costs more.
inline constexpr int64_t kShortFold = 8;
// Fewer rows than this do not fill the lanes.
inline constexpr int64_t kManyRows = 32;

// A buffer of a nest that folds along lanes: `by_row` has one element per row, and `kept` has no
// memory outside of the nest.
struct RowBuffer {
  bool by_row = false, kept = false;
};
// A buffer of the pointwise nest: one column of a buffer of the other.
struct ColumnOf {
  int32_t buffer = 0;
  int64_t column = 0;
};

using ColumnList = SmallVec<ColumnOf, 48>;

// All columns of each buffer, in order; one for a buffer by row, none for one that is kept.
ColumnList columns_of_rows(std::span<const RowBuffer> buffers, int64_t columns);

// The number of columns, if many rows of so few are worth code of their own; otherwise 0.
int32_t known_columns(const Nest& nest, int64_t columns, int64_t rows);

// The pointwise nest, whose buffers are those of columns_of_rows. Nothing if it would be too large,
// or read an element of a column after it has stored one there, which may be in the same place.
std::optional<Nest> narrow_nest(const Nest& nest, std::span<const RowBuffer> buffers,
                                int64_t columns);

}  // namespace tidemark::compile
