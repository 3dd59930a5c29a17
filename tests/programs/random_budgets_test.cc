// Random functions and their gradients within random budgets: the same bits, lines, checks and
// state as without one; never more bytes than planned, nor planned than the budget; and a floor
// that is exact.
//
// 300 functions; 5,000 with TIDEMARK_TEST_COUNTS=full; by hand with TIDEMARK_FUZZ and
// TIDEMARK_FUZZ_SEED, as for programs_test. A function that fails is made small, and printed as a
// program.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <random>

#include "tests/programs/judge_function.h"
#include "tests/programs/seeds.h"
#include "tests/programs/seen.h"
#include "tests/sweep/values.h"
#include "tidemark/compile/cpu/kernels.h"

namespace tidemark {
namespace {

namespace td = tidemark;
using testing::FunctionJudge;
using testing::RandomFunction;
using testing::Seeds;
using testing::seeds_to_try;
using testing::Seen;
using testing::seen;

using Tensors = std::vector<Tensor>;

// A step with scratch of each thread: few functions are large enough to have one.
Tensor sorted_columns(const Tensor& x) {
  const Tensor row = td::reshape(x, {1, -1});
  const Tensor table = td::sin(row * td::reshape(td::cast(td::arange(256), td::f32), {-1, 1}));
  return td::sum(td::sort(table, 0) * table, 0);
}

// The results of a function and of its relatives, which all read the same arguments.
Tensors results_of(const RandomFunction& random, const Tensor& x, const Tensor& y,
                   const Variable& state) {
  Tensors results = random(x, y, state);
  for (uint64_t relative = 1; relative <= random.seed % 4; ++relative)
    for (Tensor& result : RandomFunction(random.seed + (relative << 32))(td::sin(x), y, state))
      results.push_back(std::move(result));
  if (random.seed % 8 == 7) results.push_back(sorted_columns(x));
  return results;
}

// The same, then the gradients of all of them by both arguments.
Tensors with_gradients(const RandomFunction& random, const Tensor& x, const Tensor& y,
                       const Variable& state) {
  GradientTape tape;
  tape.watch(Tensors{x, y});
  Tensors results = results_of(random, x, y, state);
  Tensor target = zeros({});
  for (const Tensor& result : results)
    if (is_float(result.dtype())) target = target + mean(result);
  for (Tensor& gradient : tape.gradient(target, Tensors{x, y}))
    results.push_back(std::move(gradient));
  return results;
}

// One random function with its arguments.
class Subject {
 public:
  explicit Subject(const RandomFunction& random) : random_(random), draws_(random.seed) {
    const int64_t n = std::vector<int64_t>{5, 33, 64, 100}[draws_() % 4];
    x_ = td::random::normal({n, 6}, {.key = td::random::Key(random.seed)});
    y_ = td::random::normal({n}, {.key = td::random::Key(random.seed + 100)});
    gives_x_ = draws_() % 2 == 0;
    gives_y_ = draws_() % 2 == 0;
  }

  using Compiled = Function<Tensors(const Tensor&, const Tensor&)>;
  Compiled compiled(std::optional<Budget> budget = {}) const {
    const bool differentiates = random_.seed % 3 != 0;
    const auto body = [this, differentiates](const Tensor& x, const Tensor& y) {
      return differentiates ? with_gradients(random_, x, y, state_)
                            : results_of(random_, x, y, state_);
    };
    return td::function(body, {.budget = budget, .jit = random_.seed % 5 != 1});
  }

  // Copies are nobody else's, and so given away.
  Seen call(const Compiled& function) {
    return started([&] { return function(argument(x_, gives_x_), argument(y_, gives_y_)); });
  }
  Seen profile(const Compiled& function, Profile& measured) {
    return started([&] {
      auto both = function.profile(argument(x_, gives_x_), argument(y_, gives_y_));
      measured = std::move(both.second);
      return std::move(both.first);
    });
  }
  Plan plan(const Compiled& function, const PlanOptions& options = {}) {
    return function.plan(argument(x_, gives_x_), argument(y_, gives_y_), options);
  }
  Tensor state() const { return state_.value(); }
  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(draws_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  static Tensor argument(const Tensor& x, bool is_given) { return is_given ? x + 0 : x; }
  template <class Run>
  Seen started(Run run) {
    state_.assign(td::full({}, 0.25));
    return seen(run);
  }

  const RandomFunction& random_;
  std::mt19937_64 draws_;
  Tensor x_, y_;
  bool gives_x_ = false, gives_y_ = false;
  Variable state_{td::zeros({}), {.name = "state"}};
};

// What plans within budgets may say, each of which some of the functions must reach.
// The work of most of them is known before they run.
constexpr std::string_view kKnownWork = "known work";
constexpr std::string_view kSayings[] = {"again", "of a map at once", "on fewer threads",
                                         kKnownWork};

// What the plan says, in the words of kSayings.
void note_sayings(const Plan& plan, std::string& said) {
  for (const PlanDecision& each : plan.decisions())
    for (const std::string_view words : kSayings)
      if (each.what.find(words) != std::string::npos && said.find(words) == std::string::npos)
        said += cat("; ", words);
}

// What is wrong with the calls within a budget, or nothing; sets the planned bytes.
struct Usual {
  Seen expected;
  Tensor state;
  bool has_known_work = false;
};
std::string failure_within(Subject& subject, Bytes budget, const Usual& usual, int64_t& planned,
                           std::string& said) {
  const auto function = subject.compiled(budget);
  const Plan plan = subject.plan(function);
  planned = plan.peak().count;
  note_sayings(plan, said);
  if (planned > budget.count) return cat("planned: ", planned, " bytes within ", budget.count);
  Profile measured;
  for (const Seen& got : {subject.call(function), subject.profile(function, measured)}) {
    if (const std::string wrong = difference(usual.expected, got); !wrong.empty()) return wrong;
    if (usual.expected.error.empty() && !identical(subject.state(), usual.state))
      return cat("state: ", usual.state, " became ", subject.state());
  }
  if (measured.touched.count > planned)
    return cat("touched: ", measured.touched.count, " of ", planned, " planned");
  if (usual.has_known_work &&
      (plan.flop() != measured.flop || plan.bytes_moved() != measured.bytes_moved))
    return cat("work: ", plan.flop(), " operations and ", plan.bytes_moved(), " bytes planned, ",
               measured.flop, " and ", measured.bytes_moved, " counted");
  return "";
}

// The function is the one that the floor is known of: its programs are searched for only once.
std::string failure_below(Subject& subject, const Subject::Compiled& usual, Bytes floor) {
  try {
    const int64_t planned = subject.plan(usual, {.budget = floor - 1}).peak().count;
    return cat("floor: ", planned, " bytes are planned below ", floor.count);
  } catch (const OverBudget& error) {
    if (error.floor() == floor) return "";
    return cat("floor: the error says ", error.floor().count, ", the plan ", floor.count);
  }
}

// Of a function that is refused without a budget, so that nothing is compared.
constexpr std::string_view kRefused = "refused";
// Begins the report on a function that is right, and on one that cannot need less beside.
constexpr std::string_view kRight = "right", kIsLeast = "right, least";

bool is_right(const std::string& report) { return report.starts_with(kRight); }

std::string failure(const RandomFunction& random, std::string* text) {
  compile::set_emitter(random.seed % 10 == 0 ? compile::Emitter::llvm : compile::Emitter::tile);
  set_num_threads(std::vector<int>{1, 2, 1, 8}[random.seed / 2 % 4]);
  Subject subject(random);
  const auto usual = subject.compiled();
  Profile counted;
  const Seen expected = subject.profile(usual, counted);
  const Tensor state = subject.state();
  if (text != nullptr) *text = usual.text("trace");
  if (!expected.error.empty() && !testing::is_effect(expected.error)) return std::string(kRefused);
  const Plan plan = subject.plan(usual);
  // Where trips and branches are known only when a function runs, plans cannot know its work.
  const bool has_known_work = expected.error.empty() && plan.flop() == counted.flop &&
                              plan.bytes_moved() == counted.bytes_moved;
  const int64_t peak = plan.peak().count, floor = plan.floor().count;
  if (floor > peak) return cat("floor: ", floor, " is above the peak, ", peak);
  std::vector<int64_t> budgets = {subject.draw(floor, peak), floor, subject.draw(peak, 2 * peak)};
  if (sweep::full_counts()) budgets.push_back(subject.draw(floor, peak));
  std::sort(budgets.rbegin(), budgets.rend());
  int64_t above = std::numeric_limits<int64_t>::max();
  std::string said = has_known_work ? cat("; ", kKnownWork) : "";
  for (const int64_t budget : budgets) {
    int64_t planned = 0;
    const std::string wrong =
        failure_within(subject, budget, {expected, state, has_known_work}, planned, said);
    if (!wrong.empty()) return cat(wrong, "\nwithin ", budget, " of ", peak, ", floor ", floor);
    if (planned > above) return cat("order: ", planned, " bytes within a smaller budget, ", budget);
    above = planned;
  }
  const std::string wrong = failure_below(subject, usual, floor);
  return !wrong.empty() ? wrong : cat(floor == peak ? kIsLeast : kRight, said);
}

TEST(RandomBudgets, KeepTheBitsAndTheirBytes) {
  const Seeds seeds = seeds_to_try({.usual = 300, .full = 5000});
  const FunctionJudge judge(failure);
  int64_t ran = 0, less = 0;
  std::map<std::string_view, int64_t> reached;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const RandomFunction random(seed);
    const std::string said = judge.failure_of(random);
    ran += said == kRefused ? 0 : 1;
    less += is_right(said) && !said.starts_with(kIsLeast) ? 1 : 0;
    for (const std::string_view words : kSayings) reached[words] += said.find(words) != said.npos;
    if (!is_right(said) && said != kRefused) judge.report(random, said);
  }
  EXPECT_GE(ran, seeds.count() * 2 / 3) << "too few functions run";
  EXPECT_GE(less, seeds.count() / 4) << "too few functions can need less";
  for (const std::string_view words : kSayings) {
    std::cout << words << ": " << reached[words] << " of " << seeds.count() << '\n';
    EXPECT_GE(reached[words], seeds.count() / 50) << "too few plans say: " << words;
  }
}

TEST(RandomBudgets, OfFunctionsThatWereWrongOnce) {
  for (const uint64_t seed : {1564, 4607}) {
    const std::string said = FunctionJudge(failure).failure_of(RandomFunction(seed));
    EXPECT_TRUE(is_right(said)) << "seed " << seed << ": " << said;
    EXPECT_NE(said.find(kKnownWork), std::string::npos) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tidemark
