// Reading files; internal to io/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tidemark/base/error.h"

namespace tidemark::io {

// The call and the file that every error of io/ begins with.
struct FileCall {
  const char* call;  // "load_npy"
  std::string path;
  Source at;

  // The file is invalid: "load_npy: x.npy, byte 10: <problem>".
  [[noreturn]] void bad(int64_t offset, const std::string& problem,
                        std::string_view remedy = {}) const;
  // The request is invalid: "load_npy: x.npy <problem>".
  [[noreturn]] void refuse(const std::string& problem, std::string_view remedy) const;
  // The system call failed: "save_npy: x.npy <problem>: No space left on device".
  [[noreturn]] void fail(const std::string& problem, int error) const;
  // A path cannot be opened: UserError if the path is wrong, else DeviceError.
  [[noreturn]] void cannot_open(const std::string& problem, int error,
                                std::string_view remedy) const;
};

// A read-only mapping of a file, until the last handle is gone. If another process truncates the
// file, reading it kills this process (SIGBUS).
class Mapping {
 public:
  Mapping(const std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const std::byte* data() const { return data_; }
  // Drops the pages that lie wholly in [0, end); when read again they come from the file.
  void forget(int64_t begin, int64_t end) const;

 private:
  const std::byte* data_;
  int64_t bytes_;
};

// An existing file, open for reading.
class InputFile {
 public:
  explicit InputFile(FileCall call);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const FileCall& call() const { return call_; }
  // Its size when it was opened.
  int64_t bytes() const { return bytes_; }
  // Exactly these bytes.
  void read(int64_t offset, std::span<std::byte> to) const;
  // The whole file.
  std::shared_ptr<const Mapping> map() const;
  // A UserError if the size of the file has changed since it was opened.
  void check_size() const;

 private:
  FileCall call_;
  int file_;
  int64_t bytes_ = 0;
};

}  // namespace tidemark::io
