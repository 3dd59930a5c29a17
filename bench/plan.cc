#include "bench/plan.h"

#include <time.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <ostream>
#include <stop_token>

#include "bench/plan_problems.h"
#include "tidemark/base/error.h"
#include "tidemark/plan/check.h"
#include "tidemark/plan/csv.h"
#include "tidemark/plan/greedy.h"
#include "tidemark/plan/model.h"
#include "tidemark/plan/plan.h"
#include "tidemark/plan/resize.h"

namespace tidemark::bench {
namespace {

constexpr int64_t kAnyNodes = std::numeric_limits<int64_t>::max() / 2;

// Seconds of this thread on a core: what the bars are stated in, and the same on a busy machine.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Timed {
  plan::Result result;
  double seconds = 0;
  double ratio = 0;
};

// Places, proves the placement, and takes the time of placing alone. The limit counts seconds of
// the core, too, so it is kept by a stop from inside instead of the planner's own clock.
Timed timed_place(const plan::Problem& problem, double seconds, int64_t capacity_bytes) {
  Timed timed;
  const double start = now();
  std::stop_source source;
  plan::Limits limits;
  limits.nodes = kAnyNodes;
  limits.capacity_bytes = capacity_bytes;
  limits.stop = source.get_token();
  limits.progress = [&](int64_t) {
    if (now() - start > seconds) source.request_stop();
  };
  timed.result = plan::place(problem, limits);
  timed.seconds = now() - start;
  const auto fault = plan::check_placement(problem, timed.result.placement);
  TIDEMARK_CHECK(!fault, fault->text());
  timed.ratio = static_cast<double>(timed.result.placement.tidemark_bytes) /
                static_cast<double>(timed.result.load_bytes);
  return timed;
}

void tell(std::ostream& log, const std::string& what, const Timed& timed) {
  char text[200];
  std::snprintf(text, sizeof(text), "%-34s tidemark %13lld  x load %.4f  %8.3f s  proof %s\n",
                what.c_str(), static_cast<long long>(timed.result.placement.tidemark_bytes),
                timed.ratio, timed.seconds, std::string(plan::name(timed.result.proof)).c_str());
  log << text << std::flush;
}

// The eleven hard instances at the capacity they are published with, then the three of them whose
// load lies below it, as low as they go.
void hard_instances(const PlanOptions& options, std::ostream& log, std::vector<Bar>& bars) {
  constexpr int64_t kCapacity = 1'048'576;
  auto read = [&](char letter) {
    const std::string path = cat(options.data, "/challenging/", letter, ".1048576.csv");
    std::ifstream in(path, std::ios::binary);
    if (!in) throw UserError(cat("cannot open '", path, "'"));
    return plan::read_csv(in, path).problem;
  };
  double seconds = 0;
  int unsolved = 0;
  for (char letter = 'A'; letter <= 'K'; ++letter) {
    const Timed timed = timed_place(read(letter), 60, kCapacity);
    tell(log, cat(letter, " at capacity ", kCapacity), timed);
    seconds += timed.seconds;
    unsolved += timed.result.placement.tidemark_bytes > kCapacity;
  }
  bars.push_back(at_most("hard instances: of 11 not packed into 1048576", unsolved, 0));
  bars.push_back(at_most("hard instances: seconds for all 11", seconds, 28));
  struct Open {
    char letter;
    int64_t limit;
  };
  for (const Open& open : {Open{'C', 1'039'360}, Open{'D', 1'038'336}, Open{'J', 1'041'408}}) {
    const Timed timed = timed_place(read(open.letter), options.seconds, 0);
    tell(log, cat(open.letter, " as low as it goes"), timed);
    bars.push_back(at_most(cat("hard instances: tidemark of ", open.letter),
                           static_cast<double>(timed.result.placement.tidemark_bytes),
                           static_cast<double>(open.limit)));
  }
}

double greedy_by_size(const plan::Problem& problem) {
  const plan::Model model = plan::make_model(problem);
  plan::Greedy greedy(problem, model);
  const int64_t tidemark = greedy.place(plan::order_by_size(model), plan::Fit::tightest);
  return static_cast<double>(tidemark) / static_cast<double>(plan::load_bytes(problem));
}

void training_graphs(std::ostream& log, std::vector<Bar>& bars) {
  double worst = 0, slowest = 0;
  int count = 0, hard = 0;
  for (int32_t buffers : {1000, 3000, 10'000, 30'000, 60'000}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const plan::Problem problem = training_problem({.buffers = buffers, .seed = seed});
      const double greedy = greedy_by_size(problem);
      const Timed timed = timed_place(problem, 1.8, 0);
      ++count;
      hard += greedy >= 1.03;
      worst = std::max(worst, timed.ratio);
      slowest = std::max(slowest, timed.seconds);
      char text[64];
      std::snprintf(text, sizeof(text), "%zu like training, greedy %.3f", problem.buffers.size(),
                    greedy);
      tell(log, text, timed);
    }
  }
  bars.push_back(at_most("training graphs: share that greedy by size packs below 1.03",
                         1 - static_cast<double>(hard) / count, 0.5));
  bars.push_back(at_most("training graphs: worst tidemark / load", worst, 1.01));
  bars.push_back(at_most("training graphs: seconds for the slowest", slowest, 2));
}

void ordinary_step(std::ostream& log, std::vector<Bar>& bars) {
  const plan::Problem problem = training_problem({.buffers = 3000, .ordinary = true});
  const int64_t load = plan::load_bytes(problem);
  Timed best = timed_place(problem, 1, load + load / 100);
  for (int i = 0; i < 4; ++i) {
    Timed again = timed_place(problem, 1, load + load / 100);
    if (again.seconds < best.seconds) best = std::move(again);
  }
  tell(log, "3000 of an ordinary step, to 1 %", best);
  bars.push_back(at_most("ordinary step of 3000: tidemark / load", best.ratio, 1.01));
  bars.push_back(at_most("ordinary step of 3000: milliseconds", best.seconds * 1e3, 50));
}

void new_sizes(std::ostream& log, std::vector<Bar>& bars) {
  plan::Problem problem = training_problem({.buffers = 1010});
  problem.buffers.resize(1000);
  const plan::Relation relation = plan::below_relation(problem, plan::place(problem).placement);
  std::vector<int64_t> sizes, offsets(problem.buffers.size());
  for (const plan::Buffer& buffer : problem.buffers) sizes.push_back(buffer.size_bytes * 2);
  double best = 1;
  for (int i = 0; i < 1000; ++i) {
    const double start = now();
    plan::resized(relation, sizes, offsets);
    best = std::min(best, now() - start);
  }
  log << "resized: 1000 buffers, " << relation.below.size() << " links\n";
  bars.push_back(at_most("new sizes for 1000 buffers: microseconds", best * 1e6, 10));
}

}  // namespace

std::vector<Bar> plan_bars(const PlanOptions& options, std::ostream& log) {
  std::vector<Bar> bars;
  if (options.data.empty()) {
    log << "without --data the eleven hard instances are left out\n";
  } else {
    hard_instances(options, log, bars);
  }
  training_graphs(log, bars);
  ordinary_step(log, bars);
  new_sizes(log, bars);
  return bars;
}

}  // namespace tidemark::bench
