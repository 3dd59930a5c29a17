#include "tidemark/data/files.h"

#include <algorithm>
#include <span>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"
#include "tidemark/data/read_file.h"

namespace tidemark::data {

using io::FileCall;

namespace {

uint32_t big(const std::byte* at) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(at[i]);
  return value;
}

DType idx_dtype(std::byte code, const FileCall& call) {
  switch (std::to_integer<int>(code)) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0b:
      return DType::i16;
    case 0x0c:
      return DType::i32;
    case 0x0d:
      return DType::f32;
    case 0x0e:
      return DType::f64;
    default:
      call.bad(2, cat("elements of type ", std::to_integer<int>(code), " are not supported"),
               "u8 (8), i8 (9), i16 (11), i32 (12), f32 (13) and f64 (14) are");
  }
}

}  // namespace

Tensor load_idx(const std::string& path, Source at) {
  const SourceScope scope(at);
  const FileCall call{"load_idx", path, at};
  const std::vector<std::byte> bytes = content(call);
  if (bytes.size() < 4 || bytes[0] != std::byte{0} || bytes[1] != std::byte{0})
    call.bad(0, "this is no IDX file", "IDX files begin with two zero bytes");
  const DType dtype = idx_dtype(bytes[2], call);
  const auto rank = std::to_integer<size_t>(bytes[3]);
  const size_t head = 4 + 4 * rank;
  if (bytes.size() < head) call.bad(4, "the sizes are cut off");
  Shape shape;
  uint64_t size = static_cast<uint64_t>(size_of(dtype));
  for (size_t i = 0; i < rank; ++i) {
    const uint32_t axis = big(&bytes[4 + 4 * i]);
    shape.push_back(static_cast<int64_t>(axis));
    if (__builtin_mul_overflow(size, uint64_t{axis}, &size)) size = UINT64_MAX;
  }
  if (size != bytes.size() - head)
    call.bad(static_cast<int64_t>(head), cat("the file has ", bytes.size() - head, " bytes for ",
                                             dtype, shape, ", which needs ", size));
  const auto width = static_cast<size_t>(size_of(dtype));
  return from_callback(
      shape, dtype,
      [&](std::span<std::byte> to) {  // Elements are big-endian.
        for (size_t i = 0; i < to.size(); ++i)
          to[i] = bytes[head + i / width * width + (width - 1 - i % width)];
      },
      at);
}

CifarBatch load_cifar(const std::string& path, int64_t labels, Source at) {
  const SourceScope scope(at);
  const FileCall call{"load_cifar", path, at};
  const std::vector<std::byte> bytes = content(call);
  constexpr int64_t kImage = 3 * 32 * 32;
  const int64_t row = labels + kImage;
  if (labels < 1 || bytes.empty() || static_cast<int64_t>(bytes.size()) % row != 0)
    call.refuse(cat("has ", bytes.size(), " bytes, not rows of ", row),
                "each image has one label in CIFAR-10, two in CIFAR-100: load_cifar(path, 2)");
  const int64_t count = static_cast<int64_t>(bytes.size()) / row;
  const Tensor rows = from_callback(
      {count, row}, DType::u8,
      [&](std::span<std::byte> to) { std::copy(bytes.begin(), bytes.end(), to.begin()); }, at);
  const Tensor planes = reshape(rows[{all, Slice{.begin = labels}}], {count, 3, 32, 32});
  // The last label is the fine one.
  return {identity(transpose(planes, {0, 2, 3, 1})), identity(rows[{all, labels - 1}])};
}

}  // namespace tidemark::data
