#include "tidemark/calls/linalg.h"

#include <cmath>

#include "tidemark/calls/create.h"
#include "tidemark/ops/linalg.h"
#include "tidemark/ops/typing.h"
#include "tidemark/tensor/bind.h"
#include "tidemark/tensor/tensor_state.h"
#include "tidemark/types/size.h"

namespace tidemark::linalg {
namespace {

using detail::bind_op;
using detail::bind_results;
using detail::tensor_of;
using detail::Tensors;
using detail::type_of;

// Results are as wide as operands are; what is computed is f32 or f64.
DType float_of(DType dtype) { return is_float(dtype) ? dtype : DType::f32; }
DType computed_in(DType dtype) { return is_low_precision(dtype) ? DType::f32 : dtype; }

struct Matrices {
  Tensor wide;
  DType dtype;  // Of the results.

  Matrices(const Operand& x, std::string_view name, Source at) : wide(tensor_of(x, at)) {
    if (is_complex(wide.dtype())) refuse_complex(OnComplex::refused, name, at);
    dtype = float_of(wide.dtype());
    if (wide.rank() < 2)
      throw UserError(cat(name, ": takes matrices, got ", type_of(wide, at)), at,
                      "the last two axes are a matrix's, those before them a batch's");
    wide = cast(wide, computed_in(dtype), at);
  }
  void check_square(std::string_view name, Source at) const {
    if (wide.shape()[-1] != wide.shape()[-2])
      throw UserError(cat(name, ": takes square matrices, got ", type_of(wide, at)), at,
                      "the last two sizes must be equal");
  }
  Tensor narrow(const Tensor& result, Source at) const {
    return result.dtype() == DType::i64 ? result : cast(result, dtype, at);
  }
  Tensor run(const NamedOp& op, const Attrs& attrs, Source at) const {
    return narrow(bind_op(def_of(&op), {&wide, 1}, attrs, at), at);
  }
  // Those results whose bit is set.
  Tensors run_some(const NamedOp& op, const Attrs& attrs, uint32_t wanted, Source at) const {
    Tensors results = bind_results(def_of(&op), {&wide, 1}, attrs, wanted, at);
    for (size_t i = 0; i < results.size(); ++i)
      if ((wanted >> i & 1) != 0) results[i] = narrow(results[i], at);
    return results;
  }
};

Shape batch_of(const Shape& shape) {
  Shape batch;
  for (int64_t i = 0; i + 2 < shape.rank(); ++i) batch.push_back(shape[i]);
  return batch;
}

Shape with_last(Shape batch, Dim rows, Dim columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

// A system: matrices and right sides of one dtype and batch.
struct System {
  Tensor a, b;
  DType dtype;
  bool is_vector;

  System(const Operand& left, const Operand& right, std::string_view name, bool square, Source at)
      : a(tensor_of(left, at)), b(tensor_of(right, at)), is_vector(b.rank() == 1) {
    dtype = float_of(promote(a.dtype(), b.dtype()));
    const TensorType of_a = type_of(a, at), of_b = type_of(b, at);
    if (is_vector) b = expand_dims(b, 1, at);
    const bool are_matrices = a.rank() >= 2 && b.rank() >= 2;
    if (!are_matrices)
      throw UserError(cat(name, ": takes matrices, got ", of_a, " and ", of_b), at,
                      "the last two axes are a matrix's, those before them a batch's");
    if (square && a.shape()[-1] != a.shape()[-2])
      throw UserError(cat(name, ": takes square matrices, got ", of_a), at,
                      "the last two sizes must be equal");
    if (a.shape()[-2] != b.shape()[-2])
      throw UserError(cat(name, ": right sides ", of_b, " do not fit ", of_a), at,
                      "they have as many rows as the matrix");
    Shape batch = batch_of(a.shape());
    broadcast_into(batch, batch_of(b.shape()), name, at);
    a = spread(a, batch, at);
    b = spread(b, batch, at);
  }
  Tensor run(const NamedOp& op, const Attrs& attrs, Source at) const {
    const Tensor operands[] = {a, b};
    return narrow(bind_op(def_of(&op), operands, attrs, at), at);
  }
  Tensor narrow(const Tensor& x, Source at) const {
    return cast(is_vector ? squeeze(x, -1, at) : x, dtype, at);
  }

 private:
  Tensor spread(const Tensor& x, const Shape& batch, Source at) const {
    return broadcast_to(cast(x, computed_in(dtype), at),
                        with_last(batch, x.shape()[-2], x.shape()[-1]), at);
  }
};

Attrs triangular_attrs(TriangularOptions options) {
  return Attrs().add(options.lower).add(options.transposed).add(options.unit_diagonal);
}

double cutoff_of(RankOptions options) { return options.rtol ? *options.rtol : -1; }

// 1 for an even permutation, -1 for an odd one: how many pairs are out of order.
Tensor parity(const Tensor& permutation, DType dtype) {
  const Tensor pairs = expand_dims(permutation, -1) > expand_dims(permutation, -2);
  const Tensor count = sum(triu(cast(pairs, DType::i64), 1), {-2, -1});
  return cast(1 - 2 * (count % 2), dtype);
}

struct Eliminated {
  Tensor diagonal, parity;
};
Eliminated eliminated(const Matrices& x, Source at) {
  const Tensors made = bind_results(def_of(&ops::lu), {&x.wide, 1}, {}, 3, at);
  return {diagonal(made[0]), parity(made[1], x.wide.dtype())};
}

// q with further columns that make it square.
Tensor completed(const Tensor& q, Source at) {
  const Dim rows = q.shape()[-2], columns = q.shape()[-1];
  if (rows == columns) return q;
  const Tensor whole = bind_results(def_of(&ops::qr), {&q, 1}, Attrs().add(true), 1, at)[0];
  const auto rank = static_cast<size_t>(q.rank());
  DimList begin(rank, 0);
  begin[rank - 1] = columns;
  Shape size = q.shape();
  size.set(q.rank() - 1, rows - columns);
  const Tensor rest = bind_op(def_of(&ops::slice), {&whole, 1},
                              Attrs().add(begin).add(size).add(AxisList(rank, 1)), at);
  return concat({q, rest}, -1, at);
}

Tensor turned(const Tensor& x) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

}  // namespace

Tensor cholesky(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "cholesky", at);
  return matrices.run(ops::cholesky, {}, at);
}

Tensor solve_triangular(const Operand& a, const Operand& b, TriangularOptions options, Source at) {
  const SourceScope scope(at);
  return System(a, b, "solve_triangular", true, at)
      .run(ops::solve_triangular, triangular_attrs(options), at);
}

Tensor cholesky_solve(const Operand& l, const Operand& b, Source at) {
  const SourceScope scope(at);
  System system(l, b, "cholesky_solve", true, at);
  const OpDef& op = def_of(&ops::solve_triangular);
  for (const bool transposed : {false, true}) {
    const Tensor operands[] = {system.a, system.b};
    system.b = bind_op(op, operands, triangular_attrs({.transposed = transposed}), at);
  }
  return system.narrow(system.b, at);
}

Tensor solve(const Operand& a, const Operand& b, SolveOptions options, Source at) {
  const SourceScope scope(at);
  return System(a, b, "solve", true, at).run(ops::solve, Attrs().add(options.transposed), at);
}

Tensor inv(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "inv", at);
  matrices.check_square("inv", at);
  const Shape& shape = matrices.wide.shape();
  const Tensor identity =
      broadcast_to(triu(tril(ones(Shape{shape[-1], shape[-1]}, matrices.wide.dtype()))), shape);
  const Tensor operands[] = {matrices.wide, identity};
  return matrices.narrow(bind_op(def_of(&ops::solve), operands, Attrs().add(false), at), at);
}

Tensor det(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "det", at);
  matrices.check_square("det", at);
  const Eliminated made = eliminated(matrices, at);
  return matrices.narrow(prod(made.diagonal, -1) * made.parity, at);
}

Slogdet slogdet(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "slogdet", at);
  matrices.check_square("slogdet", at);
  const Eliminated made = eliminated(matrices, at);
  const Tensor signs = prod(sign(made.diagonal), -1) * made.parity;
  return {matrices.narrow(signs, at), matrices.narrow(sum(log(abs(made.diagonal)), -1), at)};
}

Lu lu(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Tensors made = Matrices(x, "lu", at).run_some(ops::lu, {}, 3, at);
  return {made[0], made[1]};
}

Qr qr(const Operand& x, QrOptions options, Source at) {
  const SourceScope scope(at);
  const Tensors made =
      Matrices(x, "qr", at).run_some(ops::qr, Attrs().add(options.complete), 3, at);
  return {made[0], made[1]};
}

Eigh eigh(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Tensors made = Matrices(x, "eigh", at).run_some(ops::eigh, {}, 3, at);
  return {made[0], made[1]};
}

Tensor eigvalsh(const Operand& x, Source at) {
  const SourceScope scope(at);
  return Matrices(x, "eigvalsh", at).run_some(ops::eigh, {}, 1, at)[0];
}

Svd svd(const Operand& x, SvdOptions options, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "svd", at);
  if (!options.full_matrices) {
    const Tensors made = matrices.run_some(ops::svd, {}, 7, at);
    return {made[0], made[1], made[2]};
  }
  const Tensors made = bind_results(def_of(&ops::svd), {&matrices.wide, 1}, {}, 7, at);
  return {matrices.narrow(completed(made[0], at), at), matrices.narrow(made[1], at),
          matrices.narrow(turned(completed(turned(made[2]), at)), at)};
}

Tensor svdvals(const Operand& x, Source at) {
  const SourceScope scope(at);
  return Matrices(x, "svdvals", at).run_some(ops::svd, {}, 2, at)[1];
}

Tensor pinv(const Operand& x, RankOptions options, Source at) {
  const SourceScope scope(at);
  return Matrices(x, "pinv", at).run(ops::pinv, Attrs().add(cutoff_of(options)), at);
}

Tensor lstsq(const Operand& a, const Operand& b, RankOptions options, Source at) {
  const SourceScope scope(at);
  const System system(a, b, "lstsq", false, at);
  const Attrs attrs = Attrs().add(cutoff_of(options));
  const Tensor inverse = bind_op(def_of(&ops::pinv), {&system.a, 1}, attrs, at);
  return system.narrow(matmul(inverse, system.b, {}, at), at);
}

Tensor expm(const Operand& x, Source at) {
  const SourceScope scope(at);
  return Matrices(x, "expm", at).run(ops::expm, {}, at);
}

Tensor vector_norm(const Operand& x, const VectorNormOptions& options, Source at) {
  const SourceScope scope(at);
  const Tensor given = tensor_of(x, at);
  const DType dtype = float_of(given.dtype());
  const Tensor wide = cast(given, computed_in(dtype), at), size = abs(wide);
  const double ord = options.ord;
  const auto fold = [&](const auto& reduce, const Tensor& of) {
    return cast(reduce(of, options.axes, options.keep, at), dtype, at);
  };
  if (ord == std::numeric_limits<double>::infinity()) return fold(max, size);
  if (ord == -std::numeric_limits<double>::infinity()) return fold(min, size);
  if (ord == 0) return fold(sum, cast(size != 0, size.dtype()));
  if (ord == 1) return fold(sum, size);
  if (ord == 2) return fold(norm, wide);
  const Tensor total = sum(pow(size, ord), options.axes, options.keep, at);
  // The slope of the root at 0 counts as 0.
  const Tensor none = total == 0;
  return cast(where(none, ord > 0 ? 0.0 : std::numeric_limits<double>::infinity(),
                    pow(where(none, 1, total), 1 / ord)),
              dtype, at);
}

Tensor matrix_norm(const Operand& x, MatrixNormOptions options, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "matrix_norm", at);
  const Axes last_two = {-2, -1};
  const auto sums = [&](int64_t axis) { return sum(abs(matrices.wide), axis, keepdims); };
  const auto values = [&] {
    const Tensors made = bind_results(def_of(&ops::svd), {&matrices.wide, 1}, {}, 2, at);
    return expand_dims(made[1], -1);
  };
  const Keep keep = options.keep;
  const auto made = [&] {
    switch (options.ord) {
      case MatrixNorm::fro:
        return norm(matrices.wide, last_two, keep);
      case MatrixNorm::nuc:
        return sum(values(), last_two, keep);
      case MatrixNorm::one:
        return max(sums(-2), last_two, keep);
      case MatrixNorm::least_one:
        return min(sums(-2), last_two, keep);
      case MatrixNorm::inf:
        return max(sums(-1), last_two, keep);
      case MatrixNorm::least_inf:
        return min(sums(-1), last_two, keep);
      case MatrixNorm::two:
        return max(values(), last_two, keep);
      case MatrixNorm::least_two:
        break;
    }
    return min(values(), last_two, keep);
  };
  return matrices.narrow(made(), at);
}

}  // namespace tidemark::linalg
