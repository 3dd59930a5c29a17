// A residual network tells pictures of bars, crosses and rings apart.
#include <tidemark/tidemark.h>

#include "examples/models/lesson.h"

namespace td = tidemark;

namespace {

constexpr int64_t kSize = 12, kClasses = 4;

// Two convolutions, and what went in beside them.
struct Block {
  explicit Block(int64_t channels)
      : first(channels, 3, {.padding = td::Padding::same, .use_bias = false}),
        second(channels, 3, {.padding = td::Padding::same, .use_bias = false}) {}
  td::Tensor operator()(const td::Tensor& x) const {
    return td::relu(x + after(second(td::relu(before(first(x))))));
  }
  td::nn::Conv2D first, second;
  td::nn::BatchNorm before{{.momentum = 0.8}}, after{{.momentum = 0.8}};
  TIDEMARK_FIELDS(first, second, before, after)
};

struct ResNet {
  explicit ResNet(int64_t channels)
      : stem(channels, 3, {.padding = td::Padding::same, .activation = td::relu}),
        blocks{Block(channels), Block(channels)} {}
  td::Tensor operator()(const td::Tensor& x) const {
    td::Tensor h = shrink(stem(x));
    for (const Block& block : blocks) h = block(h);
    return head(pool(h));
  }
  td::nn::Conv2D stem;
  td::nn::MaxPool2D shrink;
  std::vector<Block> blocks;
  td::nn::GlobalAveragePool2D pool;
  td::nn::Dense head{kClasses};
  TIDEMARK_FIELDS(stem, shrink, blocks, pool, head)
};

struct Pictures {
  td::Tensor pixels, kind;
};

// A level bar, an upright bar, a cross or a ring, somewhere, in noise.
Pictures drawn(int64_t count, uint64_t seed) {
  const td::random::Key key(seed);
  const auto numbers = [&](int64_t stream, double low, double high) {
    return td::random::uniform({count, 1, 1},
                               {.low = low, .high = high, .key = key.fold_in(stream)});
  };
  const td::Tensor kind = td::random::integers({count}, {.high = kClasses, .key = key.fold_in(0)});
  const td::Tensor row =
      td::reshape(td::cast(td::arange(kSize), td::f32), {1, kSize, 1}) - numbers(1, 4, kSize - 5);
  const td::Tensor column =
      td::reshape(td::cast(td::arange(kSize), td::f32), {1, 1, kSize}) - numbers(2, 4, kSize - 5);
  const td::Tensor level = (td::abs(row) < 0.8) & (td::abs(column) < 4);
  const td::Tensor upright = (td::abs(column) < 0.8) & (td::abs(row) < 4);
  const td::Tensor radius = td::sqrt(row * row + column * column);
  const td::Tensor ring = td::abs(radius - 3) < 0.7;
  const td::Tensor which = td::reshape(kind, {count, 1, 1});
  const td::Tensor shown =
      td::where(which == 0, level,
                td::where(which == 1, upright, td::where(which == 2, level | upright, ring)));
  const td::Tensor noise =
      td::random::normal({count, kSize, kSize}, {.stddev = 0.2, .key = key.fold_in(3)});
  return {td::expand_dims(td::cast(shown, td::f32) + noise, -1), kind};
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  td::random::seed(1);
  const ResNet model(small ? 8 : 16);
  const int64_t count = small ? 512 : 4096;
  const td::nn::AdamW optimizer(
      {.learning_rate = td::nn::schedules::warm_up(10, td::nn::schedules::constant(0.01)),
       .decays = [](const td::Variable& v) { return v.shape().rank() > 1; }});
  const auto loss = td::nn::losses::sparse_categorical_crossentropy;

  const Pictures known = drawn(count, 1), unknown = drawn(256, 2);
  const auto batches = td::data::from_tensor_slices(std::tuple{known.pixels, known.kind})
                           .shuffle({.seed = 1})
                           .batch(64);
  const auto held_back =
      td::data::from_tensor_slices(std::tuple{unknown.pixels, unknown.kind}).batch(128);

  std::printf("a residual network on pictures of %lld x %lld\n", static_cast<long long>(kSize),
              static_cast<long long>(kSize));
  lesson::show_step(lesson::step_of(model, optimizer, loss), known.pixels[{td::Slice{.end = 64}}],
                    known.kind[{td::Slice{.end = 64}}]);
  const td::nn::History history =
      td::nn::fit(model, batches,
                  {.loss = loss,
                   .optimizer = optimizer,
                   .epochs = 6,
                   .validation = held_back,
                   .metrics = {{"accuracy", td::nn::metrics::accuracy}},
                   .progress = small ? td::nn::Progress::none : td::nn::Progress::automatic});
  return lesson::reached("accuracy on pictures it has not seen",
                         history.epochs.back().validation_metrics.front().second,
                         small ? 0.9 : 0.98);
}
