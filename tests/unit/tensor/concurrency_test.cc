// Ops beside threads that change the settings, and beside forks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

namespace td = tidemark;

struct Operands {
  Tensor x = random::uniform({200, 1500}, {.key = random::Key(1)});
  Tensor a = random::uniform({700, 133}, {.key = random::Key(2)});
  Tensor b = random::uniform({113, 700}, {.key = random::Key(3)});
  Tensor image = random::normal({2, 20, 20, 16}, {.key = random::Key(4)});
  Tensor kernel = random::normal({3, 3, 16, 24}, {.key = random::Key(5)});
};

std::vector<Tensor> results(const Operands& o) {
  return {tanh(o.x) * cast(o.x, DType::f16), softmax(o.x), softmax(o.x, 0),
          matmul(o.a, o.b, {.transpose_a = true, .transpose_b = true}), conv2d(o.image, o.kernel)};
}

class EmitterGuard {
 public:
  explicit EmitterGuard(compile::Emitter wanted) : before_(compile::emitter()) {
    compile::set_emitter(wanted);
  }
  ~EmitterGuard() { compile::set_emitter(before_); }

 private:
  compile::Emitter before_;
};

// Scratch is for the workers that take part, whatever the number of threads becomes meanwhile. The
// interpreter has more scratch than compiled kernels.
TEST(Concurrency, TheNumberOfThreadsMayChangeBesideAnOp) {
  const EmitterGuard emitter(compile::Emitter::tile);
  const int before = num_threads();
  const Operands operands;
  const std::vector<Tensor> expected = results(operands);
  std::atomic<bool> stop{false};
  std::thread toggling([&] {
    for (int i = 0; !stop; ++i) set_num_threads(i % 2 == 0 ? 16 : 1);
  });
  bool same = true;
  for (int i = 0; i < 100 && same; ++i) {
    const std::vector<Tensor> got = results(operands);
    for (size_t k = 0; k < got.size(); ++k) same = same && identical(got[k], expected[k]);
  }
  stop = true;
  toggling.join();
  set_num_threads(before);
  EXPECT_TRUE(same);
}

// g++ 12's sanitizers have locks of their own that a fork may catch: a child of a process with
// other threads hangs in them, as soon as it starts a thread.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// A kernel for every pair of dtypes.
void make_kernels() {
  constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64,
                               DType::u8,  DType::f16, DType::bf16};
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      const Tensor x = cast(zeros({30, 31}, from), to);
      const Tensor y = cast(x[{td::all, Slice{.step = 2}}], from);
      const Tensor z = transpose(y) + transpose(y);
      sum(z, 0);
      where(z > 0, maximum(z, transpose(y)), 1);
    }
  }
}

void fork_while_others_make_kernels(compile::Emitter wanted, int forks) {
  const EmitterGuard emitter(wanted);
  const Tensor x = random::uniform({300, 300}, {.key = random::Key(1)});
  const Tensor expected = matmul(x, x);
  std::atomic<bool> stop{false};
  // A new thread has no kernels at hand, and asks the shared table for each.
  std::vector<std::thread> busy(4);
  for (std::thread& thread : busy) {
    thread = std::thread([&] {
      while (!stop) std::thread(make_kernels).join();
    });
  }
  bool ended = true;
  for (int i = 0; i < forks && ended; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(600);  // A lock left taken would hang the child.
      const Tensor fresh = cast(exp(cast(x, DType::f64)) > 1 + i, DType::i32);
      _exit(identical(matmul(x, x), expected) && fresh.size() == x.size() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_TRUE(ended);
}

// Other kernels than the above.
void make_more_kernels() {
  constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8};
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      const Tensor x = cast(zeros({20, 21}, from) + 1, to);
      prod(x * x - 1, 1);
      max(x * x + x, 0);
    }
  }
}

// What waits for compiles at the end of a program must not wait for those of threads that only the
// parent has.
TEST(Concurrency, AForkedChildEndsAlthoughOthersWereCompiling) {
  const EmitterGuard emitter(compile::Emitter::llvm);
  std::vector<std::thread> busy(4);
  std::atomic<int> ended{0};
  for (std::thread& thread : busy) {
    thread = std::thread([&] {
      make_more_kernels();
      ++ended;
    });
  }
  std::fflush(stdout);  // Or every child prints what waits there.
  bool well = true;
  while (well && ended < 4) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(600);
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  for (std::thread& thread : busy) thread.join();
  EXPECT_TRUE(well);
}

TEST(Concurrency, AForkMayComeWhileOthersMakeKernels) {
  fork_while_others_make_kernels(compile::Emitter::tile, 200);
}
TEST(Concurrency, AForkMayComeWhileOthersCompile) {
  fork_while_others_make_kernels(compile::Emitter::llvm, 25);
}
#endif

}  // namespace
}  // namespace tidemark
