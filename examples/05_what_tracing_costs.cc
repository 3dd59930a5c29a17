// Lesson 5: what the first call costs, and that later ones cost nothing.
#include <cstdio>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

int main(int argc, char** argv) {
  const int calls = lesson::is_small(argc, argv) ? 100 : 10'000;
  const td::Tensor x = td::random::normal({64, 64});
  const td::Tensor w = td::random::normal({64, 64}, {.stddev = 0.1});
  const auto layer = td::function(
      [w](const td::Tensor& in) { return td::softmax(td::tanh(td::matmul(in, w)) * 2 + in); },
      {.name = "layer"});

  // Planning traces and compiles, as a first call would, and takes no bytes for tensors.
  const td::Bytes before = td::memory::current();
  layer.plan(x);
  const td::CacheInfo info = layer.cache_info();
  std::printf("trace      %8.3f ms\n", info.entries[0].trace_ms);
  std::printf("compile    %8.3f ms\n", info.entries[0].compile_ms);
  std::printf("kept       %s bytes for the trace and its program\n",
              lesson::digits(info.bytes.count).c_str());
  std::printf("tensors    %s bytes more than before\n",
              lesson::digits((td::memory::current() - before).count).c_str());

  const double first = lesson::milliseconds([&] { layer(x); });
  const double all = lesson::milliseconds([&] {
    for (int call = 0; call < calls; ++call) layer(x);
  });
  const td::CacheInfo later = layer.cache_info();
  std::printf("call 1     %8.3f ms\n", first);
  std::printf("calls 2 to %d: %.3f ms each, %lld traces more, %lld bytes more kept\n", calls + 1,
              all / calls, static_cast<long long>(later.traces - info.traces),
              static_cast<long long>((later.bytes - info.bytes).count));
  return later.traces == info.traces && later.bytes == info.bytes ? 0 : 1;
}
