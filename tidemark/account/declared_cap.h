// Declares the final size of a buffer that fills up and then stays full.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tidemark/tensor/tensor.h"

namespace tidemark::memory {

// LineTotal by an object that stores up to `cap` tensors, such as a shuffle buffer or a cache.
// While it fills, a StepMonitor reports "filling (12 of 1000)" instead of growth.
//
//   td::memory::DeclaredCap cap("shuffle buffer", 1000);
//   buffer.push_back(x), cap.add(x);
class DeclaredCap {
 public:
  DeclaredCap(std::string name, int64_t cap);
  ~DeclaredCap();
  DeclaredCap(const DeclaredCap&) = delete;
  DeclaredCap& operator=(const DeclaredCap&) = delete;

  // Records that a tensor was added to the buffer, or removed.
  void add(const Tensor& tensor, Source at = Source::here());
  void remove(const Tensor& tensor, Source at = Source::here());

 private:
  friend struct DeclaredCaps;
  struct LineTotal {
    int64_t count = 0, bytes = 0;
  };
  void change(const Tensor& tensor, int64_t sign, Source at);

  std::string name_;
  int64_t cap_;
  std::map<uint32_t, LineTotal> by_line_;  // By the number of the line: device/account.h.
};

}  // namespace tidemark::memory

namespace tidemark::detail {

// One buffer, and one line of what buffers hold.
struct CapReport {
  std::string name;
  int64_t count = 0, bytes = 0, cap = 0;
};
struct CappedLine {
  uint32_t line = 0;
  int64_t count = 0, bytes = 0;
};
std::vector<CapReport> declared_caps();
// The list is emptied first; it keeps its room.
void read_capped_lines(std::vector<CappedLine>& lines);

}  // namespace tidemark::detail
