#include "tests/budgets/random_training.h"

#include <random>

namespace tidemark::testing {
namespace {

using Tensors = RandomTraining::Tensors;

enum class Kind { matmul, gram, add, multiply, tanh, relu, sigmoid, exp, concat, by_row, turned };
constexpr uint64_t kKinds = 11;

// One op on values that were made before, all of [kRows, columns].
struct Op {
  Kind kind = Kind::tanh;
  size_t a = 0, b = 0;  // Values.
  size_t weight = 0;    // Of a product.
};
constexpr int64_t kRows = 256;
constexpr size_t kMostOps = 12;
constexpr int64_t kMostColumns = 64;

// The ops, and the sizes of all values and weights. Every value is read: an op works on the latest
// one, or on an older one, and then the next op joins both.
class Recipe {
 public:
  explicit Recipe(uint64_t seed) : random_(seed) {
    columns_.push_back(draw_columns());
    add(Kind::matmul, 0, 0);
    const size_t count = 7 + draw(kMostOps - 6);
    for (bool fits = true; fits;) fits = add_some(count);
  }

  Tensor loss(const Tensors& arguments) const {
    Tensors values = {arguments[0]};
    for (const Op& op : ops_) values.push_back(apply(op, values, arguments));
    return mean(square(values.back()));
  }

  Tensors arguments() {
    Tensors made = {filled({kRows, columns_[0]})};
    for (const Shape& shape : weights_) made.push_back(filled(shape));
    return made;
  }

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }
  int64_t draw_columns() { return int64_t{4} << draw(4); }

  // Of td's ops, a product being one with all its transposes.
  static size_t size_of(Kind kind) {
    if (kind == Kind::gram || kind == Kind::by_row) return 3;
    return kind == Kind::exp ? 2 : 1;
  }

  // Whether there was room for it.
  bool add_some(size_t at_most) {
    const size_t latest = columns_.size() - 1, any = draw(columns_.size());
    const auto kind = static_cast<Kind>(draw(kKinds));
    const bool branches = draw(3) == 0;
    if (size_ + size_of(kind) + (branches ? size_of(Kind::gram) : 0) > at_most) return false;
    if (branches) {
      add(kind, any, latest);
      add(Kind::concat, columns_.size() - 1, latest);
    } else {
      add(kind, latest, any);
    }
    return true;
  }

  // An operand that is dense as the concat reads it may be made in the bytes of the result, which
  // the game does not have.
  bool can_concat(size_t a, size_t b) const {
    const auto is_turned = [&](size_t value) {
      const Kind kind = value > 0 ? ops_[value - 1].kind : Kind::matmul;
      return kind == Kind::concat || kind == Kind::turned;
    };
    return columns_[a] + columns_[b] <= kMostColumns && !is_turned(a) && !is_turned(b);
  }

  // Values of different sizes cannot be added: they are concatenated or multiplied.
  void add(Kind kind, size_t a, size_t b) {
    const bool are_alike = columns_[a] == columns_[b];
    if (!are_alike && (kind == Kind::add || kind == Kind::multiply)) kind = Kind::concat;
    if (are_alike && kind == Kind::concat && draw(2) == 0) kind = Kind::add;
    if (kind == Kind::concat && !can_concat(a, b)) kind = Kind::gram;
    Op op{.kind = kind, .a = a, .b = b};
    int64_t columns = columns_[a];
    if (kind == Kind::concat) columns += columns_[b];
    if (kind == Kind::gram) columns = columns_[b];
    if (kind == Kind::matmul || kind == Kind::turned) {
      columns = draw_columns();
      weights_.push_back({columns_[a], columns});
      op.weight = weights_.size();
    }
    ops_.push_back(op);
    size_ += size_of(kind);
    columns_.push_back(columns);
  }

  static Tensor apply(const Op& op, const Tensors& values, const Tensors& arguments) {
    const Tensor &a = values[op.a], &b = values[op.b];
    switch (op.kind) {
      case Kind::matmul:
        return matmul(a, arguments[op.weight]);
      case Kind::turned:  // The same product as columns of columns.
        return transpose(matmul(transpose(arguments[op.weight]), transpose(a)));
      case Kind::gram:
        return matmul(a, matmul(a, b, {.transpose_a = true}) / static_cast<double>(kRows));
      case Kind::add:
        return a + b;
      case Kind::multiply:
        return a * b;
      case Kind::tanh:
        return tanh(a);
      case Kind::relu:
        return relu(a);
      case Kind::sigmoid:
        return sigmoid(a);
      case Kind::exp:
        return exp(a / 8.0);
      case Kind::concat:  // Of operands that are not dense.
        return transpose(concat({transpose(a), transpose(b)}, 0));
      case Kind::by_row:
        return a * sum(a, 1, keepdims) / static_cast<double>(kMostColumns);
    }
    return a;
  }

  Tensor filled(const Shape& shape) {
    std::vector<float> numbers;
    for (int64_t i = 0; i < shape.size(); ++i)
      numbers.push_back(static_cast<float>(draw(1 << 16)) / (1 << 15) - 1);
    return constant(numbers, shape);
  }

  std::mt19937_64 random_;
  std::vector<Op> ops_;
  size_t size_ = 0;               // Of all of them.
  std::vector<int64_t> columns_;  // By value; the data first.
  std::vector<Shape> weights_;
};

}  // namespace

RandomTraining random_training(uint64_t seed, FunctionOptions options) {
  Recipe recipe(seed);
  Tensors arguments = recipe.arguments();
  const auto step = [recipe](const Tensors& given) -> Tensors {
    GradientTape tape;
    const Tensors weights(given.begin() + 1, given.end());
    tape.watch(weights);
    const Tensor loss = recipe.loss(given);
    Tensors results = tape.gradient(loss, weights);
    results.insert(results.begin(), loss);
    return results;
  };
  return {tidemark::function(step, std::move(options)), std::move(arguments)};
}

Tensors RandomTraining::specs() const {
  Tensors all;
  for (const Tensor& argument : arguments) all.push_back(spec(argument.shape(), argument.dtype()));
  return all;
}

}  // namespace tidemark::testing
