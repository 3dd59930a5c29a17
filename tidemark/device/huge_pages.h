// Whether pages of 2 MiB are faster on this machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::device {

// Whether the first write to new memory is faster in pages of 2 MiB than in pages of 4 KiB.
// Measured by the first call. TIDEMARK_HUGE_PAGES (0 or 1) decides without measuring.
bool huge_pages_help();

// Requests huge pages for each whole 2 MiB inside [begin, begin + bytes), and small pages for the
// ends: a huge page across the end of a block would make unrequested bytes resident.
void advise_huge(std::byte* begin, int64_t bytes);
void advise_small(std::byte* begin, int64_t bytes);

}  // namespace tidemark::device
