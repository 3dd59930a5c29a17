// Feeds arbitrary bytes to the reader of safetensors headers. What it accepts lies in the file
// without a hole, is written again, and means the same.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tidemark/io/safetensors_format.h"

namespace {

using namespace tidemark;  // NOLINT: a program of its own.

void require(bool condition) {
  if (!condition) std::abort();
}

const io::FileCall call{"load_safetensors", "fuzz.safetensors", Source::none()};

io::SafetensorsHead read(std::span<const std::byte> bytes, int64_t file_bytes) {
  const auto start = bytes.first(std::min<size_t>(bytes.size(), io::kSafetensorsStartBytes));
  const int64_t size = io::safetensors_head_bytes(start, file_bytes, call);
  require(size <= file_bytes);
  return io::parse_safetensors_head(bytes.first(static_cast<size_t>(size)), file_bytes, call);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  io::SafetensorsHead head;
  try {
    head = read(std::as_bytes(std::span(data, size)), static_cast<int64_t>(size));
  } catch (const UserError&) {
    return 0;
  }
  int64_t end = 0;
  for (const io::SafetensorsEntry& entry : head.tensors) {
    require(entry.begin == end &&
            entry.end - entry.begin == entry.shape.size() * size_of(entry.dtype));
    end = entry.end;
  }
  require(head.bytes + end == static_cast<int64_t>(size));
  std::vector<io::SafetensorsEntry> placed = head.tensors;
  io::place_tensors(placed);
  const std::string written = io::safetensors_head(placed, head.metadata, call);
  const int64_t file_bytes = static_cast<int64_t>(written.size()) + end;
  const io::SafetensorsHead again = read(std::as_bytes(std::span(written)), file_bytes);
  require(again.metadata == head.metadata && again.tensors.size() == placed.size());
  return 0;
}
