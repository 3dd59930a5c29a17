// Lesson 6: a function that draws a thousand cubed numbers. Its bytes are known before it runs, so
// one that is too large for this machine is not even tried.
#include <cstdio>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  const auto draw = td::function(
      [](td::Dim n) {
        const td::Tensor x = td::random::normal({n, n, n}, {.key = td::random::Key(1)});
        return x * 2 + 1;
      },
      {.name = "draw"});

  int64_t edge = lesson::is_small(argc, argv) ? 64 : 1000;
  const td::Bytes room = td::memory::limit().count / 2;
  while (draw.plan(edge).peak() > room) {
    const int64_t less = edge * 4 / 5;
    std::printf("%lld cubed would take %s bytes, more than half of the %s bytes there are: %lld\n",
                static_cast<long long>(edge), lesson::digits(draw.plan(edge).peak().count).c_str(),
                lesson::digits(td::memory::limit().count).c_str(), static_cast<long long>(less));
    edge = less;
  }
  std::printf("normal({%lld, %lld, %lld}) * 2 + 1\n", static_cast<long long>(edge),
              static_cast<long long>(edge), static_cast<long long>(edge));
  const int64_t planned = draw.plan(edge).peak().count;
  std::printf("planned    %s bytes\n", lesson::digits(planned).c_str());
  std::fflush(stdout);
  const td::MemoryScope scope("draw");
  td::Tensor drawn;
  const double time = lesson::milliseconds([&] { drawn = draw(edge); });
  const int64_t measured = scope.peak().count;
  std::printf("measured   %s bytes, %.0f ms with the first touch of all of them\n",
              lesson::digits(measured).c_str(), time);
  return planned == measured ? 0 : 1;
}
