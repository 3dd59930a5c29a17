// Whole files in memory, inflated if gzip compressed them. Internal to data/.
#pragma once

#include <cstddef>
#include <vector>

#include "tidemark/api/tensor.h"
#include "tidemark/io/file.h"

namespace tidemark::data {

// A file that is compressed is recognised by its first bytes.
std::vector<std::byte> content(const io::FileCall& call);
// The same as u8[n]: a mapped file, which takes no memory, or the inflated bytes.
Tensor content_tensor(const io::FileCall& call);

}  // namespace tidemark::data
