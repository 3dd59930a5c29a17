// Every public operation on tensors, functions, tapes, Variables and optimizers, with each of its
// allocations failing in turn. Files, datasets and training loops have tests of their own.
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <sstream>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/faults/injector.h"
#include "tests/unit/machine_code.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::testing {
namespace {

Tensor drawn(const Shape& shape, uint64_t key = 1) {
  return random::normal(shape, {.key = random::Key(key)});
}

// Runs them all, and says how many allocations failed.
void expect_all_survive(const std::vector<FaultyOperation>& operations) {
  FaultCounts all;
  for (const FaultyOperation& operation : operations) {
    FaultCounts counts = expect_survives(operation);
    counts += expect_survives(operation, FaultSite::heap_from_then_on);
    std::cout << "  " << operation.name << ": " << text(counts) << std::endl;
    all += counts;
    if (::testing::Test::HasFailure()) break;
  }
  std::cout << operations.size() << " operations: " << text(all) << std::endl;
  EXPECT_GT(all.refused, 0);
}

FaultyOperation operation(std::string name, std::function<Tensor()> act) {
  return {.name = std::move(name), .act = [act = std::move(act)] { return bits(act()); }};
}

std::vector<FaultyOperation> ops() {
  const Tensor x = drawn({130, 70}), row = drawn({70}, 2), cube = drawn({6, 40, 50}, 3);
  const Tensor image = drawn({2, 20, 20, 8}, 4), kernel = drawn({3, 3, 8, 16}, 5);
  const Tensor ids = random::integers({300}, {.low = 0, .high = 130, .key = random::Key(6)});
  const Tensor deep = drawn({1, 2, 1, 3, 1, 2, 2, 3}, 7);
  return {
      operation("pointwise", [=] { return exp(x) + row; }),
      operation("transposed", [=] { return transpose(x) * 2; }),
      operation("in place", [=] { return square(x + 1); }),
      operation("sum by lanes", [=] { return sum(x, 1); }),
      operation("sum by columns", [=] { return sum(x, 0); }),
      operation("sum over uneven axes", [=] { return sum(transpose(cube, {2, 0, 1}), {0, 2}); }),
      operation("argmax", [=] { return argmax(cube, 1); }),
      operation("softmax", [=] { return softmax(x) + softmax(cube, 1)[{0, Slice{}, 0}][0]; }),
      operation("concat", [=] { return concat({x, x * 2}, 1); }),
      operation("stack", [=] { return stack({row, row, row}); }),
      operation("pad", [=] { return pad(x, {{1, 2}, {0, 3}}); }),
      operation("reshape of a view", [=] { return reshape(transpose(x), {-1}); }),
      operation("gather", [=] { return gather(transpose(x), ids, 1); }),
      operation("scatter_add", [=] { return scatter_add(x, ids, gather(x, ids)); }),
      operation("cumsum", [=] { return cumsum(x, 1); }),
      operation("cumprod", [=] { return cumprod(transpose(x), 1, {.exclusive = true}); }),
      operation("cumlogsumexp", [=] { return cumlogsumexp(x, 1, {.reverse = true}); }),
      operation("extrema so far", [=] { return cummax(x) - cummin(x, 1); }),
      operation("linear_scan", [=] { return linear_scan(row, x, 1); }),
      operation("complex",
                [=] {
                  const Tensor z = complex(x, row), y = z * conj(z), turned = exp(y) / z;
                  return where(z == y, real(turned) + imag(turned), abs(z) + angle(sqrt(z)));
                }),
      operation("complex product", [=] { return prod(polar(x, row), 1); }),
      operation("complex matmul",
                [=] {
                  const Tensor z = complex(matmul(x, transpose(x)), 1.0);
                  return matmul(z, z);
                }),
      operation("complex shapes",
                [=] {
                  const Tensor z = complex(x, row);
                  return cumsum(concat({z, flip(z, 1)}, 1), 1) + pad(z, {{0, 0}, {0, 70}}, 1.0);
                }),
      operation("transforms",
                [=] { return fft::irfft(fft::rfft(x)) + fft::irfft2(fft::rfft2(x)); }),
      operation("complex transforms",
                [=] {
                  const Tensor z = complex(x, row);
                  return fft::ifft(fft::fft(z)) + fft::ifft2(fft::fft2(z)) +
                         fft::ifftn(fft::fftn(z));
                }),
      operation("pairs", [=] { return view_as_complex(sqrt(view_as_real(complex(x, row)))); }),
      operation("shifted transforms",
                [=] { return fft::ifftshift(fft::hfft(fft::fftshift(fft::ihfft(x)))); }),
      operation("frequencies", [=] { return fft::fftfreq(70) * fft::rfftfreq(138); }),
      operation("transforms along all axes", [=] { return fft::irfftn(fft::rfftn(x)); }),
      operation("searchsorted", [=] { return searchsorted(sort(row), transpose(x)); }),
      operation("bincount", [=] { return bincount(ids); }),
      operation("histogram", [=] { return histogram(x).counts; }),
      operation("median", [=] { return median(x, 1); }),
      operation("quantile", [=] { return quantile(x, 0.3, 1); }),
      operation("unique", [=] { return unique(ids).values; }),
      operation("nonzero", [=] { return nonzero(x > 0.5).indices; }),
      operation("scatter_max", [=] { return scatter_max(x, ids, gather(x, ids)); }),
      operation("scatter_min", [=] { return scatter_min(x, ids, gather(x, ids)); }),
      operation("scatter_mul", [=] { return scatter_mul(x, ids, gather(x, ids)); }),
      operation("scatter_nd",
                [=] { return scatter_nd(expand_dims(ids, 1), gather(x, ids), {130, 70}); }),
      operation("segment_sum", [=] { return segment_sum(gather(x, ids), ids); }),
      operation("segment_mean", [=] { return segment_mean(gather(x, ids), ids); }),
      operation("segment_prod", [=] { return segment_prod(gather(x, ids), ids); }),
      operation("segment_max", [=] { return segment_max(gather(x, ids), ids); }),
      operation("segment_min", [=] { return segment_min(gather(x, ids), ids); }),
      operation("nextafter", [=] { return nextafter(x, 1); }),
      operation("sort", [=] { return sort(x, 1); }),
      operation("transfer", [=] { return transfer(x, 0); }),
      operation("argsort", [=] { return argsort(x, 0); }),
      operation("top_k", [=] { return top_k(x, 2).indices; }),
      operation("mask", [=] { return x[x > 0.5]; }),
      operation("matmul", [=] { return matmul(x, x, {.transpose_b = true}); }),
      operation("einsum", [=] { return einsum("ij,kj->ik", x, x); }),
      operation("conv2d", [=] { return conv2d(image, kernel, {.padding = Padding::same}); }),
      operation("conv3d",
                [=] {
                  return conv3d(expand_dims(image, 1), expand_dims(kernel, 0),
                                {.strides = {1, 2, 2}});
                }),
      operation("max_pool", [=] { return max_pool(image); }),
      operation("layer_norm", [=] { return layer_norm(x); }),
      operation("update", [=] { return update(x, {0, all}, 7); }),
      operation("update at tensors", [=] { return update(x, {ids, all}, 7); }),
      operation("one_hot", [=] { return one_hot(ids, 9); }),
      operation("where", [=] { return where(x > 0, x, 0); }),
      operation("cast", [=] { return cast(x, f16); }),
      operation("eight axes", [=] { return sum(deep * 2 + deep, {1, 6}); }),
      operation("constant", [] { return constant({{1, 2}, {3, 4}}, f64); }),
      operation("arange", [] { return arange(1000); }),
      operation("large", [] { return ones({2 << 20}) * 3; }),
  };
}

std::vector<FaultyOperation> calls() {
  const Tensor x = drawn({12, 10}), y = drawn({10, 12}, 2), heads = drawn({2, 12, 8}, 3);
  const Tensor image = drawn({1, 8, 8, 4}, 4);
  const Tensor ids = random::integers({12}, {.low = 0, .high = 10, .key = random::Key(6)});
  const Tensor window = drawn({3, 3, 4, 2}, 7), row = drawn({2, 9, 4}, 8);
  const Tensor taps = drawn({3, 4, 4}, 9), volume = drawn({1, 4, 4, 4, 2}, 10);
  const Tensor cube = drawn({2, 2, 2, 3, 2}, 11);
  return {
      operation("adaptive_avg_pool", [=] { return adaptive_avg_pool(image, {3, 5}); }),
      operation("adaptive_max_pool", [=] { return adaptive_max_pool(image, {3, 4}); }),
      operation("avg_pool1d", [=] { return avg_pool1d(row); }),
      operation("avg_pool3d", [=] { return avg_pool3d(volume); }),
      operation("conv1d", [=] { return conv1d(row, taps, {.padding = {{2, 1}}}); }),
      operation("conv_transpose1d", [=] { return conv_transpose1d(row, taps, {.strides = 2}); }),
      operation("conv_transpose2d",
                [=] {
                  return conv_transpose2d(image, reshape(window, {3, 3, 2, 4}),
                                          {.strides = {2, 2}, .padding = Padding::same});
                }),
      operation("conv_transpose3d", [=] { return conv_transpose3d(volume, cube); }),
      operation("depthwise_conv1d",
                [=] { return depthwise_conv1d(row, reshape(taps, {3, 4, 4})); }),
      operation("depthwise_conv2d", [=] { return depthwise_conv2d(image, window); }),
      operation("extract_patches", [=] { return extract_patches(image, {2, 3}); }),
      operation("max_pool1d", [=] { return max_pool1d(row); }),
      operation("max_pool3d", [=] { return max_pool3d(volume); }),
      operation("pad", [=] { return pad(x, {{2, 1}, {0, 3}}, PadMode::reflect); }),
      operation("pixel_shuffle", [=] { return pixel_shuffle(image, 2); }),
      operation("pixel_unshuffle", [=] { return pixel_unshuffle(image, 2); }),
      operation("resize", [=] { return resize(image, {5, 11}, {.antialias = true}); }),
      operation("separable_conv1d",
                [=] { return separable_conv1d(row, drawn({3, 4, 1}), drawn({1, 4, 2})); }),
      operation("separable_conv2d",
                [=] { return separable_conv2d(image, window, drawn({1, 1, 8, 3})); }),
      operation("allclose", [=] { return allclose(x, x * 2); }),
      operation("attention", [=] { return attention(heads, heads, heads, {.causal = true}); }),
      operation("assert_that",
                [=] {
                  assert_that(square(x) >= 0, "squares are not negative", {x});
                  return x + 1;
                }),
      operation("avg_pool", [=] { return avg_pool(image); }),
      operation("bernoulli",
                [=] {
                  random::seed(3);
                  return random::bernoulli(sigmoid(x), {12, 10});
                }),
      operation("broadcast_to", [=] { return broadcast_to(x, {2, 12, 10}); }),
      operation("cdist", [=] { return cdist(x, x * 2); }),
      operation("check_numerics", [=] { return check_numerics(x, "x") * 2; }),
      operation("cross", [=] { return cross(reshape(x, {40, 3}), reshape(y, {40, 3})); }),
      operation("diag", [=] { return diag(x[0]); }),
      operation("diagonal", [=] { return diagonal(x, 1) * 2; }),
      operation("diff", [=] { return diff(x, 2); }),
      operation("embedding", [=] { return embedding(y, ids); }),
      operation("expand_dims", [=] { return expand_dims(x, 1); }),
      operation("eye", [] { return eye(5, 7); }),
      operation("first_equal", [=] { return first_equal(ids); }),
      operation("flip", [=] { return flip(x, 0); }),
      operation("from_callback",
                [] {
                  return from_callback({3}, f32, [](std::span<std::byte> bytes) {
                    std::fill(bytes.begin(), bytes.end(), std::byte{0});
                  });
                }),
      operation("full", [] { return full({3, 4}, 2.5); }),
      operation("full_like", [=] { return full_like(x, 3); }),
      operation("isclose", [=] { return isclose(x, x * 2); }),
      operation("kron", [=] { return kron(x, y); }),
      operation("leaky_relu", [=] { return leaky_relu(x); }),
      operation("linspace", [] { return linspace(0, 1, 11); }),
      operation("log_softmax", [=] { return log_softmax(x); }),
      operation("logsumexp", [=] { return logsumexp(x, 1); }),
      operation("mean", [=] { return mean(x, 0); }),
      operation("meshgrid", [=] { return meshgrid({x[0], x[1]})[1] * 2; }),
      operation("mse", [=] { return mse(x, x * 2); }),
      operation("nan_to_num", [=] { return nan_to_num(x); }),
      operation("norm", [=] { return norm(x, 1); }),
      operation("ones_like", [=] { return ones_like(x); }),
      operation("outer", [=] { return outer(x, y); }),
      operation("permutation", [] { return random::permutation(9, {.key = random::Key(1)}); }),
      operation("print",
                [=] {
                  print("a line with", sum(x));
                  return x + 1;
                }),
      operation("put", [=] { return put(x, 3, x[0] * 2); }),
      operation("repeat", [=] { return repeat(x, 3, 1); }),
      operation("roll", [=] { return roll(x, 3, 0); }),
      operation("roll of axes", [=] { return roll(x, {3, -1}, {0, 1}); }),
      operation("rms_norm", [=] { return rms_norm(x); }),
      operation("sparse_softmax_cross_entropy",
                [=] { return sparse_softmax_cross_entropy(cast(ids % 10, i32), x); }),
      operation("split", [=] { return split(x, 3)[1] * 2; }),
      operation("squeeze", [=] { return squeeze(expand_dims(x, 0)) + 1; }),
      operation("state and set_state",
                [] {
                  const Tensor state = random::state();
                  random::set_state(state);
                  return state;
                }),
      operation("std", [=] { return tidemark::std(x, 1); }),
      operation("stop_gradient", [=] { return stop_gradient(x) + 1; }),
      operation("switch_case",
                [=] { return switch_case(1, [=] { return x + 1; }, [=] { return x * 2; }); }),
      operation("take_along_axis", [=] { return take_along_axis(x, argsort(x, 0), 0); }),
      operation("tensordot", [=] { return tensordot(x, y, 1); }),
      operation("tensordot of axes",
                [=] { return tensordot(x, x, {.axes_a = {1, 0}, .axes_b = {1, 0}}); }),
      operation("tile", [=] { return tile(x, {2, 3}); }),
      operation("transpose", [=] { return transpose(x) + 0; }),
      operation("tril", [=] { return tril(x); }),
      operation("triu", [=] { return triu(x, 1); }),
      operation("unstack", [=] { return unstack(x)[2] * 2; }),
      operation("var", [=] { return var(x, 0); }),
      operation("zeros", [] { return zeros({4, 5}); }),
      operation("zeros_like", [=] { return zeros_like(x); }),
  };
}

std::vector<FaultyOperation> linear_algebra() {
  const Tensor x = drawn({2, 20, 12}), square = drawn({20, 20}, 2), b = drawn({2, 20, 3}, 3);
  const Tensor positive = matmul(square, square, {.transpose_b = true}) + 20 * eye(20);
  const Tensor l = linalg::cholesky(positive);
  return {
      operation("cholesky", [=] { return linalg::cholesky(positive); }),
      operation("solve_triangular", [=] { return linalg::solve_triangular(l, b); }),
      operation("cholesky_solve", [=] { return linalg::cholesky_solve(l, b); }),
      operation("solve", [=] { return linalg::solve(positive, b); }),
      operation("inv", [=] { return linalg::inv(positive); }),
      operation("det", [=] { return linalg::det(square); }),
      operation("slogdet", [=] { return linalg::slogdet(square).logdet; }),
      operation("lu", [=] { return linalg::lu(square).permutation; }),
      operation("qr", [=] { return linalg::qr(x, {.complete = true}).q; }),
      operation("eigh", [=] { return linalg::eigh(square).vectors; }),
      operation("eigvalsh", [=] { return linalg::eigvalsh(square); }),
      operation("svd", [=] { return linalg::svd(x, {.full_matrices = true}).u; }),
      operation("svdvals", [=] { return linalg::svdvals(x); }),
      operation("pinv", [=] { return linalg::pinv(x); }),
      operation("lstsq", [=] { return linalg::lstsq(x, b); }),
      operation("expm", [=] { return linalg::expm(square / 10); }),
      operation("vector_norm", [=] { return linalg::vector_norm(x, {.ord = 3, .axes = {1}}); }),
      operation("matrix_norm",
                [=] { return linalg::matrix_norm(x, {.ord = linalg::MatrixNorm::nuc}); }),
      operation("gradient of cholesky in a function",
                [=] {
                  return function([](const Tensor& given) {
                    GradientTape tape;
                    tape.watch(given);
                    return tape.gradient(sum(linalg::cholesky(given)), given);
                  })(positive);
                }),
  };
}

TEST(Faults, OfOps) { expect_all_survive(ops()); }
TEST(Faults, OfCalls) { expect_all_survive(calls()); }
TEST(Faults, OfLinearAlgebra) { expect_all_survive(linear_algebra()); }

// Kernels made at their first use, by the interpreter and by LLVM. Kernels stay: each op is met
// with an allocation failing once, at the place where it is made.
TEST(Faults, OfOpsThatAreCompiled) {
  const MachineCode machine;
  const Tensor x = drawn({70, 30});
  std::vector<FaultyOperation> operations;
  operations.push_back(operation("fused by a function", [=] {
    return function([](const Tensor& x) { return exp(x) * sin(x) + 1; })(x);
  }));
  expect_all_survive(operations);
}

// Of a call that is wrong, whatever memory there is.
std::string error_text(const std::function<void()>& wrong) {
  try {
    wrong();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Faults, OfHostAndText) {
  const Tensor x = drawn({20, 30});
  const std::vector<float> host(600, 1.5f);
  std::vector<FaultyOperation> operations;
  operations.push_back(operation("from_vector", [=] { return constant(host); }));
  operations.push_back({.name = "to_vector", .act = [=] {
                          const std::vector<float> all = x.to_vector<float>();
                          return std::string(reinterpret_cast<const char*>(all.data()),
                                             all.size() * sizeof(float));
                        }});
  operations.push_back({.name = "item", .act = [=] { return cat(sum(x).item<float>()); }});
  const Variable v(x, {.name = "v"});
  operations.push_back({.name = "text", .act = [=] { return cat(x, v, transpose(x) > 0); }});
  operations.push_back({.name = "printed", .act = [=] {
                          std::ostringstream out;
                          out.exceptions(std::ios::badbit);
                          out << x << v << x.size_bytes();
                          return out.str();
                        }});
  operations.push_back(
      {.name = "an error of shapes", .act = [=] { return error_text([=] { matmul(x, x); }); }});
  operations.push_back({.name = "an error of an index",
                        .act = [=] { return error_text([=] { gather(x, constant({1, 99})); }); }});
  operations.push_back(
      {.name = "an error in a function", .act = [=] {
         return error_text([=] { function([](const Tensor& x) { return matmul(exp(x), x); })(x); });
       }});
  operations.push_back({.name = "an error of a Variable",
                        .act = [=] { return error_text([=] { v.assign(ones({3})); }); }});
  operations.push_back({.name = "borrow", .act = [host]() mutable {
                          return bits(borrow(std::span(host), {600}, [] {}) * 2);
                        }});
  expect_all_survive(operations);
}

// ---- functions ----------------------------------------------------------------------------------

Tensor body(const Tensor& x) { return softmax(matmul(sin(x), x) * 0.5) + x; }

std::vector<FaultyOperation> functions() {
  const Tensor x = drawn({64, 64});
  const auto known = function(body, {.name = "known"});
  known(x);
  const auto waiting =
      function(body, {.when_full = detail::wait_for_seconds(3600, Source::none())});
  waiting(x);
  const auto open = function([](const Tensor& x) { return softmax(matmul(x, transpose(x))); });
  for (const int64_t rows : {3, 5, 9}) open(drawn({rows, 8}));
  return {
      operation("function, first call", [=] { return function(body)(x); }),
      operation("function, further call", [=] { return known(x); }),
      operation("function, a call that may wait", [=] { return waiting(x); }),
      {.name = "function, plan",
       .act =
           [=] {
             const Plan plan = function(body).plan(x);
             return cat(plan.peak().count);
           }},
      {.name = "function, then plan and call",
       .act =
           [=] {
             const auto f = function(body);
             const Tensor y = f(x);
             return cat(f.plan(x).peak().count, ' ', bits(y));
           }},
      {.name = "function, a new open size",
       .prepare = [=] { open.clear_cache(), open(drawn({3, 8})), open(drawn({5, 8})); },
       .act =
           [=] { return cat(open.plan(drawn({7, 8})).peak().count, bits(open(drawn({7, 8})))); }},
      {.name = "function, other strides",
       .prepare = [=] { known.clear_cache(), known(x); },
       .act = [=] { return bits(known(transpose(x))); }},
      {.name = "profile", .act = [=] { return bits(known.profile(x).first); }},
      {.name = "function of a structure",
       .act =
           [=] {
             const auto f = function([](const std::vector<Tensor>& all, Static<int> power) {
               return std::pair{all[0] + all[1], std::vector<Tensor>(*power, all[2])};
             });
             const auto [first, rest] = f({x, x, x}, 3);
             return bits(first) + bits(rest.at(2));
           }},
  };
}

TEST(Faults, OfFunctions) { expect_all_survive(functions()); }

// A gradient that keeps a few values, and can compute them again.
Tensor slope(const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  Tensor h = x;
  for (int i = 0; i < 4; ++i) h = sin(matmul(h, h));
  return tape.gradient(mean(h), x);
}

std::string text_of(const std::vector<TradeoffPoint>& points) {
  std::string text;
  for (const TradeoffPoint& each : points) text += cat(each.peak.count, ' ', each.more_work, '\n');
  return text;
}

TEST(Faults, OfBudgets) {
  const Tensor x = drawn({16, 16}) * 0.1;
  const auto known = function(slope);
  const Plan plan = known.plan(x);
  const Bytes floor = plan.floor();
  const FunctionOptions open_rows{.input_signature = {spec({open, 16})}};
  expect_all_survive({
      {.name = "plan within a budget",
       .act = [=] { return cat(function(slope).plan(x, {.budget = floor}).peak().count); }},
      {.name = "plan below the floor",
       .act = [=] { return error_text([=] { function(slope).plan(x, {.budget = floor - 1}); }); }},
      {.name = "tradeoff", .act = [=] { return text_of(function(slope).tradeoff(x)); }},
      {.name = "tradeoff and floor of one plan",
       .prepare = [=] { known.plan(transpose(x)).floor(); },  // Only the latest search is kept.
       .act = [=] { return text_of(plan.tradeoff()) + cat(plan.floor().count); }},
      {.name = "within",
       .act = [=] { return cat(plan.within(floor).peak().count, plan.decisions().size()); }},
      {.name = "largest",
       .act =
           [=] {
             const auto f = function([](const Tensor& x) { return cumsum(exp(x), 0); }, open_rows);
             return cat(f.largest(spec({8, 16}), Bytes(2048)));
           }},
      operation("first call within a budget",
                [=] { return function(slope, {.budget = floor})(x); }),
  });
}

TEST(Faults, OfControlFlow) {
  const Tensor x = drawn({8, 8}) * 0.1;
  const auto loop = [](const Tensor&, const Tensor& c) { return tanh(matmul(c, c)) + c; };
  const std::vector<FaultyOperation> operations = {
      operation("cond",
                [=] {
                  return function([](const Tensor& x) {
                    return cond(sum(x) > 100, [&] { return exp(x); }, [&] { return matmul(x, x); });
                  })(x);
                }),
      operation("while_loop",
                [=] {
                  return function([](const Tensor& x) {
                    return while_loop([](const Tensor& c) { return sum(c) < 1000; },
                                      [](const Tensor& c) { return c * 2 + 1; }, x);
                  })(x);
                }),
      operation("a loop on numbers",
                [] {
                  return function([](const Tensor& n) {
                    return fori_loop(
                        0, 100, [](const Tensor&, const Tensor& c) { return c * 1.5 + 1; }, n);
                  })(2.0);
                }),
      operation("map_fn",
                [=] {
                  return function([](const Tensor& x) {
                    return map_fn([](const Tensor& row) { return softmax(row * 2); }, x,
                                  {.parallel_iterations = 2});
                  })(x);
                }),
      operation("scan",
                [=] {
                  return function([](const Tensor& x) {
                    return scan([](const Tensor& c,
                                   const Tensor& row) { return std::pair{tanh(c + row), c * row}; },
                                x[0], x)
                        .second;
                  })(x);
                }),
      operation("the gradient of a loop",
                [=] {
                  return function([loop](const Tensor& x) {
                    return grad([loop](const Tensor& x) {
                      return sum(fori_loop(0, 20, loop, x, {.save = Save::slots(3)}));
                    })(x);
                  })(x);
                }),
      operation("an eager loop", [=] { return fori_loop(0, 5, loop, x); }),
      operation(
          "vectorized_map",
          [=] { return vectorized_map([](const Tensor& row) { return row * sum(row); }, x); }),
  };
  expect_all_survive(operations);
}

// ---- tapes, Variables, draws --------------------------------------------------------------------

std::string values(const std::vector<Variable>& variables) {
  std::string text;
  for (const Variable& variable : variables) text += bits(variable.value());
  return text;
}

TEST(Faults, OfTapes) {
  const Variable w(drawn({32, 32}), {.name = "w"});
  const Tensor x = drawn({16, 32});
  const auto state = [=] { return values({w}); };
  const std::vector<FaultyOperation> operations = {
      {.name = "tape",
       .act =
           [=] {
             GradientTape tape;
             const Tensor loss = mean(square(matmul(x, w)));
             return bits(tape.gradient(loss, w));
           },
       .state = state},
      {.name = "tape around a function",
       .act =
           [=] {
             const auto f = function([=](const Tensor& x) { return mean(square(matmul(x, w))); });
             GradientTape tape;
             const Tensor loss = f(x);
             return bits(tape.gradient(loss, w));
           },
       .state = state},
      operation("grad of grad",
                [=] {
                  const auto f = [](const Tensor& x) { return sum(tanh(x) * x); };
                  return grad([f](const Tensor& x) { return sum(square(grad(f)(x))); })(x);
                }),
      operation("jvp",
                [=] { return jvp([](const Tensor& x) { return exp(x) * 2; }, x, x).second; }),
  };
  expect_all_survive(operations);
}

TEST(Faults, OfVariables) {
  const Tensor first = drawn({40, 8}), second = drawn({40, 8}, 2);
  const Variable a(first, {.name = "a"}), b(second, {.name = "b"});
  const auto prepare = [=] { a.assign(first), b.assign(second); };
  const auto state = [=] { return values({a, b}); };
  const auto of = [=](std::string name, std::function<void()> act) {
    return FaultyOperation{.name = std::move(name),
                           .prepare = prepare,
                           .act = [act = std::move(act)] { return act(), std::string(); },
                           .state = state};
  };
  const auto swap = function([=] {
    const Tensor was = a.value();
    a.assign(b);
    b.assign(was);
  });
  const auto both = function([=](const Tensor& x) {
    a.assign_add(x);
    b.assign_sub(x * a);
    return sum(a) + sum(b);
  });
  const auto pass = function([=](const Tensor& x) { a.assign(x), b.assign_add(x); });
  expect_all_survive({
      of("assign", [=] { a.assign(second); }),
      of("assign_add", [=] { a.assign_add(second); }),
      of("assign_slice", [=] { a.assign_slice({0, all}, 7); }),
      of("scatter_update", [=] { a.scatter_update(constant({1, 2}), ones({2, 8})); }),
      of("a function that updates two, recorded by a tape",
         [=] {
           GradientTape tape;
           both(second);
         }),
      of("assign while a snapshot is held",
         [=] {
           const Tensor snapshot = a.value();
           a.assign_add(second);
         }),
      of("a function that swaps two", [=] { swap(); }),
      of("a function that updates two", [=] { both(second); }),
      of("a function that passes its argument on", [=] { pass(second); }),
      of("a function that updates two, first call",
         [=] {
           function([=](const Tensor& x) {
             a.assign_add(x);
             b.assign_sub(x * a);
           })(second);
         }),
      {.name = "a Variable of its own",
       .act = [=] { return bits(Variable(first, {.name = "c"}).value()); }},
  });
}

TEST(Faults, OfDraws) {
  const auto in_function =
      function([] { return random::normal({16, 16}) + random::uniform({16, 16}); });
  // The draw is the last that can fail: where it is refused, the generator is as it was.
  const auto of = [=](std::string name, std::function<Tensor()> act) {
    return FaultyOperation{.name = std::move(name),
                           .prepare = [] { random::seed(7); },
                           .act =
                               [act = std::move(act)] {
                                 std::string drawn(4096, '\0');
                                 const Tensor x = act();
                                 const ArrayRef& array = detail::TensorState::of(x)->array;
                                 const auto bytes = static_cast<size_t>(x.size_bytes().count);
                                 std::memcpy(drawn.data(), array.data, bytes);
                                 return drawn;
                               },
                           .state = [] { return generator_state(); }};
  };
  expect_all_survive({
      of("normal", [] { return random::normal({500}); }),
      of("bf16", [] { return random::normal({500}, {.dtype = DType::bf16}); }),
      of("permutation", [] { return random::permutation(300); }),
      of("exponential", [] { return random::exponential({300}); }),
      of("gumbel", [] { return random::gumbel({300}); }),
      of("laplace", [] { return random::laplace({300}); }),
      of("truncated_normal", [] { return random::truncated_normal({30}); }),
      of("gamma", [] { return random::gamma(0.5, {30}); }),
      of("beta", [] { return random::beta(2, 3, {30}); }),
      of("poisson", [] { return random::poisson(4.0, {30}); }),
      of("categorical", [] { return random::categorical(ones({30, 4})); }),
      of("multinomial", [] { return random::multinomial(5, ones({30, 4})); }),
      of("integers by element", [] { return random::integers(0, ones({30}) * 5, {30}); }),
      of("permutation of a tensor", [] { return random::permutation(ones({30, 4})); }),
      of("dropout", [] { return dropout(ones({300}), {.rate = 0.4}); }),
      of("draws of a function", [=] { return in_function(); }),
      of("draws of a function, first call",
         [] { return function([] { return random::normal({16}) * random::normal({16}); })(); }),
  });
}

// ---- training -----------------------------------------------------------------------------------

struct Trained {
  nn::Sequential model{nn::Dense(16, {.activation = relu}), nn::Dense(4)};
  nn::Optimizer optimizer;
  explicit Trained(nn::Optimizer by) : optimizer(std::move(by)) { nn::build(model, spec({8, 8})); }
  auto step() const {
    return function([*this](const Tensor& x, const Tensor& y) {
      GradientTape tape;
      const Tensor loss = nn::losses::mse(y, model(x));
      optimizer.minimize(tape, loss, model);
      return loss;
    });
  }
};

TEST(Faults, OfTrainingSteps) {
  const Tensor x = drawn({8, 8}), y = drawn({8, 4}, 2);
  std::vector<FaultyOperation> operations;
  for (const bool adam : {false, true}) {
    random::seed(3);
    const Trained trained(adam ? nn::Optimizer(nn::Adam()) : nn::Optimizer(nn::SGD()));
    const auto step = trained.step();
    step(x, y);
    std::vector<Variable> variables;
    std::vector<Tensor> start;
    for (const auto& list :
         {nn::named_variables(trained.model), nn::named_variables(trained.optimizer)})
      for (const auto& [name, variable] : list) {
        variables.push_back(variable);
        start.push_back(variable.value() * 1);
      }
    const auto prepare = [=] {
      for (size_t i = 0; i < variables.size(); ++i) variables[i].assign(start[i]);
    };
    const auto state = [=] { return values(variables); };
    const std::string name = adam ? "Adam" : "SGD";
    operations.push_back({.name = cat("a step of ", name),
                          .prepare = prepare,
                          .act = [=] { return bits(step(x, y)); },
                          .state = state});
    operations.push_back({.name = cat("a first step of ", name),
                          .prepare = prepare,
                          .act = [=] { return bits(trained.step()(x, y)); },
                          .state = state});
    operations.push_back({.name = cat("an eager step of ", name),
                          .prepare = prepare,
                          .act =
                              [=] {
                                GradientTape tape;
                                const Tensor loss = nn::losses::mse(y, trained.model(x));
                                trained.optimizer.minimize(tape, loss, trained.model);
                                return bits(loss);
                              },
                          .state = state});
  }
  operations.push_back({.name = "a model from nothing", .act = [=] {
                          random::seed(3);
                          const Trained trained{nn::Optimizer(nn::Adam())};
                          return bits(trained.step()(x, y));
                        }});
  expect_all_survive(operations);
}

TEST(Faults, OfThreads) {
  const Tensor x = drawn({64, 64});
  const auto f = function(body);
  f(x);
  expect_all_survive({
      {.name = "set_num_threads",
       .act =
           [=] {
             const int before = num_threads();
             set_num_threads(1);
             set_num_threads(before);
             return bits(matmul(x, x));
           }},
      {.name = "a call on a thread of its own",
       .act =
           [=] {
             std::string gave;
             std::exception_ptr error;
             std::thread([&] {
               try {
                 gave = bits(f(x));
               } catch (...) {
                 error = std::current_exception();
               }
             }).join();
             if (error != nullptr) std::rethrow_exception(error);
             return gave;
           }},
  });
}

TEST(Faults, OfLookingAtThings) {
  const Tensor x = drawn({6, 6});
  const auto f = function(body, {.name = "body"});
  f(x);
  const nn::Sequential model{nn::Dense(16, {.activation = relu}), nn::Dense(4)};
  nn::build(model, spec({6, 6}));
  expect_all_survive({
      {.name = "cache_info", .act = [=] { return cat(f.cache_info().entries.size()); }},
      {.name = "cache_info printed", .act = [=] { return cat(f.cache_info()); }},
      {.name = "check_captures", .act = [=] { return f.check_captures(); }},
      {.name = "report", .act = [=] { return f.report(); }},
      {.name = "program", .act = [=] { return f.text(); }},
      {.name = "plan, explained", .act = [=] { return f.plan(x).explain(); }},
      {.name = "plan, as text", .act = [=] { return cat(f.plan(x)); }},
      {.name = "plan, as JSON", .act = [=] { return f.plan(x).to_json(); }},
      {.name = "live bytes", .act = [=] { return cat(memory::live()).substr(0, 0); }},
      {.name = "summary", .act = [=] { return cat(nn::summary(model, spec({6, 6}))); }},
  });
}

}  // namespace
}  // namespace tidemark::testing
