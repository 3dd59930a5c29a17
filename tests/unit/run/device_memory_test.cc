// Programs that work in two memories: the plan says the bytes of each, the run hits both exactly,
// and the bits are those of one memory.
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

#include "tests/unit/run/device_test.h"

namespace tidemark {
namespace {

namespace td = tidemark;

class DeviceMemory : public testing::DeviceTest {
 protected:
  td::Tensor x_ = td::random::normal({50, 40}, {.key = td::random::Key(1)});
};

TEST_F(DeviceMemory, IsPlannedAndTouchedToTheByte) {
  const auto body = [](const td::Tensor& x) {
    return td::softmax(td::matmul(td::exp(x), x, {.transpose_b = true}));
  };
  const auto f =
      td::function([&](const td::Tensor& x) { return td::sum(to_host(body(to_device(x))), 0); });
  const td::Plan plan = f.plan(x_);
  ASSERT_EQ(plan.memories().size(), 2U);
  EXPECT_EQ(plan.memories()[0].name, "host");
  EXPECT_EQ(plan.memories()[0].bytes, plan.peak());
  EXPECT_EQ(plan.memories()[1].name, "test");
  // x, exp(x) and their product are alive at once; the product has workspace besides.
  EXPECT_GE(plan.memories()[1].load.count, 8000 + 8000 + 10048);
  EXPECT_EQ(memory_.current(), 0) << "a plan takes nothing";

  const auto [y, profile] = f.profile(x_);
  EXPECT_TRUE(td::identical(y, td::sum(body(x_), 0)));
  EXPECT_EQ(profile.touched, profile.planned);
  EXPECT_EQ(profile.planned, plan.peak());
  ASSERT_EQ(profile.memories.size(), 1U);
  EXPECT_EQ(profile.memories[0].touched, profile.memories[0].planned);
  EXPECT_EQ(profile.memories[0].planned, plan.memories()[1].bytes);
  EXPECT_EQ(memory_.current(), 0);
  EXPECT_EQ(memory_.peak(), plan.memories()[1].bytes.count);
}

// The bytes that a call adds to the host are only the host's.
TEST_F(DeviceMemory, HasAnAccountOfItsOwn) {
  const auto f = td::function([&](const td::Tensor& x) {
    const td::Tensor y = to_device(x);
    return to_host(td::sum(td::exp(y) * td::sin(y) + td::matmul(td::transpose(y), y)[{0, 0}]));
  });
  f(x_);
  const td::Bytes before = td::memory::current();
  td::memory::reset_peak();
  f(x_);
  EXPECT_EQ(td::memory::peak() - before, f.plan(x_).peak());
  EXPECT_EQ(memory_.peak(), f.plan(x_).memories()[1].bytes.count);
}

TEST_F(DeviceMemory, IsCopiedByStepsOfTheTimeline) {
  const auto f = td::function([&](const td::Tensor& x) { return to_host(td::exp(to_device(x))); });
  std::vector<std::string> steps;
  const td::Plan plan = f.plan(x_);
  for (const td::PlanStep& step : plan.timeline()) steps.push_back(step.name);
  EXPECT_EQ(steps, (std::vector<std::string>{"copy to the device", "exp", "copy to the host"}));
  f(x_);
  EXPECT_EQ(memory_.copies(), 2);
  EXPECT_EQ(memory_.tasks(), 1);
}

// The layout asks the backend of the memory that a step runs in, and no other.
TEST_F(DeviceMemory, HasABackendThatPlansItsSteps) {
  const auto f = td::function([&](const td::Tensor& x) {
    return td::sum(
        to_host(td::exp(td::sin(td::matmul(to_device(x), to_device(x), {.transpose_b = true})))));
  });
  (void)f.plan(x_);
  EXPECT_EQ(backend_.ops, 1);     // matmul; the sum is the host's.
  EXPECT_EQ(backend_.groups, 1);  // sin and exp
}

TEST(DeviceMemoryAlone, NeedsABackend) {
  testing::TestMemory memory;
  const device::MemoryNumber number(memory);
  const auto f = td::function([&](const td::Tensor& x) {
    return td::transfer(td::exp(td::transfer(x, number.number())), 0);
  });
  try {
    (void)f.plan(td::ones({3}));
    FAIL();
  } catch (const td::UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "memory 1 (\"test\") has no backend\n"
        "  the device must register one that computes there: compile::BackendRegistration");
  }
}

TEST_F(DeviceMemory, IsReported) {
  const auto f = td::function([&](const td::Tensor& x) { return to_host(td::exp(to_device(x))); });
  const td::Plan plan = f.plan(x_);
  EXPECT_NE(plan.explain().find("\n  in memory \"test\": 7.8 KiB (8000 bytes)\n"),
            std::string::npos)
      << plan.explain();
  EXPECT_NE(
      plan.to_json().find("\"memories\": [{\"name\": \"host\", \"bytes\": 8000, \"load\": 0}, "
                          "{\"name\": \"test\", \"bytes\": 8000, \"load\": 8000}]"),
      std::string::npos)
      << plan.to_json();
  std::ostringstream text;
  text << f.profile(x_).second;
  EXPECT_TRUE(
      text.str().starts_with("planned 7.8 KiB, touched 7.8 KiB\n"
                             "  in memory \"test\": planned 7.8 KiB, touched 7.8 KiB\n"))
      << text.str();
}

// Bodies of loops and branches go to the device and back; what is not dense is made so there.
TEST_F(DeviceMemory, IsWorkedInByControlFlow) {
  const auto body = [](const td::Tensor& c, auto in, auto out) {
    return out(td::tanh(td::transpose(td::matmul(in(c), in(c)))));
  };
  const auto same = [](const td::Tensor& x) { return x; };
  const auto f = td::function([&](const td::Tensor& x) {
    const td::Tensor looped = td::fori_loop(
        0, 3,
        [&](const td::Tensor&, const td::Tensor& c) {
          return body(c, [&](const td::Tensor& t) { return to_device(t); }, to_host);
        },
        x);
    return td::cond(
        td::sum(x) > 0, [&] { return to_host(td::exp(to_device(looped))); },
        [&] { return looped; });
  });
  const td::Tensor x = td::random::normal({20, 20}, {.key = td::random::Key(2)});
  for (const td::Tensor& each : {x, -x}) {
    td::Tensor expected = each;
    for (int i = 0; i < 3; ++i) expected = body(expected, same, same);
    if (td::sum(each).item<float>() > 0) expected = td::exp(expected);
    const auto [y, profile] = f.profile(each);
    EXPECT_TRUE(td::identical(y, expected));
    EXPECT_EQ(profile.memories[0].touched, profile.memories[0].planned);
  }
}

TEST_F(DeviceMemory, UpdatesVariables) {
  const td::Variable v(td::zeros({50, 40}), {.name = "v"});
  const auto f = td::function(
      [&](const td::Tensor& x) { v.assign(to_host(to_device(v.value()) + to_device(x))); });
  f(x_);
  f(x_);
  EXPECT_TRUE(td::identical(v.value(), x_ + x_));
}

TEST_F(DeviceMemory, RefusesWhatTheHostCannotRead) {
  const auto mixed =
      td::function([&](const td::Tensor& x) { return to_host(to_device(x) + x); }, {.jit = false});
  EXPECT_EQ(error_of([&] { mixed(x_); }),
            "add: an operand lies in memory 1 (\"test\"), another in the host's "
            "memory\n  ops compute where their operands lie: copy one of them, "
            "td::transfer(x, 1)");
  const auto printed = td::function([&](const td::Tensor& x) { td::print("x", to_device(x)); });
  EXPECT_EQ(error_of([&] { printed(x_); }),
            "an operand of print lies in memory 1 (\"test\"), and must lie in the "
            "host's memory\n  copy it there first: td::transfer(x, 0)");
  const auto nowhere =
      td::function([&](const td::Tensor& x) { return to_host(td::transfer(x, 9)); });
  EXPECT_EQ(error_of([&] { nowhere(x_); }),
            "there is no memory 9\n  0 is the host's; a device gives its memory a number while it "
            "is there");
  const auto mapped = td::function([&](const td::Tensor& x) {
    return td::map_fn([&](const td::Tensor& row) { return to_host(to_device(row)); }, x);
  });
  EXPECT_EQ(error_of([&] { mapped(x_); }),
            "the body of a map works in memory 1\n  bodies of maps work in the memory of the "
            "program: transfer before the map");
}

TEST_F(DeviceMemory, IsRefusedBeforeTheFirstStep) {
  testing::TestMemory tiny(100);
  const device::MemoryNumber number(tiny);
  const compile::BackendRegistration registration(number.number(), backend_);
  const td::Variable v(td::ones({50, 40}), {.name = "v"});
  const auto f = td::function([&](const td::Tensor& x) {
    v.assign_add(x);
    return to_host(td::exp(td::transfer(x, number.number())));
  });
  EXPECT_EQ(error_of([&] { f(x_); }),
            "memory \"test\" has no room for 7.8 KiB, 0 B of it are in use");
  EXPECT_TRUE(td::identical(v.value(), td::ones({50, 40})));
  EXPECT_EQ(tiny.current(), 0);
}

TEST(TestMemoryDeathTest, CannotBeReadByTheHost) {
  testing::TestMemory memory;
  std::byte* const data = memory.take(64);
  EXPECT_DEATH(
      {
        const volatile std::byte read = *data;
        (void)read;
      },
      "");
  memory.give(data, 64);
}

}  // namespace
}  // namespace tidemark
