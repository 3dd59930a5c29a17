// A loop and its reversal as steps: how often the body runs is counted by the body.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "tidemark/run/program.h"
#include "tidemark/run/treeverse.h"

namespace tidemark::run {
namespace {

class Call : public Task {
 public:
  int64_t heap_bytes() const override { return 0; }
  explicit Call(std::function<void(std::byte* const*)> f) : f_(std::move(f)) {}
  void run(std::byte* const* operands, std::byte*) const override { f_(operands); }

 private:
  std::function<void(std::byte* const*)> f_;
};

int64_t& number(std::byte* place) { return *reinterpret_cast<int64_t*>(place); }

// Numbers that lie in memory of the test, each behind a register.
class Places {
 public:
  explicit Places(Program& program) : program_(program) { program_.parameters.emplace_back(); }
  Address add(size_t words) {
    memory_.push_back(std::make_unique<std::vector<int64_t>>(words));
    registers_.push_back(reinterpret_cast<std::byte*>(memory_.back()->data()));
    return {program_.registers++, kNoBuffer, 0};
  }
  int32_t free() {
    registers_.push_back(nullptr);
    return program_.registers++;
  }
  int64_t& at(const Address& address) {
    return number(registers_[static_cast<size_t>(address.reg)]);
  }
  std::vector<std::byte*>& registers() { return registers_; }

 private:
  Program& program_;
  std::vector<std::unique_ptr<std::vector<int64_t>>> memory_;
  std::vector<std::byte*> registers_ = {nullptr};
};

void add_step(Program& program, std::vector<Address> operands,
              std::function<void(std::byte* const*)> f) {
  Step step;
  program.tasks.push_back(std::make_unique<Call>(std::move(f)));
  step.task = program.tasks.back().get();
  step.first_operand = static_cast<int32_t>(program.addresses.size());
  step.operands = static_cast<int32_t>(operands.size());
  program.addresses.insert(program.addresses.end(), operands.begin(), operands.end());
  program.steps.push_back(std::move(step));
}

struct Counted {
  int64_t forward = 0, again = 0, back = 0;
};

// state = 3 * state + trip, so that a trip taken from a wrong state is seen.
int64_t next_state(int64_t state, int64_t trip) {
  return static_cast<int64_t>(static_cast<uint64_t>(state) * 3 + static_cast<uint64_t>(trip));
}

Counted walk(int64_t trips, int64_t slots, bool is_known) {
  Program program;
  Places places(program);
  Counted counted;
  Loop loop;
  loop.trips = is_known ? trips : -1;
  loop.tested = !is_known;
  loop.condition = places.add(1);
  loop.trip = places.add(1);
  loop.marked = true;
  loop.slots = slots;
  loop.marks = places.add(static_cast<size_t>(2 * slots));
  const Address start = places.add(1), first = places.add(1), second = places.add(1);
  const Address rows = places.add(static_cast<size_t>(slots));
  loop.carries = {{places.free(), places.free(), first, second}};
  loop.kept = {{0, rows, 8}};
  places.at(start) = places.at(first) = 5;

  Step step;
  step.kind = Step::Kind::loop;
  step.control = 0;
  program.steps.push_back(step);
  add_step(program, {loop.trip, loop.condition},
           [=](std::byte* const* at) { at[1][0] = std::byte{number(at[0]) < trips}; });
  program.steps[0].middle = 2;
  add_step(program, {loop.trip, {loop.carries[0].now}, {loop.carries[0].next}},
           [&](std::byte* const* at) {
             ++counted.forward;
             number(at[2]) = next_state(number(at[1]), number(at[0]));
           });
  program.steps[0].end = 3;

  std::vector<int64_t> states = {5};
  for (int64_t trip = 0; trip < trips; ++trip) states.push_back(next_state(states.back(), trip));
  Reverse back;
  back.marks = loop.marks;
  back.slots = slots;
  back.trip = places.add(1);
  back.states = {{places.free(), places.free(), start, rows, places.add(1), 8}};
  back.backs = {{places.free(), places.free(), places.add(1), places.add(1)}};
  step.kind = Step::Kind::reverse;
  program.steps.push_back(step);
  add_step(program, {back.trip, {back.states[0].now}, {back.states[0].next}},
           [&](std::byte* const* at) {
             ++counted.again;
             number(at[2]) = next_state(number(at[1]), number(at[0]));
           });
  program.steps[3].middle = 5;
  add_step(program, {back.trip, {back.states[0].now}, {back.backs[0].now}, {back.backs[0].next}},
           [&](std::byte* const* at) {
             const int64_t trip = number(at[0]);
             EXPECT_EQ(trip, trips - 1 - counted.back++);
             EXPECT_EQ(number(at[1]), states[static_cast<size_t>(trip)]);
             number(at[3]) = next_state(number(at[2]), trip);
           });
  program.steps[3].end = 6;
  program.loops = {loop};
  program.reverses = {back};
  program.parameters.clear();
  places.registers().resize(static_cast<size_t>(program.registers));
  std::byte none{};
  places.registers()[0] = &none;
  execute(program, places.registers());
  return counted;
}

TEST(Reverse, RunsTripsAgainAsRarelyAsPossible) {
  const int64_t cases[][3] = {{100, 5, 316},      {100, 10, 222},     {1'000, 10, 3'636},
                              {1'000, 20, 2'747}, {1'000, 44, 1'954}, {10'000, 100, 24'747}};
  for (const auto& [trips, slots, advances] : cases) {
    const Counted counted = walk(trips, slots, true);
    EXPECT_EQ(counted.forward, trips);
    EXPECT_EQ(counted.back, trips);
    // The loop's own trips are advances too, but for the last, whose result is wanted first.
    EXPECT_EQ(counted.forward - 1 + counted.again, advances) << trips << ' ' << slots;
  }
}

TEST(Reverse, DoesAsWellWithoutKnowingTheTrips) {
  for (const int64_t slots : {1, 2, 5, 10}) {
    for (const int64_t trips :
         {int64_t{0}, int64_t{1}, slots, slots + 1, 2 * slots + 3, (slots + 1) * (slots + 2) / 2}) {
      const Counted counted = walk(trips, slots, false);
      EXPECT_EQ(counted.forward, trips);
      EXPECT_EQ(counted.back, trips);
      if (trips == 0 || trips > (slots + 1) * (slots + 2) / 2) continue;
      EXPECT_EQ(counted.forward - 1 + counted.again, fewest_advances(trips, slots))
          << trips << ' ' << slots;
    }
  }
}

}  // namespace
}  // namespace tidemark::run
