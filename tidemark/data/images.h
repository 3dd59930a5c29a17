// PNG and JPEG files as u8[height, width, channels].
//
//   td::Tensor image = td::data::load_image("cat.jpg", {.channels = 3});
//
// libpng and libjpeg-turbo decode them: an optional component. A build that found their headers
// loads the libraries of the system at the first image, and one that did not says so, by name.
#pragma once

#include <string>

#include "tidemark/api/tensor.h"

namespace tidemark::data {

struct ImageOptions {
  // 0: those of the file. 1: grey, 3: RGB; of a PNG also 2: grey and alpha, 4: RGB and alpha.
  int64_t channels = 0;
};

// `bytes` is the content of a file, u8[n]. 16 bits of a PNG become 8.
Tensor decode_png(const Tensor& bytes, ImageOptions options = {}, Source at = Source::here());
Tensor decode_jpeg(const Tensor& bytes, ImageOptions options = {}, Source at = Source::here());
// Either, by its first bytes.
Tensor decode_image(const Tensor& bytes, ImageOptions options = {}, Source at = Source::here());
Tensor load_image(const std::string& path, ImageOptions options = {}, Source at = Source::here());

}  // namespace tidemark::data
