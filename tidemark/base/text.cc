#include "tidemark/base/text.h"

#include <cstdio>
#include <ostream>

namespace tidemark {

std::ostream& operator<<(std::ostream& out, Bytes bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes.count);
  int unit = 0;
  while (unit < 5 && (value >= 1024 || value <= -1024)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return out << text;
}

}  // namespace tidemark
