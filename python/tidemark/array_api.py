"""The Python array API standard, version 2023.12: what `x.__array_namespace__()` gives.

Functions have the standard's names and arguments, and are made of Tidemark's own. Of the dtypes there are bool, all
integers, float32, float64, complex64 and complex128 (and float16, bfloat16, which the standard does not name); the
default ones are float32, complex64 and int32. The extensions linalg, of reals, and fft are there. Tensors do not change,
so `x[...] = value` is refused.
"""
import builtins as _builtins
from collections import namedtuple as _namedtuple
from math import e, inf, nan, pi  # noqa: F401

from . import _core as _td
from ._core import (abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bfloat16, bitwise_and, bitwise_invert,  # noqa: F401
                    bitwise_or, bitwise_xor, bool, ceil, complex64, complex128, conj, copysign, cos, cosh, divide, equal, exp, expm1, float16,
                    float32, float64, floor, floor_divide, from_dlpack, greater, greater_equal, hypot, imag, int8, int16,
                    int32, int64,
                    isfinite, isinf, isnan, less, less_equal, log, log10, log1p, log2, logaddexp, logical_and,
                    logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative, not_equal, pow,
                    real, remainder, round, sign, sin, sinh, sqrt, square, subtract, tan, tanh, uint8, uint16, uint32,
                    uint64)
from ._core import left_shift as bitwise_left_shift, right_shift as bitwise_right_shift  # noqa: F401

__array_api_version__ = "2023.12"
newaxis = None

_DTYPES = {"bool": bool, "int8": int8, "int16": int16, "int32": int32, "int64": int64, "uint8": uint8, "uint16": uint16,
           "uint32": uint32, "uint64": uint64, "float32": float32, "float64": float64,
           "complex64": complex64, "complex128": complex128}
_KINDS = {"bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"),
          "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
          "real floating": ("float16", "bfloat16", "float32", "float64"), "complex floating": ("complex64", "complex128")}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def _namespace(version=None):
    if version not in (None, "2021.12", "2022.12", "2023.12"):
        raise ValueError(f"the array API of version {version} is not there: 2023.12 is the newest")
    import sys
    return sys.modules[__name__]


def _device(device):
    if device not in (None, "cpu"):
        raise ValueError(f'there is no device {device!r}: tensors are on "cpu"')


def _made(x, dtype):
    return x if dtype is None else _td.cast(x, dtype)


class __array_namespace_info__:
    """What there is: dtypes, devices and capabilities."""

    def capabilities(self):
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self):
        return "cpu"

    def devices(self):
        return ["cpu"]

    def default_dtypes(self, *, device=None):
        _device(device)
        return {"real floating": float32, "complex floating": complex64, "integral": int32, "indexing": int64}

    def dtypes(self, *, device=None, kind=None):
        _device(device)
        kinds = _KINDS if kind is None else (kind,) if isinstance(kind, str) else kind
        return {name: _DTYPES[name] for each in kinds for name in _KINDS[each] if name in _DTYPES}


# ---- creation ----

def asarray(obj, /, *, dtype=None, device=None, copy=None):
    _device(device)
    if copy is False and not isinstance(obj, _td.Tensor) and not hasattr(obj, "__array__") and not hasattr(obj, "__dlpack__"):
        raise ValueError("asarray(copy=False): numbers and lists have to be copied")
    return _td.asarray(obj, dtype, copy=copy)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    _device(device)
    return _td.arange(start, stop, step, dtype)


def empty(shape, *, dtype=None, device=None):
    return zeros(shape, dtype=dtype, device=device)


def empty_like(x, /, *, dtype=None, device=None):
    return zeros_like(x, dtype=dtype, device=device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    _device(device)
    columns = n_rows if n_cols is None else n_cols
    return _td.cast(_td.arange(n_rows)[:, None] + k == _td.arange(columns), dtype or float32)


def full(shape, fill_value, *, dtype=None, device=None):
    _device(device)
    return _td.full(shape, fill_value, dtype)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    _device(device)
    return _td.full_like(x, fill_value, dtype)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    _device(device)
    if not endpoint:
        stop = start + (stop - start) * (num - 1) / num if num > 0 else stop
    return _td.linspace(start, stop, num, dtype or float32)


def meshgrid(*arrays, indexing="xy"):
    count = len(arrays)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    shape = [arrays[i].size for i in order]
    return [broadcast_to(reshape(x, [-1 if order[axis] == i else 1 for axis in range(count)]), shape)
            for i, x in enumerate(arrays)]


def ones(shape, *, dtype=None, device=None):
    _device(device)
    return _td.ones(shape, dtype or float32)


def ones_like(x, /, *, dtype=None, device=None):
    _device(device)
    return _td.ones_like(x, dtype)


def tril(x, /, *, k=0):
    return _td.tril(x, k)


def triu(x, /, *, k=0):
    return _td.triu(x, k)


def zeros(shape, *, dtype=None, device=None):
    _device(device)
    return _td.zeros(shape, dtype or float32)


def zeros_like(x, /, *, dtype=None, device=None):
    _device(device)
    return _td.zeros_like(x, dtype)


# ---- dtypes ----

def astype(x, dtype, /, *, copy=True, device=None):
    _device(device)
    if x.dtype is dtype:
        return x.copy() if copy else x
    return _td.cast(x, dtype)


def broadcast_to(x, /, shape):
    return _td.broadcast_to(x, shape)


def broadcast_arrays(*arrays):
    rank = _builtins.max(x.ndim for x in arrays)
    shape = [1] * rank
    for x in arrays:
        for axis, size in enumerate(x.shape, rank - x.ndim):
            if shape[axis] == 1:
                shape[axis] = size
    return [_td.broadcast_to(x, shape) for x in arrays]


def can_cast(from_, to, /):
    source = from_.dtype if isinstance(from_, _td.Tensor) else from_
    return result_type(source, to) is to and isdtype(source, "bool") == isdtype(to, "bool")


def result_type(*arrays_and_dtypes):
    dtypes = [x.dtype if isinstance(x, _td.Tensor) else x for x in arrays_and_dtypes]
    found = _td.zeros((0,), dtypes[0])
    for dtype in dtypes[1:]:
        found = _td.where(_td.zeros((0,), bool), found, _td.zeros((0,), dtype))
    return found.dtype


def isdtype(dtype, kind):
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return _builtins.any(dtype is each if not isinstance(each, str) else dtype in [getattr(_td, n) for n in _KINDS[each]]
                  for each in kinds)



_finfo = _namedtuple("finfo", "bits eps max min smallest_normal dtype")
_iinfo = _namedtuple("iinfo", "bits max min dtype")


def finfo(type, /):
    dtype = type.dtype if isinstance(type, _td.Tensor) else type
    dtype = {complex64: float32, complex128: float64}.get(dtype, dtype)  # Of the parts.
    digits, largest, smallest = {float16: (10, 65504.0, -14), bfloat16: (7, (2 - 2.0 ** -7) * 2.0 ** 127, -126),
                                 float32: (23, (2 - 2.0 ** -23) * 2.0 ** 127, -126),
                                 float64: (52, (2 - 2.0 ** -52) * 2.0 ** 1023, -1022)}[dtype]
    return _finfo(8 * dtype.itemsize, 2.0 ** -digits, largest, -largest, 2.0 ** smallest, dtype)


def iinfo(type, /):
    dtype = type.dtype if isinstance(type, _td.Tensor) else type
    bits = 8 * dtype.itemsize
    signed = isdtype(dtype, "signed integer")
    least, most = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2 ** bits - 1)
    return _iinfo(bits, most, least, dtype)


# ---- elementwise functions that are not ops of their own ----

def clip(x, /, min=None, max=None):
    if min is not None:
        x = maximum(x, _made(_td.asarray(min), x.dtype))
    return x if max is None else minimum(x, _made(_td.asarray(max), x.dtype))


def positive(x, /):
    return x


def signbit(x, /):
    return (x < 0) | ((x == 0) & (1 / x < 0))


def trunc(x, /):
    return x if isdtype(x.dtype, "integral") else _td.where(x < 0, ceil(x), floor(x))


# ---- indexing, linear algebra, shapes ----

def take(x, indices, /, *, axis=None):
    return _td.gather(x, indices, 0 if axis is None else axis)


def matmul(x1, x2, /):
    return _td.matmul(x1, x2)


def matrix_transpose(x, /):
    return x.mT


def tensordot(x1, x2, /, *, axes=2):
    return _td.tensordot(x1, x2, axes)


def vecdot(x1, x2, /, *, axis=-1):
    return sum(conj(x1) * x2, axis=axis, dtype=result_type(x1, x2))


def concat(arrays, /, *, axis=0):
    if axis is None:
        return _td.concat([_td.reshape(x, -1) for x in arrays])
    return _td.concat(arrays, axis)


def expand_dims(x, /, *, axis=0):
    return _td.expand_dims(x, axis)


def flip(x, /, *, axis=None):
    return _td.flip(x, axis)


def moveaxis(x, source, destination, /):
    source, destination = ([i % x.ndim for i in ([each] if isinstance(each, int) else each)] for each in (source, destination))
    order = [i for i in range(x.ndim) if i not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return _td.transpose(x, order)


def permute_dims(x, /, axes):
    return _td.transpose(x, tuple(axes)) if x.ndim else x


def repeat(x, repeats, /, *, axis=None):
    if isinstance(repeats, int):
        return _td.repeat(x, repeats, axis)
    if axis is None:
        x, axis = _td.reshape(x, -1), 0
    counts = _td.broadcast_to(repeats, (x.shape[axis],)).tolist()
    return _td.gather(x, _td.constant([i for i, n in enumerate(counts) for _ in range(n)], int64), axis)


def reshape(x, /, shape, *, copy=None):
    made = _td.reshape(x, shape)
    return made.copy() if copy else made


def roll(x, /, shift, *, axis=None):
    return _td.roll(x, shift, axis)


def squeeze(x, /, axis):
    return _td.squeeze(x, axis)


def stack(arrays, /, *, axis=0):
    return _td.stack(arrays, axis)


def tile(x, repetitions, /):
    counts = (1,) * (x.ndim - len(repetitions)) + tuple(repetitions)
    return _td.tile(_td.reshape(x, (1,) * (len(counts) - x.ndim) + x.shape), counts)


def unstack(x, /, *, axis=0):
    return tuple(_td.unstack(x, axis))


# ---- searching, sets, sorting ----

def argmax(x, /, *, axis=None, keepdims=False):
    return _td.argmax(x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    return _td.argmin(x, axis, keepdims)


def nonzero(x, /):
    if x.ndim == 0:
        raise ValueError("nonzero: the array has no axes")
    flat = _td.arange(x.size, dtype=int64)[_td.reshape(x, -1) != 0]
    found = []
    for size in reversed(x.shape):
        found.append(flat % size)
        flat = flat // size
    return tuple(reversed(found))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    if sorter is not None:
        x1 = _td.gather(x1, sorter)
    low = _td.zeros(x2.shape, int64)
    high = _td.full(x2.shape, x1.size, int64)
    for _ in range(x1.size.bit_length()):
        middle = (low + high) // 2
        there = _td.gather(x1, minimum(middle, x1.size - 1))
        right = ((there < x2) if side == "left" else (there <= x2)) & (low < high)
        low, high = _td.where(right, middle + 1, low), _td.where(right, high, middle)
    return low


def where(condition, x1, x2, /):
    return _td.where(condition, x1, x2)


_unique_all = _namedtuple("unique_all", "values indices inverse_indices counts")
_unique_counts = _namedtuple("unique_counts", "values counts")
_unique_inverse = _namedtuple("unique_inverse", "values inverse_indices")


def unique_all(x, /):
    flat = _td.reshape(x, -1)
    order = _td.argsort(flat)
    ordered = _td.gather(flat, order)
    new = _td.concat([_td.ones(_builtins.min(flat.size, 1), bool), ordered[1:] != ordered[:-1]])
    starts = _td.arange(flat.size, dtype=int64)[new]
    ends = _td.concat([starts[1:], _td.full((_builtins.min(flat.size, 1),), flat.size, int64)])
    group = _td.cumsum(_td.cast(new, int64)) - 1
    inverse = _td.put(_td.zeros(flat.size, int64), order, group)
    return _unique_all(ordered[new], _td.gather(order, starts), _td.reshape(inverse, x.shape), ends - starts)


def unique_counts(x, /):
    found = unique_all(x)
    return _unique_counts(found.values, found.counts)


def unique_inverse(x, /):
    found = unique_all(x)
    return _unique_inverse(found.values, found.inverse_indices)


def unique_values(x, /):
    return unique_all(x).values


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return _td.argsort(x, axis, descending)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return _td.sort(x, axis, descending)


# ---- statistics ----

def _widest(dtype):
    """The dtype in which the standard adds integers up, with a sign if they have one; None for floats."""
    if isdtype(dtype, ("real floating", "complex floating")):
        return None
    return uint64 if isdtype(dtype, "unsigned integer") else int64


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"cumulative_sum: name the axis of an array of {x.ndim} axes")
        axis = 0
    sums = _td.cumsum(_made(x, dtype or _widest(x.dtype)), axis)
    if not include_initial:
        return sums
    shape = [1 if i == axis % x.ndim else size for i, size in enumerate(x.shape)]
    return _td.concat([_td.zeros(shape, sums.dtype), sums], axis)


def max(x, /, *, axis=None, keepdims=False):
    return _td.max(x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    return _td.mean(x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return _td.min(x, axis, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    return _td.prod(_made(x, dtype or _widest(x.dtype)), axis, keepdims)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    wide = dtype if dtype is not None and isdtype(dtype, ("real floating", "complex floating")) else _widest(x.dtype if dtype is None else dtype)
    return _made(_td.sum(_made(x, wide), axis, keepdims), dtype)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    count = 1
    for each in axes:
        count *= x.shape[each]
    found = _td.var(x, axis, keepdims)
    return found * (count / (count - correction)) if correction else found


def all(x, /, *, axis=None, keepdims=False):
    return _td.all(x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    return _td.any(x, axis, keepdims)


# ---- the extension linalg ----

from . import _array_api_linalg as linalg  # noqa: E402, F401

# ---- the extension fft ----

from . import _array_api_fft as fft  # noqa: E402, F401
