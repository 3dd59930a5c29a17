// Validation, hashing and the text of loop nests.
#include "tidemark/loops/nest.h"

#include <cstring>
#include <limits>

#include "tidemark/base/error.h"
#include "tidemark/base/text.h"
#include "tidemark/loops/expr.h"

namespace tidemark {
namespace {

struct Hasher {
  uint64_t state = 0x9e3779b97f4a7c15U;

  template <class T>
  void add(T value) {
    state = (state ^ static_cast<uint64_t>(value)) * 0xff51afd7ed558ccdU;
    state ^= state >> 32;
  }
  void add(const std::vector<Store>& stores) {
    add(stores.size());
    for (const Store& store : stores) {
      add(store.buffer);
      add(store.expr);
    }
  }
};

template <class T>
T low_bytes(uint64_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

std::string constant_text(const Expr& expr) {
  if (expr.dtype == DType::boolean) return (expr.bits & 0xff) != 0 ? "true" : "false";
  return visit_dtype(expr.dtype, [&](auto zero) {
    using T = decltype(zero);
    TextStream out;
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
      out << static_cast<float>(low_bytes<T>(expr.bits));
    } else {
      out.precision(std::numeric_limits<T>::max_digits10);
      out << +low_bytes<T>(expr.bits);  // A number, where T is a character.
    }
    return out.str();
  });
}

std::string expr_text(const Expr& expr) {
  switch (expr.op) {
    case ExprOp::load:
      return cat("load b", expr.ref);
    case ExprOp::constant:
      return cat("constant ", constant_text(expr));
    case ExprOp::scalar:
    case ExprOp::cell:
      return cat(name(expr.op), " ", expr.ref);
    default: {
      std::string text = name(expr.op);
      for (int i = 0; i < arity(expr.op); ++i) text += cat(" e", expr.in[i]);
      return text;
    }
  }
}

std::string stores_text(const std::vector<Store>& stores) {
  std::string text;
  for (const Store& store : stores) text += cat("  b", store.buffer, " = e", store.expr, "\n");
  return text;
}

// Visits a nest in execution order, and records which cells have been folded.
class Verifier {
 public:
  explicit Verifier(const Nest& nest)
      : nest_(nest), cell_dtypes_(nest.cells, DType::f32), cell_sweeps_(nest.cells, -1) {}

  void run() {
    for (size_t i = 0; i < nest_.buffers.size(); ++i) buffer(i);
    find_folds();
    for (size_t i = 0; i < nest_.exprs.size(); ++i) expr(i);
    for (size_t i = 0; i < nest_.sweeps.size(); ++i) {
      std::vector<bool> read(nest_.exprs.size(), false);
      for (const Store& s : nest_.sweeps[i].stores) {
        store(s, read);
        TIDEMARK_CHECK(nest_.buffers[s.buffer].columns != BufferRef::Columns::repeat, "sweep ", i,
                       " stores to buffer ", s.buffer, ", which repeats one element");
      }
      for (const Fold& f : nest_.sweeps[i].folds) read[f.expr] = true;
      cells_read(read, static_cast<int>(i));
    }
    finish();
  }

 private:
  void buffer(size_t i) const {
    const BufferRef& ref = nest_.buffers[i];
    TIDEMARK_CHECK(!ref.streaming || (ref.written && ref.columns == BufferRef::Columns::unit),
                   "buffer ", i, " streams but is not written with unit columns");
  }

  void find_folds() {
    for (size_t i = 0; i < nest_.sweeps.size(); ++i) {
      for (const Fold& fold : nest_.sweeps[i].folds) {
        TIDEMARK_CHECK(fold.cell >= 0 && fold.cell < nest_.cells, "cell ", fold.cell, " of ",
                       nest_.cells);
        TIDEMARK_CHECK(cell_sweeps_[fold.cell] < 0, "cell ", fold.cell, " is folded twice");
        expr_exists(fold.expr);
        const DType dtype = nest_.exprs[fold.expr].dtype;
        TIDEMARK_CHECK(is_defined(fold.monoid, dtype), "cell ", fold.cell, ": no ",
                       name(fold.monoid), " of ", dtype);
        cell_dtypes_[fold.cell] = dtype;
        cell_sweeps_[fold.cell] = static_cast<int>(i);
      }
    }
    for (int32_t i = 0; i < nest_.cells; ++i) {
      TIDEMARK_CHECK(cell_sweeps_[i] >= 0, "cell ", i, " is never folded");
    }
  }

  void expr(size_t i) const {
    const Expr& e = nest_.exprs[i];
    const int count = arity(e.op);
    for (int k = 0; k < 3; ++k) {
      TIDEMARK_CHECK(k < count ? e.in[k] >= 0 && e.in[k] < static_cast<int64_t>(i) : e.in[k] == -1,
                     "e", i, " (", name(e.op), "): operand ", k, " is ", e.in[k]);
    }
    if (e.op == ExprOp::load) {
      TIDEMARK_CHECK(e.ref >= 0 && e.ref < static_cast<int64_t>(nest_.buffers.size()), "e", i,
                     " loads buffer ", e.ref);
      TIDEMARK_CHECK(e.dtype == nest_.buffers[e.ref].dtype, "e", i, " loads ", e.dtype, " from ",
                     nest_.buffers[e.ref].dtype);
    }
    if (e.op == ExprOp::scalar) TIDEMARK_CHECK(e.ref >= 0, "e", i, " reads scalar ", e.ref);
    if (e.op == ExprOp::cell) {
      TIDEMARK_CHECK(e.ref >= 0 && e.ref < nest_.cells, "e", i, " reads cell ", e.ref);
      TIDEMARK_CHECK(e.dtype == cell_dtypes_[e.ref], "e", i, " reads ", e.dtype, " from a cell of ",
                     cell_dtypes_[e.ref]);
    }
    // Of a select, the first operand is the mask and the last has the dtype in question.
    const DType operand = count == 0 ? e.dtype : nest_.exprs[e.in[count - 1]].dtype;
    for (int k = 0; k < count; ++k) {
      const bool mask = e.op == ExprOp::select && k == 0;
      const DType dtype = nest_.exprs[e.in[k]].dtype;
      TIDEMARK_CHECK(dtype == (mask ? DType::boolean : operand), "e", i, " (", name(e.op),
                     "): operand ", k, " is ", dtype);
    }
    TIDEMARK_CHECK(is_defined(e.op, e.dtype, operand), "e", i, ": no ", name(e.op), " of ", operand,
                   " giving ", e.dtype);
  }

  void expr_exists(int32_t i) const {
    TIDEMARK_CHECK(i >= 0 && i < static_cast<int64_t>(nest_.exprs.size()), "no expression ", i);
  }

  void store(const Store& s, std::vector<bool>& read) const {
    TIDEMARK_CHECK(s.buffer >= 0 && s.buffer < static_cast<int64_t>(nest_.buffers.size()),
                   "no buffer ", s.buffer);
    expr_exists(s.expr);
    TIDEMARK_CHECK(nest_.buffers[s.buffer].written, "store to buffer ", s.buffer,
                   ", which is not written");
    TIDEMARK_CHECK(nest_.buffers[s.buffer].dtype == nest_.exprs[s.expr].dtype, "e", s.expr,
                   " is stored to a buffer of ", nest_.buffers[s.buffer].dtype);
    read[s.expr] = true;
  }

  // Extends `read` by everything its evaluation needs, and checks that its cells were folded before
  // sweep `sweep`.
  void cells_read(std::vector<bool>& read, int sweep) const {
    for (size_t i = read.size(); i-- > 0;) {
      if (!read[i]) continue;
      const Expr& e = nest_.exprs[i];
      for (const int32_t in : e.in) {
        if (in >= 0) read[in] = true;
      }
      if (e.op == ExprOp::cell) {
        TIDEMARK_CHECK(cell_sweeps_[e.ref] < sweep, "sweep ", sweep, " reads cell ", e.ref,
                       ", folded by sweep ", cell_sweeps_[e.ref]);
      }
    }
  }

  void finish() const {
    std::vector<bool> read(nest_.exprs.size(), false);
    for (const Store& s : nest_.finish) store(s, read);
    cells_read(read, static_cast<int>(nest_.sweeps.size()));
    for (size_t i = 0; i < read.size(); ++i) {
      TIDEMARK_CHECK(!read[i] || nest_.exprs[i].op != ExprOp::index, "finish reads e", i,
                     ", an index");
    }
  }

  const Nest& nest_;
  std::vector<DType> cell_dtypes_;
  std::vector<int> cell_sweeps_;
};

template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
uint64_t identity(Monoid monoid) {
  using Limits = std::numeric_limits<T>;
  switch (monoid) {
    case Monoid::sum:
      return to_bits(T{0});
    case Monoid::product:
      return to_bits(T{1});
    case Monoid::minimum:
      return to_bits<T>(Limits::has_infinity ? Limits::infinity() : Limits::max());
    case Monoid::maximum:
      return to_bits<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  }
  return 0;
}

}  // namespace

uint64_t hash(const Nest& nest) {
  Hasher h;
  h.add(nest.order);
  h.add(nest.cells);
  h.add(nest.buffers.size());
  for (const BufferRef& ref : nest.buffers) {
    h.add(static_cast<uint64_t>(ref.dtype) | static_cast<uint64_t>(ref.columns) << 8 |
          static_cast<uint64_t>(ref.written) << 16 | static_cast<uint64_t>(ref.streaming) << 17);
  }
  h.add(nest.exprs.size());
  for (const Expr& e : nest.exprs) {
    h.add(static_cast<uint64_t>(e.op) | static_cast<uint64_t>(e.dtype) << 8 |
          static_cast<uint64_t>(static_cast<uint32_t>(e.ref)) << 16);
    for (const int32_t in : e.in) h.add(in);
    h.add(e.bits);
  }
  h.add(nest.sweeps.size());
  for (const Sweep& sweep : nest.sweeps) {
    h.add(sweep.stores);
    h.add(sweep.folds.size());
    for (const Fold& fold : sweep.folds) {
      h.add(fold.cell);
      h.add(fold.expr);
      h.add(fold.monoid);
    }
  }
  h.add(nest.finish);
  return h.state;
}

std::string to_text(const Nest& nest) {
  constexpr const char* columns[] = {"unit", "repeat", "strided"};
  std::string text = cat("nest ", nest.order == Nest::Order::lanes ? "lanes" : "columns", "\n");
  for (size_t i = 0; i < nest.buffers.size(); ++i) {
    const BufferRef& ref = nest.buffers[i];
    text += cat("  b", i, ": ", ref.dtype, " ", columns[static_cast<int>(ref.columns)],
                ref.written ? " written" : "", ref.streaming ? " streaming" : "", "\n");
  }
  for (size_t i = 0; i < nest.exprs.size(); ++i) {
    text += cat("  e", i, ": ", nest.exprs[i].dtype, " = ", expr_text(nest.exprs[i]), "\n");
  }
  for (size_t i = 0; i < nest.sweeps.size(); ++i) {
    text += cat("sweep ", i, "\n", stores_text(nest.sweeps[i].stores));
    for (const Fold& fold : nest.sweeps[i].folds) {
      text += cat("  cell ", fold.cell, " = ", name(fold.monoid), " e", fold.expr, "\n");
    }
  }
  if (!nest.finish.empty()) text += "finish\n" + stores_text(nest.finish);
  return text;
}

void verify(const Nest& nest) {
  TIDEMARK_CHECK(nest.cells >= 0, nest.cells, " cells");
  Verifier(nest).run();
}

uint64_t identity_bits(Monoid monoid, DType dtype) {
  TIDEMARK_CHECK(is_defined(monoid, dtype), "no ", name(monoid), " of ", dtype);
  return visit_dtype(dtype, [&](auto zero) -> uint64_t {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
      return 0;
    } else {
      return identity<T>(monoid);
    }
  });
}

}  // namespace tidemark
