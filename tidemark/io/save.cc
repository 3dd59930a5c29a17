#include "tidemark/io/save.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "tidemark/io/system_calls.h"

namespace tidemark::io {
namespace {

// Linux writes at most 2 GiB at once.
constexpr size_t kMostAtOnce = size_t{1} << 30;

// Repeats the call while signals interrupt it.
template <class F>
auto uninterrupted(F f) {
  auto result = f();
  while (result < 0 && errno == EINTR) result = f();
  return result;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The target of a symbolic link; empty if the path is not one.
std::optional<std::string> link_target(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  target.resize(static_cast<size_t>(length));
  return target.starts_with('/') ? target : folder_of(path) + "/" + target;
}

// The file behind symbolic links, whether or not it exists. The links are kept.
std::string behind_links(const FileCall& call) {
  constexpr int kMostLinks = 40;  // As Linux follows.
  std::string path = call.path;
  for (int links = 0; links <= kMostLinks; ++links) {
    const std::optional<std::string> target = link_target(path);
    if (!target) return path;
    path = *target;
  }
  call.cannot_open("cannot be saved", ELOOP, "name a file, or mend the symbolic links");
}

// The temporary may only be overwritten if it can be a leftover of a save: a regular file with one
// name.
bool may_be_written_over(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_nlink == 1;
}

// Writes all bytes, by several calls if needed, and counts them. `failed` throws.
template <class Failed>
void write_all(int file, std::span<const std::byte> bytes, int64_t& count, const Failed& failed) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] {
      return system_calls().write(file, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    });
    if (written <= 0) failed(written == 0 ? ENOSPC : errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
    count += written;
  }
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

SavedFile::SavedFile(FileCall call)
    : call_(std::move(call)),
      path_(behind_links(call_)),
      temporary_(path_ + ".saving"),
      folder_(folder_of(path_)) {
  if (call_.path.empty())
    throw UserError(cat(call_.call, ": the path is empty"), call_.at, "name the file");
  struct stat before = {};
  const bool exists = ::stat(path_.c_str(), &before) == 0;
  if (exists && !S_ISREG(before.st_mode))
    call_.refuse("exists and is not a regular file", "name a regular file");
  open_temporary();
  // The new file gets the permissions of the old one, if possible.
  if (exists) (void)::fchmod(file_, before.st_mode & 07777);
}

void SavedFile::open_temporary() {
  const SystemCalls& system = system_calls();
  struct stat opened = {}, named = {};
  while (true) {
    if (::lstat(temporary_.c_str(), &named) == 0 && !may_be_written_over(named)) refuse_temporary();
    // Non-blocking: a pipe created meanwhile would wait for a reader.
    file_ = uninterrupted([&] {
      return system.open(temporary_.c_str(),
                         O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    });
    if (file_ < 0) {
      call_.cannot_open(cat("cannot be saved: ", temporary_), errno,
                        "name a file in a folder that is there and may be written to");
    }
    // On file systems without locks, concurrent saves are not serialised.
    (void)uninterrupted([&] { return system.lock(file_); });
    // The previous holder of the lock may have renamed or removed the file.
    const bool current = ::fstat(file_, &opened) == 0 && ::lstat(temporary_.c_str(), &named) == 0 &&
                         same_file(opened, named);
    if (current) break;
    system.close(file_);
  }
  if (!may_be_written_over(opened)) {
    system.close(file_);
    refuse_temporary();
  }
  if (uninterrupted([&] { return system.truncate(file_, 0); }) == 0) return;
  const int error = errno;
  system.unlink(temporary_.c_str());
  system.close(file_);
  call_.fail("cannot be saved (the file is unchanged): truncate", error);
}

void SavedFile::refuse_temporary() const {
  call_.refuse(
      cat("cannot be saved: ", temporary_, " is in the way, and is a link or not a regular file"),
      "remove it, or save under another name");
}

SavedFile::~SavedFile() {
  if (!committed_) system_calls().unlink(temporary_.c_str());
  // Everything is on the disk since the commit; closing the file releases the lock.
  system_calls().close(file_);
}

void SavedFile::write(std::span<const std::byte> bytes) {
  write_all(file_, bytes, bytes_, [&](int error) {
    call_.fail(cat("cannot be saved (the file is unchanged): write at byte ", bytes_), error);
  });
}

void SavedFile::commit() {
  const SystemCalls& system = system_calls();
  // Not repeated after an error: the system may have dropped the pages it could not write, and a
  // second fsync would succeed.
  if (uninterrupted([&] { return system.sync(file_); }) != 0)
    call_.fail("cannot be saved (the file is unchanged): fsync", errno);
  if (uninterrupted([&] { return system.rename(temporary_.c_str(), path_.c_str()); }) != 0)
    call_.fail("cannot be saved (the file is unchanged): rename", errno);
  committed_ = true;
  sync_folder();
}

void SavedFile::sync_folder() const {
  const SystemCalls& system = system_calls();
  constexpr const char* kUnsure =
      "is saved, but a power failure may bring back the old file: fsync of its folder";
  const int folder = uninterrupted(
      [&] { return system.open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (folder < 0) call_.fail(kUnsure, errno);
  const int result = uninterrupted([&] { return system.sync(folder); });
  const int error = errno;
  system.close(folder);
  if (result != 0) call_.fail(kUnsure, error);
}

namespace {

bool is_stream(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 &&
         (S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode));
}

void write_to_stream(const FileCall& call, std::string_view text) {
  const SystemCalls& system = system_calls();
  const int file =
      uninterrupted([&] { return system.open(call.path.c_str(), O_WRONLY | O_CLOEXEC, 0); });
  if (file < 0)
    call.cannot_open("cannot be written to", errno, "name a file that may be written to");
  int64_t count = 0;
  try {
    write_all(file, std::as_bytes(std::span(text)), count,
              [&](int error) { call.fail(cat("cannot be written to at byte ", count), error); });
  } catch (...) {
    system.close(file);
    throw;
  }
  if (system.close(file) != 0) call.fail("cannot be written to", errno);
}

}  // namespace

void save_text(const FileCall& call, std::string_view text) {
  if (is_stream(call.path)) return write_to_stream(call, text);
  SavedFile file(call);
  file.write(text);
  file.commit();
}

}  // namespace tidemark::io
