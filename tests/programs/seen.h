// What a run of a function shows to the outside, and how two runs differ.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark::testing {

struct Seen {
  std::vector<Tensor> results;
  std::string lines;  // As printed.
  std::string error;
};
Seen seen(const std::function<std::vector<Tensor>()>& run);

// Whether a check failed in the run; other errors are the function's own.
bool is_effect(const std::string& error);

// Nothing if both show the same.
std::string difference(const Seen& expected, const Seen& got);

}  // namespace tidemark::testing
