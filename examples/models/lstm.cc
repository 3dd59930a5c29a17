// An LSTM remembers the first number of a sequence through noise.
#include <tidemark/tidemark.h>

#include "examples/models/lesson.h"

namespace td = tidemark;

namespace {

struct Model {
  td::nn::LSTM lstm{24};
  td::nn::Dense head{2};
  td::Tensor operator()(const td::Tensor& x) const { return head(lstm(x)); }
};

// Sequences of noise whose first number is 1 or -1, and which of the two it was.
struct Sequences {
  td::Tensor numbers, first;
};
Sequences drawn(int64_t count, int64_t steps, uint64_t seed) {
  const td::random::Key key(seed);
  const td::Tensor first = td::random::integers({count}, {.high = 2, .key = key.fold_in(0)});
  td::Tensor numbers =
      td::random::normal({count, steps, 1}, {.stddev = 0.5, .key = key.fold_in(1)});
  const td::Tensor sign = td::reshape(2.0 * td::cast(first, td::f32) - 1.0, {count, 1});
  numbers = td::update(std::move(numbers), {td::all, 0}, sign);
  return {numbers, first};
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  // Of eight seeds all learn this; 64 numbers are learned from some first values and not from
  // others.
  const int64_t length = small ? 16 : 40;
  td::random::seed(1);
  const Model model;
  const td::nn::Adam optimizer({.learning_rate = 0.01, .clip_global_norm = 1.0});
  const auto loss = td::nn::losses::sparse_categorical_crossentropy;

  const Sequences known = drawn(1024, length, 1), unknown = drawn(256, length, 2);
  const auto batches = td::data::from_tensor_slices(std::tuple{known.numbers, known.first})
                           .shuffle({.seed = 1})
                           .batch(64);
  const auto held_back =
      td::data::from_tensor_slices(std::tuple{unknown.numbers, unknown.first}).batch(256);

  std::printf("an LSTM that remembers the first of %lld numbers\n", static_cast<long long>(length));
  lesson::show_step(lesson::step_of(model, optimizer, loss), known.numbers[{td::Slice{.end = 64}}],
                    known.first[{td::Slice{.end = 64}}]);
  const td::nn::History history =
      td::nn::fit(model, batches,
                  {.loss = loss,
                   .optimizer = optimizer,
                   .epochs = small ? 6 : 30,
                   .validation = held_back,
                   .metrics = {{"accuracy", td::nn::metrics::accuracy}},
                   .progress = small ? td::nn::Progress::none : td::nn::Progress::automatic});
  return lesson::reached("accuracy on sequences it has not seen",
                         history.epochs.back().validation_metrics.front().second, 0.95);
}
