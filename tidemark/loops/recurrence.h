// A loop on a few numbers as one kernel: its carries stay in registers.
//
// Expressions are those of a nest, on single numbers, except for:
//
//   load    ref: an access; the element it finds.
//   cell    ref: a register, as it is at the start of the trip.
//   index   the number of the trip, from 0.
//   scalar  the most trips there may be.
//
// A call has at most `columns` trips. If an index is out of range, it stops and stores the number
// of the access and the index in the first two words of the scratch.
#pragma once

#include <cstdint>
#include <vector>

#include "tidemark/loops/nest.h"

namespace tidemark {

struct Recurrence {
  // An element of memory: number first + scale * index of a buffer.
  struct Access {
    int32_t buffer = 0;
    DType dtype = DType::f32;
    int64_t first = 0, scale = 0;
    int32_t index = -1;  // An expression (i64); -1: none.
    int64_t bound = -1;  // The index is in [-bound, bound), negative ones count from the end; -1:
                         // it is known to be right.
  };
  struct Register {
    int32_t start = 0, next = 0;  // Expressions.
  };
  // A load if the access' expression is a load of it, else a store of that expression.
  struct Move {
    int32_t access = 0, expr = 0;
  };

  std::vector<Expr> exprs;  // In order of dependence.
  std::vector<Access> accesses;
  std::vector<Register> registers;
  std::vector<Move> before;  // Loads, once.
  int32_t condition =
      -1;  // A bool: the loop ends when it is false. It reads no memory that a trip writes.
  std::vector<Move> moves;  // Of a trip, in order.
  std::vector<Move> after;  // Stores of registers, once.
  int32_t buffers = 0;
};

}  // namespace tidemark
