"""tf.linalg: products, diagonals, norms, factorizations and solvers."""
import math as _math

import tidemark as td

from . import dtypes
from .arrays import eye, transpose  # noqa: F401
from .errors import InvalidArgumentError
from .math import global_norm, l2_normalize  # noqa: F401
from .tensor import axes, convert, floats, integers, op, pair, raw, wrap


@op
def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False, b_is_sparse=False, output_type=None, grad_a=False, grad_b=False):
    a, b = pair(a, b, "matmul")
    if a.ndim < 2 or b.ndim < 2:
        raise InvalidArgumentError(f"matmul: the operands are {a.dtype.name}{a.shape} and {b.dtype.name}{b.shape}; each needs two axes or more: tf.linalg.matvec, or tf.expand_dims")
    product = td.matmul(a._t, b._t, transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b)
    return wrap(td.cast(product, (dtypes.as_dtype(output_type) if output_type else a.dtype)._td))


@op
def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False):
    a, b = pair(a, b, "matvec")
    return wrap(td.squeeze(td.matmul(a._t, td.expand_dims(b._t, -1), transpose_a=transpose_a or adjoint_a), -1))


@op
def einsum(equation, *inputs, **options):
    first, *rest = inputs
    tensors = [convert(first)]
    for other in rest:
        tensors.append(pair(tensors[0], other, "einsum")[1])
    return wrap(td.einsum(equation, [t._t for t in tensors]) if rest else td.einsum(equation, tensors[0]._t))


@op
def tensordot(a, b, axes):
    a, b = pair(a, b, "tensordot")
    if isinstance(axes, int):
        left, right = list(range(a.ndim - axes, a.ndim)), list(range(axes))
    else:
        left, right = (integers(x, "tensordot: axes") for x in axes)
    left, right = [i % a.ndim for i in left], [i % b.ndim for i in right]
    free_a, free_b = [i for i in range(a.ndim) if i not in left], [i for i in range(b.ndim) if i not in right]
    shape = [a._t.shape[i] for i in free_a] + [b._t.shape[i] for i in free_b]
    inner = 1
    for i in left:
        inner = a._t.shape[i] * inner
    x = td.reshape(td.transpose(a._t, free_a + left) if a.ndim else a._t, [-1, inner])
    y = td.reshape(td.transpose(b._t, right + free_b) if b.ndim else b._t, [inner, -1])
    return wrap(td.cast(td.reshape(td.matmul(x, y), shape), a.dtype._td))


@op
def norm(tensor, ord="euclidean", axis=None, keepdims=None):
    x, keep, at = floats(tensor, "norm")._t, bool(keepdims), axes(axis)
    ord = _math.inf if ord == "inf" else ord
    if isinstance(at, list) and len(at) == 2 and ord not in ("euclidean", "fro"):
        return wrap(td.linalg.norm(x, ord, at, keep))
    return wrap(td.linalg.vector_norm(x, 2 if ord in ("euclidean", "fro") else ord, at, keep))


@op
def normalize(tensor, ord="euclidean", axis=None):
    x = convert(tensor)
    size = norm(x, ord=ord, axis=axis, keepdims=True)
    return wrap(x._t / size._t), size


def _diagonal(x, offset=0):
    rows, columns = x.shape[-2], x.shape[-1]
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    flat = td.reshape(x, list(x.shape)[:-2] + [rows * columns])
    start = offset if offset >= 0 else -offset * columns
    places = [start + i * (columns + 1) for i in range(count)]
    return td.gather(flat, td.constant(places, td.i32), flat.ndim - 1)


@op
def diag_part(input, k=0, padding_value=0, align="RIGHT_LEFT"):
    return wrap(_diagonal(raw(input), k))


@op
def tensor_diag_part(input):
    return wrap(_diagonal(raw(input)))


@op
def trace(x):
    x = convert(x)
    return wrap(td.cast(td.sum(_diagonal(x._t), axis=-1), x.dtype._td))


def _square(x):
    """Vectors on the diagonals of square matrices."""
    n = x.shape[-1]
    return td.where(td.cast(td.eye(n), td.bool), td.expand_dims(x, -1), td.zeros([], x.dtype))


@op
def diag(diagonal, k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    return wrap(_square(raw(diagonal)))


@op
def tensor_diag(diagonal):
    return wrap(_square(raw(diagonal)))


@op
def set_diag(input, diagonal, k=0, align="RIGHT_LEFT"):
    x, d = pair(input, diagonal, "set_diag")
    rows, columns = x._t.shape[-2], x._t.shape[-1]
    count = min(rows, columns)
    wide = td.pad(d._t, [(0, 0)] * (d.ndim - 1) + [(0, columns - count)]) if columns > count else d._t
    return wrap(td.where(td.cast(td.eye(rows, columns), td.bool), td.expand_dims(wide, -2), x._t))


@op
def band_part(input, num_lower, num_upper):
    x = raw(input)
    rows, columns = x.shape[-2], x.shape[-1]
    (lower,), (upper,) = integers(num_lower, "num_lower"), integers(num_upper, "num_upper")
    down = td.reshape(td.arange(0, rows, 1, td.i32), [rows, 1]) - td.reshape(td.arange(0, columns, 1, td.i32), [1, columns])
    keep = td.ones([rows, columns], td.bool)
    if lower >= 0:
        keep = td.logical_and(keep, down <= lower)
    if upper >= 0:
        keep = td.logical_and(keep, down >= -upper)
    return wrap(td.where(keep, x, td.zeros([], x.dtype)))


@op
def matrix_transpose(a, conjugate=False):
    x = raw(a)
    return wrap(td.transpose(x, list(range(x.ndim - 2)) + [x.ndim - 1, x.ndim - 2]))


adjoint = matrix_transpose


@op
def cross(a, b):
    a, b = pair(a, b, "cross")
    (a0, a1, a2), (b0, b1, b2) = td.unstack(a._t, -1), td.unstack(b._t, -1)
    return wrap(td.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1))


# ---- factorizations and solvers ----

@op
def cholesky(input):
    """NaNs where TensorFlow raises: if a matrix is not positive definite."""
    return wrap(td.linalg.cholesky(raw(input)))


@op
def cholesky_solve(chol, rhs):
    a, b = pair(chol, rhs, "cholesky_solve")
    return wrap(td.linalg.cholesky_solve(a._t, b._t))


@op
def triangular_solve(matrix, rhs, lower=True, adjoint=False):
    a, b = pair(matrix, rhs, "triangular_solve")
    return wrap(td.linalg.solve_triangular(a._t, b._t, lower=lower, transposed=adjoint))


@op
def solve(matrix, rhs, adjoint=False):
    a, b = pair(matrix, rhs, "solve")
    return wrap(td.linalg.solve(a._t, b._t, transposed=adjoint))


@op
def inv(input, adjoint=False):
    inverse = td.linalg.inv(raw(input))
    return matrix_transpose(wrap(inverse)) if adjoint else wrap(inverse)


@op
def pinv(a, rcond=None, validate_args=False):
    x = raw(a)
    if rcond is None:
        rcond = 10 * max(x.shape[-2], x.shape[-1]) * (2.0 ** -23 if x.dtype == td.f32 else 2.0 ** -52)
    return wrap(td.linalg.pinv(x, rcond))


@op
def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True):
    """With fast=True by the normal equations, as TensorFlow; otherwise by singular values."""
    a, b = pair(matrix, rhs, "lstsq")
    x, y = a._t, b._t
    if not fast:
        return wrap(td.linalg.lstsq(x, y))
    tall = x.shape[-2] >= x.shape[-1]
    gram = td.matmul(x, x, transpose_a=tall, transpose_b=not tall)
    factor = td.linalg.cholesky(gram + l2_regularizer * td.eye(gram.shape[-1], dtype=x.dtype))
    if tall:
        return wrap(td.linalg.cholesky_solve(factor, td.matmul(x, y, transpose_a=True)))
    return wrap(td.matmul(x, td.linalg.cholesky_solve(factor, y), transpose_a=True))


@op
def det(input):
    return wrap(td.linalg.det(raw(input)))


@op
def slogdet(input):
    return tuple(wrap(each) for each in td.linalg.slogdet(raw(input)))


@op
def logdet(matrix):
    """Of a positive definite matrix."""
    diagonal = _diagonal(td.linalg.cholesky(raw(matrix)))
    return wrap(2 * td.sum(td.log(diagonal), axis=-1))


@op
def lu(input, output_idx_type=None):
    factors, order = td.linalg.lu(raw(input))
    return wrap(factors), wrap(td.cast(order, (dtypes.as_dtype(output_idx_type) if output_idx_type else dtypes.int32)._td))


@op
def qr(input, full_matrices=False):
    return tuple(wrap(each) for each in td.linalg.qr(raw(input), complete=full_matrices))


@op
def svd(tensor, full_matrices=False, compute_uv=True):
    """Singular values first, and v, not its transpose, as TensorFlow."""
    x = raw(tensor)
    if not compute_uv:
        return wrap(td.linalg.svdvals(x))
    u, s, vh = td.linalg.svd(x, full_matrices=full_matrices)
    return wrap(s), wrap(u), matrix_transpose(wrap(vh))


@op
def eigh(tensor):
    return tuple(wrap(each) for each in td.linalg.eigh(raw(tensor)))


@op
def eigvalsh(tensor):
    return wrap(td.linalg.eigvalsh(raw(tensor)))


@op
def expm(input):
    return wrap(td.linalg.expm(raw(input)))
