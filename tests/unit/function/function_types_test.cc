// What td::function takes and gives, as types; and what it does to arguments and results before and
// after a core sees them. The bodies run eagerly here, on the leaves they are given.
#include <gtest/gtest.h>

#include "tidemark/api/create.h"
#include "tidemark/api/function.h"
#include "tidemark/api/ops.h"
#include "tidemark/tensor/tensor_state.h"

namespace td = tidemark;
using td::Dim;
using td::Shape;
using td::Static;
using td::Tensor;
using td::detail::Argument;
using td::detail::Arguments;

namespace {

struct Batch {
  Tensor image, label;
};
struct Step {
  Tensor loss;
  std::vector<Tensor> grads;
};
Tensor twice(const Tensor& x) { return x * 2; }

// ---- signatures ---------------------------------------------------------------------------------

template <class F>
using Made = decltype(td::function(std::declval<F>()));

[[maybe_unused]] constexpr auto takes_batch = [](const Batch& batch, const Tensor& rate) -> Step {
  return {batch.image * rate, {batch.label}};
};
static_assert(
    std::same_as<Made<decltype(takes_batch)>, td::Function<Step(const Batch&, const Tensor&)>>);
static_assert(std::same_as<Made<decltype(&twice)>, td::Function<Tensor(const Tensor&)>>);
static_assert(
    std::same_as<decltype(td::function<Tensor(Tensor)>(td::exp)), td::Function<Tensor(Tensor)>>);
[[maybe_unused]] constexpr auto changes = [](Tensor x, Static<bool>) mutable noexcept { x += 1; };
static_assert(std::same_as<Made<decltype(changes)>, td::Function<void(Tensor, Static<bool>)>>);

// What may be passed: a tensor, a number, an integer, braces.
using Sized = td::Function<Tensor(const Tensor&, Dim, Static<int>, const Shape&, td::DType)>;
static_assert(std::is_invocable_r_v<Tensor, Sized, Tensor&, int, int, Shape, td::DType>);
static_assert(std::is_invocable_r_v<Tensor, Sized, float, int64_t, int, Shape, td::DType>);
static_assert(std::is_invocable_r_v<Tensor, Sized, td::Variable&, Dim, int, Shape, td::DType>);
static_assert(!std::is_invocable_v<Sized, Tensor, Tensor, int, Shape, td::DType>);
static_assert(!std::is_invocable_v<Sized, Tensor, int, int, Shape>);
static_assert(std::is_invocable_v<td::Function<void()>>);
static_assert(std::is_copy_constructible_v<Sized> && std::is_copy_assignable_v<Sized>);

// Never run: the forms a user writes.
[[maybe_unused]] void forms(const td::Function<Step(const Batch&, const Tensor&)>& step,
                            const td::Function<void(Tensor)>& show, const Sized& sized, Tensor x) {
  Step result = step({.image = x, .label = x}, 0.1F);
  const auto [loss, grads] = step({x, x}, 1);
  result = step(Batch{x + 1, std::move(x)}, td::donate(result.loss));
  sized(loss, 7, 3, {1000, 1000}, td::f32);
  td::Plan plan = step.plan({td::spec({td::open, 784}), td::spec({td::open}, td::i32)}, 0.9,
                            {.budget = td::Bytes(64)});
  plan = sized.plan(td::spec({64, 784}).donated(), 9, 1, {}, td::f32);
  std::vector<std::byte> arena(static_cast<size_t>(plan.arena().count));
  show.run_in(plan, arena, loss);
  static_assert(std::same_as<decltype(show.profile(loss)), td::Profile>);
  static_assert(std::same_as<decltype(step.profile({}, 1)), std::pair<Step, td::Profile>>);
  static_assert(std::same_as<decltype(step.report() + step.check_captures() + step.text("fuse")),
                             std::string>);
  const td::CacheInfo info = step.cache_info();
  step.clear_cache();
}

// ---- arguments ----------------------------------------------------------------------------------

template <class... T>
Arguments take(std::tuple<T...>& all) {
  return td::detail::take_arguments(all);
}

TEST(FunctionArguments, AreLeavesWithPathsAndAKeyOfTheRest) {
  std::tuple all(Batch{1, 2}, Dim(7), Static<int>(3), std::vector<Tensor>{4});
  const Arguments taken = take(all);
  ASSERT_EQ(taken.leaves.size(), 4U);
  EXPECT_EQ(taken.path(1), "argument 0.label");
  EXPECT_EQ(taken.leaves[1].tensor.item<int>(), 2);
  EXPECT_FALSE(taken.leaves[1].is_size);
  EXPECT_EQ(taken.path(2), "argument 1");
  EXPECT_TRUE(taken.leaves[2].is_size);
  EXPECT_EQ(taken.leaves[2].size, 7);
  EXPECT_FALSE(taken.leaves[2].tensor.has_value());
  EXPECT_FALSE(taken.leaves[2].donated);
  EXPECT_EQ(taken.path(3), "argument 3[0]");
  EXPECT_EQ(taken.key(), "argument 2: 3\nargument 3: 1 item\n");
}

TEST(FunctionArguments, MovedInHaveNoOtherHandle) {
  Tensor kept = td::ones({2}), given = td::ones({2});
  std::tuple all(Batch{kept, std::move(given)}, td::ones({2}) + 1);
  Arguments taken = take(all);
  EXPECT_FALSE(std::get<0>(all).label.has_value());
  // donate throws where somebody else holds the bytes.
  EXPECT_THROW((void)td::donate(taken.leaves[0].tensor), td::UserError);
  EXPECT_TRUE(td::donate(taken.leaves[1].tensor).has_value());
  EXPECT_TRUE(td::donate(taken.leaves[2].tensor).has_value());
}

TEST(FunctionArguments, AreRebuiltAroundOtherLeaves) {
  using All = std::tuple<Batch, std::optional<Tensor>, Dim, Static<std::string>>;
  All all(Batch{1, 2}, std::nullopt, 7, "relu");
  const Arguments taken = take(all);
  const std::any structure = taken.structure();
  std::vector<Argument> others(taken.leaves.begin(), taken.leaves.end());
  others[0].tensor = 10;
  others[2].size = 8;
  const auto [batch, mask, rows, name] =
      td::detail::with_arguments<Batch, std::optional<Tensor>, Dim, Static<std::string>>(others,
                                                                                         structure);
  EXPECT_EQ(batch.image.item<int>(), 10);
  EXPECT_EQ(batch.label.item<int>(), 2);
  EXPECT_FALSE(mask.has_value());
  EXPECT_EQ(rows, 8);
  EXPECT_EQ(*name, "relu");
}

// ---- bodies and results -------------------------------------------------------------------------

// The call of a Function whose core runs the body on the arguments themselves.
template <class R, class... A, class F, class... T>
td::detail::TraceResult run(F f, T... arguments) {
  const td::detail::TraceBody body = td::detail::make_body<R, A...>(f, td::Source::here());
  std::tuple<std::remove_cvref_t<A>...> all(std::move(arguments)...);
  const Arguments taken = take(all);
  return body(taken.leaves, taken.structure());
}
template <class R>
R given(td::detail::TraceResult& result) {
  td::detail::ResultRoom<R> room;
  room(result.structure);
  return room.fill({result.leaves.begin(), result.leaves.end()});
}

TEST(FunctionBody, RunsOnTheLeavesAndGivesThemBack) {
  auto result = run<Step, const Batch&, const Tensor&>(
      [](const Batch& batch, const Tensor& rate) -> Step {
        return {batch.image * rate, {batch.label, rate}};
      },
      Batch{3, 4}, 5);
  EXPECT_EQ(result.paths,
            (std::vector<std::string>{"result.loss", "result.grads[0]", "result.grads[1]"}));
  result.leaves[1] = 40;
  const Step step = given<Step>(result);
  EXPECT_EQ(step.loss.item<int>(), 15);
  ASSERT_EQ(step.grads.size(), 2U);
  EXPECT_EQ(step.grads[0].item<int>(), 40);
  EXPECT_EQ(step.grads[1].item<int>(), 5);
}

TEST(FunctionBody, GivesOneTensorOrNothing) {
  auto one = run<Tensor, const Tensor&>(twice, 4);
  EXPECT_EQ(one.paths, std::vector<std::string>{"result"});
  EXPECT_EQ(given<Tensor>(one).item<int>(), 8);
  int calls = 0;
  const auto nothing = run<void, Tensor>([&calls](const Tensor&) { ++calls; }, 4);
  EXPECT_TRUE(nothing.leaves.empty());
  EXPECT_EQ(calls, 1);
}

TEST(FunctionBody, KeepsWhatIsNoTensor) {
  using Mixed = std::tuple<Dim, Shape, Static<int>, std::optional<Tensor>, Tensor>;
  auto result = run<Mixed, Tensor>(
      [](const Tensor& x) -> Mixed { return {x.shape()[0], x.shape(), 3, std::nullopt, Tensor()}; },
      td::ones({4, 2}));
  const auto [rows, shape, number, absent, empty] = given<Mixed>(result);
  EXPECT_EQ(rows, 4);
  EXPECT_EQ(shape, (Shape{4, 2}));
  EXPECT_EQ(*number, 3);
  EXPECT_FALSE(absent.has_value());
  EXPECT_FALSE(empty.has_value());
}

// A plan depends on it, so no open size may be kept as if it were a number.
TEST(FunctionBody, ReadsTheSizesItReturns) {
  const auto size = [](const Tensor&) { return Dim(td::open); };
  const auto shape = [](const Tensor&) { return Shape{2, td::open}; };
  EXPECT_THROW((run<Dim, Tensor>(size, 1)), td::UserError);
  EXPECT_THROW((run<Shape, Tensor>(shape, 1)), td::UserError);
}

TEST(FunctionBody, ChargesLinesToTheUser) {
  unsigned line = 0;
  const td::Source outer = td::Source::here();
  const td::SourceScope scope(outer);  // As if library code called the function.
  auto own = run<Tensor, Tensor>(
      [&line](const Tensor& x) {
        line = __LINE__ + 1;
        return x + 1;
      },
      1);
  EXPECT_EQ(given<Tensor>(own).source().line, line);
}

TEST(FunctionBody, OfAnOpChargesTheLineThatMadeTheFunction) {
  const td::Source made = td::Source::here();
  std::tuple<Tensor> all(td::ones({2}));
  const td::detail::TraceBody body = td::detail::make_body<Tensor, Tensor>(td::exp, made);
  const Arguments taken = take(all);
  auto result = body(taken.leaves, taken.structure());
  const Tensor y = given<Tensor>(result);
  EXPECT_EQ(y.source().line, made.line);
  EXPECT_STREQ(y.source().file, made.file);
}

// ---- donation and specs -------------------------------------------------------------------------

TEST(Donate, MovesTheOnlyHandle) {
  Tensor x = td::ones({2, 3});
  const Tensor moved = td::donate(x);
  EXPECT_FALSE(x.has_value());
  EXPECT_EQ(moved.shape(), (Shape{2, 3}));
}

TEST(Donate, RefusedLeavesTheTensorWhereItWas) {
  Tensor x = td::ones({2, 3});
  {
    const Tensor other = x;
    EXPECT_THROW((void)td::donate(x), td::UserError);
  }
  {
    const Tensor view = x[0];
    EXPECT_THROW((void)td::donate(x), td::UserError);
  }
  ASSERT_TRUE(x.has_value());
  EXPECT_TRUE(td::donate(x).has_value());
}

TEST(Spec, IsATypeWithANameThatMayBeDonated) {
  const td::TensorSpec spec = td::spec({td::open, 784}, td::bf16, "image");
  EXPECT_EQ(spec.shape, (Shape{td::open, 784}));
  EXPECT_EQ(spec.dtype, td::bf16);
  EXPECT_EQ(spec.name, "image");
  EXPECT_FALSE(spec.is_donated);
  EXPECT_TRUE(spec.donated().is_donated);
  EXPECT_EQ(spec.donated().name, "image");
  EXPECT_EQ(td::spec({2}).dtype, td::f32);
}

TEST(Spec, StandsForATensorThatMayBeDonated) {
  using td::detail::TensorState;
  const Batch batch{td::spec({4, 3}, td::f64), td::spec({4}).donated()};
  EXPECT_EQ(batch.image.shape(), (Shape{4, 3}));
  EXPECT_EQ(batch.image.dtype(), td::f64);
  EXPECT_EQ(TensorState::of(batch.image)->kind, TensorState::Kind::spec);
  EXPECT_FALSE(TensorState::of(batch.image)->donated);
  EXPECT_TRUE(TensorState::of(batch.label)->donated);
}

}  // namespace
