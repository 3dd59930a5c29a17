// Atomic writing of files, safe also against power failure; internal to io/.
//
// Bytes go to a temporary file beside the target and reach the disk (fsync). Then it is renamed to
// the target's name, and that reaches the disk too (fsync of the folder). Whatever fails, the file
// is either unchanged or completely new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tidemark/io/file.h"

namespace tidemark::io {

class SavedFile {
 public:
  // Waits if another thread or process saves the same file.
  explicit SavedFile(FileCall call);
  // Without a commit, nothing was saved.
  ~SavedFile();
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // How many bytes were written.
  int64_t bytes() const { return bytes_; }
  // From now on the file has the new content.
  void commit();

 private:
  void open_temporary();
  [[noreturn]] void refuse_temporary() const;
  void sync_folder() const;

  FileCall call_;
  std::string path_;  // With symbolic links resolved.
  std::string
      temporary_;  // Always the same name, so that the file of a killed process is overwritten.
  std::string folder_;  // Computed early: after the commit nothing may allocate.
  int file_ = -1;
  int64_t bytes_ = 0;
  bool committed_ = false;
};

// Writes a file, or to a pipe or terminal.
void save_text(const FileCall& call, std::string_view text);

}  // namespace tidemark::io
