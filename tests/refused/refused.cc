// Mistakes the compiler refuses, each with a sentence. refused.py compiles one case at a time: the
// first error must hold the sentence after `refused:`. Case 0 has no mistake and compiles.
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;

struct Rates {
  Tensor x;
  float rate;
};
struct Many {
  Tensor a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
class Opaque {
 public:
  explicit Opaque(int) {}
};
// A block whose layers nobody outside can see.
class Block {
 public:
  explicit Block(int64_t units) : hidden_(units) {}
  Tensor operator()(const Tensor& x) const { return hidden_(x); }

 private:
  td::nn::Dense hidden_;
};
template <class Part>
struct Model {
  Part part;
  td::nn::Dense out{1};
  Tensor operator()(const Tensor& x) const { return out(x); }
};
class NamedBlock {
 public:
  Tensor operator()(const Tensor& x) const { return hidden_(x); }
  TIDEMARK_FIELDS(hidden_)

 private:
  td::nn::Dense hidden_{4};
};
class Renamed : public NamedBlock {};
class WithMore : public NamedBlock {
  td::nn::Dense more_{4};
};
// Classes that hold no layers, though nobody can see that they do not.
class Tokenizer {
 public:
  explicit Tokenizer(std::string path) : path_(std::move(path)) {}
  std::string operator()(const std::string& text) const { return path_ + text; }

 private:
  std::string path_;
};
class Scaled {
 public:
  explicit Scaled(double by) : by_(by) {}
  Tensor operator()(const Tensor& x) const { return x * by_; }

 private:
  double by_;
};
// Its name has that of a closure in it.
template <class F>
class Called {
 public:
  explicit Called(F f) : f_(f) {}
  Tensor operator()(const Tensor& x) const { return f_(hidden_(x)); }

 private:
  td::nn::Dense hidden_{4};
  F f_;
};
enum class Mode { slow, fast };
struct Harmless {
  Mode mode = Mode::fast;
  double rate = 0.1;
  std::string name = "model";
  std::vector<std::string> words = {};
  std::optional<int> seed = {};
  td::Shape shape = {2, 3};
  Tokenizer tokenizer{"words.txt"};
  Scaled scaled{0.5};
  Renamed renamed = {};
  td::nn::Schedule schedule = td::nn::schedules::cosine(0.1);
  std::function<Tensor(const Tensor&)> loss = td::relu;
  td::Function<Tensor(const Tensor&)> step = td::function([](const Tensor& x) { return x * 2; });
  std::variant<td::nn::Dense, td::nn::Embedding> either = td::nn::Dense(2);
  td::nn::Dense out{1};
};

void use([[maybe_unused]] Tensor x, [[maybe_unused]] const Tensor& y) {
#if CASE == 0
  td::function([](const Tensor& x, td::Static<float> rate) { return x * *rate; });
  Harmless harmless;
  td::nn::variables(harmless);
  td::io::Checkpoint{{"model", harmless}};
  const auto closure = [dense = td::nn::Dense(4)](const Tensor& x) { return dense(x); };
  td::nn::variables(Model<decltype(closure)>{closure});
  td::nn::variables(
      Model([dense = td::nn::Dense(4)](std::vector<Tensor> x) { return dense(x[0]); }));
#elif CASE == 1
  // refused: a traced function cannot take a plain C++ number: its value would be frozen into the
  // program. Declare the parameter `const Tensor&` (a run-time value; callers may still pass 0.1f),
  // `Dim` (a run-time size), or `Static<int>` (part of the key: one trace for each value)
  td::function([](const Tensor& x, float rate) { return x * rate; });
#elif CASE == 2
  // refused: a traced function cannot take a plain C++ number
  td::function([](const Tensor& x, const int& count) { return x * count; });
#elif CASE == 3
  // refused: a traced function cannot take a plain C++ number
  td::function<Tensor(Tensor, bool)>(
      [](const auto& x, bool negative) { return negative ? -x : x; });
#elif CASE == 4
  // refused: td::function must see the parameter types: write `const td::Tensor& x` instead of
  // `auto x`, or give the signature, td::function<td::Tensor(td::Tensor)>(f)
  td::function([](auto x) { return x * 2; });
#elif CASE == 5
  // refused: td::function must see the parameter types
  td::function(std::plus<>());
#elif CASE == 6
  // refused: a traced function cannot take an argument by non-const reference: return the new
  // value, or use a Variable
  td::function([](Tensor& x) { x += 1; });
#elif CASE == 7
  // refused: a traced function cannot take a structure that holds a plain C++ number: its value
  // would be frozen into the program. Declare the field `Tensor` (a run-time value; callers may
  // still pass 0.1f), `Dim` (a run-time size), or `Static<int>` (part of the key: one trace for
  // each value)
  td::function([](const Rates& rates) { return rates.x * rates.rate; });
#elif CASE == 8
  // refused: a traced function cannot take a structure that holds a plain C++ number
  td::function([](const std::vector<std::pair<Tensor, int> >& list) { return list[0].first; });
#elif CASE == 9
  // refused: a struct of more than 16 fields: name them with TIDEMARK_FIELDS(...)
  td::function([](const Many& many) { return many.a; });
#elif CASE == 10
  // refused: a traced function takes tensors, Dim, Shape, DType, Static values, and structures of
  // them; a struct must be an aggregate or name its fields with TIDEMARK_FIELDS
  td::function([](const Tensor& x, const Opaque&) { return x; });
#elif CASE == 11
  // refused: a traced function returns tensors and structures of them; a plain number cannot be
  // known while tracing
  td::function([](const Tensor& x) { return x.item<float>() + 1; });
#elif CASE == 12
  // refused: a traced function returns tensors and structures of them; a struct must be an
  // aggregate or name its fields with TIDEMARK_FIELDS
  td::function([](const Tensor&) { return Opaque(1); });
#elif CASE == 13
  // refused: this function cannot be called with the parameters of the signature given, or gives
  // another result
  td::function<Tensor(Tensor, Tensor)>(td::exp);
#elif CASE == 14
  // refused: Static<T> is part of a function's key, so T must be a number, an enum, a string, a
  // Shape, a DType, or a vector, array, tuple, pair, optional or struct of them
  td::Static<Opaque> value(Opaque(1));
#elif CASE == 15
  // refused: a slice of a Tensor is a value, not a place: write x = td::update(std::move(x), {...},
  // value)
  x[{0, td::all}] = y;
#elif CASE == 16
  // refused: cond: both branches must return the same type
  td::cond(x > y, [&] { return x; }, [&] { return std::pair{x, y}; });
#elif CASE == 17
  // refused: switch_case: all branches must return the same type
  td::switch_case(x, [&] { return x; }, [&] { return x; }, [&] { x + y; });
#elif CASE == 18
  // refused: while_loop: the body must return the same structure as loop_vars
  td::while_loop([](const Tensor& i, const Tensor& n) { return i < n; },
                 [](const Tensor& i, const Tensor&) { return i + 1; }, std::tuple{0, x});
#elif CASE == 19
  // refused: fori_loop: the body must return the same structure as init
  td::fori_loop(0, 3, [](const Tensor& i, const Tensor& x) { return std::pair{i, x}; }, x);
#elif CASE == 20
  // refused: scan: the body must return {carry, y} with the carry's own structure
  td::scan([](const Tensor& c, const Tensor& x) { return std::pair{std::pair{c, x}, x}; }, x, y);
#elif CASE == 21
  // refused: map: the function cannot be called with an element of this dataset, neither with the
  // parts of a tuple nor with the whole
  td::data::from_tensor_slices(std::pair{x, y}).map([](const Tensor& x) { return x; });
#elif CASE == 22
  // refused: an element of a dataset is a tensor, or a structure of tensors: tuples, pairs,
  // vectors, or a struct that is an aggregate or names its fields with TIDEMARK_FIELDS
  td::data::range(3).map([](const Tensor&) { return Opaque(1); });
#elif CASE == 23
  // refused: from_generator takes a function of no argument that gives std::optional<element>, or a
  // function that gives such a function
  td::data::from_generator([](int i) { return i; });
#elif CASE == 24
  // refused: the layers of this class cannot be found, and would be left out of checkpoints,
  // variables, summaries and copies: write TIDEMARK_FIELDS(a_, b_) in its public part,
  // or TIDEMARK_FIELDS() where it has none
  td::nn::variables(Model<Block>{Block(4)});
#elif CASE == 25
  // refused: the layers of this class cannot be found
  td::nn::clone(Model<std::vector<Block> >{{Block(4)}});
#elif CASE == 26
  // refused: the layers of this class cannot be found
  td::nn::variables(Model<std::unique_ptr<Block> >{std::make_unique<Block>(4)});
#elif CASE == 27
  // refused: the layers of this class cannot be found
  td::nn::variables(Model<std::shared_ptr<Block> >{std::make_shared<Block>(4)});
#elif CASE == 28
  // refused: the layers of this class cannot be found
  Model<std::optional<Block> > model{Block(4)};
  td::io::Checkpoint{{"model", model}};
#elif CASE == 29
  // refused: the layers of this class cannot be found
  const auto closure = [](const Tensor& x) { return x; };
  td::nn::variables(Called<decltype(closure)>(closure));
#elif CASE == 30
  // refused: the layers of this class cannot be found
  td::nn::variables(std::map<std::string, std::pair<int, Block> >{});
#elif CASE == 31
  // refused: this class has fields that its base does not name, and its layers would be left out:
  // write TIDEMARK_FIELDS(...) with all of them in the class itself
  td::nn::variables(WithMore());
#elif CASE == 32
  // refused: the layers of this class cannot be found
  td::nn::summary(Model<Block>{Block(4)}, td::spec({8, 3}));
#elif CASE == 33
  // refused: the layers of this class cannot be found
  td::nn::predict(Model<std::variant<int, Block> >{Block(4)}, x);
#endif
}
