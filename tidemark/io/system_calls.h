// The system calls that io/ uses, in one place, so that a test can observe their order and make
// each of them fail. Internal to io/.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace tidemark::io {

// As the calls of the same names: -1 and errno on failure.
struct SystemCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  int (*lock)(int file);  // Exclusive; waits; released when the file is closed.
  int (*truncate)(int file, off_t bytes);
  ssize_t (*read)(int file, void* to, size_t bytes, off_t offset);
  ssize_t (*write)(int file, const void* from, size_t bytes);
  int (*sync)(int file);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
  int (*close)(int file);
};

// Used by all of io/. A test may change it while no other thread uses io/.
SystemCalls& system_calls();

}  // namespace tidemark::io
