"""Runs what JAX traced in NumPy, and again with every rounding a little off.

JAX says what derivatives are; NumPy computes them in f64, without a compiler. How far results move when
each intermediate value is changed in its last places says how far a run in another order, with other
polynomials, or in f32 may be from them: no tolerance is guessed.

The change of a value depends on its bits alone, so that what is equal stays equal. NumPy can also
compute in f32 throughout, which is what a run in f32 is expected to be like.
"""

import math

import jax
import numpy as np
from scipy import special

EXACT = {}  # Primitives that round nothing.
ROUNDED = {}  # The others.


def exact(*names):
    return lambda function: [EXACT.__setitem__(name, function) for name in names] and function


def rounded(*names):
    return lambda function: [ROUNDED.__setitem__(name, function) for name in names] and function


erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])

for name, function in {
        "neg": np.negative, "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "max": np.maximum,
        "min": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
        "ge": np.greater_equal, "and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert,
        "is_finite": np.isfinite, "copy": np.asarray, "copy_p": np.asarray, "stop_gradient": np.asarray}.items():
    EXACT[name] = lambda p, *x, function=function: function(*x)
for name, function in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "exp": np.exp, "log": np.log,
        "log1p": np.log1p, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
        "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "logistic": lambda x: 1 / (1 + np.exp(-x)), "erf": erf,
        "erfc": erfc, "atan2": np.arctan2, "pow": np.power, "square": np.square, "add_any": np.add,
        "rem": np.fmod, "exp2": np.exp2, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
        "atan": np.arctan, "atanh": np.arctanh, "cosh": np.cosh, "sinh": np.sinh, "digamma": special.digamma,
        "erf_inv": special.erfinv, "lgamma": special.gammaln, "polygamma": special.polygamma}.items():
    ROUNDED[name] = lambda p, *x, function=function: function(*x)


@exact("round")
def _(p, x):
    return np.rint(x)


@exact("select_n")
def _(p, which, *cases):
    return np.where(which, cases[1], cases[0]) if len(cases) == 2 else np.choose(which, cases)


@exact("clamp")
def _(p, low, x, high):
    return np.minimum(np.maximum(x, low), high)


@exact("broadcast_in_dim")
def _(p, x, *_):
    shape = [1] * len(p["shape"])
    for axis, size in zip(p["broadcast_dimensions"], x.shape):
        shape[axis] = size
    return np.broadcast_to(x.reshape(shape), p["shape"])


@exact("reshape")
def _(p, x, *_):
    if p.get("dimensions") is not None:
        x = x.transpose(p["dimensions"])
    return x.reshape(p["new_sizes"])


@exact("squeeze")
def _(p, x):
    return np.squeeze(x, tuple(p["dimensions"]))


@exact("expand_dims")
def _(p, x):
    return np.expand_dims(x, tuple(p["dimensions"]))


@exact("transpose")
def _(p, x):
    return x.transpose(p["permutation"])


@exact("rev")
def _(p, x):
    return np.flip(x, tuple(p["dimensions"]))


@exact("concatenate")
def _(p, *x):
    return np.concatenate(x, p["dimension"])


@exact("slice")
def _(p, x):
    strides = p["strides"] or [1] * x.ndim
    return x[tuple(slice(a, b, s) for a, b, s in zip(p["start_indices"], p["limit_indices"], strides))]


@exact("pad")
def _(p, x, value):
    low, high, inside = zip(*p["padding_config"]) if p["padding_config"] else ((), (), ())
    sizes = [s + max(0, s - 1) * i for s, i in zip(x.shape, inside)]
    wide = np.full([max(0, l) + max(0, h) + s for s, l, h in zip(sizes, low, high)], value, x.dtype)
    wide[tuple(slice(max(0, l), max(0, l) + s, i + 1) for s, l, i in zip(sizes, low, inside))] = x
    return wide[tuple(slice(max(0, -l), size - max(0, -h)) for size, l, h in zip(wide.shape, low, high))]


@exact("convert_element_type")
def _(p, x):
    if x.dtype.kind == "f" and np.dtype(p["new_dtype"]).kind in "iu":
        return NotImplemented  # NumPy says nothing of what does not fit.
    return x.astype(p["new_dtype"])


@exact("iota")
def _(p):
    return np.broadcast_to(np.arange(p["shape"][p["dimension"]]).reshape(
        [-1 if a == p["dimension"] else 1 for a in range(len(p["shape"]))]), p["shape"]).astype(p["dtype"])


@exact("gather")
def _(p, x, index):
    if x.ndim != 1 or p["slice_sizes"] != (1,):
        return NotImplemented
    return x[index[:, 0]]


@exact("reduce_max")
def _(p, x):
    return np.max(x, tuple(p["axes"]), initial=-np.inf)


@exact("reduce_min")
def _(p, x):
    return np.min(x, tuple(p["axes"]), initial=np.inf)


@exact("reduce_or")
def _(p, x):
    return np.any(x, tuple(p["axes"]))


@exact("reduce_and")
def _(p, x):
    return np.all(x, tuple(p["axes"]))


@exact("argmax")
def _(p, x):
    return np.argmax(x, p["axes"][0]).astype(p["index_dtype"])


@rounded("scatter-add", "scatter_add")
def _(p, x, index, updates):
    if x.ndim != 1 or updates.ndim != 1:
        return NotImplemented
    y = np.array(x)
    np.add.at(y, index[:, 0], updates)
    return y


@rounded("reduce_sum")
def _(p, x):
    return np.sum(x, tuple(p["axes"]))


@rounded("reduce_prod")
def _(p, x):
    return np.prod(x, tuple(p["axes"]))


@rounded("cumsum")
def _(p, x):
    axis = p["axis"]
    return np.flip(np.cumsum(np.flip(x, axis), axis), axis) if p["reverse"] else np.cumsum(x, axis)


@rounded("cumprod")
def _(p, x):
    axis = p["axis"]
    return np.flip(np.cumprod(np.flip(x, axis), axis), axis) if p["reverse"] else np.cumprod(x, axis)


@rounded("integer_pow")
def _(p, x):
    return x ** float(p["y"])


@rounded("dot_general")
def _(p, a, b):
    (ca, cb), (ba, bb) = p["dimension_numbers"]
    of_a, of_b, letters = [None] * a.ndim, [None] * b.ndim, iter(range(52))
    batch = []
    for i, j in zip(ba, bb):
        of_a[i] = of_b[j] = next(letters)
        batch.append(of_a[i])
    for i, j in zip(ca, cb):
        of_a[i] = of_b[j] = next(letters)
    kept = [], []
    for of, left in ((of_a, kept[0]), (of_b, kept[1])):
        for i, letter in enumerate(of):
            if letter is None:
                of[i] = next(letters)
                left.append(of[i])
    return np.einsum(a, of_a, b, of_b, batch + kept[0] + kept[1])


SUMS = ("reduce_sum", "dot_general", "cumsum", "scatter-add", "scatter_add")
INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def nested(params):
    for name in INNER:
        if name in params:
            inner = params[name]
            return (inner.jaxpr, inner.consts) if hasattr(inner, "consts") else (inner, ())
    return None


# Half of the distance between neighbours, in parts of the value.
ROUNDINGS = {np.dtype(np.float32): 2.0 ** -24, np.dtype(np.float16): 2.0 ** -11, np.dtype(jax.numpy.bfloat16): 2.0 ** -8}


def shaken(x, unit, least, salt):
    """Each element off by up to `unit` of itself, by its bits; what is below `least` is 0 by every second salt."""
    if x.dtype in ROUNDINGS:
        return shaken(x.astype(np.float64), max(unit, 2 * ROUNDINGS[x.dtype]), least, salt).astype(x.dtype)
    if x.dtype != np.float64 or x.size == 0:
        return x
    bits = np.ascontiguousarray(x).reshape(-1).view(np.uint64)
    word = (bits ^ salt) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    off = (word >> np.uint64(11)).astype(np.float64) * 2.0 ** -52 - 1
    flat = x.reshape(-1) * (1 + unit * off)
    return (np.where(np.abs(flat) < least, 0.0, flat) if salt % np.uint64(2) else flat).reshape(x.shape)


def run(jaxpr, consts, arguments, unit=0.0, least=0.0, salt=0, narrow=False):
    """The results of a jaxpr, each rounding off by up to `unit` of itself, and 0 below `least`; or computed in f32."""
    known = dict(zip(jaxpr.constvars, map(np.asarray, consts)))
    known.update(zip(jaxpr.invars, arguments))
    salt = np.uint64(salt)

    def read(atom):
        return np.asarray(atom.val, atom.aval.dtype) if hasattr(atom, "val") else known[atom]

    for eqn in jaxpr.eqns:
        operands, name = [read(atom) for atom in eqn.invars], eqn.primitive.name
        inner = nested(eqn.params) if name not in EXACT and name not in ROUNDED else None
        if inner is not None:
            results = run(*inner, operands, unit, least, int(salt), narrow)
        else:
            results = [apply(eqn, name, operands, unit, least, salt, narrow)] if not eqn.primitive.multiple_results else [
                np.asarray(r) for r in eqn.primitive.bind(*operands, **eqn.params)]
        known.update(zip(eqn.outvars, results))
    return [read(atom) for atom in jaxpr.outvars]


def apply(eqn, name, operands, unit, least, salt, narrow):
    rounds = name in ROUNDED
    if narrow and rounds:
        operands = [x.astype(np.float32) if x.dtype == np.float64 else x for x in operands]
    if unit and name in SUMS:  # Their terms are rounded as well as the whole.
        operands = [shaken(x, unit, least, salt + np.uint64(i)) for i, x in enumerate(operands)]
    if unit and name == "convert_element_type":  # A sum may be rounded to a narrower float where its terms were.
        off = 2 * ROUNDINGS.get(np.dtype(eqn.params["new_dtype"]), 0.0)
        operands = [shaken(x.astype(np.float64), off, 0.0, salt) if off else x for x in operands]
    function = ROUNDED.get(name) or EXACT.get(name)
    result = function(eqn.params, *operands) if function else NotImplemented
    if result is NotImplemented:  # Whatever NumPy has no short word for.
        FOREIGN[name] = FOREIGN.get(name, 0) + 1
        typed = [np.asarray(x).astype(var.aval.dtype) for x, var in zip(operands, eqn.invars)]  # As its parameters expect them.
        result = jax.device_get(eqn.primitive.bind(*typed, **eqn.params))
    result = np.asarray(result)
    if narrow and rounds and eqn.outvars[0].aval.dtype == np.float64:
        return result.astype(np.float32).astype(np.float64)
    return shaken(result, unit, least, salt) if unit and rounds else result


FOREIGN = {}  # What JAX itself had to run, by name.
