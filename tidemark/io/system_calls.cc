#include "tidemark/io/system_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>

namespace tidemark::io {

SystemCalls& system_calls() {
  static constinit SystemCalls calls = {
      .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); },
      .lock = [](int file) { return ::flock(file, LOCK_EX); },
      .truncate = ::ftruncate,
      .read = ::pread,
      .write = ::write,
      .sync = ::fsync,
      .rename = ::rename,
      .unlink = ::unlink,
      .close = ::close,
  };
  return calls;
}

}  // namespace tidemark::io
