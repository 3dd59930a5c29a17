#include "tests/programs/random_function.h"

#include <random>

namespace tidemark::testing {
namespace {

namespace td = tidemark;

uint64_t mixed(uint64_t seed, uint64_t step) {
  uint64_t word = (seed * 0x9e3779b97f4a7c15ULL) ^ (step + 1) * 0xbf58476d1ce4e5b9ULL;
  word ^= word >> 29;
  return word * 0x94d049bb133111ebULL;
}

// One step: what it does follows from its own number, whatever the others do.
class Step {
 public:
  Step(uint64_t seed, const std::vector<Tensor>& values, const Variable& state)
      : random_(seed), values_(values), state_(state) {}

  const Tensor& operand() {
    const auto count = static_cast<int64_t>(values_.size());
    const int64_t from = below(3) == 0 ? 0 : std::max<int64_t>(0, count - 3);
    return values_[static_cast<size_t>(from + below(count - from))];
  }

  Tensor apply(const Tensor& x) {
    switch (below(20)) {
      case 0:
        return concat_or_stack(x);
      case 1:
      case 2:
        return reduced(x);
      case 3:
        return x - td::mean(x, axis(x), td::keepdims);
      case 4:
        return td::softmax(x, axis(x));
      case 5:
      case 6:
        return viewed(x);
      case 7:
        return x.rank() == 2 ? product(x) : td::expand_dims(x, 0) * 2;
      case 8:
        return below(2) == 0 ? td::cumsum(x, axis(x)) : sorted(x);
      case 9:
        return td::gather(x, td::argmax(x, 0), 0);
      case 10:
        return of_sizes(x);
      case 11:
        return td::random::normal(x.shape(), {.key = td::random::Key(random_())}) + x;
      case 12:
        return branched(x);
      case 13:
        return looped(x);
      case 14:
        return mapped(x);
      case 15:
        return effect(x);
      case 16:
        state_.assign_add(td::tanh(td::mean(x)));
        return x * state_.value();
      default:
        return pointwise(x);
    }
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t axis(const Tensor& x) { return below(x.rank()); }

  Tensor pointwise(const Tensor& x) {
    const Tensor& other = operand();
    switch (below(7)) {
      case 0:
        return td::exp(td::minimum(x, 3));
      case 1:
        return td::sin(x) * 0.5 + x;
      case 2:
        return td::sqrt(td::abs(x));
      case 3:
        return td::where(x > 0, x, -0.25);
      case 4:
        return td::cast(td::cast(x * 4, td::i32), td::f32);
      default:
        if (other.shape() != x.shape()) return td::tanh(x);
        return below(2) == 0 ? x + other : x * td::tanh(other);
    }
  }

  Tensor reduced(const Tensor& x) {
    const int64_t along = axis(x);
    const td::Keep keep = below(2) == 0 || x.rank() == 1 ? td::keepdims : td::Keep::no;
    switch (below(5)) {
      case 0:
        return td::sum(x, along, keep);
      case 1:
        return td::max(x, along, keep);
      case 2:
        return td::var(x, along, keep);
      case 3:
        return td::logsumexp(x, along, keep);
      default:
        return td::cast(td::argmax(x, along, keep), td::f32);
    }
  }

  Tensor viewed(const Tensor& x) {
    switch (below(8)) {
      case 0:
        return x.rank() == 1 ? td::flip(x, 0) : td::transpose(x);
      case 1:
        return td::reshape(x, {-1});
      case 2:
        return x[td::Slice{.begin = 1}];
      case 3:
        return x[td::Slice{.end = -1}];
      case 4:
        return x[td::Slice{.step = 2}];
      case 5:
        return td::repeat(x, 2, axis(x));
      case 6:
        return x.rank() == 1 ? td::pad(x, {{1, 2}}) : td::flip(x, axis(x));
      default:
        return x.rank() < 3 ? td::expand_dims(x, below(x.rank() + 1)) : td::flip(x, 1);
    }
  }

  Tensor concat_or_stack(const Tensor& x) {
    const Tensor& other = operand();
    if (other.shape() == x.shape() && below(2) == 0) return td::sum(td::stack({x, other}), 0);
    return td::concat({x, x * 2}, axis(x));
  }

  Tensor product(const Tensor& x) {
    return below(2) == 0 ? td::matmul(x, x, {.transpose_b = true}) * 0.1
                         : td::matmul(x, x, {.transpose_a = true}) * 0.1;
  }

  Tensor of_sizes(const Tensor& x) {
    const td::Dim n = x.shape()[-1];
    switch (below(3)) {
      case 0:
        return x * n;
      case 1:
        return x + td::cast(td::arange(n), td::f32);
      default:
        return x - td::full({n}, 0.5);
    }
  }

  Tensor sorted(const Tensor& x) {
    const int64_t along = axis(x);
    const td::SortOptions options{.descending = below(2) == 0};
    return td::sort(x, along, options) + td::cast(td::argsort(x, along, options), x.dtype());
  }

  Tensor branched(const Tensor& x) {
    const bool then = below(2) == 0;
    return td::cond(
        td::sum(x) > 0, [&] { return then ? td::exp(-td::abs(x)) : x * 2; },
        [&] { return x - td::max(x); });
  }

  Tensor looped(const Tensor& x) {
    const Tensor step = td::tanh(x);
    const auto body = [&](const Tensor& c) { return c * 0.5 + step; };
    switch (below(3)) {
      case 0:
        return td::fori_loop(
            0, 1 + below(4), [&](const Tensor&, const Tensor& c) { return body(c); }, x);
      case 1:
        return td::while_loop([](const Tensor& c) { return td::max(td::abs(c)) > 1.5; },
                              [&](const Tensor& c) { return c * 0.75; }, x, {.max_iterations = 8});
      default:
        return td::fori_loop(
            0, td::cast(td::minimum(td::abs(td::sum(x)), 3), td::i32),
            [&](const Tensor& i, const Tensor& c) { return body(c) + td::cast(i, td::f32); }, x);
    }
  }

  Tensor mapped(const Tensor& x) {
    const int64_t kind = below(3);
    const auto body = [kind](const Tensor& row) {
      if (kind == 0) return td::exp(row - td::max(row)) * 2;
      if (kind == 1) return td::cumsum(row * row, 0);
      return td::sum(td::sin(row)) + row;
    };
    if (x.rank() == 1) return td::map_fn([](const Tensor& e) { return td::sin(e) + 1; }, x);
    const int64_t parallel = 1 + below(4), chunk = 1 + below(5);
    if (chunk >= 4) return td::map_fn(body, x, {.chunk = td::automatic});
    return td::map_fn(body, x, {.parallel_iterations = parallel, .chunk = chunk});
  }

  Tensor effect(const Tensor& x) {
    switch (below(4)) {
      case 0:
        td::print("value", td::sum(x), td::max(x));
        break;
      case 1:
        td::check_numerics(x, "step");
        break;
      case 2:
        td::assert_that(td::max(x) < 5, "small", {td::max(x)});
        break;
      default:
        td::print("state", state_.value());
    }
    return x;
  }

  std::mt19937_64 random_;
  const std::vector<Tensor>& values_;
  const Variable& state_;
};

}  // namespace

RandomFunction::RandomFunction(uint64_t from)
    : seed(from), skipped(static_cast<size_t>(3 + mixed(from, 999) % 8)) {}

std::vector<Tensor> RandomFunction::operator()(const Tensor& x, const Tensor& y,
                                               const Variable& state) const {
  std::vector<Tensor> values = {x, y};
  for (int64_t i = 0; i < steps(); ++i) {
    Step step(mixed(seed, static_cast<uint64_t>(i)), values, state);
    Tensor operand = step.operand();
    // Nothing to look at along an axis.
    if (operand.rank() == 0) operand = td::expand_dims(operand, 0);
    values.push_back(skipped[static_cast<size_t>(i)] ? operand : step.apply(operand));
  }
  // The last ones, and one from the middle.
  return {values[values.size() - 1], values[values.size() - 2], values[values.size() / 2]};
}

}  // namespace tidemark::testing
