// Arrays as text, in NumPy's style: equal widths; as few digits as distinguish the values, at most
// 8 after the point; of more than 1000 elements only three from each end of an axis; lines of 75
// characters. A scalar is printed with the shortest digits that round-trip.
#pragma once

#include <string>

#include "tidemark/types/array_ref.h"

namespace tidemark {

std::string array_text(const ArrayRef& array);

}  // namespace tidemark
