// What is planned is touched, to the byte, for every number of threads: workspaces of kernels
// included.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/machine_code.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/tidemark.h"

namespace {

namespace td = tidemark;

struct Case {
  const char* name;
  td::Shape shape;
  std::function<td::Tensor(const td::Tensor&)> f;
  td::DType dtype = td::f32;
  friend void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }
};

td::Tensor attention(const td::Tensor& x) {
  return td::softmax(td::matmul(x, x, {.transpose_b = true}));
}

class Workspace : public testing::TestWithParam<Case> {
 protected:
  ~Workspace() override { td::set_num_threads(threads_); }
  const int threads_ = td::num_threads();
};

TEST_P(Workspace, IsTouchedByAllThreads) {
  const td::MachineCode machine;
  const Case& each = GetParam();
  const td::Tensor x =
      td::cast(td::random::uniform(each.shape, {.key = td::random::Key(1)}), each.dtype);
  td::set_num_threads(1);
  const td::Tensor expected = each.f(x);
  for (const bool jit : {true, false}) {
    for (const int threads : {1, 2, 3, 4, 7}) {
      td::set_num_threads(threads);
      const auto f = td::function<td::Tensor(td::Tensor)>(each.f, {.jit = jit});
      const auto [y, profile] = f.profile(x);
      EXPECT_EQ(profile.touched, profile.planned) << threads << " threads, jit " << jit << "\n"
                                                  << f.plan(x).to_text();
      EXPECT_TRUE(td::identical(y, expected));
    }
  }
}

// A plan is made of shapes and layouts: it does not ask who will run the kernels, and makes none.
TEST_P(Workspace, IsTheSameWhoeverRunsKernels) {
  using td::compile::Emitter;
  const Case& each = GetParam();
  const td::TensorSpec x = td::spec(each.shape, each.dtype);
  const Emitter before = td::compile::emitter();
  for (const bool jit : {true, false}) {
    const auto f = td::function<td::Tensor(td::Tensor)>(each.f, {.jit = jit});
    std::vector<int64_t> planned;
    const int64_t kernels = td::compile::kernels_made();
    for (const Emitter emitter :
         {Emitter::automatic, Emitter::llvm, Emitter::tile, Emitter::checked}) {
      td::compile::set_emitter(emitter);
      f.clear_cache();
      planned.push_back(f.plan(x).peak().count);
    }
    EXPECT_EQ(td::compile::kernels_made(), kernels);
    EXPECT_EQ(planned, std::vector(4, planned[0])) << "jit " << jit;
  }
  td::compile::set_emitter(before);
}

// So a budget that is kept with many threads is kept with fewer.
TEST_P(Workspace, NeverShrinksWithMoreThreads) {
  const Case& each = GetParam();
  const td::TensorSpec x = td::spec(each.shape, each.dtype);
  int64_t fewer = 0;
  for (int threads = 1; threads <= 33; ++threads) {
    td::set_num_threads(threads);
    const int64_t planned = td::function<td::Tensor(td::Tensor)>(each.f).plan(x).peak().count;
    EXPECT_GE(planned, fewer) << threads << " threads";
    fewer = planned;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Workspace,
    testing::Values(
        Case{"pointwise",
             {300, 700},
             [](const td::Tensor& x) { return td::transpose(td::exp(x) * 2) + 1; }},
        Case{"sum", {1000, 3000}, [](const td::Tensor& x) { return td::sum(td::sin(x)); }},
        Case{"sum_of_rows",
             {1000, 3000},
             [](const td::Tensor& x) { return td::sum(td::sin(x), 1); }},
        Case{"sum_of_columns", {3000, 700}, [](const td::Tensor& x) { return td::sum(x * x, 0); }},
        Case{"few_columns", {300000, 3}, [](const td::Tensor& x) { return td::max(x * x, 0); }},
        Case{"argmax", {700, 900}, [](const td::Tensor& x) { return td::argmax(x, 0); }},
        Case{"softmax", {500, 2000}, [](const td::Tensor& x) { return td::softmax(x); }},
        Case{"softmax_of_columns",
             {2000, 300},
             [](const td::Tensor& x) { return td::softmax(x, 0); }},
        Case{"long_softmax", {4, 500000}, [](const td::Tensor& x) { return td::softmax(x); }},
        Case{"layer_norm", {700, 1000}, [](const td::Tensor& x) { return td::layer_norm(x) * 2; }},
        Case{"matmul",
             {300, 400},
             [](const td::Tensor& x) { return td::matmul(x, x, {.transpose_b = true}); }},
        Case{"matmul_of_columns",
             {300, 400},
             [](const td::Tensor& x) { return td::matmul(x, x, {.transpose_a = true}); }},
        Case{"matmul_f16",
             {217, 333},
             [](const td::Tensor& x) { return td::matmul(x, x, {.transpose_b = true}); },
             td::f16},
        Case{"matmul_of_many",
             {17, 50, 70},
             [](const td::Tensor& x) { return td::matmul(x, x, {.transpose_b = true}); }},
        Case{"short_vector_f64",
             {59, 3},
             [](const td::Tensor& x) { return td::matmul(td::sum(x, 1), x); },
             td::f64},
        Case{"vector_of_eight_steps",
             {8, 40},
             [](const td::Tensor& x) { return td::matmul(td::sum(x, 1), x); },
             td::f64},
        Case{"vector_of_one_step",
             {1, 40},
             [](const td::Tensor& x) { return td::matmul(td::sum(x, 1), x); }},
        Case{"vector",
             {3000, 1000},
             [](const td::Tensor& x) {
               return td::matmul(x[{td::Slice{.begin = 0, .end = 1}, td::all}], x,
                                 {.transpose_b = true});
             }},
        Case{"columns_of_vector",
             {3000, 1000},
             [](const td::Tensor& x) {
               return td::matmul(td::transpose(x), x[{td::all, td::Slice{.begin = 0, .end = 1}}]);
             }},
        Case{"conv2d",
             {3, 40, 40, 8},
             [](const td::Tensor& x) { return td::conv2d(x, td::ones({3, 3, 8, 20})); }},
        Case{"conv2d_f16",
             {2, 30, 31, 8},
             [](const td::Tensor& x) { return td::conv2d(x, td::ones({3, 3, 8, 20}, td::f16)); },
             td::f16},
        Case{"conv3d_f16",
             {2, 4, 10, 11, 8},
             [](const td::Tensor& x) { return td::conv3d(x, td::ones({3, 3, 3, 8, 20}, td::f16)); },
             td::f16},
        Case{"conv_transpose2d",
             {3, 20, 20, 8},
             [](const td::Tensor& x) {
               return td::conv_transpose2d(x, td::ones({3, 3, 20, 8}), {.strides = {2, 2}});
             }},
        Case{"conv2d_to_few",
             {3, 40, 40, 16},
             [](const td::Tensor& x) { return td::conv2d(x, td::ones({3, 3, 16, 2})); }},
        Case{"kernel_of_a_sum",
             {2, 5, 10, 11, 8},
             [](const td::Tensor& x) {
               return td::grad([&](const td::Tensor& w) { return td::sum(td::conv3d(x, w)); })(
                   td::ones({3, 3, 3, 8, 20}));
             }},
        Case{"resize",
             {3, 20, 21, 8},
             [](const td::Tensor& x) {
               return td::resize(x, {9, 50}, {.method = td::Resizing::bicubic, .antialias = true});
             }},
        Case{"resize_of_channels_first",
             {3, 8, 20, 21},
             [](const td::Tensor& x) {
               return td::resize(x, {40, 40}, {.layout = td::ImageLayout::nchw});
             }},
        Case{"short_rows_kept_f16",
             {16, 50},
             [](const td::Tensor& x) {
               const td::Tensor y = td::softmax(x);
               return y + td::sum(y * y);
             },
             td::f16},
        Case{"draws_f16",
             {1000, 100},
             [](const td::Tensor& x) {
               return x +
                      td::random::normal(x.shape(), {.dtype = td::f16, .key = td::random::Key(2)});
             },
             td::f16},
        Case{"mapped",
             {9, 200, 50},
             [](const td::Tensor& x) {
               return td::map_fn(attention, x, {.parallel_iterations = 3});
             }},
        Case{"mapped_small",
             {8, 20, 30},
             [](const td::Tensor& x) { return td::map_fn(attention, x); }},
        Case{"mapped_large",
             {7, 300, 40},
             [](const td::Tensor& x) { return td::map_fn(attention, x); }},
        Case{"mapped_many",
             {40, 300, 40},
             [](const td::Tensor& x) { return td::map_fn(attention, x); }},
        Case{"looped",
             {100, 100},
             [](const td::Tensor& x) {
               return td::fori_loop(
                   0, 3,
                   [&](const td::Tensor&, const td::Tensor& c) {
                     return td::tanh(td::matmul(c, x));
                   },
                   x);
             }}),
    [](const auto& each) { return std::string(each.param.name); });

int64_t beside_results(const td::Plan& plan) {
  return plan.peak().count - plan.of(td::ByteClass::outputs).count;
}

// What is only padded is made inside the padded array.
TEST(Padding, IsPutAroundWhatIsMadeThere) {
  const td::MachineCode machine;
  const td::Tensor x = td::random::normal({64, 33, 7}, {.key = td::random::Key(1)});
  const auto padded = [](const td::Tensor& x) {
    return td::pad(td::exp(x) * 2, {{1, 2}, {0, 3}, {2, 0}}, -1.5);
  };
  const auto f = td::function(padded);
  EXPECT_EQ(beside_results(f.plan(x)), 0);
  const auto [y, profile] = f.profile(x);
  EXPECT_EQ(profile.touched.count, profile.planned.count);
  EXPECT_TRUE(td::identical(y, padded(x)));
  // In the arena, and with a reader of both at the end.
  const auto g = td::function([&](const td::Tensor& x) {
    const td::Tensor around = padded(x);
    return std::pair{td::sum(around, 0), td::max(td::cumsum(around, 1))};
  });
  const td::Tensor around = padded(x);
  const auto [sums, most] = g(x);
  EXPECT_TRUE(td::identical(sums, td::sum(around, 0)));
  EXPECT_TRUE(td::identical(most, td::max(td::cumsum(around, 1))));
}

TEST(Padding, IsCopiedToWhereTheOperandIsReadBesides) {
  const td::Tensor x = td::random::normal({5, 6}, {.key = td::random::Key(1)});
  const auto both = [](const td::Tensor& x) {
    const td::Tensor made = td::exp(x) * 2;
    return std::pair{td::pad(made, {{1, 1}, {1, 1}}),
                     td::matmul(made, made, {.transpose_b = true})};
  };
  const auto [padded, product] = td::function(both)(x);
  const auto [padded_too, product_too] = both(x);
  EXPECT_TRUE(td::identical(padded, padded_too));
  EXPECT_TRUE(td::identical(product, product_too));
}

TEST(TakeAlongAxis, CopiesNothingOfAView) {
  const td::MachineCode machine;
  const td::Tensor x = td::random::normal({4, 256, 64}, {.key = td::random::Key(1)});
  const td::Tensor ids =
      td::random::integers({4, 255, 3}, {.low = -64, .high = 64, .key = td::random::Key(2)});
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& ids) {
    return td::take_along_axis(x[{td::all, td::Slice{.begin = 1}}], ids, -1);
  });
  EXPECT_EQ(beside_results(f.plan(x, ids)), 0);
  const td::Tensor dense = x[{td::all, td::Slice{.begin = 1}}] + 0;
  EXPECT_TRUE(td::identical(f(x, ids), td::take_along_axis(dense, ids, -1)));
  const td::Tensor turned = td::transpose(x, {2, 1, 0});
  const td::Tensor other =
      td::random::integers({64, 2, 4}, {.low = 0, .high = 256, .key = td::random::Key(3)});
  EXPECT_TRUE(td::identical(td::take_along_axis(turned, other, 1),
                            td::take_along_axis(turned + 0, other, 1)));
}

td::Bytes beside_gradients_of_two_convolutions(td::DType dtype) {
  const auto draw = [&](const td::Shape& shape, uint64_t key) {
    return td::cast(td::random::normal(shape, {.key = td::random::Key(key)}), dtype);
  };
  const auto f = td::function([](const td::Tensor& x, const td::Tensor& w) {
    return td::grad<0, 1>([](const td::Tensor& x, const td::Tensor& w) {
      const td::Tensor h = td::tanh(td::conv2d(x, w, {.padding = td::Padding::same}));
      return td::sum(td::square(td::conv2d(h, w, {.padding = td::Padding::same})));
    })(x, w);
  });
  return td::Bytes{beside_results(f.plan(draw({4, 32, 32, 16}, 1), draw({3, 3, 16, 16}, 2)))};
}
constexpr int64_t kPixels = 4 * 32 * 32 * 16;

// In 16 bits the gradient by the kernel packs both operands, 2 parts, and that by the image gives
// one more: the first runs before the second. Kept: h, and the gradient of the second convolution;
// beside them the two copies, and one of them widened, by the only thread.
TEST(Order, CountsTheScratchOfContractions) {
  const td::MachineCode machine;
  const int threads = td::num_threads();
  td::set_num_threads(1);
  const int64_t bytes = beside_gradients_of_two_convolutions(td::bf16).count;
  td::set_num_threads(threads);
  EXPECT_LT(bytes, 2 * (4 * kPixels + kPixels / 2) + 4 * kPixels);
}

// Else it reads both where they lie.
TEST(Order, TheGradientByTheKernelCopiesNeitherOperand) {
  const td::MachineCode machine;
  EXPECT_LT(beside_gradients_of_two_convolutions(td::f32).count, 4 * (3 * kPixels + kPixels / 2));
}

}  // namespace
