// PNG by libpng. Its errors leave through longjmp: nothing with a destructor lives in the functions
// between the jump and its target.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "tidemark/api/create.h"
#include "tidemark/data/decoder.h"

namespace tidemark::data {
namespace {

// The functions of the library, which is loaded at run time: nothing links against it.
struct Png {
  decltype(&::png_create_read_struct) create;
  decltype(&::png_create_info_struct) create_info;
  decltype(&::png_destroy_read_struct) destroy;
  decltype(&::png_set_read_fn) set_read;
  decltype(&::png_read_info) read_info;
  decltype(&::png_get_image_width) width;
  decltype(&::png_get_image_height) height;
  decltype(&::png_get_color_type) color_type;
  decltype(&::png_get_valid) valid;
  decltype(&::png_set_expand) expand;
  decltype(&::png_set_strip_16) strip_16;
  decltype(&::png_set_strip_alpha) strip_alpha;
  decltype(&::png_set_add_alpha) add_alpha;
  decltype(&::png_set_gray_to_rgb) gray_to_rgb;
  decltype(&::png_set_rgb_to_gray_fixed) rgb_to_gray;
  decltype(&::png_set_interlace_handling) interlace;
  decltype(&::png_read_update_info) update;
  decltype(&::png_get_channels) channels;
  decltype(&::png_read_row) read_row;

  explicit Png(const ImageCall& call) {
    const SharedLibrary library("libpng16.so.16", "libpng16-16", call);
    library.find("png_create_read_struct", create);
    library.find("png_create_info_struct", create_info);
    library.find("png_destroy_read_struct", destroy);
    library.find("png_set_read_fn", set_read);
    library.find("png_read_info", read_info);
    library.find("png_get_image_width", width);
    library.find("png_get_image_height", height);
    library.find("png_get_color_type", color_type);
    library.find("png_get_valid", valid);
    library.find("png_set_expand", expand);
    library.find("png_set_strip_16", strip_16);
    library.find("png_set_strip_alpha", strip_alpha);
    library.find("png_set_add_alpha", add_alpha);
    library.find("png_set_gray_to_rgb", gray_to_rgb);
    library.find("png_set_rgb_to_gray_fixed", rgb_to_gray);
    library.find("png_set_interlace_handling", interlace);
    library.find("png_read_update_info", update);
    library.find("png_get_channels", channels);
    library.find("png_read_row", read_row);
  }
};

const Png& library(const ImageCall& call) {
  static const Png loaded(call);
  return loaded;
}

// One file that is being read.
struct Reading {
  const Png& png;
  std::span<const std::byte> bytes;
  int64_t wanted = 0;  // Channels.
  png_structp reader = nullptr;
  png_infop info = nullptr;
  size_t at = 0;
  int64_t height = 0, width = 0, channels = 0;
  int passes = 1;
  std::jmp_buf back = {};
  char problem[128] = "";

  ~Reading() {
    if (reader != nullptr) png.destroy(&reader, &info, nullptr);
  }
};

// The file that this thread reads: callbacks cannot be told in another way before it is created.
constinit thread_local Reading* reading = nullptr;

void on_error(png_structp, png_const_charp problem) {
  std::snprintf(reading->problem, sizeof(reading->problem), "%s", problem);
  std::longjmp(reading->back, 1);
}
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp reader, png_bytep to, size_t count) {
  if (count > reading->bytes.size() - reading->at) on_error(reader, "the file is cut off");
  std::memcpy(to, reading->bytes.data() + reading->at, count);
  reading->at += count;
}

// Asks for 8 bits of the wanted channels.
void set_channels(Reading& file) {
  const Png& png = file.png;
  const int type = png.color_type(file.reader, file.info);
  const bool has_alpha =
      (type & PNG_COLOR_MASK_ALPHA) != 0 || png.valid(file.reader, file.info, PNG_INFO_tRNS) != 0;
  const bool is_grey = (type & PNG_COLOR_MASK_COLOR) == 0;
  if (file.wanted == 0) file.wanted = (is_grey ? 1 : 3) + (has_alpha ? 1 : 0);
  const bool want_alpha = file.wanted % 2 == 0, want_grey = file.wanted < 3;
  png.expand(file.reader);
  png.strip_16(file.reader);
  if (has_alpha && !want_alpha) png.strip_alpha(file.reader);
  if (!has_alpha && want_alpha) png.add_alpha(file.reader, 0xff, PNG_FILLER_AFTER);
  if (is_grey && !want_grey) png.gray_to_rgb(file.reader);
  // The weights of red and green in 1/100000; the rest is blue's.
  if (!is_grey && want_grey) png.rgb_to_gray(file.reader, PNG_ERROR_ACTION_NONE, 29900, 58700);
}

bool read_head(Reading& file) {
  if (setjmp(file.back) != 0) return false;
  const Png& png = file.png;
  file.reader = png.create(PNG_LIBPNG_VER_STRING, nullptr, on_error, on_warning);
  if (file.reader == nullptr) return false;
  file.info = png.create_info(file.reader);
  if (file.info == nullptr) return false;
  png.set_read(file.reader, nullptr, on_read);
  png.read_info(file.reader, file.info);
  file.height = png.height(file.reader, file.info);
  file.width = png.width(file.reader, file.info);
  set_channels(file);
  file.passes = png.interlace(file.reader);
  png.update(file.reader, file.info);
  file.channels = png.channels(file.reader, file.info);
  return true;
}

bool read_rows(Reading& file, std::byte* to) {
  if (setjmp(file.back) != 0) return false;
  const int64_t row_bytes = file.width * file.channels;
  for (int pass = 0; pass < file.passes; ++pass)
    for (int64_t row = 0; row < file.height; ++row)
      file.png.read_row(file.reader, reinterpret_cast<png_bytep>(to + row * row_bytes), nullptr);
  return true;
}

}  // namespace

Tensor read_png(const ImageCall& call) {
  Reading file{.png = library(call), .bytes = call.bytes, .wanted = call.channels};
  reading = &file;
  const auto refuse = [&] {
    call.refuse(cat("libpng: ", file.problem[0] != 0 ? file.problem : "no memory"),
                "the file is damaged, or no PNG");
  };
  if (!read_head(file)) refuse();
  return from_callback(
      {file.height, file.width, file.channels}, DType::u8,
      [&](std::span<std::byte> to) {
        std::memset(to.data(), 0, to.size());  // Interlaced rows are filled in several passes.
        if (!read_rows(file, to.data())) refuse();
      },
      call.at);
}

}  // namespace tidemark::data
