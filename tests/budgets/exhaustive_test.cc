// The judge is judged first: on games whose optimum is known in closed form, and on random training
// functions, where the layout of each schedule that it finds has the bytes that it says, and the
// results have the bits of the function.
#include "tests/budgets/exhaustive.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "tests/budgets/optimum.h"
#include "tests/programs/run_program.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/layout/emit.h"

namespace tidemark::testing {
namespace {

constexpr int64_t kUnit = 64;

// ---- closed forms -------------------------------------------------------------------------------

// A chain of `length` layers and its gradient: layer i makes x_i of x_(i-1), and its gradient makes
// g_(i-1) of g_i and x_(i-1). All have one size; x_0 and g_length are given.
Game chain(int length) {
  Game game;
  const auto value = [&] {
    game.bytes.push_back(kUnit);
    return static_cast<int>(game.bytes.size() - 1);
  };
  std::vector<int> x = {-1};
  for (int i = 1; i < length; ++i) {
    x.push_back(value());
    Game::Step step{.reads = {}, .makes = {x.back()}};
    if (i > 1) {
      step.reads = {x[static_cast<size_t>(i - 1)]};
      step.overwrites = {{x.back(), step.reads[0]}};
    }
    game.steps.push_back(step);
  }
  int g = -1;
  for (int i = length; i >= 1; --i) {
    Game::Step step{.reads = {}, .makes = {value()}};
    if (i > 1) step.reads.push_back(x[static_cast<size_t>(i - 1)]);
    if (g >= 0) {
      step.reads.push_back(g);
      step.overwrites = {{step.makes[0], g}};
    }
    g = step.makes[0];
    game.steps.push_back(step);
  }
  game.results = {g};
  return game;
}

int64_t choose(int64_t n, int64_t k) {
  int64_t ways = 1;
  for (int64_t i = 1; i <= k; ++i) ways = ways * (n - k + i) / i;
  return ways;
}

// Griewank and Walther, Algorithm 799: the layers that have to run to go back over `length` of them
// with `slots` states kept, the first among them, besides the state that layers work on.
int64_t treeverse_layers(int64_t length, int64_t slots) {
  int64_t repeats = 0;
  while (choose(slots + repeats, slots) < length) ++repeats;
  return repeats == 0 ? 0 : repeats * length - choose(slots + repeats, slots + 1);
}

TEST(Exhaustive, OfAChainIsTreeverse) {
  for (int length = 2; length <= 12; ++length) {
    Exhaustive search(chain(length));
    EXPECT_EQ(search.least_peak().peak_bytes, 2 * kUnit) << "a state and the gradient";
    for (int slots = 1; slots <= 4; ++slots) {
      // The gradient, the state that layers work on, and all slots but the first, which is given.
      const auto found = search.least_work((1 + slots) * kUnit);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->work, length + treeverse_layers(length, slots))
          << length << " layers, " << slots << " slots";
    }
  }
}

// b and c are large and read a; the end reads a again.
Game diamond() {
  enum { a, b, c, d, e, end };
  Game game{.bytes = {kUnit, 4 * kUnit, 4 * kUnit, kUnit, kUnit, kUnit}};
  game.steps = {{{}, {a}}, {{a}, {b}}, {{a}, {c}}, {{b}, {d}}, {{c}, {e}}, {{a, d, e}, {end}}};
  game.results = {end};
  return game;
}

TEST(Exhaustive, OfADiamondMakesTheCommonValueAgain) {
  Exhaustive search(diamond());
  const auto once = search.least_work((1 + 7) * kUnit);
  ASSERT_TRUE(once.has_value());
  EXPECT_EQ(once->work, 6) << "every step once: a, d, c and e are held together";
  const PebbleSchedule least = search.least_peak();
  EXPECT_EQ(least.peak_bytes, (1 + 6) * kUnit) << "a or e, d and c";
  EXPECT_EQ(search.least_work(least.peak_bytes)->work, 7) << "a runs again";
  EXPECT_FALSE(search.least_work((1 + 6) * kUnit - 1).has_value());
}

TEST(Exhaustive, CountsWorkspaceAndWhatIsCopiedAtTheEnd) {
  Game game{.bytes = {kUnit, kUnit}};
  game.steps = {{.reads = {}, .makes = {0}},
                {.reads = {0}, .makes = {1}, .workspace_bytes = 3 * kUnit}};
  game.results = {1};
  game.held_at_end = {0};
  game.copied_bytes = kUnit;
  EXPECT_EQ(Exhaustive(game).least_peak().peak_bytes, (2 + 1 + 3) * kUnit);
}

// ---- tiny games ---------------------------------------------------------------------------------

// The same game without any shortcut, for steps that make one value each: from every set of
// pebbles, every drop and every step with every place for its value. Gives the least work within so
// many bytes, or -1.
class Naive {
 public:
  Naive(const Game& game, int64_t arena_bytes) : game_(game), arena_bytes_(arena_bytes) {}

  int64_t least_work() {
    reach({}, 0);
    while (!queue_.empty()) {
      const auto [work, state] = *queue_.begin();
      queue_.erase(queue_.begin());
      if (work > done_.at(state)) continue;
      if (is_end(state)) return work;
      visit(state, work);
    }
    return -1;
  }

 private:
  using Places = std::set<std::pair<int, int>>;  // Values, and the slots where they are or -1.

  int64_t bytes(int value) const { return game_.bytes[static_cast<size_t>(value)]; }
  int64_t arena_bytes(const Places& state) const {
    int64_t sum = 0;
    for (const auto& [value, slot] : state) sum += slot < 0 ? bytes(value) : 0;
    return sum;
  }
  bool is_end(const Places& state) const {
    for (size_t k = 0; k < game_.results.size(); ++k)
      if (!state.contains({game_.results[k], static_cast<int>(k)})) return false;
    return true;
  }
  void reach(const Places& state, int64_t work) {
    const auto [known, is_new] = done_.try_emplace(state, work);
    if (!is_new && known->second <= work) return;
    known->second = work;
    queue_.emplace(work, state);
  }

  void visit(const Places& state, int64_t work) {
    for (const auto& place : state) {
      Places fewer = state;
      fewer.erase(place);
      if (place.second < 0) reach(fewer, work);
    }
    for (const Game::Step& step : game_.steps)
      if (std::all_of(step.reads.begin(), step.reads.end(), [&](int read) {
            return std::any_of(state.begin(), state.end(),
                               [&](const auto& place) { return place.first == read; });
          }))
        run(step, state, work + step.work);
  }

  void run(const Game::Step& step, const Places& state, int64_t work) {
    const int made = step.makes[0];
    const int64_t during = arena_bytes(state) + step.workspace_bytes;
    const auto put = [&](const Places& before, int slot, int64_t more) {
      Places after = before;
      after.insert({made, slot});
      if (during + more <= arena_bytes_) reach(after, work);
    };
    if (!state.contains({made, -1})) put(state, -1, bytes(made));
    for (int k = 0; k < static_cast<int>(game_.results.size()); ++k)
      if (leads_to(made, k) && std::none_of(state.begin(), state.end(),
                                            [&](const auto& place) { return place.second == k; }))
        put(state, k, 0);
    for (const Game::Overwrite& over : step.overwrites)
      for (const auto& [value, slot] : state)
        if (value == over.read && (slot < 0 || leads_to(made, slot))) {
          Places rest = state;
          rest.erase({value, slot});
          if (!rest.contains({made, slot})) put(rest, slot, 0);
        }
  }

  // Whether the value is a result, or may be overwritten by one that leads there.
  bool leads_to(int value, int slot) const {
    if (game_.results[static_cast<size_t>(slot)] == value) return true;
    const auto& all = game_.results;
    if (std::find(all.begin(), all.end(), value) != all.end()) return false;
    return std::any_of(game_.steps.begin(), game_.steps.end(), [&](const Game::Step& step) {
      return std::any_of(step.overwrites.begin(), step.overwrites.end(),
                         [&](const Game::Overwrite& over) {
                           return over.read == value && leads_to(over.made, slot);
                         });
    });
  }

  const Game& game_;
  int64_t arena_bytes_;
  std::map<Places, int64_t> done_;
  std::set<std::pair<int64_t, Places>> queue_;
};

Game random_game(uint64_t seed) {
  std::mt19937_64 random(seed);
  Game game;
  for (int value = 0; value < 7; ++value) {
    game.bytes.push_back(kUnit * static_cast<int64_t>(1 + random() % 4));
    Game::Step step{.makes = {value}};
    step.workspace_bytes = kUnit * static_cast<int64_t>(random() % 3);
    step.work = static_cast<int64_t>(1 + random() % 5);
    for (int read = 0; read < value; ++read) {
      if (random() % 2 == 0 && read + 1 < value) continue;
      step.reads.push_back(read);
      if (game.bytes[static_cast<size_t>(read)] == game.bytes.back() && random() % 2 == 0)
        step.overwrites.push_back({value, read});
    }
    game.steps.push_back(step);
  }
  game.results = {static_cast<int>(random() % 6), 6};
  return game;
}

TEST(Exhaustive, TakesNoShortcutThatMissesTheOptimum) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Game game = random_game(seed);
    Exhaustive search(game);
    const int64_t least = search.least_peak().peak_bytes;
    for (int64_t bytes = least - kUnit; bytes <= least + 4 * kUnit; bytes += kUnit) {
      const auto found = search.least_work(bytes);
      EXPECT_EQ(found ? found->work : -1, Naive(game, bytes - game.result_bytes()).least_work())
          << "game " << seed << " within " << bytes - least << " bytes more than the least";
    }
  }
}

// ---- random training functions ------------------------------------------------------------------

int count_of_functions() {
  const char* const counts = std::getenv("TIDEMARK_TEST_COUNTS");
  if (counts == nullptr) return 60;
  return std::string_view(counts) == "full" ? 300 : 15;
}

std::vector<Tensor> results_of(const Graph& graph, const Optimum& optimum,
                               const std::vector<Tensor>& arguments) {
  compile::Layout layout = compile::layout(graph, optimum.interface);
  compile::emit(layout);
  return run_program(*layout.program, arguments, Memory::planned).results;
}

// The bytes that the layout of a schedule has alive at once.
int64_t load_of(const Optimum& optimum, const PebbleSchedule& schedule) {
  const auto program = compile::layout(optimum.replayed(schedule), optimum.interface).program;
  return program->load_bytes + program->result_bytes();
}

// Within its budget, but for gaps between buffers, and with the bits of the function.
void expect_true(const Optimum& optimum, const PebbleSchedule& schedule,
                 const std::vector<Tensor>& arguments) {
  const Graph graph = optimum.replayed(schedule);
  EXPECT_LE(load_of(optimum, schedule), schedule.peak_bytes);
  EXPECT_LE(static_cast<double>(compile::layout(graph, optimum.interface).program->peak_bytes()),
            1.03 * static_cast<double>(schedule.peak_bytes));
  const std::vector<Tensor> expected = results_of(optimum.graph, optimum, arguments);
  const std::vector<Tensor> found = results_of(graph, optimum, arguments);
  for (size_t k = 0; k < expected.size(); ++k)
    EXPECT_TRUE(identical(expected[k], found[k])) << "result " << k;
}

TEST(Exhaustive, OfRandomTrainingFunctionsIsWhatTheLayoutNeeds) {
  compile::set_emitter(compile::Emitter::tile);
  int judged = 0, out_of_reach = 0;
  int64_t states = 0;
  for (uint64_t seed = 0; judged < count_of_functions(); ++seed) {
    SCOPED_TRACE(seed);
    const RandomTraining training = random_training(seed);
    std::optional<Optimum> optimum = optimum_of(training);
    if (!optimum) {
      ++out_of_reach;
      continue;
    }
    ++judged;
    EXPECT_LE(optimum->floor_bytes, optimum->peak_bytes);
    EXPECT_FALSE(optimum->search.any_within(optimum->floor_bytes - 1).has_value());
    EXPECT_EQ(load_of(*optimum, optimum->least), optimum->floor_bytes);
    expect_true(*optimum, optimum->least, training.arguments);
    expect_true(*optimum, optimum->points[0].schedule, training.arguments);
    states += optimum->search.states();
  }
  EXPECT_LE(3 * out_of_reach, judged);
  RecordProperty("states", std::to_string(states));
  RecordProperty("out_of_reach", out_of_reach);
}

}  // namespace
}  // namespace tidemark::testing
