// Whole programs as users write them: a training loop of one's own, and a model of one's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <tidemark/tidemark.h>

namespace td = tidemark;
using namespace td::literals;

namespace {

// What is written to std::cout in its life.
class Captured {
 public:
  Captured() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  ~Captured() { std::cout.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

struct Batch {
  td::Tensor image, label;
};
struct StepResult {
  td::Tensor loss, accuracy;
};
void train(td::nn::Sequential model, const td::data::Dataset<Batch>& batches) {
  td::nn::Adam optimizer({.learning_rate = 1e-3});
  auto step = td::function(
      [model, optimizer](const Batch& batch, const td::Tensor& weight) {
        td::GradientTape tape;
        td::Tensor logits = model(batch.image);
        td::Tensor loss =
            weight * td::nn::losses::sparse_categorical_crossentropy(batch.label, logits);
        optimizer.minimize(tape, loss, model);
        return StepResult{loss, td::mean(td::cast(td::argmax(logits, -1) == batch.label, td::f32))};
      },
      {.name = "step", .budget = 64_MiB});
  std::cout << step.plan({td::spec({td::open, 784}), td::spec({td::open}, td::i32)}, 0.9).explain();
  for (const Batch& batch : batches) std::cout << step(batch, 0.9).loss << '\n';
}

TEST(Programs, TrainInALoopOfTheirOwn) {
  const td::Tensor images = td::random::uniform({128, 784}, {.key = td::random::Key(1)});
  const td::Tensor labels = td::random::integers({128}, {.high = 10, .key = td::random::Key(2)});
  const auto batches = td::data::from_tensor_slices(Batch{images, labels}).batch(32).repeat(2);
  const Captured out;
  train({td::nn::Dense(64, {.activation = "relu"}), td::nn::Dense(10)}, batches);
  const std::string text = out.text();
  EXPECT_EQ(text.substr(0, 31), "function \"step\", for argument 0");
  EXPECT_GE(std::count(text.begin(), text.end(), '\n'), 8);  // A line for each batch.
}

struct Block {
  td::nn::LayerNorm norm;
  td::nn::Dense up{256, {.activation = td::gelu}}, down{64};
  td::Tensor operator()(const td::Tensor& x) const { return x + down(up(norm(x))); }
};
struct Model {
  td::nn::Embedding embed{1000, 64};
  std::vector<Block> blocks = std::vector<Block>(4);
  td::Variable scale{1.0f, {.name = "scale"}};
  td::Tensor operator()(const td::Tensor& ids) const {
    td::Tensor h = embed(ids);
    for (const Block& block : blocks) h = td::recompute(block)(h);
    return td::matmul(h, embed.table, {.transpose_b = true}) * scale;
  }
};
void use(const td::data::Dataset<std::tuple<td::Tensor, td::Tensor>>& batches,
         const std::string& path) {
  Model model;
  std::cout << td::nn::summary(model, td::spec({8, 128}, td::i32));
  td::nn::fit(model, batches,
              {.loss = td::nn::losses::sparse_categorical_crossentropy,
               .optimizer = td::nn::Adam({.learning_rate = 3e-4})});
  td::io::Checkpoint checkpoint{{"model", model}};
  checkpoint.save(path);
  for (auto& [name, variable] : td::nn::named_variables(model))
    std::cout << name << ' ' << variable.shape() << '\n';
}

TEST(Programs, UseAModelOfTheirOwn) {
  const td::Tensor ids = td::random::integers({8, 16}, {.high = 1000, .key = td::random::Key(1)});
  const auto batches = td::data::from_tensor_slices(std::tuple{ids, ids}).batch(4);
  const std::string path = testing::TempDir() + "programs_test.safetensors";
  const Captured out;
  use(batches, path);
  const std::string text = out.text();
  for (const char* part :
       {"epoch 1: loss ", "embed/table [1000, 64]\n", "blocks/3/down/bias [64]\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

}  // namespace
