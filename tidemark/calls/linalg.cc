#include "tidemark/calls/linalg.h"

#include <cmath>

#include "tidemark/calls/complex.h"
#include "tidemark/calls/complex_matrices.h"
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

// Results are as wide as operands are; what is computed is f32 or f64, or pairs of them.
DType float_of(DType dtype) { return is_differentiable(dtype) ? dtype : DType::f32; }
DType computed_in(DType dtype) { return is_low_precision(dtype) ? DType::f32 : dtype; }

[[noreturn]] void only_reals(std::string_view name, const char* remedy, Source at) {
  throw UserError(cat(name, ": does not take complex matrices"), at, remedy);
}

struct Matrices {
  Tensor wide;
  DType dtype;  // Of the results.

  Matrices(const Operand& x, std::string_view name, Source at) : wide(tensor_of(x, at)) {
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
  void check_real(std::string_view name, const char* remedy, Source at) const {
    if (holds_complex()) only_reals(name, remedy, at);
  }
  bool holds_complex() const { return is_complex(dtype); }
  // The matrices that ops take, and their results.
  Tensor reals() const { return holds_complex() ? detail::as_reals(wide) : wide; }
  Tensor back(const Tensor& result, Source at) const {
    return narrow(holds_complex() ? detail::from_reals(result) : result, at);
  }
  // Numbers of which a complex matrix has two for each of its own: they come in pairs, in order.
  Tensor real_values(const Tensor& values, Source at) const {
    if (!holds_complex()) return narrow(values, at);
    Shape pairs = values.shape();
    pairs.set(pairs.rank() - 1, pairs[-1] / 2);
    pairs.push_back(2);
    return mean(reshape(values, pairs), -1);
  }
  Tensor narrow(const Tensor& result, Source at) const {
    if (result.dtype() == DType::i64) return result;
    return cast(result, is_complex(result.dtype()) ? dtype : part_dtype(dtype), at);
  }
  Tensor run(const NamedOp& op, const Attrs& attrs, Source at) const {
    const Tensor given = reals();
    return back(bind_op(def_of(&op), {&given, 1}, attrs, at), at);
  }
  // Those results whose bit is set.
  Tensors run_some(const NamedOp& op, const Attrs& attrs, uint32_t wanted, Source at) const {
    const Tensor given = reals();
    Tensors results = bind_results(def_of(&op), {&given, 1}, attrs, wanted, at);
    for (size_t i = 0; i < results.size(); ++i)
      if ((wanted >> i & 1) != 0) results[i] = back(results[i], at);
    return results;
  }
  // Result number `index` of an op, a vector of numbers for each matrix.
  Tensor values_of(const NamedOp& op, size_t index, Source at) const {
    const Tensor given = reals();
    return real_values(bind_results(def_of(&op), {&given, 1}, {}, 1U << index, at)[index], at);
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

Attrs triangular_attrs(TriangularOptions options) {
  return Attrs().add(options.lower).add(options.transposed).add(options.unit_diagonal);
}

// Divided by its diagonal, the matrix is triangular as reals too, whose blocks on the diagonal are
// then ones.
Tensor solve_complex_triangular(const Tensor& a, const Tensor& b, TriangularOptions options,
                                Source at) {
  Tensor left = a, right = b;
  if (!options.unit_diagonal) {
    const Tensor scale = diagonal(a);
    left = a / expand_dims(scale, options.transposed ? -2 : -1);
    right = b / expand_dims(scale, -1);
  }
  left = options.lower ? tril(left, -1) : triu(left, 1);
  options.unit_diagonal = true;
  const Tensor operands[] = {detail::as_reals(options.transposed ? conj(left) : left),
                             detail::as_real_columns(right)};
  return detail::from_real_columns(
      bind_op(def_of(&ops::solve_triangular), operands, triangular_attrs(options), at));
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
  bool holds_complex() const { return is_complex(dtype); }
  // Of the conjugate matrix, if a complex one is to be transposed: as reals its transpose is that
  // of its conjugate.
  Tensor solved(bool transposed, Source at) const {
    const Tensor left = transposed && holds_complex() ? conj(a) : a;
    const Tensor operands[] = {holds_complex() ? detail::as_reals(left) : left,
                               holds_complex() ? detail::as_real_columns(b) : b};
    const Tensor x = bind_op(def_of(&ops::solve), operands, Attrs().add(transposed), at);
    return holds_complex() ? detail::from_real_columns(x) : x;
  }
  Tensor solved(TriangularOptions options, Source at) const {
    if (holds_complex()) return solve_complex_triangular(a, b, options, at);
    const Tensor operands[] = {a, b};
    return bind_op(def_of(&ops::solve_triangular), operands, triangular_attrs(options), at);
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

// A complex matrix has twice as many rows and columns when its default is looked up.
double cutoff_of(RankOptions options, const Tensor& x) {
  if (options.rtol) return *options.rtol;
  const DType dtype = x.dtype();
  return is_complex(dtype) ? ops::pinv_cutoff(x.shape(), part_dtype(dtype), -1) : -1;
}

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
  const System system(a, b, "solve_triangular", true, at);
  return system.narrow(system.solved(options, at), at);
}

Tensor cholesky_solve(const Operand& l, const Operand& b, Source at) {
  const SourceScope scope(at);
  System system(l, b, "cholesky_solve", true, at);
  system.b = system.solved(TriangularOptions{}, at);
  if (system.holds_complex()) system.a = conj(system.a);
  return system.narrow(system.solved(TriangularOptions{.transposed = true}, at), at);
}

Tensor solve(const Operand& a, const Operand& b, SolveOptions options, Source at) {
  const SourceScope scope(at);
  const System system(a, b, "solve", true, at);
  return system.narrow(system.solved(options.transposed, at), at);
}

Tensor inv(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "inv", at);
  matrices.check_square("inv", at);
  const Tensor given = matrices.reals();
  const Shape& shape = given.shape();
  const Tensor identity =
      broadcast_to(triu(tril(ones(Shape{shape[-1], shape[-1]}, given.dtype()))), shape);
  const Tensor operands[] = {given, identity};
  return matrices.back(bind_op(def_of(&ops::solve), operands, Attrs().add(false), at), at);
}

Tensor det(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "det", at);
  matrices.check_real("det", "its size is td::prod(td::linalg::svdvals(x), -1)", at);
  matrices.check_square("det", at);
  const Eliminated made = eliminated(matrices, at);
  return matrices.narrow(prod(made.diagonal, -1) * made.parity, at);
}

Slogdet slogdet(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "slogdet", at);
  matrices.check_real(
      "slogdet", "the logarithm of its size is td::sum(td::log(td::linalg::svdvals(x)), -1)", at);
  matrices.check_square("slogdet", at);
  const Eliminated made = eliminated(matrices, at);
  const Tensor signs = prod(sign(made.diagonal), -1) * made.parity;
  return {matrices.narrow(signs, at), matrices.narrow(sum(log(abs(made.diagonal)), -1), at)};
}

Lu lu(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "lu", at);
  matrices.check_real("lu", "td::linalg::solve(x, b) and td::linalg::inv(x) take them", at);
  const Tensors made = matrices.run_some(ops::lu, {}, 3, at);
  return {made[0], made[1]};
}

Qr qr(const Operand& x, QrOptions options, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "qr", at);
  if (options.complete)
    matrices.check_real("complete qr", "leave it out: td::linalg::qr(x) takes them", at);
  const Tensors made = matrices.run_some(ops::qr, Attrs().add(options.complete), 3, at);
  return {made[0], made[1]};
}

Eigh eigh(const Operand& x, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "eigh", at);
  matrices.check_real("eigh", "its eigenvalues are td::linalg::eigvalsh(x)", at);
  const Tensors made = matrices.run_some(ops::eigh, {}, 3, at);
  return {made[0], made[1]};
}

Tensor eigvalsh(const Operand& x, Source at) {
  const SourceScope scope(at);
  return Matrices(x, "eigvalsh", at).values_of(ops::eigh, 0, at);
}

Svd svd(const Operand& x, SvdOptions options, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "svd", at);
  matrices.check_real("svd", "its singular values are td::linalg::svdvals(x)", at);
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
  return Matrices(x, "svdvals", at).values_of(ops::svd, 1, at);
}

Tensor pinv(const Operand& x, RankOptions options, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "pinv", at);
  return matrices.run(ops::pinv, Attrs().add(cutoff_of(options, matrices.wide)), at);
}

Tensor lstsq(const Operand& a, const Operand& b, RankOptions options, Source at) {
  const SourceScope scope(at);
  const System system(a, b, "lstsq", false, at);
  const Attrs attrs = Attrs().add(cutoff_of(options, system.a));
  const Tensor given = system.holds_complex() ? detail::as_reals(system.a) : system.a;
  const Tensor inverse = bind_op(def_of(&ops::pinv), {&given, 1}, attrs, at);
  if (!system.holds_complex()) return system.narrow(matmul(inverse, system.b, {}, at), at);
  const Tensor columns = matmul(inverse, detail::as_real_columns(system.b), {}, at);
  return system.narrow(detail::from_real_columns(columns), at);
}

Tensor expm(const Operand& x, Source at) {
  const SourceScope scope(at);
  return Matrices(x, "expm", at).run(ops::expm, {}, at);
}

Tensor vector_norm(const Operand& x, const VectorNormOptions& options, Source at) {
  const SourceScope scope(at);
  const Tensor any = tensor_of(x, at);
  const Tensor given = is_complex(any.dtype()) ? abs(any) : any;
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
  const double infinite = std::numeric_limits<double>::infinity();
  // Slopes at 0 that are infinite count as 0: that of a power below 1, and that of the root.
  const Tensor is_zero = size == 0;
  const Tensor powers =
      ord >= 1 ? pow(size, ord)
               : where(is_zero, ord > 0 ? 0.0 : infinite, pow(where(is_zero, 1, size), ord));
  const Tensor total = sum(powers, options.axes, options.keep, at);
  const Tensor none = total == 0;
  return cast(where(none, ord > 0 ? 0.0 : infinite, pow(where(none, 1, total), 1 / ord)), dtype,
              at);
}

Tensor matrix_norm(const Operand& x, MatrixNormOptions options, Source at) {
  const SourceScope scope(at);
  const Matrices matrices(x, "matrix_norm", at);
  const Axes last_two = {-2, -1};
  const auto sums = [&](int64_t axis) { return sum(abs(matrices.wide), axis, keepdims); };
  const auto values = [&] { return expand_dims(matrices.values_of(ops::svd, 1, at), -1); };
  const Keep keep = options.keep;
  const auto made = [&] {
    switch (options.ord) {
      case MatrixNorm::fro:
        return norm(matrices.holds_complex() ? abs(matrices.wide) : matrices.wide, last_two, keep);
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
