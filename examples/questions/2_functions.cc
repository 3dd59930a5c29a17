// Question 2: what does a traced function cost, and when is it traced again?
#include <cstdio>
#include <iostream>

#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;

namespace {

// The first call traces and compiles; planning does the same, and takes no bytes for tensors.
bool show_tracing(int calls) {
  const td::Tensor x = td::random::normal({64, 64});
  const td::Tensor w = td::random::normal({64, 64}, {.stddev = 0.1});
  const auto layer = td::function(
      [w](const td::Tensor& in) { return td::softmax(td::tanh(td::matmul(in, w)) * 2 + in); },
      {.name = "layer"});
  const td::Bytes before = td::memory::current();
  layer.plan(x);
  const td::CacheInfo info = layer.cache_info();
  std::printf("a layer of 64 x 64: trace %.3f ms, compile %.3f ms, %s bytes kept, %s of tensors\n",
              info.entries[0].trace_ms, info.entries[0].compile_ms,
              lesson::digits(info.bytes.count).c_str(),
              lesson::digits((td::memory::current() - before).count).c_str());
  layer(x);
  const td::Bytes kept = layer.cache_info().bytes;  // With the kernels, which the first call makes.
  const double all = lesson::milliseconds([&] {
    for (int call = 0; call < calls; ++call) layer(x);
  });
  const td::CacheInfo later = layer.cache_info();
  std::printf("calls 2 to %d: %.3f ms each, %lld traces more, %lld bytes more kept\n\n", calls + 1,
              all / calls, static_cast<long long>(later.traces - info.traces),
              static_cast<long long>((later.bytes - kept).count));
  return later.traces == info.traces && later.bytes == kept;
}

// Known before it is drawn, so one that is too large for this machine is not even tried.
bool show_draw(int64_t edge) {
  const auto draw = td::function(
      [](td::Dim n) { return td::random::normal({n, n, n}, {.key = td::random::Key(1)}) * 2 + 1; },
      {.name = "draw"});
  const td::Bytes room = td::memory::limit().count / 2;
  while (draw.plan(edge).peak() > room) {
    std::printf("%lld cubed would take %s, more than half of what there is; ",
                static_cast<long long>(edge), td::cat(draw.plan(edge).peak()).c_str());
    edge = edge * 4 / 5;
  }
  lesson::Table table("normal({n, n, n}) * 2 + 1");
  lesson::Table::name(td::cat("n = ", edge, ", with the first touch of its bytes").c_str());
  const int64_t planned = draw.plan(edge).peak().count;
  const td::MemoryScope scope("draw");
  const double time = lesson::milliseconds([&] { draw(edge); });
  lesson::Table::numbers(planned, scope.peak().count, time);
  return planned == scope.peak().count;
}

// Three statements are one expression: one kernel, nothing in between.
bool show_statements(int64_t edge) {
  const td::Tensor x = td::random::normal({edge, edge});
  const auto three = [](const td::Tensor& each) {
    const td::Tensor squared = each * each;
    const td::Tensor doubled = squared * 2;
    return doubled + 1;
  };
  const auto one = td::function([](const td::Tensor& each) { return each * each * 2 + 1; });
  lesson::Table table("x*x*2 + 1 of a square matrix");
  table.eager("eager, three statements", [&] { return three(x); });
  table.function("a function of three statements", td::function(three), x);
  table.function("a function of one expression", one, x);
  return td::function(three).plan(x).timeline().size() == 1;
}

// A condition is charged the larger of its branches, not both.
void show_condition(int64_t edge) {
  const td::Tensor x = td::random::uniform({edge, edge});
  const auto larger = [](const td::Tensor& each) {
    return td::matmul(td::softmax(td::matmul(each, each)), each);
  };
  const auto smaller = [](const td::Tensor& each) { return each + 1; };
  const auto chosen = td::function([&](const td::Tensor& each) {
    return td::cond(
        td::mean(each) > 0, [&] { return larger(each); }, [&] { return smaller(each); });
  });
  lesson::Table table("one of two branches");
  table.function("the larger branch alone", td::function(larger), x);
  table.function("the smaller branch alone", td::function(smaller), x);
  table.function("cond, the larger taken", chosen, x);
  table.function("cond, the smaller taken", chosen, x * -1);
}

// A number is a run-time value. The second size of a dimension makes it open. What is `Static` is
// part of the key, and many values of it are reported.
bool show_traces() {
  const auto scaled = td::function(
      [](const td::Tensor& x, const td::Tensor& rate) { return td::sum(x * rate, 0); });
  for (int i = 0; i < 100; ++i) scaled(td::ones({3, 4}), 0.01 * i);
  const int64_t numbers = scaled.cache_info().traces;
  for (int64_t rows = 4; rows < 104; ++rows) scaled(td::ones({rows, 4}), 0.1);
  const int64_t sizes = scaled.cache_info().traces;
  std::printf("100 plain numbers: %lld trace; 100 sizes more: %lld traces in all\n",
              static_cast<long long>(numbers), static_cast<long long>(sizes));
  td::on_warning([](std::string_view text, td::Source at) {
    std::cout << "a storm of traces is reported, once, at " << at.text() << ":\n" << text << "\n";
  });
  const auto powers = td::function(
      [](const td::Tensor& x, td::Static<int> n) {
        td::Tensor y = x;
        for (int i = 1; i < *n; ++i) y *= x;
        return y;
      },
      {.name = "powers"});
  for (int n = 1; n <= 8; ++n) powers(td::ones({4}), n);
  td::on_warning({});
  return numbers == 1 && sizes == 2;
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const int64_t edge = small ? 100 : 1000;
  const bool calls_cost_nothing = show_tracing(small ? 100 : 10'000);
  const bool is_known = show_draw(small ? 64 : 1000);
  const bool is_one = show_statements(edge);
  show_condition(edge);
  std::printf("\n");
  return calls_cost_nothing && is_known && is_one && show_traces() ? 0 : 1;
}
