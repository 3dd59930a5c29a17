// Detects memory that grows from step to step of a loop, and the source line that allocates it.
//
//   td::StepMonitor monitor;
//   for (const Batch& batch : batches) {
//     step(batch);
//     monitor.step();
//   }
//   std::cout << monitor.report();
//
// Growing means: in three successive windows, the minimum of each exceeds the maximum of the window
// before. Windows double in length: steps 25 to 32, 49 to 64, 97 to 128, and so on. The gaps
// between them give slow growth, once in many steps, time to show. Memory that goes up and down,
// fills a buffer, or is allocated once in the first step is not growing.
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
  std::string filled;  // For a buffer that fills: "12 of 1000".
  std::string line;    // The line that allocated it; empty if there is none.
  std::string what;    // "outputs f32[100, 100]", "function \"step\"".
  int64_t count = 0;   // The number of live tensors, functions or recorded ops.
  Bytes bytes;
  double count_per_step = 0, bytes_per_step = 0;
  std::string holders;  // "50 handles, 3 views"
};

// What the functions made on one line did while the loop was watched.
struct TraceRow {
  std::string name, line;
  int64_t traced = 0;  // How often they were traced,
  std::string reason;  // and why the last time.
  int64_t captured = 0;
  Bytes captured_bytes;  // Of captured tensors that they keep alive.
};

// At the end of a step.
struct WatchPoint {
  int64_t step = 0;
  Bytes in_use;
};

struct WatchReport {
  int64_t steps = 0;
  // The bytes of tensors after every step, or every 2nd, 4th, ... so that there are at most 512,
  // and after the last one.
  std::vector<WatchPoint> history;
  std::vector<GrowthRow>
      rows;  // Everything that is not flat, then cache, code and the rest of the process.
  std::vector<TraceRow> traces;  // Functions that were traced, or that hold captured tensors.
  int64_t flat_lines = 0;        // The number of lines whose tensors do not grow,
  Bytes flat_bytes;              // and what they hold.

  // Growing if any of Tidemark's memory is; else filling, cannot tell yet, or flat.
  Growth verdict() const;
};
std::ostream& operator<<(std::ostream& out, const WatchReport& report);

// Watches from its creation. The cost of a step is about that of one tensor for each line that
// makes tensors; the monitor itself does not grow. Exact if no other thread makes tensors at that
// moment.
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
  struct WatchState;
  std::unique_ptr<WatchState> watched_;
};

namespace memory {

// Runs the body this many times and reports growth.
WatchReport watch(int64_t steps, const std::function<void()>& body);

}  // namespace memory
}  // namespace tidemark
