#include "tidemark/nn/recurrent.h"

#include <gtest/gtest.h>

#include "tests/unit/error_of.h"
#include "tests/unit/nn/layers_test.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using nn::Bidirectional;
using nn::GRU;
using nn::LSTM;
using nn::SimpleRNN;

template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "recurrent_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}

template <class Layer>
void draw_variables(const Layer& layer) {
  uint64_t seed = 7;
  for (const auto& [name, variable] : nn::named_variables(layer))
    variable.assign(drawn_f64(variable.shape(), seed++) * 0.5);
}

Tensor first(const Tensor& x, int64_t steps) { return x[{all, Slice{.end = steps}}]; }
Tensor rest(const Tensor& x, int64_t steps) { return x[{all, Slice{.begin = steps}}]; }
Tensor h_of(const Tensor& state) { return state; }
Tensor h_of(const nn::LSTMState& state) { return state.h; }

// Calls f with a layer of each kind, in f64, that was built for [3, 6, 4].
template <class F>
void for_each_kind(bool sequences, const F& f) {
  const auto call = [&](const auto& layer, const char* name) {
    SCOPED_TRACE(name);
    layer(zeros({3, 6, 4}, f64));
    draw_variables(layer);
    f(layer);
  };
  call(LSTM(5, {.return_sequences = sequences, .dtype = f64}), "LSTM");
  call(GRU(5, {.return_sequences = sequences, .dtype = f64}), "GRU");
  call(SimpleRNN(5, {.return_sequences = sequences, .dtype = f64}), "SimpleRNN");
}

TEST(Recurrent, HaveTheGradientsOfDifferences) {
  for_each_kind(true, [](const auto& layer) { expect_gradients(layer, drawn_f64({2, 3, 4}, 1)); });
}

TEST(Recurrent, ContinueFromAStateAsIfTheyHadNotStopped) {
  const Tensor x = drawn_f64({3, 6, 4}, 1);
  for_each_kind(true, [&](const auto& layer) {
    const Tensor whole = layer(x);
    const auto [start, between] = layer.run(first(x, 2));
    const auto [end, last] = layer.run(rest(x, 2), {.initial = between});
    EXPECT_TRUE(identical(concat({start, end}, 1), whole));
    EXPECT_TRUE(identical(h_of(last), whole[{all, -1}]));
    const auto compiled = function(
        [&](const Tensor& given) { return layer.run(given, {.initial = between}).output; });
    EXPECT_TRUE(identical(compiled(rest(x, 2)), end));
  });
}

TEST(Recurrent, SkipStepsThatAreMasked) {
  const Tensor x = drawn_f64({3, 6, 4}, 2);
  const Tensor mask = arange(6) < constant({{6}, {2}, {4}});
  for_each_kind(false, [&](const auto& layer) {
    const Tensor given = layer.run(x, {.mask = mask}).output;
    for (const auto& [row, steps] : {std::pair<int64_t, int64_t>{0, 6}, {1, 2}, {2, 4}}) {
      const Tensor alone = layer(first(x, steps)[{Slice{.begin = row, .end = row + 1}}]);
      EXPECT_TRUE(identical(given[row], alone[0])) << "row " << row;
    }
  });
  for_each_kind(true, [&](const auto& layer) {
    const Tensor all_steps = layer.run(x, {.mask = mask}).output;
    EXPECT_TRUE(identical(all_steps[{1, 5}], all_steps[{1, 1}]));  // The output repeats.
  });
}

TEST(Recurrent, GoBothWays) {
  const Tensor x = drawn_f64({3, 6, 4}, 3);
  const GRU forward(5, {.return_sequences = true, .dtype = f64});
  const GRU backward(5, {.return_sequences = true, .reverse = true, .dtype = f64});
  const Bidirectional both(forward, backward);
  const Tensor y = both(x);
  EXPECT_EQ(y.shape(), Shape({3, 6, 10}));
  EXPECT_TRUE(identical(y[{all, all, Slice{.end = 5}}], forward(x)));
  // The last step of the way back is the first of the sequence.
  const GRU last = [&] {
    GRU same(5, {.dtype = f64});
    same(x);
    for (size_t i = 0; i < 4; ++i) nn::variables(same)[i].assign(nn::variables(backward)[i]);
    return same;
  }();
  EXPECT_TRUE(identical(y[{all, 0, Slice{.begin = 5}}], last(flip(x, 1))));
  EXPECT_EQ(names_of(nn::named_variables(both))[4], "backward/kernel");
}

TEST(Recurrent, GoBothWaysFromStatesAndWithAMask) {
  const Tensor x = drawn_f64({2, 5, 4}, 3);
  const Tensor mask = constant({{1, 1, 1, 1, 1}, {1, 1, 0, 0, 0}}, boolean);
  const LSTM forward(3, {.return_sequences = true, .dtype = f64});
  const GRU backward(3, {.return_sequences = true, .reverse = true, .dtype = f64});
  const Bidirectional both(forward, backward);
  const auto [y, state] = both.run(x, {.mask = mask});
  const auto ahead = forward.run(x, {.mask = mask});
  const auto back = backward.run(x, {.mask = mask});
  EXPECT_TRUE(identical(y, concat({ahead.output, back.output}, -1)));
  EXPECT_TRUE(identical(state.forward[1], ahead.state.c));
  EXPECT_TRUE(identical(state.backward[0], back.state));
  const auto again = both.run(x, {.initial = state});
  EXPECT_TRUE(identical(again.state.forward[0], forward.run(x, {.initial = ahead.state}).state.h));
  EXPECT_TRUE(identical(both.run(x).output, both(x)));
  const Bidirectional copy = nn::clone(both);
  for (const Variable& each : nn::variables(copy)) each.assign(0 * each);
  EXPECT_FALSE(identical(copy.run(x).output, both(x)));
}

TEST(Recurrent, SayWhichStatesTheyTakeInBothDirections) {
  const Tensor x = ones({2, 5, 4}), h = ones({2, 3});
  const Bidirectional lstms(LSTM(3), LSTM(3, {.reverse = true}));
  EXPECT_EQ(error_of([&] {
              lstms.run(x, {.initial = nn::BidirectionalState{{h}, {h}}}, Source::none());
            }),
            "nn::LSTM: the initial state has 1 tensors, not 2\n  give {h, c}");
  const Bidirectional grus(GRU(3), GRU(3, {.reverse = true}));
  EXPECT_EQ(error_of([&] {
              grus.run(x, {.initial = nn::BidirectionalState{{h, h}, {h}}}, Source::none());
            }),
            "nn::GRU: the initial state has 2 tensors, not 1\n  give {h}");
  const Bidirectional denses(nn::Dense(3), nn::Dense(3, {.name = "last"}));
  EXPECT_EQ(error_of([&] { denses.run(x, {}, Source::none()); }),
            "nn::Bidirectional: a layer that is not recurrent has no state\n"
            "  call it without a state and a mask: layer(x)");
}

TEST(Recurrent, StackInASequential) {
  const nn::Sequential model{GRU(8, {.return_sequences = true}), LSTM(4), nn::Dense(2)};
  EXPECT_EQ(nn::predict(model, ones({3, 6, 5})).shape(), Shape({3, 2}));
}

// Walking a sequence holds a step at a time, however long it is.
TEST(Recurrent, TakeNoBytesByStepBesideTheOutput) {
  std::vector<int64_t> temporaries;
  for (const int64_t steps : {10, 100}) {
    const GRU layer(16);
    layer(zeros({4, steps, 8}));
    const auto f = function([=](const Tensor& x) { return layer(x); });
    const Plan plan = f.plan(spec({4, steps, 8}));
    temporaries.push_back(plan.of(ByteClass::temporaries).count);
    const auto [y, profile] = f.profile(ones({4, steps, 8}));
    EXPECT_EQ(profile.touched, profile.planned);
    EXPECT_EQ(profile.planned, plan.peak());
  }
  EXPECT_EQ(temporaries[0], temporaries[1]);
}

TEST(Recurrent, SayWhatDoesNotFit) {
  const std::string at = "\n  at recurrent_test.cc:\n  ";
  EXPECT_EQ(said([] { GRU(0); }), "nn::GRU: cannot have 0 units" + at + "give it one or more");
  EXPECT_EQ(said([] { GRU(4)(ones({3, 4})); }),
            "nn::GRU: the input f32[3, 4] is not a batch of sequences" + at +
                "give it [n, steps, features]");
  EXPECT_EQ(said([] { GRU(4).run(ones({3, 5, 2}), {.initial = ones({3, 5})}); }),
            "nn::GRU: the initial state f32[3, 5] does not fit 3 sequences and 4 units" + at +
                "give it [n, units]");
  EXPECT_EQ(said([] { LSTM(4).run(ones({3, 5, 2}), {.mask = ones({3, 5})}); }),
            "nn::LSTM: the mask f32[3, 5] does not fit the input f32[3, 5, 2]" + at +
                "give it bool[n, steps]: true for the steps that count");
}

}  // namespace
}  // namespace tidemark
