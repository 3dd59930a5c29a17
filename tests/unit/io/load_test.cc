#include "tidemark/io/load.h"

#include <gtest/gtest.h>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "load_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

struct Block {
  nn::Dense up{3}, down{4};
  nn::MultiHeadAttention attention{2, 2, {.use_bias = false}};
};
struct Model {
  std::vector<Block> blocks = std::vector<Block>(2);
};

Tensor drawn(const Shape& shape, uint64_t seed) {
  return random::normal(shape, {.key = random::Key(seed)});
}

// As a program of PyTorch's names and stores them: [out, in], queries, keys and values together.
std::map<std::string, Tensor> stored() {
  std::map<std::string, Tensor> tensors;
  for (int i = 0; i < 2; ++i) {
    const std::string block = cat("h.", i, ".");
    const auto seed = static_cast<uint64_t>(10 * i);
    tensors[block + "mlp.fc.weight"] = drawn({3, 4}, seed);
    tensors[block + "mlp.fc.bias"] = drawn({3}, seed + 1);
    tensors[block + "mlp.proj.weight"] = drawn({4, 3}, seed + 2);
    tensors[block + "mlp.proj.bias"] = cast(drawn({4}, seed + 3), bf16);
    tensors[block + "attn.in.weight"] = drawn({12, 4}, seed + 4);
    tensors[block + "attn.out.weight"] = drawn({4, 4}, seed + 5);
    tensors[block + "attn.mask"] = ones({1, 8, 8});
  }
  return tensors;
}

io::WeightMap table() {
  return {{"h.*.mlp.fc.weight", "blocks/*/up/kernel", {.transpose = true}},
          {"h.*.mlp.fc.bias", "blocks/*/up/bias"},
          {"h.*.mlp.proj.weight", "blocks/*/down/kernel", {.transpose = true}},
          {"h.*.mlp.proj.bias", "blocks/*/down/bias"},
          {"h.*.attn.in.weight",
           {"blocks/*/attention/query/kernel", "blocks/*/attention/key/kernel",
            "blocks/*/attention/value/kernel"},
           {.transpose = true, .split_axis = 1}},
          {"h.*.attn.out.weight", "blocks/*/attention/output/kernel", {.transpose = true}},
          {"h.*.attn.mask"}};
}

class Load : public testing::Test {
 protected:
  std::string file = testing::TempDir() + "load_test.safetensors";
};

TEST_F(Load, RenamesTransposesAndSplitsByATable) {
  io::save_safetensors(file, stored());
  const Model model;
  const io::RestoreReport report = io::load(file, model, {.map = table()});
  EXPECT_EQ(report.loaded.size(), 16U);
  EXPECT_TRUE(report.missing.empty() && report.unexpected.empty());
  std::map<std::string, Tensor> tensors = stored();
  const Block& block = model.blocks[1];
  EXPECT_TRUE(identical(block.up.kernel.value(), transpose(tensors["h.1.mlp.fc.weight"])));
  EXPECT_TRUE(identical(block.down.bias->value(), cast(tensors["h.1.mlp.proj.bias"], f32)));
  const std::vector<Tensor> parts = split(transpose(tensors["h.1.attn.in.weight"]), 3, 1);
  EXPECT_TRUE(identical(block.attention.key.kernel.value(), parts[1]));
  EXPECT_TRUE(identical(block.attention.value.kernel.value(), parts[2]));
}

// The file is mapped; a transposed part is written into its Variable.
TEST_F(Load, TakesTheBytesOfTheVariablesAlone) {
  io::save_safetensors(file, {{"weight", drawn({3 * 256, 256}, 1)}});
  const std::map<std::string, Variable> model = {{"a", Variable(zeros({256, 256}))},
                                                 {"b", Variable(zeros({256, 256}))},
                                                 {"c", Variable(zeros({256, 256}))}};
  const Bytes before = memory::current();
  memory::reset_peak();
  io::load(file, model,
           {.map = {{"weight", {"a", "b", "c"}, {.transpose = true, .split_axis = 1}}}});
  EXPECT_EQ(memory::current(), before);
  EXPECT_LE((memory::peak() - before).count, 4096);
}

TEST_F(Load, TakesAFunction) {
  io::save_safetensors(file, {{"weight", drawn({3, 4}, 1)}, {"bias", drawn({3}, 2)}});
  const nn::Dense dense(3);
  const auto map = [](const std::string& name, const Tensor& x) -> io::MappedTensors {
    if (name == "weight") return {{"kernel", transpose(x)}};
    return {{name, x * 2.0}};
  };
  io::load(file, dense, {.map = map});
  EXPECT_TRUE(identical(dense.kernel.value(), transpose(drawn({3, 4}, 1))));
  EXPECT_TRUE(identical(dense.bias->value(), drawn({3}, 2) * 2.0));
}

TEST_F(Load, SaysWhatIsLeftOverOnBothSidesAndChangesNothing) {
  io::save_safetensors(file, {{"kernel", ones({4, 3})}, {"position", ones({2})}});
  const nn::Dense dense(3);
  dense(zeros({1, 4}));
  const Tensor before = dense.kernel.value() + 0;
  EXPECT_EQ(said([&] { io::load(file, dense); }),
            "io::load: " + file +
                " does not fit the model:\n  the file has nothing for: bias\n  the model has no "
                "place for: position\n  at load_test.cc:\n  add rows to .map, of a name alone for "
                "what is not needed; {.partial = true} loads what fits");
  EXPECT_TRUE(identical(dense.kernel.value(), before));
  const io::RestoreReport report = io::load(file, dense, {.partial = true});
  EXPECT_EQ(report.loaded, std::vector<std::string>{"kernel"});
  EXPECT_EQ(report.missing, std::vector<std::string>{"bias"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"position"});
  EXPECT_TRUE(identical(dense.kernel.value(), ones({4, 3})));
}

TEST_F(Load, SaysWhatDoesNotFit) {
  const std::string at = "\n  at load_test.cc:\n  ";
  io::save_safetensors(file, {{"weight", ones({3, 4})}, {"bias", ones({3})}});
  const nn::Dense dense(3);
  dense(zeros({1, 4}));
  const auto loads = [&](io::WeightMap map) {
    return said([&] { io::load(file, dense, {.map = map}); });
  };
  EXPECT_EQ(loads({{"weight", "kernel"}}), "io::load: " + file +
                                               " does not fit the model:\n  kernel is [4, 3], "
                                               "\"weight\" gives [3, 4]" +
                                               at + "transpose or split them in .map");
  EXPECT_EQ(loads({{"bias", "bias", {.transpose = true}}}),
            "io::load: \"bias\" is f32[3] and cannot be transposed" + at +
                "leave .transpose out of its row");
  EXPECT_EQ(loads({{"weight", {"a", "b"}}}),
            "io::load: \"weight\", f32[3, 4], cannot be split into 2 equal parts along axis 0" +
                at + "name another .split_axis, or split it in a function");
  EXPECT_EQ(loads({{"*", "kernel"}}),
            "io::load: \"bias\" and \"weight\" are both mapped to \"kernel\"" + at +
                "map each to a name of its own");
}

}  // namespace
}  // namespace tidemark
