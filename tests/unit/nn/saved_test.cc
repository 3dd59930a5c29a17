// What a training step keeps of the forward pass, in bytes: on a tape in eager
// code, and in a compiled step. Activations are counted by how much one more
// layer keeps.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

constexpr int64_t kRows = 256, kUnits = 64;
constexpr int64_t kActivation = kRows * kUnits * 4, kKernel = kUnits * kUnits * 4;

struct Stack {
  std::vector<nn::Dense> layers;
  Tensor operator()(const Tensor& x) const {
    Tensor h = x;
    for (const nn::Dense& layer : layers) h = layer(h);
    return h;
  }
};

Stack stack_of(int64_t count, const nn::Activation& activation, DType dtype = DType::f32) {
  Stack made;
  for (int64_t i = 0; i < count; ++i)
    made.layers.emplace_back(kUnits, nn::DenseOptions{.activation = activation, .dtype = dtype});
  return made;
}

Tensor loss_of(const Tensor& y) { return sum(cast(y, DType::f32)); }

template <class Model>
auto step_of(const Model& model) {
  return function([model, optimizer = nn::SGD()](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = loss_of(model(x));
    optimizer.minimize(tape, loss, model);
    return loss;
  });
}

// What an eager tape says it holds, and by how much memory grew for it.
struct Held {
  int64_t said = 0, grown = 0;
};
template <class Model>
Held held_by_tape(const Model& model, const Tensor& x) {
  nn::build(model, spec(x.shape(), x.dtype()));
  loss_of(model(x));  // Variables are made.
  const Bytes before = memory::current();
  GradientTape tape({.persistent = true});
  Tensor loss = loss_of(model(x));
  loss = {};
  return {tape.saved_bytes().count, (memory::current() - before).count};
}

void expect_in_step(const nn::Activation& activation, int64_t each) {
  const MachineCode machine;
  const Tensor x = random::normal({kRows, kUnits}, {.key = random::Key(1)});
  const Stack few = stack_of(3, activation), many = stack_of(5, activation);
  const Plan small = step_of(few).plan(x), large = step_of(many).plan(x);
  EXPECT_EQ((large.of(ByteClass::saved) - small.of(ByteClass::saved)).count, 2 * each * kActivation)
      << large;
  EXPECT_EQ((large.peak() - small.peak()).count, 2 * each * kActivation) << large;
  const auto profile = step_of(many).profile(x).second;
  EXPECT_EQ(profile.touched, profile.planned);
  EXPECT_EQ(profile.planned, large.peak());
}

void expect_on_tape(const nn::Activation& activation, int64_t each) {
  const Tensor x = random::normal({kRows, kUnits}, {.key = random::Key(1)});
  const Held few = held_by_tape(stack_of(3, activation), x);
  const Held many = held_by_tape(stack_of(5, activation), x);
  EXPECT_EQ(many.grown - few.grown, 2 * each * kActivation);
  EXPECT_EQ(many.said - few.said, 2 * (each * kActivation + kKernel));
}

TEST(Saved, IsOneActivationALayerWithReluOrTanh) {
  for (const auto& activation :
       {nn::Activation(relu), nn::Activation(tanh), nn::Activation(sigmoid)}) {
    expect_in_step(activation, 1);
    expect_on_tape(activation, 1);
  }
}

TEST(Saved, IsTwoActivationsALayerWithGeluSiluOrSoftplus) {
  for (const auto& activation :
       {nn::Activation(gelu), nn::Activation(silu), nn::Activation(softplus)}) {
    expect_in_step(activation, 2);
    expect_on_tape(activation, 2);
  }
}

// ---- in 16 bits ---------------------------------------------------------------------------------

struct Block {
  nn::LayerNorm before_attention, before_dense;
  nn::MultiHeadAttention attention;
  nn::Dense up, down;
  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(before_attention(x));
    return h + down(up(before_dense(h)));
  }
};

Block block_of(DType dtype) {
  return {.before_attention = nn::LayerNorm({.dtype = dtype}),
          .before_dense = nn::LayerNorm({.dtype = dtype}),
          .attention = nn::MultiHeadAttention(2, 32, {.causal = true, .dtype = dtype}),
          .up = nn::Dense(256, {.activation = gelu, .dtype = dtype}),
          .down = nn::Dense(64, {.dtype = dtype})};
}

// Saved bytes, and that both ways give the same gradient.
template <class Make>
void expect_half(const std::string& what, const Shape& shape, Make make) {
  SCOPED_TRACE(what);
  const MachineCode machine;
  int64_t full_tape = 0, full_call = 0, full_step = 0;
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    SCOPED_TRACE(name(dtype));
    const auto model = make(dtype);
    const Tensor x = cast(random::normal(shape, {.key = random::Key(2)}), dtype);
    const auto by_input = [model](const Tensor& input) {
      GradientTape tape;
      tape.watch(input);
      return tape.gradient(loss_of(model(input)), input);
    };
    EXPECT_TRUE(identical(function(by_input)(x), by_input(x)));
    const int64_t tape = held_by_tape(model, x).grown;
    const auto forward = function([model](const Tensor& input) { return loss_of(model(input)); });
    const int64_t call = forward.saved_for_gradient(x).count;
    const Plan plan = step_of(model).plan(x);
    const int64_t step = plan.of(ByteClass::saved).count;
    if (dtype == DType::f32) {
      full_tape = tape;
      full_call = call;
      full_step = step;
      continue;
    }
    EXPECT_LE(100 * tape, 55 * full_tape);
    EXPECT_LE(100 * call, 55 * full_call);
    EXPECT_LE(100 * step, 55 * full_step) << plan.to_text();
  }
}

TEST(Saved, OfALayerIn16BitsIsHalf) {
  for (const char* const activation : {"relu", "tanh", "gelu", "silu", "softplus"})
    expect_half(activation, {kRows, kUnits},
                [&](DType dtype) { return stack_of(4, activation, dtype); });
}

TEST(Saved, OfAConvolutionIn16BitsIsHalf) {
  expect_half("conv", {4, 16, 16, 16}, [](DType dtype) {
    const nn::Conv2DOptions options{.padding = Padding::same, .activation = gelu, .dtype = dtype};
    return nn::Sequential{nn::Conv2D(16, 3, options), nn::Conv2D(16, 3, options),
                          nn::Conv2D(16, 3, options)};
  });
}

TEST(Saved, OfANormIn16BitsIsHalf) {
  expect_half("layer norm", {256, 128}, [](DType dtype) {
    const nn::LayerNormOptions options{.dtype = dtype};
    return nn::Sequential{nn::Dense(128, {.dtype = dtype}), nn::LayerNorm(options),
                          nn::Dense(128, {.dtype = dtype}), nn::LayerNorm(options)};
  });
}

TEST(Saved, OfAnAttentionBlockIn16BitsIsHalf) {
  expect_half("block", {2, 64, 64},
              [](DType dtype) { return nn::Sequential{block_of(dtype), block_of(dtype)}; });
}

// Its input alone, as 16-bit floats too: what is in between is computed again.
TEST(Saved, OfALayerNormOnATapeIsItsInput) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = cast(random::normal({64, 128}, {.key = random::Key(3)}), dtype);
    const nn::LayerNorm norm({.dtype = dtype});
    nn::build(norm, spec({64, 128}, dtype));
    norm(x);
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const Tensor y = norm(x);
    const int64_t parameters = 2 * 128 * size_of(dtype);
    EXPECT_EQ(tape.saved_bytes().count, 64 * 128 * size_of(dtype) + parameters);
  }
}

}  // namespace
}  // namespace tidemark
