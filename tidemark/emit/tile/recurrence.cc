// Interprets recurrences one number at a time, by a list of the instructions of a trip.
#include <cstring>
#include <map>
#include <vector>

#include "tidemark/base/error.h"
#include "tidemark/emit/tile/stack.h"
#include "tidemark/emit/tile/tile.h"
#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

using Access = Recurrence::Access;
using Move = Recurrence::Move;

// Each expression has a word that holds its value.
struct Action {
  enum class Kind : uint8_t { apply, check, load, store } kind = Kind::apply;
  TileFunction function = nullptr;  // apply
  int32_t in[3] = {-1, -1, -1};     // apply
  int32_t out = -1;                 // apply, load, store: the expression.
  int32_t access = -1;              // check, load, store
  int32_t checked = -1;             // check, load, store: the word of the index counted from 0.
};
using Actions = std::vector<Action>;

// Builds the instructions before, in and after the trips. An expression is evaluated at its first
// use, as in compiled code.
class Listing {
 public:
  Listing(const Recurrence& loop, device::Isa isa)
      : loop_(loop), isa_(isa), words_(loop.exprs.size()) {}

  struct Result {
    Actions before, condition, trip, after;
    int32_t words = 0;
  };
  Result run() {
    Result made;
    std::vector<bool> known(loop_.exprs.size());
    for (size_t i = 0; i < known.size(); ++i)
      known[i] = loop_.exprs[i].op == ExprOp::scalar || loop_.exprs[i].op == ExprOp::constant;
    for (const Move& move : loop_.before) add(move, known, made.before);
    for (const Recurrence::Register& each : loop_.registers) want(each.start, known, made.before);
    for (size_t i = 0; i < known.size(); ++i)
      known[i] =
          known[i] || loop_.exprs[i].op == ExprOp::index || loop_.exprs[i].op == ExprOp::cell;
    const std::vector<bool> at_head = known;
    if (loop_.condition >= 0) want(loop_.condition, known, made.condition);
    for (const Move& move : loop_.moves) add(move, known, made.trip);
    for (const Recurrence::Register& each : loop_.registers) want(each.next, known, made.trip);
    known = at_head;
    checked_.clear();
    for (const Move& move : loop_.after) add(move, known, made.after);
    made.words = static_cast<int32_t>(words_);
    return made;
  }

 private:
  void want(int32_t number, std::vector<bool>& known, Actions& list) {
    const auto at = static_cast<size_t>(number);
    if (known[at]) return;
    const Expr& expr = loop_.exprs[at];
    Action action{.kind = Action::Kind::apply, .out = number};
    for (int k = 0; k < arity(expr.op); ++k) {
      want(expr.in[k], known, list);
      action.in[k] = expr.in[k];
    }
    const DType operand = loop_.exprs[static_cast<size_t>(expr.in[arity(expr.op) - 1])].dtype;
    action.function = tile_function(expr.op, expr.dtype, operand, isa_);
    TIDEMARK_CHECK(action.function != nullptr, "no instruction ", name(expr.op), " of ", operand);
    list.push_back(action);
    known[at] = true;
  }

  void add(const Move& move, std::vector<bool>& known, Actions& list) {
    const Access& access = loop_.accesses[static_cast<size_t>(move.access)];
    const auto at = static_cast<size_t>(move.expr);
    const bool loads = loop_.exprs[at].op == ExprOp::load && loop_.exprs[at].ref == move.access;
    Action action{.kind = loads ? Action::Kind::load : Action::Kind::store,
                  .out = move.expr,
                  .access = move.access};
    if (access.index >= 0) {
      want(access.index, known, list);
      action.checked = access.bound < 0 ? access.index : checked(move.access, list);
    }
    if (!loads) want(move.expr, known, list);
    list.push_back(action);
    known[at] = true;
  }

  // Elements of one slice have the same index, which is checked once in a trip.
  int32_t checked(int32_t number, Actions& list) {
    const Access& access = loop_.accesses[static_cast<size_t>(number)];
    const auto [found, fresh] = checked_.try_emplace({access.index, access.bound});
    if (fresh) {
      found->second = static_cast<int32_t>(words_++);
      list.push_back({.kind = Action::Kind::check, .access = number, .checked = found->second});
    }
    return found->second;
  }

  const Recurrence& loop_;
  device::Isa isa_;
  size_t words_;
  std::map<std::pair<int32_t, int64_t>, int32_t> checked_;
};

struct RecurrenceKernel final : Kernel {
  RecurrenceKernel(const Recurrence& recurrence, device::Isa isa)
      : loop(recurrence), list(Listing(loop, isa).run()) {
    TIDEMARK_CHECK(bytes() <= tile::kMostScratch, "a loop of ", loop.exprs.size(), " expressions");
    run = [](const Kernel& self, const KernelArgs& args) {
      const auto& kernel = static_cast<const RecurrenceKernel&>(self);
      tile::with_scratch(kernel.bytes(), [&](std::byte* scratch) {
        kernel.interpret(args, reinterpret_cast<uint64_t*>(scratch));
      });
    };
  }

  // The words of expressions and checked indices, then registers as the next trip starts with them.
  int64_t bytes() const {
    return (list.words + static_cast<int64_t>(loop.registers.size())) *
           static_cast<int64_t>(sizeof(uint64_t));
  }

  void interpret(const KernelArgs& args, uint64_t* words) const {
    uint64_t* const next = words + list.words;
    for (size_t i = 0; i < loop.exprs.size(); ++i) {
      if (loop.exprs[i].op == ExprOp::constant) words[i] = loop.exprs[i].bits;
      if (loop.exprs[i].op == ExprOp::scalar) words[i] = static_cast<uint64_t>(args.columns);
    }
    if (!perform(list.before, args, words)) return;
    for (size_t k = 0; k < loop.registers.size(); ++k) next[k] = words[loop.registers[k].start];
    for (int64_t trip = 0;; ++trip) {
      start_trip(trip, next, words);
      if (trip >= args.columns || !goes_on(args, words)) break;
      if (!perform(list.trip, args, words)) return;
      for (size_t k = 0; k < loop.registers.size(); ++k) next[k] = words[loop.registers[k].next];
    }
    perform(list.after, args, words);
  }

  void start_trip(int64_t trip, const uint64_t* next, uint64_t* words) const {
    for (size_t i = 0; i < loop.exprs.size(); ++i) {
      const Expr& expr = loop.exprs[i];
      if (expr.op == ExprOp::index) words[i] = static_cast<uint64_t>(trip);
      if (expr.op == ExprOp::cell) words[i] = next[expr.ref];
    }
  }

  bool goes_on(const KernelArgs& args, uint64_t* words) const {
    if (loop.condition < 0) return true;
    perform(list.condition, args, words);
    return *reinterpret_cast<const bool*>(words + loop.condition);
  }

  // False if an index is out of range; the scratch then holds it.
  bool perform(const Actions& actions, const KernelArgs& args, uint64_t* words) const {
    for (const Action& action : actions) {
      switch (action.kind) {
        case Action::Kind::apply: {
          const void* in[3];
          for (int k = 0; k < 3; ++k) in[k] = action.in[k] >= 0 ? words + action.in[k] : nullptr;
          action.function(in, words + action.out, 1);
          break;
        }
        case Action::Kind::check:
          if (!check(action, args, words)) return false;
          break;
        case Action::Kind::load:
          std::memcpy(words + action.out, address(action, args, words), size(action));
          break;
        case Action::Kind::store:
          std::memcpy(address(action, args, words), words + action.out, size(action));
          break;
      }
    }
    return true;
  }

  bool check(const Action& action, const KernelArgs& args, uint64_t* words) const {
    const Access& access = loop.accesses[static_cast<size_t>(action.access)];
    const auto index = static_cast<int64_t>(words[access.index]);
    const int64_t plain = index < 0 ? index + access.bound : index;
    words[action.checked] = static_cast<uint64_t>(plain);
    if (plain >= 0 && plain < access.bound) return true;
    auto* const report = reinterpret_cast<int64_t*>(args.scratch);
    report[0] = action.access;
    report[1] = index;
    return false;
  }

  size_t size(const Action& action) const {
    return static_cast<size_t>(size_of(loop.accesses[static_cast<size_t>(action.access)].dtype));
  }
  std::byte* address(const Action& action, const KernelArgs& args, const uint64_t* words) const {
    const Access& access = loop.accesses[static_cast<size_t>(action.access)];
    const int64_t index = action.checked < 0 ? 0 : static_cast<int64_t>(words[action.checked]);
    const int64_t element = access.first + access.scale * index;
    return args.buffers[access.buffer] + element * size_of(access.dtype);
  }

  const Recurrence loop;
  const Listing::Result list;
};

}  // namespace

std::unique_ptr<Kernel> make_tile_recurrence(const Recurrence& recurrence, device::Isa isa) {
  return std::make_unique<RecurrenceKernel>(recurrence, isa);
}

}  // namespace tidemark
