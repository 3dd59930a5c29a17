"""Functions of the catalogue: every one is there, says what it takes, and gives what NumPy gives."""
import inspect
import json
import math
import os
import pickle
import subprocess

import numpy as np
import pytest

import tidemark as td

COMMAND = os.environ.get("TIDEMARK_COMMAND", "build/release/tools/tidemark")


def catalogue():
    listed = json.loads(subprocess.check_output([COMMAND, "ops", "--json"]))
    return [each for each in listed if "arguments" in each]


def function_of(name):
    found = td
    for part in name.split("::"):
        found = getattr(found, part)
    return found


# ---- the catalogue ----

def test_every_callable_of_the_catalogue_has_its_function():
    missing = []
    for each in catalogue():
        try:
            assert callable(function_of(each["name"]))
        except AttributeError:
            missing.append(each["name"])
    assert missing == []


PYTHON_NAMES = {"axes": "axis", "keep": "keepdims", "list": "tensors"}
# One function for several signatures, or with names of NumPy's.
OTHERWISE = {"clip", "where", "arange", "split", "roll", "tensordot", "einsum", "eye", "pad", "random::bernoulli", "random::integers", "random::permutation", "zeros_like", "ones_like", "full_like"}
ELSEWHERE = {"print", "random::seed", "random::state", "random::set_state"}


def test_signatures_and_defaults_are_those_of_the_catalogue():
    checked = 0
    for each in catalogue():
        if each["name"] in OTHERWISE | ELSEWHERE or any("function" in a["kind"] for a in each["arguments"]):
            continue
        parameters = list(inspect.signature(function_of(each["name"])).parameters.values())
        names = [PYTHON_NAMES.get(a["name"], a["name"]) if a["kind"] in ("axes", "bool", "tensors") else a["name"]
                 for a in each["arguments"]]
        assert [p.name for p in parameters] == names, each["name"]
        for parameter, argument in zip(parameters, each["arguments"]):
            assert (parameter.default is inspect.Parameter.empty) == (not argument.get("default")), each["name"]
        checked += 1
    assert checked > 100


def test_a_signature_reads_as_python():
    assert str(inspect.signature(td.softmax)) == "(x, axis=-1)"
    assert str(inspect.signature(td.sum)) == "(x, axis=None, keepdims=False)"
    assert str(inspect.signature(td.conv2d)) == (
        "(x, w, strides=(1, 1), padding='valid', dilations=(1, 1), groups=1, layout='nhwc')")
    assert str(inspect.signature(td.random.normal)) == "(shape, mean=0.0, stddev=1.0, dtype='f32', key=None)"
    assert str(inspect.signature(td.Tensor.sum)) == "(self, /, axis=None, keepdims=False)"


def test_help_reads_well():
    assert td.softmax.__doc__ == (
        "exp(x - max) divided by its sum, along one axis.\n\n"
        "Arguments:\n    x: tensor, array or number\n    axis: int\n\nReturns tensor.\n")
    assert td.softmax.__module__ == "tidemark" and td.random.normal.__module__ == "tidemark.random"
    assert td.argmax.__doc__.endswith("It has no gradient: positions are not differentiable.\n")


def test_functions_pickle_by_name():
    for function in (td.softmax, td.random.normal):
        assert pickle.loads(pickle.dumps(function)) is function


# ---- values ----

UNARY = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "exp": np.exp, "expm1": np.expm1, "floor": np.floor,
    "identity": np.array, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "negative": np.negative,
    "relu": lambda x: np.maximum(x, 0), "round": np.round, "sign": np.sign, "sin": np.sin, "square": np.square,
    "tan": np.tan, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "silu": lambda x: x / (1 + np.exp(-x)), "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "logical_not": np.logical_not,
}
POSITIVE = {"log": np.log, "log1p": np.log1p, "log2": np.log2, "reciprocal": np.reciprocal, "sqrt": np.sqrt,
            "rsqrt": lambda x: 1 / np.sqrt(x)}
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "pow": lambda a, b: np.abs(a) ** b, "remainder": np.remainder, "floor_divide": np.floor_divide,
    "atan2": np.arctan2, "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
        "left_shift": np.left_shift, "right_shift": np.right_shift}
REDUCE = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "var": np.var, "std": np.std,
          "argmax": np.argmax, "argmin": np.argmin, "all": np.all, "any": np.any,
          "norm": lambda x, axis: np.sqrt(np.sum(np.square(x), axis)),
          "logsumexp": lambda x, axis: np.log(np.sum(np.exp(x), axis))}


@pytest.fixture
def x():
    return np.random.default_rng(1).uniform(-2, 2, (3, 4, 5)).astype(np.float32)


def near(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", UNARY)
def test_unary_ops_agree_with_numpy(name, x):
    near(getattr(td, name)(td.asarray(x)), UNARY[name](x))


@pytest.mark.parametrize("name", POSITIVE)
def test_ops_of_positive_numbers_agree_with_numpy(name, x):
    near(getattr(td, name)(np.abs(x) + 0.1), POSITIVE[name](np.abs(x) + np.float32(0.1)))


@pytest.mark.parametrize("name", BINARY)
def test_binary_ops_agree_with_numpy_and_broadcast(name, x):
    y = np.random.default_rng(2).uniform(0.5, 2, (4, 1)).astype(np.float32)
    a = np.abs(x) if name == "pow" else x
    near(getattr(td, name)(td.asarray(a), y), BINARY[name](a, y))


@pytest.mark.parametrize("name", BITS)
def test_bitwise_ops_agree_with_numpy(name):
    a, b = np.arange(12, dtype=np.int32).reshape(3, 4), np.array([1, 2, 3, 4], dtype=np.int32)
    near(getattr(td, name)(a, b), BITS[name](a, b))


def test_bitwise_invert_agrees_with_numpy():
    near(td.bitwise_invert(np.arange(5)), np.invert(np.arange(5)))


@pytest.mark.parametrize("name", REDUCE)
@pytest.mark.parametrize("axis", (0, 1, -1))
def test_reductions_agree_with_numpy(name, axis, x):
    ours, theirs = getattr(td, name), REDUCE[name]
    near(ours(td.asarray(x), axis=axis), theirs(x, axis=axis))
    kept = ours(td.asarray(x), axis, keepdims=True)
    assert kept.shape == tuple(1 if i == axis % 3 else n for i, n in enumerate(x.shape))


def test_reductions_take_several_axes_and_the_names_of_cpp(x):
    near(td.sum(x, axis=(0, 2)), x.sum((0, 2)))
    near(td.sum(x, axes=[0, 2], keep=True), x.sum((0, 2), keepdims=True))
    near(td.asarray(x).mean(), x.mean())


def cases(x):
    i = np.array([2, 0, 1])
    square = x[0, :, :4]
    return {
        "broadcast_to": (td.broadcast_to(x[0], (2, 4, 5)), np.broadcast_to(x[0], (2, 4, 5))),
        "cast": (td.cast(x, "i32"), x.astype(np.int32)),
        "clip": (td.clip(x, -1, 1), np.clip(x, -1, 1)),
        "where": (td.where(x > 0, x, 0.0), np.where(x > 0, x, 0)),
        "concat": (td.concat([x, x], axis=1), np.concatenate([x, x], 1)),
        "pad": (td.pad(x[0], [(1, 0), (0, 2)], 7), np.pad(x[0], [(1, 0), (0, 2)], constant_values=7)),
        "reshape": (td.reshape(x, (5, -1)), x.reshape(5, -1)),
        "stop_gradient": (td.stop_gradient(x), x),
        "transpose": (td.transpose(x), x.T),
        "transpose_order": (td.transpose(x, (1, 2, 0)), x.transpose(1, 2, 0)),
        "cumsum": (td.cumsum(x, axis=1), x.cumsum(1)),
        "first_equal": (td.first_equal(np.array([7, 3, 7])), [0, 1, 0]),
        "gather": (td.gather(x, i, axis=1), np.take(x, i, 1)),
        "put": (td.put(x, np.array([1]), x[2:3]), np.stack([x[0], x[2], x[2]])),
        "scatter_add": (td.scatter_add(np.zeros(3, np.float32), np.array([1, 1]), np.ones(2, np.float32)), [0, 2, 0]),
        "sort": (td.sort(x), np.sort(x)),
        "sort_down": (td.sort(x, 0, descending=True), -np.sort(-x, 0)),
        "argsort": (td.argsort(x), np.argsort(x, kind="stable")),
        "take_along_axis": (td.take_along_axis(x, np.argsort(x), -1), np.sort(x)),
        "top_k": (td.top_k(x, 2).values, -np.sort(-x)[..., :2]),
        "conv2d": (td.conv2d(np.ones((1, 4, 4, 1), np.float32), np.ones((2, 2, 1, 1), np.float32)), np.full((1, 3, 3, 1), 4)),
        "conv2d_same": (td.conv2d(np.ones((1, 4, 4, 1), np.float32), np.ones((3, 3, 1, 1), np.float32),
                                  padding="SAME", strides=3), np.full((1, 2, 2, 1), 4)),
        "matmul": (td.matmul(x, x, transpose_b=True), x @ x.swapaxes(1, 2)),
        "expand_dims": (td.expand_dims(x, 1), x[:, None]),
        "squeeze": (td.squeeze(x[:, :1]), x[:, 0]),
        "stack": (td.stack([x, x], 1), np.stack([x, x], 1)),
        "split": (td.split(x, 2, axis=1)[1], x[:, 2:]),
        "split_sizes": (td.split(x, [1, 3], axis=1)[1], x[:, 1:]),
        "unstack": (td.unstack(x, 1)[2], x[:, 2]),
        "tile": (td.tile(x, (1, 2, 1)), np.tile(x, (1, 2, 1))),
        "repeat": (td.repeat(x, 2, axis=1), x.repeat(2, 1)),
        "flip": (td.flip(x, 0), x[::-1]),
        "roll": (td.roll(x, 3), np.roll(x, 3)), "roll_axis": (td.roll(x, -2, 1), np.roll(x, -2, 1)),
        "roll_axes": (td.roll(x, (1, -2), axis=(0, 2)), np.roll(x, (1, -2), axis=(0, 2))),
        "roll_all": (td.roll(x, 2, axis=(0, 1)), np.roll(x, 2, axis=(0, 1))),
        "tril": (td.tril(square, 1), np.tril(square, 1)),
        "triu": (td.triu(square), np.triu(square)),
        "one_hot": (td.one_hot(i, 3), np.eye(3)[i]),
        "tensordot": (td.tensordot(x, x.T, 1), np.tensordot(x, x.T, 1)),
        "tensordot_axes": (td.tensordot(x, x, axes=([1, 0], [1, 0])), np.tensordot(x, x, axes=([1, 0], [1, 0]))),
        "tensordot_axis": (td.tensordot(x, x, (-1, 2)), np.tensordot(x, x, (-1, 2))),
        "einsum": (td.einsum("ijk->kj", x), np.einsum("ijk->kj", x)),
        "einsum_two": (td.einsum("ijk,ijk->i", x, x), np.einsum("ijk,ijk->i", x, x)),
        "outer": (td.outer(x[0, 0], x[0, 1]), np.outer(x[0, 0], x[0, 1])),
        "max_pool": (td.max_pool(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)), [[[[5], [7]], [[13], [15]]]]),
        "avg_pool": (td.avg_pool(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)), [[[[2.5], [4.5]], [[10.5], [12.5]]]]),
        "leaky_relu": (td.leaky_relu(x, 0.1), np.where(x > 0, x, x * np.float32(0.1))),
        "layer_norm": (td.layer_norm(x), (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)),
        "rms_norm": (td.rms_norm(x, scale=np.full(5, 2, np.float32)), 2 * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)),
        "embedding": (td.embedding(x[0], i), x[0][i]),
        "softmax": (td.softmax(x, 1), np.exp(x) / np.exp(x).sum(1, keepdims=True)),
        "log_softmax": (td.log_softmax(x), x - np.log(np.exp(x).sum(-1, keepdims=True))),
        "mse": (td.mse(x, 2 * x), np.square(x).mean()),
        "zeros": (td.zeros((2, 3)), np.zeros((2, 3))), "ones": (td.ones(3), np.ones(3)),
        "full": (td.full((2,), 7), [7, 7]), "zeros_like": (td.zeros_like(x), np.zeros_like(x)),
        "ones_like": (td.ones_like(x, "i32"), np.ones_like(x)), "full_like": (td.full_like(x, 3), np.full_like(x, 3)),
        "linspace": (td.linspace(0, 1, 5), np.linspace(0, 1, 5)), "eye": (td.eye(2, 3), np.eye(2, 3)),
        "arange": (td.arange(2, 8, 2), np.arange(2, 8, 2)), "arange_stop": (td.arange(3.0), np.arange(3.0)),
        "constant": (td.constant([[1, 2], [3, 4]], td.f64), [[1, 2], [3, 4]]),
        "check_numerics": (td.check_numerics(x, "x"), x), "transfer": (td.transfer(x, 0), x),
        "from_callback": (td.from_callback((2,), td.u8, lambda out: out.__setitem__(slice(None), b"\1\2")), [1, 2]),
    }


@pytest.mark.parametrize("name", cases(np.zeros((3, 4, 5), np.float32)))
def test_functions_agree_with_numpy(name, x):
    near(*cases(x)[name])


def test_attention_and_cross_entropy_agree_with_numpy(x):
    def softmax(s):
        return np.exp(s) / np.exp(s).sum(-1, keepdims=True)
    near(td.attention(x, x, x), softmax(x @ x.swapaxes(1, 2) / np.sqrt(5)) @ x)
    labels = np.array([1, 0, 3, 2])
    picked = softmax(x[0])[np.arange(4), labels]
    near(td.sparse_softmax_cross_entropy(labels, x[0]), -np.log(picked).mean())


def test_draws_depend_on_their_key_alone():
    key = td.random.Key(3)
    for draw in (lambda: td.random.normal((50,), mean=5, key=key), lambda: td.random.uniform((50,), 2, 3, key=key),
                 lambda: td.random.integers((50,), 2, 9, key=key), lambda: td.random.bernoulli((50,), 0.3, key=key),
                 lambda: td.random.permutation(50, key=key), lambda: td.dropout(np.ones(50, np.float32), key=key)):
        assert draw().tolist() == draw().tolist()
    assert 2 <= min(td.random.uniform((50,), 2, 3).tolist()) and max(td.random.integers((50,), 2, 9).tolist()) < 9
    assert sorted(td.random.permutation(9).tolist()) == list(range(9))
    td.random.seed(1)
    first = td.random.normal((3,)).tolist()
    td.random.seed(1)
    assert td.random.normal((3,)).tolist() == first


# ---- arguments ----

@pytest.mark.parametrize("call, text", [
    (lambda: td.softmax(td.ones(2), axs=1), "softmax: there is no argument `axs`"),
    (lambda: td.softmax(), "softmax: the argument `x` is missing"),
    (lambda: td.softmax(td.ones(2), -1, 3), "softmax: 3 arguments were passed, and it takes 2"),
    (lambda: td.softmax(td.ones(2), -1, axis=0), "softmax: `axis` was passed twice"),
])
def test_wrong_arguments_are_type_errors_that_show_the_signature(call, text):
    with pytest.raises(TypeError) as caught:
        call()
    lines = str(caught.value).splitlines()
    assert isinstance(caught.value, td.UserError)
    assert lines[0] == text and lines[1].startswith("  at test_ops.py:")
    assert lines[2] == "  write td.softmax(x, axis=-1)"


@pytest.mark.parametrize("call, text", [
    (lambda p: td.random.bernoulli(p), "random.bernoulli: the first argument is the shape, and this is a Tensor"),
    (lambda p: td.random.bernoulli(p.numpy(), p.shape), "random.bernoulli: the first argument is the shape, and this is a numpy.ndarray"),
    (lambda p: td.random.bernoulli(0.5, (3,)), "random.bernoulli: the first argument is the shape, and this is a float"),
    (lambda p: td.random.integers(p, 7), "random.integers: the first argument is the shape, and this is a Tensor"),
    (lambda p: td.random.integers(td.cast(p, "i32"), td.cast(p, "i32") + 5), "random.integers: the first argument is the shape, and this is a Tensor"),
    (lambda p: td.random.integers(0, 10, (3,)), "random.integers: high is a shape"),
    (lambda p: td.random.integers(0, 10), "random.integers: empty interval [10, 2)"),
    (lambda p: td.random.bernoulli(p=p), "bernoulli: the argument `shape` is missing"),
])
def test_draws_of_probabilities_or_bounds_first_say_what_to_write(call, text):
    with pytest.raises(td.UserError) as caught:
        call(td.constant([0.25, 0.5, 1.0]))
    first, line, hint = str(caught.value).splitlines()
    assert first == text and line.startswith("  at test_ops.py:")
    if "bernoulli" in text:
        assert hint == ("  write td.random.bernoulli(shape, p=0.5, key=None)" if "missing" in text else
                        "  write td.random.bernoulli(shape, p), with a tensor of probabilities td.random.bernoulli(p.shape, p)")
    elif "first argument" in text:
        assert hint == "  write td.random.integers(shape, low, high), with tensors of bounds td.random.integers(low.shape, low, high)"
    else:
        assert hint == "  the shape comes first: td.random.integers((3,), low, high)"


def test_a_shape_may_be_an_array():
    assert td.random.bernoulli(np.array([2, 3]), 0.5).shape == td.random.integers(td.constant([2, 3]), 0, 9).shape == (2, 3)


def test_values_of_another_kind_are_named():
    with pytest.raises(td.UserError, match="axis: an integer is wanted, and this is 'x' \\(str\\)"):
        td.softmax(td.ones(2), "x")
    with pytest.raises(td.UserError, match="dtype: 'f33' is not a dtype of Tidemark"):
        td.zeros(2, "f33")
    with pytest.raises(td.UserError, match='padding: there is no "full"\n.*\n  the choices are valid|same'):
        td.max_pool(td.ones((1, 2, 2, 1)), padding="full")


def test_dtypes_are_named_in_many_ways():
    for name in (td.f32, "f32", "float32", np.float32, np.dtype("float32"), td.float32):
        assert td.zeros(1, name).dtype is td.f32
    assert td.zeros(1, bool).dtype is td.bool and td.zeros(1, np.bool_).dtype is td.bool
    assert repr(td.f32) == "td.f32" and str(td.bool) == "bool" and td.bf16.itemsize == 2


# ---- what depends on order, and running results ----

def test_order_and_counts_are_those_of_numpy():
    x = np.random.default_rng(5).normal(size=(4, 9)).astype(np.float32)
    x[1, 3] = x[1, 4]
    values, inverse, counts = np.unique(np.round(x), return_inverse=True, return_counts=True)
    found = td.unique(np.round(x))
    assert np.array_equal(found.values, values) and np.array_equal(found.counts, counts) and found.size.item() == len(values)
    assert np.array_equal(np.asarray(found.inverse), inverse.reshape(x.shape))
    assert np.array_equal(td.nonzero(x > 0).indices, np.argwhere(x > 0))
    for bins in (1, 7, 10):
        counts, edges = np.histogram(x, bins)
        ours = td.histogram(x, bins)
        assert np.array_equal(ours.counts, counts) and np.allclose(ours.edges, edges, rtol=1e-6, atol=1e-6)
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        for axis in (None, 0, 1):
            for q in (0.0, 0.37, [0.25, 0.5, 1.0]):
                want = np.quantile(x, q, axis=axis, method=method)
                np.testing.assert_allclose(np.asarray(td.quantile(x, q, axis, method)), want, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(np.asarray(td.median(x, axis=(0, 1))), np.median(x))
    np.testing.assert_allclose(np.asarray(td.median(x, axis=1, keepdims=True)), np.median(x, 1, keepdims=True))
    for side in ("left", "right"):
        row = np.sort(x[0])
        assert np.array_equal(td.searchsorted(row, x, side == "right"), np.searchsorted(row, x, side))


def test_running_results_are_those_of_numpy():
    x = np.random.default_rng(6).normal(size=(3, 70, 5))
    for axis in (0, 1, -1):
        np.testing.assert_allclose(np.asarray(td.cumprod(x, axis)), np.cumprod(x, axis))
        np.testing.assert_array_equal(np.asarray(td.cummax(x, axis)), np.maximum.accumulate(x, axis))
        np.testing.assert_array_equal(np.asarray(td.cummin(x, axis)), np.minimum.accumulate(x, axis))
        np.testing.assert_allclose(np.asarray(td.cumlogsumexp(x, axis)), np.logaddexp.accumulate(x, axis))


def test_einsum_of_many_operands_is_that_of_numpy():
    random = np.random.default_rng(7)
    a, b, c = random.normal(size=(2, 3, 4)), random.normal(size=(4, 5)), random.normal(size=(1, 5, 3))
    for text in ("...ij,jk,...kl->...il", "...ij,jk,...kl", "bij,jk,xkl->lb", "bij,jk,xkl"):
        np.testing.assert_allclose(np.asarray(td.einsum(text, a, b, c)), np.einsum(text, a, b, c))
        np.testing.assert_allclose(np.asarray(td.einsum(text, [a, b, c])), np.einsum(text, a, b, c))
    np.testing.assert_allclose(np.asarray(td.einsum("...j->...", a)), a.sum(-1))


def test_segments_and_scatters_are_those_of_numpy():
    x, to = np.random.default_rng(8).normal(size=(6, 2)), np.array([0, 2, 0, 1, 2, 2])
    for name, ufunc, start in (("sum", np.add, 0.0), ("prod", np.multiply, 1.0), ("max", np.maximum, -np.inf), ("min", np.minimum, np.inf)):
        want = np.full((4, 2), start)
        ufunc.at(want, to, x)
        np.testing.assert_allclose(np.asarray(getattr(td, f"segment_{name}")(x, to, 4)), want)
    for name, ufunc in (("max", np.maximum), ("min", np.minimum), ("mul", np.multiply)):
        want = x[:3].copy()
        ufunc.at(want, to, x)
        np.testing.assert_allclose(np.asarray(getattr(td, f"scatter_{name}")(x[:3], to, x)), want)


# ---- routines for orders of memory: sizes around what they do at a time ----

@pytest.mark.parametrize("dtype", ["u8", "bf16", "f32", "f64"])
def test_copies_in_other_orders(dtype):
    numpy_dtype = {"u8": np.uint8, "bf16": np.float32, "f32": np.float32, "f64": np.float64}[dtype]
    read = lambda x: td.cast(x, "f32" if dtype == "bf16" else dtype).numpy()
    for shape in ((3, 70, 9), (65, 8), (8, 131), (2, 9, 8, 17), (1, 64, 64)):
        array = (np.arange(math.prod(shape)) % 251).astype(numpy_dtype).reshape(shape)
        x = td.cast(td.asarray(array), dtype)
        for order in ((0, *range(len(shape) - 1, 0, -1)), tuple(range(len(shape) - 1, -1, -1))):
            assert np.array_equal(read(td.identity(td.transpose(x, order))), array.transpose(order)), (shape, order)
        for axis in range(len(shape)):
            assert np.array_equal(read(td.identity(td.flip(x, axis))), np.flip(array, axis)), (shape, axis)


@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (8, 17), (19, 40), (9, 1), (5, 33)])
def test_scans_of_rows(shape):
    array = np.random.default_rng(5).integers(-9, 9, shape).astype(np.float64)
    assert np.array_equal(td.cumsum(array, 1).numpy(), np.cumsum(array, 1))
    assert np.array_equal(td.cumprod(array, 1).numpy(), np.cumprod(array, 1))
    assert np.array_equal(td.cummax(array, 1).numpy(), np.maximum.accumulate(array, 1))
    backwards = td.cummin(array, 1, reverse=True).numpy()
    assert np.array_equal(backwards, np.minimum.accumulate(array[:, ::-1], 1)[:, ::-1])
    assert np.array_equal(td.cumsum(array, 1, reverse=True).numpy(), np.cumsum(array[:, ::-1], 1)[:, ::-1])


@pytest.mark.parametrize("inner", [1, 7, 16, 50])
def test_scattered_and_taken_rows(inner):
    random = np.random.default_rng(inner)
    table, updates = random.integers(-9, 9, (11, inner)).astype(np.float32), random.integers(-9, 9, (70, inner)).astype(np.float32)
    places = random.integers(-11, 11, 70)
    summed, largest = table.copy(), table.copy()
    np.add.at(summed, places, updates)
    np.maximum.at(largest, places, updates)
    assert np.array_equal(td.scatter_add(table, places, updates).numpy(), summed)
    assert np.array_equal(td.scatter_max(table, places, updates).numpy(), largest)
    for axis, shape in ((0, (6, inner)), (1, (11, 9)), (1, (11, 1))):
        picked = random.integers(0, table.shape[axis], shape)
        assert np.array_equal(td.take_along_axis(table, picked, axis).numpy(), np.take_along_axis(table, picked, axis))
    picked = random.integers(-inner, inner, 13)
    assert np.array_equal(td.gather(table, picked, 1).numpy(), table[:, picked])


def test_remainders_of_all_kinds():
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.25, 1e-40, 3e38, -3e38, 2.0**28, 2.0**27 + 8, np.inf, -np.inf, np.nan, 1e-3, 0.1]
    a, b = (x.astype(np.float32).ravel() for x in np.meshgrid(special, special))
    a, b = np.tile(a, 60), np.tile(b, 60)  # Enough work for machine code.
    for _ in range(6):
        with np.errstate(all="ignore"):
            assert np.array_equal(td.remainder(a, b).numpy(), np.remainder(a, b), equal_nan=True)


def test_pad_takes_its_mode_in_the_place_of_the_value():
    x = np.arange(6.0).reshape(2, 3)
    for mode in ("reflect", "symmetric", "edge"):
        assert np.array_equal(td.pad(x, [(1, 1), (2, 0)], mode), np.pad(x, [(1, 1), (2, 0)], mode))
    with pytest.raises(td.UserError) as caught:
        td.pad(x, [(1, 1), (0, 0)], "wrap")
    assert str(caught.value).splitlines()[0] == 'pad: there is no mode "wrap"'
