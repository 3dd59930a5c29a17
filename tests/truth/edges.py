#!/usr/bin/env python3
"""Every op and composite at 0, -0, ties, infinities, NaN, denormals, of no element, of one, of rank 0 and of high rank,
against JAX: edges.py DRIVER HEADERS

DRIVER (edges_driver.cc) makes every call, eagerly and in a function, and gives its value and its first and second
derivatives. Here JAX says what these are, and NumPy computes it (evaluate.py): in f64, at operands that the dtype
holds, and what comes out is rounded to the dtype. Where ours differs, what JAX has in f32 is right too: what overflows
on the way to a result need not be the result. f16 and bf16 are compared in their values, to one ulp, since they compute
in f32 and round once. Where we differ on purpose, docs/semantics.md says so and the function here is ours.
HEADERS is the folder tidemark/: an op or a public function that has no case fails the test.
"""

import itertools
import os
import re
import subprocess
import sys

try:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from edges_meaning import BINARY, BITS, DRAWS, ELEMENTWISE, LAST, MEANING, NUMPY, REDUCE, ROWS, UNARY
    import edges_linalg
    import evaluate
except ImportError:
    print("skipped: JAX is not installed", file=sys.stderr)
    sys.exit(77)

jax.config.update("jax_enable_x64", True)
INF, NAN = float("inf"), float("nan")
DERIVED = ("f64", "f32")
NARROW = ("f16", "bf16")
# How far a value and derivatives may be, relative to themselves: formulas of a dozen roundings, and pow.
VALUE_ROOM = {"f64": 1e-13, "f32": 4e-6, "f16": 2**-10, "bf16": 2**-7}
SLOPE_ROOM = {"f64": 1e-11, "f32": 1e-4}
# And absolutely: the terms of a slope are about as large as the weights, and may cancel.
SLOPE_LEAST = {"f64": 1e-14, "f32": 4e-6}
LEAST = {"f64": 2.3e-308, "f32": 1.2e-38, "f16": 6e-8, "bf16": 1.2e-38}


# ---- cases ---------------------------------------------------------------------------------------------------------

class Case:
    def __init__(self, name, *operands, dtypes=DERIVED + NARROW, orders=2, **attrs):
        self.name, self.attrs, self.dtypes, self.orders = name, attrs, dtypes, orders
        self.operands = [np.asarray(x) for x in operands]
        self.traced = {}  # By dtype, what JAX makes of it.

    def operands_in(self, dtype):
        """Floats rounded to the dtype, in f64; the others as they are."""
        with np.errstate(all="ignore"):
            return [x.astype(NUMPY[dtype]).astype(np.float64) if x.dtype.kind == "f" else x for x in self.operands]

    def line(self, dtype):
        attrs = [f"{key}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}" for key, value in self.attrs.items()]
        orders = self.orders if dtype in DERIVED else 0
        return " | ".join([" ".join([self.name, f"orders={orders}", *attrs])] + [tensor_text(x, dtype) for x in self.operands_in(dtype)])

    def __str__(self):
        return f"{self.name}({', '.join(str(list(x.shape)) for x in self.operands)}{''.join(f', {k}={v}' for k, v in self.attrs.items())})"


def tensor_text(x, dtype):
    named = {"f": dtype, "b": "bool", "i": "i64" if x.dtype.itemsize == 8 else "i32", "u": "u8"}[x.dtype.kind]
    shape = ",".join(map(str, x.shape))
    return " ".join([named, f"[{shape}]"] + [float(v).hex() for v in x.ravel()])


POINTS = np.array([0., -0., 1, -1, .5, -.5, 2, -2, 1.5, -1.5, 2.5, -2.5, 3, -3, 6, -6, 10, -10, 20, -20, 50, -50, 88, -88, 100, -100,
                   1e-3, -1e-3, 1e-20, -1e-20, 1e-40, -1e-40, 1.2e-38, 1e30, -1e30, 3e38, -3e38, 1e300, 1e-300, INF, -INF, NAN,
                   np.pi / 2, 7.25])
FEW = [0., -0., 1., -1., .5, 2., -2., 3., 2.5, -.5, 1e-40, 1e30, -1e30, INF, -INF, NAN]
FEW_FINITE = np.array([0., -0., 1, -1, 1e30])
PAIRS = np.array(list(itertools.product(FEW, FEW)))
TRIPLES = np.array(list(itertools.product([0., 1, -1, 2, INF, -INF, NAN], repeat=3)))
WHOLE = np.array(list(itertools.product([0, 1, -1, 2, 7, -8, 2**31 - 1, -2**31], repeat=2)), np.int32)
HIGH = (1,) * 9
MATRIX = np.array([[0., -0., 1], [INF, 2, -1]])
ROW = np.array([1., -0., NAN])
NONE = np.zeros((0,))


def is_minus_zero(x):
    return x == 0 and np.signbit(x)


# Where JAX's answer is not the one; tests/unit/ops/special_test.cc has values there.
JUDGED_ELSEWHERE = {
    "rsqrt": is_minus_zero,  # The slope of 1 / sqrt(-0), which is -inf, might be either infinity.
    "erfinv": is_minus_zero,  # JAX loses the sign.
    "acosh": lambda x: x > 1e38,  # The second derivative is 0, in JAX NaN.
    "lgamma": lambda x: x < -1e4,  # C has +inf at -inf, as at every pole.
    "trigamma": lambda x: x < -1e4 or is_minus_zero(x),  # There is no limit at -inf; slopes at -0 are those from below.
    "digamma": lambda x: x < -1e4 or is_minus_zero(x),
    "polygamma": lambda n, x: n not in (0, 1, 2, 3) or not x > 1e-20 or x > 1e29,  # JAX computes elsewhere in f32, or gives NaN.
    "pow": lambda a, b: a == b == 1e-40,  # The second derivatives are 1e40 and cancel.
    "copysign": lambda a, b: a == 0,  # Slope 0, as that of abs.
    "hypot": lambda a, b: abs(a) == abs(b) or np.isinf(a) or np.isinf(b),  # Slope 0 at the origin, as that of norm; no kink elsewhere.
    "logaddexp": lambda a, b: abs(a) > 1e29 or abs(b) > 1e29,  # JAX has slopes of 1 and above there.
}
# JAX's nan_to_num does not know the range of 16-bit floats, and its nextafter neither them nor a slope.
HOW = {"nan_to_num": {"dtypes": ("f64", "f32")}, "nextafter": {"dtypes": ("f64", "f32"), "orders": 0}}


def pointwise():
    for name in UNARY:
        yield Case(name, POINTS[[i for i, x in enumerate(POINTS) if not JUDGED_ELSEWHERE.get(name, lambda x: False)(x)]], **HOW.get(name, {}))
    for name in BINARY:
        yield Case(name, *PAIRS[[i for i, (a, b) in enumerate(PAIRS) if not JUDGED_ELSEWHERE.get(name, lambda a, b: False)(a, b)]].T, **HOW.get(name, {}))
    for name in list(BITS) + ["floor_divide", "remainder", "pow", "maximum", "multiply", "equal"]:
        yield Case(name, WHOLE[:, 0], WHOLE[:, 1], dtypes=("f64",))
    yield Case("bitwise_invert", WHOLE[:, 0], dtypes=("f64",))
    yield Case("bit_count", WHOLE[:, 0], dtypes=("f64",))
    yield Case("allclose", FEW_FINITE, FEW_FINITE + 1e-9)
    yield Case("allclose", FEW_FINITE, FEW_FINITE + 1e-4)
    yield Case("clip", *TRIPLES.T)
    yield Case("where", TRIPLES[:, 0] > 0, TRIPLES[:, 1], TRIPLES[:, 2])


def shapes_of_pointwise():
    """Elementwise: what one element gives is known from the long cases; here it is the shapes that count."""
    for names, count in ((UNARY, 1), (BINARY, 2), (("clip",), 3)):
        for name in names:
            for shape in ((), (0,), HIGH):
                yield Case(name, *[np.full(shape, .5)] * count, **{**HOW.get(name, {}), "dtypes": ("f32",)})
    yield Case("add", np.zeros((0, 1)), np.ones((3,)), dtypes=("f32",))
    yield Case("multiply", np.full((2, 1), NAN), np.zeros((1, 3)), dtypes=("f32",))


def reductions():
    for name in list(REDUCE):
        extremum = name in ("max", "min", "argmax", "argmin")
        yield Case(name, TRIPLES, axes=[1])
        yield Case(name, np.full(HIGH, 3.), axes=[4], keepdims=1, dtypes=("f32",))
        yield Case(name, np.array([[0., 0, 2], [0, 3, 5], [1e30, 1e30, 1e-30], [1e-30, 1e-30, 1]]), axes=[1])
        yield Case(name, np.array([[2.], [0]]), axes=[1])
        if not name.startswith("arg"):
            yield Case(name, np.array(2.), axes=[], dtypes=("f32",))
            yield Case(name, np.ones((2, 3, 2)) * [[[0.]], [[2.]]], axes=[0, 2], dtypes=("f32",))
            yield Case(name, np.arange(14.).reshape(2, 7) - 3, axes=[0, 1])
        yield Case(name, np.zeros((3, 0)), axes=[0], dtypes=("f32",))
        if not extremum:
            yield Case(name, np.zeros((3, 0)), axes=[1], dtypes=("f32",))
    for name in ROWS:
        yield Case(name, TRIPLES, axis=1)
        yield Case(name, TRIPLES.T, axis=0, dtypes=("f32",))
        yield Case(name, np.array([[2.], [-INF]]), axis=1)
        yield Case(name, np.zeros((3, 0)), axis=0, dtypes=("f32",))
        yield Case(name, np.zeros((3, 0)), axis=1, dtypes=("f32",))
        yield Case(name, np.full(HIGH, 3.), axis=4, dtypes=("f32",))
    for name in ("sort", "argsort"):
        yield Case(name, TRIPLES, axis=1, descending=1)
    for k in (0, 1, 2, 3):
        yield Case("top_k", TRIPLES, axis=1, k=k)
    yield Case("top_k", TRIPLES.T, axis=0, k=2, dtypes=("f32",))
    yield Case("top_k", np.zeros((3, 0)), axis=1, k=0, dtypes=("f32",))
    yield Case("top_k", np.zeros((0, 3)), axis=1, k=2, dtypes=("f32",))
    for name in LAST:
        yield Case(name, TRIPLES)
        yield Case(name, np.array([[2.], [-INF], [0]]))
        yield Case(name, np.zeros((0, 3)), dtypes=("f32",))
    yield Case("layer_norm", np.array([[1., 2, 4], [-3, 0, 3]]), epsilon=0.0)


def structures():
    index = np.array([1, 0, 1], np.int32)
    for x in (MATRIX, np.zeros((0, 3))):
        yield Case("transpose", x)
        yield Case("flip", x)
        yield Case("tril", x)
        yield Case("triu", x)
        for offset in (-1, 0, 1, 5):
            yield Case("diagonal", x, offset=offset)
            yield Case("diag", x, offset=offset)
            yield Case("diag", x[:, 0], offset=offset)
        for shift in (0, 1, -1, 5):
            yield Case("roll", x, shift=shift, axis=1)
            yield Case("roll", x, shift=shift)
        for n in (0, 1, 2, 5):
            yield Case("diff", x, n=n, axis=1)
        yield Case("expand_dims", x, axis=1)
        yield Case("reshape", x, shape=[3, x.size // 3])
        yield Case("broadcast_to", x, shape=[2, *x.shape])
        yield Case("repeat", x, count=2)
        yield Case("repeat", x, count=0)
        yield Case("tile", x, counts=[2, 1])
        yield Case("tile", x, counts=[0, 2])
        yield Case("pad", x, widths=[1, 0, 0, 2], value=-INF)
        yield Case("concat", x, x[:, :1], axis=1)
        yield Case("stack", x, x, axis=2)
        yield Case("slice", x, step=-1)
        yield Case("slice", x, step=2)
        yield Case("split", x, parts=2)
        yield Case("cast", x, to="f32", dtypes=DERIVED)
        yield Case("cast", x, to="f64", dtypes=DERIVED)
    yield Case("cast", POINTS, to="i32", dtypes=("f64", "f32"))
    for to in ("i8", "i16", "u8", "u16", "u32", "u64"):
        yield Case("cast", POINTS, to=to, dtypes=("f64", "f32"))
    yield Case("cast", POINTS, to="bool", dtypes=("f64", "f32"))
    yield Case("cast", POINTS, to="f16", dtypes=("f32",), orders=0)
    yield Case("squeeze", np.full((1, 2, 1), NAN))
    yield Case("squeeze", np.array(2.))
    yield Case("transpose", np.full(HIGH, -0.))
    yield Case("transpose", np.array(-0.))
    yield Case("unstack", MATRIX)
    yield Case("update", MATRIX, ROW)
    yield Case("update", np.ones((1, 0)), np.ones((0,)), dtypes=("f32",))
    for i in (index, index[:1], index[:0], np.array(-1, np.int32), index.reshape(3, 1)):
        yield Case("gather", MATRIX, i)
        yield Case("embedding", MATRIX, i)
        yield Case("one_hot", i)
    yield Case("one_hot", np.array([5, -1, 0], np.int32))
    yield Case("gather", MATRIX, index, axis=1)
    yield Case("take_along_axis", MATRIX, np.array([[1, 1, 0]], np.int32), axis=0)
    yield Case("take_along_axis", MATRIX, np.zeros((0, 3), np.int32), axis=0)
    yield Case("scatter_add", MATRIX, index, np.array([[1., NAN, INF], [-0., 2, -INF], [0, 0, 1]]), dtypes=DERIVED)
    yield Case("scatter_add", MATRIX, index[:0], np.zeros((0, 3)))
    yield Case("put", MATRIX, np.array([1, 0], np.int32), MATRIX + 1)
    yield Case("put", MATRIX, np.array([1, 1], np.int32), MATRIX + 1, dtypes=DERIVED)
    yield Case("put", MATRIX, index[:0], np.zeros((0, 3)))
    yield Case("first_equal", np.array([7, 3, 7, 3, 0], np.int32))
    yield Case("first_equal", np.zeros((0,), np.int32))
    yield Case("arange", range=[0, 0])
    yield Case("arange", range=[3, -1])
    yield Case("arange", range=[-2, 3])


def running():
    tame = np.array([[1., -2, .5], [0, 3, -1], [2, 0, 0], [-.5, .25, 4]])
    ways = [{"axis": 1}, {"axis": 0, "reverse": 1}]
    for way in ways:
        for name in ("cumsum", "cumprod", "cumlogsumexp"):
            yield Case(name, tame, **way, dtypes=DERIVED)
            yield Case(name, tame, exclusive=1, **way, dtypes=DERIVED, orders=0)
            yield Case(name, TRIPLES, **way, dtypes=DERIVED, orders=0)
            yield Case(name, np.zeros((3, 0)), **way, dtypes=("f32",))
        for name in ("cummax", "cummin"):
            yield Case(name, tame + np.arange(12).reshape(4, 3) / 7, **way)
            yield Case(name, TRIPLES, **way, orders=0)
            yield Case(name, np.zeros((3, 0)), **way, dtypes=("f32",))
        yield Case("linear_scan", tame, tame[::-1], **way, dtypes=DERIVED)
        yield Case("linear_scan", TRIPLES, TRIPLES[::-1], **way, dtypes=DERIVED, orders=0)


def transforms():
    z = np.array([[[1., -2], [.5, 0], [3, -1]], [[2., 0], [0, -.5], [.25, 4]]])
    for inverse in (0, 1):
        yield Case("fourier", z, axes=[1, 2], inverse=inverse, scale=.5, dtypes=DERIVED)
        yield Case("fourier", z[0], axes=[0, 1], inverse=inverse, scale=1., dtypes=DERIVED)


def ordered():
    row = np.array([-INF, -1., 0, 0, 2, INF, NAN, NAN])
    for right in (0, 1):
        yield Case("searchsorted", row, POINTS, right=right)
        yield Case("searchsorted", NONE, POINTS, right=right, dtypes=("f32",))
    yield Case("bincount", np.array([2, 0, 2, 5, -1]), np.array([1., 2, .5, 8, 16]), length=3)
    for method in range(5):
        for q in (0, .3, .5, 1):
            yield Case("quantile", np.array([[3., 1, 2, 7, -4], [0, 5, -1, 8, 2]]), q=q, axis=1, method=method, dtypes=DERIVED)
            yield Case("quantile", np.array([NAN, 1, 2]), q=q, method=method, dtypes=DERIVED, orders=0)
    yield Case("median", np.array([[3., 1, 2, 7], [0, 5, -1, 8]]), axes=[1], dtypes=DERIVED)
    yield Case("median", np.array([[3., 1, 2], [0, 5, NAN]]), axes=[1], dtypes=DERIVED, orders=0)
    index, updates = np.array([2, 0, 2]), np.array([[1., 5, -3], [-2, .5, 2], [4, -1, 7]])
    for name in ("scatter_max", "scatter_min", "scatter_mul"):
        yield Case(name, np.array([[.25, 3, -1], [2, 1, 6], [-4, .5, 1.5]]), index, updates, dtypes=DERIVED)
        yield Case(name, MATRIX, index // 2, np.array([[1., NAN, INF], [-0., 2, -INF], [0, 0, 1]]), dtypes=DERIVED, orders=0)
    for name in ("segment_max", "segment_min", "segment_mean", "segment_prod", "segment_sum"):
        yield Case(name, updates, index, dtypes=DERIVED)
        yield Case(name, updates, np.array([-1, 1, 7]), dtypes=DERIVED)
    yield Case("scatter_nd", np.array([[0, 1], [1, 0], [0, 1], [1, 0]]), np.array([1., INF, 2, -INF]), shape=[2, 2])
    yield Case("scatter_nd", np.array([[1], [0], [1]]), updates, shape=[2, 3], dtypes=DERIVED)


def contractions():
    wild = np.array([[0., 1, INF], [NAN, -0., 2]])
    tame = np.array([[1., 0, 2], [3, -1, .5]])
    for a, b in ((tame, tame.T), (wild, tame.T), (wild, wild.T), (np.zeros((2, 0)), np.zeros((0, 3))), (np.zeros((0, 2)), np.ones((2, 3))),
                 (np.full((1, 1), INF), np.zeros((1, 1))), (tame[0], tame[1]), (tame, tame[0]), (np.ones((3, 1, 2)), np.ones((2, 2)))):
        yield Case("matmul", a, b)
    yield Case("outer", wild[0], wild[1])
    yield Case("outer", NONE, tame[0])
    yield Case("kron", wild, tame)
    yield Case("kron", tame[0], tame)
    yield Case("kron", np.zeros((0, 2)), tame)
    yield Case("cross", wild, tame)
    yield Case("cross", tame, tame[0])
    yield Case("cdist", tame, tame)
    yield Case("cdist", np.stack([tame, tame + 1]), tame[:1])
    yield Case("cdist", np.zeros((0, 3)), tame)
    yield Case("meshgrid", tame[0], tame[1], tame[0, :2])
    yield Case("meshgrid", tame[0], tame[1, :2], ij=1)
    yield Case("meshgrid", tame[0])
    yield Case("tensordot", tame, tame, axes=2)
    yield Case("tensordot", np.array(2.), np.array(3.), axes=0)
    yield Case("einsum", wild, tame, how="ij,ij>i")
    yield Case("einsum", np.zeros((0, 0)), how="ii>")
    yield Case("einsum", np.eye(3), how="ii>i")
    image = np.arange(18.).reshape(1, 3, 3, 2) % 5 - 2
    spiked = image.copy()
    spiked[0, 1, 1] = INF
    for x in (image, spiked, np.zeros((0, 3, 3, 2))):
        for padding in ("valid", "same"):
            yield Case("conv2d", x, np.ones((2, 2, 2, 1)) * [[[[1.], [-2]]]], padding=padding)
            for strides in ([1, 1], [2, 2]):
                # Windows of infinities alone would have padding among the largest.
                yield Case("max_pool", x, size=[2, 2], strides=strides, padding=padding)
                yield Case("avg_pool", x, size=[2, 2], strides=strides, padding=padding)
    yield Case("conv2d", np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1, 1)))
    for x in (image, spiked, np.zeros((0, 3, 3, 2))):
        row, volume = x[:, 1], x[:, None]
        kernel = np.ones((2, 2, 3, 2)) * [[1.], [-2], [0.5]]
        for padding in ("valid", "same"):
            yield Case("conv1d", row, np.ones((2, 2, 1)) * [[1.], [-2]], padding=padding)
            yield Case("conv3d", volume, np.ones((1, 2, 2, 2, 1)) * [[1.], [-2]], padding=padding)
            yield Case("max_pool1d", row, padding=padding)
            yield Case("avg_pool1d", row, padding=padding)
            yield Case("extract_patches", x, sizes=[2, 2], padding=padding)
        yield Case("max_pool3d", volume, padding="same")
        yield Case("avg_pool3d", volume, padding="same")
        yield Case("conv_transpose1d", row, kernel[0])
        yield Case("conv_transpose2d", x, kernel)
        yield Case("conv_transpose3d", volume, kernel[None])
        yield Case("depthwise_conv1d", row, kernel[0, :, :2])
        yield Case("depthwise_conv2d", x, kernel[:, :, :2])
        yield Case("separable_conv1d", row, kernel[0, :, :2], np.ones((1, 4, 2)))
        yield Case("separable_conv2d", x, kernel[:, :, :2], np.ones((1, 1, 4, 2)))
        yield Case("pixel_unshuffle", x[:, :2, :2])
        yield Case("pixel_shuffle", np.concatenate([x, x], -1))
    # What has no weight is not there for us, and 0 times infinity for a product of matrices.
    for x in (image, np.zeros((0, 3, 3, 2))):
        for shape in ([5, 2], [1, 3]):
            yield Case("resample", x, shape=shape)
            yield Case("resize", x, shape=shape, method="nearest")
            yield Case("resize", x, shape=shape, antialias=1)
            yield Case("adaptive_avg_pool", x, sizes=shape)
    yield Case("adaptive_max_pool", np.arange(18.).reshape(1, 3, 3, 2) * 7 % 19, sizes=[2, 1])
    yield Case("avg_pool", np.full((1, 16, 16, 1), 1 / 3), size=[16, 16])
    yield Case("avg_pool", np.full((1, 2, 2, 1), 6e4))
    q, k = np.array([[0., 0], [1, -1], [10, 3]]), np.array([[0., 0], [5, 1], [-3, 2]])
    mask = np.array([[True, False, True], [False, False, False], [True, True, True]])
    for more in ((), (mask,), (np.array(False),)):
        for causal in (0, 1):
            # Rounds after each product: semantics.md.
            yield Case("attention", q, k, k + 1, *more, causal=causal, dtypes=DERIVED)


def losses():
    y = np.array([0., 1, .5, 0, 1, 0, 1, 0, 1])
    x = np.array([0., 0, 0, 20, 20, -20, -20, 200, 200])
    yield Case("losses::binary_crossentropy", y, x, dtypes=DERIVED)
    yield Case("losses::binary_crossentropy", y, x, smooth=0.25, dtypes=DERIVED)
    yield Case("losses::binary_crossentropy", y, np.array([0., 0, .5, 1, 1, .5, .25, .75, 1e-30]), logits=0, dtypes=DERIVED)
    yield Case("losses::binary_crossentropy", NONE, NONE, dtypes=DERIVED)
    yield Case("losses::huber", np.zeros(9), np.array([0., 1, -1, 2, -2, .5, -.5, -0., 1e30]), dtypes=DERIVED)
    yield Case("losses::huber", np.zeros(2), np.array([INF, -INF]), dtypes=DERIVED)
    for name in ("mse", "losses::mse", "losses::mae"):
        yield Case(name, np.array([0., 1, -1, 2]), np.array([0., 1, 1, -2]), dtypes=DERIVED)
        yield Case(name, NONE, NONE, dtypes=DERIVED)
        yield Case(name, np.array(1.), np.array(INF), dtypes=DERIVED)
    shares = np.array([[1., 0, 0], [0, .5, .5]])
    logits = np.array([[0., 0, 0], [100, -100, 3]])
    yield Case("losses::categorical_crossentropy", shares, logits, dtypes=DERIVED)
    yield Case("losses::categorical_crossentropy", shares, logits, smooth=0.25, dtypes=DERIVED)
    yield Case("losses::categorical_crossentropy", shares, np.array([[1., 0, 0], [.5, .25, .25]]), logits=0, dtypes=DERIVED)
    for name in ("sparse_softmax_cross_entropy", "losses::sparse_categorical_crossentropy"):
        yield Case(name, np.array([0, 2], np.int32), logits, dtypes=DERIVED)
        yield Case(name, np.zeros((0,), np.int32), np.zeros((0, 3)), dtypes=DERIVED)
        yield Case(name, np.array([0], np.int32), np.array([[-INF]]), dtypes=DERIVED)
    yield Case("losses::sparse_categorical_crossentropy", np.array([0, 1], np.int32), np.array([[1., 0, 0], [.5, 0, .5]]), logits=0,
               dtypes=DERIVED)
    yield Case("losses::hinge", np.array([1., -1, 1, -1, 1]), np.array([1., 1, -3, -2, -0.]), dtypes=DERIVED)
    yield Case("losses::hinge", NONE, NONE, dtypes=DERIVED)
    vectors, others = np.array([[1., 2, -2], [3, 0, 0], [.5, .5, 0]]), np.array([[2., 1, 0], [0, 4, 0], [-1, -1, 0]])
    yield Case("losses::cosine", vectors, others, dtypes=DERIVED)
    yield Case("losses::cosine", np.zeros((1, 3)), others[:1], dtypes=DERIVED, orders=0)
    yield Case("losses::focal", y[:7], x[:7] / 10, dtypes=DERIVED)
    yield Case("losses::focal", np.array([0., 1]), np.array([200., 200]), dtypes=DERIVED, orders=1)
    yield Case("losses::kl_divergence", shares, logits, dtypes=DERIVED)
    yield Case("losses::kl_divergence", shares, np.array([[1., 0, 0], [.5, .25, .25]]), logits=0, dtypes=DERIVED)
    yield Case("losses::poisson", np.array([0., 1, 3, 0]), np.array([0., -2, 1.5, -100]), dtypes=DERIVED)
    yield Case("losses::poisson", np.array([0., 1, 3]), np.array([0., 2, .5]), logits=0, dtypes=DERIVED)
    yield Case("losses::triplet", vectors, others, -vectors, dtypes=DERIVED)
    yield Case("losses::triplet", vectors, vectors, others, dtypes=DERIVED, orders=0)
    steps = np.array([[[0., 1, -1], [2, 0, 0], [.5, -.5, 1], [0, 0, 3]], [[1., 1, 1], [0, 9, -9], [0, -9, 9], [0, 0, 0]]])
    # A loop: the last bits of its second derivatives are not the same in functions (docs/loop_gradients.md).
    yield Case("losses::ctc", np.array([[1, 2], [1, 1]], np.int32), steps, dtypes=DERIVED, orders=1)
    yield Case("losses::ctc", np.array([[2]], np.int32), steps[:1, :1], dtypes=DERIVED)


# ---- comparing -----------------------------------------------------------------------------------------------------

def weighted(x, period, step):
    return jnp.sum(x * jnp.reshape((jnp.arange(x.size) % period) * step + 1, x.shape).astype(x.dtype))


def by_numpy(function, *arguments):
    """The function, traced for such arguments: takes others of the same dtypes and shapes, and gives a list of arrays."""
    closed = jax.make_jaxpr(function)(*arguments)

    def call(*given):
        with np.errstate(all="ignore"):
            return evaluate.run(closed.jaxpr, closed.consts, given)
    return call


def traced(case, operands):
    """A function of the float operands that gives the value, and as many derivatives as the case asks for."""
    function = {**MEANING, **edges_linalg.MEANING}[case.name]
    floats = [i for i, x in enumerate(operands) if x.dtype.kind == "f"]

    def value(*given):
        every = list(operands)
        for i, x in zip(floats, given):
            every[i] = x
        return function(*every, **case.attrs)

    given = [operands[i] for i in floats]
    is_float = jnp.issubdtype(jax.eval_shape(value, *given).dtype, jnp.floating)
    if case.orders == 0 or not floats or not is_float:
        return by_numpy(value, *given)
    every = tuple(range(len(floats)))
    slopes = jax.grad(lambda *x: weighted(value(*x), 3, .25), every)
    along = jax.grad(lambda *x: sum(weighted(g, 4, -.125) for g in slopes(*x)), every)
    return by_numpy(lambda *x: (value(*x), slopes(*x), along(*x)), *given)


def by_jax(case, operands):
    """Value, first and second derivatives: a list for each."""
    floats = [x for x in operands if x.dtype.kind == "f"]
    of_dtype = floats[0].dtype if floats else None
    if of_dtype not in case.traced:
        case.traced[of_dtype] = traced(case, operands)
    parts = case.traced[of_dtype](*floats)
    return [parts[:1], parts[1:1 + len(floats)], parts[1 + len(floats):]]


def parsed(line):
    """The lists that the driver wrote."""
    results = []
    for part in line.split(" | "):
        label, dtype, shape, *words = part.split(" ")
        sizes = [int(size) for size in shape[1:-1].split(",") if size]
        values = [float.fromhex(word) for word in words] if dtype in ("f64", "f32", "f16", "bf16") else [int(word) for word in words]
        array = np.array(values, np.float64 if dtype[0] == "f" or dtype == "bf16" else np.int64).reshape(sizes)
        if label != (results[-1][0] if results else None):
            results.append((label, []))
        results[-1][1].append((dtype, array))
    return results


def good(mine, want, room, least):
    """Which elements are right: the same infinity or NaN, or near enough."""
    with np.errstate(all="ignore"):
        near = np.abs(mine - want) <= room * np.abs(want) + least
    return (mine == want) | (np.isnan(mine) & np.isnan(want)) | (near & np.isfinite(want))


def rounded(x, dtype):
    x = np.asarray(x)
    if x.dtype.kind not in "fV" and x.dtype != jnp.bfloat16:
        return x.astype(np.int64)
    with np.errstate(all="ignore"):
        return x.astype(NUMPY[dtype]).astype(np.float64)


def problem(case, dtype, line):
    """What is wrong with a case in a dtype, or None."""
    if line.startswith(("error", "differs")):
        return line
    operands = case.operands_in(dtype)
    wide = by_jax(case, operands)
    narrow = None
    for order, (label, arrays) in enumerate(parsed(line)):
        for which, (given, mine) in enumerate(arrays):
            want = rounded(wide[order][which], given)
            if mine.shape != want.shape:
                return f"{label} has shape {list(mine.shape)}, that of JAX {list(want.shape)}"
            room, least = (VALUE_ROOM.get(given, 0), LEAST.get(given, 0)) if order == 0 else (SLOPE_ROOM[given], SLOPE_LEAST[given])
            if case.name in edges_linalg.MEANING:  # The largest element's error reaches the others.
                least = max(least, 10 * room * np.max(np.abs(want), initial=0, where=np.isfinite(want)))
            right = good(mine, want, room, least)
            if not np.all(right) and dtype != "f64":
                narrow = narrow or by_jax(case, [x.astype(np.float32) if x.dtype.kind == "f" else x for x in operands])
                right |= good(mine, rounded(narrow[order][which], given), room, least)
            if order == 0 and given in DERIVED and case.name in UNARY and not case.name.endswith("relu"):
                right &= (mine != 0) | (np.signbit(mine) == np.signbit(want)) | (want != 0)
            if order > 0 and case.name in ELEMENTWISE and want.shape == np.shape(wide[0][0]):
                right |= np.isnan(wide[0][0])  # What is not a number has no slope.
            if not np.all(right):
                at = np.argwhere(~np.atleast_1d(right))
                return f"{label} {which}: " + "; ".join(told(operands, mine, want, tuple(place)) for place in at[:6])
    return None


def told(operands, mine, want, at):
    at = at if mine.ndim else ()
    inputs = [x[at] if x.shape == mine.shape else x[at[0]] if x.ndim and at and at[0] < len(x) else x for x in operands]
    return f"at {list(map(int, at))}, of {', '.join(str(x) for x in inputs)}: {mine[at]!r}, JAX has {want[at]!r}".replace("np.float64", "")


# ---- what must be covered ------------------------------------------------------------------------------------------

def public_functions(headers):
    """What ops.h, random.h and losses.h declare: functions that give tensors, and objects that are called."""
    names = set()
    for header, prefix in (("calls/ops.h", ""), ("calls/scans.h", ""), ("calls/ordered.h", ""), ("calls/scatter.h", ""), ("calls/linalg.h", ""), ("calls/windows.h", ""), ("grad/pooling.h", ""), ("train/losses.h", "losses::")):
        with open(os.path.join(headers, header), encoding="utf-8") as file:
            text = re.sub(r"//.*", "", re.sub(r"namespace (detail|body) \{.*?\n\}  // namespace \1\n", "", file.read(), flags=re.S))
        for pattern in (r"^(?:Tensor|std::vector<Tensor>) (\w+)\(", r"^inline constexpr \w+ (\w+) = ", r"^\} (\w+);"):
            names |= {prefix + name for name in re.findall(pattern, text, flags=re.M)}
    return names | {"dropout"}


def uncovered(driver, headers, cases):
    """What has no case: ops of the catalogue, public functions, calls of the driver. Indices have a table of their own
    (edges_index.py); a transfer moves bytes between memories, of which there is one here."""
    # What public functions and gradients are made of; the sweep compares these ops by themselves with NumPy.
    parts = {"conv_kernel", "distances", "real_fourier", "weighted_differences"}
    listed = lambda what: set(subprocess.run([driver, what], check=True, capture_output=True, text=True).stdout.split())
    return (listed("--ops") | listed("--calls") | public_functions(headers)) - DRAWS - parts - {"index", "transfer"} - {case.name for case in cases}


def main(driver, headers):
    families = (pointwise, shapes_of_pointwise, reductions, structures, running, transforms, ordered, contractions, losses,
                lambda: edges_linalg.cases(Case))
    cases = [case for family in families for case in family()]
    lacking = sorted(uncovered(driver, headers, cases))
    for name in lacking:
        print(f"{name}: has no case; add one to tests/truth/edges.py")
    runs = [(case, dtype) for case in cases for dtype in case.dtypes]
    text = "\n".join(case.line(dtype) for case, dtype in runs) + "\n"
    lines = subprocess.run([driver], input=text, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(lines) == len(runs), f"{len(runs)} calls, {len(lines)} answers"
    wrong = 0
    for (case, dtype), line in zip(runs, lines):
        try:
            said = problem(case, dtype, line)
        except Exception as error:  # JAX refuses what we take.
            said = f"JAX: {str(error).splitlines()[0]}"
        if said:
            wrong += 1
            print(f"{case} in {dtype}: {said}")
    print(f"JAX {jax.__version__}: {len(runs)} calls of {len({case.name for case in cases})} ops and functions compared, {wrong} differ")
    return 1 if wrong or lacking else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
