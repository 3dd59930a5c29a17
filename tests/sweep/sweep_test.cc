// Every op of the catalogue, in every dtype and layout, by every way there is to run it, against
// the reference. An op that is new in the catalogue is swept without a line written here.
#include <gtest/gtest.h>

#include <cfenv>
#include <string>

#include <xmmintrin.h>

#include "tests/sweep/cases.h"
#include "tests/sweep/compare.h"
#include "tidemark/api/create.h"
#include "tidemark/api/memory.h"
#include "tidemark/api/ops.h"
#include "tidemark/compile/cpu/eager.h"
#include "tidemark/compile/cpu/kernels.h"
#include "tidemark/device/cpu/features.h"
#include "tidemark/device/threads.h"
#include "tidemark/ops/lower.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"

namespace tidemark::sweep {
namespace {

using compile::Emitter;

// Sets who runs nests until it goes.
class By {
 public:
  explicit By(Emitter emitter) : before_(compile::emitter()) { compile::set_emitter(emitter); }
  ~By() { compile::set_emitter(before_); }
  By(const By&) = delete;
  By& operator=(const By&) = delete;

 private:
  Emitter before_;
};

class Threads {
 public:
  explicit Threads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Sets the floating-point modes of this thread until it goes: of SSE and of the x87 unit.
class Modes {
 public:
  Modes(unsigned set, unsigned clear, int rounding) : saved_(_mm_getcsr()) {
    std::fegetenv(&environment_);
    std::fesetround(rounding);
    _mm_setcsr((_mm_getcsr() | set) & ~clear & ~kFlags);
    given_ = _mm_getcsr();
  }
  ~Modes() {
    std::fesetenv(&environment_);
    _mm_setcsr(saved_);
  }
  Modes(const Modes&) = delete;
  Modes& operator=(const Modes&) = delete;
  // Whether nobody changed the modes meanwhile.
  bool kept() const { return ((_mm_getcsr() ^ given_) & ~kFlags) == 0; }

 private:
  static constexpr unsigned kFlags = 0x3F;
  unsigned saved_, given_;
  std::fenv_t environment_;
};

// No more than this many failures of one op are worth reading.
constexpr int kShown = 3;

class Sweep : public testing::TestWithParam<const OpDef*> {
 protected:
  void expect_same(const Case& c, const char* who, const std::string& why) {
    if (why.empty() || failures_ >= kShown) return;
    ++failures_;
    ADD_FAILURE() << described(c) << "\n  " << who << ": " << why;
  }
  int failures_ = 0;
};

TEST_P(Sweep, EveryEmitterGivesTheReferencesValue) {
  const OpDef& op = *GetParam();
  const std::vector<Case> cases = cases_of(op);
  ASSERT_FALSE(cases.empty()) << op.name << ": the sweep has no table of attributes for it";
  for (const Case& c : cases) {
    SCOPED_TRACE(described(c));
    const auto by = [&](Emitter emitter) {
      const By who(emitter);
      return run_case_kernel(c);
    };
    const Tensor plain = run_case(c);
    const Tensor want = expected(op, c.operands, c.attrs, c.result);
    if (want.has_value()) expect_same(c, "the call, by the reference", difference(c, plain, want));
    expect_same(c, "tile, by the call", bit_difference(c, by(Emitter::tile), plain));
    expect_same(c, "llvm, by the call", bit_difference(c, by(Emitter::llvm), plain));
    expect_same(c, "checked, by the call", bit_difference(c, by(Emitter::checked), plain));
  }
}

TEST_P(Sweep, ThreadsChangeNoBit) {
  const OpDef& op = *GetParam();
  for (const Case& c : large_cases_of(op)) {
    for (const Emitter emitter : {Emitter::tile, Emitter::llvm}) {
      const By who(emitter);
      Tensor alone;
      for (const int count : {1, 2, 5}) {
        const Threads threads(count);
        const Tensor result = run_case(c);
        if (!alone.has_value()) alone = result;
        expect_same(c, cat(count, " threads, by one").c_str(), bit_difference(c, result, alone));
      }
    }
  }
}

// Flushing denormals, rounding upward, traps: whatever modes the caller has set, kernels run in
// plain IEEE, and the caller gets the modes back.
TEST_P(Sweep, TheCallersFloatingPointModesChangeNothing) {
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kMasks = 0x1F80;
  struct {
    const char* name;
    unsigned set, clear;
    int rounding;
  } const modes[] = {{"flushing denormals", kFlushToZero | kDenormalsAreZero, 0, FE_TONEAREST},
                     {"rounding upward", 0, 0, FE_UPWARD},
                     {"with traps", 0, kMasks, FE_TONEAREST}};
  const OpDef& op = *GetParam();
  const std::vector<Case> cases = cases_of(op);
  // Special values, and a share of the others.
  const size_t every = full_counts() ? 1 : std::max<size_t>(1, cases.size() / 40);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    if (i % every != 0 && c.text.find("special") == std::string::npos) continue;
    for (const Emitter emitter : {Emitter::automatic, Emitter::tile, Emitter::llvm}) {
      const By who(emitter);
      const auto go = [&] {
        return emitter == Emitter::automatic ? run_case(c) : run_case_kernel(c);
      };
      const Tensor plain = go();
      for (const auto& mode : modes) {
        Tensor result;
        bool kept = false;
        {
          const Modes changed(mode.set, mode.clear, mode.rounding);
          result = go();
          kept = changed.kept();
        }
        EXPECT_TRUE(kept) << described(c) << ": the caller's modes changed, " << mode.name;
        expect_same(c, mode.name, bit_difference(c, result, plain));
      }
    }
  }
}

// A plain number is what a tensor of one element would be.
TEST_P(Sweep, APlainNumberActsAsATensorOfOneElement) {
  const OpDef& op = *GetParam();
  if (op.family != Family::pointwise || op.value == nullptr || op.arity != 2) return;
  for (const DType dtype : swept_dtypes(op)) {
    for (const bool first : {false, true}) {
      for (const int64_t size : {5, 300}) {
        Case c{&op, {drawn(dtype, {size}, op.sample, 5)}, {}, first ? "number first" : "number"};
        const Operand tensor(c.operands[0]), two(2);
        const OperandType types[] = {{dtype, Weak::no, nullptr},
                                     {DType::i32, Weak::integer, nullptr}};
        PointwiseType type;
        try {
          type = infer_pointwise(op, types, Source::none());
        } catch (const UserError&) {
          continue;
        }
        const Tensor number = listed(type.compute[0], {}, std::vector<int64_t>{2});
        const std::vector<Tensor> pair = first ? std::vector<Tensor>{number, c.operands[0]}
                                               : std::vector<Tensor>{c.operands[0], number};
        const Tensor want = run_kernel(op, pair, {});
        for (const Emitter emitter : {Emitter::automatic, Emitter::tile, Emitter::llvm}) {
          const By who(emitter);
          const Operand* const list[] = {first ? &two : &tensor, first ? &tensor : &two};
          const Tensor got = detail::bind_op({op, list, {}, Source::here()});
          expect_same(c, "a number, by a tensor", bit_difference(c, got, want));
        }
      }
    }
  }
}

// Given an rvalue that nobody else holds, an op writes over it: the same bits, and no byte more.
TEST_P(Sweep, ADyingOperandsBytesAreReused) {
  const OpDef& op = *GetParam();
  if (op.family != Family::pointwise || op.value == nullptr) return;
  for (const DType dtype : swept_dtypes(op)) {
    for (const int64_t size : {100, 300, 5000}) {
      Case c{&op, {}, {}, "dying"};
      for (int i = 0; i < op.arity; ++i)
        c.operands.push_back(
            drawn(i == 0 && op.arity == 3 && op.name == "where" ? DType::boolean : dtype, {size},
                  op.sample, static_cast<uint64_t>(i) + 1));
      Tensor want;
      try {
        want = run(op, c.operands, {});
      } catch (const UserError&) {
        continue;
      }
      for (const Emitter emitter : {Emitter::automatic, Emitter::tile, Emitter::llvm}) {
        const By who(emitter);
        for (int dying = 0; dying < op.arity; ++dying) {
          const auto at = static_cast<size_t>(dying);
          if (size_of(c.operands[at].dtype()) != size_of(want.dtype())) continue;
          Tensor given = dense_copy(c.operands[at]);
          const std::byte* const bytes = detail::array_of(given, Source::none()).data;
          std::vector<Operand> list(c.operands.begin(), c.operands.end());
          list[at] = Operand(std::move(given));
          memory::reset_peak();
          const int64_t before = memory::current().count;
          std::vector<const Operand*> operands;
          for (const Operand& each : list) operands.push_back(&each);
          const Tensor got = detail::bind_op({op, operands, {}, Source::here()});
          const int64_t peak = memory::peak().count;
          EXPECT_EQ(detail::array_of(got, Source::none()).data, bytes)
              << described(c) << ", operand " << dying;
          EXPECT_FALSE(given.has_value()) << described(c);
          // The interpreter takes scratch of its own; machine code needs none.
          if (emitter == Emitter::llvm) {
            EXPECT_EQ(peak, before) << described(c) << ", operand " << dying;
          }
          expect_same(c, "in place, by a new place", bit_difference(c, got, want));
        }
      }
    }
  }
}

// Results larger than the last cache are stored past it: the same bits as in parts that are not.
TEST(Streaming, ChangesNoBit) {
  const int64_t bytes = device::caches().l3_bytes + (1 << 20);
  if (bytes > (128 << 20)) GTEST_SKIP() << "the last cache has " << Bytes(bytes);
  for (const DType dtype : {DType::f32, DType::u8}) {
    const int64_t size = bytes / size_of(dtype) + 17;
    const Tensor x = cast(arange(size) % 251, dtype), one = full({}, 1, dtype);
    for (const Emitter emitter : {Emitter::tile, Emitter::llvm}) {
      const By who(emitter);
      const Tensor whole = x + one, turned = identity(x);
      const int64_t part = 1 << 20;
      for (int64_t begin = 0; begin < size; begin += part) {
        const Slice here{.begin = begin, .end = std::min(size, begin + part)};
        ASSERT_TRUE(identical(whole[here], x[here] + one)) << dtype << " from " << begin;
        ASSERT_TRUE(identical(turned[here], x[here])) << dtype << " from " << begin;
      }
    }
  }
}

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> list;
  for (const OpDef& op : catalogue()) list.push_back(&op);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, Sweep, testing::ValuesIn(all_ops()),
                         [](const testing::TestParamInfo<const OpDef*>& info) {
                           return std::string(info.param->name);
                         });

}  // namespace
}  // namespace tidemark::sweep
