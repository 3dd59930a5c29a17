// The system calls by which files are read and saved, in one place, so that a test can see their
// order and make each of them fail; internal to io/.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace tidemark::io {

// As the calls of the same names: -1 and errno where they fail.
struct SystemCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  int (*lock)(int file);  // Alone, waiting for others; gone when the file is closed.
  int (*truncate)(int file, off_t bytes);
  ssize_t (*read)(int file, void* to, size_t bytes, off_t offset);
  ssize_t (*write)(int file, const void* from, size_t bytes);
  int (*sync)(int file);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
  int (*close)(int file);
};

// What all of io/ calls. A test may change it while no other thread reads or saves.
SystemCalls& system_calls();

}  // namespace tidemark::io
