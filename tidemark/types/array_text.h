// Arrays as text, in NumPy's style: equal widths; as few digits as distinguish the values, at most
// 8 after the point; of more than 1000 elements only three from each end of an axis; lines of 75
// characters. A scalar is printed with the shortest digits that round-trip.
#pragma once

#include <string>
#include <string_view>

#include "tidemark/types/array_ref.h"

namespace tidemark {

struct ArrayTextStyle {
  std::string_view separator = {};  // Before the space or the new line: "," as in Python's lists.
  size_t indent = 0;                // Columns of the caller's own text before the first bracket.
};
std::string array_text(const ArrayRef& array, ArrayTextStyle style = {});

}  // namespace tidemark
