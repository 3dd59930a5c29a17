#include "tidemark/device/limit.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace tidemark::device {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
using Path = char[1024];

// The file's first bytes, with a closing zero; false when it cannot be read.
bool read_text(const char* path, char* text, size_t size) {
  FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const size_t got = std::fread(text, 1, size - 1, file);
  std::fclose(file);
  text[got] = '\0';
  return got > 0;
}

// "max" and what does not parse are no limit.
int64_t number_or_unlimited(const char* text) {
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return end == text || value < 0 ? kUnlimited : value;
}

// The process's own path in the hierarchy that has `controller` (version 1), or in the unified one
// when `controller` is empty.
bool cgroup_path(const char* controller, Path& out) {
  char text[8192];
  if (!read_text("/proc/self/cgroup", text, sizeof(text))) return false;
  for (char* line = std::strtok(text, "\n"); line != nullptr; line = std::strtok(nullptr, "\n")) {
    char* const names = std::strchr(line, ':');
    char* const path = names != nullptr ? std::strchr(names + 1, ':') : nullptr;
    if (path == nullptr) continue;
    *path = '\0';
    const bool found =
        *controller == '\0' ? names[1] == '\0' : std::strstr(names + 1, controller) != nullptr;
    if (!found) continue;
    std::snprintf(out, sizeof(out), "%s", path + 1);
    return true;
  }
  return false;
}

// Calls visit(folder) for the process's cgroup and every one around it. In a container the path
// may name folders that are not visible from inside; those simply do not open.
template <class Visit>
void each_cgroup(const char* root, const char* controller, Visit visit) {
  Path path;
  if (!cgroup_path(controller, path)) return;
  for (;;) {
    char folder[sizeof(Path) + 64];
    std::snprintf(folder, sizeof(folder), "%s%s", root, std::strcmp(path, "/") == 0 ? "" : path);
    visit(folder);
    char* const slash = std::strrchr(path, '/');
    if (slash == nullptr || path[0] == '\0') return;
    *slash = '\0';
  }
}

bool read_in(const char* folder, const char* file, char* text, size_t size) {
  char path[sizeof(Path) + 128];
  std::snprintf(path, sizeof(path), "%s/%s", folder, file);
  return read_text(path, text, size);
}

int64_t cgroup_memory_bytes() {
  int64_t least = kUnlimited;
  char text[64];
  each_cgroup("/sys/fs/cgroup", "", [&](const char* folder) {
    if (read_in(folder, "memory.max", text, sizeof(text))) {
      least = std::min(least, number_or_unlimited(text));
    }
  });
  each_cgroup("/sys/fs/cgroup/memory", "memory", [&](const char* folder) {
    if (read_in(folder, "memory.limit_in_bytes", text, sizeof(text))) {
      least = std::min(least, number_or_unlimited(text));
    }
  });
  return least;
}

// Cores' worth of time that cgroup quotas allow.
double cgroup_cores() {
  double least = std::numeric_limits<double>::infinity();
  const auto narrow = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  };
  char text[64];
  char period_text[64];
  each_cgroup("/sys/fs/cgroup", "", [&](const char* folder) {
    double quota = 0;
    double period = 0;
    if (read_in(folder, "cpu.max", text, sizeof(text)) &&
        std::sscanf(text, "%lf %lf", &quota, &period) == 2) {
      narrow(quota, period);
    }
  });
  each_cgroup("/sys/fs/cgroup/cpu", "cpu", [&](const char* folder) {
    if (read_in(folder, "cpu.cfs_quota_us", text, sizeof(text)) &&
        read_in(folder, "cpu.cfs_period_us", period_text, sizeof(period_text))) {
      narrow(std::atof(text), std::atof(period_text));
    }
  });
  return least;
}

int64_t address_space_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnlimited));
}

int64_t available_bytes() {
  char text[4096];
  if (read_text("/proc/meminfo", text, sizeof(text))) {
    const char* const line = std::strstr(text, "MemAvailable:");
    if (line != nullptr) return std::atoll(line + std::strlen("MemAvailable:")) * 1024;
  }
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

int affinity_cores() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

int64_t default_limit_bytes() {
  const int64_t least = std::min({cgroup_memory_bytes(), address_space_bytes(), available_bytes()});
  return std::max<int64_t>(1, least / 10 * 9);
}

int usable_cores() {
  const double quota = std::ceil(cgroup_cores());
  return std::max(1, static_cast<int>(std::min<double>(affinity_cores(), quota)));
}

bool cores_are_ours() {
  return affinity_cores() == sysconf(_SC_NPROCESSORS_ONLN) && cgroup_cores() >= affinity_cores();
}

}  // namespace tidemark::device
