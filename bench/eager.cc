#include "bench/eager.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>

#include "bench/interleave.h"
#include "bench/memory_roofs.h"
#include "tidemark/tidemark.h"

namespace {
std::atomic<int64_t> heap_allocations{0};
}  // namespace

// Counting what goes to the heap: an eager op on tiny tensors must not.
void* operator new(size_t bytes) {
  heap_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tidemark::bench {
namespace {

namespace td = tidemark;

constexpr int64_t kLarge = 16 << 20;

float* data_of(const td::Tensor& tensor) {
  return const_cast<float*>(tensor.span<const float>().data());
}

std::string gigabytes(double bytes, double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GB/s", bytes / seconds / 1e9);
  return text;
}

// Ours against a roof, both in the same interleaved run: roof seconds / our seconds.
Bar against_roof(const std::string& name, double limit, double bytes, double budget_s,
                 std::function<void()> ours, std::function<void()> roof) {
  std::vector<Candidate> both = {{"ours", std::move(ours)}, {"roof", std::move(roof)}};
  interleave(both, budget_s, 0);
  const double ratio = std::max(both[1].best() / both[0].best(), both[1].tenth() / both[0].tenth());
  return {
      name, ratio, limit, true,
      "ours " + gigabytes(bytes, both[0].best()) + ", roof " + gigabytes(bytes, both[1].best())};
}

std::string named(const char* text, int threads) {
  return std::string(text) +
         (threads == 1 ? ", 1 thread" : ", " + std::to_string(threads) + " threads");
}

}  // namespace

std::vector<Bar> memory_bars(double budget_s, int threads) {
  const int usual = td::num_threads();
  td::set_num_threads(threads);
  std::vector<Bar> bars;
  td::Tensor x = td::full({kLarge}, 0.5), y = td::zeros({kLarge});
  const double bytes = 8.0 * kLarge;
  bars.push_back(against_roof(
      named("16 Mi floats: x * x, out of place / streaming copy", threads), 0.85, bytes, budget_s,
      [&] {
        y = {};
        y = x * x;
      },
      [&] { stream_roof(data_of(x), data_of(y), kLarge); }));
  bars.push_back(against_roof(
      named("16 Mi floats: t * 2 on a temporary / in place", threads), 0.85, bytes, budget_s,
      [&] { y = std::move(y) * 2; }, [&] { in_place_roof(data_of(y), kLarge); }));
  bars.push_back(against_roof(
      named("16 Mi floats: x += 1 / in place", threads), 0.85, bytes, budget_s, [&] { x += 1; },
      [&] { in_place_roof(data_of(x), kLarge); }));
  bars.push_back(against_roof(
      named("16 Mi floats: x * x * 2 + 1 / its three roofs", threads), 0.85, 3 * bytes, budget_s,
      [&] {
        y = {};
        y = x * x * 2 + 1;
      },
      [&] {
        stream_roof(data_of(x), data_of(y), kLarge);
        in_place_roof(data_of(y), kLarge);
        in_place_roof(data_of(y), kLarge);
      }));
  bars.push_back(against_roof(
      named("sum of 16 Mi floats / reading", threads), 0.85, bytes / 2, budget_s,
      [&] { td::sum(x); }, [&] { read_roof(data_of(x), kLarge); }));
  td::Tensor table = td::random::normal({1024, 1024}), shares = td::zeros({1024, 1024});
  bars.push_back(against_roof(
      named("softmax 1024 x 1024 / copy of that size", threads), 0.7, 8.0 * (1 << 20), budget_s,
      [&] {
        shares = {};
        shares = td::softmax(table);
      },
      [&] { copy_roof(data_of(table), data_of(shares), 1 << 20); }));
  td::set_num_threads(usual);
  return bars;
}

std::vector<Bar> random_bars(double budget_s) {
  const int usual = td::num_threads();
  td::set_num_threads(1);
  // A tenth of the billion: the same kernel over memory far beyond the caches.
  constexpr int64_t count = 100'000'000;
  td::Tensor drawn = td::zeros({count});
  std::vector<Candidate> both = {{"normal",
                                  [&] {
                                    drawn = {};
                                    drawn = td::random::normal({count});
                                  }},
                                 {"fill", [&] { fill_roof(data_of(drawn), count); }}};
  interleave(both, budget_s, 0);
  const double per_element = both[0].best() / count * 1e9;
  const double share = both[1].best() / both[0].best();
  td::set_num_threads(usual);
  // At least 0.8 of the fill roof or at most 1.5 ns, whichever is slower: the easier of the two.
  const double allowed = std::max(1.5, both[1].best() / count * 1e9 / 0.8);
  char note[64];
  std::snprintf(note, sizeof(note), "%.2f of the fill roof", share);
  return {{"normal draw, ns an element on one core", per_element, allowed, false, note}};
}

std::vector<Bar> tiny_bars(double budget_s) {
  td::Tensor a = td::ones({4, 4}), b = td::ones({4, 4});
  const auto add_many = [&] {
    for (int i = 0; i < 100; ++i) {
      td::Tensor c = a + b;
      __asm__ volatile("" ::"r"(&c) : "memory");
    }
  };
  std::vector<Candidate> one = {{"add", add_many}};
  interleave(one, budget_s, 0);
  const int64_t before = heap_allocations.load();
  add_many();
  const auto allocations = static_cast<double>(heap_allocations.load() - before);
  return {{"eager add of two 4 x 4 tensors, ns", one[0].best() * 1e9 / 100, 120, false},
          {"heap allocations of 100 such adds", allocations, 0, false}};
}

std::vector<Bar> torch_bars() {
  // The least time of many rounds of 1,000 additions, in microseconds.
  const char* const program =
      "python3 -c \"import time, torch\n"
      "torch.set_num_threads(1)\n"
      "a, b = torch.ones(16), torch.ones(16)\n"
      "def once():\n"
      "  start = time.perf_counter()\n"
      "  for _ in range(1000): a + b\n"
      "  return time.perf_counter() - start\n"
      "print(min(once() for _ in range(200)) * 1e6)\" 2>/dev/null";
  FILE* pipe = popen(program, "r");
  double theirs = 0;
  const bool found = pipe != nullptr && std::fscanf(pipe, "%lf", &theirs) == 1;
  if (pipe != nullptr) pclose(pipe);
  if (!found) {
    std::puts("1,000 additions of 16 floats beside PyTorch: PyTorch is not installed");
    return {};
  }
  td::Tensor a = td::ones({16}), b = td::ones({16});
  std::vector<Candidate> one = {{"add", [&] {
                                   for (int i = 0; i < 1000; ++i) {
                                     td::Tensor c = a + b;
                                     __asm__ volatile("" ::"r"(&c) : "memory");
                                   }
                                 }}};
  interleave(one, 0.5, 0);
  return {
      {"1,000 additions of 16 floats, PyTorch / ours", theirs / (one[0].best() * 1e6), 10, true}};
}

namespace {

// Runs a program and gives its wall seconds and resident KiB at the end.
std::pair<double, double> run_once(const std::string& program) {
  const double start = now_s();
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(127);
    execl(program.c_str(), program.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  return {now_s() - start, static_cast<double>(usage.ru_maxrss)};
}

double stripped_megabytes(const std::string& library) {
  const std::string copy = "/tmp/tidemark_stripped_" + std::to_string(getpid());
  const std::string command = "strip -o " + copy + " " + library + " 2>/dev/null";
  if (std::system(command.c_str()) != 0) return -1;
  std::ifstream file(copy, std::ios::binary | std::ios::ate);
  const double size = static_cast<double>(file.tellg()) / 1e6;
  std::remove(copy.c_str());
  return size;
}

}  // namespace

std::vector<Bar> process_bars(const std::string& program, const std::string& library) {
  double seconds = 1e9, kilobytes = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto [wall, resident] = run_once(program);
    seconds = std::min(seconds, wall);
    kilobytes = std::min(kilobytes, resident);
  }
  return {{"process start and first tensor printed, ms", seconds * 1e3, 30, false},
          {"resident size then, MiB", kilobytes / 1024, 40, false},
          {"shared library, stripped, MB", stripped_megabytes(library), 60, false}};
}

}  // namespace tidemark::bench
