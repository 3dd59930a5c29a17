// A buffer that fills up to a size it declares, and stays there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tidemark/tensor/tensor.h"

namespace tidemark::memory {

// Held by what keeps up to `cap` tensors: a shuffle buffer, a cache of last results. While it
// fills, a StepMonitor says "filling (12 of 1000)" and does not take it for growth.
//
//   td::memory::DeclaredCap cap("shuffle buffer", 1000);
//   buffer.push_back(x), cap.add(x);
class DeclaredCap {
 public:
  DeclaredCap(std::string name, int64_t cap);
  ~DeclaredCap();
  DeclaredCap(const DeclaredCap&) = delete;
  DeclaredCap& operator=(const DeclaredCap&) = delete;

  // A tensor it holds from now on, and one that it no longer holds.
  void add(const Tensor& tensor, Source at = Source::here());
  void remove(const Tensor& tensor, Source at = Source::here());

 private:
  friend struct DeclaredCaps;
  struct Held {
    int64_t count = 0, bytes = 0;
  };
  void change(const Tensor& tensor, int64_t sign, Source at);

  std::string name_;
  int64_t cap_;
  std::map<uint32_t, Held> by_line_;  // By the number of the line: device/account.h.
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
