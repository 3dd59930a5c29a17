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

using Path = char[1024];

// Reads the beginning of a file as a zero-terminated text; false if it cannot be read.
bool read_text(const char* path, char* text, size_t size) {
  FILE* const file = std::fopen(path, "re");
  if (file == nullptr) return false;
  const size_t got = std::fread(text, 1, size - 1, file);
  std::fclose(file);
  text[got] = '\0';
  return got > 0;
}

// "max" and anything that does not parse mean no limit.
int64_t number_or_unlimited(const char* text) {
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return end == text || value < 0 ? kUnlimited : value;
}

bool read_in(const char* folder, const char* file, char* text, size_t size) {
  char path[4 * sizeof(Path)];
  std::snprintf(path, sizeof(path), "%s%s", folder, file);
  return read_text(path, text, size);
}

// Whether a comma-separated list of controllers contains this one as a whole name: "cpuset" does
// not contain "cpu".
bool has_controller(const char* names, const char* controller) {
  const size_t length = std::strlen(controller);
  if (length == 0) return *names == '\0';
  for (const char* name = names; name != nullptr;) {
    const char* const comma = std::strchr(name, ',');
    const size_t size = comma != nullptr ? static_cast<size_t>(comma - name) : std::strlen(name);
    if (size == length && std::strncmp(name, controller, size) == 0) return true;
    name = comma != nullptr ? comma + 1 : nullptr;
  }
  return false;
}

// The path of this process in the hierarchy of `controller` (version 1), or in the unified
// hierarchy if `controller` is empty.
bool cgroup_path(const char* root, const char* controller, Path& out) {
  char text[8192];
  if (!read_in(root, "/proc/self/cgroup", text, sizeof(text))) return false;
  char* rest = text;
  while (char* const line = strsep(&rest, "\n")) {
    char* const names = std::strchr(line, ':');
    char* const path = names != nullptr ? std::strchr(names + 1, ':') : nullptr;
    if (path == nullptr) continue;
    *path = '\0';
    if (!has_controller(names + 1, controller)) continue;
    std::snprintf(out, sizeof(out), "%s", path + 1);
    return true;
  }
  return false;
}

struct Hierarchy {
  const char* root;        // Of the file system.
  const char* folder;      // The mount point.
  const char* controller;  // Empty for the unified hierarchy.
};

// Calls visit(folder) for the cgroup of this process and every cgroup that encloses it. In a
// container the path may name folders that are not visible; those cannot be opened.
template <class Visit>
void each_cgroup(const Hierarchy& tree, Visit visit) {
  Path path;
  if (!cgroup_path(tree.root, tree.controller, path)) return;
  for (;;) {
    char folder[3 * sizeof(Path)];
    std::snprintf(folder, sizeof(folder), "%s%s%s", tree.root, tree.folder, path);
    visit(folder);
    char* const slash = std::strrchr(path, '/');
    if (slash == nullptr) return;
    *slash = '\0';
  }
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
    if (line != nullptr)
      return std::strtoll(line + std::strlen("MemAvailable:"), nullptr, 10) * 1024;
  }
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

int affinity_cores() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

int64_t cgroup_memory_bytes(const char* root) {
  int64_t least = kUnlimited;
  char text[64];
  each_cgroup({root, "/sys/fs/cgroup", ""}, [&](const char* folder) {
    if (read_in(folder, "/memory.max", text, sizeof(text))) {
      least = std::min(least, number_or_unlimited(text));
    }
  });
  each_cgroup({root, "/sys/fs/cgroup/memory", "memory"}, [&](const char* folder) {
    if (read_in(folder, "/memory.limit_in_bytes", text, sizeof(text))) {
      least = std::min(least, number_or_unlimited(text));
    }
  });
  return least;
}

double cgroup_cores(const char* root) {
  double least = std::numeric_limits<double>::infinity();
  const auto narrow = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  };
  char text[64];
  char period_text[64];
  each_cgroup({root, "/sys/fs/cgroup", ""}, [&](const char* folder) {
    if (!read_in(folder, "/cpu.max", text, sizeof(text))) return;
    char* period = nullptr;
    const double quota = std::strtod(text, &period);  // "max" is parsed as 0.
    narrow(quota, std::strtod(period, nullptr));
  });
  each_cgroup({root, "/sys/fs/cgroup/cpu", "cpu"}, [&](const char* folder) {
    if (read_in(folder, "/cpu.cfs_quota_us", text, sizeof(text)) &&
        read_in(folder, "/cpu.cfs_period_us", period_text, sizeof(period_text))) {
      narrow(std::strtod(text, nullptr), std::strtod(period_text, nullptr));  // No quota is -1.
    }
  });
  return least;
}

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
