"""The array namespace beside array-api-strict on drawn arrays: any dtype, shape, value (infinities and NaNs among them), axis and index."""
import os
import warnings

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn

import tidemark as td
from test_array_api_strict import BINARY, DTYPES, UNARY, compare, takes

INTEGERS = [name for name in DTYPES if "int" in name]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
SHAPES = drawn.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)
EXAMPLES = 200 if os.environ.get("TIDEMARK_TEST_COUNTS") == "full" else 40


def on_draws(*strategies, **more):
    """Runs a test with the same draws in every run."""
    quiet = settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    return lambda test: quiet(given(*strategies, **more)(test))


def elements(dtype, small=False):
    """Numbers of a dtype. Small ones are exact sums, products and powers of each other."""
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGERS:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        return st.integers(max(least, -4), 4) if small else st.integers(least, most)
    if dtype in COMPLEX:
        part = st.integers(-4, 4).map(float)
        return st.builds(complex, part, part)
    width = 32 if dtype == "float32" else 64
    return st.integers(-8, 8).map(lambda n: n / 2) if small else st.floats(width=width, allow_subnormal=False)


def arrays(dtypes, shapes=SHAPES, small=False):
    return st.sampled_from(dtypes).flatmap(lambda dtype: drawn.arrays(dtype, shapes, elements=elements(dtype, small)))


def compared(call, **more):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(call, **more)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name):
    @on_draws(arrays(DTYPES))
    def check(a):
        # Angles beyond 2^20 are reduced by each library in its own way; a test of the kernels has bounds for them.
        if name in ("sin", "cos", "tan") and a.dtype.kind == "f":
            a = np.where(np.abs(a) < 2.0 ** 20, a, a.dtype.type(np.inf))
        if name == "signbit":
            a = np.where(np.isnan(a), 0, a).astype(a.dtype) if a.dtype.kind == "f" else a
        compared(lambda s: getattr(s, name)(s.asarray(a)))
    check()


def pairs(name, dtypes):
    """Two arrays that broadcast against each other, with values for which the standard says what the function gives."""
    def filled(pair):
        shapes = drawn.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4)
        def both(shapes):
            left, right = (drawn.arrays(d, shape, elements=elements(d, small=name == "pow")) for d, shape in zip(pair, shapes.input_shapes))
            return st.tuples(left, right)
        return shapes.flatmap(both)
    return st.tuples(st.sampled_from(dtypes), st.sampled_from(dtypes)).flatmap(filled)


def defined(name, a, b):
    """Shifts by 0 to 7 places; no integer is divided by 0, and none is raised to a negative power."""
    if "shift" in name:
        return a, (b % 8).astype(b.dtype)
    both_whole = a.dtype.kind in "iu" and b.dtype.kind in "iu"
    if both_whole and name in ("floor_divide", "remainder"):
        # The least number divided by -1 does not fit.
        return a // 2, np.where(b == 0, 1, b).astype(b.dtype)
    if both_whole and name == "pow":
        return a, np.abs(b)
    return a, b


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays(name):
    @on_draws(pairs(name, [dtype for dtype in DTYPES if takes(name, dtype)]))
    def check(pair):
        a, b = defined(name, *pair)
        if name == "remainder" and "f" in a.dtype.kind + b.dtype.kind:
            a, b = (np.clip(np.nan_to_num(x), -1e6, 1e6).round(2).astype(x.dtype) if x.dtype.kind == "f" else x for x in (a, b))
        compared(lambda s: getattr(s, name)(s.asarray(a), s.asarray(b)))
    check()


@pytest.mark.parametrize("name", "abs add conj divide equal imag multiply negative not_equal positive real square subtract isfinite isnan isinf".split())
def test_functions_of_complex_arrays(name):
    @on_draws(st.sampled_from(COMPLEX).flatmap(lambda d: st.tuples(*[drawn.arrays(d, (3,), elements=elements(d))] * 2)))
    def check(pair):
        a, b = pair
        two = name in ("add", "divide", "equal", "multiply", "not_equal", "subtract")
        b = np.where(b == 0, 1, b).astype(b.dtype) if name == "divide" else b
        with np.errstate(all="ignore"):
            theirs = getattr(strict, name)(*[strict.asarray(x) for x in ((a, b) if two else (a,))])
            ours = getattr(td.array_api, name)(*[td.array_api.asarray(x) for x in ((a, b) if two else (a,))])
        assert str(ours.dtype.name) == str(theirs.dtype).rsplit(".")[-1].strip("'>") or ours.dtype == getattr(td, np.asarray(theirs).dtype.name)
        np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-5)
    check()


def axes_of(a, several):
    one = st.integers(-a.ndim, a.ndim - 1) if a.ndim else st.none()
    many = drawn.valid_tuple_axes(a.ndim, min_size=1) if a.ndim and several else one
    return st.one_of(st.none(), one, many)


@pytest.mark.parametrize("name", "all any max mean min prod std sum var argmax argmin cumulative_sum".split())
def test_reductions(name):
    @on_draws(arrays(DTYPES, small=True), st.data(), st.booleans())
    def check(a, data, keep):
        if name == "cumulative_sum":
            if a.ndim == 0:
                return
            axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
            compared(lambda s: s.cumulative_sum(s.asarray(a), axis=axis, include_initial=keep))
            return
        axis = data.draw(axes_of(a, not name.startswith("arg")))
        compared(lambda s: getattr(s, name)(s.asarray(a), axis=axis, keepdims=keep))
    check()


@on_draws(arrays(DTYPES), st.data())
def test_basic_indices(a, data):
    index = data.draw(drawn.basic_indices(a.shape, allow_newaxis=True))
    compared(lambda s: s.asarray(a)[index])


@on_draws(arrays(DTYPES), st.data())
def test_masks(a, data):
    mask = data.draw(drawn.arrays(bool, a.shape))
    compared(lambda s: s.asarray(a)[s.asarray(mask)])


@on_draws(arrays(DTYPES), st.data())
def test_take(a, data):
    if a.ndim == 0 or 0 in a.shape:
        return
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    indices = data.draw(drawn.arrays("int64", st.integers(0, 4), elements=st.integers(0, a.shape[axis] - 1)))
    compared(lambda s: s.take(s.asarray(a), s.asarray(indices), axis=axis))


@on_draws(arrays(DTYPES), st.data())
def test_shapes(a, data):
    axes = data.draw(st.permutations(range(a.ndim)))
    axis = data.draw(st.integers(-a.ndim - 1, a.ndim))
    some = data.draw(axes_of(a, True))
    shift = data.draw(st.integers(-7, 7))
    compared(lambda s: [s.permute_dims(s.asarray(a), tuple(axes)), s.expand_dims(s.asarray(a), axis=axis), s.flip(s.asarray(a), axis=some),
                        s.reshape(s.asarray(a), (-1,) if a.size else (a.size,)), s.stack([s.asarray(a)] * 2, axis=axis), s.tile(s.asarray(a), (2, 1)),
                        s.roll(s.asarray(a), shift)])
    if a.ndim:
        one, other = data.draw(st.integers(-a.ndim, a.ndim - 1)), data.draw(st.integers(-a.ndim, a.ndim - 1))
        counts = data.draw(drawn.arrays("int64", (a.shape[one],), elements=st.integers(0, 3)))
        compared(lambda s: [s.concat([s.asarray(a), s.asarray(a)], axis=one), s.moveaxis(s.asarray(a), one, other), s.roll(s.asarray(a), shift, axis=one),
                            s.repeat(s.asarray(a), 2, axis=one), s.repeat(s.asarray(a), s.asarray(counts), axis=one), *s.unstack(s.asarray(a), axis=one)])


@on_draws(arrays(DTYPES, drawn.array_shapes(max_dims=3, max_side=6)), st.data(), st.booleans())
def test_sorting_and_sets(a, data, descending):
    a = np.where(np.isnan(a), 0, a).astype(a.dtype) if a.dtype.kind == "f" else a  # The standard leaves the order of NaNs open.
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    compared(lambda s: [s.sort(s.asarray(a), axis=axis, descending=descending), s.argsort(s.asarray(a), axis=axis, descending=descending)])
    compared(lambda s: [*s.unique_counts(s.asarray(a)), *s.unique_inverse(s.asarray(a)), s.unique_values(s.asarray(a)), *s.nonzero(s.asarray(a))])
    flat = np.sort(a.reshape(-1))
    for side in ("left", "right"):
        compared(lambda s: s.searchsorted(s.asarray(flat), s.asarray(a), side=side))


@on_draws(arrays(DTYPES), st.sampled_from(DTYPES))
def test_casts(a, dtype):
    if a.dtype.kind == "f" and dtype in INTEGERS:  # Only numbers that fit have a meaning.
        a = np.clip(np.nan_to_num(a), 0, 100).astype(a.dtype)
    compared(lambda s: s.astype(s.asarray(a), getattr(s, dtype)))


@on_draws(arrays(INTEGERS + FLOATS, small=True), st.integers(-4, 4), st.integers(-4, 4))
def test_clip(a, low, high):
    low, high = (max(low, 0), max(high, 0)) if a.dtype.kind == "u" else (low, high)
    low, high = min(low, high), max(low, high)
    compared(lambda s: [s.clip(s.asarray(a), low, high), s.clip(s.asarray(a), min=low), s.clip(s.asarray(a), max=s.asarray(high, dtype=s.asarray(a).dtype))])


@on_draws(st.sampled_from(DTYPES[1:]), st.data())
def test_products(dtype, data):
    n, m, k = (data.draw(st.integers(0, 4)) for _ in range(3))
    stack = data.draw(st.sampled_from([(), (2,), (2, 1), (0,)]))
    a = data.draw(drawn.arrays(dtype, (*stack, n, k), elements=elements(dtype, small=True)))
    b = data.draw(drawn.arrays(dtype, (k, m), elements=elements(dtype, small=True)))
    compared(lambda s: [s.matmul(s.asarray(a), s.asarray(b)), s.tensordot(s.asarray(a), s.asarray(b), axes=1), s.vecdot(s.asarray(a), s.asarray(a)),
                        s.matrix_transpose(s.asarray(a)), s.asarray(a) @ s.asarray(b)])


@on_draws(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool), st.integers(0, 6), st.integers(0, 6), st.integers(-4, 4))
def test_creation(start, stop, step, rows, columns, k):
    compared(lambda s: [s.arange(start, stop, step), s.arange(abs(stop)), s.arange(start / 4, stop / 4, step / 2)], has_defaults=True)
    compared(lambda s: [s.eye(rows, columns, k=k), s.linspace(start, stop, rows), s.linspace(start, stop, rows, endpoint=False)], has_defaults=True)
    ones = np.ones((rows, columns), np.float32)
    compared(lambda s: [s.tril(s.asarray(ones), k=k), s.triu(s.asarray(ones), k=k)])


@on_draws(drawn.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=4), st.sampled_from(DTYPES[1:]), st.data())
def test_where_and_broadcasting(shapes, dtype, data):
    condition, x, y = (data.draw(drawn.arrays(d, shape, elements=elements(d))) for d, shape in zip(("bool", dtype, dtype), shapes.input_shapes))
    compared(lambda s: [s.where(s.asarray(condition), s.asarray(x), s.asarray(y)), *s.broadcast_arrays(s.asarray(condition), s.asarray(x), s.asarray(y)),
                        s.broadcast_to(s.asarray(x), shapes.result_shape)])
