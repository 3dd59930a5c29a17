// How resampling weighs neighbours.
#pragma once

#include <cstdint>

namespace tidemark {

// Sample i of n lies at (i + 1/2) / n of the axis. Weights are divided by their sum, so that
// samples beyond the ends do not count.
enum class Sampling : int64_t {
  nearest,  // The sample whose cell holds the place.
  linear,   // 1 - |t|, of the two samples around it.
  cubic,    // Keys' cubic with slope -1/2, of four.
  mean,     // Equally, of all samples whose cells meet the new cell.
};

}  // namespace tidemark
