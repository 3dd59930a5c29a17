// Files as io/ reads them; internal to io/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tidemark/base/error.h"

namespace tidemark::io {

// Who asks for which file: what every error of io/ begins with.
struct FileCall {
  const char* call;  // "load_npy"
  std::string path;
  Source at;

  // What the file holds is wrong: "load_npy: x.npy, byte 10: <problem>".
  [[noreturn]] void bad(int64_t offset, const std::string& problem,
                        std::string_view remedy = {}) const;
  // The user asks for what cannot be: "load_npy: x.npy <problem>".
  [[noreturn]] void refuse(const std::string& problem, std::string_view remedy) const;
  // The machine refuses: "save_npy: x.npy <problem>: No space left on device".
  [[noreturn]] void fail(const std::string& problem, int error) const;
  // A path that cannot be opened: the user's fault where it is a wrong one, else the machine's.
  [[noreturn]] void cannot_open(const std::string& problem, int error,
                                std::string_view remedy) const;
};

// The bytes of a file where the system put them, until the last handle is gone. Read-only. A file
// that another process truncates has no pages to show, and the system then ends this one (SIGBUS).
class Mapping {
 public:
  Mapping(const std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  const std::byte* data() const { return data_; }
  // Lets the pages go that lie wholly in [0, end): read again they come from the file.
  void forget(int64_t begin, int64_t end) const;

 private:
  const std::byte* data_;
  int64_t bytes_;
};

// A file that is there, open for reading.
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
  // A UserError where the file is no longer as large as when it was opened.
  void check_size() const;

 private:
  FileCall call_;
  int file_;
  int64_t bytes_ = 0;
};

}  // namespace tidemark::io
