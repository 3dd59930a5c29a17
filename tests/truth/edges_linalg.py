"""td::linalg for edges.py: what JAX has for it, and matrices to try it on.

Where a factor is determined only up to signs, ours are those that tidemark/calls/linalg.h names. Several results come as
one row.
"""
import jax
import jax.numpy as jnp
import numpy as np
from edges_meaning import size as magnitude


def turned(x):
    return jnp.swapaxes(x, -1, -2)


def symmetric(x):
    return (x + turned(x)) / 2


def in_a_row(*parts):
    return jnp.concatenate([part.ravel() for part in parts])


def signs(columns):
    """Those of the elements of largest magnitude."""
    if not columns.size:
        return jnp.ones(columns.shape[:-2] + (1,) + columns.shape[-1:])
    place = jnp.argmax(jnp.abs(columns), -2, keepdims=True)
    return jax.lax.stop_gradient(jnp.where(jnp.take_along_axis(columns, place, -2) < 0, -1.0, 1.0))


def eigh(x):
    values, vectors = jnp.linalg.eigh(symmetric(x))
    return in_a_row(values, vectors * signs(vectors))


def svd(x, full=0):
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    sign = signs(turned(vh))
    return in_a_row(u * sign, s, vh * turned(sign))


def qr(x, complete=0):
    """A wide matrix is q times (r, q^T what is right of the square part)."""
    rows = x.shape[-2]
    q, r = jnp.linalg.qr(x[..., :rows])
    sign = jnp.where(jnp.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    q, r = q * sign[..., None, :], r * sign[..., :, None]
    return in_a_row(q, jnp.concatenate([r, turned(q) @ x[..., rows:]], -1))


def expm(x):
    """The series of a part of x, squared."""
    part = x / 256
    power = total = jnp.broadcast_to(jnp.eye(x.shape[-1]), x.shape).astype(x.dtype)
    for k in range(1, 14):
        power = power @ part / k
        total = total + power
    for _ in range(8):
        total = total @ total
    return total


def as_columns(function):
    """A vector is a single right side; batches broadcast."""
    def solved(a, b, **how):
        columns = b[:, None] if b.ndim == 1 else b
        batch = jnp.broadcast_shapes(a.shape[:-2], columns.shape[:-2])
        x = function(jnp.broadcast_to(a, batch + a.shape[-2:]), jnp.broadcast_to(columns, batch + columns.shape[-2:]), **how)
        return x[..., 0] if b.ndim == 1 else x
    return solved


def triangular(a, b, lower=1, transposed=0, unit=0):
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=bool(lower), transpose_a=bool(transposed), unit_diagonal=bool(unit))


def det(x):
    """The formula, whose derivatives exist everywhere."""
    n = x.shape[-1]
    if n == 0:
        return jnp.ones(x.shape[:-2], x.dtype)
    if n == 1:
        return x[..., 0, 0]
    minor = lambda j: det(jnp.delete(x[..., 1:, :], j, -1, assume_unique_indices=True))
    return sum((-1) ** j * x[..., 0, j] * minor(j) for j in range(n))


def vector_norm(x, ord=2, axes=None, keepdims=0):
    axis = None if axes is None else tuple(axes)
    size = magnitude(x)
    if ord == 2:
        return jnp.sqrt(jnp.sum(jnp.square(x), axis, keepdims=bool(keepdims)))
    if ord in (np.inf, -np.inf):
        return (jnp.max if ord > 0 else jnp.min)(size, axis, keepdims=bool(keepdims))
    if ord == 0:
        return jnp.sum(x != 0, axis, keepdims=bool(keepdims)).astype(x.dtype)
    total = jnp.sum(size ** ord if ord != 1 else size, axis, keepdims=bool(keepdims))
    return jnp.where(total == 0, 0, jnp.where(total == 0, 1, total) ** (1 / ord))


def matrix_norm(x, ord="fro", keepdims=0):
    names = {"one": 1, "least_one": -1, "inf": np.inf, "least_inf": -np.inf, "two": 2, "least_two": -2}
    return jnp.linalg.matrix_norm(x, ord=names.get(ord, ord), keepdims=bool(keepdims))


MEANING = {
    "cholesky": jnp.linalg.cholesky, "solve_triangular": as_columns(triangular),
    "cholesky_solve": as_columns(lambda l, b: triangular(l, triangular(l, b), transposed=1)),
    "solve": as_columns(lambda a, b, transposed=0: jnp.linalg.solve(turned(a) if transposed else a, b)), "inv": jnp.linalg.inv, "det": det,
    "slogdet": lambda x: in_a_row(*jnp.linalg.slogdet(x)), "lu": lambda x: jax.lax.linalg.lu(x)[0], "qr": qr, "eigh": eigh,
    "eigvalsh": lambda x: jnp.linalg.eigvalsh(symmetric(x)), "svd": svd, "svdvals": jnp.linalg.svdvals,
    "pinv": lambda x, rtol=None: jnp.linalg.pinv(x, rtol=rtol), "lstsq": as_columns(lambda a, b: jnp.linalg.pinv(a) @ b), "expm": expm,
    "vector_norm": vector_norm, "matrix_norm": matrix_norm,
}

SQUARE = np.array([[4., 1, -2], [.5, 3, 1], [-1, .25, 2]])
OTHER = np.array([[1., -3, .5], [2, .25, 5], [-4, 1, 1]])
POSITIVE = np.array([[6., 1, 2], [1, 5, -1], [2, -1, 4]])
TALL = np.array([[1., 2], [-3, .5], [.25, 4], [2, -1]])
RIGHT = np.array([[1., -2], [.5, 3], [2, 2]])
NARROW = ("f64", "f32", "f16", "bf16")


def cases(Case):
    floats = ("f64", "f32")
    both = np.stack([SQUARE, OTHER])

    def case(name, *operands, dtypes=floats, **more):
        return Case(name, *operands, dtypes=dtypes, **more)
    for name in ("cholesky", "solve", "lu", "inv", "det", "slogdet", "qr", "eigh", "eigvalsh", "svd", "svdvals", "pinv", "expm"):
        right = (np.zeros((0, 2)),) if name == "solve" else ()
        if name not in ("cholesky", "solve"):
            yield case(name, both)
            yield case(name, np.array([[2.5]]), dtypes=("f32",))
        if name not in ("expm", "lu", "det"):
            yield case(name, np.zeros((0, 0)), *right, dtypes=("f32",), orders=0)
    yield case("det", np.zeros((2, 0, 0)), dtypes=("f32",), orders=0)
    yield case("cholesky", POSITIVE, dtypes=NARROW)
    yield case("cholesky", np.stack([POSITIVE, POSITIVE * 2 + np.eye(3)]))
    yield case("cholesky", np.stack([POSITIVE, -POSITIVE, SQUARE * np.nan]), orders=0)
    yield case("solve", SQUARE, RIGHT[:, 0], dtypes=NARROW)
    yield case("solve", both, RIGHT)
    yield case("solve", SQUARE, np.stack([RIGHT, -2 * RIGHT]), transposed=1)
    for lower in (0, 1):
        for transposed in (0, 1):
            yield case("solve_triangular", SQUARE, RIGHT, lower=lower, transposed=transposed, orders=1)
    yield case("solve_triangular", both, RIGHT[:, 1], unit=1)
    yield case("solve_triangular", both, RIGHT, lower=0, unit=1, transposed=1)
    yield case("cholesky_solve", np.tril(SQUARE), RIGHT)
    yield case("cholesky_solve", np.tril(SQUARE), RIGHT[:, 0])
    yield case("slogdet", np.array([[1., 2], [2, 4]]), orders=0)
    yield case("det", np.array([[1., 2], [2, 4]]), orders=0)
    for name in ("qr", "svd", "pinv"):
        yield case(name, TALL)
        yield case(name, TALL.T, orders=1)
        yield case(name, np.stack([TALL, TALL[::-1] + 1]), orders=0)
    yield case("svdvals", TALL.T, orders=1)
    yield case("qr", SQUARE, complete=1)
    yield case("svd", SQUARE, full=1)
    yield case("pinv", SQUARE, rtol=.5, orders=0)
    yield case("pinv", np.array([[1., 2], [2, 4], [3, 6]]), orders=0)
    yield case("lstsq", TALL, np.array([1., 2, -1, .5]))
    yield case("lstsq", TALL.T, RIGHT[:2])
    for scale in (1e-3, .1, .5, 20.):
        yield case("expm", SQUARE * scale / 4, orders=1)
    yield case("expm", np.array([[0., 1], [0, 0]]))
    vectors = np.array([[3., -4, 0], [1, 1e-3, 2]])
    for ord in (0, 1, 2, 3, .5, -1, np.inf, -np.inf):
        clear = vectors + .5 if ord < 1 else vectors
        yield case("vector_norm", clear, ord=ord)
        yield case("vector_norm", clear, ord=ord, axes=[1], keepdims=1, orders=0)
    yield case("vector_norm", vectors[0], ord=1, dtypes=NARROW)
    for ord in ("fro", "nuc", "one", "least_one", "inf", "least_inf", "two", "least_two"):
        yield case("matrix_norm", TALL, ord=ord, orders=1)
        yield case("matrix_norm", both, ord=ord, keepdims=1, orders=0)
