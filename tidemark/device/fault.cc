#include "tidemark/device/fault.h"

namespace tidemark::device::fault::detail {

constinit std::atomic<int64_t> countdown[2] = {0, 0};

bool strike_armed(Site site) { return countdown[static_cast<int>(site)].fetch_sub(1) == 1; }

}  // namespace tidemark::device::fault::detail
