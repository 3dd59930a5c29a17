// Ops that compute with sizes, on sizes that are open: values, gradients and second derivatives of
// one function at many sizes, empty ones and ones of 1 among them, against the same code run eager,
// where all sizes are numbers.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tidemark/tidemark.h"

namespace td = tidemark;

namespace {

using T = td::Tensor;

const td::FunctionOptions kMatrix{.input_signature = {td::spec({td::open, td::open}, td::f64)}};
const td::FunctionOptions kList{.input_signature = {td::spec({td::open}, td::f64)}};

// The numbers 0, 1, ... below an open size, in another order and within it.
T places(td::Dim n) {
  const T numbers = td::arange(0, n, 1, td::i64);
  return td::flip(numbers, 0);
}
T image_of(const T& x) { return td::reshape(x, {1, x.shape()[0], x.shape()[1], 1}); }
T kernel() {
  return td::constant({{{{0.5}}, {{-1.5}}}, {{{2.0}}, {{0.25}}}, {{{1.0}}, {{-0.75}}}}, td::f64);
}

struct Case {
  const char* name;
  std::function<T(const T&)> f;
  friend void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }
};

const Case kCases[] = {
    {"pad_known_open",
     [](const T& x) { return td::pad(x, {{1, x.shape()[0]}, {2, x.shape()[1] * 2 + 1}}, 7.0); }},
    {"pad_open_known",
     [](const T& x) { return td::pad(x, {{x.shape()[1], 3}, {x.shape()[0] + 1, 0}}, -1.0); }},
    {"pad_open_open",
     [](const T& x) {
       const td::Dim n = x.shape()[0], m = x.shape()[1];
       return td::pad(x, {{n, m}, {n * m, n + m}});
     }},
    {"pad_known", [](const T& x) { return td::pad(x, {{1, 2}, {0, 3}}, 0.5); }},
    {"slice_steps", [](const T& x) { return x[{td::all, td::Slice{.begin = 2, .step = 2}}]; }},
    {"slice_two_parts",
     [](const T& x) {
       const T head = x[td::Slice{.begin = 1, .end = 3}], tail = x[td::Slice{.begin = -2}];
       return td::sum(td::sin(head), 0) + td::sum(td::sin(tail), 0);
     }},
    {"slice_back", [](const T& x) { return x[{td::Slice{.step = -1}, td::Slice{.step = -2}}]; }},
    {"slice_from_end", [](const T& x) { return x[{td::Slice{.begin = -3, .end = -1}}]; }},
    {"slice_far",
     [](const T& x) { return x[{td::Slice{.begin = INT64_MIN, .end = INT64_MAX, .step = 3}}]; }},
    {"slice_last_by_size",
     [](const T& x) {
       const td::Dim n = x.shape()[0];
       return n == 0 ? td::sum(x, 0) : x[{n - 1}] * 2;
     }},
    {"index_number", [](const T& x) { return x.shape()[0] == 0 ? td::sum(x, 0) : x[-1]; }},
    {"concat_parts",
     [](const T& x) {
       return td::concat({x, x[td::Slice{.begin = 1}], x[td::Slice{.begin = -1}]}, 0);
     }},
    {"concat_with_zeros",
     [](const T& x) {
       return td::concat({x, td::zeros({x.shape()[0], x.shape()[1] * 2 + 1}, td::f64), x}, 1);
     }},
    {"stack", [](const T& x) { return td::stack({x, td::sin(x), x * 2}, 1); }},
    {"reshape_swapped",
     [](const T& x) { return td::reshape(x, {x.shape()[1], x.shape()[0]}) * 3; }},
    {"reshape_flat", [](const T& x) { return td::reshape(td::sin(x), {x.shape().open_size()}); }},
    {"tile", [](const T& x) { return td::tile(x, {2, 3}); }},
    {"repeat_open", [](const T& x) { return td::repeat(x, x.shape()[0], 1); }},
    {"repeat_known", [](const T& x) { return td::repeat(x, 3, 0); }},
    {"flip", [](const T& x) { return td::flip(x) * 2; }},
    {"transpose_product", [](const T& x) { return td::matmul(x, x, {.transpose_b = true}); }},
    {"gather_rows", [](const T& x) { return td::gather(x, places(x.shape()[0]), 0); }},
    {"gather_columns", [](const T& x) { return td::gather(x, places(x.shape()[1]), 1); }},
    {"take_along_axis",
     [](const T& x) {
       const T index = td::broadcast_to(places(x.shape()[1]), x.shape());
       return td::take_along_axis(x, index, 1);
     }},
    {"scatter_add",
     [](const T& x) { return td::scatter_add(x * 2, places(x.shape()[0]), td::sin(x)); }},
    {"update",
     [](const T& x) { return td::update(x * 1, {{td::Slice{.begin = 1, .step = 2}}}, 0.5); }},
    {"update_by_part",
     [](const T& x) {
       return td::update(x * 2, {{td::Slice{.begin = 1}}}, x[td::Slice{.begin = 1}] * x[0]);
     }},
    {"tril", [](const T& x) { return td::tril(x) - td::triu(x, 1); }},
    {"cumsum", [](const T& x) { return td::cumsum(x, 1) + td::cumsum(x, 0); }},
    {"broadcast",
     [](const T& x) { return td::broadcast_to(x, {3, x.shape()[0], x.shape()[1]}) * 1; }},
    {"expand_dims", [](const T& x) { return td::expand_dims(x, 1) * td::expand_dims(x, 2); }},
    {"arange",
     [](const T& x) { return x * td::arange(0, x.shape()[1], 1, td::f64) + x.shape()[0]; }},
    {"reduce_keep", [](const T& x) { return x - td::sum(x, 1, td::keepdims); }},
    {"conv_same",
     [](const T& x) { return td::conv2d(image_of(x), kernel(), {.padding = td::Padding::same}); }},
    {"conv_stride",
     [](const T& x) {
       return td::conv2d(image_of(x), kernel(),
                         {.strides = {2, 3}, .padding = td::Padding::same, .dilations = {1, 2}});
     }},
    {"conv_valid", [](const T& x) { return td::conv2d(image_of(x), kernel()); }},
    {"max_pool",
     [](const T& x) {
       return td::max_pool(image_of(x), {.size = {2, 2}, .padding = td::Padding::same});
     }},
    {"avg_pool",
     [](const T& x) {
       return td::avg_pool(image_of(x),
                           {.size = {3, 2}, .strides = {{1, 2}}, .padding = td::Padding::same});
     }},
    {"avg_pool_valid", [](const T& x) { return td::avg_pool(image_of(x), {.size = {2, 2}}); }},
    {"map_fn",
     [](const T& x) { return td::map_fn([](const T& row) { return td::cumsum(row, 0); }, x); }},
    {"vectorized_map",
     [](const T& x) {
       return td::vectorized_map(
           [](const T& row) { return td::pad(row[td::Slice{.begin = 1}], {{0, 2}}); }, x);
     }},
    {"windows",
     [](const T& x) {  // Sums of neighbours: two slices of one axis that overlap.
       const T wide = td::pad(x, {{0, 0}, {1, 1}});
       return wide[{td::all, td::Slice{.end = -2}}] * wide[{td::all, td::Slice{.begin = 2}}] + x;
     }},
};

const std::pair<int64_t, int64_t> kSizes[] = {{5, 6}, {3, 4}, {1, 1}, {1, 4}, {4, 1}, {2, 2},
                                              {0, 3}, {3, 0}, {0, 0}, {8, 7}, {5, 6}};

T drawn(int64_t n, int64_t m) {
  return td::cast(td::random::normal({n, m}, {.key = td::random::Key(3)}), td::f64);
}

// What it gives, or the error.
struct Given {
  T value;
  std::string error;
};
template <class F>
Given given(const F& f, const T& x) {
  try {
    return {f(x), {}};
  } catch (const td::UserError& error) {
    return {{}, error.what()};
  }
}
void expect_same(const Given& open, const Given& plain, const char* what, const T& x) {
  SCOPED_TRACE(testing::Message() << what << " at " << x.shape());
  ASSERT_EQ(open.error.empty(), plain.error.empty()) << open.error << plain.error;
  if (!open.error.empty()) return;
  ASSERT_EQ(open.value.shape(), plain.value.shape());
  EXPECT_TRUE(td::identical(open.value, plain.value)) << open.value << '\n' << plain.value;
}

class OpenStructure : public testing::TestWithParam<Case> {};

TEST_P(OpenStructure, IsThatOfTheSizesOfTheCall) {
  const auto f = GetParam().f;
  const auto loss = [f](const T& x) { return td::sum(td::sin(f(x) + 0.25)); };
  const auto slope = [loss](const T& x) { return td::grad(loss)(x); };
  const auto curve = [slope](const T& x) {
    return td::grad([slope](const T& at) { return td::sum(td::square(slope(at))); })(x);
  };
  const auto open = td::function([f](const T& x) { return f(x); }, kMatrix);
  const auto open_slope = td::function([slope](const T& x) { return slope(x); }, kMatrix);
  const auto open_curve = td::function([curve](const T& x) { return curve(x); }, kMatrix);
  // Sizes that open by themselves, from the second one on.
  const auto opening = td::function([slope](const T& x) { return slope(x); });
  td::on_warning([](std::string_view, td::Source) {});
  for (const auto& [n, m] : kSizes) {
    const T x = drawn(n, m);
    expect_same(given(open, x), given(f, x), "value", x);
    expect_same(given(open_slope, x), given(slope, x), "gradient", x);
    expect_same(given(opening, x), given(slope, x), "gradient, opened", x);
    expect_same(given(open_curve, x), given(curve, x), "second derivative", x);
  }
  td::on_warning({});
}

INSTANTIATE_TEST_SUITE_P(Ops, OpenStructure, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- closed forms -------------------------------------------------------------------------------

TEST(OpenPad, AddsAKnownWidthAndAnOpenOne) {
  for (const int low : {0, 1, 2}) {
    const auto f = td::function(
        [low](const T& x) {
          const td::Dim n = x.shape()[0];
          const T other = td::tile(x, {2}), zeros = td::zeros({n * 3}, td::f64);
          return td::pad(x, {{low, n * 2 + 1}}, 7.0);
        },
        kList);
    for (const int64_t n : {0, 1, 5, 8}) {
      const T padded = f(td::arange(0, n, 1, td::f64));
      ASSERT_EQ(padded.shape(), (td::Shape{low + 3 * n + 1}));
      const std::vector<double> values = padded.to_vector<double>();
      for (int64_t i = 0; i < padded.size(); ++i) {
        const bool inside = i >= low && i < low + n;
        EXPECT_EQ(values[static_cast<size_t>(i)], inside ? static_cast<double>(i - low) : 7.0);
      }
    }
  }
}

TEST(OpenSlices, OfOneAxisHaveGradientsOfItsSize) {
  const auto loss = [](const T& x) {
    return td::sum(x[td::Slice{.begin = 1, .end = 3}] * 2) + td::sum(x[td::Slice{.begin = -2}] * 3);
  };
  const auto g = td::function([=](const T& x) { return td::grad(loss)(x); }, kList);
  EXPECT_EQ(g(td::ones({3}, td::f64)).to_vector<double>(), (std::vector<double>{0, 5, 5}));
  EXPECT_EQ(g(td::ones({6}, td::f64)).to_vector<double>(), (std::vector<double>{0, 2, 2, 0, 3, 3}));
  EXPECT_EQ(g(td::ones({1}, td::f64)).to_vector<double>(), (std::vector<double>{3}));
  EXPECT_EQ(g(td::ones({0}, td::f64)).to_vector<double>(), (std::vector<double>{}));
}

TEST(VectorizedMap, OfFirstEqualLooksAtEachListByItself) {
  const T lists = td::constant({{7, 3, 7}, {3, 7, 7}}, td::i64);
  const auto firsts = td::function([](const T& x) {
    return td::vectorized_map([](const T& list) { return td::first_equal(list); }, x);
  });
  EXPECT_EQ(firsts(lists).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0, 0, 1, 1}));
}

}  // namespace
