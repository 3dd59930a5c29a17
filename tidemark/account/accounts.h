// What functions and tapes hold, by the line that made them: exact counters for whoever looks for
// what grows. Beside those of tensors, which device/account.h has.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tidemark/base/source.h"
#include "tidemark/base/text.h"

namespace tidemark::detail {

// What a tape holds, as whoever counts it sees it.
class HoldsBytes {
 public:
  virtual int64_t saved_bytes() const = 0;

 protected:
  ~HoldsBytes() = default;
};

// What the functions made on one line hold now, and what they did since the start.
struct FunctionSums {
  int64_t functions = 0;
  int64_t traces = 0;
  int64_t bytes = 0;           // Of traces, programs and plans.
  int64_t limit_bytes = 0;     // What their caches may hold together.
  int64_t captured = 0;        // Tensors of the outside that their programs point at,
  int64_t captured_bytes = 0;  // and their bytes.
  int64_t traced = 0;          // Since the start, those dropped included,
  int64_t code_bytes = 0;      // and the machine code made for them.
};
struct FunctionLine {
  Source at = Source::none();
  std::string name;    // Of the first one made there.
  std::string reason;  // Why one was traced last.
  FunctionSums sums;
};
// One for each line that ever made a function, in the order they were met.
std::vector<FunctionLine> function_lines();
// The sums alone; the list grows with the lines, and only then.
void read_function_lines(std::vector<FunctionSums>& by_number);

// One function's part of its line, taken off when it goes.
class FunctionAccount {
 public:
  FunctionAccount(const std::string& name, Source at, Bytes limit);
  ~FunctionAccount();
  FunctionAccount(const FunctionAccount&) = delete;
  FunctionAccount& operator=(const FunctionAccount&) = delete;

  // What it holds now; `traced` and `code_bytes` are added to those of the line.
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
  int64_t records = 0;  // Ops whose gradient can be asked for.
};
struct TapeLine {
  Source at = Source::none();
  TapeSums sums;
  int64_t saved_bytes = 0;  // By tapes of the thread that asks; -1: there are others.
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
