#include "tidemark/nn/summary.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/unit/error_of.h"
#include "tests/unit/machine_code.h"
#include "tests/unit/nn/layers_test.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

struct Block {
  nn::LayerNorm norm;
  nn::Dense up{256, {.activation = gelu}}, down{64};
  Tensor operator()(const Tensor& x) const { return x + down(up(norm(x))); }
};
struct Model {
  nn::Embedding embed{1000, 64};
  std::vector<Block> blocks = std::vector<Block>(4);
  Variable scale{1.0f, {.name = "scale"}};
  Tensor operator()(const Tensor& ids) const {
    Tensor h = embed(ids);
    for (const Block& block : blocks) h = recompute(block)(h);
    return matmul(h, embed.table, {.transpose_b = true}) * scale;
  }
};

// Layers so narrow that no instruction set packs their kernels, which would take scratch of its own
// width. Gradients turn an operand all the same: how much they take is measured, not written here.
TEST(Summary, ListsLayersWithWhatTheyGiveAndHold) {
  const MachineCode machine;
  const nn::Sequential model{nn::Flatten(), nn::Dense(8, {.activation = "relu"}), nn::Dropout(0.5),
                             [](const Tensor& x) { return x * 2; }, nn::Dense(4)};
  const nn::Summary summary = nn::summary(model, spec({32, 16, 8}));
  ASSERT_EQ(summary.rows.size(), 5u);
  EXPECT_EQ(summary.rows[0].output, "f32[32, 128]");
  EXPECT_EQ(summary.rows[1].name, "1");
  EXPECT_EQ(summary.rows[1].kind, "nn::Dense");
  EXPECT_EQ(summary.rows[1].parameters, 128 * 8 + 8);
  EXPECT_EQ(summary.rows[1].parameter_bytes,
            Bytes(4 * 128 * 8 + 64));  // A line of 64 for the bias.
  EXPECT_EQ(summary.rows[2].kind, "nn::Dropout");
  EXPECT_EQ(summary.rows[3].kind, "function");
  EXPECT_EQ(summary.rows[4].output, "f32[32, 4]");
  EXPECT_EQ(summary.total.parameters, 128 * 8 + 8 + 32 + 4);
  EXPECT_EQ(summary.trainable, summary.total.parameters);
  std::ostringstream text;
  text << summary;
  EXPECT_EQ(text.str(),
            cat("layer               output        parameters    bytes    saved  temporaries\n"
                "       nn::Flatten  f32[32, 128]           0      0 B      0 B          0 B\n"
                "1      nn::Dense    f32[32, 8]         1,032  4.1 KiB  1.0 KiB          0 B\n"
                "       nn::Dropout  f32[32, 8]             0      0 B      0 B          0 B\n"
                "       function     f32[32, 8]             0      0 B      0 B          0 B\n"
                "4      nn::Dense    f32[32, 4]            36    192 B      0 B          0 B\n"
                "all                                    1,068  4.2 KiB  1.0 KiB      1.0 KiB\n"
                "trained: 1,068 of 1,068 parameters\n"
                "a call needs 1.5 KiB at once, one with gradients ",
                summary.training_peak, "\n"));
}

TEST(Summary, SaysWhatACallWithGradientsTakes) {
  const MachineCode machine;
  const nn::Sequential model{nn::Dense(64, {.activation = "relu"}), nn::Dense(10)};
  const nn::Summary summary = nn::summary(model, spec({32, 784}));
  const auto step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = sum(model(x));
    std::vector<Tensor> results{loss};
    for (const Gradient& each : tape.gradient(loss, nn::trainable_variables(model)))
      results.push_back(each.dense());
    return results;
  });
  step(ones({32, 784}));
  EXPECT_EQ(step.profile(ones({32, 784})).second.touched, summary.training_peak);
}

// Nothing tells a compiler that this class holds a layer.
class Encoder {
 public:
  Tensor encode(const Tensor& x) const { return hidden_(x); }

 private:
  nn::Dense hidden_{4};
};
struct Encoding {
  Encoder encoder;
  nn::Dense out{1};
  Tensor operator()(const Tensor& x) const { return out(encoder.encode(x)); }
};

TEST(Summary, WarnsOfLayersThatAreCalledButNotFound) {
  std::vector<std::string> warnings;
  on_warning([&](std::string_view text, Source) { warnings.emplace_back(text); });
  const Encoding model;
  nn::build(model, spec({8, 3}));
  nn::summary(model, spec({8, 3}));
  const nn::Dense plain(2);
  nn::build(plain, spec({8, 3}));
  on_warning({});
  ASSERT_EQ(warnings.size(), 2U);
  for (const std::string& warning : warnings) {
    EXPECT_EQ(warning,
              "the model calls a layer, nn::Dense, that is not one of its fields: checkpoints, "
              "variables() and copies leave it out\n  name the fields of the class that holds it, "
              "TIDEMARK_FIELDS(a_, b_), or give a closure as td::nn::Lambda(f, layers)");
  }
}

TEST(Summary, AllocatesNothingAndShapesTheLayers) {
  const Model model;
  const Bytes before = memory::current();
  memory::reset_peak();
  const nn::Summary summary = nn::summary(model, spec({8, 128}, i32));
  EXPECT_EQ(memory::current(), before);
  EXPECT_EQ(memory::peak(), before);
  EXPECT_EQ(summary.rows.size(), 1u + 4 * 3);
  EXPECT_EQ(summary.rows[2].name, "blocks/0/up");
  const int64_t block = 2 * 64 + 64 * 256 + 256 + 256 * 64 + 64;
  EXPECT_EQ(summary.total.parameters, 64000 + 4 * block + 1);
  EXPECT_EQ(model.blocks[3].up.kernel.shape(), (Shape{64, 256}));
}

TEST(Summary, CountsWhatATapeAroundACallHolds) {
  const nn::Dense dense(16, {.activation = "tanh"});
  const auto f = function(dense);
  const Tensor x = ones({8, 32});
  const Bytes saved = f.saved_for_gradient(spec({8, 32}));
  EXPECT_EQ(saved, nn::summary(dense, spec({8, 32})).total.saved);
  EXPECT_EQ(saved, Bytes(8 * 16 * 4));  // What tanh gave.
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  // Arguments and Variables that the gradient reads are held too: x and the kernel.
  EXPECT_EQ(tape.saved_bytes(), saved + Bytes(8 * 32 * 4 + 32 * 16 * 4));
}

// What the gradient reads and the caller gets exists once; what it reads besides comes to it.
TEST(Summary, CountsBytesThatACallUnderATapeTakes) {
  const Tensor x = random::normal({8, 32}, {.key = random::Key(1)});
  const auto gradient = [&](const auto& f) {
    GradientTape tape;
    tape.watch(x);
    const Bytes before = memory::current();
    const Tensor y = f(x);
    return std::pair{memory::current() - before, tape.gradient(y, x)};
  };
  const auto expect = [&](const auto& f, Bytes bytes) {
    const auto compiled = function(f);
    EXPECT_EQ(compiled.saved_for_gradient(x), bytes);
    gradient(compiled);  // Compiles.
    const auto [taken, found] = gradient(compiled);
    EXPECT_EQ(taken, bytes);
    EXPECT_TRUE(identical(found, gradient(f).second));
  };
  const Tensor w = random::normal({32, 32}, {.key = random::Key(2)});
  const auto layer = [w](const Tensor& x) { return tanh(matmul(x, w)); };
  expect(layer, Bytes(8 * 32 * 4));
  expect([layer](const Tensor& x) { return layer(layer(x)); }, Bytes(2 * 8 * 32 * 4));
}

// The factor of gelu is made again of its input, though the gradient asks for the factor first.
TEST(Summary, OfALayerWithGeluSavesOneTable) {
  const nn::Dense dense(16, {.activation = gelu});
  EXPECT_EQ(nn::summary(dense, spec({8, 32})).total.saved, Bytes(8 * 16 * 4));
  const auto f = function(dense);
  const Tensor x = random::normal({8, 32});
  const auto gradient = [&x](const auto& layer) {
    GradientTape tape;
    tape.watch(x);
    return tape.gradient(sum(square(layer(x))), x);
  };
  expect_near(gradient(f), gradient(dense).to_vector<double>());
}

TEST(Summary, CountsATiedLayerOnce) {
  const nn::Dense dense(4, {.use_bias = false});
  const nn::Summary summary = nn::summary(nn::Sequential{dense, dense}, spec({open, 4}));
  ASSERT_EQ(summary.rows.size(), 2u);
  EXPECT_EQ(summary.rows[0].parameters, 16);
  EXPECT_EQ(summary.rows[0].output, "f32[?, 4]");
  EXPECT_EQ(summary.rows[1].parameters, 0);
  EXPECT_EQ(summary.total.parameters, 16);
}

TEST(Summary, WritesOpenSizesAsOpenAndSaysWhatItsBytesAreFor) {
  const MachineCode machine;
  const auto model = [] { return nn::Sequential{nn::Dense(8), relu, nn::Dense(4)}; };
  const nn::Summary summary = nn::summary(model(), spec({open, 128}));
  std::ostringstream text;
  text << summary;
  EXPECT_EQ(text.str(),
            cat("layer             output     parameters    bytes    saved  temporaries\n"
                "0      nn::Dense  f32[?, 8]       1,032  4.1 KiB      0 B          0 B\n"
                "       function   f32[?, 8]           0      0 B      0 B          0 B\n"
                "2      nn::Dense  f32[?, 4]          36    192 B      0 B          0 B\n"
                "all                               1,068  4.2 KiB  2.0 KiB      2.0 KiB\n"
                "trained: 1,068 of 1,068 parameters\n"
                "a call needs 3.0 KiB at once, one with gradients ",
                summary.training_peak,
                "\nbytes are those of an input f32[64, 128]: \"?\" may be any size\n"));
  const nn::Summary known = nn::summary(model(), spec({64, 128}));
  EXPECT_EQ(known.forward_peak, summary.forward_peak);
  EXPECT_EQ(known.training_peak, summary.training_peak);
}

TEST(Summary, LeavesSizesOpenThatWindowsNeedRoomIn) {
  const nn::Sequential model{nn::Conv2D(4, 3), nn::MaxPool2D(2), nn::GlobalAveragePool2D()};
  const nn::Summary summary = nn::summary(model, spec({open, open, 32, 3}));
  EXPECT_EQ(summary.rows[0].output, "f32[?, ?, 30, 4]");
  EXPECT_EQ(summary.rows[1].output, "f32[?, ?, 15, 4]");
  EXPECT_EQ(summary.rows[2].output, "f32[?, 4]");
}

TEST(Build, ShapesAModelAndAllocatesNothing) {
  const Model model;
  const Bytes before = memory::current();
  nn::build(model, spec({open, 5}, i32));
  EXPECT_EQ(memory::current(), before);
  EXPECT_EQ(model.blocks[0].down.kernel.shape(), (Shape{256, 64}));
  EXPECT_EQ(model.blocks[3].norm.scale->shape(), (Shape{64}));
}

TEST(Build, LeavesSizesOpenThatWindowsNeedRoomIn) {
  const nn::Conv2D conv(4, 3);
  const nn::Dense head(2);
  const nn::Sequential model{conv, nn::MaxPool2D(2), nn::GlobalAveragePool2D(), head};
  nn::build(model, spec({open, open, open, 3}));
  EXPECT_EQ(conv.kernel.shape(), (Shape{3, 3, 3, 4}));
  EXPECT_EQ(head.kernel.shape(), (Shape{4, 2}));
  EXPECT_EQ(model(ones({2, 7, 9, 3})).shape(), (Shape{2, 2}));
}

}  // namespace
}  // namespace tidemark
