// A small network learns which of two spirals a point is on.
#include <tidemark/tidemark.h>

#include "examples/models/lesson.h"

namespace td = tidemark;

namespace {

struct Points {
  td::Tensor at, spiral;
};

// Points on two spirals that turn around each other, a little off.
Points drawn(int64_t count, uint64_t seed) {
  const td::random::Key key(seed);
  const td::Tensor spiral = td::random::integers({count}, {.high = 2, .key = key.fold_in(0)});
  const td::Tensor turn =
      td::random::uniform({count}, {.low = 0.4, .high = 4.0, .key = key.fold_in(1)});
  const td::Tensor noise = td::random::normal({count, 2}, {.stddev = 0.03, .key = key.fold_in(2)});
  const td::Tensor side = 1.0 - 2.0 * td::cast(spiral, td::f32);
  const td::Tensor x = side * turn * td::cos(2.0 * turn), y = side * turn * td::sin(2.0 * turn);
  return {td::stack({x, y}, 1) + noise, spiral};
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  td::random::seed(1);
  const td::nn::Sequential model{td::nn::Dense(64, {.activation = td::relu}),
                                 td::nn::Dense(64, {.activation = td::relu}), td::nn::Dense(2)};
  const td::nn::Adam optimizer({.learning_rate = 0.01});
  const auto loss = td::nn::losses::sparse_categorical_crossentropy;

  const Points known = drawn(1000, 1), unknown = drawn(500, 2);
  const auto batches = td::data::from_tensor_slices(std::tuple{known.at, known.spiral})
                           .shuffle({.seed = 1})
                           .batch(100);
  const auto held_back =
      td::data::from_tensor_slices(std::tuple{unknown.at, unknown.spiral}).batch(500);

  std::printf("an MLP on two spirals\n");
  lesson::show_step(lesson::step_of(model, optimizer, loss), known.at, known.spiral);
  const td::nn::History history =
      td::nn::fit(model, batches,
                  {.loss = loss,
                   .optimizer = optimizer,
                   .epochs = small ? 40 : 200,
                   .validation = held_back,
                   .early_stopping = td::nn::EarlyStopping{.patience = 30},
                   .metrics = {{"accuracy", td::nn::metrics::accuracy}},
                   .progress = small ? td::nn::Progress::none : td::nn::Progress::automatic});
  const td::nn::Epoch& best = history.epochs[static_cast<size_t>(history.best - 1)];
  return lesson::reached("accuracy on points it has not seen",
                         best.validation_metrics.front().second, 0.98);
}
