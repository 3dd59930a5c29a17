// What the lessons share: tables of bytes planned beside bytes measured, with times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <tidemark/tidemark.h>

namespace lesson {

// `--small` asks for sizes that take a moment only.
inline bool is_small(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "--small";
}

// "1,234,567"
inline std::string digits(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

template <class F>
double milliseconds(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// The best of up to 20 calls, of fewer where they are long.
template <class F>
double best_milliseconds(F f) {
  double best = std::numeric_limits<double>::max(), all = 0;
  for (int call = 0; call < 20 && all < 300; ++call) {
    const double now = milliseconds(f);
    best = std::min(best, now);
    all += now;
  }
  return best;
}

// Each row is named before it is measured, so that one that takes a while is seen to.
class Table {
 public:
  explicit Table(const char* title) {
    std::printf("%-58s %14s %14s %10s\n", title, "planned bytes", "measured", "ms");
  }
  // A compiled function on these arguments: planned before it runs; measured by what it changed in
  // memory that was painted before.
  template <class F, class... A>
  void function(const char* what, const F& f, const A&... arguments) {
    name(what);
    const int64_t planned = f.plan(arguments...).peak().count;
    const int64_t touched = f.profile(arguments...).second.touched.count;
    numbers(planned, touched, best_milliseconds([&] { f(arguments...); }));
  }
  // Eager code: no plan; the most bytes that its tensors held at once.
  template <class F>
  void eager(const char* what, F f) {
    name(what);
    int64_t bytes = 0;
    const double time = best_milliseconds([&] {
      const tidemark::MemoryScope scope("eager");
      const auto kept = f();
      bytes = scope.peak().count;
    });
    numbers({}, bytes, time);
  }
  static void name(const char* what) {
    std::printf("  %-56s ", what);
    std::fflush(stdout);
  }
  static void numbers(std::optional<int64_t> planned, int64_t measured, double time) {
    std::printf("%14s %14s %10.3f\n", planned ? digits(*planned).c_str() : "-",
                digits(measured).c_str(), time);
  }
};

}  // namespace lesson
