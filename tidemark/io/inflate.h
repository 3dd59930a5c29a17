// Decompression of deflate (RFC 1951); internal to io/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "tidemark/io/file.h"

namespace tidemark::io {

// The largest possible ratio: two bits may encode 258 bytes.
inline constexpr int64_t kMostInflated = 1032;

// Fills the front of the span and returns the number of bytes; 0 at the end.
using ByteSource = std::function<size_t(std::span<std::byte> to)>;
// Receives the inflated bytes in order; returns false to stop.
using ByteSink = std::function<bool(std::span<const std::byte> bytes)>;

// Uses 100 KiB of memory, however much there is to inflate. `offset` is the position of the first
// source byte in the file, for errors. Returns how many bytes of the source were used.
int64_t inflate(const ByteSource& source, const ByteSink& sink, int64_t offset,
                const FileCall& call);

}  // namespace tidemark::io
