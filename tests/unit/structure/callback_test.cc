// How a user's function is called back, and what its values become on the way.
#include "tidemark/structure/callback.h"

#include <gtest/gtest.h>

#include "tidemark/api/create.h"
#include "tidemark/api/ops.h"

namespace td = tidemark;
using td::Tensor;
using td::Variable;
using td::detail::call_unpacked;
using td::detail::lift;
using td::detail::Lifted;

namespace {

struct State {
  Tensor h, c;
};

static_assert(std::same_as<Lifted<int>, Tensor> && std::same_as<Lifted<const Variable&>, Tensor>);
static_assert(std::same_as<Lifted<Tensor&>, Tensor> && std::same_as<Lifted<State>, State>);
static_assert(std::same_as<Lifted<std::tuple<int, std::pair<Tensor, Variable>, State>>,
                           std::tuple<Tensor, std::pair<Tensor, Tensor>, State>>);

TEST(Lift, MakesTensorsOfNumbersAndVariables) {
  const Variable variable(td::ones({3}));
  const auto [number, pair, state] =
      lift(std::tuple(7, std::pair(variable, true), State{1, 2}), td::Source::here());
  EXPECT_EQ(number.item<int>(), 7);
  EXPECT_EQ(pair.first.shape(), (td::Shape{3}));
  EXPECT_TRUE(pair.second.item<bool>());
  EXPECT_EQ(state.c.item<int>(), 2);
}

TEST(Lift, ChargesTheLineGiven) {
  const td::Source at = td::Source::here();
  const auto lifted = lift(std::tuple(1.5, 2), at);
  EXPECT_EQ(std::get<0>(lifted).source().line, at.line);
  EXPECT_STREQ(std::get<1>(lifted).source().file, at.file);
}

TEST(Lift, MovesWhatIsMovedIn) {
  std::tuple carried(td::ones({2}), 1);
  const auto lifted = lift(std::move(carried), td::Source::here());
  EXPECT_FALSE(std::get<0>(carried).has_value());
  std::tuple kept(td::ones({2}), 1);
  lift(kept, td::Source::here());
  EXPECT_TRUE(std::get<0>(kept).has_value());
}

TEST(CallUnpacked, GivesATupleAsParametersAndAStructWhole) {
  const td::Source at = td::Source::here();
  const auto difference = [](const Tensor& a, const Tensor& b) { return a - b; };
  EXPECT_EQ(call_unpacked(difference, at, std::tuple(Tensor(7), Tensor(3))).item<int>(), 4);
  EXPECT_EQ(call_unpacked(difference, at, std::array<Tensor, 2>{9, 3}).item<int>(), 6);
  const auto of_state = [](const State& state) { return state.h - state.c; };
  EXPECT_EQ(call_unpacked(of_state, at, State{7, 3}).item<int>(), 4);
  const auto of_list = [](const std::vector<Tensor>& list) { return list.size(); };
  EXPECT_EQ(call_unpacked(of_list, at, std::vector<Tensor>{1, 2}), 2U);
}

TEST(CallUnpacked, ChargesAnOpToTheLineGivenAndAUsersFunctionToItsOwn) {
  const td::Source at = td::Source::here();
  const td::SourceScope library(at);
  const Tensor x = td::ones({2});
  EXPECT_EQ(call_unpacked(td::exp, at, x).source().line, at.line);
  unsigned line = 0;
  const auto add = [&line](const Tensor& x) {
    line = __LINE__ + 1;
    return x + 1;
  };
  EXPECT_EQ(call_unpacked(add, at, x).source().line, line);
}

}  // namespace
