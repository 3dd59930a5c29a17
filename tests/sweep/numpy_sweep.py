#!/usr/bin/env python3
"""The sweep once more, against NumPy: numpy_sweep.py DRIVER FOLDER

DRIVER writes the cases (operands, attributes and our results) to FOLDER; here NumPy computes the same.
Where we differ on purpose it says so: search for "differs".
"""

import json
import math
import os
import subprocess
import sys

try:
    import numpy as np
    import scipy.linalg
    from scipy import special
except ImportError:
    print("skipped: NumPy is not installed", file=sys.stderr)
    sys.exit(77)

NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
OURS = {np.dtype(value): key for key, value in NUMPY.items()}
KIND = {"bool": 0, "f16": 2, "bf16": 2, "f32": 2, "f64": 2} | {key: 1 for key in NUMPY if key[0] in "iu"}
WIDTH = {"f16": 1, "bf16": 1, "f32": 2, "f64": 3}
# One ulp of 1.
EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}
LEAST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}


class Array:
    """An array of the case: NumPy has no bf16, which is read as the f32 it stands for."""

    def __init__(self, data, record):
        self.dtype = record["dtype"]
        shape = record["shape"]
        count = math.prod(shape)
        stored = np.uint16 if self.dtype == "bf16" else NUMPY[self.dtype]
        flat = np.frombuffer(data, stored, count, record["offset"])
        if self.dtype == "bf16":
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        self.value = flat.reshape(shape)


def promote(a, b):
    """Our rule. It differs from NumPy's where an integer meets a float: the float's dtype stays."""
    if a == b:
        return a
    if KIND[a] != KIND[b]:
        return a if KIND[a] > KIND[b] else b
    if {a, b} == {"f16", "bf16"}:
        return "f32"
    if KIND[a] == 1:
        return OURS[np.promote_types(NUMPY[a], NUMPY[b])]
    return a if WIDTH[a] >= WIDTH[b] else b


def rounded(x, dtype):
    """x in a float dtype of ours."""
    if dtype != "bf16":
        return x.astype(NUMPY[dtype])
    bits = np.atleast_1d(x.astype(np.float32)).view(np.uint32).astype(np.uint64)
    up = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), up.reshape(np.shape(x)))


def converted(x, source, target):
    """A cast. It differs from NumPy, where a float outside the integer's range gives anything: ours
    saturates, and NaN gives 0."""
    if KIND[target] == 2:
        return rounded(x, target)
    if target == "bool":
        return x != 0
    if KIND[source] != 2:
        return x.astype(NUMPY[target])
    info = np.iinfo(NUMPY[target])
    wide = np.where(np.isnan(x), 0, np.trunc(x.astype(np.float64)))
    result = np.clip(wide, float(info.min), float(info.max))
    inside = (result > float(info.min)) & (result < float(info.max))
    exact = np.where(inside, result, 0).astype(NUMPY[target])
    return np.where(inside, exact, np.where(result <= float(info.min), info.min, info.max)).astype(NUMPY[target])


def wide(x):
    """Floats in f64, for what NumPy would round on the way."""
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def widest(x):
    """Integers and bools add up in i64, u64 in u64; it differs from NumPy, where u8 gives u64."""
    return np.uint64 if x.dtype == np.uint64 else np.int64


def to_float(x):
    """Ops on floats: integers become f32. It differs from NumPy, which would give f64."""
    return x if x.dtype.kind == "f" else x.astype(np.float32)


erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x):
    return 1 / (1 + np.exp(-wide(to_float(x))))


def softmax(x, axis):
    x = wide(to_float(x))
    e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x, axis):
    x = wide(to_float(x))
    moved = x - x.max(axis=axis, keepdims=True, initial=-np.inf)
    return moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))


def shifts(function):
    """Counts outside the width: ours act like the width. NumPy's are its C compiler's, but for those
    at or above the width."""
    def apply(a, b):
        width = a.dtype.itemsize * 8
        inside = (b >= 0) & (b < width)
        safe = function(a, np.where(inside, b, 0).astype(b.dtype))
        beyond = np.where(a < 0, -1, 0).astype(a.dtype) if function is np.right_shift else np.zeros_like(a)
        return np.where(inside, safe, beyond)
    return apply


def power(a, b):
    """Integers to a negative power: ours give 0 but for 1 and -1; NumPy refuses."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    with_negative = b < 0
    result = np.power(a, np.where(with_negative, 0, b).astype(b.dtype))
    tiny = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0)) if a.dtype.kind != "u" else result
    return np.where(with_negative, tiny, result).astype(a.dtype)


def silu(x):
    """By an exponential of more range: 1 / (1 + exp(-x)) is 0 where x times it is not yet."""
    wide_x = x.astype(np.longdouble)
    return (wide_x / (1 + np.exp(-wide_x))).astype(np.float64)


def round_even(x):
    return np.rint(x) if x.dtype.kind == "f" else x


def bit_count(x):
    """np.bitwise_count takes the absolute value first."""
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


def polygamma(n, x, ours):
    """Where SciPy's is of use; tests/unit/ops/special_test.cc has values elsewhere."""
    n, x = np.broadcast_arrays(np.floor(wide(n) + 0.5), wide(x))
    valid = (n >= 0) & (n < 30) & (np.abs(x) < 100) & ((x > 1e-6) | (x != np.rint(x)))
    found = special.polygamma(np.where(valid, n, 1), np.where(valid, x, 1))
    return np.where(valid, found, wide(ours))


UNARY = {
    "abs": np.abs, "bitwise_invert": np.invert, "ceil": np.ceil, "floor": np.floor, "identity": np.copy,
    "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "logical_not": np.logical_not,
    "bit_count": bit_count, "negative": np.negative, "relu": lambda x: np.maximum(x, x.dtype.type(0)), "round": round_even,
    "sign": np.sign, "stop_gradient": np.copy, "square": np.square,
}
UNARY_FLOAT = {  # Computed in f64 and compared within ulps.
    "cos": np.cos, "erf": erf, "erfc": erfc, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2,
    "gelu": lambda x: x * (0.5 * erfc(x * (-1 / math.sqrt(2)))), "silu": silu,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": sigmoid, "sin": np.sin,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "cosh": np.cosh, "digamma": special.digamma, "erfinv": special.erfinv, "lgamma": special.gammaln, "log10": np.log10,
    "sinh": np.sinh, "trigamma": lambda x: special.polygamma(1, x),
}
BINARY = {
    "add": np.add, "atan2": lambda a, b: np.arctan2(to_float(a), to_float(b)), "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "divide": lambda a, b: to_float(a) / to_float(b), "equal": np.equal, "floor_divide": np.floor_divide,
    "greater": np.greater, "greater_equal": np.greater_equal, "left_shift": shifts(np.left_shift),
    "less": np.less, "less_equal": np.less_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "maximum": np.maximum, "minimum": np.minimum, "multiply": np.multiply,
    "not_equal": np.not_equal, "pow": power, "remainder": np.remainder, "right_shift": shifts(np.right_shift),
    "subtract": np.subtract,
    "copysign": lambda a, b: np.copysign(to_float(a), to_float(b)), "hypot": lambda a, b: np.hypot(to_float(a), to_float(b)),
    "logaddexp": lambda a, b: np.logaddexp(to_float(a), to_float(b)), "xlogy": lambda a, b: special.xlogy(to_float(a), to_float(b)),
}
REDUCE = {"all": np.all, "any": np.any, "max": np.max, "min": np.min, "prod": np.prod, "sum": np.sum}
# How far a result may be, in ulps: of our definition and of NumPy's own.
ULPS = {"atan2": 4, "pow": 8, "sigmoid": 8, "tanh": 8, "rsqrt": 4, "cos": 6, "sin": 6, "erf": 6, "erfc": 10, "gelu": 32, "silu": 10, "softplus": 8, "exp": 6, "expm1": 6,
        "log": 6, "log1p": 6, "log2": 6, "tan": 10, "softmax": 100, "log_softmax": 100,
        "acos": 6, "acosh": 6, "asin": 6, "asinh": 6, "atan": 4, "atanh": 6, "cosh": 8, "erfinv": 10, "log10": 4, "sinh": 8,
        # Near zeros of the function the distance is of the size of its terms.
        "digamma": 200, "lgamma": 200, "trigamma": 20, "polygamma": 200, "hypot": 4, "logaddexp": 8, "xlogy": 6}
# Since 2.4 the exponent's cutoff depends on the dtype, as ours does.
PRINTS_BY_DTYPE = str(np.array([1e7], np.float32)) == "[1.e+07]"
DRAWS = {"random_bernoulli", "random_by_element", "random_fold", "random_integers", "random_normal", "random_permutation", "random_uniform"}


def convolved(x, w, attrs):
    x, w = wide(x), wide(w)
    stride, low, high, dilation, groups = (attrs[k] for k in ("stride", "pad_low", "pad_high", "dilation", "groups"))
    axes = len(stride)
    spread = attrs.get("spread") or [1] * axes  # An empty list says 1 for all.
    whole = np.zeros((x.shape[0], *[max(0, (n - 1) * s + 1) for n, s in zip(x.shape[1:], spread)], x.shape[-1]))
    whole[(slice(None), *[slice(None, None, s) for s in spread])] = x
    whole = np.pad(whole, ((0, 0), *[(max(0, a), max(0, b)) for a, b in zip(low, high)], (0, 0)))
    whole = whole[(slice(None), *[slice(max(0, -a), n - max(0, -b)) for a, b, n in zip(low, high, whole.shape[1:])])]
    *taps, each, outs = w.shape
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, taps)]
    out = [(n - r) // s + 1 if n >= r else 0 for n, r, s in zip(whole.shape[1:], reach, stride)]
    y = np.zeros((x.shape[0], *out, outs))
    if 0 in out:
        return y
    per = outs // groups
    for tap in np.ndindex(*taps):
        part = whole[(slice(None), *[slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, out, stride)])]
        for g in range(groups):
            y[..., g * per:(g + 1) * per] += part[..., g * each:(g + 1) * each] @ w[tap][:, g * per:(g + 1) * per]
    return y


def by_kernel(x, by, attrs):
    """Of each tap the convolution with a kernel of this tap alone, times `by`."""
    x, by = wide(x), wide(by)
    taps, groups = attrs["taps"], attrs["groups"]
    each, outs = x.shape[-1] // groups, by.shape[-1]
    y = np.zeros((*taps, each, outs))
    for tap in np.ndindex(*taps):
        for c in range(each):
            w = np.zeros((*taps, each, outs))
            w[tap][c] = 1
            y[tap][c] = np.sum(convolved(x, w, attrs) * by, axis=tuple(range(by.ndim - 1)))
    return y


def resampled(x, attrs):
    """The result, and the sum of the sizes of its terms."""
    axis, size, back = attrs["axis"], attrs["size"], attrs["transposed"]
    n, m = (size, x.shape[axis]) if back else (x.shape[axis], size)
    i, j = np.meshgrid(np.arange(m), np.arange(n), indexing="ij")
    if attrs["sampling"] == 0:
        weights = ((2 * i + 1) * n // (2 * max(m, 1)) == j).astype(float)
    elif attrs["sampling"] == 3:
        weights = ((j >= i * n // max(m, 1)) & (j * m < (i + 1) * n)).astype(float)
    else:
        t = np.abs(j + 0.5 - (i + 0.5) * n / max(m, 1)) / (max(1, n / max(m, 1)) if attrs["antialias"] else 1)
        if attrs["sampling"] == 1:
            weights = np.maximum(0, 1 - t)
        else:
            weights = np.where(t < 1, 1.5 * t**3 - 2.5 * t**2 + 1, np.where(t < 2, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2, 0))
    weights = weights / np.sum(weights, axis=1, keepdims=True)
    weights = weights.T if back else weights
    times = lambda a, b: np.moveaxis(np.tensordot(a, b, (1, axis)), 0, axis)
    return times(weights, x), times(np.abs(weights), np.abs(x))


def padded(x, attrs):
    low, high, inside = attrs["low"], attrs["high"], attrs["inside"]
    shape = [a + b + n + max(0, n - 1) * i for a, b, n, i in zip(low, high, x.shape, inside)]
    value = attrs["value"] if np.issubdtype(x.dtype, np.floating) else attrs["whole_value"]
    result = np.full(shape, value, dtype=x.dtype)
    result[tuple(slice(a, a + max(0, (n - 1) * (i + 1) + 1), i + 1)
                 for a, n, i in zip(low, x.shape, inside))] = x
    return result


def gathered(x, index, axis):
    index = index.astype(np.int64)
    return np.take(x, np.where(index < 0, index + x.shape[axis], index), axis=axis)


SCATTERS = {"scatter_add": np.add, "scatter_max": np.maximum, "scatter_min": np.minimum, "scatter_mul": np.multiply}


def scattered(combine, x, index, updates, attrs):
    axis = attrs["axis"]
    result = x.copy()
    index = index.astype(np.int64)
    where = np.where(index < 0, index + x.shape[axis], index)
    if attrs["along"]:
        grid = list(np.indices(index.shape))
        grid[axis] = where
        combine.at(result, tuple(grid), updates)
    else:
        moved = np.moveaxis(result, axis, 0)
        order = list(range(axis, axis + index.ndim)) + list(range(axis)) + list(range(axis + index.ndim, updates.ndim))
        combine.at(moved, where, updates.transpose(order))
    return result


def along(function, x, attrs, places=False):
    """A scan in its direction. Places count from the first element in either."""
    axis = attrs["axis"]
    if not attrs["reverse"]:
        return function(x, axis=axis)
    y = np.flip(function(np.flip(x, axis), axis=axis), axis)
    return x.shape[axis] - 1 - y if places else y


def first_places(x, axis, largest):
    """Where the extremum so far stands first."""
    x = np.moveaxis(x, axis, 0)
    best, places = x[:1].copy(), np.zeros(x.shape, np.int64)
    for i in range(1, len(x)):
        with np.errstate(invalid="ignore"):
            takes = (best[0] == best[0]) & ((x[i] != x[i]) | (x[i] > best[0] if largest else x[i] < best[0]))
        best[0] = np.where(takes, x[i], best[0])
        places[i] = np.where(takes, i, places[i - 1])
    return np.moveaxis(places, 0, axis)


def recurrence(a, b, attrs):
    def forward(pair, axis):
        factors, y = (np.moveaxis(each, axis, 0).copy() for each in pair)
        for i in range(1, len(y)):
            y[i] += factors[i] * y[i - 1]
        return np.moveaxis(y, 0, axis)
    axis = attrs["axis"]
    if attrs["reverse"]:
        return np.flip(forward((np.flip(a, axis), np.flip(b, axis)), axis), axis)
    return forward((a, b), axis)


def order_of(x, axis, descending):
    """Where the elements of x in order stand; of equal ones the first comes first."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    last_first = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(last_first, axis)


def largest_positive(columns, *others):
    """Columns whose element of largest magnitude is positive; the signs of other columns follow."""
    place = np.argmax(np.abs(columns), -2)[..., None, :]
    sign = np.where(np.take_along_axis(columns, place, -2) < 0, -1.0, 1.0)
    return [each * sign for each in (columns, *others)]


def turned(x):
    return np.swapaxes(x, -1, -2)


def qr(x, complete):
    q, r = np.linalg.qr(x, "complete" if complete else "reduced")
    sign = np.ones(q.shape[:-2] + q.shape[-1:])
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    sign[..., :diagonal.shape[-1]] = np.where(diagonal < 0, -1.0, 1.0)
    return q * sign[..., None, :], r * sign[..., :, None]


def svd(x):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    if s.size == 0:
        return u, s, vh
    v, u = largest_positive(turned(vh), u)
    return u, s, turned(v)


def eigh(x):
    values, vectors = np.linalg.eigh((x + turned(x)) / 2)
    return values, largest_positive(vectors)[0] if vectors.size else vectors


def one_by_one(function, *matrices):
    """SciPy's functions take one matrix."""
    batch = matrices[0].shape[:-2]
    results = [function(*(x[at] for x in matrices)) for at in np.ndindex(batch)]
    if not results:
        return None
    many = isinstance(results[0], tuple)
    stacked = [np.reshape(np.stack(each), batch + each[0].shape) for each in (zip(*results) if many else [results])]
    return stacked if many else stacked[0]


def eliminated(x):
    packed, pivots = scipy.linalg.lu_factor(x) if x.size else (x, [])
    order = np.arange(len(x))
    for i, j in enumerate(pivots):
        order[[i, j]] = order[[j, i]]
    return packed, order


def solved_triangle(attrs):
    return lambda a, b: scipy.linalg.solve_triangular(a, b, lower=bool(attrs["lower"]), trans=int(attrs["transposed"]),
                                                      unit_diagonal=bool(attrs["unit_diagonal"]))


def linear_algebra(op, x, attrs, rest, which):
    """By LAPACK, in f64."""
    if op == "cholesky":
        return np.linalg.cholesky((x + turned(x)) / 2)
    if op == "eigh":
        return eigh(x)[which]
    if op == "expm":
        return one_by_one(scipy.linalg.expm, x)
    if op == "lu":
        made = one_by_one(eliminated, x)
        return made[which] if made else None
    if op == "pinv":
        return np.linalg.pinv(x, attrs["rtol"] if attrs["rtol"] >= 0 else 1e-6)
    if op == "qr":
        return qr(x, attrs["complete"])[which]
    if op == "solve":
        return np.linalg.solve(turned(x) if attrs["transposed"] else x, rest[0])
    if op == "solve_triangular":
        return one_by_one(solved_triangle(attrs), x, rest[0]) if x.size else rest[0]
    return svd(x)[which]


LINALG = ("cholesky", "eigh", "expm", "lu", "pinv", "qr", "solve", "solve_triangular", "svd")


def computed(case, operands, result):
    """What NumPy gives: an array and how far ours may be from it, absolutely."""
    op, attrs = case["op"], case["attrs"]
    x = operands[0].value if operands else None
    none = np.float64(0)
    if op == "cast":
        return converted(x, operands[0].dtype, attrs["dtype"]), none
    if op in UNARY:
        return UNARY[op](x != 0 if op == "logical_not" else x), none
    if op in UNARY_FLOAT:
        return UNARY_FLOAT[op](wide(to_float(x))), none
    if op == "polygamma":
        common = promote(operands[0].dtype, operands[1].dtype)
        return polygamma(*(to_float(converted(o.value, o.dtype, common)) for o in operands), result.value), none
    if op in BINARY:
        common = promote(operands[0].dtype, operands[1].dtype)
        if op.startswith("logical"):
            return BINARY[op](operands[0].value != 0, operands[1].value != 0), none
        a, b = (converted(o.value, o.dtype, common) for o in operands)
        return BINARY[op](a, b), none
    if op == "clip":
        return np.minimum(operands[2].value, np.maximum(operands[1].value, x)), none
    if op == "where":
        common = promote(operands[1].dtype, operands[2].dtype)
        a, b = (converted(o.value, o.dtype, common) for o in operands[1:])
        return np.where(x != 0, a, b), none
    if op in ("argmax", "argmin"):
        axes = attrs["axes"]
        find = np.argmax if op == "argmax" else np.argmin
        if not axes:
            return np.zeros(result.value.shape, np.int64), none
        axis = axes[0] if len(axes) == 1 else None
        return find(x, axis=axis, keepdims=bool(attrs["keepdims"])).astype(np.int64), none
    if op in REDUCE:
        axes, keep = tuple(attrs["axes"]), bool(attrs["keepdims"])
        if op in ("sum", "prod"):
            y = REDUCE[op](wide(x) if x.dtype.kind == "f" else x.astype(widest(x)), axis=axes, keepdims=keep)
            if x.dtype.kind != "f":
                return y, none
            size = math.prod(x.shape[a] for a in axes)
            unit = EPSILON["f64"] if operands[0].dtype == "f64" else EPSILON["f32"]
            scale = np.sum(np.abs(wide(x)), axis=axes, keepdims=keep) if op == "sum" else size * np.abs(y)
            return y, (400 if op == "sum" else 1) * unit * scale
        return REDUCE[op](x != 0 if op in ("all", "any") else x, axis=axes, keepdims=keep), none
    if op == "softmax":
        return softmax(x, attrs["axis"]), none
    if op == "log_softmax":
        y = log_softmax(x, attrs["axis"])
        return y, 100 * EPSILON.get(result.dtype) * np.ones_like(y)
    if op == "reshape":
        return x.reshape(attrs["shape"]), none
    if op == "transpose":
        return x.transpose(attrs["order"]), none
    if op == "broadcast_to":
        return np.broadcast_to(x, attrs["shape"]), none
    if op == "slice":
        for axis, (begin, size, step) in enumerate(zip(attrs["begin"], attrs["size"], attrs["step"])):
            x = np.take(x, begin + step * np.arange(size), axis=axis)
        return x, none
    if op == "update":
        y = x.copy()
        places = [b + s * np.arange(n) for b, n, s in zip(attrs["begin"], attrs["size"], attrs["step"])]
        y[np.ix_(*places) if places else ()] = operands[1].value
        return y, none
    if op == "concat":
        return np.concatenate([o.value for o in operands], axis=attrs["axis"]), none
    if op == "pad":
        return padded(x, attrs), none
    if op == "gather":
        return gathered(x, operands[1].value, attrs["axis"]), none
    if op == "put":
        y = x.copy()
        index = np.atleast_1d(operands[1].value.astype(np.int64)).ravel()
        for i, row in zip(index, operands[2].value.reshape((index.size,) + x.shape[1:])):
            y[i] = row
        return y, none
    if op == "take_along_axis":
        index = operands[1].value.astype(np.int64)
        index = np.where(index < 0, index + x.shape[attrs["axis"]], index)
        return np.take_along_axis(x, index, attrs["axis"]), none
    if op in SCATTERS:
        if operands[0].dtype == "bf16":
            return None, none  # Rounds to bf16 after each step; NumPy has no such type.
        return scattered(SCATTERS[op], x, operands[1].value, operands[2].value, attrs), none
    if op == "fourier":
        axis, z = attrs["axes"][0], x[..., 0] + 1j * x[..., 1].astype(np.float64)
        y = (np.fft.ifft(z, axis=axis, norm="forward") if attrs["inverse"] else np.fft.fft(z, axis=axis)) * attrs["scale"]
        size = np.sum(np.abs(z), axis=axis, keepdims=True) * np.ones(z.shape) * abs(attrs["scale"])
        allowed = 12 * EPSILON[result.dtype] * (2 + math.log2(x.shape[axis])) * size
        return np.stack([y.real, y.imag], -1), np.stack([allowed, allowed], -1)
    if op == "real_fourier":
        n, inverse = attrs["count"], bool(attrs["inverse"])
        z = (x[..., 0] + 1j * x[..., 1].astype(np.float64)) if inverse else x.astype(np.float64)
        double = np.array([k > 0 and 2 * k != n for k in range(n // 2 + 1)])
        if inverse:
            y = np.fft.irfft(np.where(double & bool(attrs["adjoint"]), z / 2, z), n, norm="forward")
        else:
            y = np.fft.rfft(z)
            y = np.where(double & bool(attrs["adjoint"]), y * 2, y)
            y = np.stack([y.real, y.imag], -1)
        size = np.sum(np.abs(z), axis=-1) * abs(attrs["scale"]) * 96 * EPSILON[result.dtype] * (2 + math.log2(n))
        return y * attrs["scale"], size.reshape(size.shape + (1,) * (y.ndim - size.ndim)) * np.ones_like(y)
    if op == "searchsorted":
        values = operands[1].value
        found = np.zeros(values.shape, np.int64)
        for row in np.ndindex(x.shape[:-1]):
            found[row] = np.searchsorted(x[row], values[row], "right" if attrs["right"] else "left")
        return found, none
    if op in ("cummax", "cummin"):
        y = along(np.maximum.accumulate if op == "cummax" else np.minimum.accumulate, x, attrs)
        if case["which"] == 0:
            return y, none
        return along(lambda z, axis: first_places(z, axis, op == "cummax"), x, attrs, places=True), none
    if op == "cumprod":
        y = along(np.cumprod, wide(x) if x.dtype.kind == "f" else x.astype(widest(x)), attrs)
        unit = EPSILON["f64"] if operands[0].dtype == "f64" else EPSILON["f32"]
        return y, (x.shape[attrs["axis"]] * unit * np.abs(y) if x.dtype.kind == "f" else none)
    if op == "linear_scan":
        a, b = (wide(o.value) if o.value.dtype.kind == "f" else o.value for o in operands)
        y, sizes = (recurrence(*pair, attrs) for pair in ((a, b), (np.abs(a), np.abs(b))))
        unit = EPSILON["f64"] if operands[0].dtype == "f64" else EPSILON["f32"]
        return y, (2 * x.shape[attrs["axis"]] * unit * sizes if x.dtype.kind == "f" else none)
    if op == "first_equal":
        _, first, which = np.unique(x, return_index=True, return_inverse=True)
        return first[which].astype(np.int64), none
    if op in ("sort", "top_k"):
        axis = attrs["axis"]
        order = order_of(x, axis, op == "top_k" or attrs["descending"])
        if op == "top_k":
            order = np.take(order, np.arange(attrs["k"]), axis=axis)
        return (order if case["which"] == 1 else np.take_along_axis(x, order, axis)), none
    if op == "cumsum":
        axis = attrs["axis"]
        y = wide(x) if x.dtype.kind == "f" else x.astype(widest(x))
        y = np.flip(np.cumsum(np.flip(y, axis), axis=axis), axis) if attrs["reverse"] else np.cumsum(y, axis=axis)
        if x.dtype.kind != "f":
            return y, none
        unit = EPSILON["f64"] if operands[0].dtype == "f64" else EPSILON["f32"]
        return y, x.shape[axis] * unit * np.sum(np.abs(wide(x)), axis=axis, keepdims=True) * np.ones_like(y)
    if op == "resample":
        y, total = resampled(wide(x), attrs)
        unit = EPSILON["f64"] if operands[0].dtype == "f64" else EPSILON["f32"]
        return y, 300 * unit * total
    if op in LINALG:
        y = linear_algebra(op, wide(x), attrs, [wide(o.value) for o in operands[1:]], case["which"])
        if y is None or y.dtype.kind != "f":
            return y, none
        return y, 128 * (x.shape[-2] + 1) * EPSILON[operands[0].dtype] * np.max(np.abs(y), initial=0) * np.ones_like(y)
    if op == "distances":
        a, b = wide(operands[0].value), wide(operands[1].value)
        y = np.sqrt(np.sum(np.square(a[..., :, :, None] - b[..., None, :, :]), axis=-2))
        return y, (8 + a.shape[-1]) * EPSILON["f64" if operands[0].dtype == "f64" else "f32"] * y
    if op == "weighted_differences":
        weights, a, b = (wide(operand.value) for operand in operands)
        summed = lambda differences: np.sum(weights[..., None] * differences, axis=-2)
        y = summed(a[..., :, None, :] - b[..., None, :, :])
        weights = np.abs(weights)
        sizes = summed(np.abs(a)[..., :, None, :] + np.abs(b)[..., None, :, :])
        return y, 300 * EPSILON["f64" if operands[0].dtype == "f64" else "f32"] * sizes
    if op in ("matmul", "conv2d", "conv3d", "conv_kernel"):
        a, b = operands[0].value, operands[1].value
        if a.dtype.kind != "f":
            return np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(NUMPY[result.dtype]), none
        product = np.matmul if op == "matmul" else lambda p, q: (by_kernel if op == "conv_kernel" else convolved)(p, q, attrs)
        unit = EPSILON["f64"] if operands[0].dtype == "f64" else EPSILON["f32"]
        return product(wide(a), wide(b)), 300 * unit * product(np.abs(wide(a)), np.abs(wide(b)))
    if op == "arange":
        count = attrs["shape"][0]
        if attrs["whole"]:
            whole = np.int64(attrs["whole_start"]) + np.arange(count, dtype=np.int64) * np.int64(attrs["whole_step"])
            return converted(whole, "i64", attrs["dtype"]), none
        return converted(attrs["start"] + np.arange(count) * attrs["step"], "f64", attrs["dtype"]), none
    raise KeyError(f"{op}: numpy_sweep.py does not know it; say what it is in NumPy")


def check(case, operands, result):
    """What is wrong with a case, or None."""
    with np.errstate(all="ignore"):
        want, allowed = computed(case, operands, result)
        if want is None:
            return None
        got = result.value
        if tuple(np.shape(want)) != got.shape:
            return f"shape {got.shape}, NumPy has {np.shape(want)}"
        if got.dtype.kind != "f":
            if np.array_equal(got, want):
                return None
            at = tuple(np.argwhere(got != want)[0])
            return f"element {at}: {got[at]}, NumPy has {want[at]}"
        want = np.asarray(want)
        exact = rounded(want, result.dtype)
        ulps = ULPS.get(case["op"], 0)
        if result.dtype in ("f16", "bf16"):
            ulps = max(1, ulps // 8) if ulps else 0
        if np.any(allowed != 0):
            ulps = max(ulps, 1)
        a, b = wide(got), wide(np.asarray(exact))
        room = ulps * np.maximum(np.abs(b) * EPSILON[result.dtype], LEAST[result.dtype]) + allowed
        good = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= room)
        # Near the largest number the last ulp may be the infinity.
        good |= np.isinf(b) & (np.abs(wide(want)) < np.inf) & (np.sign(a) == np.sign(b)) & (np.abs(a) > 0) & (room > 0)
        if np.all(good):
            return None
        at = tuple(np.argwhere(~np.atleast_1d(good))[0]) if np.ndim(good) else ()
        return f"element {at}: {got[at]!r}, NumPy has {exact[at]!r}"


def main(driver, folder):
    subprocess.run([driver, folder], check=True)
    data = open(os.path.join(folder, "data.bin"), "rb").read()
    compared, wrong, seen = {}, 0, set()
    for line in open(os.path.join(folder, "cases.jsonl")):
        case = json.loads(line)
        op = case["op"]
        operands = [Array(data, record) for record in case["operands"]]
        if op in DRAWS or op == "print" and not PRINTS_BY_DTYPE:
            continue
        if op == "print":
            text = str(operands[0].value)
            problem = None if text == case["printed"] else \
                f"prints\n{case['printed']}\nNumPy prints\n{text}"
            case["text"] = f"print {operands[0].dtype}{list(operands[0].value.shape)}"
        else:
            problem = check(case, operands, Array(data, case["result"]))
        compared[op] = compared.get(op, 0) + 1
        if problem:
            wrong += 1
            if op not in seen or op == "print" and wrong < 40:
                print(f"{case['text']}: {problem}")
            seen.add(op)
    print(f"NumPy {np.__version__}: {sum(compared.values())} cases of {len(compared)} ops compared, {wrong} differ")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
