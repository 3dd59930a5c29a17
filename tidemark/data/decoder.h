// What the decoders of images share. Internal to data/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tidemark/api/tensor.h"

namespace tidemark::data {

// The bytes of a file and what is asked for; `call` begins every error.
struct ImageCall {
  const char* call;  // "decode_png"
  std::span<const std::byte> bytes;
  int64_t channels = 0;  // Those of the file, or the number that is wanted.
  Source at;

  [[noreturn]] void refuse(const std::string& problem, std::string_view remedy = {}) const;
};

// Functions of a shared library of the system, which is loaded when first asked for. A UserError
// that names the package if it is not there.
class SharedLibrary {
 public:
  SharedLibrary(const char* file, const char* package, const ImageCall& call);
  template <class F>
  void find(const char* name, F*& function) const {
    function = reinterpret_cast<F*>(address(name));
  }

 private:
  void* address(const char* name) const;
  void* handle_;
  const char* file_;
  const ImageCall& call_;
};

Tensor read_png(const ImageCall& call);
Tensor read_jpeg(const ImageCall& call);

}  // namespace tidemark::data
