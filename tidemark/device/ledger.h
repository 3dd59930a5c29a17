// The owner of every resident page of the process.
#pragma once

#include <cstdint>

#include "tidemark/device/mapping.h"

namespace tidemark::device {

// The bytes of resident pages by owner. Pages that Tidemark did not map are classified by
// /proc/self/smaps: executables and libraries with their data, other files, the C library's heap,
// and all other pages.
struct ResidentPages {
  int64_t ours[kMappingOwners] = {};
  int64_t image = 0;
  int64_t files = 0;  // Mapped files, including those that tensors are loaded from.
  int64_t heap = 0;
  int64_t outside = 0;

  int64_t total() const;
};

// The pages that /proc/self/smaps counts as resident; /proc/self/pagemap resolves the ranges that
// Tidemark mapped, page by page. Exact when no thread allocates or frees; the first call itself
// makes some pages resident. Throws DeviceError if /proc cannot be read.
ResidentPages resident_pages();

}  // namespace tidemark::device
