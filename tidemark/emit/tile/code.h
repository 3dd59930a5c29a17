// The bytecode of a nest for the interpreter.
//
// Each expression is evaluated as rarely as possible, at one of three levels:
//
//   call      constants, scalars and what follows from them: once per call, one element.
//   cell      what has one value per cell (lanes: per row; columns: per row and column): cells, and
//             in lanes order also loads that repeat along columns. Once per group of cells.
//   element   all else, a block at a time.
//
// A value read at a later level than its own is first broadcast to a register of that level.
//
// A value is an index into a table of pointers. Each has a home, a register in the interpreter's
// scratch memory; but a load whose elements lie side by side points at the buffer itself, and so
// does the result of an instruction that is stored.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/device/cpu/features.h"
#include "tidemark/emit/tile/instructions.h"
#include "tidemark/loops/nest.h"

namespace tidemark::tile {

// The most elements of a register. Nests with many live values have shorter ones: all registers of
// a call are on the stack of the thread that runs it.
inline constexpr int64_t kLongestTile = 1024;
// Registers for the partial results of a fold along steps. With more levels than this, blocks have
// fewer columns.
inline constexpr int64_t kLevelRegisters = 8;

struct Instruction {
  enum class Kind : uint8_t { apply, load, index } kind = Kind::apply;
  // load: the elements are copied even if they could be used in place.
  bool copies = false;
  uint8_t size = 0;     // Bytes of one element of the result.
  int32_t buffer = -1;  // load: where from. apply: where the result is stored directly, or -1.
  TileFunction function = nullptr;
  int32_t in[3] = {-1, -1, -1};
  int32_t out = -1;
};

struct Spread {
  int32_t from = -1, to = -1;
  uint8_t size = 0;
};

struct StoreFrom {
  int32_t buffer = -1, value = -1;
  bool done = false;  // The instruction that computes the value may already have stored it.
};

struct CellFold {
  int32_t value = -1, result = -1;
  uint8_t size = 0;
  uint64_t identity = 0;
  FoldFunctions fold;
  TileFunction combine = nullptr;
  // Of the register of accumulators (or 64 lanes), and of the stack of partial results.
  int32_t accumulators = -1, levels = -1;
};

struct SweepCode {
  std::vector<Instruction> cell_code;
  std::vector<Spread> spreads;
  std::vector<Instruction> code;
  std::vector<CellFold> folds;
  std::vector<StoreFrom> stores;
};

struct Code {
  struct CallNumber {  // A constant, or the call's scalar number `scalar`.
    int32_t value = -1, scalar = -1;
    uint64_t bits = 0;
  };
  Nest::Order order = Nest::Order::lanes;
  // Elements of a register. A multiple of 64 that divides 4096, so that blocks begin at lane 0.
  int64_t tile = kLongestTile;
  std::vector<BufferRef> buffers;
  std::vector<CallNumber> given;
  std::vector<Instruction> call_code;
  std::vector<Spread> call_spreads;
  std::vector<SweepCode> sweeps;
  SweepCode finish;            // Only its cell_code and stores.
  std::vector<int64_t> homes;  // Of each value, in bytes from the start of scratch.
  int64_t values_bytes = 0;    // The table of pointers, which comes first.
  int64_t scratch_bytes = 0;
  bool folds = false;
  // If all buffers are contiguous, no element passes through a register, so blocks may be longer.
  bool registers = false;
  bool reads_index = false;
};

Code compile(const Nest& nest, device::Isa isa);

}  // namespace tidemark::tile
