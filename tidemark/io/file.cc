#include "tidemark/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "tidemark/io/system_calls.h"

namespace tidemark::io {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr std::string_view kOthersWrite =
    "another process writes to it: wait for it, or have it save under a new name and rename";

int64_t size_of_file(int file, const FileCall& call) {
  struct stat status = {};
  if (::fstat(file, &status) != 0) call.fail("its size cannot be read", errno);
  if (!S_ISREG(status.st_mode)) call.refuse("is not a regular file", "name a regular file");
  return status.st_size;
}

}  // namespace

void FileCall::bad(int64_t offset, const std::string& problem, std::string_view remedy) const {
  throw UserError(cat(call, ": ", path, ", byte ", offset, ": ", problem), at, remedy);
}

void FileCall::refuse(const std::string& problem, std::string_view remedy) const {
  throw UserError(cat(call, ": ", path, " ", problem), at, remedy);
}

void FileCall::fail(const std::string& problem, int error) const {
  throw DeviceError(cat(call, ": ", path, " ", problem, ": ", std::strerror(error)), at);
}

void FileCall::cannot_open(const std::string& problem, int error, std::string_view remedy) const {
  constexpr int kWrongPath[] = {ENOENT, EACCES, EPERM, ENOTDIR, EISDIR, EROFS, ENAMETOOLONG, ELOOP};
  if (std::find(std::begin(kWrongPath), std::end(kWrongPath), error) == std::end(kWrongPath))
    fail(problem, error);
  refuse(cat(problem, ": ", std::strerror(error)), remedy);
}

Mapping::~Mapping() { ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(bytes_)); }

void Mapping::forget(int64_t begin, int64_t end) const {
  begin = (begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  end = end / kPageBytes * kPageBytes;
  if (begin >= end) return;
  // Only a hint: if it is ignored the pages stay resident longer.
  (void)::madvise(const_cast<std::byte*>(data_) + begin, static_cast<size_t>(end - begin),
                  MADV_DONTNEED);
}

InputFile::InputFile(FileCall call) : call_(std::move(call)) {
  // Non-blocking: opening a pipe would wait for its writer before it can be refused.
  do {
    file_ = system_calls().open(call_.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  } while (file_ < 0 && errno == EINTR);
  if (file_ < 0) call_.cannot_open("cannot be opened", errno, "give the path of a file");
  try {
    bytes_ = size_of_file(file_, call_);
  } catch (...) {
    system_calls().close(file_);
    throw;
  }
}

InputFile::~InputFile() { system_calls().close(file_); }

void InputFile::read(int64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = system_calls().read(file_, to.data(), to.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) call_.fail(cat("cannot be read at byte ", offset), errno);
    if (got == 0)
      call_.bad(offset, cat("the file ends here, it had ", bytes_, " bytes when it was opened"),
                kOthersWrite);
    to = to.subspan(static_cast<size_t>(got));
    offset += got;
  }
}

std::shared_ptr<const Mapping> InputFile::map() const {
  void* const data = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ, MAP_PRIVATE, file_, 0);
  if (data == MAP_FAILED) {
    call_.fail("cannot be mapped ({.copy = true} reads it into memory of its own)", errno);
  }
  return std::make_shared<Mapping>(static_cast<const std::byte*>(data), bytes_);
}

void InputFile::check_size() const {
  const int64_t now = size_of_file(file_, call_);
  if (now == bytes_) return;
  call_.refuse(cat("had ", bytes_, " bytes when it was opened and has ", now), kOthersWrite);
}

}  // namespace tidemark::io
