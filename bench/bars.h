// A bar: a figure the project has set itself, what was measured, and whether it holds.
#pragma once

#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

namespace tidemark::bench {

struct Bar {
  std::string name;
  double value = 0;
  double limit = 0;  // The value must not be greater.
  bool pass = false;
};

// A bar that holds if the value is at most the limit.
inline Bar at_most(std::string name, double value, double limit) {
  return {std::move(name), value, limit, value <= limit};
}

inline void print_bars(std::ostream& out, const std::vector<Bar>& bars) {
  for (const Bar& bar : bars) {
    char text[160];
    std::snprintf(text, sizeof(text), "%-4s  %-58s %14.6g  (at most %.10g)\n",
                  bar.pass ? "pass" : "MISS", bar.name.c_str(), bar.value, bar.limit);
    out << text;
  }
}

// Names must be free of quotes and backslashes.
inline void print_bars_json(std::ostream& out, const std::vector<Bar>& bars) {
  out << "[";
  for (size_t i = 0; i < bars.size(); ++i) {
    char numbers[96];
    std::snprintf(numbers, sizeof(numbers), "\"value\": %.10g, \"limit\": %.10g, \"pass\": %s",
                  bars[i].value, bars[i].limit, bars[i].pass ? "true" : "false");
    out << (i > 0 ? ",\n " : "") << "{\"name\": \"" << bars[i].name << "\", " << numbers << "}";
  }
  out << "]\n";
}

}  // namespace tidemark::bench
