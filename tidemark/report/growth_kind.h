// The verdict on a series: does it grow?
#pragma once

#include <cstdint>

namespace tidemark {

// filling: it grows up to a declared cap. cannot_tell: there were too few steps, or it has grown in
// fewer than three windows.
enum class Growth : uint8_t { flat, filling, growing, cannot_tell };

}  // namespace tidemark
