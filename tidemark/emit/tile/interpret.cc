// The interpreter. A block is a box of rows x steps x columns whose elements fill registers in that
// order. Blocks are chosen to be full if the nest is large enough, however short its rows are.
#include "tidemark/emit/tile/interpret.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tidemark/base/error.h"
#include "tidemark/emit/tile/move.h"
#include "tidemark/emit/tile/stack.h"

namespace tidemark::tile {
namespace {

struct Block {
  int64_t row = 0, step = 0, column = 0;
  Extents extents;
};

class Interpreter {
 public:
  // `scratch` has code.scratch_bytes, aligned to 64.
  Interpreter(const Code& code, const KernelArgs& args, std::byte* scratch)
      : code_(code),
        args_(args),
        scratch_(scratch),
        values_(reinterpret_cast<std::byte**>(scratch)),
        rows_(args.rows),
        steps_(args.steps),
        columns_(args.columns) {}

  void run() {
    // What is not read along some axis may still be stored by `finish`, for which only rows (and,
    // by columns, columns) count.
    const bool by_lanes = code_.order == Nest::Order::lanes;
    if (rows_ <= 0 || (columns_ <= 0 && !by_lanes)) return;
    if (!code_.folds && (columns_ <= 0 || steps_ <= 0)) return;
    if (by_lanes) {
      TIDEMARK_CHECK(steps_ == 1, steps_, " steps in a nest by lanes");
      join_rows();
      cut_lanes();
    } else {
      cut_columns();
    }
    prepare();
    by_lanes ? run_lanes() : run_columns();
  }

 private:
  // Buffers that go on from row to row as within a row make one long row.
  void join_rows() {
    if (code_.folds || rows_ == 1 || !code_.finish.stores.empty()) return;
    if (code_.reads_index && args_.index_row != columns_) return;
    for (size_t i = 0; i < code_.buffers.size(); ++i) {
      if (args_.movements[i].row != columns_ * movement(i).column) return;
    }
    columns_ *= rows_;
    rows_ = 1;
  }

  void cut_lanes() {
    const int64_t most = code_.registers ? code_.tile : kLaneBlock;
    cut_.columns = std::min(columns_, most);
    cut_.rows = 1;
    if (columns_ == 0) {
      cut_.rows = std::min(rows_, code_.tile);
    } else if (columns_ <= code_.tile) {
      cut_.rows = std::min(rows_, code_.tile / columns_);
    } else if (!code_.folds && reads_across()) {
      // Each cache line read serves several rows.
      cut_.columns = kAcross;
      cut_.rows = std::min(rows_, code_.tile / kAcross);
    }
  }

  // Whether some buffer moves less from row to row than from column to column.
  bool reads_across() const {
    for (size_t i = 0; i < code_.buffers.size(); ++i) {
      const Movement by = movement(i);
      if (by.row != 0 && std::abs(by.row) < std::abs(by.column)) return true;
    }
    return false;
  }

  void cut_columns() {
    int64_t most = code_.tile;
    const int64_t blocks = (steps_ + kStepBlock - 1) / kStepBlock;
    if (code_.folds && blocks > 1) {
      level_count_ = 64 - __builtin_clzll(static_cast<uint64_t>(blocks));
      // The same registers hold more levels of fewer cells.
      most = std::min(code_.tile, kLevelRegisters * code_.tile / level_count_ / kLanes * kLanes);
    }
    cut_.columns = std::min(columns_, most);
    cut_.steps = 1;
    cut_.rows = 1;
    if (cut_.columns < columns_ || steps_ == 0) return;
    cut_.steps = std::clamp<int64_t>(code_.tile / columns_, 1, std::min(steps_, kStepBlock));
    if (cut_.steps < steps_ || blocks > 1) return;
    cut_.rows = std::clamp<int64_t>(code_.tile / (cut_.steps * columns_), 1, rows_);
  }

  void prepare() {
    for (size_t i = 0; i < code_.homes.size(); ++i) values_[i] = scratch_ + code_.homes[i];
    for (const Code::CallNumber& given : code_.given) {
      const uint64_t bits = given.scalar >= 0 ? args_.scalars[given.scalar] : given.bits;
      std::memcpy(values_[given.value], &bits, sizeof(bits));
    }
    for (const Instruction& i : code_.call_code) apply(i, 1);
    // Longer blocks are of code without registers: only what is done per row reads these then.
    const int64_t longest = std::min(std::max(cut_.count(), cut_.rows), code_.tile);
    for (const Spread& spread : code_.call_spreads)
      fill(spread.to, spread.from, spread.size, longest);
  }

  void fill(int32_t to, int32_t from, int64_t size, int64_t n) {
    gather(values_[to], values_[from], {1, 1, n}, {}, size);
  }

  // How a buffer moves, its kind of columns taken at its word.
  Movement movement(size_t buffer) const {
    Movement by = args_.movements[buffer];
    const BufferRef& ref = code_.buffers[buffer];
    if (ref.columns == BufferRef::Columns::unit) by.column = size_of(ref.dtype);
    if (ref.columns == BufferRef::Columns::repeat) by.column = 0;
    return by;
  }

  std::byte* address(int32_t buffer, const Block& block, const Movement& by) const {
    if (args_.extents != nullptr) check(buffer, block, by);
    return args_.buffers[buffer] + block.row * by.row + block.step * by.step +
           block.column * by.column;
  }

  // Addresses are linear in row, step and column, so the corners of a block are its extremes.
  void check(int32_t buffer, const Block& block, const Movement& by) const {
    const int64_t size = size_of(code_.buffers[buffer].dtype);
    const std::byte* const base = args_.buffers[buffer];
    const Extent& extent = args_.extents[buffer];
    const auto outside = [&](int64_t row, int64_t step, int64_t column) {
      const std::byte* const at = base + row * by.row + step * by.step + column * by.column;
      return at < extent.begin || at + size > extent.end;
    };
    const auto scan = [&](bool corners) {
      const Extents& e = block.extents;
      for (int64_t r = 0; r < e.rows; r += corners ? std::max<int64_t>(e.rows - 1, 1) : 1) {
        for (int64_t s = 0; s < e.steps; s += corners ? std::max<int64_t>(e.steps - 1, 1) : 1) {
          for (int64_t c = 0; c < e.columns;
               c += corners ? std::max<int64_t>(e.columns - 1, 1) : 1) {
            if (!outside(block.row + r, block.step + s, block.column + c)) continue;
            if (corners) return true;
            throw InternalError(cat("buffer ", buffer, " is left at row ", block.row + r, ", step ",
                                    block.step + s, ", column ", block.column + c));
          }
        }
      }
      return false;
    };
    if (scan(true)) scan(false);
  }

  void apply(const Instruction& i, int64_t n) {
    const void* in[3];
    for (int k = 0; k < 3; ++k) in[k] = i.in[k] >= 0 ? values_[i.in[k]] : nullptr;
    i.function(in, values_[i.out], n);
  }

  void load(const Instruction& i, const Block& block) {
    const Movement by = movement(i.buffer);
    std::byte* const from = address(i.buffer, block, by);
    if (!i.copies && is_contiguous(block.extents, by, i.size)) {
      values_[i.out] = from;
      return;
    }
    values_[i.out] = home(i.out);
    gather(values_[i.out], from, block.extents, by, i.size);
  }

  std::byte* home(int32_t value) const { return scratch_ + code_.homes[value]; }

  void write_index(const Instruction& i, const Block& block) {
    auto* out = reinterpret_cast<int64_t*>(values_[i.out]);
    const Extents& e = block.extents;
    for (int64_t r = 0; r < e.rows; ++r) {
      for (int64_t s = 0; s < e.steps; ++s, out += e.columns) {
        if (code_.order == Nest::Order::columns) {
          std::fill_n(out, e.columns, args_.index_base + block.step + s);
          continue;
        }
        const int64_t first = args_.index_base + (block.row + r) * args_.index_row + block.column;
        for (int64_t c = 0; c < e.columns; ++c) out[c] = first + c;
      }
    }
  }

  void execute(const std::vector<Instruction>& code, const Block& block) {
    const int64_t n = block.extents.count();
    for (const Instruction& i : code) {
      switch (i.kind) {
        case Instruction::Kind::load:
          load(i, block);
          break;
        case Instruction::Kind::index:
          write_index(i, block);
          break;
        case Instruction::Kind::apply:
          if (i.buffer >= 0) aim(i, block);
          apply(i, n);
          break;
      }
    }
  }

  // Writes the result directly to its buffer, if possible.
  void aim(const Instruction& i, const Block& block) {
    const Movement by = movement(i.buffer);
    values_[i.out] =
        is_contiguous(block.extents, by, i.size) ? address(i.buffer, block, by) : home(i.out);
  }

  void store(const std::vector<StoreFrom>& stores, const Block& block) {
    for (const StoreFrom& store : stores) {
      const int64_t size = size_of(code_.buffers[store.buffer].dtype);
      const Movement by = movement(store.buffer);
      if (store.done && is_contiguous(block.extents, by, size)) continue;
      scatter(address(store.buffer, block, by), values_[store.value], block.extents, by, size);
    }
  }

  // Partial results of blocks, joined as `pairwise.h` says; here each is a row of n cells.
  void push(const CellFold& fold, int64_t block, int64_t n) {
    std::byte* const levels = values_[fold.levels];
    std::byte* const value = values_[fold.accumulators];
    const int64_t bytes = n * fold.size;
    int64_t level = 0;
    for (int64_t carry = block; (carry & 1) != 0; carry >>= 1, ++level) {
      const void* const in[3] = {levels + level * bytes, value, nullptr};
      fold.combine(in, value, n);
    }
    std::memcpy(levels + level * bytes, value, static_cast<size_t>(bytes));
  }

  void finish_fold(const CellFold& fold, int64_t blocks, int64_t n) {
    std::byte* const levels = values_[fold.levels];
    std::byte* const result = values_[fold.result];
    const int64_t bytes = n * fold.size;
    int64_t level = __builtin_ctzll(static_cast<uint64_t>(blocks));
    std::memcpy(result, levels + level * bytes, static_cast<size_t>(bytes));
    for (int64_t rest = blocks >> (level + 1); rest != 0; rest >>= 1) {
      ++level;
      if ((rest & 1) == 0) continue;
      const void* const in[3] = {levels + level * bytes, result, nullptr};
      fold.combine(in, result, n);
    }
  }

  void set_identity(const CellFold& fold, std::byte* to, int64_t n) {
    gather(to, reinterpret_cast<const std::byte*>(&fold.identity), {1, 1, n}, {}, fold.size);
  }

  void run_lanes() {
    for (int64_t row = 0; row < rows_; row += cut_.rows) {
      const int64_t rows = std::min(cut_.rows, rows_ - row);
      // One element per row stands for all of it: level cell reads what repeats along columns.
      const Block cells = {row, 0, 0, {rows, 1, 1}};
      for (const SweepCode& sweep : code_.sweeps) {
        // A row without columns has no element to broadcast.
        if (columns_ > 0) execute(sweep.cell_code, cells);
        sweep_lanes(sweep, row, rows);
      }
      execute(code_.finish.cell_code, cells);
      store(code_.finish.stores, cells);
    }
  }

  void sweep_lanes(const SweepCode& sweep, int64_t row, int64_t rows) {
    int64_t spread_columns = 0;
    for (int64_t column = 0; column < columns_; column += cut_.columns) {
      const Block block = {row, 0, column, {rows, 1, std::min(cut_.columns, columns_ - column)}};
      const Extents& extents = block.extents;
      if (spread_columns == 0 || (rows > 1 && spread_columns != extents.columns)) {
        spread_columns = extents.columns;
        for (const Spread& spread : sweep.spreads) {
          gather(values_[spread.to], values_[spread.from], extents, {spread.size, 0, 0},
                 spread.size);
        }
      }
      execute(sweep.code, block);
      for (const CellFold& fold : sweep.folds) fold_lanes(fold, block);
      store(sweep.stores, block);
    }
    for (const CellFold& fold : sweep.folds) {
      if (columns_ == 0) set_identity(fold, values_[fold.result], rows);
      if (columns_ > cut_.columns) {
        finish_fold(fold, (columns_ + kLaneBlock - 1) / kLaneBlock, 1);
      }
    }
  }

  void fold_lanes(const CellFold& fold, const Block& block) {
    const int64_t n = block.extents.columns;
    if (n == columns_) {
      fold.fold.rows(values_[fold.value], values_[fold.result], block.extents.rows, n);
      return;
    }
    std::byte* const lanes = values_[fold.accumulators];
    const int64_t end = block.column + n;
    if (block.column % kLaneBlock == 0) set_identity(fold, lanes, kLanes);
    fold.fold.lanes(values_[fold.value], lanes, n);
    if (end % kLaneBlock != 0 && end != columns_) return;
    fold.fold.tree(lanes, lanes);
    push(fold, block.column / kLaneBlock, 1);
  }

  void run_columns() {
    for (int64_t row = 0; row < rows_; row += cut_.rows) {
      for (int64_t column = 0; column < columns_; column += cut_.columns) {
        const Block cells = {
            row,
            0,
            column,
            {std::min(cut_.rows, rows_ - row), 1, std::min(cut_.columns, columns_ - column)}};
        for (const SweepCode& sweep : code_.sweeps) {
          execute(sweep.cell_code, cells);
          sweep_columns(sweep, cells);
        }
        execute(code_.finish.cell_code, cells);
        store(code_.finish.stores, cells);
      }
    }
  }

  void sweep_columns(const SweepCode& sweep, const Block& cells) {
    spread_columns(sweep, cells.extents);
    const int64_t n = cells.extents.count();
    const int64_t blocks = (steps_ + kStepBlock - 1) / kStepBlock;
    for (const CellFold& fold : sweep.folds) {
      set_identity(fold, accumulators(fold, blocks), n);
    }
    for (int64_t number = 0; number < blocks; ++number) {
      const int64_t end = std::min(steps_, (number + 1) * kStepBlock);
      for (int64_t step = number * kStepBlock; step < end; step += cut_.steps) {
        Block block = cells;
        block.step = step;
        block.extents.steps = std::min(cut_.steps, end - step);
        execute(sweep.code, block);
        for (const CellFold& fold : sweep.folds) fold_steps(fold, block, blocks);
        store(sweep.stores, block);
      }
      if (blocks == 1) return;
      for (const CellFold& fold : sweep.folds) {
        push(fold, number, n);
        set_identity(fold, values_[fold.accumulators], n);
      }
    }
    if (blocks == 0) return;
    for (const CellFold& fold : sweep.folds) finish_fold(fold, blocks, n);
  }

  // A single block is folded in its final place.
  std::byte* accumulators(const CellFold& fold, int64_t blocks) const {
    return values_[blocks > 1 ? fold.accumulators : fold.result];
  }

  void spread_columns(const SweepCode& sweep, const Extents& cells) {
    for (const Spread& spread : sweep.spreads) {
      if (cut_.steps == 1) {
        values_[spread.to] = values_[spread.from];
        continue;
      }
      const Extents block = {cells.rows, cut_.steps, cells.columns};
      gather(values_[spread.to], values_[spread.from], block,
             {cells.columns * spread.size, 0, spread.size}, spread.size);
    }
  }

  void fold_steps(const CellFold& fold, const Block& block, int64_t blocks) {
    const Extents& e = block.extents;
    const std::byte* from = values_[fold.value];
    std::byte* to = accumulators(fold, blocks);
    for (int64_t row = 0; row < e.rows; ++row) {
      fold.fold.steps(from, to, e.steps, e.columns);
      from += e.steps * e.columns * fold.size;
      to += e.columns * fold.size;
    }
  }

  // Columns of a block that reads across: a cache line's worth of rows, many of columns.
  static constexpr int64_t kAcross = 64;

  const Code& code_;
  const KernelArgs& args_;
  std::byte* const scratch_;
  std::byte** const values_;
  int64_t rows_, steps_, columns_;
  Extents cut_;  // A block that no edge cuts short.
  int64_t level_count_ = 0;
};

}  // namespace

void interpret(const Code& code, const KernelArgs& args) {
  with_scratch(code.scratch_bytes,
               [&](std::byte* scratch) { Interpreter(code, args, scratch).run(); });
}

}  // namespace tidemark::tile
