// Arrays as text, in NumPy's manner: equal widths, as few digits as tell the values apart (8 after
// the point at most), three elements from each end of long axes where there are more than 1000 in
// all, lines of 75 characters. A scalar has all its digits.
#pragma once

#include <string>

#include "tidemark/types/array_ref.h"

namespace tidemark {

std::string array_text(const ArrayRef& array);

}  // namespace tidemark
