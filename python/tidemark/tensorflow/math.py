"""tf.math: elementwise functions and reductions."""

import tidemark as td

from . import dtypes
from .arrays import cast
from .errors import InvalidArgumentError
from .indexing import in_top_k, top_k  # noqa: F401
from .tensor import Tensor, axes, convert, floats, integer, is_tensor, op, pair, raw, wrap

# ---- two operands --------------------------------------------------------------------------------


def _sizes(a, b, combine):
    """What an operator does to sizes that are known while tracing."""
    if a._sizes is None or b._sizes is None or isinstance(a._sizes, list) != isinstance(b._sizes, list):
        return None
    if isinstance(a._sizes, list):
        return [combine(x, y) for x, y in zip(a._sizes, b._sizes)] if len(a._sizes) == len(b._sizes) else None
    return combine(a._sizes, b._sizes)


def _binary(name, native, on_sizes=None):
    def function(x, y):
        x, y = pair(x, y, name)
        sizes = _sizes(x, y, on_sizes) if on_sizes and x._sizes is not None else None
        return Tensor(native(x._t, y._t), sizes)

    function.__name__ = name
    return op(function)


def _numbers(name, native, on_sizes=None):
    """The same for functions that refuse bools."""

    def function(x, y):
        x, y = pair(x, y, name)
        if x.dtype.is_bool:
            raise InvalidArgumentError(f"{name}: TensorFlow does not compute with bool; write tf.cast(x, tf.int32)")
        sizes = _sizes(x, y, on_sizes) if on_sizes and x._sizes is not None else None
        return Tensor(native(x._t, y._t), sizes)

    function.__name__ = name
    return op(function)


def _flat(native):
    """Of a function that is flat wherever it has a derivative: TensorFlow has no gradient there, None and not zeros."""
    return lambda *operands: td.stop_gradient(native(*operands))


add = _numbers("add", td.add, lambda a, b: a + b)
subtract = _numbers("subtract", td.subtract, lambda a, b: a - b)
multiply = _numbers("multiply", td.multiply, lambda a, b: a * b)
floordiv = _numbers("floordiv", _flat(td.floor_divide), lambda a, b: a // b)
floormod = mod = _numbers("floormod", td.remainder)
pow = _numbers("pow", td.pow)
maximum = _numbers("maximum", td.maximum)
minimum = _numbers("minimum", td.minimum)
equal = _binary("equal", td.equal)
not_equal = _binary("not_equal", td.not_equal)
less = _numbers("less", td.less)
less_equal = _numbers("less_equal", td.less_equal)
greater = _numbers("greater", td.greater)
greater_equal = _numbers("greater_equal", td.greater_equal)


def _as_floats(x):
    """Integers divide as float64, as in TensorFlow; those of 8 and 16 bits as float32."""
    if x.dtype.is_integer:
        return cast(x, dtypes.float32 if x.dtype.size <= 2 else dtypes.float64)
    return x


@op
def truediv(x, y):
    x, y = pair(x, y, "truediv")
    return wrap(td.divide(_as_floats(x)._t, _as_floats(y)._t))


@op
def divide(x, y):
    return truediv(x, y)


def _truncated(x, y):
    quotient = td.floor_divide(td.abs(x), td.abs(y))
    return td.where(td.equal(x < 0, y < 0), quotient, -quotient)


@op
def truncatediv(x, y):
    x, y = pair(x, y, "truncatediv")
    return wrap(_truncated(x._t, y._t))


@op
def truncatemod(x, y):
    x, y = pair(x, y, "truncatemod")
    return wrap(x._t - _truncated(x._t, y._t) * y._t)


@op
def divide_no_nan(x, y):
    x, y = pair(x, y, "divide_no_nan")
    safe = td.not_equal(y._t, 0)
    return wrap(td.where(safe, td.divide(x._t, td.where(safe, y._t, td.ones_like(y._t))), td.zeros_like(y._t)))


@op
def multiply_no_nan(x, y):
    x, y = pair(x, y, "multiply_no_nan")
    keep = td.not_equal(y._t, 0)
    return wrap(td.where(keep, td.where(keep, x._t, td.zeros_like(x._t)) * y._t, td.zeros_like(y._t)))


@op
def reciprocal_no_nan(x):
    x = floats(x, "reciprocal_no_nan")
    return divide_no_nan(wrap(td.ones_like(x._t)), x)


@op
def squared_difference(x, y):
    x, y = pair(x, y, "squared_difference")
    return wrap(td.square(x._t - y._t))


@op
def atan2(y, x):
    y, x = pair(y, x, "atan2")
    return wrap(td.atan2(y._t, x._t))


def _times_log(log, what):
    def function(x, y):
        x, y = pair(x, y, what)
        zero = td.equal(x._t, 0)
        safe = td.where(zero, td.ones_like(y._t), y._t)
        return wrap(td.where(zero, td.zeros_like(y._t), x._t * log(safe)))

    function.__name__ = what
    return op(function)


xlogy = _times_log(td.log, "xlogy")
polygamma = _binary("polygamma", td.polygamma)
nextafter = _binary("nextafter", td.nextafter)
xlog1py = _times_log(td.log1p, "xlog1py")
xdivy = _times_log(td.reciprocal, "xdivy")

# ---- one operand ---------------------------------------------------------------------------------


def _unary(name, native, takes_ints=False):
    def function(x):
        x = convert(x) if takes_ints else floats(x, name)
        return wrap(native(x._t))

    function.__name__ = name
    return op(function)


abs = _unary("abs", td.abs, True)
negative = _unary("negative", td.negative, True)
sign = _unary("sign", td.sign, True)
square = _unary("square", td.square, True)
round = _unary("round", _flat(lambda x: x if str(x.dtype).startswith(("i", "u")) else td.round(x)), True)
rint = _unary("rint", _flat(td.round))
floor = _unary("floor", _flat(td.floor))
ceil = _unary("ceil", _flat(td.ceil))
sqrt = _unary("sqrt", td.sqrt)
rsqrt = _unary("rsqrt", td.rsqrt)
reciprocal = _unary("reciprocal", td.reciprocal)
exp = _unary("exp", td.exp)
expm1 = _unary("expm1", td.expm1)
log = _unary("log", td.log)
log1p = _unary("log1p", td.log1p)
sigmoid = _unary("sigmoid", td.sigmoid)
log_sigmoid = _unary("log_sigmoid", lambda x: -td.softplus(-x))
softplus = _unary("softplus", td.softplus)
softsign = _unary("softsign", lambda x: x / (td.abs(x) + 1))
tanh = _unary("tanh", td.tanh)
sin = _unary("sin", td.sin)
cos = _unary("cos", td.cos)
tan = _unary("tan", td.tan)
erf = _unary("erf", td.erf)
erfc = _unary("erfc", td.erfc)
is_nan = _unary("is_nan", td.isnan)
is_inf = _unary("is_inf", td.isinf)
is_finite = _unary("is_finite", td.isfinite)
asin = _unary("asin", td.asin)
acos = _unary("acos", td.acos)
atan = _unary("atan", td.atan)
sinh = _unary("sinh", td.sinh)
cosh = _unary("cosh", td.cosh)
asinh = _unary("asinh", td.asinh)
acosh = _unary("acosh", td.acosh)
atanh = _unary("atanh", td.atanh)
lgamma = _unary("lgamma", td.lgamma)
digamma = _unary("digamma", td.digamma)
erfinv = _unary("erfinv", td.erfinv)

# ---- logic ---------------------------------------------------------------------------------------


def _bools(x, name):
    x = convert(x)
    if not x.dtype.is_bool:
        raise InvalidArgumentError(f"{name}: TensorFlow takes bool here, and this tensor is {x.dtype.name}{x.shape}; write tf.cast(x, tf.bool)")
    return x


def _logical(name, native):
    def function(x, y):
        return wrap(native(_bools(x, name)._t, _bools(y, name)._t))

    function.__name__ = name
    return op(function)


logical_and = _logical("logical_and", td.logical_and)
logical_or = _logical("logical_or", td.logical_or)
logical_xor = _logical("logical_xor", td.logical_xor)


@op
def logical_not(x):
    return wrap(td.logical_not(_bools(x, "logical_not")._t))


# ---- clipping ------------------------------------------------------------------------------------


@op
def clip_by_value(t, clip_value_min, clip_value_max):
    x = convert(t)

    def bound(value):
        if is_tensor(value):
            return convert(value, x.dtype)._t
        return raw(int(value) if x.dtype.is_integer else float(value), x.dtype) if isinstance(value, (int, float)) else raw(value, x.dtype)

    low, high = bound(clip_value_min), bound(clip_value_max)
    return wrap(td.clip(x._t, low, high))


@op
def clip_by_norm(t, clip_norm, axes=None):
    x = convert(t)
    limit = raw(clip_norm, None if is_tensor(clip_norm) else x.dtype)
    norm = td.norm(x._t, axis=axes, keepdims=True)
    return wrap(x._t * limit / td.maximum(norm, limit))


@op
def global_norm(t_list):
    squares = [td.sum(td.square(raw(_values(t)))) for t in t_list if t is not None]
    total = squares[0]
    for each in squares[1:]:
        total = total + each
    return wrap(td.sqrt(total))


def _values(t):
    return t.values if hasattr(t, "dense_shape") else t


@op
def clip_by_global_norm(t_list, clip_norm, use_norm=None):
    norm = convert(global_norm(t_list) if use_norm is None else use_norm)
    limit = raw(clip_norm, None if is_tensor(clip_norm) else norm.dtype)
    scale = limit / td.maximum(norm._t, limit)
    clipped = []
    for t in t_list:
        if t is None:
            clipped.append(None)
        elif hasattr(t, "dense_shape"):
            clipped.append(type(t)(wrap(raw(t.values) * scale), t.indices, t.dense_shape))
        else:
            clipped.append(wrap(raw(t) * scale))
    return clipped, norm


# ---- sums of several, running sums ---------------------------------------------------------------


@op
def add_n(inputs):
    if is_tensor(inputs):
        inputs = [inputs]
    total = convert(inputs[0])
    for each in inputs[1:]:
        total = add(total, each)
    return total


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    return add_n(inputs)


def _running(name, native):
    """In the dtype of x, as in TensorFlow."""

    def function(x, axis=0, exclusive=False, reverse=False):
        x = raw(x)
        return wrap(td.cast(native(x, axis, exclusive, reverse), x.dtype))

    function.__name__ = name
    return op(function)


cumsum = _running("cumsum", td.cumsum)
cumprod = _running("cumprod", td.cumprod)
cumulative_logsumexp = _running("cumulative_logsumexp", td.cumlogsumexp)

# ---- reductions ----------------------------------------------------------------------------------


def _reduction(name, native, kind):
    """kind: "numbers" keep their dtype, "floats" takes floats, "bools" takes bools."""

    def function(input_tensor, axis=None, keepdims=False):
        x = {"numbers": convert, "floats": lambda v: floats(v, name), "bools": lambda v: _bools(v, name)}[kind](input_tensor)
        if isinstance(axis, (list, tuple)) and not axis:
            return x
        sizes = x._sizes if name == "reduce_prod" and isinstance(x._sizes, list) and axis in (None, 0) and not keepdims else None
        y = td.cast(native(x._t, axis=axes(axis), keepdims=keepdims), x.dtype._td) if kind == "numbers" else native(x._t, axis=axes(axis), keepdims=keepdims)
        return Tensor(y, _product(sizes) if sizes is not None else None)

    function.__name__ = name
    return op(function)


def _product(sizes):
    total = 1
    for size in sizes:
        total = total * size
    return total


def _mean(x, axis, keepdims):
    """The mean of integers is rounded towards zero, as TensorFlow divides."""
    if str(x.dtype)[0] not in "iu":
        return td.mean(x, axis=axis, keepdims=keepdims)
    total = td.sum(x, axis=axis, keepdims=keepdims)
    count = td.sum(td.ones(x.shape, td.i64), axis=axis, keepdims=keepdims)
    return _truncated(total, count)


reduce_sum = _reduction("reduce_sum", td.sum, "numbers")
reduce_prod = _reduction("reduce_prod", td.prod, "numbers")
reduce_max = _reduction("reduce_max", td.max, "numbers")
reduce_min = _reduction("reduce_min", td.min, "numbers")
reduce_mean = _reduction("reduce_mean", _mean, "numbers")
reduce_logsumexp = _reduction("reduce_logsumexp", td.logsumexp, "floats")
reduce_variance = _reduction("reduce_variance", td.var, "floats")
reduce_std = _reduction("reduce_std", td.std, "floats")
reduce_euclidean_norm = _reduction("reduce_euclidean_norm", td.norm, "floats")
reduce_all = _reduction("reduce_all", td.all, "bools")
reduce_any = _reduction("reduce_any", td.any, "bools")


@op
def count_nonzero(input, axis=None, keepdims=None, dtype=dtypes.int64):
    x = convert(input)
    hits = td.cast(td.not_equal(x._t, 0) if not x.dtype.is_bool else x._t, td.i64)
    return cast(wrap(td.sum(hits, axis=axes(axis), keepdims=bool(keepdims))), dtype)


def _arg(native):
    def function(input, axis=None, output_type=dtypes.int64):
        found = native(raw(input), axis=0 if axis is None else integer(axis, "axis"))
        return cast(wrap(found), output_type)

    return op(function)


argmax = _arg(td.argmax)
argmin = _arg(td.argmin)


@op
def zero_fraction(value):
    x = convert(value)
    return wrap(td.mean(td.cast(td.equal(x._t, 0), td.f32)))


@op
def l2_normalize(x, axis=None, epsilon=1e-12):
    x = convert(x)
    squares = td.sum(td.square(x._t), axis=axes(axis), keepdims=True)
    return wrap(x._t * td.rsqrt(td.maximum(squares, epsilon)))


@op
def polyval(coeffs, x):
    total = convert(coeffs[0])
    for c in coeffs[1:]:
        total = add(multiply(total, x), c)
    return add(total, multiply(x, 0.0)) if len(coeffs) == 1 else total


@op
def is_non_decreasing(x):
    flat = td.reshape(raw(x), [-1])
    return wrap(td.all(flat[1:] >= flat[:-1]))


@op
def is_strictly_increasing(x):
    flat = td.reshape(raw(x), [-1])
    return wrap(td.all(flat[1:] > flat[:-1]))
