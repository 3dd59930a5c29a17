"""What programs mean, said by NumPy and JAX.

A value is a pair: its elements as NumPy computes them, in f64, and, where it is a float that depends on
an argument, what JAX traces. Whole numbers and truths are known: they are never traced, so that
branches are taken, loops unrolled and indices read while JAX looks on. Where they come from floats the
floats are noted (`guards`), so that whoever changes the floats a little can see whether they would
have come out otherwise. The file is long because ops are many: one short definition each.
"""

import math
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from scipy import special

from program_text import is_number, plain, size_of

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


# ---- moving elements: what goes where is found by moving their numbers --------------------------------

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


# ---- computing ----------------------------------------------------------------------------------------

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


def targets(at, x, index):
    """The number of the element of x that each update of a scatter goes to."""
    axis = at.whole("axis")
    places = np.arange(x.a.size).reshape(x.a.shape)
    if at.whole("along"):
        return np.take_along_axis(places, index.a % x.a.shape[axis], axis).reshape(-1)
    return np.take(places, index.a, axis).reshape(-1)


UNARY = {
    # The slope at 0 is 0, as in PyTorch and TensorFlow; that of JAX is 1.
    "abs": (np.abs, lambda x: lax.mul(x, lax.sign(x))), "ceil": (np.ceil, lax.ceil), "cos": (np.cos, lax.cos), "erf": (erf, lax.erf),
    "erfc": (np.vectorize(math.erfc, otypes=[np.float64]), lax.erfc),
    "exp": (np.exp, lax.exp), "expm1": (np.expm1, lax.expm1), "floor": (np.floor, lax.floor),
    "identity": (np.copy, lambda x: x), "log": (np.log, lax.log), "log1p": (np.log1p, lax.log1p),
    "log2": (np.log2, lambda x: lax.log(x) / math.log(2)), "negative": (np.negative, lax.neg),
    "reciprocal": (lambda a: 1 / a, lambda x: 1 / x),
    "relu": (lambda a: np.maximum(a, 0), lambda x: lax.select(lax.gt(x, full_like(x, 0)), x, full_like(x, 0))),
    "round": (np.rint, lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    "rsqrt": (lambda a: 1 / np.sqrt(a), lax.rsqrt), "sigmoid": (lambda a: 1 / (1 + np.exp(-a)), lax.logistic),
    "sign": (np.sign, lax.sign), "sin": (np.sin, lax.sin), "sqrt": (np.sqrt, lax.sqrt),
    "square": (np.square, lambda x: lax.mul(x, x)), "tan": (np.tan, lax.tan), "tanh": (np.tanh, lax.tanh),
    "stop_gradient": (np.copy, lax.stop_gradient),
    # The cumulative distribution by erfc, which keeps its digits in the negative tail.
    "gelu": (lambda a: a * 0.5 * (1 + erf(a / math.sqrt(2))), lambda x: x * 0.5 * lax.erfc(-x / math.sqrt(2))),
    "silu": (lambda a: a / (1 + np.exp(-a)), lambda x: x * lax.logistic(x)),
    "softplus": (lambda a: np.logaddexp(a, 0), lambda x: jnp.logaddexp(x, 0.0)),
    "acos": (np.arccos, lax.acos), "acosh": (np.arccosh, lax.acosh), "asin": (np.arcsin, lax.asin), "asinh": (np.arcsinh, lax.asinh),
    "atan": (np.arctan, lax.atan), "atanh": (np.arctanh, lax.atanh), "cosh": (np.cosh, lax.cosh),
    "digamma": (special.digamma, lax.digamma), "erfinv": (special.erfinv, lax.erf_inv), "lgamma": (special.gammaln, lax.lgamma),
    "log10": (np.log10, lambda x: lax.log(x) / math.log(10)), "sinh": (np.sinh, lax.sinh),
    "trigamma": (lambda a: special.polygamma(1, a), lambda x: lax.polygamma(full_like(x, 1), x)),
}
BINARY = {
    "add": (np.add, lax.add), "subtract": (np.subtract, lax.sub), "multiply": (np.multiply, lax.mul),
    "divide": (np.divide, lax.div), "maximum": (np.maximum, lax.max), "minimum": (np.minimum, lax.min),
    "copysign": (np.copysign, lambda x, y: lax.abs(x) * jnp.where(y < 0, -1.0, 1.0)), "hypot": (np.hypot, lambda x, y: lax.sqrt(x * x + y * y)),
    "logaddexp": (np.logaddexp, jnp.logaddexp), "polygamma": (special.polygamma, lambda n, x: lax.polygamma(jnp.broadcast_to(lax.stop_gradient(n), x.shape), x)), "xlogy": (special.xlogy, lambda x, y: x * lax.log(y)),
    "atan2": (np.arctan2, lax.atan2), "pow": (np.power, lax.pow),
    "floor_divide": (np.floor_divide, lambda x, y: lax.floor(lax.div(x, y))),
    "remainder": (np.remainder, lambda x, y: lax.sub(x, lax.mul(y, lax.floor(lax.div(x, y))))),
}
# The result is known whatever the operands are.
KNOWN = {
    "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "less": np.less, "less_equal": np.less_equal, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
    "logical_not": np.logical_not, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "bitwise_invert": np.invert,
    "bit_count": lambda a: np.bitwise_count(a.view(f"u{a.dtype.itemsize}")).astype(a.dtype), "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}


def logsumexp(xp, x, axes, keep):
    top = xp.max(x, axis=axes, keepdims=True)
    top = top if xp is np else Traced(lax.stop_gradient(top.x))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axes, keepdims=True)) + top
    return total if keep else xp.squeeze(total, axes)


def softmax(xp, x, axis):
    if x.shape[axis] == 0:
        return x
    return xp.exp(x - logsumexp(xp, x, (axis,), True))


def variance(xp, x, axes, keep):
    d = x - xp.mean(x, axis=axes, keepdims=True)
    return xp.mean(d * d, axis=axes, keepdims=keep)


REDUCTIONS = {
    "sum": lambda xp, x, axes, keep: xp.sum(x, axis=axes, keepdims=keep),
    "prod": lambda xp, x, axes, keep: xp.prod(x, axis=axes, keepdims=keep),
    "max": lambda xp, x, axes, keep: xp.max(x, axis=axes, keepdims=keep),
    "min": lambda xp, x, axes, keep: xp.min(x, axis=axes, keepdims=keep),
    "mean": lambda xp, x, axes, keep: xp.mean(x, axis=axes, keepdims=keep),
    "var": variance,
    "logsumexp": logsumexp,
}


def layer_norm(xp, x, epsilon):
    d = x - xp.mean(x, axis=-1, keepdims=True)
    return d / xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True) + epsilon)


def rms_norm(xp, x, epsilon):
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + epsilon)


def summed(subscripts):
    return both(lambda xp, *x: xp.einsum(subscripts, *x))


def patches(x, kernel, stride, low, high, dilation, filler, spread=None):
    """[n, rows, columns, height, width, channels]: what each window sees; `filler` is outside. Of any number of axes."""
    axes = range(len(kernel))
    spread = spread or [1] * len(kernel)
    covered = [max(0, (n - 1) * s + 1) for n, s in zip(x.a.shape[1:], spread)]
    sizes = [max(0, (covered[i] + low[i] + high[i] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1) for i in axes]

    def look(a, outside):
        if 0 in sizes:
            return np.zeros([a.shape[0], *sizes, *kernel, a.shape[-1]], a.dtype)
        wide = np.full([a.shape[0], *[covered[i] + max(0, low[i]) + max(0, high[i]) for i in axes], a.shape[-1]], outside.reshape(-1)[0], a.dtype)
        wide[(slice(None), *[slice(max(0, low[i]), max(0, low[i]) + covered[i], spread[i]) for i in axes])] = a
        wide = wide[(slice(None), *[slice(max(0, -low[i]), wide.shape[1 + i] - max(0, -high[i])) for i in axes])]
        places = [np.arange(sizes[i])[:, None] * stride[i] + np.arange(kernel[i])[None] * dilation[i] for i in axes]
        index = [places[i].reshape([sizes[i] if j == i else 1 for j in axes] + [kernel[i] if j == i else 1 for j in axes]) for i in axes]
        return wide[(slice(None), *index)]
    return moved(look, x, V(np.array([filler])))


def convolved(x, w, stride, low, high, dilation, groups, spread=None):
    *kernel, inputs, outputs = w.a.shape
    seen = patches(x, kernel, stride, low, high, dilation, 0.0, spread)
    n, *sizes = seen.a.shape[:1 + len(kernel)]
    seen = moved(lambda a: a.reshape(n, int(np.prod(sizes)), int(np.prod(kernel)), groups, inputs), seen)
    taps = moved(lambda a: a.reshape(int(np.prod(kernel)), inputs, groups, outputs // groups), w)
    y = summed("npkgi,kigo->npgo")(seen, taps)
    return moved(lambda a: a.reshape(n, *sizes, outputs), y)


def sampling_weights(method, antialias, n, m):
    """[m, n]: how much of each of n samples is in each of m."""
    i, j = np.meshgrid(np.arange(m), np.arange(n), indexing="ij")
    t = np.abs(j + 0.5 - (i + 0.5) * n / m) / (max(1, n / m) if antialias else 1)
    weights = [(2 * i + 1) * n // (2 * m) == j, np.maximum(0, 1 - t),
               np.where(t < 1, 1.5 * t**3 - 2.5 * t**2 + 1, np.where(t < 2, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2, 0)),
               (j >= i * n // m) & (j * m < (i + 1) * n)][method].astype(float)
    return weights / weights.sum(1, keepdims=True)


def same_padding(size, kernel, stride, dilation):
    total = max(0, (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


@jax.custom_jvp
def with_slope(y, x, slope):
    """y, as if its derivative by x were `slope`."""
    return y


@with_slope.defjvp
def _(given, directions):
    return with_slope(*given), lax.mul(directions[1], given[2])


@jax.custom_jvp
def with_own_slope(y, x):
    """y, as if it were its own derivative by x: a gradient function that reads the result gets what others get, as in PyTorch."""
    return y


@with_own_slope.defjvp
def _(given, directions):
    y = with_own_slope(*given)
    return y, lax.mul(directions[1], y)


def to_nhwc(x):
    return moved(lambda a: a.transpose(0, 2, 3, 1), x)


def to_nchw(x):
    return moved(lambda a: a.transpose(0, 3, 1, 2), x)


def whole(a, to):
    """Truncates; what does not fit is the nearest that does, and NaN is 0."""
    ends = np.iinfo(to)
    inside = np.trunc(np.where(np.isnan(a), 0, a).astype(np.float64))
    below, above = inside <= ends.min, inside >= ends.max
    return np.where(below, ends.min, np.where(above, ends.max, np.where(below | above, 0, inside).astype(to))).astype(to)


class Meaning:
    """One run of a program."""

    def __init__(self, program, call, draws):
        self.program, self.sizes = program, program.sizes_at(call) if program.sizes else {}
        self.draws, self.drawn = draws, 0
        self.guards = []  # (function of NumPy arrays, the floats it read, what it gave)
        self.variables = {}  # name: V
        self.deltas = {}  # name: what each read of a Variable adds, whose gradient is that of the Variable

    def run(self, arguments):
        """Results for arguments by name."""
        scope = dict(arguments)
        self.block(self.program.body, scope)
        return [scope[name] for name in self.program.results]

    def block(self, body, scope):
        for statement in body:
            given = self.statement(statement, scope)
            if statement.outs:
                given = given if isinstance(given, (list, tuple)) else [given]
                for name, value in zip(statement.outs, given):
                    scope[name] = value

    def statement(self, s, scope):
        operands = [self.operand(text, scope) for text in s.operands]
        if s.op in UNARY:
            return computed(*UNARY[s.op], operands[0])
        if s.op in BINARY:
            return self.binary(s.op, *operands)
        if s.op in KNOWN:
            return self.known(lambda *a: KNOWN[s.op](*a), operands)
        return getattr(self, "do_" + s.op)(Attributes(self, s, scope), *operands)

    def operand(self, text, scope):
        if not is_number(text):
            return scope[plain(text)]
        return V(np.float64(text) if "." in text or "e" in text else np.int64(text))

    def known(self, function, operands):
        """Whole numbers or truths, read off floats or not."""
        with np.errstate(all="ignore"):
            a = np.asarray(function(*[v.a for v in operands]))
        floats = [v for v in operands if v.t is not None]
        if floats:
            self.guards.append((function, operands, a))
        return V(a)

    def binary(self, op, a, b):
        if not a.is_float and not b.is_float:
            return self.known(BINARY[op][0], [a, b])
        shape = np.broadcast_shapes(a.a.shape, b.a.shape)
        a, b = [V(np.asarray(v.a, np.float64), v.t) for v in (a, b)]
        return computed(*BINARY[op], spread(a, shape), spread(b, shape))

    def do_clip(self, _, x, low, high):
        """On a bound the slope is that of x, as in PyTorch; JAX gives half of it."""
        shape = np.broadcast_shapes(x.a.shape, low.a.shape, high.a.shape)
        def clipped(x, low, high):
            raised = lax.select(lax.lt(x, low), low, x)
            return lax.select(lax.gt(raised, high), high, raised)
        operands = [spread(V(np.asarray(v.a, np.float64), v.t), shape) for v in (x, low, high)]
        return computed(np.clip, clipped, *operands)

    def do_where(self, _, condition, x, y):
        shape = np.broadcast_shapes(condition.a.shape, x.a.shape, y.a.shape)
        chosen = np.broadcast_to(condition.a, shape) != 0
        return moved(lambda a, b: np.where(chosen, a, b), spread(x, shape), spread(y, shape))

    def do_leaky_relu(self, at, x):
        slope = at.real("slope")
        return computed(lambda a: np.where(a < 0, a * slope, a),
                        lambda t: lax.select(lax.lt(t, full_like(t, 0)), t * slope, t), x)

    def do_cast(self, at, x):
        to = np.dtype(DTYPES[at.text("dtype")])
        if to not in FLOATS:
            return self.known(lambda a: a != 0 if to == np.bool_ else whole(a, to) if a.dtype in FLOATS else a.astype(to), [x])
        # f64 meets 16-bit floats by way of f32, as documented: here, and where gradients come back.
        narrow = 2 in (to.itemsize, x.a.dtype.itemsize) and x.a.dtype in FLOATS
        for way in ([np.dtype(np.float32), to] if narrow else [to]):
            x = V(x.a.astype(way), None if x.t is None else lax.convert_element_type(x.t, way))
        return x

    # ---- reductions -----------------------------------------------------------------------------

    def reduction(self, at, x):
        axes, keep = at.axes(x), bool(at.whole("keepdims"))
        function = REDUCTIONS[at.op]
        return both(lambda xp, a: function(xp, a, axes, keep))(x)

    do_sum = do_prod = do_max = do_min = do_mean = do_var = do_logsumexp = reduction

    def root_of_squares(self, at, x):
        """A square root whose derivatives at 0 are 0, as documented."""
        axes, keep = at.axes(x), bool(at.whole("keepdims"))
        squares = both(lambda xp, a: variance(xp, a, axes, keep) if at.op == "std" else
                       xp.sum(a * a, axis=axes, keepdims=keep))(x)
        zero = self.known(lambda a: a == 0, [squares]).a

        def root(t):
            none = np.zeros(zero.shape)
            return lax.select(zero, none, lax.sqrt(lax.select(zero, none + 1, t)))
        return computed(np.sqrt, root, squares)

    do_std = do_norm = root_of_squares

    def do_all(self, at, x):
        return self.known(lambda a: np.all(a != 0, axis=at.axes(x), keepdims=bool(at.whole("keepdims"))), [x])

    def do_any(self, at, x):
        return self.known(lambda a: np.any(a != 0, axis=at.axes(x), keepdims=bool(at.whole("keepdims"))), [x])

    def do_argmax(self, at, x):
        return self.known(lambda a: np.argmax(a, at.whole("axes"), keepdims=bool(at.whole("keepdims"))), [x])

    def do_argmin(self, at, x):
        return self.known(lambda a: np.argmin(a, at.whole("axes"), keepdims=bool(at.whole("keepdims"))), [x])

    def do_softmax(self, at, x):
        return both(lambda xp, a: softmax(xp, a, at.whole("axis")))(x)

    def do_log_softmax(self, at, x):
        axis = at.whole("axis")
        return x if x.a.shape[axis] == 0 else both(lambda xp, a: a - logsumexp(xp, a, (axis,), True))(x)

    def do_cumsum(self, at, x):
        axis, back = at.whole("axis"), at.whole("reverse")
        return computed(lambda a: np.flip(np.cumsum(np.flip(a, axis), axis), axis) if back else np.cumsum(a, axis),
                        lambda t: lax.cumsum(t, axis, reverse=bool(back)), x)

    def recurrence(self, at, x, terms=None):
        """By one step after another."""
        axis, back = at.whole("axis"), at.whole("reverse")
        count = x.a.shape[axis]

        def steps(xp):
            def run(a, b=None):
                if count == 0:
                    return a if b is None else b
                take = lambda y, i: y[(slice(None),) * axis + (slice(i, i + 1),)]
                order, made = (range(count - 1, -1, -1) if back else range(count)), {}
                for step, i in enumerate(order):
                    if step == 0:
                        made[i] = take(a if b is None else b, i)
                    else:
                        made[i] = take(a, i) * state + (0 if b is None else take(b, i))
                    state = made[i]
                return xp.concatenate([made[i] for i in range(count)], axis)
            return run
        return computed(steps(np), steps(jnp), *([x] if terms is None else [x, terms]))

    do_cumprod = do_linear_scan = recurrence

    def do_fourier(self, at, x):
        axis, inverse, scale = at.wholes("axes")[0], at.whole("inverse"), at.real("scale")

        def transformed(xp):
            def run(a):
                n = a.shape[axis]
                angles = (2 if inverse else -2) * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n
                c, s = np.cos(angles) * scale, np.sin(angles) * scale
                times = lambda matrix, part: xp.moveaxis(xp.matmul(xp.moveaxis(part, axis, -1), matrix), -1, axis)
                return xp.stack([times(c, a[..., 0]) - times(s, a[..., 1]), times(s, a[..., 0]) + times(c, a[..., 1])], -1)
            return run
        return computed(transformed(np), transformed(jnp), x)

    def extremum_so_far(self, at, x):
        axis, back = at.whole("axis"), at.whole("reverse")

        def places(a):
            """Of equal elements the first has the slope."""
            a = np.moveaxis(np.flip(a, axis) if back else a, axis, 0)
            found = np.zeros(a.shape, np.int64)
            for i in range(1, len(a)):
                best = np.take_along_axis(a, found[i - 1:i], 0)[0]
                found[i] = np.where(a[i] > best if at.op == "cummax" else a[i] < best, i, found[i - 1])
            found = np.moveaxis(len(a) - 1 - found if back else found, 0, axis)
            return np.flip(found, axis) if back else found
        order = self.known(places, [x])
        return moved(lambda a: np.take_along_axis(a, order.a, axis), x)

    do_cummax = do_cummin = extremum_so_far

    def do_searchsorted(self, at, row, values):
        return self.known(lambda r, v: np.searchsorted(r, v, "right" if at.whole("right") else "left"), [row, values])

    def sorted(self, at, x):
        axis = at.whole("axis")
        down = at.op == "top_k" or at.whole("descending")
        kept = at.whole("k") if at.op == "top_k" else x.a.shape[axis]

        def places(a):
            """Of equal elements the first comes first."""
            order = np.argsort(np.flip(a, axis) if down else a, axis, kind="stable")
            order = np.flip(a.shape[axis] - 1 - order, axis) if down else order
            return np.take(order, np.arange(kept), axis)
        order = self.known(places, [x])
        return [moved(lambda a: np.take_along_axis(a, order.a, axis), x), order]

    do_sort = do_top_k = sorted

    def normed(self, at, x, scale=None, bias=None):
        function = layer_norm if at.op == "layer_norm" else rms_norm
        y = both(lambda xp, a: function(xp, a, at.real("epsilon")))(x)
        y = y if scale is None else self.binary("multiply", y, scale)
        return y if bias is None else self.binary("add", y, bias)

    do_layer_norm = do_rms_norm = normed

    # ---- shapes ---------------------------------------------------------------------------------

    def do_reshape(self, at, x):
        return moved(lambda a: a.reshape(at.shape()), x)

    def do_broadcast_to(self, at, x):
        return moved(lambda a: np.broadcast_to(a, at.shape()), x)

    def do_transpose(self, at, x):
        return moved(lambda a: a.transpose(at.wholes("order")), x)

    def do_slice(self, at, x):
        return moved(lambda a: a[at.places()], x)

    def do_update(self, at, x, y):
        def put(a, b):
            a = a.copy()
            a[at.places()] = b
            return a
        return moved(put, x, y)

    def do_index(self, at, x):
        return moved(lambda a: a[at.index()], x)

    def do_update_at(self, at, x, y):
        def put(a, b):
            a = a.copy()
            a[at.index()] = b
            return a
        return moved(put, x, V(np.asarray(y.a, np.float64), y.t))

    def do_concat(self, at, *parts):
        return moved(lambda *a: np.concatenate(a, at.whole("axis")), *parts)

    def do_stack(self, at, *parts):
        return moved(lambda *a: np.stack(a, at.whole("axis")), *parts)

    def padded(self, x, low, high, inside, value):
        def put(a, filler):
            sizes = [l + h + s + max(0, s - 1) * i for s, l, h, i in zip(a.shape, low, high, inside)]
            wide = np.full(sizes, filler.reshape(-1)[0], a.dtype)
            wide[tuple(slice(l, l + s + max(0, s - 1) * i, i + 1) for s, l, i in zip(a.shape, low, inside))] = a
            return wide
        return moved(put, x, V(np.array([value])))

    def do_pad(self, at, x):
        return self.padded(x, at.wholes("low"), at.wholes("high"), at.wholes("inside"), at.real("value"))

    def do_td_pad(self, at, x):
        return self.padded(x, at.shape("low"), at.shape("high"), [0] * x.a.ndim, at.real("value"))

    def do_expand_dims(self, at, x):
        return moved(lambda a: np.expand_dims(a, at.whole("axis")), x)

    def do_squeeze(self, at, x):
        return moved(lambda a: np.squeeze(a, at.axes(x)), x)

    def do_split(self, at, x):
        axis = at.whole("axis")
        cuts = np.cumsum(at.wholes("sizes"))[:-1] if "sizes" in at.attrs else at.whole("parts")
        count = len(np.split(x.a, cuts, axis))
        return [moved(lambda a, i=i: np.split(a, cuts, axis)[i], x) for i in range(count)]

    def do_unstack(self, at, x):
        axis = at.whole("axis")
        return [moved(lambda a, i=i: np.take(a, i, axis), x) for i in range(x.a.shape[axis])]

    def do_tile(self, at, x):
        return moved(lambda a: np.tile(a, at.wholes("counts")), x)

    def do_repeat(self, at, x):
        return moved(lambda a: np.repeat(a, at.size("count"), at.whole("axis") if "axis" in at.attrs else None), x)

    def do_flip(self, at, x):
        return moved(lambda a: np.flip(a, at.axes(x)), x)

    def triangle(self, at, x):
        keep = (np.tril if at.op == "tril" else np.triu)(np.ones(x.a.shape[-2:]), at.whole("diagonal")) != 0
        keep = np.broadcast_to(keep, x.a.shape)
        return moved(lambda a, zero: np.where(keep, a, zero.reshape(-1)[0]), x, V(np.zeros(1)))

    do_tril = do_triu = triangle

    # ---- making ---------------------------------------------------------------------------------

    def do_arange(self, at):
        to = DTYPES[at.text("dtype")]
        if "size" in at.attrs:
            return V(np.arange(at.size("size")).astype(to))
        return V(np.arange(at.real("start"), at.real("stop"), at.real("step")).astype(to))

    def do_linspace(self, at):
        return V(np.linspace(at.real("start"), at.real("stop"), at.whole("count")))

    def do_eye(self, at):
        return V(np.eye(at.whole("rows"), at.whole("columns")))

    def do_zeros(self, at):
        return V(np.zeros(at.shape()))

    def do_ones(self, at):
        return V(np.ones(at.shape()))

    def do_full(self, at):
        return V(np.full(at.shape(), at.real("value")))

    def do_one_hot(self, at, x):
        return V((x.a[..., None] == np.arange(at.whole("depth"))).astype(np.float64))

    def draw(self, at, *_):
        """What was drawn is taken from the run; it must be of the right kind."""
        wanted = (at.whole("n"),) if at.op == "random_permutation" else at.shape()
        if self.draws is None:
            return V(np.zeros(wanted, DTYPES[at.attrs.get("dtype", "i64")]))
        a = self.draws[self.drawn]
        self.drawn += 1
        ok = a.shape == tuple(wanted)
        if at.op == "random_permutation":
            ok = ok and sorted(a.tolist()) == list(range(at.whole("n")))
        elif at.op == "random_integers":
            ok = ok and bool(np.all((a >= at.whole("low")) & (a < at.whole("high"))))
        elif at.op == "random_uniform":
            ok = ok and bool(np.all((a >= at.real("a")) & (a <= at.real("b"))))
        if not ok:
            raise ValueError(f"{at.op} drew {a.tolist()}")
        return V(a)

    do_random_normal = do_random_uniform = do_random_bernoulli = do_random_integers = do_random_permutation = draw

    # ---- indices --------------------------------------------------------------------------------

    def do_gather(self, at, x, index):
        return moved(lambda a: np.take(a, index.a, at.whole("axis")), x)

    def do_embedding(self, _, x, index):
        return moved(lambda a: np.take(a, index.a, 0), x)

    def do_take_along_axis(self, at, x, index):
        axis = at.whole("axis")
        return moved(lambda a: np.take_along_axis(a, index.a % a.shape[axis], axis), x)

    def do_put(self, _, x, index, element):
        def put(a, b):
            a = a.copy()
            for number, place in enumerate(index.a.reshape(-1)):
                a[place] = b.reshape(index.a.size, *a.shape[1:])[number]
            return a
        return moved(put, x, element)

    def do_scatter_add(self, at, x, index, updates):
        to = targets(at, x, index)
        def add(a, u):
            a = np.array(a).reshape(-1)
            np.add.at(a, to, u.reshape(-1))
            return a.reshape(x.a.shape)
        return computed(add, lambda t, u: scattered(jnp.reshape(t, (-1,)), to, jnp.reshape(u, (-1,))).reshape(x.a.shape), x, updates)

    def scatter_extremum(self, at, x, index, updates):
        """Equal elements share the slope evenly."""
        to = targets(at, x, index)
        combine = np.maximum if at.op == "scatter_max" else np.minimum

        def found(a, u):
            a = np.array(a).reshape(-1)
            combine.at(a, to, u.reshape(-1))
            return a

        def shares(a, u):
            y = found(a, u)
            kept, won = (a.reshape(-1) == y).astype(float), (u.reshape(-1) == y[to]).astype(float)
            count = kept.copy()
            np.add.at(count, to, won)
            return np.concatenate([kept / count, won / count[to]])
        share = self.known(shares, [x, updates]).a
        mine, theirs = share[:x.a.size], share[x.a.size:]

        def picked(t, u):
            return scattered(jnp.reshape(t, (-1,)) * mine, to, jnp.reshape(u, (-1,)) * theirs).reshape(x.a.shape)
        return computed(lambda a, u: found(a, u).reshape(x.a.shape), picked, x, updates)

    do_scatter_max = do_scatter_min = scatter_extremum

    def do_scatter_mul(self, at, x, index, updates):
        to, axis = targets(at, x, index).reshape(updates.a.shape), at.whole("axis")

        def product(t, u, put):
            y = t.reshape(-1)
            for i in range(u.shape[axis]):
                part, at_part = u.take(np.array([i]), axis=axis).reshape(-1), np.take(to, [i], axis).reshape(-1)
                apart = np.ones(x.a.size)
                apart[at_part] = 0
                y = y * put(apart, at_part, part)
            return y.reshape(x.a.shape)

        def put(apart, places, part):
            apart = apart.copy()
            apart[places] = part
            return apart
        return computed(lambda a, u: product(a, u, put), lambda t, u: product(t, u, scattered), x, updates)

    def do_first_equal(self, _, x):
        first = {}
        return V(np.array([first.setdefault(v, i) for i, v in enumerate(x.a.tolist())], np.int64))

    # ---- products -------------------------------------------------------------------------------

    def do_matmul(self, at, a, b):
        if at.whole("transpose_a"):
            a = moved(lambda x: np.swapaxes(x, -1, -2), a)
        if at.whole("transpose_b"):
            b = moved(lambda x: np.swapaxes(x, -1, -2), b)
        return both(lambda xp, x, y: xp.matmul(x, y))(a, b)

    def do_tensordot(self, at, a, b):
        return both(lambda xp, x, y: xp.tensordot(x, y, at.whole("axes")))(a, b)

    def do_einsum(self, at, *operands):
        return summed(at.text("subscripts").replace(">", "->"))(*operands)

    def do_outer(self, _, a, b):
        return summed("i,j->ij")(a, b)

    def do_conv2d(self, at, x, w):
        return convolved(x, w, at.wholes("stride"), at.wholes("pad_low"), at.wholes("pad_high"), at.wholes("dilation"),
                         at.whole("groups"), at.wholes("spread"))

    do_conv3d = do_conv2d

    def do_resample(self, at, x):
        axis, size, back = at.whole("axis"), at.whole("size"), at.whole("transposed")
        sizes = (size, x.a.shape[axis]) if back else (x.a.shape[axis], size)
        weights = sampling_weights(at.whole("sampling"), at.whole("antialias"), *sizes)
        weights = weights.T if back else weights
        weighted = lambda xp: lambda v: xp.moveaxis(xp.tensordot(xp.asarray(weights, v.dtype), v, (1, axis)), 0, axis)
        return computed(weighted(np), weighted(jnp), x)

    def window(self, at, x, kernel, strides, dilations):
        pads = [same_padding(x.a.shape[1 + i], kernel[i], strides[i], dilations[i]) if at.whole("same") else (0, 0)
                for i in range(2)]
        return [p[0] for p in pads], [p[1] for p in pads]

    def do_td_conv2d(self, at, x, w):
        nchw = at.whole("nchw")
        x = to_nhwc(x) if nchw else x
        strides, dilations = at.wholes("strides"), at.wholes("dilations")
        low, high = self.window(at, x, w.a.shape[:2], strides, dilations)
        y = convolved(x, w, strides, low, high, dilations, at.whole("groups"))
        return to_nchw(y) if nchw else y

    def pooled(self, at, x, function):
        nchw = at.whole("nchw")
        x = to_nhwc(x) if nchw else x
        size, strides = at.wholes("size"), at.wholes("strides")
        low, high = self.window(at, x, size, strides, (1, 1))
        y = function(x, lambda v, filler: patches(v, size, strides, low, high, (1, 1), filler))
        return to_nchw(y) if nchw else y

    def do_max_pool(self, at, x):
        """The first of equals is taken, and the gradient goes to it alone."""
        def largest(v, look):
            seen = look(v, -np.inf)
            flat = moved(lambda a: a.reshape(a.shape[:3] + (a.shape[3] * a.shape[4], a.shape[5])), seen)
            first = self.known(lambda a: np.argmax(a, 3, keepdims=True), [flat]).a
            return moved(lambda a: np.take_along_axis(a, first, 3)[..., 0, :], flat)
        return self.pooled(at, x, largest)

    def do_avg_pool(self, at, x):
        def average(v, look):
            counts = np.sum(look(V(np.ones(v.a.shape)), 0.0).a, axis=(3, 4))
            return both(lambda xp, a: xp.sum(a, axis=(3, 4)) / counts)(look(v, 0.0))
        return self.pooled(at, x, average)

    def do_attention(self, at, q, k, v, mask=None):
        keep = np.ones((q.a.shape[-2], k.a.shape[-2]), bool)
        if at.whole("causal"):
            keep = np.tril(keep)
        if mask is not None:
            keep = keep & mask.a
        scale = at.real("scale") if "scale" in at.attrs else 1 / math.sqrt(q.a.shape[-1])
        sees = keep.any(-1, keepdims=True)
        hidden = np.where(keep | ~sees, 0.0, -1e300)

        def attend(xp, q, k, v):
            scores = xp.matmul(q, xp.swapaxes(k, -1, -2)) * scale + hidden
            return xp.matmul(softmax(xp, scores, scores.ndim - 1), v) * sees
        return both(attend)(q, k, v)

    def do_mse(self, _, x, y):
        return both(lambda xp, a, b: xp.mean((a - b) * (a - b)))(x, y)

    def do_sparse_softmax_cross_entropy(self, _, labels, logits):
        axis = logits.a.ndim - 1
        table = (labels.a[..., None] == np.arange(logits.a.shape[-1])).astype(np.float64)
        return both(lambda xp, a: xp.mean(logsumexp(xp, a, (axis,), False) - xp.sum(a * table, axis=-1)))(logits)

    def do_clip_by_norm(self, at, x):
        most = at.real("most")
        longer = self.known(lambda a: np.sqrt(np.sum(a * a)) > most, [x]).a
        return both(lambda xp, a: a * most / xp.sqrt(xp.sum(a * a)))(x) if longer else x

    # ---- Variables ------------------------------------------------------------------------------

    def do_read(self, at):
        name = at.text("to")
        now = self.variables[name]
        return V(now.a, now.x + self.deltas[name]) if name in self.deltas else now

    def assigned(self, name, value):
        self.variables[name] = V(value.a, None if value.t is None else lax.stop_gradient(value.t))

    def do_assign(self, at, x):
        self.assigned(at.text("to"), x)

    def do_assign_add(self, at, x):
        self.assigned(at.text("to"), self.binary("add", self.variables[at.text("to")], x))

    def do_assign_sub(self, at, x):
        self.assigned(at.text("to"), self.binary("subtract", self.variables[at.text("to")], x))

    def do_assign_slice(self, at, x):
        self.assigned(at.text("to"), self.do_update_at(at, self.variables[at.text("to")], x))

    def do_scatter_update(self, at, index, updates):
        self.assigned(at.text("to"), self.do_put(at, self.variables[at.text("to")], index, updates))

    # ---- control flow ---------------------------------------------------------------------------

    def run_block(self, block, scope, given=()):
        inner = dict(scope)
        inner.update(zip(block.params, given))
        self.block(block.body, inner)
        return [inner[name] for name in block.gives]

    def do_cond(self, at, chosen):
        return self.run_block(at.blocks[0 if chosen.a else 1], at.scope)

    def do_switch_case(self, at, number):
        last = len(at.blocks) - 1
        return self.run_block(at.blocks[int(number.a) if 0 <= number.a < last else last], at.scope)

    def do_fori_loop(self, at, lower, upper):
        carried = at.named("carry")
        for i in range(int(lower.a), int(upper.a)):
            carried = self.run_block(at.blocks[0], at.scope, [V(np.int64(i))] + carried)
        return carried

    def do_array_loop(self, at, lower, upper):
        carried, shape = at.named("carry"), at.shape()
        elements = [V(np.zeros(shape)) for _ in range(at.whole("elements"))]
        for i in range(int(lower.a), int(upper.a)):
            given = [V(np.int64(i))] + carried + [elements[0]] * at.whole("read")
            *carried, elements[i] = self.run_block(at.blocks[0], at.scope, given)
        return carried + self.stacked([[element] for element in elements])

    def do_array_moves(self, at, x, places, elements, picks):
        changed = self.do_put(at, x, places, elements)
        picked = moved(lambda a: np.take(a, picks.a, 0), changed)
        one = moved(lambda a: a[at.whole("read")], changed)
        last = moved(lambda a: a[-1], x)
        return self.binary("add", picked, self.binary("multiply", one, last))

    def do_custom_gradient(self, at, x):
        block = at.blocks[0]
        y, slope = self.run_block(block, at.scope, [x])
        if x.t is None:
            return y
        made = {out for s in block.body for out in s.outs}
        if block.gives[0] == block.gives[1] and block.gives[0] in made:
            return V(y.a, with_own_slope(y.x, x.t))
        return V(y.a, with_slope(y.x, x.t, slope.x))

    def do_while_loop(self, at):
        carried, most = at.named("carry"), at.whole("max_iterations") or 1000
        for _ in range(most):
            if not self.run_block(at.blocks[0], at.scope, carried)[0].a:
                break
            carried = self.run_block(at.blocks[1], at.scope, carried)
        return carried

    def trips(self, at, carried, order):
        xs, given = at.named("xs"), []
        for i in order:
            slices = [moved(lambda a, i=i: a[i], x) for x in xs]
            results = self.run_block(at.blocks[0], at.scope, carried + slices)
            carried = results[:len(carried)]
            given.append(results[len(carried):])
        return carried, given

    def stacked(self, given):
        """Along a new first axis."""
        return [moved(lambda *a: np.stack(a), *column) for column in zip(*given)]

    def of_no_trips(self, at, carried):
        """Nothing, in the shapes that a trip's results would have."""
        before = self.guards, self.variables, self.drawn, self.draws
        self.guards, self.variables, self.draws = [], dict(self.variables), None
        slices = [V(np.zeros(x.a.shape[1:], x.a.dtype)) for x in at.named("xs")]
        given = self.run_block(at.blocks[0], at.scope, carried + slices)[len(carried):]
        self.guards, self.variables, self.drawn, self.draws = before
        return [V(np.zeros((0,) + v.a.shape, v.a.dtype)) for v in given]

    def do_scan(self, at):
        count = at.named("xs")[0].a.shape[0]
        if count == 0:
            return at.named("carry") + self.of_no_trips(at, at.named("carry"))
        order = range(count - 1, -1, -1) if at.whole("reverse") else range(count)
        carried, given = self.trips(at, at.named("carry"), order)
        return carried + self.stacked(given[::-1] if at.whole("reverse") else given)

    def do_map_fn(self, at):
        if at.named("xs")[0].a.shape[0] == 0:
            return self.of_no_trips(at, [])
        return self.stacked(self.trips(at, [], range(at.named("xs")[0].a.shape[0]))[1])

    do_vectorized_map = do_map_fn

    def do_recompute(self, at, *given):
        return self.run_block(at.blocks[0], at.scope, given)

    do_call = do_recompute


class Attributes:
    """A statement's attributes, read as what they are."""

    def __init__(self, meaning, statement, scope):
        self.op, self.attrs, self.blocks, self.scope = statement.op, statement.attrs, statement.blocks, scope
        self.sizes = meaning.sizes

    def text(self, name):
        return str(self.attrs[name])

    def whole(self, name):
        return int(self.attrs.get(name, 0))

    def real(self, name):
        return float(self.attrs[name])

    def wholes(self, name):
        return [int(part) for part in str(self.attrs.get(name, "")).split(",") if part]

    def size(self, name):
        return size_of(self.text(name)).at(self.sizes)

    def shape(self, name="shape"):
        return tuple(size_of(part).at(self.sizes) for part in self.text(name)[1:-1].split(",") if part)

    def axes(self, x):
        return tuple(range(x.a.ndim)) if self.text("axes") == "all" else tuple(self.wholes("axes"))

    def named(self, name):
        return [self.scope[n] for n in str(self.attrs.get(name, "")).split(",") if n]

    def places(self):
        return np.ix_(*[b + s * np.arange(n) for b, n, s in zip(self.wholes("begin"), self.wholes("size"), self.wholes("step"))])

    def index(self):
        return tuple(self.item(text) for text in self.text("at").split(";"))

    def item(self, text):
        if text in ("new", "...", "all"):
            return {"new": None, "...": Ellipsis, "all": slice(None)}[text]
        if text[0] == "@":
            return self.scope[text[1:]].a
        if ":" not in text:
            return int(text)
        return slice(*[int(part) if part else None for part in text.split(":")])
