"""The array API standard 2023.12: every name with the standard's arguments, and values of NumPy's array namespace."""
import inspect

import numpy as np
import pytest

import tidemark as td

xp = td.ones(1).__array_namespace__()

FUNCTIONS = """arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros
zeros_like astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type abs acos acosh add asin asinh atan
atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign
cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log
log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative not_equal positive
pow real remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc take matmul matrix_transpose tensordot
vecdot concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin nonzero
searchsorted where unique_all unique_counts unique_inverse unique_values argsort sort cumulative_sum max mean min prod std sum
var all any""".split()

FLOATS = ["float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def test_every_name_of_the_standard_is_there():
    assert [name for name in FUNCTIONS if not callable(getattr(xp, name, None))] == []
    for name in ("e", "inf", "nan", "pi", "newaxis", "bool", *INTEGERS, "float32", "float64"):
        assert hasattr(xp, name)
    assert xp.__array_api_version__ == "2023.12" and xp is td.array_api
    with pytest.raises(ValueError, match="version 2019.1 is not there"):
        td.ones(1).__array_namespace__(api_version="2019.1")


KEYWORDS = {"sum": ["axis", "dtype", "keepdims"], "std": ["axis", "correction", "keepdims"], "concat": ["axis"],
            "zeros": ["dtype", "device"], "sort": ["axis", "descending", "stable"], "take": ["axis"],
            "cumulative_sum": ["axis", "dtype", "include_initial"], "linspace": ["dtype", "device", "endpoint"]}


@pytest.mark.parametrize("name", KEYWORDS)
def test_arguments_are_by_keyword_where_the_standard_says_so(name):
    parameters = inspect.signature(getattr(xp, name)).parameters.values()
    assert [p.name for p in parameters if p.kind is p.KEYWORD_ONLY] == KEYWORDS[name]


def same(ours, theirs, rtol=0.0):
    theirs = np.asarray(theirs)
    assert isinstance(ours, td.Tensor) and ours.shape == theirs.shape, (ours.shape, theirs.shape)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=rtol, atol=rtol / 4)


def inputs(dtype, low=-3.0, high=3.0):
    if dtype in FLOATS:
        return np.random.default_rng(1).uniform(low, high, (3, 4)).astype(dtype)
    return np.random.default_rng(1).integers(0, 9, (3, 4)).astype(dtype)


RANGES = {"acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.99, 0.99), "acosh": (1, 9), "log": (0.1, 9), "log2": (0.1, 9),
          "log10": (0.1, 9), "log1p": (-0.9, 9), "sqrt": (0, 9)}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", """abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log
log1p log2 log10 negative positive real conj round sign signbit sin sinh square sqrt tan tanh trunc""".split())
def test_functions_of_one_number(name, dtype):
    x = inputs(dtype, *RANGES.get(name, (-3, 3)))
    ours = getattr(xp, name)(xp.asarray(x))
    same(ours, getattr(np, name)(x), 4e-6 if dtype == "float32" else 2e-14)
    assert ours.dtype is (td.bool if name.startswith("is") or name == "signbit" else getattr(td, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name, special", [
    ("atan", [0.0, np.inf, -np.inf, np.nan]), ("asinh", [0.0, np.inf, -np.inf, 1e30, 1e-20]), ("sinh", [0.0, np.inf, -80.0, 1e-9]),
    ("cosh", [0.0, np.inf, -np.inf, 88.0]), ("trunc", [-0.5, 2.5, np.inf, -7.9]), ("signbit", [-0.0, 0.0, -np.inf]),
    ("acos", [1.0, -1.0, 0.0]), ("log10", [1.0, 1000.0, 0.0, np.inf])])
def test_special_numbers(name, special, dtype):
    x = np.array(special, dtype)
    with np.errstate(all="ignore"):
        same(getattr(xp, name)(xp.asarray(x)), getattr(np, name)(x), 4e-6 if dtype == "float32" else 2e-14)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", """add subtract multiply equal not_equal less less_equal greater greater_equal maximum minimum
floor_divide remainder pow divide atan2 hypot logaddexp copysign""".split())
def test_functions_of_two_numbers(name, dtype):
    if name in ("divide", "atan2", "hypot", "logaddexp", "copysign") and dtype in INTEGERS:
        return
    x, y = inputs(dtype), np.abs(inputs(dtype).T[:3, :1]) + np.asarray(1, dtype)
    if name == "pow":
        x = np.abs(x) if dtype in FLOATS else x % 3
        y = y if dtype in FLOATS else y % 4
    same(getattr(xp, name)(xp.asarray(x), xp.asarray(y)), getattr(np, name)(x, y), 4e-6 if dtype == "float32" else 2e-14)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    x, y = inputs(dtype), inputs(dtype)[::-1] % 5
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
        same(getattr(xp, name)(xp.asarray(x), xp.asarray(y)), getattr(np, name)(x, y))
    same(xp.bitwise_invert(xp.asarray(x)), ~x)


@pytest.mark.parametrize("a, b, result", [("int32", "int64", "int64"), ("uint8", "int32", "int32"), ("uint8", "int64", "int64"),
                                          ("int8", "int16", "int16"), ("uint8", "uint16", "uint16"), ("uint8", "int8", "int16"),
                                          ("uint16", "int8", "int32"), ("uint32", "int32", "int64"), ("uint32", "uint64", "uint64"),
                                          ("float32", "float64", "float64"), ("bool", "bool", "bool")])
def test_promotion_is_that_of_the_standard(a, b, result):
    assert xp.result_type(getattr(xp, a), getattr(xp, b)) is getattr(xp, result)
    assert xp.where(xp.zeros(1, dtype=xp.bool), xp.zeros(1, dtype=a), xp.zeros(1, dtype=b)).dtype is getattr(xp, result)
    assert xp.can_cast(getattr(xp, a), getattr(xp, result))
    assert a == b or not xp.can_cast(getattr(xp, result), getattr(xp, a))


def test_creation():
    same(xp.arange(2, 9, 3), np.arange(2, 9, 3))
    same(xp.eye(3, 4, k=1), np.eye(3, 4, k=1))
    same(xp.eye(3, k=-1, dtype=xp.int32), np.eye(3, k=-1))
    same(xp.linspace(0, 1, 5, endpoint=False), np.linspace(0, 1, 5, endpoint=False), 1e-6)
    same(xp.full((2,), 7, dtype=xp.float64), np.full(2, 7.0))
    assert xp.zeros(2).dtype is xp.float32 and xp.ones(2, dtype=xp.uint8, device="cpu").dtype is xp.uint8
    for indexing in ("xy", "ij"):
        ours = xp.meshgrid(xp.arange(2), xp.arange(3), xp.arange(4), indexing=indexing)
        for mine, theirs in zip(ours, np.meshgrid(np.arange(2), np.arange(3), np.arange(4), indexing=indexing)):
            same(mine, theirs)
    with pytest.raises(ValueError, match='there is no device \'gpu\': tensors are on "cpu"'):
        xp.zeros(1, device="gpu")
    with pytest.raises(ValueError, match="have to be copied"):
        xp.asarray([1], copy=False)


def test_information_about_dtypes():
    for dtype in FLOATS:
        ours, theirs = xp.finfo(getattr(xp, dtype)), np.finfo(dtype)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (
            theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal)
    for dtype in INTEGERS:
        ours, theirs = xp.iinfo(getattr(xp, dtype)), np.iinfo(dtype)
        assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    assert xp.isdtype(xp.float32, ("integral", "real floating")) and not xp.isdtype(xp.bool, "numeric")
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is xp.float32 and info.devices() == ["cpu"]
    assert set(info.dtypes(kind="integral")) == set(INTEGERS) and info.capabilities()["boolean indexing"]


def test_shapes():
    a = np.arange(24.0).reshape(2, 3, 4)
    x = xp.asarray(a)
    same(xp.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1))
    same(xp.moveaxis(x, (0, 1), (2, 0)), np.moveaxis(a, (0, 1), (2, 0)))
    same(xp.permute_dims(x, (2, 0, 1)), a.transpose(2, 0, 1))
    same(xp.roll(x, 2, axis=1), np.roll(a, 2, 1))
    same(xp.roll(x, -5), np.roll(a, -5))
    same(xp.roll(x, (1, 7), axis=(0, 2)), np.roll(a, (1, 7), (0, 2)))
    same(xp.repeat(x, 2, axis=1), a.repeat(2, 1))
    same(xp.repeat(x, xp.asarray([1, 0, 2]), axis=1), a.repeat([1, 0, 2], 1))
    same(xp.tile(x, (2, 1, 1, 2)), np.tile(a, (2, 1, 1, 2)))
    same(xp.tile(x, (2,)), np.tile(a, 2))
    same(xp.concat([x, x], axis=None), np.concatenate([a, a], None))
    same(xp.squeeze(x[:, :1], 1), a[:, 0])
    same(xp.flip(x, axis=(0, 2)), a[::-1, :, ::-1])
    assert [each.shape for each in xp.broadcast_arrays(x, xp.ones((3, 1)))] == [(2, 3, 4)] * 2
    assert len(xp.unstack(x, axis=2)) == 4
    same(xp.tril(x, k=1), np.tril(a, 1))


def test_linear_algebra():
    a = np.random.default_rng(1).normal(size=(2, 3, 4))
    x = xp.asarray(a)
    same(xp.matmul(x, xp.matrix_transpose(x)), a @ a.swapaxes(1, 2), 1e-14)
    same(xp.tensordot(x, x, axes=((0, 2), (0, 2))), np.tensordot(a, a, ((0, 2), (0, 2))), 1e-14)
    same(xp.tensordot(x, x.T, axes=1), np.tensordot(a, a.T, 1), 1e-14)
    same(xp.vecdot(x, x, axis=1), (a * a).sum(1), 1e-14)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_searching_and_sets(dtype):
    a = inputs(dtype).round()
    x = xp.asarray(a)
    ours, theirs = xp.unique_all(x), np.unique_all(a)
    for mine, numpy in zip(ours, theirs):
        same(mine, numpy)
    same(xp.unique_values(x), np.sort(np.unique_values(a)))  # NumPy promises no order
    same(xp.unique_counts(x).counts, np.unique_counts(a).counts)
    same(xp.unique_inverse(x).inverse_indices, np.unique_inverse(a).inverse_indices)
    for mine, numpy in zip(xp.nonzero(x), np.nonzero(a)):
        same(mine, numpy)
    ordered = np.sort(a.ravel())
    for side in ("left", "right"):
        same(xp.searchsorted(xp.asarray(ordered), x, side=side), np.searchsorted(ordered, a, side=side))
    same(xp.sort(x, axis=0, descending=True), np.sort(a, 0)[::-1])
    same(xp.argsort(x, axis=0), np.argsort(a, 0, stable=True))
    same(xp.take(x, xp.asarray([1, 0]), axis=1), a.take([1, 0], 1))
    same(xp.unique_values(x[:0]), [])


@pytest.mark.parametrize("dtype", FLOATS + ["int16", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_statistics(dtype, axis):
    a = inputs(dtype)
    x = xp.asarray(a)
    rtol = 4e-6 if dtype == "float32" else 1e-13
    for name in ("sum", "prod", "max", "min"):
        same(getattr(xp, name)(x, axis=axis), getattr(np, name)(a, axis=axis), rtol)
        same(getattr(xp, name)(x, axis=axis, keepdims=True), getattr(np, name)(a, axis=axis, keepdims=True), rtol)
    if dtype in FLOATS:
        same(xp.mean(x, axis=axis), a.mean(axis), rtol)
        same(xp.var(x, axis=axis, correction=1), a.var(axis, ddof=1), rtol)
        same(xp.std(x, axis=axis), a.std(axis), rtol)
    else:
        wide = getattr(xp, np.sum(a).dtype.name)
        assert xp.sum(x).dtype is wide and xp.prod(x).dtype is wide and xp.cumulative_sum(x, axis=0).dtype is wide
        assert xp.sum(x, dtype=xp.int16).dtype is xp.int16 and xp.sum(x, dtype=xp.float64).dtype is xp.float64


def test_cumulative_sums_and_truth():
    a = inputs("float32")
    same(xp.cumulative_sum(xp.asarray(a), axis=1, include_initial=True), np.cumulative_sum(a, axis=1, include_initial=True), 1e-6)
    same(xp.cumulative_sum(xp.arange(4)), [0, 1, 3, 6])
    same(xp.all(xp.asarray(a) > -9, axis=0), np.ones(4, bool))
    same(xp.any(xp.asarray(a) > 9), False)
    same(xp.clip(xp.asarray(a), min=-1), a.clip(-1))
    same(xp.clip(xp.asarray(a), max=xp.ones(4)), a.clip(None, 1))


def test_a_library_written_for_the_standard_works():
    def standardized(x):  # Knows nothing of Tidemark.
        namespace = x.__array_namespace__()
        centred = x - namespace.mean(x, axis=0, keepdims=True)
        return centred / namespace.std(centred, axis=0, keepdims=True)
    a = inputs("float64")
    same(standardized(xp.asarray(a)), (a - a.mean(0)) / a.std(0), 1e-13)
