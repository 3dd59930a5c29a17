// Random programs, each computed four ways: by the reference, node by node as eager code does,
// unfused and fused. The last three give the same bits on every layout of memory; eager code stays
// as close to the reference as each op promises.
//
// 300 programs; 5,000 with TIDEMARK_TEST_COUNTS=full; 30 with =small. By hand any number, from any
// seed on:
//
//   TIDEMARK_FUZZ=100000 TIDEMARK_FUZZ_SEED=7000 build/release/tests/programs/programs_test
//
// A program that fails is made small and printed as the text of ops/text/text.h, with its seed. Put
// it into tests/programs/found, where it stays.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/programs/apart.h"
#include "tests/programs/differentiated.h"
#include "tests/programs/evaluate.h"
#include "tests/programs/random_program.h"
#include "tests/programs/run_program.h"
#include "tests/programs/seeds.h"
#include "tests/programs/shrink.h"
#include "tests/unit/emit/naive.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/compile/pipeline.h"
#include "tidemark/device/threads.h"
#include "tidemark/fit/fit.h"
#include "tidemark/layout/emit.h"
#include "tidemark/ops/text/text.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark {
namespace {

using namespace testing;
using compile::Emitter;

// By the parameters' names.
std::vector<Tensor> arguments_of(const RandomProgram& program, uint64_t seed) {
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < program.interface.parameters.size(); ++i) {
    const TensorType& type = program.graph.type(program.graph.body().parameters[i]);
    std::mt19937_64 random(seed * 10007 + std::stoull(program.interface.parameters[i].name));
    arguments.push_back(detail::make_tensor(type.dtype, type.shape, Source::none()));
    std::byte* const to = detail::array_of(arguments.back(), Source::none()).data;
    for (int64_t k = 0; k < type.shape.size(); ++k)
      write_element(type.dtype, to + k * size_of(type.dtype), random_value(type.dtype, random));
  }
  return arguments;
}

std::string difference(const Tensor& a, const Tensor& b) {
  const ArrayRef &x = detail::array_of(a, Source::none()), &y = detail::array_of(b, Source::none());
  for (int64_t k = 0; k < x.size(); ++k) {
    const uint64_t p = read_element(x.dtype, x.data + k * size_of(x.dtype));
    const uint64_t q = read_element(y.dtype, y.data + k * size_of(y.dtype));
    if (!same(x.dtype, p, q))
      return cat(TensorType{x.dtype, x.shape}, " differs at ", k, ": bits ", p, " and ", q);
  }
  return "";
}

std::string difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (const std::string apart = difference(a[i], b[i]); !apart.empty())
      return cat("result ", i, " of ", apart);
  return "";
}

// What is wrong with what a layout computes, or nothing.
std::string layout_failure(compile::Layout& layout, const RandomProgram& program,
                           const std::vector<Tensor>& arguments,
                           const std::vector<Tensor>& expected) {
  compile::emit(layout);
  const std::shared_ptr<run::Program> lowered = layout.program;
  if (const std::string fault = placement_fault(*lowered); !fault.empty()) return fault;
  for (const Memory memory : {Memory::planned, Memory::repeated, Memory::guarded}) {
    const char* const where = memory == Memory::planned    ? "as planned"
                              : memory == Memory::repeated ? "on other rubbish"
                                                           : "in guarded buffers";
    const Outcome outcome = run_program(*lowered, arguments, memory);
    if (const std::string apart = difference(expected, outcome.results); !apart.empty())
      return cat(where, ": ", apart);
    for (size_t i = 0; i < arguments.size(); ++i) {
      bool may_change = program.interface.parameters[i].donated;
      for (const auto& result : program.interface.results)
        may_change = may_change || result.updates == static_cast<int32_t>(i);
      const std::string apart = may_change ? "" : difference(arguments[i], outcome.parameters[i]);
      if (!apart.empty()) return cat(where, ": parameter ", i, " was changed: ", apart);
    }
  }
  return "";
}

Graph optimised(const RandomProgram& program, bool fuse) {
  Graph graph = compile::optimise(program.graph, compile::pass_options(program.interface, fuse));
  verify(graph);
  return graph;
}

// What is wrong with the program as lowered this way, or nothing.
std::string lowered_failure(const RandomProgram& program, const std::vector<Tensor>& arguments,
                            const std::vector<Tensor>& expected, bool fuse) {
  compile::Placements placements;
  compile::Layout layout = compile::layout(optimised(program, fuse), program.interface, placements);
  return layout_failure(layout, program, arguments, expected);
}

// What is wrong with a program, or nothing. Throws UserError where it is not one: an index is out
// of range.
std::string failure(const RandomProgram& program, uint64_t seed) {
  const std::vector<Tensor> arguments = arguments_of(program, seed);
  compile::set_emitter(Emitter::tile);
  std::vector<Tensor> expected;
  try {
    expected = evaluate(program.graph, arguments);
  } catch (const InternalError& error) {
    return cat("eager: ", error.what());
  }
  // Machine code takes a while to make.
  compile::set_emitter(seed % 10 == 0 ? Emitter::llvm : Emitter::tile);
  for (const bool fuse : {false, true}) {
    const char* const how = fuse ? "fused" : "unfused";
    try {
      const std::string wrong = lowered_failure(program, arguments, expected, fuse);
      if (!wrong.empty()) return cat(how, ", ", wrong);
    } catch (const std::exception& error) {
      return cat(how, ": ", error.what());
    }
  }
  return "";
}

// Of a program that eager code refuses, so that nothing is compared.
constexpr std::string_view kRefused = "refused";

std::string failure_if_valid(const RandomProgram& program, uint64_t seed) {
  try {
    return failure(program, seed);
  } catch (const UserError&) {
    return std::string(kRefused);
  }
}

// The same in a process of its own: whoever touches memory that is not the program's ends there.
std::string failure_apart(const RandomProgram& program, uint64_t seed) {
  return run_apart([&] { return failure_if_valid(program, seed); });
}

std::string outside(const RandomProgram& program) {
  std::string text;
  for (size_t i = 0; i < program.interface.parameters.size(); ++i)
    if (program.interface.parameters[i].donated) text += cat("parameter ", i, " is donated\n");
  for (size_t k = 0; k < program.interface.results.size(); ++k)
    if (program.interface.results[k].updates >= 0)
      text += cat("result ", k, " is the new value of parameter ",
                  program.interface.results[k].updates, "\n");
  return text;
}

constexpr SeedCounts kSeeds = {.usual = 300, .full = 5000};

// Gives whether it ran: a program that is refused shows nothing.
bool expect_right(const RandomProgram& program, uint64_t seed) {
  set_num_threads(1 + static_cast<int>(seed % 3));
  const std::string wrong = failure_apart(program, seed);
  if (wrong.empty() || wrong == kRefused) return wrong.empty();
  // A smaller program must not fail for another reason.
  const std::string kind = wrong.substr(0, wrong.find(':'));
  const RandomProgram small = shrunk(program, [&](const RandomProgram& each) {
    return failure_apart(each, seed).starts_with(kind);
  });
  ADD_FAILURE() << "seed " << seed << ": " << wrong
                << "\nmade small: " << failure_apart(small, seed) << "\n"
                << outside(small) << to_text(small.graph);
  return true;
}

TEST(Programs, GiveTheBitsOfEagerCode) {
  const int threads = num_threads();
  const auto [begin, end] = seeds_to_try(kSeeds);
  int64_t ran = 0;
  for (uint64_t seed = begin; seed < end; ++seed)
    ran += expect_right(random_program(seed), seed) ? 1 : 0;
  EXPECT_GE(ran, static_cast<int64_t>(end - begin) * 3 / 4) << "too few programs run";
  set_num_threads(threads);
  compile::set_emitter(Emitter::automatic);
}

TEST(Programs, SoDoTheirGradients) {
  const int threads = num_threads();
  const auto [begin, end] = seeds_to_try(kSeeds);
  int64_t ran = 0;
  for (uint64_t seed = begin; seed < end; ++seed) {
    const std::optional<RandomProgram> both = differentiated(random_program(seed));
    if (!both) continue;
    ran += expect_right(*both, seed) ? 1 : 0;
  }
  EXPECT_GT(ran, static_cast<int64_t>(end - begin) / 4) << "too few have a gradient that runs";
  set_num_threads(threads);
  compile::set_emitter(Emitter::automatic);
}

// Of every fifth: they are long.
TEST(Programs, SoDoTheGradientsOfTheirGradients) {
  const int threads = num_threads();
  const auto [begin, end] = seeds_to_try(kSeeds);
  int64_t ran = 0;
  for (uint64_t seed = begin; seed < end; seed += 5) {
    const std::optional<RandomProgram> first = differentiated(random_program(seed));
    const std::optional<RandomProgram> second = first ? differentiated(*first) : first;
    if (!second) continue;
    ran += expect_right(*second, seed) ? 1 : 0;
  }
  EXPECT_GT(ran, static_cast<int64_t>(end - begin) / 25) << "too few have a second gradient";
  set_num_threads(threads);
  compile::set_emitter(Emitter::automatic);
}

// What is wrong with a program whose loops keep other things for the gradients, or nothing.
std::string failure_of_choice(const DifferentiatedAgain& program, uint64_t seed) {
  try {
    const std::vector<Tensor> arguments = arguments_of(program.usual, seed);
    compile::set_emitter(Emitter::tile);
    const std::vector<Tensor> expected = evaluate(program.usual.graph, arguments);
    return lowered_failure(program.least, arguments, expected, true);
  } catch (const UserError&) {
    return std::string(kRefused);
  }
}

// Gradients made again are the same nodes where nothing else is chosen, and the same bits where
// loops keep less.
TEST(Programs, GradientsMadeAgainAreTheSame) {
  const auto [begin, end] = seeds_to_try(kSeeds);
  int64_t ran = 0;
  for (uint64_t seed = begin; seed < end; ++seed) {
    const std::optional<DifferentiatedAgain> program = differentiated_again(random_program(seed));
    if (!program) continue;
    ASSERT_EQ(to_text(program->repeated.graph), to_text(program->usual.graph)) << "seed " << seed;
    if (program->loops == 0) continue;
    const std::string wrong = run_apart([&] { return failure_of_choice(*program, seed); });
    if (wrong == kRefused) continue;
    ++ran;
    EXPECT_EQ(wrong, "") << "seed " << seed << "\n" << to_text(program->least.graph);
  }
  EXPECT_GE(ran, static_cast<int64_t>(end - begin) / 30) << "too few have loops that choose";
  compile::set_emitter(Emitter::automatic);
}

// What is wrong with a program within budgets between its floor and its peak, or nothing.
std::string failure_within_budgets(const RandomProgram& program, uint64_t seed) {
  const std::vector<Tensor> arguments = arguments_of(program, seed);
  compile::set_emitter(Emitter::tile);
  const std::vector<Tensor> expected = evaluate(program.graph, arguments);
  fit::Frontier frontier({{std::make_shared<Graph>(optimised(program, seed % 8 != 0))}},
                         program.interface);
  const int64_t peak = frontier.usual_peak(), floor = frontier.floor_bytes();
  std::mt19937_64 random(seed);
  const auto drawn = [&] {
    return floor + static_cast<int64_t>(random() % static_cast<uint64_t>(peak - floor + 1));
  };
  for (const int64_t budget : {drawn(), drawn(), floor}) {
    std::optional<fit::Fit> fit = frontier.at_most(budget);
    if (!fit) return cat("budget: refused within ", budget, ", the floor is ", floor);
    if (const int64_t needed = fit->layout.program->peak_bytes(); needed > budget)
      return cat("budget: ", needed, " bytes are planned within ", budget);
    const std::string wrong = layout_failure(fit->layout, program, arguments, expected);
    if (!wrong.empty()) return cat(wrong, " within ", budget, " of ", peak, ", floor ", floor);
  }
  return frontier.at_most(floor - 1) ? cat("budget: it fits below its floor, ", floor) : "";
}

std::string failure_within_budgets_apart(const RandomProgram& program, uint64_t seed) {
  return run_apart([&]() -> std::string {
    try {
      return failure_within_budgets(program, seed);
    } catch (const UserError&) {
      return std::string(kRefused);
    } catch (const std::exception& error) {
      return cat("exception: ", error.what());
    }
  });
}

bool expect_right_within_budgets(const RandomProgram& program, uint64_t seed) {
  set_num_threads(1 + static_cast<int>(seed % 2));
  const std::string wrong = failure_within_budgets_apart(program, seed);
  if (wrong.empty() || wrong == kRefused) return wrong.empty();
  const std::string kind = wrong.substr(0, wrong.find(':'));
  const RandomProgram small = shrunk(program, [&](const RandomProgram& each) {
    return failure_within_budgets_apart(each, seed).starts_with(kind);
  });
  ADD_FAILURE() << "seed " << seed << ": " << wrong
                << "\nmade small: " << failure_within_budgets_apart(small, seed) << "\n"
                << outside(small) << to_text(small.graph);
  return true;
}

// Programs and their gradients.
TEST(Programs, GiveTheSameBitsWithinEveryBudget) {
  const int threads = num_threads();
  const auto [begin, end] = seeds_to_try(kSeeds);
  int64_t ran = 0;
  for (uint64_t seed = begin; seed < end; ++seed) {
    const RandomProgram program = random_program(seed);
    const std::optional<RandomProgram> both =
        seed % 3 == 0 ? std::optional<RandomProgram>() : differentiated(program);
    ran += expect_right_within_budgets(both ? *both : program, seed) ? 1 : 0;
  }
  EXPECT_GE(ran, static_cast<int64_t>(end - begin) * 3 / 4) << "too few programs run";
  set_num_threads(threads);
  compile::set_emitter(Emitter::automatic);
}

// Programs that were wrong once, on several arguments; the last ones go to machine code.
TEST(Programs, ThatWereWrongOnce) {
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TIDEMARK_PROGRAMS)) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    RandomProgram program;
    program.graph = parse_graph(text.str(), entry.path().filename().string());
    for (size_t i = 0; i < program.graph.body().parameters.size(); ++i)
      program.interface.parameters.push_back({.name = cat(i)});
    program.interface.results.resize(program.graph.body().results.size());
    // Comments say what a text does not: "# result 1 is the new value of parameter 0".
    text.clear();
    text.seekg(0);
    for (std::string line; std::getline(text, line);) {
      int result = 0, parameter = 0;
      if (std::sscanf(line.c_str(), "# result %d is the new value of parameter %d", &result,
                      &parameter) == 2)
        program.interface.results[static_cast<size_t>(result)].updates = parameter;
    }
    for (const uint64_t seed : {1, 2, 10})
      EXPECT_EQ(failure_apart(program, seed), "") << entry.path() << " with seed " << seed;
    ++count;
  }
  EXPECT_GT(count, 0);
}

// The bytes that a program needs with the order that is chosen for it, or with its own.
int64_t needed(const RandomProgram& program, bool fuse, bool ordered) {
  Graph graph = program.graph;
  const passes::Machine machine = compile::machine_of(compile::backend_of(device::kHostMemory));
  const passes::PassOptions options = compile::pass_options(program.interface, fuse);
  for (const passes::Pass& pass : passes::all_passes()) {
    const bool left_out = (pass.fuses && !fuse) || (pass.name == "order" && !ordered);
    if (!left_out) pass.run(graph, machine, options);
  }
  return compile::layout(compact(graph), program.interface).program->peak_bytes();
}

TEST(Programs, NeverNeedMoreInTheOrderThatIsChosen) {
  int64_t less = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    std::vector<RandomProgram> programs = {random_program(seed)};
    if (const auto with_gradient = differentiated(programs[0])) programs.push_back(*with_gradient);
    for (const RandomProgram& program : programs) {
      for (const bool fuse : {true, false}) {
        const int64_t own = needed(program, fuse, false), chosen = needed(program, fuse, true);
        EXPECT_LE(chosen, own) << "seed " << seed << ", fused " << fuse;
        less += chosen < own ? 1 : 0;
      }
    }
  }
  EXPECT_GT(less, 200);  // Of about 1,900.
}

// A check that finds nothing wrong must be able to.
TEST(Programs, AMisplacedBufferIsFound) {
  int64_t shifted = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const RandomProgram program = random_program(seed);
    compile::set_emitter(Emitter::tile);
    compile::Placements placements;
    const Graph graph =
        compile::optimise(program.graph, {.fuse = false, .updates = program.interface.updates()});
    const std::shared_ptr<run::Program> lowered =
        compile::layout(graph, program.interface, placements).program;
    ASSERT_EQ(placement_fault(*lowered), "") << "seed " << seed;
    const std::vector<run::Buffer>& buffers = lowered->buffers;
    for (size_t i = 0; i < buffers.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (buffers[i].bytes == 0 || buffers[j].bytes == 0 ||
            buffers[i].arena != buffers[j].arena || buffers[i].lower >= buffers[j].upper ||
            buffers[j].lower >= buffers[i].upper)
          continue;
        const int64_t right = std::exchange(lowered->offsets[i], lowered->offsets[j]);
        EXPECT_NE(placement_fault(*lowered), "") << "seed " << seed;
        lowered->offsets[i] = right;
        ++shifted;
      }
    }
  }
  EXPECT_GT(shifted, 100);
  compile::set_emitter(Emitter::automatic);
}

}  // namespace
}  // namespace tidemark
