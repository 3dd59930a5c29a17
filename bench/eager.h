// Eager tensors against the machine's limits, measured in one interleaved run.
#pragma once

#include <string>
#include <vector>

#include "bench/bars.h"

namespace tidemark::bench {

// Pointwise, sums and softmax against memory roofs.
std::vector<Bar> memory_bars(double budget_s, int threads);
std::vector<Bar> random_bars(double budget_s);
// Small tensors: time and heap allocations.
std::vector<Bar> tiny_bars(double budget_s);
// 1,000 additions of 16 floats beside PyTorch's; nothing where PyTorch is not installed.
std::vector<Bar> torch_bars();
// Start-up, resident size, library size.
std::vector<Bar> process_bars(const std::string& program, const std::string& library);

}  // namespace tidemark::bench
