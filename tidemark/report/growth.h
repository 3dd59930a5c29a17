// Finds what grows from step to step of a loop, and says which line made it.
//
//   td::StepMonitor monitor;
//   for (const Batch& batch : batches) {
//     step(batch);
//     monitor.step();
//   }
//   std::cout << monitor.report();
//
// Growing means: the least of each of three successive windows is more than the most of the window
// before. Windows double: steps 25 to 32, 49 to 64, 97 to 128, and so on. The steps between two of
// them are a gap in which what grows once in many steps has time to. What goes up and down, fills a
// buffer, or comes once with the first step is not growing.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "tidemark/base/text.h"
#include "tidemark/report/growth_kind.h"

namespace tidemark {

const char* name(Growth growth);

struct GrowthRow {
  // "tensors", "views", "traces", "code", "tape", "cache", "buffer", "outside Tidemark".
  std::string kind;
  Growth growth = Growth::flat;
  std::string filled;  // Of what fills: "12 of 1000".
  std::string line;    // That made it; empty where it is nobody's in particular.
  std::string what;    // "outputs f32[100, 100]", "function \"step\"".
  int64_t count = 0;   // Tensors, functions, recorded ops: alive now.
  Bytes bytes;
  double count_per_step = 0, bytes_per_step = 0;
  std::string holders;  // "50 handles, 3 views"
};

// What the functions made on one line did while they were watched.
struct TraceRow {
  std::string name, line;
  int64_t traced = 0;  // How often,
  std::string reason;  // and why the last time.
  int64_t captured = 0;
  Bytes captured_bytes;  // Of tensors of the outside that they keep alive.
};

// At the end of a step.
struct WatchPoint {
  int64_t step = 0;
  Bytes in_use;
};

struct WatchReport {
  int64_t steps = 0;
  // What tensors held: of every step, or of every 2nd, 4th, ... so that they are 512 at most, and
  // of the last one.
  std::vector<WatchPoint> history;
  std::vector<GrowthRow> rows;   // What is not flat, then cache, code and the rest of the process.
  std::vector<TraceRow> traces;  // Functions that were traced, or that hold captured tensors.
  int64_t flat_lines = 0;        // Lines that hold tensors and do not grow,
  Bytes flat_bytes;              // and what they hold.

  // Growing if anything of Tidemark's is; else filling, cannot tell yet, or flat.
  Growth verdict() const;
};
std::ostream& operator<<(std::ostream& out, const WatchReport& report);

// Watches from the moment it is made. A step costs about as much as a tensor for each line that
// makes tensors; the monitor itself is flat. Exact if no other thread makes tensors just then.
class StepMonitor {
 public:
  StepMonitor();
  ~StepMonitor();
  StepMonitor(const StepMonitor&) = delete;
  StepMonitor& operator=(const StepMonitor&) = delete;

  // A step of the loop has ended.
  void step();
  WatchReport report() const;

 private:
  struct Watched;
  std::unique_ptr<Watched> watched_;
};

namespace memory {

// Runs the body this many times and says what grew.
WatchReport watch(int64_t steps, const std::function<void()>& body);

}  // namespace memory
}  // namespace tidemark
