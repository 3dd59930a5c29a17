// Reads what deflate compressed (RFC 1951); internal to io/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "tidemark/io/file.h"

namespace tidemark::io {

// No deflated bytes inflate to more than this many times as many: two bits that stand for 258.
inline constexpr int64_t kMostInflated = 1032;

// Fills the front of the span and says how much of it; 0 where there is no more.
using ByteSource = std::function<size_t(std::span<std::byte> to)>;
// Gets what was inflated, in order; false where that is enough.
using ByteSink = std::function<bool(std::span<const std::byte> bytes)>;

// Takes 100 KiB of its own, however much there is to inflate. The first byte from `source` stands
// at `offset` of the file, for errors. Returns how many bytes of the source were used.
int64_t inflate(const ByteSource& source, const ByteSink& sink, int64_t offset,
                const FileCall& call);

}  // namespace tidemark::io
