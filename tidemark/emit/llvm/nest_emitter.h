// Emits one nest as one LLVM function: the loops are in emit_nest.cc; expressions, loads and stores
// in emit_value.cc.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tidemark/device/cpu/features.h"
#include "tidemark/emit/llvm/control_flow.h"
#include "tidemark/emit/llvm/lane_value.h"
#include "tidemark/loops/nest.h"

namespace tidemark::jit {

using lane::LaneValue;

// The position of a body: one vector of columns of one row and step.
struct Place {
  std::vector<llvm::Value*> origins;  // Address of column 0 of this row and step, per buffer.
  llvm::Value* row = nullptr;
  llvm::Value* step = nullptr;
  llvm::Value* column = nullptr;  // The first column of the vector.
  // A partial vector has `active` lanes, in [1, width]; null: all. With masked instructions `mask`
  // guards memory; otherwise elements are moved in pieces. `mask` is set in both cases.
  llvm::Value* active = nullptr;
  llvm::Value* mask = nullptr;
  // Whether all lanes are active, where code serves full and partial vectors; null: not known.
  llvm::Value* is_full = nullptr;
  // The first lane of this vector in a cell, which holds a block of columns (order `columns`).
  llvm::Value* cell_lane = nullptr;
  // Whether this vector may be stored past the caches; null: no.
  llvm::Value* stream = nullptr;
  int64_t vector = -1;  // Which vector of a row of known columns; -1: of any other.
};

// By expression: its emitted value; null if not emitted yet.
using Known = std::vector<llvm::Value*>;

class NestEmitter {
 public:
  NestEmitter(const Nest& nest, device::Isa isa, llvm::Module& module, const std::string& name,
              int64_t known_columns = 0);

  void emit();

 protected:
  // Maps the values carried from vector to vector to the next ones.
  using Body = std::function<Carried(const Place&, const Carried&)>;

  // Loops (emit_nest.cc).
  void load_arguments();
  void emit_pointwise();
  void emit_lanes();
  void emit_columns();
  void emit_known_rows();
  void emit_known_sweep(const Sweep& sweep, const Place& row);
  Place place_of_vector(const Place& row, int64_t vector);
  llvm::Value* total(const Fold& fold, std::vector<llvm::Value*> vectors);
  void emit_lane_sweep(const Sweep& sweep, const Place& row);
  void fold_lane_block(const Sweep& sweep, const Known& hoisted, const Place& row,
                       llvm::Value* begin, llvm::Value* end);
  Carried fold_lane_groups(const Sweep& sweep, const Known& hoisted, const Place& row,
                           llvm::Value* begin, llvm::Value* end, Carried partials);
  void fold_lanes_by_turns(const Sweep& sweep, const Known& hoisted, const Place& row,
                           llvm::Value* begin, llvm::Value* end, Carried partials);
  void fold_lanes_in_memory(const Sweep& sweep, const Known& hoisted, const Place& row,
                            llvm::Value* begin, llvm::Value* end);
  llvm::Value* lane_partial(const Fold& fold, llvm::Value* lane);
  void reduce_lanes(const Fold& fold);
  void finish_lane_row(const Place& row);
  void emit_column_sweep(const Sweep& sweep, const Place& row, llvm::Value* begin,
                         llvm::Value* end);
  void sweep_steps(const Sweep& sweep, const Place& row, llvm::Value* begin, llvm::Value* end,
                   llvm::Value* first_step, llvm::Value* last_step);
  void fold_column_vectors(const Sweep& sweep, const std::vector<Place>& places,
                           llvm::Value* first_step, llvm::Value* last_step);
  void emit_stores(const Sweep& sweep, Known& known, const Place& place);
  void allocate_cells();
  void push_blocks(const Sweep& sweep, llvm::Value* block, llvm::Value* blocks, llvm::Value* width);
  Carried vector_loop(const Place& at, llvm::Value* begin, llvm::Value* end, bool is_light,
                      const Carried& carried, const Body& body);
  Carried masked_vector_loop(const Place& at, llvm::Value* begin, llvm::Value* end,
                             const Carried& carried, const Body& body);
  void vector_loop(const Place& at, llvm::Value* begin, llvm::Value* end, bool is_light,
                   const std::function<void(const Place&)>& body);
  Place place_of_row(llvm::Value* row);
  Place place_of_step(const Place& row, llvm::Value* step);

  // Expressions (emit_value.cc).
  llvm::Value* value(int32_t expr, Known& known, const Place& place);
  llvm::Value* compute(const Expr& expr, int32_t id, Known& known, const Place& place);
  llvm::Value* first_index(const Place& place);
  struct Progression {
    llvm::Value* first;
    llvm::Value* step;
  };
  // By expression. Expressions share operands: without the memo each would be visited once for
  // every read.
  using Progressions = std::map<int32_t, std::optional<Progression>>;
  std::optional<Progression> progression(int32_t id, const Place& place, Progressions& made);
  std::optional<Progression> make_progression(const Expr& expr, const Place& place,
                                              Progressions& made);
  llvm::Value* lane_multiples(llvm::Value* step, DType dtype);
  llvm::Value* arithmetic_progression(const Expr& expr, int32_t id, const Place& place);
  llvm::Value* float_math(const Expr& expr, LaneValue a, LaneValue b, LaneValue c);
  llvm::Value* integer_math(const Expr& expr, LaneValue a, LaneValue b);
  llvm::Value* truncated_quotient(llvm::Value* a, llvm::Value* b, DType dtype);
  llvm::Value* integer_quotient(LaneValue a, LaneValue b, DType dtype);
  llvm::Value* integer_power(LaneValue base, LaneValue exponent, DType dtype);
  llvm::Value* compare(ExprOp op, LaneValue a, LaneValue b, DType dtype);
  llvm::Value* cast(llvm::Value* from, DType from_dtype, DType to);
  llvm::Value* saturated(llvm::Value* from, llvm::Type* type, bool is_unsigned);
  llvm::Value* combine(Monoid monoid, DType dtype, llvm::Value* a, llvm::Value* b);
  llvm::Value* extreme(bool is_maximum, DType dtype, LaneValue a, LaneValue b);
  LaneValue lane(llvm::Value* value) { return {value, &builder_}; }

  // Memory (emit_value.cc).
  llvm::Value* load(int32_t buffer, const Place& place);
  llvm::Value* load_elements(int32_t buffer, const Place& place);
  void fetch(llvm::Value* address);
  llvm::Value* load_strided(const BufferRef& ref, llvm::Value* address, llvm::Value* stride,
                            const Place& place);
  llvm::Value* load_partial_strided(const BufferRef& ref, llvm::Value* address, llvm::Value* stride,
                                    const Place& place);
  llvm::Value* load_full_strided(DType dtype, llvm::Value* address, llvm::Value* stride);
  void store(int32_t buffer, llvm::Value* value, const Place& place);
  void store_strided(const BufferRef& ref, llvm::Value* value, llvm::Value* address,
                     llvm::Value* stride, const Place& place);
  void for_piece(llvm::Value* active, int64_t lanes, Carried& carried,
                 const std::function<Carried(llvm::Value* at, const Carried&)>& body);
  llvm::Value* load_pieces(DType dtype, llvm::Value* address, llvm::Value* active);
  void store_pieces(DType dtype, llvm::Value* value, llvm::Value* address, llvm::Value* active);
  int64_t register_lanes(int64_t size) const;
  llvm::Value* register_mask(const Place& place, int64_t size);
  // unmasked(), or masked() for a vector that is not full.
  llvm::Value* masked_if_partial(const Place& place, const std::function<llvm::Value*()>& unmasked,
                                 const std::function<llvm::Value*()>& masked);
  llvm::Value* widened(llvm::Value* value, int64_t size);
  llvm::Value* narrowed(llvm::Value* value);
  llvm::Value* cell_address(int32_t cell, const Place& place);
  llvm::Value* constant(DType dtype, uint64_t bits, int64_t width);
  llvm::Value* to_memory(llvm::Value* value, DType dtype);
  llvm::Value* from_memory(llvm::Value* value, DType dtype);
  llvm::Value* splat(llvm::Value* scalar);
  llvm::Value* offset(llvm::Value* base, llvm::Value* bytes);
  llvm::Value* lane_mask(llvm::Value* active, int64_t lanes);
  llvm::Type* register_type(DType dtype, int64_t width);
  llvm::Type* memory_type(DType dtype, int64_t width);
  llvm::Constant* lane_numbers();
  llvm::Value* times(llvm::Value* a, int64_t b);

  llvm::Value* identity(const Fold& fold, int64_t width);
  DType dtype_of(const Fold& fold) const { return nest_.exprs[size_t(fold.expr)].dtype; }

  // Values that are constant for a row and step (pointwise, lanes) or for all steps (columns).
  void find_fixed();
  void hoist(const Sweep& sweep, Known& known, const Place& place);
  void hoist(int32_t expr, std::vector<bool>& seen, Known& known, const Place& place);

  const Nest& nest_;
  const int64_t known_columns_;
  const device::Isa isa_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> builder_;
  llvm::Function* function_;
  const bool has_masks_;
  int64_t width_ = 1;  // Lanes of a vector; 1 while `finish` of the order `lanes` is written.
  int64_t column_vectors_ = 1;  // Vectors of columns folded side by side (order `columns`).
  int64_t column_block_ = 1;    // Columns of one cell (order `columns`).

  llvm::Value* rows_ = nullptr;
  llvm::Value* steps_ = nullptr;
  llvm::Value* columns_ = nullptr;
  llvm::Value* index_base_ = nullptr;
  llvm::Value* index_row_ = nullptr;
  llvm::Value* scratch_ = nullptr;
  llvm::Value* steps_per_turn_ = nullptr;  // Order `columns`: see emit_columns.
  bool fetches_ahead_ = false;             // Whether loads also prefetch the next row.
  llvm::Value* stream_ = nullptr;  // Whether every streaming buffer is aligned in this call.
  struct Buffer {
    llvm::Value* data;
    llvm::Value* row;
    llvm::Value* step;
    llvm::Value* column;
  };
  std::vector<Buffer> buffers_;
  std::vector<llvm::Value*> scalars_;        // As words; by number, null where never read.
  std::vector<llvm::Value*> cells_;          // Where each cell is kept.
  std::vector<llvm::Value*> lane_partials_;  // Per cell: 64 lanes (order `lanes`).
  std::vector<llvm::Value*> levels_;         // Per cell: partial results of blocks.
  std::vector<DType> cell_dtypes_;
  // Rows of known columns: elements of buffers that the row has loaded or will store, by buffer and
  // vector, and its cells.
  std::map<std::pair<int32_t, int64_t>, llvm::Value*> row_elements_;
  std::map<int32_t, llvm::Value*> row_cells_;
  std::vector<char> fixed_;  // Per expression.
};

}  // namespace tidemark::jit
