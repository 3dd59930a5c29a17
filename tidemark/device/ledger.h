// Whose every resident page of the process is.
#pragma once

#include <cstdint>

#include "tidemark/device/mapping.h"

namespace tidemark::device {

// Bytes of resident pages by who mapped them. Pages that are not ours are told apart by what
// /proc/self/smaps says: an executable or a library with its data, other files, the C library's
// heap, the rest.
struct ResidentPages {
  int64_t ours[kMappingOwners] = {};
  int64_t image = 0;
  int64_t files = 0;  // Mapped: tensors of files, if we mapped them.
  int64_t heap = 0;
  int64_t outside = 0;

  int64_t total() const;
};

// What the kernel counts as resident in /proc/self/smaps, with our ranges resolved page by page by
// /proc/self/pagemap. Exact at a quiescent point; the first walk of a process touches pages of its
// own. Throws DeviceError where /proc cannot be read.
ResidentPages resident_pages();

}  // namespace tidemark::device
