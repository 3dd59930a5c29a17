"""What elementwise ops mean."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import special

from meaning_values import DTYPES, FLOATS, V, computed, erf, full_like, moved, spread


def hypot(x, y):
    """The slope at the origin is 0, as that of norm; that of JAX is NaN."""
    squares = x * x + y * y
    none = squares == 0
    return jnp.where(none, 0, lax.sqrt(jnp.where(none, full_like(squares, 1), squares)))


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
    "copysign": (np.copysign, lambda x, y: x * lax.stop_gradient(lax.sign(x) * jnp.where(y < 0, -1.0, 1.0))), "hypot": (np.hypot, hypot),
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


def whole(a, to):
    """Truncates; what does not fit is the nearest that does, and NaN is 0."""
    ends = np.iinfo(to)
    inside = np.trunc(np.where(np.isnan(a), 0, a).astype(np.float64))
    below, above = inside <= ends.min, inside >= ends.max
    return np.where(below, ends.min, np.where(above, ends.max, np.where(below | above, 0, inside).astype(to))).astype(to)


class Elementwise:
    """A part of Meaning."""

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
