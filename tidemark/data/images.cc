#include "tidemark/data/images.h"

#include <algorithm>

#include "tidemark/api/extend.h"
#include "tidemark/api/ops.h"
#include "tidemark/data/decoder.h"
#include "tidemark/data/read_file.h"

namespace tidemark::data {

namespace {

constexpr unsigned char kPng[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr unsigned char kJpeg[] = {0xff, 0xd8, 0xff};

bool begins_with(std::span<const std::byte> bytes, std::span<const unsigned char> mark) {
  return bytes.size() >= mark.size() &&
         std::equal(mark.begin(), mark.end(), bytes.begin(),
                    [](unsigned char a, std::byte b) { return std::byte{a} == b; });
}

Tensor png_of(const ImageCall& call) {
  if (!begins_with(call.bytes, kPng)) call.refuse("these bytes are no PNG file");
  if (call.channels < 0 || call.channels > 4)
    call.refuse(cat("a PNG cannot be read with ", call.channels, " channels"),
                "give 1, 2, 3 or 4, or 0 for those of the file");
  return read_png(call);
}

Tensor jpeg_of(const ImageCall& call) {
  if (!begins_with(call.bytes, kJpeg)) call.refuse("these bytes are no JPEG file");
  if (call.channels != 0 && call.channels != 1 && call.channels != 3)
    call.refuse(cat("a JPEG cannot be read with ", call.channels, " channels"),
                "give 1 or 3, or 0 for those of the file");
  return read_jpeg(call);
}

// Calls decode with the bytes of a tensor.
template <class Decode>
Tensor decoded(const char* name, const Tensor& bytes, ImageOptions options, Source at,
               Decode decode) {
  const SourceScope scope(at);
  if (bytes.dtype() != DType::u8 || bytes.rank() != 1)
    throw UserError(
        cat(name, ": the bytes of a file are u8[n], these are ", bytes.dtype(), bytes.shape()), at);
  const Tensor dense = identity(bytes, at);
  const auto size = static_cast<size_t>(int64_t{dense.shape()[0]});
  const std::byte* const data = size == 0 ? nullptr : tidemark::detail::dense_bytes(dense, at);
  return decode(ImageCall{name, {data, size}, options.channels, at});
}

Tensor image_of(const ImageCall& call) {
  if (begins_with(call.bytes, kPng)) return png_of(call);
  if (begins_with(call.bytes, kJpeg)) return jpeg_of(call);
  call.refuse("these bytes are neither a PNG file nor a JPEG file");
}

}  // namespace

Tensor decode_png(const Tensor& bytes, ImageOptions options, Source at) {
  return decoded("decode_png", bytes, options, at, png_of);
}
Tensor decode_jpeg(const Tensor& bytes, ImageOptions options, Source at) {
  return decoded("decode_jpeg", bytes, options, at, jpeg_of);
}
Tensor decode_image(const Tensor& bytes, ImageOptions options, Source at) {
  return decoded("decode_image", bytes, options, at, image_of);
}

Tensor load_image(const std::string& path, ImageOptions options, Source at) {
  const SourceScope scope(at);
  const Tensor bytes = content_tensor({"load_image", path, at});
  return decoded(cat("load_image: ", path).c_str(), bytes, options, at, image_of);
}

}  // namespace tidemark::data
