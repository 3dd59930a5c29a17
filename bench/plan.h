// The planner's bars: see plan.cc.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/bars.h"

namespace tidemark::bench {

struct PlanOptions {
  std::string data;     // The folder with challenging/A.1048576.csv and so on; empty: leave out.
  double seconds = 30;  // Of a core, for each instance whose least tidemark is not known.
};

// Runs everything; tells what it does on `log`.
std::vector<Bar> plan_bars(const PlanOptions& options, std::ostream& log);

}  // namespace tidemark::bench
