// What is planned is touched, to the byte, for every number of threads: workspaces of kernels
// included.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/unit/api/machine_code.h"
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
               return td::map_fn(
                   [](const td::Tensor& each) {
                     return td::softmax(td::matmul(each, each, {.transpose_b = true}));
                   },
                   x, {.parallel_iterations = 3});
             }},
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

}  // namespace
