"""Values of programs: what NumPy computes, and what JAX traces.

A value is a pair: its elements as NumPy computes them, in f64, and, where it is a float that depends on
an argument, what JAX traces.
"""

import math
import warnings

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "float": np.float64,
          "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
          "u64": np.uint64, "bool": np.bool_}
FLOATS = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))

warnings.filterwarnings("ignore", "Mean of empty slice")  # It is NaN, as it must be.

erf = np.vectorize(math.erf, otypes=[np.float64])


class V:
    __slots__ = ("a", "t")

    def __init__(self, a, t=None):
        self.a, self.t = a, t

    @property
    def is_float(self):
        return self.a.dtype in FLOATS

    @property
    def x(self):
        """For JAX: what is traced, or the elements."""
        return self.a if self.t is None else self.t


PICK = lax.GatherDimensionNumbers((), (0,), (0,))


def picked(flat, places):
    """flat[places], as the one kind of gather that is ever traced."""
    index = np.ascontiguousarray(places.reshape(-1, 1), np.int64)
    return lax.reshape(lax.gather(flat, index, PICK, (1,), mode="promise_in_bounds"), places.shape)


def scattered(flat, places, updates):
    """flat with updates added, as the one kind of scatter that is ever traced."""
    if updates.size == 0:
        return flat
    index = np.ascontiguousarray(places.reshape(-1, 1), np.int64)
    return lax.scatter_add(flat, index, updates, lax.ScatterDimensionNumbers((), (0,), (0,)), mode="promise_in_bounds")


def moved(function, *values):
    """`function` moves elements: it is run on the elements, and on their numbers for JAX."""
    a = function(*[v.a for v in values])
    if all(v.t is None for v in values):
        return V(a)
    numbers, start = [], 0
    for v in values:
        numbers.append(np.arange(start, start + v.a.size).reshape(v.a.shape))
        start += v.a.size
    places = function(*numbers)
    if places.size == 0 or start == 0:
        return V(a, jnp.zeros(places.shape))
    flat = [v.a.reshape(-1) if v.t is None else lax.reshape(v.t, (v.a.size,)) for v in values if v.a.size]
    return V(a, picked(lax.concatenate(flat, 0) if len(flat) > 1 else flat[0], places))


def spread(value, shape):
    """Broadcast as NumPy does."""
    if value.a.shape == tuple(shape):
        return value
    return V(np.broadcast_to(value.a, shape), None if value.t is None else stretched(value.t, value.a.shape, shape))


def stretched(x, before, shape):
    kept = [i for i, size in enumerate(before) if size != 1 or shape[i - len(before)] == 1]
    x = lax.reshape(x, tuple(before[i] for i in kept))
    return lax.broadcast_in_dim(x, tuple(shape), tuple(i + len(shape) - len(before) for i in kept))


class Bottom:
    """While JAX traces: a traced minus infinity. The larger of it and a constant is that constant, traced."""
    traced = None


def lifted(v):
    """A constant as something traced, so that what is computed of it can be shaken."""
    if Bottom.traced is None or not v.is_float or v.t is not None:
        return v
    return V(v.a, lax.max(v.a.astype(np.float64), lax.broadcast(Bottom.traced, v.a.shape)))


def computed(of_numpy, of_jax, *values):
    """Elementwise or not: NumPy's function on elements, JAX's on what is traced."""
    with np.errstate(all="ignore"):
        a = np.asarray(of_numpy(*[v.a for v in values]))
    if all(v.t is None for v in values):
        values = [lifted(values[0])] + list(values[1:])
        if values[0].t is None:
            return V(a)
    return V(a, of_jax(*[v.x for v in values]))


class Traced:
    """What JAX traces, with NumPy's operators. Those of jax.numpy trace ten times as long."""

    def __init__(self, x):
        self.x, self.shape, self.ndim = x, tuple(x.shape), len(x.shape)

    @staticmethod
    def of(op, a, b):
        a, b = [v.x if isinstance(v, Traced) else np.asarray(v, np.float64) for v in (a, b)]
        shape = np.broadcast_shapes(a.shape, b.shape)
        return Traced(op(*[v if v.shape == shape else stretched(v, v.shape, shape) for v in (a, b)]))

    def __add__(self, other):
        return Traced.of(lax.add, self, other)

    def __sub__(self, other):
        return Traced.of(lax.sub, self, other)

    def __mul__(self, other):
        return Traced.of(lax.mul, self, other)

    def __truediv__(self, other):
        return Traced.of(lax.div, self, other)

    def reduced(self, reduce, axis, keepdims):
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        axes = tuple(a % self.ndim for a in axes)
        y = reduce(self.x, axes)
        kept = tuple(1 if i in axes else s for i, s in enumerate(self.shape))
        return Traced(lax.reshape(y, kept) if keepdims else y)


class Lax:
    """The functions of NumPy that formulas here are written with, for Traced."""
    exp, log, sqrt = [staticmethod(lambda v, f=f: Traced(f(v.x))) for f in (lax.exp, lax.log, lax.sqrt)]
    sum, max, min, prod = [
        staticmethod(lambda v, axis=None, keepdims=False, f=f: v.reduced(f, axis, keepdims))
        for f in (lax.reduce_sum, lax.reduce_max, lax.reduce_min, lax.reduce_prod)]

    @staticmethod
    def mean(v, axis=None, keepdims=False):
        total, count = Lax.sum(v, axis, keepdims), math.prod(v.shape)
        return total * (math.prod(total.shape) / count if count else math.nan)  # Of nothing: 0 / 0.

    @staticmethod
    def squeeze(v, axes):
        return Traced(lax.squeeze(v.x, axes))

    @staticmethod
    def swapaxes(v, *_):
        return Traced(lax.transpose(v.x, (*range(v.ndim - 2), v.ndim - 1, v.ndim - 2)))

    matmul, einsum, tensordot = [
        staticmethod(lambda *v, f=f: Traced(f(*[a.x if isinstance(a, Traced) else a for a in v])))
        for f in (jnp.matmul, jnp.einsum, jnp.tensordot)]


def both(function):
    """Of a function that is written for either: f(xp, *arrays)."""
    return lambda *values: computed(lambda *a: function(np, *a),
                                    lambda *x: function(Lax, *[Traced(v) for v in x]).x, *values)


def full_like(x, number):
    return np.full(np.shape(x), number, np.float64)
