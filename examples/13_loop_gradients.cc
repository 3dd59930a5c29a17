// Lesson 13: the gradient of a loop needs the state each trip started from. What is kept of them is
// a choice, and the answer is the same bits for every choice.
#include <tidemark/tidemark.h>

#include "examples/table.h"

namespace td = tidemark;
using namespace td::literals;

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  const int64_t trips = small ? 200 : 10'000, edge = small ? 16 : 64;
  const td::Tensor x = td::random::normal({edge, edge}, {.key = td::random::Key(1)});
  const td::Tensor a = td::random::normal({edge, edge}, {.stddev = 0.1, .key = td::random::Key(2)});

  const auto gradient = [&](td::Save save) {
    return td::function([=](const td::Tensor& a) {
      return td::grad([&](const td::Tensor& a) {
        const auto trip = [&](const td::Tensor&, const td::Tensor& c) {
          return td::tanh(td::matmul(c, a));
        };
        return td::sum(td::fori_loop(0, trips, trip, x, {.save = save}));
      })(a);
    });
  };
  const auto all = gradient(td::Save::all());
  const auto slots = gradient(td::Save::slots(small ? 15 : 100));
  const auto bytes = gradient(td::Save::bytes(small ? 64_KiB : 16_MiB));

  lesson::Table table("the gradient of c = tanh(c.a), again and again");
  table.function("all states kept", all, a);
  table.function("as many states as the root of the trips", slots, a);
  table.function(small ? "within 64 KiB" : "within 16 MiB", bytes, a);
  const td::Tensor want = all(a);
  return td::identical(want, slots(a)) && td::identical(want, bytes(a)) ? 0 : 1;
}
