// The programs of docs/models.md, and that they are those of the page.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <tidemark/tidemark.h>

namespace td = tidemark;

namespace {

struct Block {
  td::nn::LayerNorm norm;
  td::nn::Dense up{256, {.activation = td::gelu}}, down{64};
  td::Tensor operator()(const td::Tensor& x) const { return x + down(up(norm(x))); }
};
struct Model {
  td::nn::Embedding embed{1000, 64};
  std::vector<Block> blocks = std::vector<Block>(4);
  td::Tensor operator()(const td::Tensor& ids) const {
    td::Tensor h = embed(ids);
    for (const Block& block : blocks) h = td::recompute(block)(h);
    return td::matmul(h, embed.table, {.transpose_b = true});
  }
};

TEST(ModelsPage, Runs) {
  std::ostringstream text;
  std::streambuf* const before = std::cout.rdbuf(text.rdbuf());
  // clang-format off
  Model model;
  td::nn::build(model, td::spec({8, 128}, td::i32));
  for (const auto& [name, variable] : td::nn::named_variables(model)) std::cout << name << ' ' << variable.shape() << '\n';
  std::cout << td::nn::summary(model, td::spec({8, 128}, td::i32));
  td::Tensor logits = td::nn::predict(model, td::zeros({8, 128}, td::i32));
  Model other = td::nn::clone(model);
  // clang-format on
  std::cout.rdbuf(before);
  EXPECT_EQ(text.str().substr(0, text.str().find("blocks/1")),
            "embed/table [1000, 64]\nblocks/0/norm/scale [64]\nblocks/0/norm/bias [64]\n"
            "blocks/0/up/kernel [64, 256]\nblocks/0/up/bias [256]\n"
            "blocks/0/down/kernel [256, 64]\nblocks/0/down/bias [64]\n");
  EXPECT_EQ(logits.shape(), (td::Shape{8, 128, 1000}));
  EXPECT_FALSE(other.embed.table.same_as(model.embed.table));
}

TEST(ModelsPage, GeneratesTokenByToken) {
  // clang-format off
  td::nn::MultiHeadAttention attention(8, 64, {.causal = true, .key_heads = 2, .rotary = 10'000});
  td::nn::KVCache cache(1024);
  auto step = td::function([=](const td::Tensor& tokens) { return attention(tokens, cache); });
  td::Tensor first = step(td::ones({1, 20, 512}));
  td::Tensor next = step(td::ones({1, 1, 512}));
  // clang-format on
  EXPECT_EQ(first.shape(), (td::Shape{1, 20, 512}));
  EXPECT_EQ(next.shape(), (td::Shape{1, 1, 512}));
  EXPECT_EQ(cache.length.value().item<int>(), 21);
}

std::string without_margins(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin);
}

std::vector<std::string> lines_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(without_margins(line));
  return lines;
}

TEST(ModelsPage, ShowsLinesOfThisFile) {
  const std::vector<std::string> mine =
      lines_of(TIDEMARK_SOURCE "/tests/unit/nn/models_page_test.cc");
  bool in_code = false;
  int seen = 0;
  for (const std::string& line : lines_of(TIDEMARK_SOURCE "/docs/models.md")) {
    if (line.starts_with("```")) {
      in_code = line == "```cpp";
    } else if (in_code) {
      EXPECT_NE(std::find(mine.begin(), mine.end(), line), mine.end()) << line;
      ++seen;
    }
  }
  EXPECT_GT(seen, 15);
}

}  // namespace
