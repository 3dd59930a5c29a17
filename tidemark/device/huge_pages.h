// Whether pages of 2 MiB are worth asking for: that differs from machine to machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark::device {

// Measured at the first call: whether memory is first touched faster in pages of 2 MiB than in
// pages of 4 KiB. TIDEMARK_HUGE_PAGES (0 or 1) decides without measuring.
bool huge_pages_help();

// Asks for huge pages for the whole 2 MiB that lie inside [begin, begin + bytes), and for small
// ones where there are none: a huge page across the end of a block would hold bytes nobody asked
// for.
void advise_huge(std::byte* begin, int64_t bytes);
void advise_small(std::byte* begin, int64_t bytes);

}  // namespace tidemark::device
