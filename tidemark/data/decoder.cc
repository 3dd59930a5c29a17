#include "tidemark/data/decoder.h"

#include <dlfcn.h>

namespace tidemark::data {

void ImageCall::refuse(const std::string& problem, std::string_view remedy) const {
  throw UserError(cat(call, ": ", problem), at, std::string(remedy));
}

SharedLibrary::SharedLibrary(const char* file, const char* package, const ImageCall& call)
    : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)), file_(file), call_(call) {
  if (handle_ == nullptr)
    call.refuse(cat(file, " is not on this system"), cat("install the package ", package));
}

void* SharedLibrary::address(const char* name) const {
  void* const found = dlsym(handle_, name);
  if (found == nullptr) call_.refuse(cat(file_, " has no ", name));
  return found;
}

#ifndef TIDEMARK_PNG
Tensor read_png(const ImageCall& call) {
  call.refuse("this build of Tidemark has no PNG decoder, since png.h was not found",
              "install libpng-dev and build again with -DTIDEMARK_IMAGES=ON");
}
#endif
#ifndef TIDEMARK_JPEG
Tensor read_jpeg(const ImageCall& call) {
  call.refuse("this build of Tidemark has no JPEG decoder, since jpeglib.h was not found",
              "install libjpeg62-turbo-dev and build again with -DTIDEMARK_IMAGES=ON");
}
#endif

}  // namespace tidemark::data
