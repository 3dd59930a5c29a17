// Feeds arbitrary bytes to the reader of zip files: its directory, its members, and what is
// deflated in them. No more comes out than the directory says, and never more than deflate can.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/memory_file.h"
#include "tidemark/io/zip.h"

namespace {

using namespace tidemark;  // NOLINT: a program of its own.

void require(bool condition) {
  if (!condition) std::abort();
}

constexpr int64_t kEnough = 1 << 17;  // Of a bomb: a few windows.

// The bytes themselves as deflated ones, since few zip files get that far.
void inflate_all(const uint8_t* data, size_t size) {
  size_t at = 0;
  int64_t out = 0;
  const io::FileCall call{"load_npz", "fuzz.npz", Source::none()};
  try {
    const int64_t used = io::inflate(
        [&](std::span<std::byte> to) {
          const size_t count = std::min(to.size(), size - at);
          std::copy_n(reinterpret_cast<const std::byte*>(data) + at, count, to.begin());
          at += count;
          return count;
        },
        [&](std::span<const std::byte> bytes) {
          out += std::ssize(bytes);
          return out < kEnough;
        },
        0, call);
    require(used <= static_cast<int64_t>(size));
  } catch (const UserError&) {
  }
  require(out <= io::kMostInflated * static_cast<int64_t>(size));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  inflate_all(data, size);
  const MemoryFile memory(data, size);
  try {
    const io::InputFile file({"load_npz", memory.path(), Source::none()});
    for (const io::ZipMember& member : io::zip_members(file)) {
      int64_t out = 0;
      require(member.data + member.stored_bytes <= file.bytes());
      io::read_member(file, member, [&](std::span<const std::byte> bytes) {
        out += std::ssize(bytes);
        require(out <= member.bytes);
        return true;
      });
      require(out == member.bytes);
    }
  } catch (const UserError&) {
  }
  return 0;
}
