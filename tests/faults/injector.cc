#include "tests/faults/injector.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>

#include "tests/soak/counted_heap.h"
#include "tests/soak/flat.h"
#include "tidemark/device/fault.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::testing {
namespace {

// ---- one failure --------------------------------------------------------------------------------

device::fault::Site pool_site(FaultSite site) {
  return site == FaultSite::pool ? device::fault::Site::pool : device::fault::Site::mapping;
}

bool is_heap(FaultSite site) {
  return site == FaultSite::heap || site == FaultSite::heap_from_then_on;
}

// Counted from 1 on.
void arm(FaultSite site, int64_t number) {
  if (is_heap(site))
    fail_heap_allocation(number, site == FaultSite::heap_from_then_on);
  else
    device::fault::arm(pool_site(site), number - 1);
}

// Whether the failure asked for has happened.
bool disarm(FaultSite site) {
  return is_heap(site) ? !heap_failure_is_pending() : !device::fault::disarm(pool_site(site));
}

// ---- what is tried now, for a process that dies of it -------------------------------------------

char trying[256] = "";

// Far more than any try takes, on any machine: for what hangs.
constexpr unsigned kHangSeconds = 300;

void report_death(int signal_number) {
  const char* const what = signal_number == SIGALRM ? "hangs: " : "dies: ";
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, trying, std::strlen(trying));
  (void)!write(STDERR_FILENO, "\n", 1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// Names the try to whoever reads why the process ended.
class Trying {
 public:
  Trying(const FaultyOperation& operation, FaultSite site, int64_t number) {
    for (const int each : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS}) signal(each, report_death);
    std::snprintf(trying, sizeof(trying), "%s, allocation %lld of the %s fails",
                  operation.name.c_str(), static_cast<long long>(number), name(site));
    alarm(kHangSeconds);
  }
  ~Trying() { alarm(0); }
  Trying(const Trying&) = delete;
  Trying& operator=(const Trying&) = delete;
};

// ---- tries --------------------------------------------------------------------------------------

struct Outcome {
  bool struck = false;
  std::optional<std::string> gave;  // Nothing: it was refused.
  std::string unclean;              // An error that is not one of memory.
};

// The site is disarmed before anything else happens: errors are read with memory at hand.
Outcome attempt(const FaultyOperation& operation, FaultSite site, int64_t number) {
  Outcome outcome;
  arm(site, number);
  try {
    std::string gave = operation.act();
    outcome.struck = disarm(site);
    outcome.gave = std::move(gave);
  } catch (const std::bad_alloc&) {
    outcome.struck = disarm(site);
  } catch (const OutOfMemory&) {
    outcome.struck = disarm(site);
  } catch (const std::exception& error) {
    outcome.struck = disarm(site);
    outcome.unclean = error.what();
    // Outside code says it in its own words.
    if (outcome.unclean.find("memory") != std::string::npos) outcome.unclean.clear();
  }
  return outcome;
}

class Injection {
 public:
  Injection(const FaultyOperation& operation, FaultSite site)
      : operation_(operation), site_(site) {}

  FaultCounts run() {
    // The first run fills caches that stay.
    for (int round = 0; round < 2; ++round) run_clean();
    counts_.allocations = count();
    for (int64_t number = 1; found_ < kMostFound && strikes(number);) number += step(number);
    if (found_ > 0) ADD_FAILURE() << wrong_;
    return counts_;
  }

 private:
  // What is wrong everywhere is not said a thousand times.
  static constexpr int kMostFound = 8;

  void prepare() const {
    if (operation_.prepare) operation_.prepare();
  }
  std::string state() const { return operation_.state ? operation_.state() : std::string(); }
  void check(bool good, const std::string& otherwise) {
    if (good) return;
    ++found_;
    wrong_ += cat(trying, ": ", otherwise, "\n");
  }

  void run_clean() {
    prepare();
    expected_ = operation_.act();
    expected_state_ = state();
  }

  int64_t count() const {
    constexpr int64_t kNever = int64_t{1} << 40;
    prepare();
    const int64_t before = heap_allocations();
    arm(site_, kNever);
    operation_.act();
    const int64_t at_heap = heap_allocations() - before;
    const int64_t left = device::fault::detail::countdown[static_cast<int>(pool_site(site_))];
    disarm(site_);
    return is_heap(site_) ? at_heap : kNever - left;
  }

  // All where all are asked for; else the first few, and then about so many over the rest.
  int64_t step(int64_t number) const {
    constexpr int64_t kFirst = 12, kSample = 20;
    if (full_counts() || number < kFirst) return 1;
    return std::max<int64_t>(1, counts_.allocations / kSample);
  }

  // False where the operation has fewer allocations than that.
  bool strikes(int64_t number) {
    const Trying now(operation_, site_, number);
    prepare();
    const std::string before = state();
    const int64_t held = memory::current().count;
    const Outcome outcome = attempt(operation_, site_, number);
    check(outcome.unclean.empty(), cat("an error that is not one of memory: ", outcome.unclean));
    check(memory::current().count == held,
          cat("bytes in use, ", held, " before, ", memory::current().count, " after"));
    if (outcome.struck) ++counts_.failed;
    if (outcome.gave.has_value()) {
      check(*outcome.gave == expected_, "it went on, and gave something else");
      check(state() == expected_state_, "it went on, and left something else");
    } else {
      ++counts_.refused;
      check(outcome.struck, "it was refused though nothing failed");
      check(state() == before, "it was refused, and has changed something");
      check(operation_.act() == expected_, "it gives something else afterwards");
      check(state() == expected_state_, "it leaves something else afterwards");
    }
    return outcome.struck;
  }

  const FaultyOperation& operation_;
  const FaultSite site_;
  std::string expected_, expected_state_;
  FaultCounts counts_;
  int found_ = 0;
  std::string wrong_;
};

}  // namespace

const char* name(FaultSite site) {
  switch (site) {
    case FaultSite::heap:
      return "heap";
    case FaultSite::heap_from_then_on:
      return "heap, and each after it,";
    case FaultSite::pool:
      return "pool";
    case FaultSite::mapping:
      return "system's pages";
  }
  return "";
}

FaultCounts& FaultCounts::operator+=(const FaultCounts& other) {
  allocations += other.allocations;
  failed += other.failed;
  refused += other.refused;
  return *this;
}

std::string text(const FaultCounts& counts) {
  return cat(counts.allocations, " allocations, ", counts.failed, " failed, ", counts.refused,
             " refused");
}

FaultCounts expect_survives(const FaultyOperation& operation, FaultSite site) {
  return Injection(operation, site).run();
}

FaultCounts expect_survives(const FaultyOperation& operation) {
  FaultCounts all;
  for (const FaultSite site : {FaultSite::heap, FaultSite::pool, FaultSite::mapping})
    all += expect_survives(operation, site);
  return all;
}

std::string bits(const Tensor& tensor) {
  const Tensor dense = detail::dense(tensor, Source::here());
  std::string text = name(tensor.dtype());
  for (const Dim size : tensor.shape()) text += ' ' + std::to_string(int64_t{size});
  text += '\n';
  const ArrayRef& array = detail::TensorState::of(dense)->array;
  return text.append(reinterpret_cast<const char*>(array.data),
                     static_cast<size_t>(array.size() * size_of(array.dtype)));
}

std::string generator_state() { return bits(random::state()); }

}  // namespace tidemark::testing
