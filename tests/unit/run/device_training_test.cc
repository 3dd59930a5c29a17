// Tensors, Variables and whole training steps in another memory: they stay there, have the bits of
// the host, and take the bytes that were planned. Any access of the host outside of a copy or a
// task would fault.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/run/device_test.h"

namespace tidemark {
namespace {

namespace td = tidemark;

class DeviceTraining : public testing::DeviceTest {
 protected:
  int32_t there() const { return number_.number(); }

  // That a function gives the same bits there as on the host, in the bytes that are planned.
  template <class F>
  void expect_same(const F& f, const std::vector<td::Tensor>& arguments) {
    const auto on_host = td::function(f), on_device = td::function(f);
    std::vector<td::Tensor> moved;
    for (const td::Tensor& x : arguments) moved.push_back(to_device(x));
    const td::Tensor expected = on_host(arguments);
    const int64_t held = memory_.current();
    const auto [y, profile] = on_device.profile(moved);
    EXPECT_TRUE(td::identical(to_host(y), expected));
    ASSERT_EQ(profile.memories.size(), 1U);
    EXPECT_EQ(profile.memories[0].touched, profile.memories[0].planned);
    EXPECT_EQ(profile.touched, profile.memories[0].touched) << "it computes there";
    EXPECT_EQ(profile.planned, on_device.plan(moved).peak());
    EXPECT_EQ(memory_.current() - held,
              on_device.plan(moved).memories()[1].bytes.count - arena_bytes(on_device.plan(moved)))
        << "only the result stays";
  }
  static int64_t arena_bytes(const td::Plan& plan) {
    int64_t results = 0;
    for (const td::PlanBuffer& buffer : plan.buffers())
      if (buffer.memory == "test" && buffer.byte_class == td::ByteClass::outputs)
        results += buffer.bytes.count;
    return plan.memories()[1].bytes.count - results;
  }

  td::Tensor x_ = td::random::normal({12, 10}, {.key = td::random::Key(1)});
};

// ---- tensors ------------------------------------------------------------------------------------

TEST_F(DeviceTraining, TensorsAreCopiedInAndOut) {
  const td::Bytes before = td::memory::current();
  {
    const td::Tensor y = to_device(td::transpose(x_));  // Made dense on the way.
    EXPECT_EQ(memory_.current(), 512);
    EXPECT_EQ(td::memory::current(), before) << "the host's account has none of it";
    EXPECT_TRUE(td::identical(to_host(y), td::transpose(x_)));
    EXPECT_EQ(to_device(y).source().line, y.source().line) << "the tensor itself";
  }
  EXPECT_EQ(memory_.current(), 0);
}

TEST_F(DeviceTraining, TheHostCannotReadThem) {
  const td::Tensor y = to_device(x_);
  const std::string text =
      "the host cannot read f32[12, 10]: it lies in memory 1 (\"test\")\n"
      "  copy it to the host: td::transfer(x, 0); functions compute where it lies";
  EXPECT_EQ(error_of([&] { (void)y.to_vector<float>(); }), text);
  EXPECT_EQ(error_of([&] { (void)y.span<const float>(); }), text);
  EXPECT_EQ(error_of([&] { (void)(y + 1); }), text);
  EXPECT_EQ(error_of([&] { (void)td::exp(td::Tensor(y)); }), text);
  EXPECT_EQ(error_of([&] { (void)y[0]; }), text);
  EXPECT_EQ(error_of([&] { (void)td::sum(y); }), text);
  EXPECT_EQ(error_of([&] { (void)td::identical(y, y); }), text);
  EXPECT_EQ(error_of([&] { td::print("y", y); }), text);
  EXPECT_EQ(cat(y), "f32[12, 10] in memory 1 (\"test\")");
  EXPECT_EQ(y.shape(), (td::Shape{12, 10}));
}

// ---- functions ----------------------------------------------------------------------------------

TEST_F(DeviceTraining, FunctionsComputeWhereTheirArgumentsLie) {
  expect_same(
      [](const std::vector<td::Tensor>& x) {
        return td::softmax(td::matmul(td::exp(x[0]), x[1], {.transpose_b = true}) * 0.5) + 1;
      },
      {x_, x_});
  EXPECT_GT(backend_.ops, 0);
  EXPECT_GT(backend_.groups, 0);
}

TEST_F(DeviceTraining, PlainNumbersAreCopiedIn) {
  const auto f = td::function([](const td::Tensor& x, td::Tensor a) { return x * a + a; });
  const td::Tensor y = to_device(x_);
  EXPECT_TRUE(td::identical(to_host(f(y, 2.5)), f(x_, 2.5)));
  EXPECT_TRUE(td::identical(to_host(f(y, -1)), f(x_, -1)));
}

TEST_F(DeviceTraining, ResultsLieWhereTheyAreComputed) {
  const auto f = td::function([](const td::Tensor& x) {
    const td::Tensor y = td::sin(x);
    return std::pair(y, td::transfer(td::sum(y), 0));
  });
  const auto [y, total] = f(to_device(x_));
  EXPECT_EQ(total.item<float>(), td::sum(td::sin(x_)).item<float>());
  EXPECT_TRUE(td::identical(to_host(y), td::sin(x_)));
}

TEST_F(DeviceTraining, DonatedArgumentsGiveTheirBytes) {
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x) * 2; });
  td::Tensor y = to_device(x_);
  (void)f(td::Tensor(y));
  const int64_t before = memory_.peak();
  EXPECT_EQ(before, 1024);
  const td::Tensor z = f(td::donate(y));
  EXPECT_EQ(memory_.current(), 512);
  EXPECT_EQ(memory_.peak(), before) << "in place";
  EXPECT_TRUE(td::identical(to_host(z), td::exp(x_) * 2));
}

TEST_F(DeviceTraining, BudgetsBoundTheMemoryThatAFunctionComputesIn) {
  const auto f = td::function([](const td::Tensor& x) { return td::exp(x); },
                              {.name = "f", .budget = td::Bytes(500)});
  const td::Tensor x = to_device(x_);  // Held: f may not overwrite it.
  const std::string text = error_of([&] { f(x); });
  EXPECT_EQ(text.substr(0, text.find(',')), "f: needs at least 512 B");
}

TEST_F(DeviceTraining, AreTracedForEachMemoryAndPlannedBySpecs) {
  const auto f = td::function([](const td::Tensor& x) { return td::tanh(x); });
  (void)f(x_);
  (void)f(to_device(x_));
  (void)f(x_);
  EXPECT_EQ(f.cache_info().traces, 2);
  const td::Variable w(to_device(td::ones({10, 4})));
  const auto g = td::function([&](const td::Tensor& x) { return td::matmul(x, w); });
  const td::Plan plan = g.plan(td::spec({12, 10}));
  ASSERT_EQ(plan.memories().size(), 2U);
  EXPECT_GE(plan.memories()[1].bytes.count, 12 * 4 * 4);
  (void)g(to_device(x_));
  EXPECT_EQ(g.cache_info().traces, 1);
}

// ---- control flow -------------------------------------------------------------------------------

TEST_F(DeviceTraining, BranchesLoopsAndMapsRunThere) {
  const auto looped = [](const std::vector<td::Tensor>& x) {
    const td::Tensor y = td::fori_loop(
        0, 3,
        [&](const td::Tensor& i, const td::Tensor& c) {
          return td::tanh(td::matmul(c, x[1])) + td::cast(i, td::f32);
        },
        x[0]);
    return td::cond(td::sum(y) > 0, [&] { return td::exp(y); }, [&] { return y - 1; });
  };
  const td::Tensor square = td::random::normal({10, 10}, {.key = td::random::Key(2)});
  expect_same(looped, {x_, square});
  expect_same(looped, {-x_, square});
  expect_same(
      [](const std::vector<td::Tensor>& x) {
        return td::while_loop([](const td::Tensor& c) { return td::max(td::abs(c)) > 0.25F; },
                              [&](const td::Tensor& c) { return td::matmul(c, x[1]) * 0.05; },
                              x[0]);
      },
      {x_, square});
  expect_same(
      [](const std::vector<td::Tensor>& x) {
        return td::map_fn(
            [&](const td::Tensor& row) {
              return td::fori_loop(
                  0, 2,
                  [&](const td::Tensor&, const td::Tensor& c) {
                    return td::cumsum(td::matmul(x[1], td::tanh(c)));
                  },
                  row);
            },
            x[0]);
      },
      {x_, square});
  // On few numbers: one task of the backend.
  expect_same(
      [](const std::vector<td::Tensor>& x) {
        return td::while_loop([](const td::Tensor& c) { return c < 100; },
                              [](const td::Tensor& c) { return c * c + 1; }, td::sum(x[0]));
      },
      {x_});
  EXPECT_GT(backend_.loops, 0);
}

TEST_F(DeviceTraining, GradientsOfLoopsRunThere) {
  const td::Tensor square = td::random::normal({10, 10}, {.key = td::random::Key(3)}) * 0.3;
  for (const td::Save save : {td::Save::all(), td::Save::slots(2), td::Save::every(3)}) {
    expect_same(
        [save](const std::vector<td::Tensor>& x) {
          return td::grad([&](const td::Tensor& w) {
            return td::sum(td::square(td::fori_loop(0, 9,
                                                    [&](const td::Tensor& i, const td::Tensor& c) {
                                                      return td::tanh(td::matmul(c, w)) +
                                                             0.1 * td::cast(i, td::f32);
                                                    },
                                                    x[0], {.save = save})));
          })(x[1]);
        },
        {x_, square});
  }
  // A scan over time, and a loop in a loop.
  expect_same(
      [](const std::vector<td::Tensor>& x) {
        return td::grad([&](const td::Tensor& w) {
          const auto [last, all] = td::scan(
              [&](const td::Tensor& state, const td::Tensor& row) {
                const td::Tensor next = td::tanh(td::matmul(state, w) + row);
                return std::pair(next, next * row);
              },
              td::zeros({10}), x[0]);
          return td::sum(td::square(all)) + td::sum(last);
        })(x[1]);
      },
      {x_, square});
  expect_same(
      [](const std::vector<td::Tensor>& x) {
        return td::grad([&](const td::Tensor& w) {
          return td::sum(td::fori_loop(0, 4,
                                       [&](const td::Tensor&, const td::Tensor& c) {
                                         return td::fori_loop(
                                             0, 5,
                                             [&](const td::Tensor&, const td::Tensor& d) {
                                               return td::tanh(td::matmul(d, w));
                                             },
                                             c, {.save = td::Save::slots(2)});
                                       },
                                       x[0], {.save = td::Save::slots(2)}));
        })(x[1]);
      },
      {x_, square});
}

// ---- Variables ----------------------------------------------------------------------------------

TEST_F(DeviceTraining, VariablesAreUpdatedInPlace) {
  const td::Variable w(to_device(td::zeros({12, 10})), {.name = "w"});
  EXPECT_EQ(memory_.current(), 512);
  const auto add = td::function([&](const td::Tensor& x) { w.assign_add(2 * x); });
  const td::Tensor y = to_device(x_);
  add(y);
  const int64_t peak = memory_.peak();
  EXPECT_EQ(peak, 1024) << "w and x";
  add(y);
  EXPECT_EQ(memory_.peak(), peak);
  EXPECT_TRUE(td::identical(to_host(w), 2 * x_ + 2 * x_));
  {
    const td::Tensor snapshot = w;  // Keeps its value: the next update has bytes of its own.
    add(y);
    EXPECT_TRUE(td::identical(to_host(snapshot), 4 * x_));
  }
  EXPECT_TRUE(td::identical(to_host(w), 4 * x_ + 2 * x_));
  EXPECT_EQ(memory_.current(), 1024);
}

TEST_F(DeviceTraining, VariablesMoveAndFunctionsFollow) {
  const td::Variable w(td::ones({12, 10}), {.name = "w"});
  const auto twice = td::function([&] { return 2 * w.value(); });
  const td::Tensor on_host = twice();
  w.move_to(there());
  EXPECT_EQ(memory_.current(), 512);
  EXPECT_TRUE(td::identical(to_host(twice()), on_host));
  w.move_to(0);
  EXPECT_EQ(memory_.current(), 0);
  EXPECT_TRUE(td::identical(twice(), on_host));
}

// Two models of the same first weights, trained on the host and there.
TEST_F(DeviceTraining, AnMlpIsTrainedWithAdam) {
  struct Trained {
    Trained()
        : model{td::nn::Dense(16, {.activation = td::relu}), td::nn::Dense(3)},
          optimizer({.learning_rate = 0.01}) {
      td::random::seed(7);
      td::nn::build(model, td::spec({12, 10}));
      optimizer.build(model);
      for (const td::Variable& variable : variables()) (void)variable.value();  // Drawn now.
    }
    td::Tensor step(const td::Tensor& x, const td::Tensor& y) const {
      td::GradientTape tape;
      const td::Tensor loss =
          td::mean(td::nn::losses::sparse_categorical_crossentropy(y, model(x)));
      optimizer.minimize(tape, loss, model);
      return loss;
    }
    std::vector<td::Variable> variables() const {
      std::vector<td::Variable> list;
      for (const auto& [name, variable] : td::nn::named_variables(model)) list.push_back(variable);
      for (const auto& [name, variable] : td::nn::named_variables(optimizer))
        list.push_back(variable);
      return list;
    }
    td::nn::Sequential model;
    td::nn::Adam optimizer;
  };
  const td::Tensor classes = td::random::integers({12}, {.high = 3, .key = td::random::Key(4)});
  const Trained host, device;
  for (const td::Variable& variable : device.variables()) variable.move_to(there());
  const int64_t weights = memory_.current();
  const auto on_host =
      td::function([&](const td::Tensor& x, const td::Tensor& y) { return host.step(x, y); });
  const auto on_device =
      td::function([&](const td::Tensor& x, const td::Tensor& y) { return device.step(x, y); });
  const td::Tensor x = to_device(x_), y = to_device(classes);
  const int64_t held = memory_.current();
  for (int i = 0; i < 5; ++i) {
    const td::Tensor loss = on_device(x, y);
    EXPECT_TRUE(td::identical(to_host(loss), on_host(x_, classes)));
  }
  EXPECT_EQ(memory_.current(), held) << "nothing but the weights stays";
  const int64_t copies = memory_.copies();
  const auto [loss, profile] = on_device.profile(x, y);
  (void)on_host(x_, classes);
  EXPECT_EQ(profile.memories[0].touched, profile.memories[0].planned);
  EXPECT_EQ(memory_.peak(), held + profile.memories[0].planned.count);
  EXPECT_EQ(memory_.copies(), copies + 2) << "the arena is painted and looked at; else none";
  const std::vector<td::Variable> expected = host.variables(), got = device.variables();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NE(cat(got[i].value()).find("in memory 1"), std::string::npos) << got[i].name();
    EXPECT_TRUE(td::identical(to_host(got[i]), expected[i])) << got[i].name();
  }
  EXPECT_EQ(memory_.current(), weights + (held - weights) + 64);
}

// State that an optimizer makes in the first step lies where the step computes.
TEST_F(DeviceTraining, FirstValuesAreMadeThere) {
  const td::Variable w(to_device(td::ones({12, 10})), {.name = "w"});
  const td::Variable m(td::Shape{12, 10}, [](const td::Shape& shape, td::DType dtype) {
    return td::zeros(shape, dtype);
  });
  const auto step = td::function([&](const td::Tensor& x) {
    m.assign(0.5 * m + x);
    w.assign_sub(m);
  });
  step(to_device(x_));
  EXPECT_EQ(cat(m.value()), "f32[12, 10] in memory 1 (\"test\")");
  EXPECT_TRUE(td::identical(to_host(w), 1 - x_));
}

// ---- gradients of transfers ---------------------------------------------------------------------

// Weights stay on the host, and the work is done on the device: gradients come back to the weights.
TEST_F(DeviceTraining, GradientsGoBackToWhereTheOperandLies) {
  const auto loss = [](const td::Tensor& w, const td::Tensor& x, int32_t memory) {
    const td::Tensor scaled = td::transfer(td::tanh(w) * 2, memory);
    return td::transfer(td::sum(td::square(td::matmul(x, scaled))), 0);
  };
  const auto slope_in = [&](int32_t memory) {
    return td::function([&loss, memory](const td::Tensor& w, const td::Tensor& x) {
      return td::grad([&](const td::Tensor& v) { return loss(v, x, memory); })(w);
    });
  };
  const td::Tensor w = td::random::normal({10, 4}, {.key = td::random::Key(2)});
  const td::Tensor slope = slope_in(there())(w, to_device(x_));
  EXPECT_TRUE(td::identical(slope, slope_in(0)(w, x_)));
}

// A gradient that goes back names a value that lies there. That is a parameter, so that no value of
// the forward pass lives longer; and behind a transfer no value at all.
TEST_F(DeviceTraining, GradientsThatGoBackKeepNothing) {
  const auto f = td::function([&](const td::Tensor& x) {
    return td::grad([&](const td::Tensor& v) {
      return td::transfer(td::sum(td::square(td::transfer(td::tanh(v) * 2, there()))), 0);
    })(x);
  });
  (void)f(x_);
  const std::string text = f.text("trace");
  // The lines that have one text, and a second one behind it.
  const auto count = [&](std::string_view first, std::string_view second) {
    std::istringstream lines(text);
    int found = 0;
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find(first);
      found += at != std::string::npos && line.find(second, at) != std::string::npos ? 1 : 0;
    }
    return found;
  };
  EXPECT_EQ(count("transfer_back(%", ", %0)"), 1) << text;
  EXPECT_EQ(count("transfer_back", ""), 1) << text;
  EXPECT_EQ(count("transfer(%", "{memory = 1}"), 2) << text;
}

TEST_F(DeviceTraining, GradientsOfGradientsGoBackToo) {
  const auto slope_in = [](int32_t memory) {
    return td::function([memory](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& v) {
        return td::sum(td::square(td::grad([&](const td::Tensor& u) {
          return td::transfer(td::sum(td::sin(td::transfer(u, memory)) * 3), 0);
        })(v)));
      })(x);
    });
  };
  EXPECT_TRUE(td::identical(slope_in(there())(x_), slope_in(0)(x_)));
}

// What a loop keeps for its gradient must lie in the memory of the program: here, the sine's
// operand.
TEST_F(DeviceTraining, GradientsGoBackInLoops) {
  const auto slope_in = [](int32_t memory) {
    return td::function([memory](const td::Tensor& x) {
      return td::grad([&](const td::Tensor& v) {
        const td::Tensor last = td::fori_loop(
            0, 3,
            [&](const td::Tensor&, const td::Tensor& h) {
              return td::sin(td::transfer(td::transfer(h, memory) * 1.5, 0));
            },
            v);
        return td::sum(last);
      })(x);
    });
  };
  EXPECT_TRUE(td::identical(slope_in(there())(x_), slope_in(0)(x_)));
}

// ---- what is refused ----------------------------------------------------------------------------

TEST_F(DeviceTraining, RefusesToMixMemories) {
  const td::Variable w(td::ones({10, 4}), {.name = "w"});
  const auto f = td::function([&](const td::Tensor& x) { return td::matmul(x, w); });
  EXPECT_EQ(error_of([&] { f(to_device(x_)); }),
            "matmul: an operand lies in memory 1 (\"test\"), another in the "
            "host's memory\n  ops compute where their operands lie: copy one of "
            "them, td::transfer(x, 1)");
  EXPECT_EQ(error_of([&] { w.assign(to_device(td::zeros({10, 4}))); }),
            "assign: Variable \"w\" lies in the host's memory, the value in "
            "memory 1 (\"test\")\n  copy the value: td::transfer(x, 0); or move "
            "the Variable: variable.move_to(1)");
  const auto h = td::function([&](const td::Tensor& x) { w.assign(x + 1); });
  EXPECT_EQ(error_of([&] { h(to_device(td::ones({10, 4}))); }),
            "the new value of w lies in memory 1 (\"test\"), and must lie in the "
            "host's memory\n  copy it there first: td::transfer(x, 0)");
  testing::TestMemory other;
  const device::MemoryNumber number(other);
  const compile::BackendRegistration registration(number.number(), backend_);
  const auto sum = td::function([](const td::Tensor& a, const td::Tensor& b) { return a + b; });
  EXPECT_EQ(error_of([&] { sum(to_device(x_), td::transfer(x_, number.number())); }),
            "a function computes in one memory: argument 0 lies in memory 1 "
            "(\"test\"), argument 1 in memory 2 (\"test\")\n  copy one of them "
            "first: td::transfer(x, 1)");
}

TEST_F(DeviceTraining, RefusesWhatOnlyTheHostCanDo) {
  const td::Tensor y = to_device(x_);
  const auto printed = td::function([](const td::Tensor& x) { td::print("x", x); });
  EXPECT_EQ(error_of([&] { printed(y); }),
            "an operand of print lies in memory 1 (\"test\"), and must lie in the "
            "host's memory\n  copy it there first: td::transfer(x, 0)");
  const td::Variable w(to_device(td::ones({10, 4})), {.name = "w"});
  const auto f = td::function([&](const td::Tensor& x) { return td::sum(td::matmul(x, w)); });
  EXPECT_EQ(error_of([&] {
              const td::GradientTape tape;
              f(y);
            }),
            "a tape cannot record a call that computes in memory 1 (\"test\")\n"
            "  take the gradient inside the function, with a tape of its own; or "
            "pause this one: const auto pause = tape.stop_recording()");
  std::vector<std::byte> arena(1 << 16);
  EXPECT_EQ(error_of([&] { f.run_in(f.plan(y), arena, y); }),
            "run_in: the function computes in memory 1 (\"test\"), the arena is "
            "the host's\n  call the function: it takes its own arena there");
  const auto moved = td::function([&](const td::Tensor& x) {
    w.move_to(0);
    return x;
  });
  EXPECT_EQ(error_of([&] { moved(y); }),
            "move_to: Variable \"w\" cannot move inside a function\n  move it "
            "before the function is called");
  EXPECT_EQ(error_of([&] {
              const td::GradientTape tape;
              w.assign_add(1);
            }),
            "the host cannot read f32[10, 4]: it lies in memory 1 (\"test\")\n  copy it to the "
            "host: td::transfer(x, 0); functions compute where it lies");
}

// A call that finds no room changes nothing.
TEST_F(DeviceTraining, FailsCleanlyWithoutRoom) {
  testing::TestMemory small(1200);
  const device::MemoryNumber number(small);
  const compile::BackendRegistration registration(number.number(), backend_);
  const td::Variable w(td::transfer(x_, number.number()), {.name = "w"});
  const auto f = td::function([&](const td::Tensor& x) {
    w.assign_add(1);
    return td::matmul(w, x, {.transpose_b = true});
  });
  const td::Tensor y = td::transfer(x_, number.number());
  EXPECT_EQ(error_of([&] { f(y); }),
            "memory \"test\" has no room for 576 B, 1.0 KiB of it are in use");
  EXPECT_EQ(small.current(), 1024);
  EXPECT_TRUE(td::identical(to_host(w), x_));
}

// A budget is of the memory that the function computes in.
TEST_F(DeviceTraining, AFunctionThereStaysWithinItsBudget) {
  const auto slope = [](const td::Tensor& x) {
    td::GradientTape tape;
    tape.watch(x);
    td::Tensor h = x;
    for (int i = 0; i < 6; ++i) h = td::sin(td::matmul(h, h));
    return tape.gradient(td::mean(h), x);
  };
  const td::Tensor x = td::random::normal({32, 32}, {.stddev = 0.1, .key = td::random::Key(1)});
  const td::Tensor expected = td::function(slope)(x), moved = to_device(x);
  const td::Plan plan = td::function(slope).plan(moved);
  ASSERT_LT(plan.floor(), plan.peak());
  for (const td::TradeoffPoint& point : plan.tradeoff()) {
    const auto [y, profile] = td::function(slope, {.budget = point.peak}).profile(moved);
    EXPECT_TRUE(td::identical(to_host(y), expected));
    EXPECT_EQ(profile.memories[0].planned, point.peak);
    EXPECT_LE(profile.memories[0].touched, point.peak);
  }
  const auto below = td::function(slope, {.budget = plan.floor() - 1});
  EXPECT_THROW(below(moved), td::OverBudget);
}

}  // namespace
}  // namespace tidemark
