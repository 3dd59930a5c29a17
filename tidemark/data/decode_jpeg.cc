// JPEG by libjpeg-turbo. Its errors leave through longjmp: nothing with a destructor lives in the
// functions between the jump and its target.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include "tidemark/api/create.h"
#include "tidemark/data/decoder.h"

namespace tidemark::data {
namespace {

// The functions of the library, which is loaded at run time: nothing links against it.
struct Jpeg {
  decltype(&::jpeg_std_error) std_error;
  decltype(&::jpeg_CreateDecompress) create;
  decltype(&::jpeg_destroy_decompress) destroy;
  decltype(&::jpeg_mem_src) mem_src;
  decltype(&::jpeg_read_header) read_header;
  decltype(&::jpeg_start_decompress) start;
  decltype(&::jpeg_read_scanlines) read_rows;
  decltype(&::jpeg_finish_decompress) finish;

  explicit Jpeg(const ImageCall& call) {
    const SharedLibrary library("libjpeg.so.62", "libjpeg62-turbo", call);
    library.find("jpeg_std_error", std_error);
    library.find("jpeg_CreateDecompress", create);
    library.find("jpeg_destroy_decompress", destroy);
    library.find("jpeg_mem_src", mem_src);
    library.find("jpeg_read_header", read_header);
    library.find("jpeg_start_decompress", start);
    library.find("jpeg_read_scanlines", read_rows);
    library.find("jpeg_finish_decompress", finish);
  }
};

const Jpeg& library(const ImageCall& call) {
  static const Jpeg loaded(call);
  return loaded;
}

// One file that is being read.
struct Reading {
  const Jpeg& jpeg;
  std::span<const std::byte> bytes;
  int64_t wanted = 0;  // Channels.
  jpeg_error_mgr errors = {};
  jpeg_decompress_struct reader = {};
  bool is_created = false;
  std::jmp_buf back = {};
  char problem[JMSG_LENGTH_MAX] = "";

  ~Reading() {
    if (is_created) jpeg.destroy(&reader);
  }
};

void on_error(j_common_ptr reader) {
  auto& file = *static_cast<Reading*>(reader->client_data);
  reader->err->format_message(reader, file.problem);
  std::longjmp(file.back, 1);
}
// A file that is cut off is only a warning of the library, which makes the rest of it up.
void on_message(j_common_ptr reader, int level) {
  if (level < 0) on_error(reader);
}

bool read_head(Reading& file) {
  if (setjmp(file.back) != 0) return false;
  jpeg_decompress_struct& reader = file.reader;
  reader.err = file.jpeg.std_error(&file.errors);
  file.errors.error_exit = on_error;
  file.errors.emit_message = on_message;
  reader.client_data = &file;
  file.jpeg.create(&reader, JPEG_LIB_VERSION, sizeof(reader));
  file.is_created = true;
  file.jpeg.mem_src(&reader, reinterpret_cast<const unsigned char*>(file.bytes.data()),
                    file.bytes.size());
  file.jpeg.read_header(&reader, TRUE);
  if (file.wanted == 0) file.wanted = reader.num_components == 1 ? 1 : 3;
  reader.out_color_space = file.wanted == 1 ? JCS_GRAYSCALE : JCS_RGB;
  // The exact transform and smooth chroma, whatever the library's default is.
  reader.dct_method = JDCT_ISLOW;
  reader.do_fancy_upsampling = TRUE;
  file.jpeg.start(&reader);
  return true;
}

bool read_rows(Reading& file, std::byte* to) {
  if (setjmp(file.back) != 0) return false;
  const size_t row_bytes = size_t{file.reader.output_width} * static_cast<size_t>(file.wanted);
  while (file.reader.output_scanline < file.reader.output_height) {
    auto* row = reinterpret_cast<JSAMPROW>(to + file.reader.output_scanline * row_bytes);
    file.jpeg.read_rows(&file.reader, &row, 1);
  }
  file.jpeg.finish(&file.reader);
  return true;
}

}  // namespace

Tensor read_jpeg(const ImageCall& call) {
  Reading file{.jpeg = library(call), .bytes = call.bytes, .wanted = call.channels};
  const auto refuse = [&] {
    call.refuse(cat("libjpeg: ", file.problem), "the file is damaged, or no JPEG that it reads");
  };
  if (!read_head(file)) refuse();
  const Shape shape{int64_t{file.reader.output_height}, int64_t{file.reader.output_width},
                    file.wanted};
  return from_callback(
      shape, DType::u8,
      [&](std::span<std::byte> to) {
        if (!read_rows(file, to.data())) refuse();
      },
      call.at);
}

}  // namespace tidemark::data
