"""Our array namespace beside array-api-strict, the standard's own reference: signatures, dtypes and values of what both have."""
import inspect
import itertools
import warnings

import array_api_strict as strict
import numpy as np
import pytest

import tidemark as td

xp = td.array_api
strict.set_array_api_strict_flags(api_version="2023.12")

# Names of later editions of the standard, and those of the package itself.
LATER = {"broadcast_shapes", "count_nonzero", "cumulative_prod", "diff", "isin", "nextafter", "reciprocal", "take_along_axis",
         "get_array_api_strict_flags", "set_array_api_strict_flags", "reset_array_api_strict_flags", "ArrayAPIStrictFlags"}
FUNCTIONS = sorted(name for name in strict.__all__ if inspect.isfunction(getattr(strict, name)) and name not in LATER)
DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64"]


def parameters(function):
    """What a caller may write: how many arguments by position, which names by keyword, and which of them must be given."""
    all = inspect.signature(function).parameters.values()
    by_keyword = {p.name for p in all if p.kind is not p.POSITIONAL_ONLY}
    return sum(p.kind is not p.KEYWORD_ONLY for p in all), by_keyword, sum(p.default is p.empty for p in all)


def test_functions_take_the_arguments_of_the_standard():
    different = {}
    for name in FUNCTIONS:
        if name in ("from_dlpack", "expand_dims"):  # The first has no signature that Python can read; the second is of a later edition there.
            continue
        (count, names, needed), (our_count, our_names, our_needed) = parameters(getattr(strict, name)), parameters(getattr(xp, name))
        if our_count < count or our_needed > needed or not names <= our_names:
            different[name] = (inspect.signature(getattr(strict, name)), inspect.signature(getattr(xp, name)))
    assert different == {}


def name_of(dtype):
    return next(name for name in DTYPES if dtype in (getattr(xp, name, None), getattr(strict, name, None)))


def outcome(space, call):
    """The dtypes, shapes and values of a result, or that it is refused."""
    try:
        result = call(space)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        return ("refused", str(error))
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if not all(hasattr(each, "dtype") for each in results):
        return [repr(each) for each in results]
    return [(name_of(each.dtype), tuple(each.shape), np.asarray(each)) for each in results]


def compare(call, has_defaults=False):
    """With defaults, dtypes may differ in width: ours are float32 and int32, which the standard leaves open."""
    theirs, ours = outcome(strict, call), outcome(xp, call)
    if theirs[0] == "refused":
        return  # Ours may take more than the standard asks for.
    assert ours[0] != "refused", ours
    known = [(name.rstrip("0123456789") if has_defaults else name, shape) for name, shape, _ in theirs]
    assert [(name.rstrip("0123456789") if has_defaults else name, shape) for name, shape, _ in ours] == known
    for (_, _, our), (_, _, their) in zip(ours, theirs):
        np.testing.assert_allclose(our, their, rtol=1e-5, atol=1e-6)


UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 logical_not
negative positive round sign signbit sin sinh square sqrt tan tanh trunc""".split()
BINARY = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide greater
greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply not_equal pow remainder subtract""".split()


def takes(name, dtype):
    """Whether the standard says what the function of two arrays does with this dtype."""
    if name in ("atan2", "copysign", "divide", "hypot", "logaddexp"):
        return "float" in dtype
    if "shift" in name:
        return "int" in dtype
    return dtype != "bool" or name not in ("floor_divide", "pow", "remainder")


def numbers(dtype, shape=(2, 3), seed=1):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(1, 5, shape).astype(dtype) if "float" not in dtype else rng.uniform(0.1, 0.9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_array(name, dtype):
    a = numbers(dtype) + (1 if name == "acosh" and "float" in dtype else 0)
    with np.errstate(all="ignore"):
        compare(lambda s: getattr(s, name)(s.asarray(a)))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arrays_of_any_dtypes(name):
    for left, right in itertools.product(DTYPES, DTYPES):
        if not takes(name, left) or not takes(name, right):
            continue
        a, b = numbers(left), numbers(right, seed=2)
        with np.errstate(all="ignore"):
            compare(lambda s: getattr(s, name)(s.asarray(a), s.asarray(b)))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", ">=", "==", "!="])
def test_operators_with_plain_numbers(symbol):
    for dtype, number, reflected in itertools.product(DTYPES, (True, 2, 1.5), (False, True)):
        a = numbers(dtype)
        with np.errstate(all="ignore"):
            compare(lambda s: eval(f"number {symbol} x" if reflected else f"x {symbol} number", {"number": number, "x": s.asarray(a)}))


def test_result_types():
    for left, right in itertools.product(DTYPES, DTYPES):
        try:
            theirs = strict.result_type(getattr(strict, left), getattr(strict, right))
        except TypeError:
            continue
        assert xp.result_type(getattr(xp, left), getattr(xp, right)) == getattr(xp, name_of(theirs))
        assert xp.can_cast(getattr(xp, left), getattr(xp, right)) == strict.can_cast(getattr(strict, left), getattr(strict, right))
    for dtype, kind in itertools.product(DTYPES, ("bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric", ("bool", "integral"))):
        assert xp.isdtype(getattr(xp, dtype), kind) == strict.isdtype(getattr(strict, dtype), kind)
    for dtype in ("float32", "float64"):
        ours, theirs = xp.finfo(getattr(xp, dtype)), strict.finfo(getattr(strict, dtype))
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal)
    for dtype in DTYPES[1:9]:
        ours, theirs = xp.iinfo(getattr(xp, dtype)), strict.iinfo(getattr(strict, dtype))
        assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)


REDUCTIONS = "all any max mean min prod std sum var argmax argmin cumulative_sum".split()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    for dtype, axis, keep, shape in itertools.product(DTYPES, (None, 0, -1, (0, 1)), (False, True), ((2, 3), (3,), (0, 2), ())):
        if shape == () and (axis is not None or name == "cumulative_sum"):
            continue
        a = numbers(dtype, shape)
        more = {"axis": axis} if name == "cumulative_sum" else {"axis": axis, "keepdims": keep}
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            compare(lambda s: getattr(s, name)(s.asarray(a), **more))


A, B = numbers("float32", (2, 3, 4)), numbers("float32", (4, 2), 2)
M = numbers("int64", (5,), 3)
CALLS = {
    "arange": lambda s: [s.arange(5), s.arange(1, 9, 2), s.arange(0.0, 1.0, 0.25), s.arange(3, dtype=s.float32)],
    "eye": lambda s: [s.eye(3), s.eye(2, 3, k=1), s.eye(3, k=-1, dtype=s.int32)],
    "full": lambda s: [s.full((2,), 3), s.full((2,), 3.0), s.full((2,), True), s.full_like(s.asarray(A), 2)],
    "zeros": lambda s: [s.zeros(3), s.ones((2, 1), dtype=s.int64), s.zeros_like(s.asarray(M)), s.ones_like(s.asarray(M), dtype=s.float32)],
    "linspace": lambda s: [s.linspace(0, 1, 5), s.linspace(0, 1, 5, endpoint=False), s.linspace(2, 3, 1)],
    "meshgrid": lambda s: list(s.meshgrid(s.asarray(M), s.asarray(M), indexing="ij")) + list(s.meshgrid(s.asarray(M), s.asarray(M))),
    "triangles": lambda s: [s.tril(s.asarray(A)), s.triu(s.asarray(A), k=1), s.tril(s.asarray(A), k=-1)],
    "asarray": lambda s: [s.asarray([1, 2]), s.asarray([1.0, 2]), s.asarray(True), s.asarray(3), s.asarray([[1], [2]], dtype=s.float64)],
    "astype": lambda s: [s.astype(s.asarray(A), s.int32), s.astype(s.asarray(M), s.bool), s.astype(s.asarray(M), s.float32, copy=False)],
    "broadcast": lambda s: list(s.broadcast_arrays(s.asarray(B), s.asarray(A[:, :2, :1, None]))) + [s.broadcast_to(s.asarray(B), (3, 4, 2))],
    "concat": lambda s: [s.concat([s.asarray(A), s.asarray(A)], axis=1), s.concat([s.asarray(A), s.asarray(M)], axis=None),
                         s.stack([s.asarray(M), s.asarray(M)], axis=-1)],
    "shapes": lambda s: [s.expand_dims(s.asarray(M), axis=-1), s.squeeze(s.asarray(A[:1]), axis=0), s.permute_dims(s.asarray(A), (2, 0, 1)),
                         s.moveaxis(s.asarray(A), 0, -1), s.reshape(s.asarray(A), (-1, 2)), s.matrix_transpose(s.asarray(A)), s.asarray(B).T, s.asarray(A).mT],
    "flip": lambda s: [s.flip(s.asarray(A)), s.flip(s.asarray(A), axis=(0, 2)), s.roll(s.asarray(A), 1), s.roll(s.asarray(A), (1, -1), axis=(0, 1))],
    "repeat": lambda s: [s.repeat(s.asarray(A), 2, axis=1), s.repeat(s.asarray(M), s.asarray([0, 1, 2, 0, 1])), s.tile(s.asarray(B), (2, 1, 2))],
    "unstack": lambda s: list(s.unstack(s.asarray(A), axis=1)),
    "take": lambda s: [s.take(s.asarray(A), s.asarray([1, 0, 1]), axis=0), s.take(s.asarray(M), s.asarray([-1]))],
    "products": lambda s: [s.matmul(s.asarray(A), s.asarray(B)), s.tensordot(s.asarray(A), s.asarray(B), axes=1), s.vecdot(s.asarray(A), s.asarray(A)),
                           s.tensordot(s.asarray(A), s.asarray(A), axes=((0, 2), (0, 2))), s.vecdot(s.asarray(A), s.asarray(A), axis=-2), s.asarray(M) @ s.asarray(M)],
    "where": lambda s: [s.where(s.asarray(A) > 0.5, s.asarray(A), s.asarray(B[:, 0]))],
    "nonzero": lambda s: list(s.nonzero(s.asarray(A) > 0.5)),
    "searchsorted": lambda s: [s.searchsorted(s.asarray([1.0, 2, 3]), s.asarray([2.0, 0.5, 9])), s.searchsorted(s.asarray([1, 2, 2]), s.asarray([2]), side="right")],
    "sort": lambda s: [s.sort(s.asarray(A), axis=1), s.sort(s.asarray(A), descending=True), s.argsort(s.asarray(M)), s.argsort(s.asarray(M), descending=True)],
    "unique": lambda s: list(s.unique_all(s.asarray(M))) + list(s.unique_counts(s.asarray(M))) + list(s.unique_inverse(s.asarray(A))) + [s.unique_values(s.asarray(M))],
    "clip": lambda s: [s.clip(s.asarray(A), 0.2, 0.6), s.clip(s.asarray(A), s.asarray(B[:, 0])), s.clip(s.asarray(M), max=2), s.clip(s.asarray(A))],
    "cumulative_sum": lambda s: [s.cumulative_sum(s.asarray(A), axis=1, include_initial=True), s.cumulative_sum(s.asarray(M), dtype=s.float64)],
    "deviation": lambda s: [s.std(s.asarray(A), axis=1, correction=1), s.var(s.asarray(A), axis=(0, 2), correction=0.5, keepdims=True)],
    "index": lambda s: [s.asarray(A)[1, ..., ::-1], s.asarray(A)[None, 0], s.asarray(A)[s.asarray(A) > 0.5], s.asarray(A)[..., -1], s.asarray(M)[4:0:-2]],
    "attributes": lambda s: [s.asarray([s.asarray(A).ndim, s.asarray(A).size, *s.asarray(A).shape, int(s.asarray(3)), len(s.asarray(M))])],
    "special": lambda s: [getattr(s, name)(s.asarray([0.0, -0.0, s.inf, -s.inf, s.nan, 1.0, -1.0, 0.5, 1e30, -1e-30], dtype=s.float64)) for name in
                          "abs acos acosh asin asinh atan atanh ceil cos exp expm1 floor isfinite isinf isnan log log1p log2 log10 round sign signbit sin sqrt tanh trunc".split()],
    "special pairs": lambda s: [getattr(s, name)(*s.meshgrid(*[s.asarray([0.0, -0.0, s.inf, -s.inf, s.nan, 1.0, -1.5, 3.0], dtype=s.float64)] * 2)) for name in
                                "add atan2 copysign divide floor_divide hypot logaddexp maximum minimum multiply pow remainder".split()],
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        compare(CALLS[name], has_defaults=name in ("arange", "eye", "full", "zeros", "linspace", "asarray"))


def test_signs_of_zeros():
    zeros = np.array([0.0, -0.0, -0.25, 0.25, -np.inf])
    for name in ("asin", "asinh", "atan", "atanh", "ceil", "expm1", "floor", "log1p", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "negative", "positive"):
        with np.errstate(all="ignore"):
            ours, theirs = (np.asarray(getattr(s, name)(s.asarray(zeros))) for s in (xp, strict))
        shown = ~np.isnan(theirs)
        assert np.array_equal(np.signbit(ours)[shown], np.signbit(theirs)[shown]), name
