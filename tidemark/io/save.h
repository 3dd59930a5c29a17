// Files as io/ writes them: whole or not at all, also where the power fails; internal to io/.
//
// Bytes go to a temporary beside the file, reach the disk (fsync), and only then take the file's
// name (rename), which reaches the disk too (fsync of the folder). Whatever fails, the file is as
// it was before, or all new.
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
  // Waits where another thread or process saves the same file.
  explicit SavedFile(FileCall call);
  // Without a commit: nothing was saved.
  ~SavedFile();
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // How many bytes were written.
  int64_t bytes() const { return bytes_; }
  // The file is what was written.
  void commit();

 private:
  void open_temporary();
  [[noreturn]] void refuse_temporary() const;
  void sync_folder() const;

  FileCall call_;
  std::string path_;       // Behind symbolic links.
  std::string temporary_;  // Always the same name: what a killed process left is written over.
  std::string folder_;     // Made before the commit, after which nothing may want for memory.
  int file_ = -1;
  int64_t bytes_ = 0;
  bool committed_ = false;
};

// A file, or what a pipe or a terminal gets.
void save_text(const FileCall& call, std::string_view text);

}  // namespace tidemark::io
