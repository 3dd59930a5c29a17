#include "tidemark/emit/tile/code.h"

#include <algorithm>
#include <array>
#include <map>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/emit/tile/stack.h"
#include "tidemark/loops/expr.h"
#include "tidemark/loops/pairwise.h"

namespace tidemark::tile {
namespace {

enum class Level : uint8_t { call, cell, element };

// Avoids registers that begin at the same offset in a page: the processor compares only these
// address bits when it decides whether a load must wait for an earlier store (4K aliasing).
constexpr int64_t kPage = 4096;
constexpr int64_t kStagger = 320;

// The registers of one sweep, by element size. The register freed last is reused first, since it is
// still in the cache.
class Registers {
 public:
  Registers() = default;
  explicit Registers(int64_t tile) : tile_(tile) {}
  int64_t take(int64_t size) {
    std::vector<int64_t>& free = free_[size];
    if (free.empty()) return take_bytes(tile_ * size);
    const int64_t offset = free.back();
    free.pop_back();
    return offset;
  }
  int64_t take_bytes(int64_t bytes) {
    const int64_t offset = end_;
    end_ += granted_bytes(bytes) + (bytes >= kPage ? kStagger : 0);
    return offset;
  }
  void give_back(int64_t size, int64_t offset) { free_[size].push_back(offset); }
  int64_t bytes() const { return end_; }

 private:
  int64_t tile_ = 0;
  std::array<std::vector<int64_t>, 9> free_;
  int64_t end_ = 0;
};

class Compiler {
 public:
  Compiler(const Nest& nest, device::Isa isa, int64_t tile)
      : nest_(nest), isa_(isa), tile_(tile), levels_(find_levels()) {}

  Code run() {
    code_.order = nest_.order;
    code_.tile = tile_;
    code_.buffers = nest_.buffers;
    code_.folds = nest_.cells > 0;
    call_values_.assign(nest_.exprs.size(), -1);
    call_spreads_.assign(nest_.exprs.size(), -1);
    find_cells();
    for (const Sweep& sweep : nest_.sweeps) code_.sweeps.push_back(compile_sweep(sweep));
    code_.finish = compile_finish();
    lay_out();
    return std::move(code_);
  }

 private:
  struct Home {
    int64_t offset = -1;
    bool permanent = false;  // False: belongs to the sweep.
  };

  std::vector<Level> find_levels() const {
    const bool lanes = nest_.order == Nest::Order::lanes;
    std::vector<Level> levels;
    for (const Expr& e : nest_.exprs) {
      Level level = Level::call;
      if (e.op == ExprOp::cell) level = Level::cell;
      if (e.op == ExprOp::index) level = Level::element;
      if (e.op == ExprOp::load) {
        const bool repeats = nest_.buffers[e.ref].columns == BufferRef::Columns::repeat;
        level = lanes && repeats ? Level::cell : Level::element;
      }
      for (const int32_t in : e.in) {
        if (in >= 0) level = std::max(level, levels[in]);
      }
      levels.push_back(level);
    }
    return levels;
  }

  void find_cells() {
    cell_values_.assign(nest_.cells, -1);
    for (const Sweep& sweep : nest_.sweeps) {
      for (const Fold& fold : sweep.folds) {
        cell_values_[fold.cell] = permanent(tile_ * size_of(nest_.exprs[fold.expr].dtype));
      }
    }
  }

  int32_t new_value(Home home) {
    homes_.push_back(home);
    return static_cast<int32_t>(homes_.size()) - 1;
  }
  int32_t permanent(int64_t bytes) { return new_value({permanent_.take_bytes(bytes), true}); }

  int64_t size(int32_t expr) const { return size_of(nest_.exprs[expr].dtype); }

  Instruction apply(const Expr& e) const {
    Instruction instruction;
    instruction.size = static_cast<uint8_t>(size_of(e.dtype));
    const DType operand = nest_.exprs[e.in[arity(e.op) - 1]].dtype;
    instruction.function = tile_function(e.op, e.dtype, operand, isa_);
    TIDEMARK_CHECK(instruction.function != nullptr, "no instruction ", name(e.op), " of ", operand);
    return instruction;
  }

  // The value of an expression of level call.
  int32_t call_value(int32_t expr) {
    if (call_values_[expr] >= 0) return call_values_[expr];
    const Expr& e = nest_.exprs[expr];
    Instruction instruction;
    if (arity(e.op) > 0) {
      instruction = apply(e);
      for (int k = 0; k < arity(e.op); ++k) instruction.in[k] = call_value(e.in[k]);
    }
    const int32_t value = permanent(sizeof(uint64_t));
    instruction.out = value;
    if (arity(e.op) > 0) {
      code_.call_code.push_back(instruction);
    } else {
      code_.given.push_back({value, e.op == ExprOp::scalar ? e.ref : -1, e.bits});
    }
    return call_values_[expr] = value;
  }

  int32_t spread_call_value(int32_t expr) {
    if (call_spreads_[expr] < 0) {
      const int32_t from = call_value(expr);
      call_spreads_[expr] = permanent(tile_ * size(expr));
      code_.call_spreads.push_back({from, call_spreads_[expr], static_cast<uint8_t>(size(expr))});
    }
    return call_spreads_[expr];
  }

  // Values of one sweep, by expression.
  struct SweepState {
    Registers registers;
    std::vector<int32_t> cell, spread, element;
  };

  void start_sweep() {
    const size_t count = nest_.exprs.size();
    state_ = {};
    state_.registers = Registers(tile_);
    state_.cell.assign(count, -1);
    state_.spread.assign(count, -1);
    state_.element.assign(count, -1);
  }

  int32_t sweep_value(int64_t bytes) { return new_value({state_.registers.take_bytes(bytes)}); }

  Instruction load(const Expr& e) const {
    Instruction instruction;
    instruction.kind = e.op == ExprOp::load ? Instruction::Kind::load : Instruction::Kind::index;
    instruction.size = static_cast<uint8_t>(size_of(e.dtype));
    instruction.buffer = e.ref;
    return instruction;
  }

  // The value of an expression at level cell, whatever its own level was.
  int32_t cell_value(int32_t expr, SweepCode& sweep) {
    if (levels_[expr] == Level::call) return spread_call_value(expr);
    const Expr& e = nest_.exprs[expr];
    if (e.op == ExprOp::cell) return cell_values_[e.ref];
    if (state_.cell[expr] >= 0) return state_.cell[expr];
    Instruction instruction = e.op == ExprOp::load ? load(e) : apply(e);
    for (int k = 0; k < arity(e.op); ++k) instruction.in[k] = cell_value(e.in[k], sweep);
    instruction.out = sweep_value(tile_ * size(expr));
    sweep.cell_code.push_back(instruction);
    return state_.cell[expr] = instruction.out;
  }

  // The value of an expression at level element. Registers are assigned later, when all uses are
  // known.
  int32_t element_value(int32_t expr, SweepCode& sweep) {
    if (levels_[expr] == Level::call) return spread_call_value(expr);
    if (levels_[expr] == Level::cell) {
      if (state_.spread[expr] < 0) {
        const int32_t from = cell_value(expr, sweep);
        state_.spread[expr] = sweep_value(tile_ * size(expr));
        sweep.spreads.push_back({from, state_.spread[expr], static_cast<uint8_t>(size(expr))});
      }
      return state_.spread[expr];
    }
    if (state_.element[expr] >= 0) return state_.element[expr];
    const Expr& e = nest_.exprs[expr];
    Instruction instruction = arity(e.op) == 0 ? load(e) : apply(e);
    for (int k = 0; k < arity(e.op); ++k) instruction.in[k] = element_value(e.in[k], sweep);
    instruction.out = new_value({});
    if (e.op == ExprOp::index) code_.reads_index = true;
    sweep.code.push_back(instruction);
    return state_.element[expr] = instruction.out;
  }

  // Evaluates in the order of the nest, which keeps recursion shallow and chains together; but
  // loads wait for their first use, so that they hold no register before.
  void evaluate(const std::vector<bool>& needed, SweepCode& sweep) {
    for (size_t i = 0; i < needed.size(); ++i) {
      const auto expr = static_cast<int32_t>(i);
      if (needed[i] && levels_[i] == Level::element && arity(nest_.exprs[i].op) > 0) {
        element_value(expr, sweep);
      }
    }
  }

  std::vector<bool> needed_by(const Sweep& sweep) const {
    std::vector<bool> needed(nest_.exprs.size(), false);
    for (const Store& store : sweep.stores) needed[store.expr] = true;
    for (const Fold& fold : sweep.folds) needed[fold.expr] = true;
    for (size_t i = needed.size(); i-- > 0;) {
      if (!needed[i]) continue;
      for (const int32_t in : nest_.exprs[i].in) {
        if (in >= 0) needed[in] = true;
      }
    }
    return needed;
  }

  SweepCode compile_sweep(const Sweep& sweep) {
    SweepCode result;
    start_sweep();
    evaluate(needed_by(sweep), result);
    for (const Fold& fold : sweep.folds) result.folds.push_back(compile_fold(fold, result));
    for (const Store& store : sweep.stores) {
      result.stores.push_back({store.buffer, element_value(store.expr, result)});
    }
    store_directly(result);
    assign_homes(result);
    note_registers(result);
    sweep_bytes_ = std::max(sweep_bytes_, state_.registers.bytes());
    return result;
  }

  CellFold compile_fold(const Fold& fold, SweepCode& sweep) {
    const DType dtype = nest_.exprs[fold.expr].dtype;
    const int64_t bytes = size_of(dtype);
    CellFold result;
    result.value = element_value(fold.expr, sweep);
    result.result = cell_values_[fold.cell];
    result.size = static_cast<uint8_t>(bytes);
    result.identity = identity_bits(fold.monoid, dtype);
    result.fold = fold_functions(fold.monoid, dtype, isa_);
    result.combine = tile_function(combiner(fold.monoid), dtype, dtype, isa_);
    const bool lanes = nest_.order == Nest::Order::lanes;
    result.accumulators = sweep_value((lanes ? kLanes : tile_) * bytes);
    result.levels = sweep_value(lanes ? kPairwiseLevels * bytes : kLevelRegisters * tile_ * bytes);
    return result;
  }

  SweepCode compile_finish() {
    SweepCode result;
    start_sweep();
    for (const Store& store : nest_.finish) {
      result.stores.push_back({store.buffer, cell_value(store.expr, result)});
    }
    copy_what_is_stored(result.cell_code, result.stores);
    sweep_bytes_ = std::max(sweep_bytes_, state_.registers.bytes());
    return result;
  }

  // Of several stores, the second must not read what the first has overwritten.
  static void copy_what_is_stored(std::vector<Instruction>& code,
                                  const std::vector<StoreFrom>& stores) {
    if (stores.size() < 2) return;
    for (const StoreFrom& store : stores) {
      for (Instruction& i : code) {
        if (i.kind == Instruction::Kind::load && i.out == store.value) i.copies = true;
      }
    }
  }

  // A stored buffer may be one that is also read, element for element. So an instruction writes
  // straight to it only when no later one, and no fold or store, reads a buffer in place.
  void store_directly(SweepCode& sweep) const {
    std::vector<bool> in_place(homes_.size(), false);
    for (const Instruction& i : sweep.code) {
      if (i.kind == Instruction::Kind::load) in_place[i.out] = true;
    }
    copy_what_is_stored(sweep.code, sweep.stores);
    for (const Instruction& i : sweep.code) {
      if (i.copies) in_place[i.out] = false;
    }
    for (const CellFold& fold : sweep.folds) {
      if (in_place[fold.value]) return;
    }
    for (const StoreFrom& store : sweep.stores) {
      if (in_place[store.value]) return;
    }
    for (size_t k = sweep.code.size(); k-- > 0;) {
      Instruction& i = sweep.code[k];
      if (i.kind == Instruction::Kind::load) return;
      for (StoreFrom& store : sweep.stores) {
        if (i.kind != Instruction::Kind::apply || store.value != i.out || i.buffer >= 0) continue;
        i.buffer = store.buffer;
        store.done = true;
      }
      for (const int32_t in : i.in) {
        if (in >= 0 && in_place[in]) return;
      }
    }
  }

  // Linear scan. A result may take the register of an operand that ends there: instructions allow
  // it, and the sizes are the same.
  void assign_homes(const SweepCode& sweep) {
    std::map<int32_t, size_t> last_use;
    for (size_t k = 0; k < sweep.code.size(); ++k) {
      for (const int32_t in : sweep.code[k].in) last_use[in] = k;
    }
    for (const CellFold& fold : sweep.folds) last_use[fold.value] = sweep.code.size();
    for (const StoreFrom& store : sweep.stores) last_use[store.value] = sweep.code.size();
    std::map<int32_t, int64_t> sizes;  // Of the values made by this code.
    for (size_t k = 0; k < sweep.code.size(); ++k) {
      const Instruction& i = sweep.code[k];
      for (const int32_t in : i.in) {
        const auto made = sizes.find(in);
        if (made == sizes.end() || last_use[in] != k) continue;
        state_.registers.give_back(made->second, homes_[in].offset);
        sizes.erase(made);
      }
      homes_[i.out].offset = state_.registers.take(i.size);
      sizes[i.out] = i.size;
    }
  }

  void note_registers(const SweepCode& sweep) {
    const auto side_by_side = [&](int32_t buffer) {
      return nest_.buffers[buffer].columns == BufferRef::Columns::unit;
    };
    for (const Instruction& i : sweep.code) {
      if (i.buffer >= 0 && !side_by_side(i.buffer)) code_.registers = true;
      if (i.kind == Instruction::Kind::index || i.copies) code_.registers = true;
      if (i.kind == Instruction::Kind::apply && i.buffer < 0) code_.registers = true;
      for (const int32_t in : i.in) {
        if (in >= 0 && homes_[in].permanent) code_.registers = true;
      }
    }
    for (const StoreFrom& store : sweep.stores) {
      if (homes_[store.value].permanent || !side_by_side(store.buffer)) code_.registers = true;
    }
    for (const CellFold& fold : sweep.folds) {
      if (homes_[fold.value].permanent) code_.registers = true;
    }
    if (!sweep.spreads.empty()) code_.registers = true;
  }

  void lay_out() {
    const int64_t count = static_cast<int64_t>(homes_.size());
    code_.values_bytes = granted_bytes(count * static_cast<int64_t>(sizeof(void*)));
    const int64_t sweeps = code_.values_bytes + permanent_.bytes();
    for (const Home& home : homes_) {
      code_.homes.push_back(home.offset + (home.permanent ? code_.values_bytes : sweeps));
    }
    code_.scratch_bytes = sweeps + sweep_bytes_;
  }

  const Nest& nest_;
  device::Isa isa_;
  int64_t tile_;
  std::vector<Level> levels_;
  Code code_;
  std::vector<Home> homes_;
  Registers permanent_;
  std::vector<int32_t> call_values_, call_spreads_, cell_values_;
  SweepState state_;
  int64_t sweep_bytes_ = 0;
};

}  // namespace

Code compile(const Nest& nest, device::Isa isa) {
  verify(nest);
  // Levels of a fold along steps share registers: these must hold at least 64 cells of each level.
  const bool folds_steps = nest.cells > 0 && nest.order == Nest::Order::columns;
  const int64_t shortest = folds_steps ? 256 : kLanes;
  int64_t tile = kLongestTile;
  Code code = Compiler(nest, isa, tile).run();
  while (code.scratch_bytes > kUsualScratch && tile > shortest)
    code = Compiler(nest, isa, tile /= 2).run();
  TIDEMARK_CHECK(code.scratch_bytes <= kMostScratch, "a nest of ", nest.exprs.size(),
                 " expressions takes ", code.scratch_bytes, " bytes to interpret");
  return code;
}

}  // namespace tidemark::tile
