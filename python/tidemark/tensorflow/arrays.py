"""Tensors made, reshaped, joined and split."""
import builtins

import numpy as np
import tidemark as td

from . import dtypes
from .errors import InvalidArgumentError, UnknownBytes
from .shapes import TensorShape
from .tensor import Tensor, _of_size, axes, convert, integer, integers, is_tensor, of_sizes, op, pair, raw, selected, sizes_of, spec_of, wrap


@op
def constant(value, dtype=None, shape=None):
    x = convert(value, dtype)
    if shape is None:
        return x if not is_tensor(value) else wrap(td.identity(x._t))
    shape = integers(shape, "constant: shape")
    count = int(np.prod(shape))
    have = int(np.prod(sizes_of(x)))
    if have == 1 and count != 1:
        return wrap(td.identity(td.broadcast_to(td.reshape(x._t, []), shape)))
    if have != count:
        raise TypeError(f"Eager execution of tf.constant with unsupported shape. Tensor has {have} elements, but got `shape` {tuple(shape)} with {count} elements).")
    return wrap(td.reshape(x._t, shape))


@op
def convert_to_tensor(value, dtype=None, dtype_hint=None):
    return convert(value, dtype, dtype_hint)


@op
def identity(input):
    x = convert(input)
    return Tensor(td.identity(x._t), x._sizes)


@op
def identity_n(input):
    return [identity(x) for x in input]


@op
def cast(x, dtype):
    dtype = dtypes.as_dtype(dtype)
    if hasattr(x, "indices") and hasattr(x, "dense_shape"):
        return type(x)(cast(x.values, dtype), x.indices, x.dense_shape)
    x = convert(x)
    if x.dtype.is_complex and not dtype.is_complex and not dtype.is_bool:  # As TensorFlow: the real parts.
        x = wrap(td.real(x._t))
    return x if x.dtype is dtype else Tensor(td.cast(x._t, dtype._td), x._sizes if dtype.is_integer else None)


@op
def saturate_cast(value, dtype):
    x, dtype = convert(value), dtypes.as_dtype(dtype)
    if dtype.is_integer and not x.dtype.is_bool:
        x = wrap(td.clip(x._t, max(dtype.min, x.dtype.min) if x.dtype.is_integer else dtype.min, min(dtype.max, x.dtype.max) if x.dtype.is_integer else dtype.max))
    return cast(x, dtype)


@op
def zeros(shape, dtype=dtypes.float32, layout=None):
    return wrap(td.zeros(integers(shape, "zeros: shape"), dtypes.as_dtype(dtype)._td))


@op
def ones(shape, dtype=dtypes.float32, layout=None):
    return wrap(td.ones(integers(shape, "ones: shape"), dtypes.as_dtype(dtype)._td))


def _like(make, input, dtype):
    x = convert(input)
    return wrap(make(sizes_of(x), (dtypes.as_dtype(dtype) if dtype else x.dtype)._td))


@op
def zeros_like(input, dtype=None, layout=None):
    return _like(td.zeros, input, dtype)


@op
def ones_like(input, dtype=None, layout=None):
    return _like(td.ones, input, dtype)


@op
def fill(dims, value, layout=None):
    value = convert(value)
    return wrap(td.identity(td.broadcast_to(value._t, integers(dims, "fill: dims"))))


@op
def eye(num_rows, num_columns=None, batch_shape=None, dtype=dtypes.float32):
    rows = integer(num_rows, "eye: num_rows")
    columns = rows if num_columns is None else integer(num_columns, "eye: num_columns")
    x = td.eye(rows, columns, dtypes.as_dtype(dtype)._td)
    if batch_shape is not None:
        x = td.identity(td.broadcast_to(x, integers(batch_shape, "eye: batch_shape") + [rows, columns]))
    return wrap(x)


@op
def linspace(start, stop, num, axis=0):
    start, stop = pair(start, stop, "linspace")
    count = integer(num, "linspace: num")
    if start.dtype.is_integer:
        start, stop = cast(start, dtypes.float64), cast(stop, dtypes.float64)
    steps = td.arange(0, count, 1, start.dtype._td)
    rank = start.ndim
    axis = axis % (rank + 1)
    steps = td.reshape(steps, [1] * axis + [count] + [1] * (rank - axis))
    first, last = td.expand_dims(start._t, axis), td.expand_dims(stop._t, axis)
    inside = first + (last - first) / max(count - 1, 1) * steps
    return wrap(td.where(td.equal(steps, count - 1), last, inside) if count > 1 else td.broadcast_to(first, inside.shape))


class TracedRange(td.range):
    """What a `for` loop of a function runs over. A tensor of its numbers has a size that is known only when the function runs."""

    def _as_tensor(self):
        raise UnknownBytes(f"{self}: the bounds are known only at run time, and so the size of the tensor is not; loop over it: for i in tf.range(n)")

    shape = dtype = ndim = property(_as_tensor)

    def __getitem__(self, key):
        self._as_tensor()


@op
def range(start, limit=None, delta=1, dtype=None):
    if limit is None:
        start, limit = 0, start
    given = [start, limit, delta]
    dtype = dtypes.as_dtype(dtype) if dtype else _range_dtype(given)
    values = [_range_value(v, dtype) for v in given]
    if any(td.is_traced(v) for v in values):
        return TracedRange(*values)
    return wrap(td.arange(*values, dtype._td))


def _range_dtype(given):
    """The widest of TensorFlow's order of dtypes for ranges."""
    order = [dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
    return order[max(order.index(convert(v).dtype) for v in given)]


def _range_value(value, dtype):
    if is_tensor(value):
        value = convert(value)
        return value._sizes if isinstance(value._sizes, (int, td.Dim)) else value._t
    return value if isinstance(value, (int, float, td.Dim)) else raw(value)


@op
def reshape(tensor, shape):
    x = convert(tensor)
    return wrap(td.reshape(x._t, integers(shape, "reshape: shape")))


@op
def transpose(a, perm=None, conjugate=False):
    x = convert(a)
    return wrap(td.transpose(x._t) if perm is None else td.transpose(x._t, integers(perm, "transpose: perm")))


def _one_dtype(values, what):
    """Tensors of one dtype: that of the first one that is a tensor."""
    given = list(values)
    dtype = next((convert(v).dtype for v in given if is_tensor(v)), None)
    made = []
    for value in given:
        x = convert(value, None if is_tensor(value) else dtype)
        dtype = dtype or x.dtype
        if x.dtype is not dtype:
            raise InvalidArgumentError(f"{what}: tensors of {dtype.name} and {x.dtype.name}; write tf.cast(x, tf.{dtype.name}) around one of them")
        made.append(x)
    return made


@op
def concat(values, axis):
    if is_tensor(values):
        values = [values]
    parts = _one_dtype(values, "concat")
    axis = integer(axis, "concat: axis")
    known = [p._sizes for p in parts]
    sizes = [s for k in known for s in k] if all(isinstance(k, list) for k in known) else None
    return Tensor(td.concat([p._t for p in parts], axis), sizes)


@op
def stack(values, axis=0):
    if hasattr(values, "rows") and hasattr(values, "stack"):  # A list that a traced loop appended to.
        return convert(values.stack()) if axis == 0 else stack(list(values), axis)
    if is_tensor(values):
        values = list(values)
    parts = _one_dtype(values, "stack")
    known = [p._sizes for p in parts]
    scalars = all(k is not None and not isinstance(k, list) for k in known)
    return Tensor(td.stack([p._t for p in parts], axis), known if scalars and parts else None)


@op
def unstack(value, num=None, axis=0):
    return [wrap(part) for part in td.unstack(raw(value), axis)]


@op
def split(value, num_or_size_splits, axis=0, num=None):
    x, axis = convert(value), integer(axis, "split: axis")
    if isinstance(num_or_size_splits, int) or is_tensor(num_or_size_splits) and convert(num_or_size_splits).ndim == 0:
        return [wrap(p) for p in td.split(x._t, integer(num_or_size_splits, "split: the number of parts"), axis)]
    sizes = integers(num_or_size_splits, "split: sizes")
    if -1 in sizes:
        rest = sizes_of(x)[axis] - sum(s for s in sizes if s != -1)
        sizes = [rest if s == -1 else s for s in sizes]
    return [wrap(p) for p in td.split(x._t, sizes, axis)]


@op
def tile(input, multiples):
    return wrap(td.tile(raw(input), integers(multiples, "tile: multiples")))


@op
def repeat(input, repeats, axis=None):
    x = raw(input)
    counts = integers(repeats, "repeat: repeats")
    if len(counts) == 1:
        return wrap(td.repeat(x, counts[0], axis=axis))
    if axis is None:
        x, axis = td.reshape(x, [-1]), 0
    rows = [i for i, count in enumerate(counts) for _ in builtins.range(count)]
    return wrap(td.gather(x, td.constant(rows, td.i32) if rows else td.zeros([0], td.i32), axis))


@op
def expand_dims(input, axis):
    return wrap(td.expand_dims(raw(input), integer(axis, "expand_dims: axis")))


@op
def squeeze(input, axis=None):
    x = convert(input)
    if axis is None:
        return wrap(td.squeeze(x._t))
    return wrap(td.squeeze(x._t, axes(axis)))


@op
def slice(input_, begin, size):
    x = convert(input_)
    starts, sizes = integers(begin, "slice: begin") if _known(begin) else None, integers(size, "slice: size")
    if starts is None:
        return _slice_at(x, convert(begin), sizes)
    key = tuple(
        builtins.slice(b, None if s == -1 else b + s) for b, s in zip(starts, sizes)
    )
    for b, s, n in zip(starts, sizes, sizes_of(x)):
        if s != -1 and isinstance(n, int) and isinstance(b, int) and isinstance(s, int) and b + s > n:
            raise InvalidArgumentError(f"slice: begin {b} and size {s} go past the end of an axis of size {n} of {x.dtype.name}{x.shape}")
    return wrap(x._t[key])


def _known(values):
    """Whether the numbers are known now."""
    if not is_tensor(values):
        return not any(is_tensor(v) and not _known(v) for v in values) if isinstance(values, (list, tuple)) else True
    x = convert(values)
    return x._sizes is not None or not td.is_traced(x._t)


def _slice_at(x, begin, sizes):
    """A slice whose start is known only at run time: one gather an axis."""
    native = x._t
    for axis, size in enumerate(sizes):
        whole = sizes_of(x)[axis]
        if size in (-1, whole):
            continue
        native = td.gather(native, td.cast(begin._t[axis], td.i32) + td.arange(0, size, 1, td.i32), axis)
    return wrap(native)


@op
def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0, var=None):
    x = convert(input_)
    begin, end = integers(begin, "strided_slice: begin"), integers(end, "strided_slice: end")
    strides = [1] * len(begin) if strides is None else integers(strides, "strided_slice: strides")
    key = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(b)
        else:
            key.append(builtins.slice(None if begin_mask & bit else b, None if end_mask & bit else e, s))
    return wrap(x._t[tuple(key)])


@op
def reverse(tensor, axis):
    return wrap(td.flip(raw(tensor), integers(axis, "reverse: axis")))


@op
def reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=0):
    x = raw(input)
    lengths = raw(seq_lengths)
    n = x.shape[seq_axis]
    steps = td.reshape(td.arange(0, n, 1, td.i32), [1, n])
    lengths = td.reshape(td.cast(lengths, td.i32), [-1, 1])
    order = td.where(steps < lengths, lengths - 1 - steps, steps)
    if batch_axis != 0 or seq_axis != 1:
        raise InvalidArgumentError(f"reverse_sequence: batch_axis {batch_axis} and seq_axis {seq_axis}; transpose so that they are 0 and 1")
    order = td.reshape(order, list(order.shape) + [1] * (x.ndim - 2))
    return wrap(td.take_along_axis(x, td.broadcast_to(order, x.shape), 1))


@op
def where(condition, x=None, y=None):
    c = convert(condition)
    if x is None and y is None:
        return _nonzero(c)
    x, y = pair(x, y, "where")
    return wrap(td.where(td.cast(c._t, td.bool), x._t, y._t))


def _nonzero(c):
    """The coordinates of the true elements; their number depends on the values."""
    flat = td.reshape(td.cast(c._t, td.bool), [-1])
    shape = sizes_of(c)
    count = int(np.prod(shape))
    at = selected(td.arange(0, count, 1, td.i64), flat, flat)
    columns = []
    for size in reversed(shape):
        columns.append(td.remainder(at, size))
        at = td.floor_divide(at, size)
    return wrap(td.stack(columns[::-1], 1) if columns else td.zeros([0, 0], td.i64))


@op
def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None):
    ids, depth = convert(indices), integer(depth, "one_hot: depth")
    given = [v for v in (on_value, off_value) if v is not None]
    dtype = dtypes.as_dtype(dtype) if dtype else convert(given[0]).dtype if given else dtypes.float32
    hot = td.one_hot(ids._t, depth, td.bool)
    on = raw(1 if on_value is None and not dtype.is_bool else True if on_value is None else on_value, dtype if not is_tensor(on_value) else None)
    off = raw(0 if off_value is None and not dtype.is_bool else False if off_value is None else off_value, dtype if not is_tensor(off_value) else None)
    made = td.where(hot, on, off)
    if axis is not None and axis != -1 and axis != ids.ndim:
        order = list(builtins.range(ids.ndim))
        order.insert(axis, ids.ndim)
        made = td.transpose(made, order)
    return wrap(made)


@op
def boolean_mask(tensor, mask, axis=None):
    x, mask = convert(tensor), convert(mask)
    axis, mask = 0 if axis is None else integer(axis, "boolean_mask: axis"), td.cast(mask._t, td.bool)
    key = (builtins.slice(None),) * (axis % x.ndim) + (mask,) if axis else mask
    return wrap(selected(x._t, key, mask))


@op
def pad(tensor, paddings, mode="CONSTANT", constant_values=0):
    x = convert(tensor)
    flat = integers(np.asarray(paddings) if not is_tensor(paddings) and not _holds_tensors(paddings) else _flat_list(paddings), "pad: paddings")
    pairs = [(flat[i], flat[i + 1]) for i in builtins.range(0, len(flat), 2)]
    if mode.upper() == "CONSTANT":
        value = raw(constant_values) if is_tensor(constant_values) else constant_values
        return wrap(td.pad(x._t, pairs, td.cast(value, x.dtype._td) if is_tensor(constant_values) else raw(_as_kind(value, x.dtype), x.dtype)))
    _check_mirror(x._t.shape, pairs, mode.upper())
    return wrap(td.pad(x._t, pairs, mode=mode.lower()))


def _as_kind(value, dtype):
    return bool(value) if dtype.is_bool else float(value) if dtype.is_floating else int(value)


def _holds_tensors(values):
    return any(is_tensor(v) or isinstance(v, (list, tuple)) and _holds_tensors(v) for v in values)


def _flat_list(values):
    if is_tensor(values):
        x = convert(values)
        return integers(Tensor(td.reshape(x._t, [-1])), "pad: paddings") if x.ndim else [values]
    return [leaf for v in values for leaf in (_flat_list(v) if isinstance(v, (list, tuple)) or is_tensor(v) and convert(v).ndim else [v])]


def _check_mirror(shape, pairs, mode):
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"Value for attr 'mode' of {mode!r} is not in the list of allowed values: \"CONSTANT\", \"REFLECT\", \"SYMMETRIC\"")
    for size, (before, after) in zip(shape, pairs):
        if max(before, after) > size - (mode == "REFLECT"):
            raise InvalidArgumentError(f"pad: {mode} of {max(before, after)} elements on an axis of {size}")


@op
def roll(input, shift, axis):
    return wrap(td.roll(raw(input), integers(shift, "roll: shift"), integers(axis, "roll: axis")))


@op
def meshgrid(*args, indexing="xy"):
    parts = _one_dtype(args, "meshgrid")
    rank = len(parts)
    order = list(builtins.range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    sizes = [0] * rank
    for part, at in zip(parts, order):
        sizes[at] = sizes_of(part)[0]
    made = []
    for part, at in zip(parts, order):
        line = td.reshape(part._t, [sizes[at] if i == at else 1 for i in builtins.range(rank)])
        made.append(wrap(td.identity(td.broadcast_to(line, sizes))))
    return made


@op
def sequence_mask(lengths, maxlen=None, dtype=dtypes.bool):
    lengths = convert(lengths)
    n = integer(wrap(td.max(lengths._t)) if maxlen is None else maxlen, "sequence_mask: maxlen")
    mask = td.arange(0, n, 1, lengths.dtype._td) < td.expand_dims(lengths._t, -1)
    return cast(wrap(mask), dtype)


@op
def shape(input, out_type=dtypes.int32):
    return of_sizes(sizes_of(convert(input)), dtypes.as_dtype(out_type))


@op
def shape_n(input, out_type=dtypes.int32):
    return [shape(x, out_type) for x in input]


@op
def size(input, out_type=dtypes.int32):
    count = 1
    for n in sizes_of(convert(input)):
        count = n * count
    return _of_size(count, dtypes.as_dtype(out_type))


@op
def rank(input):
    return _of_size(convert(input).ndim)


@op
def broadcast_to(input, shape):
    return wrap(td.broadcast_to(raw(input), integers(shape, "broadcast_to: shape")))


def broadcast_static_shape(shape_x, shape_y):
    return TensorShape(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))


def broadcast_dynamic_shape(shape_x, shape_y):
    return of_sizes(np.broadcast_shapes(tuple(integers(shape_x, "shape")), tuple(integers(shape_y, "shape"))))


@op
def ensure_shape(x, shape):
    x, shape = convert(x), TensorShape(shape)
    if not x.shape.is_compatible_with(shape):
        raise InvalidArgumentError(f"ensure_shape: the tensor is {x.dtype.name}{x.shape}, which is not compatible with {shape}")
    return x


def type_spec_from_value(value):
    return spec_of(convert(value))
