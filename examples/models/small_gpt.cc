// A transformer learns a short text by its characters, and goes on where a few words end.
#include <iostream>
#include <string>
#include <vector>

#include <tidemark/tidemark.h>

#include "examples/models/lesson.h"

namespace td = tidemark;

namespace {

const std::string kText =
    "the tide comes in over the flat sand, and the boats that leaned on their sides stand up one "
    "by one. the tide goes out again, and what it leaves is a line of weed and shells along the "
    "wall: the highest line the water reached. the harbour master reads that line each morning. "
    "he writes the number down, and by the number he knows how high to build the wall, how long "
    "to cut the ropes, and when to sleep. the sea keeps no secrets from a man who keeps a book. ";

constexpr int64_t kWide = 48, kTokens = 32;

struct Block {
  td::nn::LayerNorm before, between;
  td::nn::MultiHeadAttention attention{4, kWide / 4, {.causal = true}};
  td::nn::Dense up{4 * kWide, {.activation = td::gelu}}, down{kWide};
  td::Tensor operator()(const td::Tensor& x) const {
    const td::Tensor h = x + attention(before(x));
    return h + down(up(between(h)));
  }
};

struct GPT {
  explicit GPT(int64_t letters, size_t depth) : letters(letters, kWide), blocks(depth) {}
  td::Tensor operator()(const td::Tensor& ids) const {
    td::Tensor h = letters(ids) + places(td::arange(ids.shape()[1]));
    for (const Block& block : blocks) h = block(h);
    return td::matmul(last(h), letters.table, {.transpose_b = true});  // The same table both ways.
  }
  td::nn::Embedding letters, places{kTokens, kWide};
  std::vector<Block> blocks;
  td::nn::LayerNorm last;
  TIDEMARK_FIELDS(letters, places, blocks, last)
};

// Letters as numbers, and back.
struct Alphabet {
  std::string letters;
  std::vector<int32_t> numbers(const std::string& text) {
    std::vector<int32_t> all;
    for (const char letter : text) {
      if (letters.find(letter) == std::string::npos) letters += letter;
      all.push_back(static_cast<int32_t>(letters.find(letter)));
    }
    return all;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const bool small = lesson::is_small(argc, argv);
  td::random::seed(1);
  Alphabet alphabet;
  const std::vector<int32_t> text = alphabet.numbers(kText);
  const auto letters = static_cast<int64_t>(alphabet.letters.size());
  const GPT model(letters, small ? 1 : 2);
  const int64_t steps = small ? 60 : 400;
  const td::nn::AdamW optimizer(
      {.learning_rate =
           td::nn::schedules::warm_up(10, td::nn::schedules::cosine(1e-2, {.steps = 400})),
       .weight_decay = 0.01,
       .clip_global_norm = 1.0,
       .decays = [](const td::Variable& v) { return v.shape().rank() > 1; }});
  const auto step =
      lesson::step_of(model, optimizer, td::nn::losses::sparse_categorical_crossentropy);

  // Pieces of the text that begin anywhere, and the same one letter on.
  const td::Tensor whole = td::constant(text);
  const auto pieces = [&](int64_t number) {
    const auto most = static_cast<int64_t>(text.size()) - kTokens - 1;
    const td::Tensor start = td::random::integers(
        {16, 1}, {.high = most, .key = td::random::Key(static_cast<uint64_t>(number))});
    const td::Tensor at = start + td::cast(td::arange(kTokens), td::i32);
    return std::pair{td::gather(whole, at), td::gather(whole, at + 1)};
  };
  std::printf("a transformer on %zu letters\n", text.size());
  const auto [x, y] = pieces(0);
  lesson::show_step(step, x, y);
  double first = 0, loss = 0;
  const td::nn::Training on;
  for (int64_t number = 1; number <= steps; ++number) {
    const auto [from, to] = pieces(number);
    loss = step(from, to).item<double>();
    if (number == 1) first = loss;
  }
  std::printf("  loss %.3f at first, %.3f after %lld steps\n", first, loss,
              static_cast<long long>(steps));

  // The likeliest letter after the last ones, again and again.
  const auto next =
      td::function([model](const td::Tensor& ids) { return td::argmax(model(ids)[{0, -1}], -1); });
  std::string told = "the tide comes in over the flat ";
  for (int i = 0; i < 48; ++i) {
    const std::string seen = told.substr(told.size() - kTokens);
    const td::Tensor ids = td::constant(alphabet.numbers(seen), {1, kTokens});
    told += alphabet.letters[next(ids).item<size_t>()];
  }
  std::cout << "  " << told << '\n';
  return loss < (small ? 2.3 : 0.3) ? 0 : 1;
}
