#include "tests/programs/judge_function.h"

#include <gtest/gtest.h>

#include <exception>

#include "tests/programs/apart.h"

namespace tidemark::testing {

std::string FunctionJudge::failure_of(const RandomFunction& random) const {
  return run_apart([&]() -> std::string {
    try {
      return failure_(random, nullptr);
    } catch (const std::exception& error) {
      return cat("exception: ", error.what());
    }
  });
}

RandomFunction FunctionJudge::shrunk(RandomFunction random, const std::string& kind) const {
  for (size_t i = 0; i < random.skipped.size(); ++i) {
    RandomFunction smaller = random;
    smaller.skipped[i] = true;
    if (failure_of(smaller).starts_with(kind)) random = smaller;
  }
  return random;
}

std::string FunctionJudge::text_of(const RandomFunction& random) const {
  return run_apart([&]() -> std::string {
    std::string program;
    try {
      failure_(random, &program);
    } catch (const std::exception&) {
    }
    return program;
  });
}

void FunctionJudge::report(const RandomFunction& random, const std::string& wrong) const {
  const RandomFunction small = shrunk(random, wrong.substr(0, wrong.find(':')));
  ADD_FAILURE() << "seed " << random.seed << ": " << wrong << "\nmade small: " << failure_of(small)
                << "\n"
                << text_of(small);
}

}  // namespace tidemark::testing
