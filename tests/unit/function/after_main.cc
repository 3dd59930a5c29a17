// after_main KIND: uses the library in main, in the destructors of a thread's thread_local objects,
// and in static destructors after main. Prints a line for each that came to its end.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

int kind = 0;

void work() {
  const td::Tensor x = td::ones({10, 10});
  if (kind == 0) {
    td::GradientTape tape;
    tape.watch(x);
    (void)tape.gradient(td::sum(x * x), x);
  }
  if (kind == 1) (void)td::function([](const td::Tensor& a) { return td::sum(td::sin(a) * 2); })(x);
  if (kind == 2) {
    (void)td::function([](const td::Tensor& a) {
      return td::grad([](const td::Tensor& b) { return td::sum(td::sin(b) * b); })(a);
    })(x);
  }
  if (kind == 3) {
    const td::Variable v(x);
    v.assign_add(1);
    (void)(v * 2);
  }
  if (kind == 4) {
    for (const td::Tensor& each :
         td::data::range(20)
             .map([](const td::Tensor& r) { return r * 2; }, {.parallel = 2})
             .prefetch(2))
      (void)each;
  }
  if (kind == 5) (void)(td::softmax(td::matmul(x, x)) + td::einsum("ij,jk->ik", x, x));
  if (kind == 6) {
    const td::MemoryScope scope("x");
    const td::nn::Training on;
    const td::nn::Sequential model{td::nn::Dense(3), td::nn::Dropout(0.5)};
    td::GradientTape tape;
    const td::Tensor loss = td::sum(model(x));
    td::nn::Adam optimizer;
    optimizer.minimize(tape, loss, model);
  }
}

struct Late {
  const char* when;
  bool used = false;
  ~Late() {
    if (!used) return;
    work();
    work();
    std::puts(when);
    std::fflush(stdout);
  }
};
Late after_main{.when = "after main"};
thread_local Late thread_end{.when = "at the end of a thread"};

}  // namespace

int main(int, char** argv) {
  kind = std::atoi(argv[1]);
  after_main.used = true;
  // Made before the thread's first use of the library, so that it goes after what that keeps.
  std::thread([] {
    thread_end.used = true;
    work();
  }).join();
  thread_end.used = true;
  thread_end.when = "at the end of main";
  work();
  return 0;
}
