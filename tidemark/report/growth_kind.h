// Whether a number grows.
#pragma once

#include <cstdint>

namespace tidemark {

// filling: it grows, and has a cap that it declares. cannot_tell: there were too few steps, or it
// has grown in fewer than three windows.
enum class Growth : uint8_t { flat, filling, growing, cannot_tell };

}  // namespace tidemark
