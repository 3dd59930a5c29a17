// Mixed precision: f32 Variables, activations of 16 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

using nn::Activation;
using nn::Policy;

// The global policy while it lives.
class PolicyOf {
 public:
  explicit PolicyOf(const Policy& policy) : before_(nn::global_policy()) {
    nn::set_global_policy(policy);
  }
  ~PolicyOf() { nn::set_global_policy(before_); }
  PolicyOf(const PolicyOf&) = delete;
  PolicyOf& operator=(const PolicyOf&) = delete;

 private:
  Policy before_;
};

Tensor drawn(const Shape& shape, int64_t key, double stddev = 1) {
  return random::normal(shape, {.stddev = stddev, .key = random::Key(key)});
}

// What a call that must fail says, without the number of the line.
template <class F>
std::string said(F f) {
  const std::string text = error_of(f), file = "mixed_precision_test.cc:";
  const size_t begin = text.find(file) + file.size();
  return text.substr(0, begin) + text.substr(text.find('\n', begin));
}
const std::string kAt = "\n  at mixed_precision_test.cc:\n  ";

double largest_difference(const Tensor& a, const Tensor& b) {
  return max(abs(cast(a, f64) - cast(b, f64))).item<double>();
}

// ---- Autocast -----------------------------------------------------------------------------------

TEST(Autocast, ReadsTrainableVariablesOfF32As16Bits) {
  const Variable w(drawn({2, 3}, 1)), fixed(drawn({3}, 2), {.trainable = false}),
      wide(drawn({3}, 3), {.dtype = f64});
  EXPECT_EQ(autocast(), f32);
  const Autocast on(bf16);
  EXPECT_EQ(autocast(), bf16);
  EXPECT_EQ(w.value().dtype(), bf16);
  EXPECT_TRUE(identical(w.value(), cast(
                                       [&] {
                                         const Autocast off(f32);
                                         return w.value();
                                       }(),
                                       bf16)));
  EXPECT_EQ(fixed.value().dtype(), f32);
  EXPECT_EQ(wide.value().dtype(), f64);
  EXPECT_EQ(w[1].dtype(), bf16);
  EXPECT_EQ((w + 1).dtype(), bf16);
  // A product with f32 is of 16 bits; other ops take the wider type.
  EXPECT_EQ(matmul(drawn({4, 2}, 4), w).dtype(), bf16);
  EXPECT_EQ((drawn({2, 3}, 4) + w).dtype(), f32);
  EXPECT_EQ(matmul(drawn({4, 2}, 4), drawn({2, 3}, 4)).dtype(), f32);
  EXPECT_EQ(said([] { const Autocast wrong(i32); }),
            "Autocast: parameters cannot be read as i32" + kAt +
                "give td::bf16 or td::f16; td::f32 switches it off");
}

TEST(Autocast, GivesGradientsOfF32) {
  const Variable w(drawn({8, 4}, 1)), table(drawn({10, 8}, 2));
  const Autocast on(bf16);
  GradientTape tape;
  const Tensor rows = gather(table, constant({1, 3, 1}));
  EXPECT_EQ(rows.dtype(), bf16);
  const auto [dw, dt] =
      tape.gradient(sum(cast(matmul(rows, w), f32)), std::tuple<Variable, Variable>(w, table));
  EXPECT_EQ(dw.dtype(), f32);
  ASSERT_TRUE(dt.is_rows());
  EXPECT_EQ(dt.rows().rows.dtype(), f32);
}

TEST(Autocast, IsPartOfTheKeyOfAFunction) {
  const Variable w(drawn({8, 4}, 1));
  const auto product = function([=](const Tensor& x) { return matmul(x, w); });
  const auto always = function([=](const Tensor& x) { return matmul(x, w); }, {.autocast = bf16});
  const auto inside = function([=](const Tensor& x) { return always(x); });
  const Tensor x = drawn({3, 8}, 2);
  EXPECT_EQ(product(x).dtype(), f32);
  const Autocast on(bf16);
  EXPECT_EQ(product(x).dtype(), bf16);
  EXPECT_EQ(product.cache_info().traces, 2);
  EXPECT_EQ(product.cache_info().entries.front().reason, "Autocast: f32 became bf16");
  const Autocast off(f32);
  EXPECT_EQ(product(x).dtype(), f32);
  EXPECT_EQ(product.cache_info().traces, 2);
  const Autocast again(bf16);
  const Tensor wanted = product(x);
  {
    const Autocast none(f32);
    EXPECT_TRUE(identical(always(x), wanted));
    EXPECT_TRUE(identical(inside(x), wanted));
  }
}

TEST(Autocast, DoesNotReachUpdatesAveragesAndCheckpoints) {
  nn::Dense layer(3);
  nn::build(layer, spec({4, 2}));
  const nn::EMA average(layer);
  const nn::Adam adam;
  const Autocast on(bf16);
  GradientTape tape;
  const Tensor loss = nn::losses::mse(zeros({4, 3}), layer(drawn({4, 2}, 1)));
  adam.minimize(tape, loss, layer);
  average.update();
  average.swap();
  average.swap();
  const std::string file = testing::TempDir() + "autocast.safetensors";
  io::Checkpoint{{"model", layer}}.save(file);
  EXPECT_EQ(io::load_safetensors(file).at("model/kernel").dtype(), f32);
  EXPECT_EQ(layer.kernel.dtype(), f32);
  const auto history = nn::fit(layer, std::vector{std::pair{drawn({4, 2}, 1), zeros({4, 3})}},
                               {.loss = nn::losses::mse,
                                .epochs = 2,
                                .early_stopping = nn::EarlyStopping{},
                                .progress = nn::Progress::none});
  EXPECT_LT(history.epochs[1].loss, history.epochs[0].loss);
}

// The second run of the function happens in the mode of the first, wherever the gradient is taken.
TEST(Recompute, RunsAgainInTheModesThatItRanIn) {
  const Tensor x = drawn({64}, 1);
  const Variable w(drawn({64}, 2));
  DType seen = f32;
  const auto block = recompute([&](const Tensor& given) {
    seen = w.value().dtype();
    return nn::is_training() ? given * 3.0 : given;
  });
  GradientTape tape;
  tape.watch(x);
  Tensor y;
  {
    const nn::Training on;
    const Autocast narrow(bf16);
    y = block(x);
  }
  seen = f32;
  EXPECT_TRUE(identical(tape.gradient(sum(y), x), full({64}, 3.0)));
  EXPECT_EQ(seen, bf16);
}

// ---- policies -----------------------------------------------------------------------------------

TEST(Policy, HasNames) {
  EXPECT_EQ(Policy("mixed_bf16").variable, f32);
  EXPECT_EQ(Policy("mixed_bf16").compute, bf16);
  EXPECT_EQ(Policy("mixed_float16"), Policy("mixed_f16"));
  EXPECT_EQ(Policy("bfloat16"), Policy(bf16));
  for (const char* name : {"f32", "f64", "bf16", "f16", "mixed_bf16", "mixed_f16"})
    EXPECT_EQ(Policy(name).name(), name);
  for (const char* name : {"mixed_f32", "half", "", "mixed_"})
    EXPECT_EQ(said([&] { (void)Policy(name); }),
              cat("nn::Policy: there is no policy \"", name, "\"", kAt,
                  "one of: f32, f64, bf16, f16, mixed_bf16, mixed_f16"));
}

// A layer, its input, and how far 16 bits may be off: roundings of 2^-9 in a few steps.
struct LayerCase {
  std::string name;
  std::function<Tensor(const Tensor&)> call;
  Tensor x;
};
std::vector<LayerCase> layer_cases() {
  const Tensor rows = drawn({4, 6}, 1), image = drawn({2, 6, 6, 4}, 2), steps = drawn({2, 5, 6}, 3);
  return {
      {"Dense", nn::Dense(5, {.activation = gelu}), rows},
      {"Embedding", nn::Embedding(9, 4), constant({1, 2, 8})},
      {"Conv2D", nn::Conv2D(3, 3), image},
      {"LayerNorm", nn::LayerNorm(), rows},
      {"RMSNorm", nn::RMSNorm(), rows},
      {"BatchNorm", nn::BatchNorm(), rows},
      {"GroupNorm", nn::GroupNorm(2), image},
      {"InstanceNorm", nn::InstanceNorm(), image},
      {"MultiHeadAttention", nn::MultiHeadAttention(2, 4, {.causal = true, .rotary = 1e4}), steps},
      {"LSTM", nn::LSTM(4), steps},
      {"GRU", nn::GRU(4), steps},
      {"SimpleRNN", nn::SimpleRNN(4), steps},
      {"Bidirectional", nn::Bidirectional(nn::GRU(4), nn::GRU(4, {.reverse = true})), steps}};
}

TEST(Policy, LayersComputeIn16BitsNearF32) {
  random::seed(7);
  const std::vector<LayerCase> plain = layer_cases();
  std::vector<Tensor> wanted;
  for (const LayerCase& each : plain) wanted.push_back(each.call(each.x));
  for (const char* name : {"mixed_bf16", "mixed_f16"}) {
    const PolicyOf mixed{Policy(name)};
    random::seed(7);
    const std::vector<LayerCase> cases = layer_cases();
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(cat(name, " ", cases[i].name));
      const Tensor y = cases[i].call(cases[i].x);
      EXPECT_EQ(y.dtype(), Policy(name).compute);
      const double scale = max(abs(wanted[i])).item<double>();
      EXPECT_LT(largest_difference(y, wanted[i]), 0.03 * scale);
    }
  }
}

TEST(Policy, ALayerMayHaveItsOwn) {
  const PolicyOf mixed("mixed_bf16");
  const nn::Dense body(4), head(2, {.dtype = f32});
  EXPECT_EQ(head(body(drawn({3, 5}, 1))).dtype(), f32);
  EXPECT_EQ(body.policy(), Policy("mixed_bf16"));
  const nn::LSTM lstm(4);
  const auto [output, state] =
      lstm.run(drawn({2, 3, 4}, 1), {.initial = nn::LSTMState{zeros({2, 4}), zeros({2, 4})}});
  EXPECT_EQ(output.dtype(), bf16);
  EXPECT_EQ(state.c.dtype(), bf16);
  const nn::MultiHeadAttention attention(2, 4, {.causal = true, .alibi = true});
  const nn::KVCache cache(8, {.dtype = bf16});
  EXPECT_EQ(attention(drawn({1, 3, 8}, 1), cache).dtype(), bf16);
  EXPECT_EQ(attention(drawn({1, 3, 8}, 1), drawn({1, 5, 8}, 2)).dtype(), bf16);
}

// A query without a key gives zeros and finite gradients also where -1e30 is infinite.
TEST(Attention, OfF16WithQueriesThatSeeNothing) {
  const nn::MultiHeadAttention layer(1, 4, {.alibi = true, .dtype = "mixed_f16"});
  const Tensor x = drawn({1, 3, 4}, 1),
               mask = constant({{true, true, true}, {false, false, false}, {true, false, true}});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = layer(x, x, mask);
  const Tensor dx = tape.gradient(sum(cast(y, f32)), x);
  EXPECT_TRUE(all(isfinite(y)).item<bool>());
  EXPECT_TRUE(all(isfinite(dx)).item<bool>());
}

// ---- bytes --------------------------------------------------------------------------------------

struct MLP {
  std::vector<nn::Dense> layers;
  explicit MLP(int64_t wide, Activation activation) {
    for (int i = 0; i < 6; ++i)
      layers.emplace_back(wide, nn::DenseOptions{.activation = activation});
  }
  Tensor operator()(const Tensor& x) const {
    Tensor h = x;
    for (const nn::Dense& layer : layers) h = layer(h);
    return h;
  }
  TIDEMARK_FIELDS(layers)
};

struct Block {
  Block(int64_t width, int64_t heads)
      : attention(heads, width / heads, {.causal = true}),
        up(4 * width, {.activation = gelu}),
        down(width) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(norm1(x));
    return h + down(up(norm2(h)));
  }
  nn::LayerNorm norm1, norm2;
  nn::MultiHeadAttention attention;
  nn::Dense up, down;
  TIDEMARK_FIELDS(norm1, norm2, attention, up, down)
};

struct GPT {
  GPT(int64_t words, int64_t length, int64_t width, int64_t layers)
      : tokens(words, width), places(length, width), head(words) {
    for (int64_t i = 0; i < layers; ++i) blocks.emplace_back(width, 4);
  }
  Tensor operator()(const Tensor& ids) const {
    Tensor h = tokens(ids) + places(arange(ids.shape()[1]));
    for (const Block& block : blocks) h = block(h);
    return head(norm(h));
  }
  nn::Embedding tokens, places;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Dense head;
  TIDEMARK_FIELDS(tokens, places, blocks, norm, head)
};

using StepFunction = Function<Tensor(const Tensor&, const Tensor&)>;
template <class Model, class Loss>
StepFunction step_of(const Model& model, const Loss& loss, std::optional<DType> as = {}) {
  return function(
      [=, adam = nn::Adam({.learning_rate = 3e-3})](const Tensor& x, const Tensor& y) {
        GradientTape tape;
        const Tensor found = loss(y, model(x));
        adam.minimize(tape, found, model);
        return found;
      },
      {.autocast = as});
}

struct StepBytes {
  int64_t saved = 0, peak = 0;
  std::vector<double> losses;
};
// The most bytes that are saved for gradients at one time. (Plan::of asks for the moment of the
// peak, which need not be the same moment in two programs.)
int64_t most_saved(const Plan& plan) {
  std::vector<int64_t> at_step(plan.timeline().size() + 1);
  for (const PlanBuffer& buffer : plan.buffers()) {
    if (buffer.byte_class != ByteClass::saved) continue;
    for (int64_t step = buffer.begin; step < buffer.end; ++step)
      at_step[static_cast<size_t>(step)] += buffer.bytes.count;
  }
  return *std::ranges::max_element(at_step);
}

StepBytes bytes_of(const StepFunction& step, const Tensor& x, const Tensor& y, int steps) {
  const auto [first, profile] = step.profile(x, y);
  EXPECT_EQ(profile.planned.count, profile.touched.count);
  const Plan plan = step.plan(x, y);
  StepBytes found{most_saved(plan), plan.peak().count, {first.item<double>()}};
  for (int i = 1; i < steps; ++i) found.losses.push_back(step(x, y).item<double>());
  return found;
}

void expect_saving(const StepBytes& mixed, const StepBytes& plain) {
  EXPECT_LE(static_cast<double>(mixed.saved), 0.6 * static_cast<double>(plain.saved));
  EXPECT_LT(mixed.peak, plain.peak);
  for (size_t i = 0; i < plain.losses.size(); ++i)
    EXPECT_NEAR(mixed.losses[i], plain.losses[i], 0.05 * plain.losses[0]);
  EXPECT_LT(mixed.losses.back(), 0.9 * mixed.losses.front());
}

TEST(MixedPrecision, HalvesWhatTheStepOfAnMlpKeeps) {
  const Tensor x = drawn({256, 64}, 1), y = drawn({256, 64}, 2, 0.3);
  for (const Activation& activation : {Activation(gelu), Activation(relu), Activation(tanh)}) {
    const auto run = [&](const Policy& policy, std::optional<DType> as = {}) {
      const PolicyOf now(policy);
      random::seed(3);
      return bytes_of(step_of(MLP(64, activation), nn::losses::mse, as), x, y, 15);
    };
    const StepBytes plain = run(f32), mixed = run("mixed_bf16");
    expect_saving(mixed, plain);
    expect_saving(run("mixed_f16"), plain);
    EXPECT_EQ(run(f32, bf16).losses, mixed.losses);
  }
}

// Gradients of weights are as large as the weights: a step applies each as soon as it is known, and
// converts a weight where it is read, whether the batch is computed at once or in parts.
TEST(MixedPrecision, HoldsTheGradientsAndTheConvertedWeightsOfOneLayerAtATime) {
  const auto peak = [](int64_t rows, std::optional<DType> as) {
    const MLP model(512, relu);
    const nn::Dense head(10);
    const auto all = std::tuple(model, head);
    const TensorSpec x = spec({rows, 512}), y = spec({rows}, i32);
    nn::build(nn::Sequential{model, head}, x);
    return function(
               [=, sgd = nn::SGD()](const Tensor& x, const Tensor& y) {
                 GradientTape tape;
                 const Tensor loss = nn::losses::sparse_categorical_crossentropy(y, head(model(x)));
                 sgd.minimize(tape, loss, all);
                 return loss;
               },
               {.autocast = as})
        .plan(x, y)
        .peak()
        .count;
  };
  constexpr int64_t weights = 512 * 512 * 4;
  EXPECT_LT(peak(64, bf16), peak(64, std::nullopt));
  EXPECT_LT(peak(64, bf16), 2 * weights);
  // In two parts of 256 rows, with sums of six weights' gradients in f32 in both.
  EXPECT_LT(peak(512, bf16) - 6 * weights,
            0.85 * static_cast<double>(peak(512, std::nullopt) - 6 * weights));
}

TEST(MixedPrecision, HalvesWhatTheStepOfAGptKeeps) {
  const Tensor x = random::integers({4, 128}, {.low = 0, .high = 512, .key = random::Key(1)});
  const Tensor y = remainder(x * 7 + 3, 512);
  const auto run = [&](const Policy& policy) {
    const PolicyOf now(policy);
    random::seed(3);
    return bytes_of(step_of(GPT(512, 128, 128, 2), nn::losses::sparse_categorical_crossentropy), x,
                    y, 3);
  };
  const StepBytes plain = run(f32), mixed = run("mixed_bf16");
  EXPECT_LE(static_cast<double>(mixed.saved), 0.6 * static_cast<double>(plain.saved));
  for (size_t i = 0; i < plain.losses.size(); ++i)
    EXPECT_NEAR(mixed.losses[i], plain.losses[i], 0.02);
}

// Sums of 16-bit floats over a table that is computed part by part are carried in f32 and rounded
// once, as those of the whole table are.
TEST(MixedPrecision, TablesInPartsHaveTheBitsOfTheWhole) {
  for (const DType dtype : {bf16, f16}) {
    const Tensor x = cast(drawn({600, 32}, 1), dtype), w = cast(drawn({32, 1024}, 2, 0.2), dtype),
                 b = cast(drawn({1024}, 3), dtype);
    const auto gradients = [](const Tensor& x, const Tensor& w, const Tensor& b) {
      GradientTape tape;
      tape.watch(std::tuple(x, w, b));
      const Tensor loss = sum(cast(logsumexp(matmul(x, w) + b, -1), f32));
      return tape.gradient(loss, std::tuple(x, w, b));
    };
    const auto parts = function(gradients), whole = function(gradients, {.jit = false});
    const auto [dx, dw, db] = parts(x, w, b);
    const auto [dx2, dw2, db2] = whole(x, w, b);
    EXPECT_TRUE(identical(dx, dx2));
    EXPECT_TRUE(identical(dw, dw2));
    EXPECT_TRUE(identical(db, db2));
    EXPECT_NE(parts.text("split").find("accumulate("), std::string::npos);
  }
}

// ---- loss scale ---------------------------------------------------------------------------------

struct Scaled {
  std::vector<double> scales;
  std::vector<int64_t> updates;
  friend bool operator==(const Scaled&, const Scaled&) = default;
};
Scaled scaled_run(bool compiled, int64_t accumulate) {
  random::seed(1);
  const nn::Dense layer(4, {.dtype = "mixed_f16"});
  const nn::LossScaleOptimizer optimizer(nn::SGD({.learning_rate = 0.1, .accumulate = accumulate}),
                                         {.initial = 1 << 20, .growth_steps = 3});
  const auto once = [=](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = nn::losses::mse(y, layer(x));
    optimizer.minimize(tape, loss, layer);
    return loss;
  };
  const auto step = function(once);
  const Tensor x = drawn({8, 3}, 1), y = drawn({8, 4}, 2);
  Scaled found;
  for (int i = 0; i < 12; ++i) {
    const Tensor before = identity(layer(x));
    (void)(compiled ? step(x, y) : once(x, y));
    found.scales.push_back(optimizer.loss_scale()->value().item<double>());
    found.updates.push_back(optimizer.iterations.value().item<int64_t>());
    EXPECT_TRUE(all(isfinite(layer.kernel)).item<bool>());
    const bool changed = !identical(before, layer(x));
    EXPECT_EQ(changed,
              found.updates.back() > (i == 0 ? 0 : found.updates[found.updates.size() - 2]));
  }
  return found;
}

TEST(LossScale, SkipsAndRescalesInTheCompiledStepAsInEagerCode) {
  const Scaled found = scaled_run(true, 1);
  // Too large at first, halved until gradients are finite, and doubled after three updates.
  EXPECT_EQ(found.scales[0], 1 << 19);
  EXPECT_EQ(found.updates[0], 0);
  const auto good =
      std::find(found.updates.begin(), found.updates.end(), 1) - found.updates.begin();
  ASSERT_LT(good, 9);
  EXPECT_EQ(found.scales[static_cast<size_t>(good) + 2],
            2 * found.scales[static_cast<size_t>(good)]);
  EXPECT_EQ(found, scaled_run(false, 1));
  EXPECT_EQ(scaled_run(true, 2), scaled_run(false, 2));
}

TEST(LossScale, LeavesUpdatesAsTheyAreWhereNothingOverflows) {
  const auto trained = [](bool scaled) {
    random::seed(1);
    const nn::Dense layer(4);
    const nn::Adam adam({.clip_global_norm = 0.1});
    if (scaled) (void)nn::LossScaleOptimizer(adam, {.initial = 1024});
    const Tensor x = drawn({8, 3}, 1), y = drawn({8, 4}, 2);
    for (int i = 0; i < 3; ++i) {
      GradientTape tape;
      const Tensor loss = nn::losses::mse(y, layer(x));
      if (i == 1) {  // By hand.
        const std::vector<Variable> variables = {layer.kernel, *layer.bias};
        const Tensor larger = adam.scale_loss(loss);
        adam.apply_gradients(tape.gradient(larger, variables), variables);
      } else {
        adam.minimize(tape, loss, layer);
      }
    }
    return identity(layer.kernel);
  };
  EXPECT_TRUE(identical(trained(true), trained(false)));
}

TEST(LossScale, IsSavedAndSaysWhatIsWrong) {
  const nn::LossScaleOptimizer optimizer{nn::SGD()};
  std::vector<std::string> names;
  for (const auto& [name, variable] : nn::named_variables(optimizer)) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"learning_rate", "iterations", "loss_scale", "good_steps"}));
  EXPECT_EQ(said([] { (void)nn::LossScaleOptimizer(nn::SGD(), {.factor = 1}); }),
            "LossScaleOptimizer: .initial is 32768, .factor 1, .growth_steps 2000" + kAt +
                "give a scale above 0, a factor above 1, and 0 steps or more");
}

}  // namespace
}  // namespace tidemark
