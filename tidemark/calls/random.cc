#include "tidemark/calls/random.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "tidemark/base/made_once.h"
#include "tidemark/calls/create.h"
#include "tidemark/calls/draw_by_element.h"
#include "tidemark/calls/ops.h"
#include "tidemark/compile/cpu/draws.h"
#include "tidemark/ops/pointwise.h"
#include "tidemark/ops/random.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/draws.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/tensor/variable_state.h"

namespace tidemark::random {
namespace {

using detail::DrawsToKeep;

// Initializers draw from a separate sequence because they run at different times: all of them
// before a function runs, or, in eager code, each when its Variable is first read.
enum Sequence : size_t { program_draws = 0, initializer_draws = 1 };

// The seed of the global generator and the number of draws from each sequence. Once a function that
// draws has been traced, they move to a Variable, which functions read and write.
std::atomic<uint64_t> global_seed{0};
std::atomic<uint64_t> global_draws[2]{0, 0};
constinit std::atomic<bool> in_variable{false};

// A different constant from that of Key(seed), whose children would otherwise equal the generator's
// draws.
uint64_t key_of_seed(uint64_t seed) {
  constexpr uint64_t kGenerator = 0x67656e657261746fULL;
  return compile::fold_key(kGenerator, seed);
}
uint64_t key_of_seed() { return key_of_seed(global_seed.load(std::memory_order_relaxed)); }

std::vector<int64_t> words_after_seed(uint64_t seed) {
  return {static_cast<int64_t>(key_of_seed(seed)), 0, 0};
}

std::vector<int64_t> generator_words() {
  return {static_cast<int64_t>(key_of_seed()),
          static_cast<int64_t>(global_draws[program_draws].load(std::memory_order_relaxed)),
          static_cast<int64_t>(global_draws[initializer_draws].load(std::memory_order_relaxed))};
}

uint64_t key_of_draw(uint64_t generator_key, Sequence sequence, uint64_t draw) {
  constexpr uint64_t kInitializers = 0x696e697469616cULL;  // Far above any number of draws.
  const bool is_program = sequence == program_draws;
  const uint64_t first =
      is_program ? generator_key : compile::fold_key(generator_key, kInitializers);
  return compile::fold_key(first, draw);
}

// The key, and the number of draws of each sequence.
const Variable& generator() {
  static constinit MadeOnce<Variable> made;
  return made.get([] {
    const detail::NoTrace eager;
    Variable variable(constant(generator_words()),
                      {.name = "random generator", .trainable = false});
    in_variable.store(true, std::memory_order_release);
    return variable;
  });
}

// What a draw without a key takes from the generator.
uint64_t next_key() {
  const Sequence sequence = detail::RunsInitializer::now() ? initializer_draws : program_draws;
  if (!in_variable.load(std::memory_order_acquire)) {
    const uint64_t draw = global_draws[sequence].fetch_add(1, std::memory_order_relaxed);
    const uint64_t key = key_of_seed();
    DrawsToKeep::note(static_cast<int64_t>(key), sequence, static_cast<int64_t>(draw));
    return key_of_draw(key, sequence, draw);
  }
  const std::lock_guard guard(detail::VariableState::of(generator())->lock);
  std::vector<int64_t> words = generator().value().to_vector<int64_t>();
  const int64_t draw = words[1 + sequence]++;
  generator().assign(constant(words));
  DrawsToKeep::note(words[0], sequence, draw);
  return key_of_draw(static_cast<uint64_t>(words[0]), sequence, static_cast<uint64_t>(draw));
}

// Resets a sequence to draw `first`, unless others have drawn after the `count` draws from there.
void give_back(int64_t key, size_t sequence, int64_t first, int64_t count) noexcept {
  if (!in_variable.load(std::memory_order_acquire)) {
    auto expected = static_cast<uint64_t>(first + count);
    global_draws[sequence].compare_exchange_strong(expected, static_cast<uint64_t>(first));
    return;
  }
  const detail::VariableState& state = *detail::VariableState::of(generator());
  const std::lock_guard guard(state.lock);
  const detail::TensorState& value = *detail::TensorState::of(state.value);
  auto* const words = reinterpret_cast<int64_t*>(value.array.data);
  const bool is_last = words[0] == key && words[1 + sequence] == first + count;
  if (!is_last || detail::ReplayVariables::standing_for(state) != nullptr) return;
  if (detail::is_sole(value)) {
    words[1 + sequence] = first;
    return;
  }
  try {  // A snapshot of the state may be alive, so this may allocate.
    std::vector<int64_t> before(words, words + 3);
    before[1 + sequence] = first;
    generator().assign(constant(before));
  } catch (...) {  // Without memory, the numbers stay skipped.
  }
}

Tensor folded(const Tensor& key, const Tensor& data, Source at) {
  const Tensor operands[] = {key, data};
  return detail::bind_op(def_of(&ops::random_fold), operands, {}, at);
}

// Whether the state of the generator is that of the Variable. A trace always uses the Variable.
bool is_in_variable() {
  return in_variable.load(std::memory_order_acquire) || detail::is_observed({});
}

// The next key while tracing: each call of the function and each trip of a loop draws new numbers.
Tensor next_traced_key(Source at) {
  const SourceScope scope(at);
  const Tensor words = generator().value(at);
  const Tensor draws = words[1];
  generator().assign(update(words, 1, draws + 1));
  return folded(words[0], draws, at);
}

// The key of a draw, as the op's operand.
Tensor key_or_next(const std::optional<Key>& key, Source at) {
  if (key && key->traced().has_value()) return key->traced();
  if (!key && detail::is_observed({})) return next_traced_key(at);
  const uint64_t bits = key ? key->value() : next_key();
  return detail::literal(DType::i64, 0, static_cast<int64_t>(bits), at);
}

template <class Parameter>
Tensor draw(const NamedOp& op, const Shape& shape, DType dtype, const std::optional<Key>& key,
            Parameter a, Parameter b, Source at) {
  check_is_given(shape);
  DrawsToKeep draws;
  const Tensor operands[] = {key_or_next(key, at)};
  Tensor drawn =
      detail::bind_op(def_of(&op), operands, Attrs().add(shape).add(dtype).add(a).add(b), at);
  draws.keep();
  return drawn;
}

void check_float(DType dtype, const char* op, Source at) {
  if (!is_float(dtype))
    throw UserError(cat(op, ": draws floats, not ", dtype), at, "use td::random::integers");
}

}  // namespace

Key::Key(uint64_t seed) : value_(compile::fold_key(0x7469646d61726bULL, seed)) {}

std::vector<Key> Key::split(int count) const {
  std::vector<Key> keys(static_cast<size_t>(std::max(0, count)), *this);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = fold_in(static_cast<int64_t>(i));
  return keys;
}

Key Key::fold_in(const Operand& data) const {
  Key key = *this;
  const Tensor* const tensor = data.tensor();
  if (traced_.has_value() || (tensor != nullptr && detail::is_observed({tensor}))) {
    key.traced_ =
        folded(key_or_next(*this, data.at()), cast(data, DType::i64, data.at()), data.at());
    return key;
  }
  const int64_t number = tensor == nullptr ? data.whole() : tensor->item<int64_t>(data.at());
  key.value_ = compile::fold_key(value_, static_cast<uint64_t>(number));
  return key;
}

void seed(uint64_t seed) {
  // Everything that can fail comes first.
  if (is_in_variable()) generator().assign(constant(words_after_seed(seed)));
  global_seed.store(seed, std::memory_order_relaxed);
  for (std::atomic<uint64_t>& draws : global_draws) draws.store(0, std::memory_order_relaxed);
}

Tensor state(Source at) {
  if (is_in_variable()) return generator().value(at);
  return constant(generator_words(), at);
}

void set_state(const Tensor& state, Source at) {
  const TensorType type = detail::type_of(state, at);
  if (type != TensorType{DType::i64, {3}}) {
    throw UserError(cat("random::set_state: the state is i64[3], this is ", type), at,
                    "give a value that td::random::state() returned");
  }
  generator().assign(Operand(state, at));
}

Tensor normal(const Shape& shape, NormalOptions options, Source at) {
  check_float(options.dtype, "random::normal", at);
  return draw(ops::random_normal, shape, options.dtype, options.key, options.mean, options.stddev,
              at);
}

Tensor uniform(const Shape& shape, UniformOptions options, Source at) {
  check_float(options.dtype, "random::uniform", at);
  if (!(options.low < options.high)) {
    throw UserError(cat("random::uniform: empty interval [", options.low, ", ", options.high, ")"),
                    at, "low must be less than high");
  }
  // In the type it is drawn in; a 16-bit float is drawn as f32.
  const double width =
      options.dtype == DType::f64
          ? options.high - options.low
          : static_cast<double>(static_cast<float>(options.high) - static_cast<float>(options.low));
  if (!std::isfinite(width)) {
    throw UserError(cat("random::uniform: [", options.low, ", ", options.high, ") is too wide for ",
                        options.dtype),
                    at, "low, high and high - low must be finite");
  }
  return draw(ops::random_uniform, shape, options.dtype, options.key, options.low, options.high,
              at);
}

Tensor integers(const Shape& shape, IntegersOptions options, Source at) {
  if (!is_integer(options.dtype))
    throw UserError(cat("random::integers: draws integers, not ", options.dtype), at,
                    "use td::random::uniform");
  if (options.low >= options.high) {
    throw UserError(cat("random::integers: empty interval [", options.low, ", ", options.high, ")"),
                    at, "low must be less than high");
  }
  if (!fits(options.low, options.dtype) || !fits(options.high - 1, options.dtype)) {
    throw UserError(cat("random::integers: [", options.low, ", ", options.high, ") does not fit ",
                        options.dtype),
                    at, "name a wider dtype: {.dtype = td::i64}");
  }
  return draw(ops::random_integers, shape, options.dtype, options.key, options.low, options.high,
              at);
}

Tensor bernoulli(const Shape& shape, BernoulliOptions options, Source at) {
  if (!(options.p >= 0 && options.p <= 1))
    throw UserError(cat("random::bernoulli: p must be in [0, 1], got ", options.p), at,
                    "it is the probability of true");
  return draw(ops::random_bernoulli, shape, DType::boolean, options.key, options.p, 0.0, at);
}

Tensor bernoulli(const Operand& p, const Shape& shape, Source at) {
  if (p.tensor() == nullptr) return bernoulli(shape, {.p = p.real()}, at);
  DrawsToKeep draws;
  Tensor drawn = less(uniform(shape, {}, at), p, at);
  draws.keep();
  return drawn;
}

Tensor permutation(int64_t n, PermutationOptions options, Source at) {
  if (n < 0)
    throw UserError(cat("random::permutation: cannot permute ", n, " numbers"), at,
                    "the count must not be negative");
  return draw(ops::random_permutation, {n}, DType::i64, options.key, 0.0, 0.0, at);
}

}  // namespace tidemark::random

namespace tidemark::detail {

Tensor draw_by_element(ops::Drawn drawn, const Tensor& parameters,
                       const std::optional<random::Key>& key, Source at) {
  DrawsToKeep draws;
  const Tensor operands[] = {random::key_or_next(key, at), parameters};
  const auto number = static_cast<int64_t>(drawn);
  const Attrs attrs = Attrs().add(parameters.shape()).add(DType::f64).add(number);
  Tensor made = bind_op(def_of(&ops::random_by_element), operands, attrs, at);
  draws.keep();
  return made;
}

Variable generator_as_variable() { return random::generator(); }
std::optional<Variable> generator_if_variable() {
  if (!random::in_variable.load(std::memory_order_acquire)) return std::nullopt;
  return random::generator();
}

constinit thread_local DrawsToKeep* DrawsToKeep::current_ = nullptr;

void DrawsToKeep::give_back() noexcept {
  for (size_t sequence = 0; sequence < std::size(taken_); ++sequence) {
    const DrawRange& taken = taken_[sequence];
    if (taken.count > 0 && taken.in_a_row)
      random::give_back(taken.key, sequence, taken.first, taken.count);
  }
}

}  // namespace tidemark::detail
