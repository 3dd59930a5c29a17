#include "tidemark/ops/linalg.h"

#include <algorithm>

#include "tidemark/ops/contract.h"
#include "tidemark/ops/indexing.h"
#include "tidemark/ops/random.h"
#include "tidemark/ops/structure.h"
#include "tidemark/ops/term_ops.h"
#include "tidemark/types/size.h"

namespace tidemark::ops {
namespace rule {
namespace {

// ---- types --------------------------------------------------------------------------------------

void check_matrices(const InferContext& context, const TensorType& x) {
  if (x.shape.rank() < 2)
    throw UserError(cat(context.op.name, ": takes matrices, got ", x), context.at,
                    "the last two axes are a matrix's, those before them a batch's");
  if (x.dtype != DType::f32 && x.dtype != DType::f64)
    throw UserError(cat(context.op.name, ": computes in f32 and f64, got ", x), context.at,
                    "cast it: td::cast(x, td::f32)");
}

void check_square(const InferContext& context, const TensorType& x) {
  check_matrices(context, x);
  if (x.shape[-1] != x.shape[-2])
    throw UserError(cat(context.op.name, ": takes square matrices, got ", x), context.at,
                    "the last two sizes must be equal");
}

// The batch of a type, then these axes.
Shape with_last(const TensorType& x, std::initializer_list<Dim> last) {
  Shape shape;
  for (int64_t i = 0; i < x.shape.rank() - 2; ++i) shape.push_back(x.shape[i]);
  for (const Dim size : last) shape.push_back(size);
  return shape;
}

}  // namespace

TensorType infer_square(const InferContext& context) {
  check_square(context, context.operands[0]);
  return context.operands[0];
}

TensorType infer_solve(const InferContext& context) {
  const TensorType &a = context.operands[0], &b = context.operands[1];
  check_square(context, a);
  check_matrices(context, b);
  if (b.shape.rank() != a.shape.rank() || b.dtype != a.dtype ||
      b.shape != with_last(a, {a.shape[-1], b.shape[-1]}))
    throw UserError(cat(context.op.name, ": right sides ", b, " do not fit ", a), context.at,
                    "they have as many rows as the matrix, and the batch of it");
  return b;
}

TensorType infer_lu(const InferContext& context) {
  const TensorType& x = context.operands[0];
  check_square(context, x);
  return context.result == 0 ? x : TensorType{DType::i64, with_last(x, {x.shape[-1]})};
}

TensorType infer_qr(const InferContext& context) {
  const TensorType& x = context.operands[0];
  check_matrices(context, x);
  const Dim m = x.shape[-2], n = x.shape[-1];
  const Dim k = context.attrs.read().boolean() ? m : smaller(m, n);
  return {x.dtype, context.result == 0 ? with_last(x, {m, k}) : with_last(x, {k, n})};
}

TensorType infer_eigh(const InferContext& context) {
  const TensorType& x = context.operands[0];
  check_square(context, x);
  return {x.dtype, context.result == 0 ? with_last(x, {x.shape[-1]}) : x.shape};
}

TensorType infer_svd(const InferContext& context) {
  const TensorType& x = context.operands[0];
  check_matrices(context, x);
  const Dim m = x.shape[-2], n = x.shape[-1], k = smaller(m, n);
  const Shape shapes[] = {with_last(x, {m, k}), with_last(x, {k}), with_last(x, {k, n})};
  return {x.dtype, shapes[context.result]};
}

TensorType infer_pinv(const InferContext& context) {
  const TensorType& x = context.operands[0];
  check_matrices(context, x);
  return {x.dtype, with_last(x, {x.shape[-1], x.shape[-2]})};
}

}  // namespace rule

double pinv_cutoff(const Shape& shape, DType dtype, double rtol) {
  const double epsilon = dtype == DType::f32 ? 0x1p-23 : 0x1p-52;
  const double longer = static_cast<double>(std::max(int64_t{shape[-2]}, int64_t{shape[-1]}));
  return rtol >= 0 ? rtol : longer * epsilon;
}

namespace rule {

// ---- gradients ----------------------------------------------------------------------------------

namespace {

Term turned(Term x) {
  AxisList order;
  for (int64_t i = 0; i < x.shape().rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return term::transpose(x, order);
}

Term product(Term a, Term b) { return matmul.apply({a, b}, {}); }

// The numbers 0, 1, ... along one of the last two axes of x, which is of size 1 along the other.
Term numbers(Term x, bool of_rows) {
  const Dim size = x.shape()[of_rows ? -2 : -1];
  const Attrs attrs = arange_attrs(size, DType::i64);
  const Term list{x.builder, x.builder->apply(def_of(&arange), {}, attrs)};
  return of_rows ? term::reshape(list, {size, 1}) : list;
}

// The triangle on or below (above) the diagonal number `offset`, counted upwards; zeros elsewhere.
Term lower_part(Term x, double offset) {
  const Term beyond = term::less(numbers(x, true) + offset, numbers(x, false));
  return term::where(beyond, x.like(0), x);
}
Term upper_part(Term x, double offset) {
  const Term before = term::less(numbers(x, false), numbers(x, true) + offset);
  return term::where(before, x.like(0), x);
}
Term on_diagonal(Term x) { return term::equal(numbers(x, true), numbers(x, false)); }

// A vector as a row, or as a column, of a matrix.
Term as_row(Term v) {
  Shape shape = v.shape();
  shape.insert(shape.rank() - 1, 1);
  return term::reshape(v, shape);
}
Term as_column(Term v) {
  Shape shape = v.shape();
  shape.push_back(1);
  return term::reshape(v, shape);
}

// diag(v), in the shape of x.
Term diagonal_like(Term x, Term v) {
  return term::where(on_diagonal(x), term::broadcast_to(as_row(v), x.shape()), x.like(0));
}

Term symmetric(Term x) { return (x + turned(x)) * 0.5; }

Term triangular(Term a, Term b, bool lower, bool transposed, bool unit = false) {
  return solve_triangular.apply({a, b}, Attrs().add(lower).add(transposed).add(unit));
}

// The gradients of results that matter; the others are empty.
struct Gradients {
  Term by[3];
  explicit Gradients(const GradContext& context) {
    by[0] = context.g;
    for (size_t i = 0; i < context.gradients.size() && i < 3; ++i) by[i] = context.gradients[i];
  }
};

Term sum_of(Term a, Term b) { return !a ? b : !b ? a : a + b; }

// 1 / (a_j - a_i), and 0 where they are equal: nothing is known about vectors of equal values.
Term inverse_differences(Term a) {
  const Term apart = as_row(a) - as_column(a);
  const Term same = term::equal(apart, apart.like(0));
  return term::where(same, apart.like(0), apart.like(1) / term::where(same, apart.like(1), apart));
}

// 1 / (a_j + a_i), and 0 where both are 0.
Term inverse_sums(Term a) {
  const Term both = as_row(a) + as_column(a);
  const Term none = term::equal(both, both.like(0));
  return term::where(none, both.like(0), both.like(1) / term::where(none, both.like(1), both));
}

}  // namespace

// Murray, Differentiation of the Cholesky decomposition, 2016. The factor is that of the symmetric
// part, so the gradient is symmetric.
Term grad_cholesky(const GradContext& context, int) {
  const Term l = context.result;
  const Term inner = product(turned(l), lower_part(context.g, 0));
  const Term half = lower_part(term::where(on_diagonal(inner), inner * 0.5, inner), 0);
  const Term left = triangular(l, half, true, true);
  return symmetric(triangular(l, turned(left), true, true));
}

Term grad_solve_triangular(const GradContext& context, int index) {
  Attrs::Reader read = context.attrs.read();
  const bool lower = read.boolean(), transposed = read.boolean(), unit = read.boolean();
  const Term a = context.operands[0], x = context.result;
  const Term by_b = triangular(a, context.g, lower, !transposed, unit);
  if (index == 1) return by_b;
  const Term by_a = -(transposed ? product(x, turned(by_b)) : product(by_b, turned(x)));
  const double offset = unit ? 1 : 0;
  return lower ? lower_part(by_a, -offset) : upper_part(by_a, offset);
}

Term grad_solve(const GradContext& context, int index) {
  const bool transposed = context.attrs.read().boolean();
  const Term x = context.result;
  const Term by_b = solve.apply({context.operands[0], context.g}, Attrs().add(!transposed));
  if (index == 1) return by_b;
  return -(transposed ? product(x, turned(by_b)) : product(by_b, turned(x)));
}

// With rows in order, p = l u: the strict lower triangle of l^T g_l and the upper one of g_u u^T,
// between the inverses of l^T and u^T. Then each row returns to its place.
Term grad_lu(const GradContext& context, int) {
  const Term lu = context.results[0], g = context.g;
  const Term l = lower_part(lu, -1), u = upper_part(lu, 0);
  const Term g_l = lower_part(g, -1), g_u = upper_part(g, 0);
  const Term inner =
      lower_part(product(turned(l), g_l) + g_l, -1) + upper_part(product(g_u, turned(u)), 0);
  const Term left = triangular(lu, inner, true, true, true);
  const Term rows = turned(triangular(lu, turned(left), false, false));
  const Term places = term::broadcast_to(as_column(context.results[1]), g.shape());
  return scatter_add.apply({g.like(0), places, rows}, Attrs().add(g.shape().rank() - 2).add(true));
}

namespace {

// Of a matrix with at least as many rows as columns (Walter and Lehmann, Algorithmic
// differentiation of linear algebra functions, 2010).
Term grad_tall_qr(Term q, Term r, Term g_q, Term g_r) {
  Term inner = g_r ? product(r, turned(g_r)) : Term();
  if (g_q) inner = sum_of(inner, -product(turned(g_q), q));
  const Term mirrored = lower_part(inner, 0) + turned(lower_part(inner, -1));
  const Term both = sum_of(product(q, mirrored), g_q);
  return turned(triangular(r, turned(both), false, false));
}

Term columns_of(Term x, Dim begin, Dim end) {
  const auto rank = static_cast<size_t>(x.shape().rank());
  DimList begins(rank, 0), ends;
  for (const Dim size : x.shape()) ends.push_back(size);
  begins[rank - 1] = begin;
  ends[rank - 1] = end;
  return term::slice(x, begins, ends, AxisList(rank, 1));
}

}  // namespace

// What is right of the square part of a wide matrix is q times what is right of that of r.
Term grad_qr(const GradContext& context, int) {
  const Term x = context.operands[0], q = context.results[0], r = context.results[1];
  const Gradients g(context);
  const Dim m = x.shape()[-2], n = x.shape()[-1];
  if (context.attrs.read().boolean() && is_less(n, m))
    throw UserError(cat("qr: the gradient of the complete q of ", x.type(), " is not defined"),
                    Source::none(), "nothing determines its last columns: leave out .complete");
  if (!is_less(m, n)) return grad_tall_qr(q, r, g.by[0], g.by[1]);
  const Term right = columns_of(x, m, n);
  Term g_q = g.by[0], g_left, g_right = right.like(0);
  if (g.by[1]) {
    g_left = columns_of(g.by[1], 0, m);
    const Term beside = columns_of(g.by[1], m, n);
    g_q = sum_of(g_q, product(right, turned(beside)));
    g_right = product(q, beside);
  }
  const Term left = grad_tall_qr(q, columns_of(r, 0, m), g_q, g_left);
  return concat.apply({left, g_right}, Attrs().add(x.shape().rank() - 1));
}

Term grad_eigh(const GradContext& context, int) {
  const Term values = context.results[0], v = context.results[1];
  const Gradients g(context);
  Term inner = g.by[0] ? diagonal_like(v, g.by[0]) : Term();
  if (g.by[1]) inner = sum_of(inner, product(turned(v), g.by[1]) * inverse_differences(values));
  return symmetric(product(v, product(inner, turned(v))));
}

// Townsend, Differentiating the singular value decomposition, 2016, with s_j / (s_j^2 - s_i^2)
// taken apart: where values are equal u and v can still turn opposite ways, as those of u vh do.
Term grad_svd(const GradContext& context, int) {
  const Term x = context.operands[0];
  const Term u = context.results[0], s = context.results[1], vh = context.results[2];
  const Gradients g(context);
  const Dim m = x.shape()[-2], n = x.shape()[-1];
  const auto skew = [](Term rows, Term g_columns) {
    const Term along = product(rows, g_columns);
    return along - turned(along);
  };
  Term inner = g.by[1] ? diagonal_like(product(vh, turned(vh)), g.by[1]) : Term();
  Term turns, counter_turns;  // By u and v turning the same way, and opposite ways.
  Term outside;               // What leaves the spaces of u and of v.
  if (g.by[0]) {
    turns = counter_turns = skew(turned(u), g.by[0]);
    if (is_less(n, m)) {
      const Term left = g.by[0] / as_row(s);
      outside = product(left - product(u, product(turned(u), left)), vh);
    }
  }
  if (g.by[2]) {
    const Term along = skew(vh, turned(g.by[2]));
    turns = sum_of(turns, along);
    counter_turns = counter_turns ? counter_turns - along : -along;
    if (is_less(m, n)) {
      const Term right = g.by[2] / as_column(s);
      outside = sum_of(outside, product(u, right - product(product(right, turned(vh)), vh)));
    }
  }
  if (turns)
    inner = sum_of(inner, (turns * inverse_differences(s) + counter_turns * inverse_sums(s)) * 0.5);
  return sum_of(product(u, product(inner, vh)), outside);
}

// Golub and Pereyra, The differentiation of pseudo-inverses, 1973: while the rank stays the same.
Term grad_pinv(const GradContext& context, int) {
  const Term a = context.operands[0], p = context.result, g = context.g;
  const Term pt = turned(p), gt = turned(g);
  const Term through = -product(pt, product(g, pt));
  const Term left = product(gt, product(p, pt));   // g^T p p^T
  const Term right = product(pt, product(p, gt));  // p^T p g^T
  return through + (left - product(a, product(p, left))) + (right - product(right, product(p, a)));
}

// The derivative in a direction is a corner of the exponential of a matrix of blocks.
Term grad_expm(const GradContext& context, int) {
  const Term at = turned(context.operands[0]), g = context.g;
  const int64_t rank = g.shape().rank();
  const Dim n = g.shape()[-1];
  const auto placed = [&](Term x, bool below, bool right) {
    DimList low(static_cast<size_t>(rank), 0), high(static_cast<size_t>(rank), 0);
    (below ? low : high)[static_cast<size_t>(rank - 2)] = n;
    (right ? low : high)[static_cast<size_t>(rank - 1)] = n;
    return pad.apply({x}, Attrs()
                              .add(low)
                              .add(high)
                              .add(AxisList(static_cast<size_t>(rank), 0))
                              .add(0.0)
                              .add(int64_t{0}));
  };
  const Term blocks = placed(at, false, false) + placed(at, true, true) + placed(g, false, true);
  const Term made = expm.apply({blocks}, {});
  DimList begins(static_cast<size_t>(rank), 0), ends;
  for (const Dim size : g.shape()) ends.push_back(size);
  begins[static_cast<size_t>(rank - 1)] = n;
  ends[static_cast<size_t>(rank - 1)] = n + n;
  return term::slice(made, begins, ends, AxisList(static_cast<size_t>(rank), 1));
}

}  // namespace rule
}  // namespace tidemark::ops
