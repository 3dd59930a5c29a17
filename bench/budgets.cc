// budgets [--quick] [model...]: training steps and gradients within budgets from their peak down to
// their floor, and whether the bars are met: every budget is kept, with the same bits; the floor is
// a small part of the peak; and calls within half the peak, within the floor that is asked for, and
// within the floor, take little more time. `--quick` tries 5 budgets on one thread instead of 20 on
// one and on two.
//
// budgets --curve [--planned] model [bytes...]: the bytes, work and time of one model within these
// budgets, or within some from its peak down to its floor. With `--planned` nothing runs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bars.h"
#include "bench/budget_models.h"
#include "bench/interleave.h"

namespace tidemark::bench {
namespace {

constexpr double kFloorTime = 2.2;

// Models without limits of their own have those that hold for all.
struct Limits {
  std::string_view model;
  double floor = 1;               // Of the peak.
  double half_time = kFloorTime;  // Within half the peak, of the time without a budget.
};
constexpr Limits kLimits[] = {
    {"gpt_step", 0.20, 1.08}, {"residual", 0.30, 1.2}, {"mlp_step", 0.30, 1.08},
    {"unet_step", 0.5, 1.2},  {"lstm", 0.10, 1.4},     {"long_loop", 0.02, 1.4},
};

Limits limits_of(std::string_view model) {
  for (const Limits& limits : kLimits)
    if (limits.model == model) return limits;
  return {model};
}

double ratio(Bytes a, Bytes b) {
  return static_cast<double>(a.count) / static_cast<double>(b.count);
}

struct Effort {
  int budgets = 20;
  int most_threads = 2;
};

class OnThreads {
 public:
  explicit OnThreads(int threads) : before_(num_threads()) { set_num_threads(threads); }
  ~OnThreads() { set_num_threads(before_); }
  OnThreads(const OnThreads&) = delete;
  OnThreads& operator=(const OnThreads&) = delete;

 private:
  int before_;
};

// The budgets of one model, on the number of threads that it is made with.
class Measured {
 public:
  explicit Measured(const BudgetModelCase& which)
      : which_(which), unbounded_(which.make({.name = which.name})) {
    const Plan plan = unbounded_.plan({});
    peak_ = plan.peak();
    floor_ = plan.floor();
  }

  Bytes peak() const { return peak_; }
  Bytes floor() const { return floor_; }
  bool has_half() const { return floor_.count <= peak_.count / 2; }

  // How many budgets from the peak down to the floor are kept.
  int kept(int budgets) const {
    const Outcome expected(unbounded_.call(), unbounded_);
    int count = 0;
    Bytes before = peak_;
    for (int i = 0; i < budgets; ++i) {
      const Bytes less((peak_.count - floor_.count) * i / (budgets - 1));
      count += keeps(peak_ - less, expected, before) ? 1 : 0;
    }
    return count;
  }

  // The time of a call, of that without a budget: within half the peak, within this share of it,
  // and within the floor.
  struct Slowdowns {
    double half = 0, share = 0, floor = 0;
  };
  Slowdowns slowdowns(double share) const {
    const auto of_peak = [&](double part) {
      const Bytes bytes(static_cast<int64_t>(part * static_cast<double>(peak_.count)));
      return within(std::max(bytes, floor_));
    };
    const BudgetModel half = of_peak(0.5), some = of_peak(share), least = within(floor_);
    std::vector<Candidate> candidates = {{"unbounded", [&] { unbounded_.call(); }},
                                         {"half", [&] { half.call(); }},
                                         {"share", [&] { some.call(); }},
                                         {"floor", [&] { least.call(); }}};
    interleave(candidates, 1, false);
    const auto ratio = [&](size_t i) { return candidates[i].best() / candidates[0].best(); };
    return {ratio(1), ratio(2), ratio(3)};
  }

 private:
  BudgetModel within(Bytes budget) const {
    return which_.make({.name = which_.name, .budget = budget});
  }

  // Whether a call within the budget uses no more than it, gives what is expected, and plans no
  // more than the larger budget before. `before` becomes what it plans.
  bool keeps(Bytes budget, const Outcome& expected, Bytes& before) const {
    const BudgetModel model = within(budget);
    const auto [results, profile] = model.profile();
    const bool grows = profile.planned > before;
    before = profile.planned;
    return !grows && profile.planned <= budget && profile.touched <= budget &&
           Outcome(results, model) == expected;
  }

  const BudgetModelCase& which_;
  BudgetModel unbounded_;
  Bytes peak_ = 0, floor_ = 0;
};

Bar kept_bar(const BudgetModelCase& which, Effort effort) {
  int kept = 0;
  for (int threads = 1; threads <= effort.most_threads; ++threads) {
    const OnThreads on(threads);
    kept += Measured(which).kept(effort.budgets);
  }
  const double share = static_cast<double>(kept) / (effort.most_threads * effort.budgets);
  return {std::string(which.name) + ", budgets kept with the same bits", share, 1};
}

// Prints figures and bars; gives the number missed.
int measure(const BudgetModelCase& which, Effort effort) {
  constexpr double mib = 1 << 20;
  const OnThreads on(1);  // Of one thread the CPU time is known, whatever else the machine does.
  const Measured measured(which);
  std::printf("%s: peak %.3f MiB, floor %.3f MiB\n", which.name,
              static_cast<double>(measured.peak().count) / mib,
              static_cast<double>(measured.floor().count) / mib);
  const Limits limits = limits_of(which.name);
  const auto [half, share, floor] = measured.slowdowns(limits.floor);
  const std::string name = which.name;
  std::vector<Bar> bars = {kept_bar(which, effort),
                           at_most(name + ", floor of the peak",
                                   ratio(measured.floor(), measured.peak()), limits.floor)};
  if (measured.has_half())
    bars.push_back(at_most(name + ", time within half the peak", half, limits.half_time));
  else
    std::printf("%s: half the peak is below the floor\n", which.name);
  if (limits.floor < 1 && ratio(measured.floor(), measured.peak()) <= limits.floor)
    bars.push_back(at_most(name + ", time within the floor asked for", share, kFloorTime));
  bars.push_back(at_most(name + ", time within the floor", floor, kFloorTime));
  return print_all(bars);
}

// ---- the curve of one model ---------------------------------------------------------------------

constexpr int kPoints = 8;

// Budgets below the floor are left out.
std::vector<Bytes> budgets_of(const Plan& plan, const std::vector<std::string>& asked) {
  const int64_t peak = plan.peak().count, floor = plan.floor().count;
  std::vector<Bytes> budgets;
  for (const std::string& each : asked) {
    const int64_t bytes = std::strtoll(each.c_str(), nullptr, 10);
    if (bytes >= floor) budgets.push_back(bytes);
  }
  for (int i = 0; asked.empty() && i <= kPoints; ++i)
    budgets.push_back(peak - (peak - floor) * i / kPoints);
  return budgets;
}

// What is done beside computing values again.
std::vector<std::string> changes_of(const Plan& plan) {
  std::vector<std::string> changes;
  for (const auto& decision : plan.decisions())
    if (!decision.what.starts_with("computes") || !decision.what.ends_with("again"))
      changes.push_back(decision.what);
  return changes;
}

// One line a budget; peers/checkpoint.py reads them.
int print_curve(const BudgetModelCase& which, bool is_run, const std::vector<std::string>& asked) {
  const OnThreads on(1);
  const BudgetModel unbounded = which.make({.name = which.name});
  const std::vector<Bytes> budgets = budgets_of(unbounded.plan({}), asked);
  std::vector<BudgetModel> models;
  for (const Bytes budget : budgets)
    models.push_back(which.make({.name = which.name, .budget = budget}));
  std::vector<Candidate> candidates = {{"unbounded", [&] { unbounded.call(); }}};
  for (const BudgetModel& model : models) candidates.push_back({"", [&] { model.call(); }});
  if (is_run) interleave(candidates, 1, false);
  std::printf("%s: budget in bytes, planned bytes, more work, time of that without a budget\n",
              which.name);
  for (size_t i = 0; i < models.size(); ++i) {
    const Plan plan = models[i].plan({});
    const std::vector<std::string> how = is_run ? std::vector<std::string>() : changes_of(plan);
    std::printf("%12lld %12lld %8.4f %8.4f%s\n", static_cast<long long>(budgets[i].count),
                static_cast<long long>(plan.peak().count), plan.more_work(),
                is_run ? candidates[i + 1].best() / candidates[0].best() : 0,
                how.empty() ? "" : ("  " + how[0]).c_str());
  }
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: budgets [--quick] [model...] | budgets --curve [--planned] model "
               "[bytes...]\nmodels:");
  for (const BudgetModelCase& each : budget_models()) std::fprintf(stderr, " %s", each.name);
  std::fprintf(stderr, "\n");
  return 2;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() >= 2 && arguments[0] == "--curve") {
    const bool is_planned = arguments[1] == "--planned" && arguments.size() >= 3;
    const auto name = arguments.begin() + (is_planned ? 2 : 1);
    const BudgetModelCase* const model = find_budget_model(*name);
    return model == nullptr ? usage()
                            : print_curve(*model, !is_planned, {name + 1, arguments.end()});
  }
  Effort effort;
  std::vector<const BudgetModelCase*> chosen;
  for (const std::string& each : arguments) {
    if (each == "--quick") {
      effort = {.budgets = 5, .most_threads = 1};
    } else if (const BudgetModelCase* model = find_budget_model(each)) {
      chosen.push_back(model);
    } else {
      return usage();
    }
  }
  if (chosen.empty())
    for (const BudgetModelCase& each : budget_models()) chosen.push_back(&each);
  int missed = 0;
  for (const BudgetModelCase* each : chosen) missed += measure(*each, effort);
  std::printf("%d missed\n", missed);
  return missed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) {
  return tidemark::bench::run(std::vector<std::string>(argv + 1, argv + argc));
}
