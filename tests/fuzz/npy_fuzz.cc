// Feeds arbitrary bytes to the reader of .npy heads. What it accepts is written again, as we write
// it, and means the same.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tidemark/io/npy_format.h"

namespace {

using namespace tidemark;  // NOLINT: a program of its own.

void require(bool condition) {
  if (!condition) std::abort();
}

const io::FileCall call{"load_npy", "fuzz.npy", Source::none()};

io::NpyHead read(std::span<const std::byte> bytes) {
  const auto start = bytes.first(std::min<size_t>(bytes.size(), io::kNpyStartBytes));
  const int64_t size = io::npy_head_bytes(start, std::ssize(bytes), call);
  require(size <= std::ssize(bytes));
  return io::parse_npy_head(bytes.first(static_cast<size_t>(size)), call);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  io::NpyHead head;
  try {
    head = read(std::as_bytes(std::span(data, size)));
  } catch (const UserError&) {
    return 0;
  }
  require(head.data_bytes >= 0 && head.bytes > 0);
  require(head.data_bytes == 0 || head.data_bytes == head.shape.size() * size_of(head.dtype));
  const std::string written = io::npy_head(head.dtype, head.shape, call);
  require(written.size() % 64 == 0);
  const io::NpyHead again = read(std::as_bytes(std::span(written)));
  require(again.dtype == head.dtype && again.shape == head.shape);
  require(again.data_bytes == head.data_bytes && !again.fortran_order && !again.big_endian);
  return 0;
}
