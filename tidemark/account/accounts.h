// The bytes that functions and tapes hold, by the source line that made them: exact counters for
// the growth detector. The accounts of tensors are in device/account.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"

namespace tidemark::detail {

// The bytes that a tape holds.
class HoldsBytes {
 public:
  virtual int64_t saved_bytes() const = 0;

 protected:
  ~HoldsBytes() = default;
};

// What the functions made on one line hold now, and what they have done since the start.
struct FunctionSums {
  int64_t functions = 0;
  int64_t traces = 0;
  int64_t bytes = 0;           // Of traces, programs and plans.
  int64_t limit_bytes = 0;     // The sum of their cache limits.
  int64_t captured = 0;        // Tensors captured by their programs,
  int64_t captured_bytes = 0;  // and their bytes.
  int64_t traced = 0;          // Traces since the start, dropped ones included,
  int64_t code_bytes = 0;      // and the machine code made for them.
};
struct FunctionLine {
  Source at = Source::none();
  std::string name;    // Of the first function made there.
  std::string reason;  // The reason of the last trace.
  FunctionSums sums;
};
// One for each line that ever made a function, in order of first use.
std::vector<FunctionLine> function_lines();
// Only the sums; the list grows only when new lines appear.
void read_function_lines(std::vector<FunctionSums>& by_number);

// One function's share of its line's account, removed when the function is destroyed.
class FunctionAccount {
 public:
  FunctionAccount(const std::string& name, Source at, Bytes limit);
  ~FunctionAccount();
  FunctionAccount(const FunctionAccount&) = delete;
  FunctionAccount& operator=(const FunctionAccount&) = delete;

  // Updates what the function holds; `traced` and `code_bytes` are added to the line's.
  void set(const FunctionSums& now);
  void set_reason(const std::string& reason);

 private:
  void add(const FunctionSums& sums, int64_t sign);

  size_t line_;
  FunctionSums now_;
};

// What the tapes made on one line hold. Tapes of library code have no line.
struct TapeSums {
  int64_t tapes = 0;
  int64_t records = 0;  // Recorded ops.
};
struct TapeLine {
  Source at = Source::none();
  TapeSums sums;
  int64_t saved_bytes = 0;  // Of tapes of the calling thread; -1: other threads have tapes too.
};
std::vector<TapeLine> tape_lines();
void read_tape_lines(std::vector<TapeSums>& by_number);

class TapeAccount {
 public:
  TapeAccount(const HoldsBytes& tape, Source at);
  ~TapeAccount();
  TapeAccount(const TapeAccount&) = delete;
  TapeAccount& operator=(const TapeAccount&) = delete;

  void set_records(size_t records) {
    records_.store(static_cast<int64_t>(records), std::memory_order_relaxed);
  }
  int64_t records() const { return records_.load(std::memory_order_relaxed); }
  // -1 on a thread that is not the tape's.
  int64_t saved_bytes() const;
  size_t line() const { return line_; }

 private:
  friend struct AllTapes;
  const HoldsBytes& tape_;
  const void* thread_;
  size_t line_ = 0;
  std::atomic<int64_t> records_{0};
  TapeAccount* previous_ = nullptr;
  TapeAccount* next_ = nullptr;
};

}  // namespace tidemark::detail
