// The messages of control flow, with their exact text: the same in eager code and in functions.
#include "tests/errors/expect_error.h"
#include "tidemark/tidemark.h"

namespace td = tidemark;
using td::Tensor;
using td::TensorArray;

namespace {

Tensor floats(const td::Shape& shape) { return td::zeros(shape); }
Tensor wholes(const td::Shape& shape) { return td::zeros(shape, td::i32); }
Tensor same(const Tensor& x) { return x; }
Tensor always(const Tensor&) { return true; }

// In eager code and in a function.
void expect_both(const std::function<void(const Tensor&)>& call, const std::string& text,
                 td::Source at = td::Source::here()) {
  expect_error([&] { call(floats({2})); }, text, at);
  const auto f = td::function([&](const Tensor& x) { call(x); });
  expect_error([&] { f(floats({2})); }, text, at);
}

TEST(ControlFlowErrors, OfConditions) {
  const auto one = [] { return Tensor(1); };
  expect_both([&](const Tensor& x) { td::cond(x > 0, one, one); },
              "cond: the condition must be one bool, got bool[2]\n"
              "  at @\n  reduce it with td::all or td::any, or choose by element with td::where");
  expect_both([&](const Tensor& x) { td::cond(td::sum(x), one, one); },
              "cond: the condition must be one bool, got f32[]\n"
              "  at @\n  compare it with something: x > 0");
  expect_both([&](const Tensor&) { td::cond(1, one, one); },
              "cond: the condition must be one bool, got i32[]\n"
              "  at @\n  compare it with something: x > 0");
  expect_both([&](const Tensor& x) { td::while_loop(same, same, x); },
              "while_loop: the condition must be one bool, got f32[2]\n"
              "  at @\n  compare it with something: x > 0");
  expect_both([&](const Tensor& x) { td::switch_case(td::sum(x), one, one); },
              "switch_case: expected one integer, got f32[]\n"
              "  at @\n  cast it: td::cast(x, td::i32)");
  expect_both([&](const Tensor& x) { td::switch_case(td::cast(x, td::i32), one, one); },
              "switch_case: expected one integer, got i32[2]\n"
              "  at @\n  pick one element: x[0]");
}

TEST(ControlFlowErrors, OfBranchesThatDiffer) {
  const td::Source at = td::Source::here();
  const auto of = [](auto first, auto second) {
    return [=] { td::function([=](const Tensor& p) { return td::cond(p, first, second); })(true); };
  };
  expect_error(of([] { return floats({2}); }, [] { return wholes({2}); }),
               "cond: result is f32[2] in the first branch and i32[2] in the second\n"
               "  at @\n  both branches must give the same dtype and shape",
               at);
  expect_error(of([] { return std::pair{floats({2}), floats({2})}; },
                  [] { return std::pair{floats({2}), floats({3})}; }),
               "cond: result[1] is f32[2] in the first branch and f32[3] in the second\n"
               "  at @\n  both branches must give the same dtype and shape",
               at);
  expect_error(
      of([] { return std::vector<Tensor>{floats({2})}; }, [] { return std::vector<Tensor>{}; }),
      "cond: the branches give different structures: result: 1 item became 0 items\n"
      "  at @\n  lengths, keys and sizes stay as they are; to collect results use "
      "td::TensorArray or td::scan",
      at);
}

TEST(ControlFlowErrors, OfCarriesThatChange) {
  struct State {
    Tensor h, c;
  };
  const td::Source at = td::Source::here();
  const auto loop = [](const State& first, auto body) {
    return [=](const Tensor&) {
      td::while_loop([](const State& s) { return td::sum(s.h) < 1; }, body, first);
    };
  };
  const State state{floats({2}), floats({})};
  const auto grow = loop(state, [](const State& s) { return State{td::concat({s.h, s.h}), s.c}; });
  expect_error([&] { grow(floats({2})); },
               "while_loop: carry.h is f32[2] at the start of a trip and f32[4] at its end\n"
               "  at @\n  give it the same shape, or declare which sizes may change: "
               ".shape_invariants = {{td::open}}",
               at);
  expect_error([&] { td::function([&](const Tensor& x) { grow(x); })(floats({2})); },
               "while_loop: carry.h is f32[2] at the start of a trip and f32[4] at its end\n"
               "  at @\n  in a function a carry has one size in all trips: collect in "
               "td::TensorArray, whose size or max_size is known",
               at);
  expect_both(loop(state, [](const State& s) { return State{s.h, td::cast(s.c, td::i32)}; }),
              "while_loop: carry.c is f32[] at the start of a trip and i32[] at its end\n"
              "  at @\n  cast it in the body, td::cast(x, td::f32), or start with the other dtype",
              at);
  const auto longer = [](const std::vector<Tensor>& list) {
    std::vector<Tensor> more = list;
    more.push_back(list[0]);
    return more;
  };
  const auto go_on = [](const std::vector<Tensor>&) { return true; };
  expect_both(
      [&](const Tensor& x) { td::while_loop(go_on, longer, std::vector<Tensor>{x}); },
      "while_loop: the body changes the structure of what it carries: carry: 1 item became 2 "
      "items\n"
      "  at @\n  lengths, keys and sizes stay as they are; to collect results use "
      "td::TensorArray or td::scan");
}

TEST(ControlFlowErrors, OfShapeInvariants) {
  const auto grow = [](const Tensor& x) { return td::concat({x, x}); };
  const auto small = [](const Tensor& x) { return x.size() < 20; };
  const td::Source at = td::Source::here();
  const auto run = [&](const std::vector<td::Shape>& invariants) {
    return
        [=](const Tensor& x) { td::while_loop(small, grow, x, {.shape_invariants = invariants}); };
  };
  EXPECT_NO_THROW(run({{td::open}})(floats({2})));
  expect_error([&] { td::function([&](const Tensor& x) { run({{td::open}})(x); })(floats({2})); },
               "while_loop: carry is f32[2] at the start of a trip and f32[4] at its end\n"
               "  at @\n  in a function a carry has one size in all trips: collect in "
               "td::TensorArray, whose size or max_size is known",
               at);
  expect_both(run({{2}}),
              "while_loop: carry is f32[2] at the start of a trip and f32[4] at its end\n"
              "  at @\n  its shape invariant is [2]",
              at);
  expect_both(run({{3}}),
              "while_loop: carry is f32[2] at the start, its shape invariant is [3]\n"
              "  at @\n  an invariant allows the shape at the start; td::open leaves a size free",
              at);
  expect_both(run({{2}, {}}),
              "while_loop: 2 shape invariants for 1 tensors\n"
              "  at @\n  give one for each tensor carried, in order",
              at);
}

TEST(ControlFlowErrors, OfCountsAndBounds) {
  expect_both([&](const Tensor& x) { td::while_loop(always, same, x, {.max_iterations = -1}); },
              "while_loop: max_iterations must be at least 0, got -1\n"
              "  at @\n  leave it out for the default");
  expect_both([&](const Tensor& x) { td::map_fn(same, x, {.chunk = 0}); },
              "map_fn: chunk must be at least 1, got 0\n"
              "  at @\n  leave it out for the default");
  expect_both([&](const Tensor& x) { td::vectorized_map(same, x, {.parallel_iterations = -2}); },
              "vectorized_map: parallel_iterations must be at least 1, got -2\n"
              "  at @\n  leave it out for the default");
  const auto second = [](const Tensor&, const Tensor& x) { return x; };
  expect_both([&](const Tensor& x) { td::fori_loop(0, td::sum(x), second, x); },
              "fori_loop: expected one integer, got f32[]\n"
              "  at @\n  cast it: td::cast(x, td::i32)");
}

TEST(ControlFlowErrors, OfSlices) {
  const auto first = [](const Tensor& x, const Tensor&) { return x; };
  const auto both = [](const Tensor& c, const std::pair<Tensor, Tensor>&) {
    return std::pair{c, c};
  };
  expect_both([&](const Tensor& x) { td::map_fn(first, std::tuple{x, floats({3, 2})}); },
              "map_fn: elems[0] is f32[2] and elems[1] is f32[3, 2] (2 and 3 slices)\n"
              "  at @\n  each trip takes one slice of every tensor, so their first sizes agree");
  expect_both([&](const Tensor& x) { td::scan(both, x, std::pair{x, td::sum(x)}); },
              "scan: xs[1] is f32[], which has no axis to take slices of\n"
              "  at @\n  capture it in the body if every trip uses it whole");
  expect_both([&](const Tensor&) { td::map_fn([] { return Tensor(1); }, std::tuple<>()); },
              "map_fn: there is no tensor to take slices of\n"
              "  at @\n  give at least one; td::arange(n) gives the numbers of the trips");
  int calls = 0;
  const auto uneven = [&](const Tensor&) { return floats({++calls}); };
  expect_error([&] { td::map_fn(uneven, floats({2})); },
               "map_fn: result is f32[1] for one slice and f32[2] for another\n"
               "  at @\n  all of them are stacked, so the body gives one type");
}

// A body of zero trips is only traced, eager code or not.
TEST(ControlFlowErrors, OfVariablesMadeInABody) {
  const auto made_inside = [](const Tensor& x) {
    const td::Variable v(td::ones({2}), {.name = "v"});
    return x + v;
  };
  expect_error(
      [&] { td::map_fn(made_inside, floats({0, 2})); },
      "Variable \"v\" was made inside the body of map_fn\n  at @\n  make it before the loop "
      "or the branch");
  const auto f = td::function([&](const Tensor& x) { return td::map_fn(made_inside, x); });
  expect_error(
      [&] { f(floats({3, 2})); },
      "Variable \"v\" was made inside the body of map_fn\n  at @\n  make it before the loop "
      "or the branch");
}

TEST(ControlFlowErrors, OfVariablesAssignedInAConditions) {
  const td::Variable v(floats({}), {.name = "v"});
  const auto f = td::function([&](const Tensor& x) {
    const auto assigns = [&](const Tensor&) {
      v.assign_add(1);
      return v < 3;
    };
    td::while_loop(assigns, same, x);
  });
  expect_error([&] { f(floats({2})); },
               "while_loop: the condition assigns Variable \"v\"\n"
               "  at @\n  a condition only reads; assign it in the body");
}

TEST(ControlFlowErrors, OfTensorsThatLeaveTheirBody) {
  std::vector<Tensor> kept;
  unsigned loop = 0, made = 0, used = 0;
  const auto f = td::function([&](const Tensor& x) {
    const auto body = [&](const Tensor& y) {
      made = __LINE__ + 1;
      const Tensor z = y + 1;
      kept.push_back(z);
      return z;
    };
    loop = __LINE__ + 1;
    td::while_loop(always, body, x);
    used = __LINE__ + 1;
    return kept.back() * 2;
  });
  const auto line = [](unsigned n) { return "control_flow_errors_test.cc:" + std::to_string(n); };
  try {
    f(floats({2}));
    ADD_FAILURE() << "no error";
  } catch (const td::UserError& error) {
    EXPECT_EQ(error.what(), "a tensor made inside the body of while_loop (" + line(loop) + ") at " +
                                line(made) + " was used outside it: it has no value there\n  at " +
                                line(used) +
                                "\n  return it as a result; to collect one value per trip of a "
                                "loop use td::TensorArray or td::scan");
  }
}

TEST(ControlFlowErrors, OfTensorArrays) {
  const TensorArray fixed(td::f32, {.size = 2});
  const TensorArray bounded(td::f32, {.max_size = 2, .element_shape = td::Shape{}});
  expect_both([&](const Tensor&) { TensorArray(td::f32, {.size = -1}); },
              "TensorArray: a size of -1 is not possible\n"
              "  at @\n  give the number of elements, or .max_size and push_back");
  expect_both([&](const Tensor&) { TensorArray(td::f32, {.size = 3, .max_size = 2}); },
              "TensorArray: max_size 2 is less than size 3\n"
              "  at @\n  max_size is the most elements it ever has");
  expect_both([&](const Tensor&) { fixed.stack(); },
              "stack: nothing was written to this TensorArray, so the shape of its elements is not "
              "known\n  at @\n  give it: td::TensorArray(td::f32, {.size = 10, .element_shape = "
              "{2}})");
  expect_both([&](const Tensor& x) { static_cast<void>(fixed.write(0, td::cast(x, td::i32))); },
              "write: a TensorArray of f32 cannot hold i32[2]\n"
              "  at @\n  cast it: td::cast(x, td::f32)");
  expect_both([&](const Tensor& x) { static_cast<void>(fixed.push_back(x)); },
              "push_back: this TensorArray has a fixed size\n"
              "  at @\n  give the most elements it may have, {.max_size = 100}, or use write");
  const auto fill = [&] { return bounded.push_back(1).push_back(2).push_back(3).stack(); };
  const std::string line = "control_flow_errors_test.cc:" + std::to_string(__LINE__ - 1);
  expect_error([&] { fill(); },
               "assert_that: push_back: this TensorArray has max_size 2, and is full\n  at @");
  const auto filled = td::function(fill);
  expect_error([&] { filled(); },
               "assert_that: push_back: this TensorArray has max_size 2, and is full\n  at @ [" +
                   line + "]");
  expect_both([&](const Tensor&) { static_cast<void>(bounded.unstack(floats({3}))); },
              "unstack: f32[3] has 3 elements, this TensorArray has max_size 2\n"
              "  at @\n  give it a larger max_size");
  expect_both([&](const Tensor&) { static_cast<void>(fixed.unstack(floats({}))); },
              "unstack: f32[] has no axis to take elements from\n"
              "  at @\n  give it one: td::reshape(x, {1})");
  const auto f = td::function([&](const Tensor& n) {
    return td::while_loop([&](const TensorArray& a) { return a.size() < n; },
                          [](const TensorArray& a) { return a; }, fixed);
  });
  expect_error(
      [&] { f(3); },
      "while_loop: carry.buffer_ holds nothing\n"
      "  at @\n  a TensorArray that a loop carries needs .element_shape, or a write in the "
      "body");
}

TEST(ControlFlowErrors, OfMoreResultsThanANodeHas) {
  const auto f = td::function([](const Tensor& x) {
    return td::fori_loop(
        0, 2, [](const Tensor&, const std::vector<Tensor>& carries) { return carries; },
        std::vector<Tensor>(40'000, x));
  });
  expect_error([&] { f(floats({2})); },
               "loop: 40000 results, those of Variables that it assigns among them, and there may "
               "be 32767\n  at @\n  stack tensors of one dtype and shape: td::stack(list) is one "
               "result");
}

}  // namespace
