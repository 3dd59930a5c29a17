// A map's body on all slices at once. Internal to the library.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tidemark/trace/trace.h"

namespace tidemark::detail {

// The nodes of a body, each with one more axis in front, in the current scope: what takes part in
// no slice stays as it is. `slices` are the arrays whose slices the first parameters are,
// `captures` what the others are; the results have the axis too. Nothing, and `why_not` says which
// node, where one cannot take an axis: then nothing is added.
//
// The bits are those of the slices one by one: an op's axes and extents stay, a reduction's order
// is theirs, and a product of matrices does not depend on how many there are.
std::optional<std::vector<Value>> vectorized(RegionId body, std::span<const Value> slices,
                                             std::span<const Value> captures, Dim count,
                                             std::string& why_not);

}  // namespace tidemark::detail
