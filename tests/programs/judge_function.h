// Judges random functions, each in a process of its own; one that fails is made small.
#pragma once

#include <functional>
#include <string>

#include "tests/programs/random_function.h"

namespace tidemark::testing {

class FunctionJudge {
 public:
  // What is wrong with a function, "kind: details", or nothing. Sets the text of its program if
  // that is wanted.
  using Failure = std::function<std::string(const RandomFunction& random, std::string* text)>;
  explicit FunctionJudge(Failure failure) : failure_(std::move(failure)) {}

  // The same; exceptions and crashes are failures.
  std::string failure_of(const RandomFunction& random) const;
  // Fails the test: shows the function without the steps that it fails in the same way without.
  void report(const RandomFunction& random, const std::string& wrong) const;

 private:
  RandomFunction shrunk(RandomFunction random, const std::string& kind) const;
  std::string text_of(const RandomFunction& random) const;

  Failure failure_;
};

}  // namespace tidemark::testing
