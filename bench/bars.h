// A bar the project has set itself: a measured figure and the limit it is held to.
#pragma once

#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

namespace tidemark::bench {

struct Bar {
  std::string name;
  double value = 0;
  double limit = 0;
  bool at_least = true;  // The value must reach the limit; else it must stay at or below.
  std::string note = {};

  bool pass() const { return at_least ? value >= limit : value <= limit; }
};

inline Bar at_most(std::string name, double value, double limit) {
  return {std::move(name), value, limit, false};
}

inline void print(const Bar& bar) {
  std::printf("%-52s %9.3f  %s %8.3f  %s  %s\n", bar.name.c_str(), bar.value,
              bar.at_least ? ">=" : "<=", bar.limit, bar.pass() ? "pass" : "MISS",
              bar.note.c_str());
  std::fflush(stdout);
}

// Prints every bar and gives the number missed.
inline int print_all(const std::vector<Bar>& bars) {
  int missed = 0;
  for (const Bar& bar : bars) {
    print(bar);
    missed += bar.pass() ? 0 : 1;
  }
  return missed;
}

// Names and notes must be free of quotes and backslashes.
inline void print_json(std::ostream& out, const std::vector<Bar>& bars) {
  out << "[";
  for (size_t i = 0; i < bars.size(); ++i) {
    char numbers[128];
    std::snprintf(numbers, sizeof(numbers),
                  "\"value\": %.10g, \"limit\": %.10g, \"at_least\": %s, \"pass\": %s",
                  bars[i].value, bars[i].limit, bars[i].at_least ? "true" : "false",
                  bars[i].pass() ? "true" : "false");
    out << (i > 0 ? ",\n " : "") << "{\"name\": \"" << bars[i].name << "\", " << numbers << "}";
  }
  out << "]\n";
}

}  // namespace tidemark::bench
