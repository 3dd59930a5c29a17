#include "tidemark/nn/variables.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/error_of.h"
#include "tidemark/tidemark.h"

namespace tidemark {
namespace {

std::vector<std::string> names(const NamedVariables& named) {
  std::vector<std::string> all;
  for (const auto& [name, variable] : named) all.push_back(name);
  return all;
}

using Names = std::vector<std::string>;

struct Linear {
  Variable kernel{zeros({2, 3})};
  std::optional<Variable> bias = Variable(zeros({3}));
  int64_t units = 3;
};
struct Block {
  Linear up, down;
  std::string title = "a block";
  std::function<Tensor(Tensor)> activation = {};
};
struct Net {
  std::vector<Block> blocks = std::vector<Block>(2);
  std::tuple<Variable, Linear> head{Variable(1.0f), Linear()};
  std::map<std::string, Variable> by_name{{"a", Variable(1.0f)}, {"b", Variable(2.0f)}};
  std::array<Variable, 2> pair{Variable(1.0f), Variable(2.0f)};
  std::shared_ptr<Linear> far = std::make_shared<Linear>();
};

class Private {
 public:
  Private() = default;
  TIDEMARK_FIELDS(kernel_, hidden_)

 private:
  Variable kernel_{zeros({2})};
  Linear hidden_;
};

TEST(Variables, AreNamedByFieldAndIndex) {
  EXPECT_EQ(
      names(nn::named_variables(Net())),
      (Names{"blocks/0/up/kernel", "blocks/0/up/bias", "blocks/0/down/kernel", "blocks/0/down/bias",
             "blocks/1/up/kernel", "blocks/1/up/bias", "blocks/1/down/kernel", "blocks/1/down/bias",
             "head/0", "head/1/kernel", "head/1/bias", "by_name/a", "by_name/b", "pair/0", "pair/1",
             "far/kernel", "far/bias"}));
}

TEST(Variables, OfAClassWithPrivateFieldsAreThoseItNames) {
  EXPECT_EQ(names(nn::named_variables(Private())),
            (Names{"kernel", "hidden/kernel", "hidden/bias"}));
}

TEST(Variables, OfAnAbsentPartAndOfAClosureAreNone) {
  Linear linear;
  linear.bias = {};
  EXPECT_EQ(names(nn::named_variables(linear)), (Names{"kernel"}));
  const auto closure = [linear](const Tensor& x) { return matmul(x, linear.kernel); };
  EXPECT_TRUE(nn::variables(closure).empty());
  EXPECT_TRUE(nn::variables(std::tuple{closure, 3, std::string("text")}).empty());
  EXPECT_TRUE(nn::variables(std::unique_ptr<Linear>()).empty());
}

TEST(Variables, ReachedTwiceComeOnceUnderTheirFirstName) {
  const Linear one;
  const std::vector<Linear> tied{one, one, Linear()};
  EXPECT_EQ(names(nn::named_variables(tied)), (Names{"0/kernel", "0/bias", "2/kernel", "2/bias"}));
  EXPECT_EQ(nn::variables(tied).size(), 4u);
  EXPECT_TRUE(nn::variables(tied)[0].same_as(one.kernel));
}

TEST(Variables, ThatAreTrainedAreTheTrainableOnes) {
  const std::array two{Variable(1.0f, {.name = "count", .trainable = false}), Variable(2.0f)};
  ASSERT_EQ(nn::trainable_variables(two).size(), 1u);
  EXPECT_TRUE(nn::trainable_variables(two)[0].same_as(two[1]));
  EXPECT_EQ(nn::variables(two).size(), 2u);
}

TEST(Variables, OfACloneAreItsOwnAndWhatIsTiedStaysTied) {
  Net net;
  net.blocks[1].up = net.blocks[0].up;
  const Net copy = nn::clone(net);
  net.blocks[0].up.kernel.assign(ones({2, 3}));
  net.far->kernel.assign(ones({2, 3}));
  EXPECT_TRUE(identical(copy.blocks[0].up.kernel.value(), zeros({2, 3})));
  EXPECT_TRUE(identical(copy.far->kernel.value(), zeros({2, 3})));
  EXPECT_TRUE(copy.blocks[1].up.kernel.same_as(copy.blocks[0].up.kernel));
  EXPECT_FALSE(copy.blocks[0].down.kernel.same_as(net.blocks[0].down.kernel));
  EXPECT_EQ(names(nn::named_variables(copy)), names(nn::named_variables(net)));
}

struct Fixed {
  const Variable scale{1.0f};
};

TEST(Variables, ThatAreConstFieldsAreFoundAndNotCloned) {
  EXPECT_EQ(names(nn::named_variables(Fixed())), (Names{"scale"}));
  EXPECT_EQ(error_of([] { nn::clone(Fixed()); }),
            "clone: the field \"scale\" is const: its copy would share the original's Variable\n"
            "  declare the field without const: a Variable can be assigned through a const handle");
}

Variable kernel_without_shape() {
  return Variable::unshaped([](const Shape& shape, DType dtype) { return ones(shape, dtype); },
                            {.name = "kernel"});
}

TEST(Variables, WithoutAShapeGetOneOnce) {
  const Variable kernel = kernel_without_shape();
  EXPECT_FALSE(kernel.has_shape());
  EXPECT_FALSE(kernel.clone().has_shape());
  std::ostringstream text;
  text << kernel;
  EXPECT_EQ(text.str(), "Variable kernel f32, without a shape yet");
  const Bytes before = memory::current();
  kernel.set_shape({2, 3});
  kernel.set_shape({2, 3});
  EXPECT_EQ(kernel.shape(), (Shape{2, 3}));
  EXPECT_EQ(memory::current(), before);
  EXPECT_TRUE(identical(kernel.value(), ones({2, 3})));
  const auto call = [&] { kernel.set_shape({3, 2}); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("set_shape: Variable \"kernel\" is f32[2, 3], not [3, 2]\n  at variables_test.cc:",
                line, "\n  a Variable keeps its shape"));
}

TEST(Variables, WithoutAShapeCannotBeUsedAndSayWhatToDo) {
  const Variable kernel = kernel_without_shape();
  const auto call = [&] { kernel.value(); };
  const unsigned line = __LINE__ - 1;
  EXPECT_EQ(error_of(call),
            cat("Variable \"kernel\" has no shape yet\n  at variables_test.cc:", line,
                "\n  its layer sets it at the first call: call the model, or td::nn::build(model, "
                "td::spec({...}))"));
  EXPECT_EQ(error_of([&] { kernel.shape(); }).substr(0, 34),
            "Variable \"kernel\" has no shape yet");
  EXPECT_EQ(error_of([&] { kernel.assign_add(1); }).substr(0, 34),
            "Variable \"kernel\" has no shape yet");
}

TEST(Variables, WithoutAShapeTakeThatOfWhatIsAssigned) {
  const Variable kernel = kernel_without_shape();
  EXPECT_NE(error_of([&] { kernel.assign(zeros({2}, i32)); }), "no error");
  EXPECT_FALSE(kernel.has_shape());
  kernel.assign(zeros({4}));
  EXPECT_EQ(kernel.shape(), Shape{4});
}

// What an initializer captures is freed with it, unless its value may still be taken back.
TEST(Variables, DropTheirInitializersWithTheFirstValue) {
  const auto captured = std::make_shared<int>(1);
  const auto initializer = [captured](const Shape& shape, DType dtype) {
    return full(shape, *captured, dtype);
  };
  const Variable read({2}, initializer), run({2}, initializer), failing({2}, initializer);
  const nn::LSTM lstm(2, {.kernel_initializer = initializer, .recurrent_initializer = initializer});
  const nn::MultiHeadAttention attention(1, 2, {.kernel_initializer = initializer});
  const nn::Conv2D conv(2, 1, {.kernel_initializer = initializer, .bias_initializer = initializer});
  const long before = captured.use_count();
  (void)read.value();
  EXPECT_EQ(captured.use_count(), before - 1);
  const auto add = function([run](const Tensor& x) { return run + x; });
  (void)add(ones({2}));
  EXPECT_EQ(captured.use_count(), before - 2);
  const auto fail = function([failing](const Tensor& x) {
    const Tensor y = failing + x;
    assert_that(less(y, 0), "it is negative");
    return y;
  });
  EXPECT_THROW((void)fail(ones({2})), UserError);
  EXPECT_EQ(captured.use_count(), before - 2);
  (void)failing.value();
  EXPECT_EQ(captured.use_count(), before - 3);
  (void)lstm(ones({1, 2, 2}));
  (void)attention(ones({1, 2, 2}));
  (void)conv(ones({1, 2, 2, 1}));
  EXPECT_EQ(captured.use_count(), 2);  // And the lambda above.
}

}  // namespace
}  // namespace tidemark
