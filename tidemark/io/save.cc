#include "tidemark/io/save.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "tidemark/io/system_calls.h"

namespace tidemark::io {
namespace {

// Linux writes at most 2 GiB at once.
constexpr size_t kMostAtOnce = size_t{1} << 30;

// Again for as long as a signal comes between.
template <class F>
auto uninterrupted(F f) {
  auto result = f();
  while (result < 0 && errno == EINTR) result = f();
  return result;
}

// A file that links name is replaced where it lies, and the links stay.
std::string behind_links(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real != nullptr ? std::string(real.get()) : path;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

SavedFile::SavedFile(FileCall call)
    : call_(std::move(call)), path_(behind_links(call_.path)), temporary_(path_ + ".saving") {
  if (call_.path.empty())
    throw UserError(cat(call_.call, ": the path is empty"), call_.at, "name the file");
  struct stat before = {};
  const bool exists = ::stat(path_.c_str(), &before) == 0;
  if (exists && !S_ISREG(before.st_mode))
    call_.refuse("is there and is no file with bytes", "name a regular file");
  open_temporary();
  // The new file is as readable as the old one; where that cannot be, it is as others are made.
  if (exists) (void)::fchmod(file_, before.st_mode & 07777);
}

void SavedFile::open_temporary() {
  const SystemCalls& system = system_calls();
  while (true) {
    file_ = uninterrupted([&] {
      return system.open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    });
    if (file_ < 0) {
      call_.cannot_open(cat("cannot be saved: ", temporary_), errno,
                        "name a file in a folder that is there and may be written to");
    }
    // Where locks are not to be had, two that save at once are not told apart.
    (void)uninterrupted([&] { return system.lock(file_); });
    // Who held the lock before may have given the file its name, or taken it away.
    struct stat opened = {}, named = {};
    const bool current = ::fstat(file_, &opened) == 0 && ::lstat(temporary_.c_str(), &named) == 0 &&
                         same_file(opened, named);
    if (current) break;
    system.close(file_);
  }
  if (uninterrupted([&] { return system.truncate(file_, 0); }) == 0) return;
  const int error = errno;
  system.unlink(temporary_.c_str());
  system.close(file_);
  call_.fail("cannot be saved (the file is as it was): truncate", error);
}

SavedFile::~SavedFile() {
  if (!committed_) system_calls().unlink(temporary_.c_str());
  // What could fail has been on the disk since the commit; the lock goes here.
  system_calls().close(file_);
}

void SavedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] {
      return system_calls().write(file_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    });
    if (written <= 0) {
      call_.fail(cat("cannot be saved (the file is as it was): write at byte ", bytes_),
                 written == 0 ? ENOSPC : errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
    bytes_ += written;
  }
}

void SavedFile::commit() {
  const SystemCalls& system = system_calls();
  // Not tried again after an error: the system may have dropped the pages it could not write, and
  // would then say that all is well.
  if (uninterrupted([&] { return system.sync(file_); }) != 0)
    call_.fail("cannot be saved (the file is as it was): fsync", errno);
  if (uninterrupted([&] { return system.rename(temporary_.c_str(), path_.c_str()); }) != 0)
    call_.fail("cannot be saved (the file is as it was): rename", errno);
  committed_ = true;
  sync_folder();
}

void SavedFile::sync_folder() const {
  const SystemCalls& system = system_calls();
  constexpr const char* kUnsure =
      "is saved, but a loss of power may bring back what was there: fsync of its folder";
  const int folder = uninterrupted(
      [&] { return system.open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (folder < 0) call_.fail(kUnsure, errno);
  const int result = uninterrupted([&] { return system.sync(folder); });
  const int error = errno;
  system.close(folder);
  if (result != 0) call_.fail(kUnsure, error);
}

}  // namespace tidemark::io
