"""Subscripts, gather and scatter, sorts and searches."""
import collections

import tidemark as td

from . import dtypes
from .arrays import _one_dtype, cast
from .errors import InvalidArgumentError
from .tensor import Tensor, convert, integer, integers, is_tensor, op, raw, selected, sizes_of, wrap


def _key(part):
    """One part of a subscript as Tidemark takes it."""
    if isinstance(part, slice):
        return slice(*(_bound(v) for v in (part.start, part.stop, part.step)))
    if is_tensor(part):
        x = convert(part)
        if x.dtype.is_bool:
            return x._t
        if x.ndim:
            raise TypeError(f"Only integers, slices, ellipsis, tf.newaxis and scalar tensors are valid indices, got a tensor of shape {x.shape}; write tf.gather(x, indices)")
        return x._sizes if isinstance(x._sizes, (int, td.Dim)) else x._t
    return part


def _bound(value):
    return integer(value, "a bound of a slice") if is_tensor(value) else value


def subscript(x, key):
    parts = key if isinstance(key, tuple) else (key,)
    if x._sizes is not None and isinstance(x._sizes, list) and len(parts) == 1 and not is_tensor(key):
        if isinstance(key, (int, slice)):
            return Tensor(x._t[key], x._sizes[key])
    native = tuple(_key(part) for part in parts)
    mask = next((part for part in native if isinstance(part, td.Tensor) and part.dtype is td.bool), None)
    key = native if len(native) != 1 else native[0]
    return wrap(x._t[key] if mask is None else selected(x._t, key, mask))


Tensor.__getitem__ = op(subscript)


@op
def gather(params, indices, validate_indices=None, axis=None, batch_dims=0):
    ids = convert(indices)
    batch = integer(batch_dims, "gather: batch_dims")
    if hasattr(params, "_gather") and batch == 0 and axis in (None, 0):
        return params._gather(ids)  # A Variable: the gradient stays row-sparse.
    x = convert(params)
    if batch < 0:
        batch += ids.ndim
    axis = batch if axis is None else integer(axis, "gather: axis")
    axis = axis + x.ndim if axis < 0 else axis
    if batch == 0:
        return wrap(td.gather(x._t, ids._t, axis))
    return wrap(_gather_batched(x._t, ids._t, axis, batch))


def _gather_batched(x, ids, axis, batch):
    """One gather over the batch and the axis as one axis."""
    shape, rows = list(x.shape), list(ids.shape)
    order = list(range(batch)) + [axis] + [i for i in range(batch, len(shape)) if i != axis]
    moved = td.transpose(x, order)
    lead = 1
    for n in shape[:batch]:
        lead = lead * n
    flat = td.reshape(moved, [lead * shape[axis]] + [shape[i] for i in order[batch + 1 :]])
    offsets = td.reshape(td.arange(0, lead, 1, td.i32) * shape[axis], rows[:batch] + [1] * (len(rows) - batch))
    wide = td.cast(ids, td.i32)
    picked = td.gather(flat, td.where(wide < 0, wide + shape[axis], wide) + offsets, 0)
    if axis == batch:
        return picked
    inner, between = len(rows) - batch, axis - batch
    total = picked.ndim
    order = list(range(batch)) + list(range(batch + inner, batch + inner + between)) + list(range(batch, batch + inner))
    return td.transpose(picked, order + list(range(batch + inner + between, total)))


def _flat_rows(shape, indices, what):
    """Positions in the flattened leading axes that the last axis of `indices` names."""
    depth = indices.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(f"{what}: indices name {depth} axes of a tensor with {len(shape)}")
    position = td.zeros(list(indices.shape)[:-1], td.i64)
    for axis in range(depth):
        part = td.cast(indices[..., axis], td.i64)
        n = shape[axis]
        td.assert_that(td.all((part >= 0) & (part < n)), f"{what}: an index is outside an axis of size {n}")
        position = position * n + part
    return position, depth


@op
def gather_nd(params, indices, batch_dims=0, bad_indices_policy=""):
    x, ids = convert(params), convert(indices)
    batch = integer(batch_dims, "gather_nd: batch_dims")
    native, rows = x._t, td.cast(ids._t, td.i64)
    shape = list(native.shape)
    if batch:
        lead = 1
        for n in shape[:batch]:
            lead = lead * n
        native = td.reshape(native, [lead] + shape[batch:])
        rows = td.reshape(rows, [lead] + list(rows.shape)[batch:])
        number = td.reshape(td.arange(0, lead, 1, td.i64), [lead] + [1] * (rows.ndim - 1))
        rows = td.concat([td.broadcast_to(number, list(rows.shape)[:-1] + [1]), rows], rows.ndim - 1)
    position, depth = _flat_rows(list(native.shape), rows, "gather_nd")
    flat = td.reshape(native, [-1] + list(native.shape)[depth:]) if depth else td.expand_dims(native, 0)
    picked = td.gather(flat, position, 0)
    if batch:
        picked = td.reshape(picked, list(ids._t.shape)[:batch] + list(picked.shape)[1:])
    return wrap(picked)


def _scattered(tensor, indices, updates, change, what):
    x, ids = convert(tensor), convert(indices)
    new = convert(updates, x.dtype)
    shape = sizes_of(x)
    position, depth = _flat_rows(shape, ids._t, what)
    flat = td.reshape(x._t, [-1] + shape[depth:])
    rows = td.reshape(position, [-1])
    values = td.reshape(new._t, [-1] + shape[depth:])
    return wrap(td.reshape(change(flat, rows, values), shape))


@op
def tensor_scatter_nd_update(tensor, indices, updates):
    return _scattered(tensor, indices, updates, lambda x, i, v: td.put(x, i, v), "tensor_scatter_nd_update")


@op
def tensor_scatter_nd_add(tensor, indices, updates):
    return _scattered(tensor, indices, updates, lambda x, i, v: td.scatter_add(x, i, v), "tensor_scatter_nd_add")


@op
def tensor_scatter_nd_sub(tensor, indices, updates):
    return _scattered(tensor, indices, updates, lambda x, i, v: td.scatter_add(x, i, -v), "tensor_scatter_nd_sub")


def _extreme(pick):
    """Rows replaced by the larger or smaller of themselves and their updates, one update after another."""

    def change(x, rows, values):
        def body(i, carried):
            row = rows[i : i + 1] if isinstance(i, int) else td.gather(rows, td.expand_dims(i, 0))
            value = td.gather(values, td.expand_dims(i, 0))
            return td.put(carried, row, pick(td.gather(carried, row), value))

        return td.fori_loop(0, rows.shape[0], body, x)

    return change


@op
def tensor_scatter_nd_max(tensor, indices, updates):
    return _scattered(tensor, indices, updates, _extreme(td.maximum), "tensor_scatter_nd_max")


@op
def tensor_scatter_nd_min(tensor, indices, updates):
    return _scattered(tensor, indices, updates, _extreme(td.minimum), "tensor_scatter_nd_min")


@op
def scatter_nd(indices, updates, shape):
    new = convert(updates)
    zero = wrap(td.zeros(integers(shape, "scatter_nd: shape"), new.dtype._td))
    return tensor_scatter_nd_add(zero, indices, new)


@op
def sort(values, axis=-1, direction="ASCENDING"):
    return wrap(td.sort(raw(values), axis, descending=_descends(direction)))


@op
def argsort(values, axis=-1, direction="ASCENDING", stable=False):
    return wrap(td.cast(td.argsort(raw(values), axis, descending=_descends(direction)), td.i32))


def _descends(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Argument `direction` should be one of ['ASCENDING', 'DESCENDING']. Received: {direction}")
    return direction == "DESCENDING"


TopKV2 = collections.namedtuple("TopKV2", ["values", "indices"])
Unique = collections.namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = collections.namedtuple("UniqueWithCounts", ["y", "idx", "count"])


@op
def top_k(input, k=1, sorted=True, index_type=dtypes.int32):
    found = td.top_k(raw(input), integer(k, "top_k: k"))
    return TopKV2(wrap(found[0]), wrap(td.cast(found[1], dtypes.as_dtype(index_type)._td)))


@op
def in_top_k(targets, predictions, k):
    ids, scores = raw(targets), raw(predictions)
    own = td.take_along_axis(scores, td.expand_dims(td.cast(ids, td.i64), 1), 1)
    larger = td.sum(td.cast(scores > own, td.i32), 1)
    return wrap(td.logical_and(larger < integer(k, "in_top_k: k"), td.isfinite(own[:, 0])))


def _unique(x):
    """Which elements are first of their kind, and for each element the number of its kind."""
    if x.dtype.is_floating:
        order = td.argsort(x._t)
        ordered = td.gather(x._t, order)
        starts = td.concat([td.ones([1], td.bool), ordered[1:] != ordered[:-1]], 0)
        kind = td.cumsum(td.cast(starts, td.i32)) - 1
        kinds = td.put(td.zeros(x._t.shape, td.i64), order, td.cast(kind, td.i64))
        first = td.first_equal(kinds)
    else:
        first = td.first_equal(x._t)
    is_first = td.equal(first, td.arange(0, x._t.shape[0], 1, first.dtype))
    number = td.cast(td.cumsum(td.cast(is_first, td.i32)) - 1, td.i32)
    return is_first, td.gather(number, first)


@op
def unique(x, out_idx=dtypes.int32):
    x = convert(x)
    is_first, kinds = _unique(x)
    return Unique(wrap(selected(x._t, is_first, is_first)), cast(wrap(kinds), out_idx))


@op
def unique_with_counts(x, out_idx=dtypes.int32):
    x = convert(x)
    is_first, kinds = _unique(x)
    y = selected(x._t, is_first, is_first)
    counts = td.scatter_add(td.zeros([y.shape[0]], td.i32), kinds, td.ones(kinds.shape, td.i32))
    return UniqueWithCounts(wrap(y), cast(wrap(kinds), out_idx), cast(wrap(counts), out_idx))


@op
def searchsorted(sorted_sequence, values, side="left", out_type=dtypes.int32):
    line, wanted = _one_dtype([sorted_sequence, values], "searchsorted")
    before = td.less if side == "left" else td.less_equal
    hits = before(td.expand_dims(line._t, -2), td.expand_dims(wanted._t, -1))
    return cast(wrap(td.sum(td.cast(hits, td.i32), -1)), out_type)


@op
def dynamic_partition(data, partitions, num_partitions):
    x, parts = raw(data), raw(partitions)
    masks = [td.equal(parts, i) for i in range(num_partitions)]
    return [wrap(selected(x, mask, mask)) for mask in masks]


@op
def dynamic_stitch(indices, data):
    rows = td.concat([td.reshape(raw(i), [-1]) for i in indices], 0)
    parts = []
    for i, d in zip(indices, data):
        i, d = convert(i), convert(d)
        parts.append(td.reshape(d._t, [-1] + sizes_of(d)[i.ndim :]))
    values = td.concat(parts, 0)
    count = integer(wrap(td.max(rows)), "dynamic_stitch: the largest index") + 1
    return wrap(td.put(td.zeros([count] + list(values.shape)[1:], values.dtype), rows, values))
