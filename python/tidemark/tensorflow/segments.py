"""Sums, means and extremes by segment; counts and histograms."""
import tidemark as td

from . import dtypes
from .tensor import convert, integer, op, raw, sizes_of, wrap


def _segments(data, ids, count):
    x, ids = convert(data), convert(ids)
    count = integer(wrap(td.max(ids._t)), "the number of segments") + 1 if count is None else integer(count, "num_segments")
    return x, ids._t, count, [count] + sizes_of(x)[ids.ndim :]


def _segment_sum(data, ids, count=None):
    x, ids, count, shape = _segments(data, ids, count)
    flat = td.reshape(x._t, [-1] + shape[1:])
    return td.scatter_add(td.zeros(shape, x._t.dtype), td.reshape(ids, [-1]), flat)


def _segment_mean(data, ids, count=None):
    total = _segment_sum(data, ids, count)
    ids = convert(ids)
    ones = wrap(td.ones(ids._t.shape, total.dtype))
    n = td.maximum(_segment_sum(ones, ids, total.shape[0]), 1)
    return total / td.reshape(n, [total.shape[0]] + [1] * (total.ndim - 1))


def _segment_extreme(reduce, worst):
    def function(data, ids, count=None):
        x, ids, count, shape = _segments(data, ids, count)
        value = getattr(x.dtype, worst)
        rows = td.reshape(x._t, [1, -1] + shape[1:])
        own = td.equal(td.reshape(ids, [1, -1]), td.reshape(td.arange(0, count, 1, ids.dtype), [count, 1]))
        own = td.reshape(own, list(own.shape) + [1] * (rows.ndim - 2))
        return reduce(td.where(own, rows, td.full([], value, x._t.dtype)), axis=1)

    return function


def _exported(f, has_count):
    if has_count:
        return op(lambda data, segment_ids, num_segments: wrap(f(data, segment_ids, num_segments)))
    return op(lambda data, segment_ids: wrap(f(data, segment_ids)))


segment_sum, unsorted_segment_sum = _exported(_segment_sum, False), _exported(_segment_sum, True)
segment_mean, unsorted_segment_mean = _exported(_segment_mean, False), _exported(_segment_mean, True)
segment_max, unsorted_segment_max = _exported(_segment_extreme(td.max, "min"), False), _exported(_segment_extreme(td.max, "min"), True)
segment_min, unsorted_segment_min = _exported(_segment_extreme(td.min, "max"), False), _exported(_segment_extreme(td.min, "max"), True)


@op
def bincount(arr, weights=None, minlength=None, maxlength=None, dtype=dtypes.int32, axis=None, binary_output=False):
    ids = td.reshape(raw(arr), [-1])
    count = integer(wrap(td.max(ids)), "the number of bins") + 1 if ids.shape[0] else 0
    count = max(count, minlength or 0) if maxlength is None else min(max(count, minlength or 0), maxlength)
    if maxlength is not None:
        keep = ids < count
        ids = ids[keep]
        weights = None if weights is None else wrap(raw(weights)[keep])
    values = td.ones(ids.shape, dtypes.as_dtype(dtype)._td) if weights is None else td.reshape(raw(weights), [-1])
    return wrap(td.scatter_add(td.zeros([count], values.dtype), ids, values))


@op
def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype=dtypes.int32):
    a, b = td.cast(raw(labels), td.i64), td.cast(raw(predictions), td.i64)
    n = integer(wrap(td.maximum(td.max(a), td.max(b))), "the number of classes") + 1 if num_classes is None else integer(num_classes, "num_classes")
    native = dtypes.as_dtype(dtype)._td
    values = td.ones(a.shape, native) if weights is None else td.cast(raw(weights), native)
    return wrap(td.reshape(td.scatter_add(td.zeros([n * n], native), a * n + b, values), [n, n]))


@op
def histogram_fixed_width(values, value_range, nbins=100, dtype=dtypes.int32):
    x = convert(values)
    low, high = td.unstack(td.cast(raw(value_range), x.dtype._td))
    scaled = td.floor((td.reshape(x._t, [-1]) - low) / (high - low) * nbins)
    ids = td.cast(td.clip(scaled, 0, nbins - 1), td.i64)
    native = dtypes.as_dtype(dtype)._td
    return wrap(td.scatter_add(td.zeros([nbins], native), ids, td.ones(ids.shape, native)))
