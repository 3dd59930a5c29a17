// Fault injection: a test makes the k-th use of a site fail and checks the state afterwards.
//
// Always compiled in, so that the tested code is the shipped code. A disarmed site costs one load.
// `operator new` needs no site: a test program replaces it.
#pragma once

#include <atomic>
#include <cstdint>

namespace tidemark::device::fault {

enum class Site : uint8_t { pool, mapping };

namespace detail {
extern std::atomic<int64_t> countdown[2];
bool strike_armed(Site site);
}  // namespace detail

// The k-th use from now (counting from 0) fails, once.
inline void arm(Site site, int64_t k) { detail::countdown[static_cast<int>(site)] = k + 1; }
// Returns true if the site was armed and has not failed yet.
inline bool disarm(Site site) { return detail::countdown[static_cast<int>(site)].exchange(0) > 0; }

// Whether this use must fail.
inline bool strikes(Site site) {
  const auto left = detail::countdown[static_cast<int>(site)].load(std::memory_order_relaxed);
  return left > 0 && detail::strike_armed(site);
}

}  // namespace tidemark::device::fault
