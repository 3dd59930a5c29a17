// The injector itself: it must see what it is there to see.
#include "tests/faults/injector.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace tidemark::testing {
namespace {

std::string allocate(int count) {
  std::vector<std::unique_ptr<int>> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(std::make_unique<int>(i));
  return cat(numbers.size());
}

TEST(Injector, FailsEachAllocation) {
  const FaultCounts counts =
      expect_survives({.name = "five", .act = [] { return allocate(5); }}, FaultSite::heap);
  EXPECT_GE(counts.allocations, 5);
  EXPECT_EQ(counts.failed, counts.allocations);
  EXPECT_EQ(counts.refused, counts.failed);
}

TEST(Injector, FailsThePoolAndTheSystem) {
  const Tensor x = ones({300});
  const FaultyOperation operation{.name = "square", .act = [&] { return bits(square(x)); }};
  EXPECT_GE(expect_survives(operation, FaultSite::pool).refused, 1);
  const auto fresh = [] { memory::release(); };
  const FaultyOperation large{
      .name = "ones", .prepare = fresh, .act = [] { return bits(ones({8 << 20})[0]); }};
  EXPECT_GE(expect_survives(large, FaultSite::mapping).refused, 1);
}

TEST(Injector, SeesAStateThatChangesBeforeAFailure) {
  static int state = 0;
  const FaultyOperation operation{.name = "counting",
                                  .prepare = [] { state = 0; },
                                  .act =
                                      [] {
                                        ++state;
                                        std::string text = allocate(2);
                                        state = 1;
                                        return text;
                                      },
                                  .state = [] { return cat(state); }};
  EXPECT_NONFATAL_FAILURE(expect_survives(operation, FaultSite::heap), "has changed something");
}

TEST(Injector, SeesAResultThatIsAnother) {
  static const FaultyOperation operation{.name = "falling back", .act = [] {
                                           try {
                                             return allocate(1);
                                           } catch (const std::bad_alloc&) {
                                             return std::string("0");
                                           }
                                         }};
  EXPECT_NONFATAL_FAILURE(expect_survives(operation, FaultSite::heap), "gave something else");
}

TEST(Injector, SeesAnErrorThatIsNotOneOfMemory) {
  static const FaultyOperation operation{.name = "confusing", .act = [] {
                                           try {
                                             return allocate(1);
                                           } catch (const std::bad_alloc&) {
                                             throw std::runtime_error("no such file");
                                           }
                                         }};
  EXPECT_NONFATAL_FAILURE(expect_survives(operation, FaultSite::heap), "no such file");
}

TEST(Injector, SeesBytesThatStayTaken) {
  static Tensor kept;
  static const FaultyOperation operation{.name = "keeping",
                                         .prepare = [] { kept = {}; },
                                         .act =
                                             [] {
                                               kept = ones({100});
                                               std::string text = allocate(1);
                                               kept = {};
                                               return text;
                                             }};
  EXPECT_NONFATAL_FAILURE(expect_survives(operation, FaultSite::heap), "bytes in use");
  kept = {};
}

}  // namespace
}  // namespace tidemark::testing
