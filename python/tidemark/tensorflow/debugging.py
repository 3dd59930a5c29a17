"""tf.debugging, tf.Assert and tf.print."""
import logging
import sys

import numpy as np
import tidemark as td

from . import dtypes, nest
from .shapes import TensorShape
from .tensor import convert, is_tensor, op, pair, wrap


def _text(message, what):
    return f"{message}: {what}" if message else what


def _check(condition, message, values):
    """An error unless every element of the condition is true: at once in eager code, when the program runs in a function."""
    td.assert_that(td.all(condition), message, [v._t for v in values])


def _compared(name, relation, native):
    def function(x, y, message=None, summarize=None):
        x, y = pair(x, y, name)
        _check(native(x._t, y._t), _text(message, f"{name}: x {relation} y did not hold"), [x, y])

    function.__name__ = name
    return op(function)


assert_equal = _compared("assert_equal", "==", td.equal)
assert_none_equal = _compared("assert_none_equal", "!=", td.not_equal)
assert_less = _compared("assert_less", "<", td.less)
assert_less_equal = _compared("assert_less_equal", "<=", td.less_equal)
assert_greater = _compared("assert_greater", ">", td.greater)
assert_greater_equal = _compared("assert_greater_equal", ">=", td.greater_equal)


def _signed(name, relation, native):
    def function(x, message=None, summarize=None):
        x = convert(x)
        _check(native(x._t, 0), _text(message, f"{name}: x {relation} 0 did not hold"), [x])

    function.__name__ = name
    return op(function)


assert_positive = _signed("assert_positive", ">", td.greater)
assert_negative = _signed("assert_negative", "<", td.less)
assert_non_negative = _signed("assert_non_negative", ">=", td.greater_equal)
assert_non_positive = _signed("assert_non_positive", "<=", td.less_equal)


@op
def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None):
    x, y = pair(x, y, "assert_near")
    epsilon = 10 * np.finfo(x.dtype.as_numpy_dtype).eps
    tolerance = (epsilon if atol is None else atol) + (epsilon if rtol is None else rtol) * td.abs(y._t)
    _check(td.abs(x._t - y._t) <= tolerance, _text(message, "assert_near: x and y are not equal to the tolerance"), [x, y])


@op
def check_numerics(tensor, message):
    return wrap(td.check_numerics(convert(tensor)._t, message))


@op
def assert_all_finite(x, message):
    return wrap(td.check_numerics(convert(x)._t, message))


def _wrong_rank(x, wanted, message):
    raise ValueError(_text(message, f"the tensor is {x.dtype.name}{x.shape} of rank {x.ndim}, and rank {wanted} was expected"))


def assert_rank(x, rank, message=None, name=None):
    x = convert(x)
    if x.ndim != int(rank):
        _wrong_rank(x, rank, message)


def assert_rank_at_least(x, rank, message=None, name=None):
    x = convert(x)
    if x.ndim < int(rank):
        _wrong_rank(x, f"{rank} or more", message)


def assert_rank_in(x, ranks, message=None, name=None):
    x = convert(x)
    if x.ndim not in ranks:
        _wrong_rank(x, f"one of {list(ranks)}", message)


def assert_scalar(tensor, message=None, name=None):
    x = convert(tensor)
    if x.ndim:
        _wrong_rank(x, 0, message)
    return x


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    sizes = {}
    for x, symbols in shapes.items() if isinstance(shapes, dict) else shapes:
        x = convert(x)
        symbols = list(symbols) if isinstance(symbols, (list, tuple, TensorShape)) else [symbols]
        if len(symbols) != x.ndim:
            _wrong_rank(x, len(symbols), message)
        for symbol, size in zip(symbols, x.shape):
            if symbol is None or symbol == "." or size is None:
                continue
            wanted = symbol if isinstance(symbol, int) else sizes.setdefault(symbol, size)
            if wanted != size:
                raise ValueError(_text(message, f"assert_shapes: {symbol!r} is {wanted}, and a tensor of {x.shape} has {size} there"))


def assert_type(tensor, tf_type, message=None, name=None):
    x = convert(tensor)
    if x.dtype != dtypes.as_dtype(tf_type):
        raise TypeError(_text(message, f"the tensor is {x.dtype.name}, and {dtypes.as_dtype(tf_type).name} was expected"))


def assert_integer(x, message=None, name=None):
    x = convert(x)
    if not x.dtype.is_integer:
        raise TypeError(_text(message, f"the tensor is {x.dtype.name}, and an integer dtype was expected"))


def assert_same_float_dtype(tensors=None, dtype=None):
    kinds = {convert(t).dtype for t in tensors or []} | ({dtypes.as_dtype(dtype)} if dtype else set())
    if len(kinds) > 1 or any(not k.is_floating for k in kinds):
        raise ValueError(f"Expected one floating dtype, got {sorted(k.name for k in kinds)}")
    return kinds.pop() if kinds else dtypes.float32


def assert_proper_iterable(values):
    if is_tensor(values) or isinstance(values, (str, np.ndarray)) or not hasattr(values, "__iter__"):
        raise TypeError(f"Expected a list or a tuple, got {type(values)}")


def is_numeric_tensor(tensor):
    return is_tensor(tensor) and convert(tensor).dtype.is_numeric


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    logging.getLogger("tensorflow").warning(
        "tf.debugging.enable_check_numerics does nothing in Tidemark: write tf.debugging.check_numerics(x, message) where a value should be finite"
    )


def disable_check_numerics():
    return None


@op
def Assert(condition, data, summarize=None):
    condition = convert(condition)
    texts = [str(d) for d in data if isinstance(d, str)]
    _check(condition._t, "Assert: the condition is false" + (": " + " ".join(texts) if texts else ""), [convert(d) for d in data if not isinstance(d, str)])


# ---- print ---------------------------------------------------------------------------------------


def _element(value):
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, np.floating) and value.dtype != np.float64 and (1e-4 <= abs(value) < 1e16 or value == 0):
        return np.format_float_positional(value, unique=True, trim="-")
    return str(value)


def _shortened(array, most):
    """A tensor as TensorFlow prints it: no commas, `most` elements at both ends of each axis."""
    if array.ndim == 0:
        return _element(array[()])
    n = len(array)
    rows = list(array) if most < 0 or n <= 2 * most else [*array[:most], None, *array[n - most :]]
    inner = ["..." if row is None else _shortened(np.asarray(row), most) for row in rows]
    gap = " " if array.ndim == 1 else "\n "
    return "[" + gap.join(text.replace("\n", "\n ") if array.ndim > 2 else text for text in inner) + "]"


def _printed(value, most):
    if is_tensor(value):
        return _shortened(np.asarray(convert(value)._t), most)
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_printed(v, most)}" for key, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(repr(v) if isinstance(v, str) else _printed(v, most) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    return str(value)


def print_v2(*inputs, output_stream=None, end="\n", sep=" ", summarize=3, name=None):
    """tf.print: at once in eager code; in a function when the program runs, on Tidemark's output."""
    tensors = [x for x in nest.flatten(list(inputs)) if is_tensor(x)]
    if any(td.is_traced(convert(x)._t) for x in tensors) or td.is_tracing():
        flat = [x if isinstance(x, str) or not is_tensor(x) else convert(x)._t for x in nest.flatten(list(inputs))]
        td.print(*[part if not isinstance(part, (bool, type(None))) else str(part) for part in flat])
        return
    text = sep.join(_printed(x, summarize) for x in inputs) + end
    if isinstance(output_stream, str) and output_stream.startswith("file://"):
        with open(output_stream[len("file://") :], "a") as file:
            file.write(text)
    else:
        stream = {"stdout": sys.stdout}.get(output_stream, output_stream) if isinstance(output_stream, str) else output_stream
        (stream or sys.stderr).write(text)

