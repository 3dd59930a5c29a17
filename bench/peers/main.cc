// Our side of bench/peers/run: one case in a process of its own, measured as measure.py measures
// the peers.
//
//   peer_cases --list          the names of the cases
//   peer_cases CASE [SECONDS]  one line of JSON
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "bench/interleave.h"
#include "bench/peers/cases.h"

namespace tidemark::bench {
namespace {

// A line of /proc/self/status, in bytes.
int64_t status_bytes(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key))
      return std::strtoll(line.c_str() + key.size() + 1, nullptr, 10) << 10;
  }
  return 0;
}
int64_t resident_bytes() { return status_bytes("VmRSS"); }
int64_t peak_bytes() { return status_bytes("VmHWM"); }
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

// What is told of a result, for others to compare with: its size, mean and mean magnitude, and a
// few of its elements.
std::string fingerprint(const std::vector<Tensor>& results) {
  std::vector<double> values;
  for (const Tensor& result : results) {
    for (const float value : result.to_vector<float>()) values.push_back(value);
  }
  double sum = 0, magnitude = 0;
  for (const double value : values) {
    sum += value;
    magnitude += std::abs(value);
  }
  const auto count = static_cast<double>(values.size());
  char text[64];
  const auto number = [&](double value) {
    std::snprintf(text, sizeof(text), "%.9g", value);
    return std::string(text);
  };
  std::string line = "{\"count\": " + std::to_string(values.size()) +
                     ", \"mean\": " + number(sum / count) +
                     ", \"magnitude\": " + number(magnitude / count) + ", \"elements\": [";
  for (size_t k = 0; k < 8; ++k)
    line += (k > 0 ? ", " : "") + number(values[k * (values.size() - 1) / 7]);
  return line + "]}";
}

// At least five samples, unless calls take seconds.
bool wants_more(size_t samples, double elapsed, double seconds) {
  return samples < 1 || (samples < 5 && elapsed < 5) || (samples < 10'000 && elapsed < seconds);
}

// The clock of calls: PEERS_CLOCK=cpu counts processor time, for a machine that others use too.
double call_clock_s() {
  static const char* const asked = std::getenv("PEERS_CLOCK");
  static const bool by_cpu = asked != nullptr && std::strcmp(asked, "cpu") == 0;
  return now_s(by_cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
}

void measure(const PeerCase& which, double seconds) {
  const Prepared prepared = which.prepare();
  const int64_t start_bytes = resident_bytes();
  reset_peak();
  const double first_begin = call_clock_s();
  std::vector<Tensor> results = prepared.call();
  const double first_s = call_clock_s() - first_begin;
  const auto call = [&] {
    results.clear();
    results = prepared.call();
  };
  call();
  const double once_begin = call_clock_s();
  call();
  const double once = std::max(1e-9, call_clock_s() - once_begin);
  const int calls = std::clamp(static_cast<int>(1e-3 / once), 1, 100'000);
  const int64_t warm_bytes = resident_bytes();
  reset_peak();
  std::vector<double> samples;
  const double begin = now_s();
  while (wants_more(samples.size(), now_s() - begin, seconds)) {
    const double sample_begin = call_clock_s();
    for (int i = 0; i < calls; ++i) call();
    samples.push_back((call_clock_s() - sample_begin) / calls);
  }
  std::sort(samples.begin(), samples.end());
  const int64_t peak = peak_bytes() - start_bytes;
  const int64_t growth = resident_bytes() - warm_bytes;
  const std::string planned = prepared.plan ? std::to_string(prepared.plan().peak().count) : "null";
  if (prepared.checked) results = prepared.checked();
  std::printf(
      "{\"best_s\": %.9g, \"median_s\": %.9g, \"first_s\": %.9g, \"peak_bytes\": %lld, "
      "\"growth_bytes\": %lld, \"planned_bytes\": %s, \"result\": %s}\n",
      samples.front(), samples[samples.size() / 2], first_s, static_cast<long long>(peak),
      static_cast<long long>(growth), planned.c_str(), fingerprint(results).c_str());
}

int usage() {
  std::fprintf(stderr, "usage: peer_cases --list | peer_cases CASE [SECONDS]\n");
  return 2;
}

}  // namespace
}  // namespace tidemark::bench

int main(int count, char** arguments) {
  using namespace tidemark::bench;
  if (count < 2 || count > 3) return usage();
  if (std::strcmp(arguments[1], "--list") == 0) {
    for (const PeerCase& each : peer_cases())
      std::printf("%.*s\n", static_cast<int>(each.name.size()), each.name.data());
    return 0;
  }
  for (const PeerCase& each : peer_cases()) {
    if (each.name != arguments[1]) continue;
    measure(each, count == 3 ? std::atof(arguments[2]) : 0.5);
    return 0;
  }
  return usage();
}
