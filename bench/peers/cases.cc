#include "bench/peers/cases.h"

#include "bench/gradient_models.h"
#include "bench/models.h"

namespace tidemark::bench {
namespace {

namespace td = tidemark;

Prepared chain_of(const Shape& shape) {
  return prepared(td::function([](const Tensor& x) { return x * x * 2.0 + 1.0; }), input(shape, 4));
}
Prepared chain() { return chain_of({1000, 1000}); }
Prepared chain_big() { return chain_of({8192, 8192}); }

Prepared map_of(int64_t elements, int64_t repeats) {
  const auto map = td::function([repeats](const Tensor& x) {
    return td::map_fn([&](const Tensor& e) { return td::sum(td::repeat(e, repeats)); }, x);
  });
  return prepared(map, td::cast(td::arange(elements), td::f32));
}
Prepared map_small() { return map_of(1000, 10'000); }
Prepared map_big() { return map_of(100, 1'000'000); }

Prepared map_sin() {
  const auto map = td::function([](const Tensor& x) { return map_of_sines(x, 1'000'000); });
  return prepared(map, input({100}, 2));
}

Prepared matpow() {
  const auto power = td::function([](const Tensor& a) {
    return td::fori_loop(
        0, 100, [&](const Tensor&, const Tensor& r) { return td::matmul(r, a); }, a);
  });
  // A standard deviation of 0.1: the powers keep their size.
  return prepared(power, input({100, 100}, 0.34641F));
}

Prepared accumulate() {
  const auto rows = td::function([](const Tensor& x) {
    const auto body = [&](const Tensor& i, td::TensorArray array) {
      return std::move(array).write(i, x + td::cast(i, td::f32));
    };
    return td::fori_loop(0, 10'000, body, td::TensorArray(td::f32, {.size = 10'000})).stack();
  });
  return prepared(rows, td::constant({1.0F, 2.0F}));
}

Prepared acc_calls() {
  const auto total = td::function([](const Tensor& x) {
    return td::fori_loop(
        0, 100, [&](const Tensor&, const Tensor& s) { return s + x; }, td::constant(0.0F));
  });
  return prepared(total, td::constant(1.0F));
}

Prepared dense_fwd() {
  const Tensor w1 = input({784, 64}, 2, 1), w2 = input({64, 128}, 2, 2);
  const auto forward = td::function(
      [w1, w2](const Tensor& x) { return td::relu(td::matmul(td::relu(td::matmul(x, w1)), w2)); });
  return prepared(forward, input({1024, 784}, 2));
}

Prepared eager_ops() {
  const Tensor x = input({16}, 2);
  return {[x] {
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) y = y + x;
    return std::vector<Tensor>{y};
  }};
}

}  // namespace

const std::vector<PeerCase>& peer_cases() {
  static const std::vector<PeerCase> cases = {
      {"chain", chain},
      {"chain_big", chain_big},
      {"map_small", map_small},
      {"map_big", map_big},
      {"map_sin", map_sin},
      {"matpow", matpow},
      {"accumulate", accumulate},
      {"acc_calls", acc_calls},
      {"dense_fwd", dense_fwd},
      {"eager_ops", eager_ops},
      {"mlp_step", mlp_step},
      {"softmax_ce", softmax_ce},
      {"conv_step", conv_step},
      {"gpt_step", gpt_step},
      {"lstm_grad", lstm_grad},
      {"loop_grad", loop_grad},
      {"loop_grad_long", loop_grad_long},
  };
  return cases;
}

}  // namespace tidemark::bench
