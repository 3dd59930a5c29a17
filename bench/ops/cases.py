"""What bench/ops measures: for each op of the catalogue, a call of ours and the same call of PyTorch's, at several shapes.

A case names its inputs by text, so that both sides make the same ones: "2048x2048" has floats in (-1, 1), and a word
behind the sizes says otherwise (see `worker.py`). `ours` and `theirs` take the library first and then the inputs.
"""

import dataclasses
import typing

SMALL, WIDE, TALL, LARGE = "4x4", "64x16384", "100000x10", "2048x2048"
SHAPES = {"small": SMALL, "wide": WIDE, "tall": TALL, "large": LARGE}
# Rows of a middling length: of heads, channels and small classes.
ROWS = {**SHAPES, "rows of 3": "300000x3", "rows of 32": "65536x32", "rows of 64": "32768x64"}


@dataclasses.dataclass
class Case:
    op: str
    label: str
    inputs: tuple
    ours: typing.Callable
    theirs: typing.Callable
    compared: bool = True  # Draws differ.

    @property
    def name(self):
        return f"{self.op} {self.label}"


CASES = []


def case(op, label, inputs, ours, theirs, compared=True):
    CASES.append(Case(op, label, tuple(inputs), ours, theirs, compared))


def over(op, shapes, words, ours, theirs, compared=True):
    """One case for each shape; the words are those of its inputs, all of that shape."""
    for label, sizes in shapes.items():
        case(op, label, [f"{sizes} {word}".strip() for word in words], ours, theirs, compared)


# ---- Elementwise

POSITIVE = {"log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "digamma", "lgamma"}
UNIT = {"acos", "asin", "atanh", "erfinv"}
UNARY = """abs ceil cos erf erfc exp expm1 floor isfinite isinf isnan log log1p log2 logical_not negative reciprocal relu
round rsqrt sigmoid sign sin sqrt square tan tanh acos acosh asin asinh atan atanh cosh digamma erfinv lgamma log10 sinh""".split()


def unary(name, theirs, word=""):
    over(name, SHAPES, [word], lambda td, x: getattr(td, name)(x), theirs)


for each in UNARY:
    word = "positive" if each in POSITIVE else "above1" if each == "acosh" else "half" if each in UNIT else ""
    unary(each, lambda torch, x, each=each: getattr(torch, each)(x), word)
unary("identity", lambda torch, x: x.clone())
unary("gelu", lambda torch, x: torch.nn.functional.gelu(x))
unary("silu", lambda torch, x: torch.nn.functional.silu(x))
unary("softplus", lambda torch, x: torch.nn.functional.softplus(x))
unary("leaky_relu", lambda torch, x: torch.nn.functional.leaky_relu(x))
unary("trigamma", lambda torch, x: torch.polygamma(1, x), "positive")
unary("bitwise_invert", lambda torch, x: torch.bitwise_not(x), "i32")
unary("nan_to_num", lambda torch, x: torch.nan_to_num(x))

BINARY = """add atan2 divide floor_divide greater greater_equal less less_equal logical_and logical_or logical_xor
maximum minimum multiply not_equal remainder subtract copysign hypot logaddexp""".split()


def binary(name, theirs=None, words=("", "other")):
    theirs = theirs or (lambda torch, a, b: getattr(torch, name)(a, b))
    over(name, SHAPES, words, lambda td, a, b: getattr(td, name)(a, b), theirs)


for each in BINARY:
    binary(each)
binary("pow", words=("positive", "other"))
binary("xlogy", lambda torch, a, b: torch.special.xlogy(a, b), ("", "positive"))
binary("equal", lambda torch, a, b: torch.eq(a, b))
binary("nextafter")
binary("isclose")
binary("allclose", lambda torch, a, b: torch.isclose(a, b).all())
for each in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    binary(each, words=("i32", "i32 other"))
for each in ("left_shift", "right_shift"):
    binary(each, lambda torch, a, b, each=each: getattr(torch, f"bitwise_{each}")(a, b), ("i32", "bits"))
case("add", "a row", [LARGE, "2048"], lambda td, a, b: td.add(a, b), lambda torch, a, b: torch.add(a, b))
case("add", "a column", [LARGE, "2048x1"], lambda td, a, b: td.add(a, b), lambda torch, a, b: torch.add(a, b))
case("add", "transposed", [LARGE, LARGE], lambda td, a, b: td.add(a, td.transpose(b)), lambda torch, a, b: torch.add(a, b.T))
case("multiply", "a number", [LARGE], lambda td, a: a * 2.5, lambda torch, a: a * 2.5)
over("clip", SHAPES, [""], lambda td, x: td.clip(x, -0.5, 0.5), lambda torch, x: torch.clip(x, -0.5, 0.5))
over("where", SHAPES, ["bool", "", "other"], lambda td, c, a, b: td.where(c, a, b), lambda torch, c, a, b: torch.where(c, a, b))
over("polygamma", SHAPES, ["positive"], lambda td, x: td.polygamma(2, x), lambda torch, x: torch.polygamma(2, x))
over("cast", SHAPES, [""], lambda td, x: td.cast(x, "i32"), lambda torch, x: x.to(torch.int32))
case("cast", "to f64", [LARGE], lambda td, x: td.cast(x, "f64"), lambda torch, x: x.to(torch.float64))
case("cast", "to bf16", [LARGE], lambda td, x: td.cast(x, "bf16"), lambda torch, x: x.to(torch.bfloat16))

# ---- Reductions and rows

REDUCED = {"sum": "sum", "max": "amax", "min": "amin", "prod": "prod", "mean": "mean", "argmax": "argmax", "argmin": "argmin",
           "logsumexp": "logsumexp", "all": "all", "any": "any", "norm": "linalg.vector_norm"}


def reduction(name, theirs, word=""):
    over(name, ROWS, [word], lambda td, x: getattr(td, name)(x, -1), lambda torch, x: theirs(torch, x, -1))
    case(name, "large axis 0", [f"{LARGE} {word}".strip()], lambda td, x: getattr(td, name)(x, 0), lambda torch, x: theirs(torch, x, 0))
    case(name, "tall axis 0", [f"{TALL} {word}".strip()], lambda td, x: getattr(td, name)(x, 0), lambda torch, x: theirs(torch, x, 0))


def by_name(path):
    def call(torch, x, axis):
        return of(torch)(x, dim=axis)

    def of(torch):
        found = torch
        for part in path.split("."):
            found = getattr(found, part)
        return found

    return call


for each, path in REDUCED.items():
    reduction(each, by_name(path), "bool" if each in ("all", "any") else "near1" if each == "prod" else "")
    if each not in ("prod", "logsumexp", "norm"):
        word = "bool" if each in ("all", "any") else "positive" if each in ("sum", "mean") else ""
        case(each, "large, everything", [f"{LARGE} {word}".strip()], lambda td, x, each=each: getattr(td, each)(x),
             lambda torch, x, each=each: getattr(torch, each)(x))
reduction("var", lambda torch, x, axis: torch.var(x, axis, correction=0))
reduction("std", lambda torch, x, axis: torch.std(x, axis, correction=0))
for each in ("softmax", "log_softmax"):
    over(each, ROWS, [""], lambda td, x, each=each: getattr(td, each)(x, -1), lambda torch, x, each=each: getattr(torch, each)(x, -1))
    case(each, "large axis 0", [LARGE], lambda td, x, each=each: getattr(td, each)(x, 0), lambda torch, x, each=each: getattr(torch, each)(x, 0))
over("layer_norm", {**ROWS, "rows of 8": "131072x8"}, [""], lambda td, x: td.layer_norm(x),
     lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[-1:]))
over("rms_norm", ROWS, [""], lambda td, x: td.rms_norm(x), lambda torch, x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5))
over("median", {"small": SMALL, "rows of 101": "2000x101"}, [""], lambda td, x: td.median(x, -1), lambda torch, x: torch.quantile(x, 0.5, -1))
over("quantile", {"small": SMALL, "rows of 1000": "200x1000"}, [""], lambda td, x: td.quantile(x, 0.3, -1), lambda torch, x: torch.quantile(x, 0.3, -1))

# ---- Moving elements

over("transpose", SHAPES, [""], lambda td, x: td.identity(td.transpose(x)), lambda torch, x: x.T.contiguous())
case("transpose", "heads", ["8x512x12x64"], lambda td, x: td.identity(td.transpose(x, [0, 2, 1, 3])), lambda torch, x: x.permute(0, 2, 1, 3).contiguous())
case("transpose", "channels last", ["16x64x56x56"], lambda td, x: td.identity(td.transpose(x, [0, 2, 3, 1])), lambda torch, x: x.permute(0, 2, 3, 1).contiguous())
over("reshape", SHAPES, [""], lambda td, x: td.reshape(x, [-1]), lambda torch, x: torch.reshape(x, [-1]))
over("broadcast_to", {"small": SMALL, "large": LARGE}, [""], lambda td, x: td.identity(td.broadcast_to(x, [2, *x.shape])),
     lambda torch, x: x.expand(2, *x.shape).contiguous())
over("concat", SHAPES, ["", "other"], lambda td, a, b: td.concat([a, b], 1), lambda torch, a, b: torch.cat([a, b], 1))
over("stack", SHAPES, ["", "other"], lambda td, a, b: td.stack([a, b], 0), lambda torch, a, b: torch.stack([a, b], 0))
case("stack", "large last axis", [LARGE, f"{LARGE} other"], lambda td, a, b: td.stack([a, b], -1), lambda torch, a, b: torch.stack([a, b], -1))
over("pad", SHAPES, [""], lambda td, x: td.pad(x, [(1, 1), (2, 2)]), lambda torch, x: torch.nn.functional.pad(x, (2, 2, 1, 1)))
over("tile", {"small": SMALL, "tall": TALL, "large": LARGE}, [""], lambda td, x: td.tile(x, [2, 3]), lambda torch, x: torch.tile(x, [2, 3]))
over("repeat", {"small": SMALL, "tall": TALL, "large": LARGE}, [""], lambda td, x: td.identity(td.repeat(x, 3, 1)), lambda torch, x: torch.repeat_interleave(x, 3, 1))
over("flip", SHAPES, [""], lambda td, x: td.identity(td.flip(x, 1)), lambda torch, x: torch.flip(x, [1]))
over("roll", SHAPES, [""], lambda td, x: td.roll(x, 3, 1), lambda torch, x: torch.roll(x, 3, 1))
over("tril", SHAPES, [""], lambda td, x: td.tril(x), lambda torch, x: torch.tril(x))
over("triu", SHAPES, [""], lambda td, x: td.triu(x), lambda torch, x: torch.triu(x))
over("diff", SHAPES, [""], lambda td, x: td.diff(x), lambda torch, x: torch.diff(x))
over("diag", {"small": "4", "large": "2048"}, [""], lambda td, x: td.diag(x), lambda torch, x: torch.diag(x))
VIEWS = {"small": SMALL, "large": LARGE}
over("expand_dims", VIEWS, [""], lambda td, x: td.expand_dims(x, 0), lambda torch, x: torch.unsqueeze(x, 0))
over("squeeze", {"small": "4x1x4", "large": "2048x1x2048"}, [""], lambda td, x: td.squeeze(x), lambda torch, x: torch.squeeze(x))
over("diagonal", VIEWS, [""], lambda td, x: td.diagonal(x), lambda torch, x: torch.diagonal(x))
over("split", VIEWS, [""], lambda td, x: td.split(x, 2)[0], lambda torch, x: torch.tensor_split(x, 2)[0])
over("unstack", {"small": SMALL, "wide": WIDE}, [""], lambda td, x: td.unstack(x)[0], lambda torch, x: torch.unbind(x)[0])
over("meshgrid", {"small": "4", "large": "2048"}, ["", "other"], lambda td, a, b: td.meshgrid([a, b])[0],
     lambda torch, a, b: torch.meshgrid([a, b], indexing="xy")[0])
over("stop_gradient", VIEWS, [""], lambda td, x: td.stop_gradient(x), lambda torch, x: x.detach())

# ---- Indices

case("gather", "small", [SMALL, "8 below4"], lambda td, x, i: td.gather(x, i), lambda torch, x, i: torch.index_select(x, 0, i))
case("gather", "embedding", ["32768x256", "8192 below32768"], lambda td, x, i: td.gather(x, i), lambda torch, x, i: torch.index_select(x, 0, i))
case("gather", "tall", [TALL, "100000 below100000"], lambda td, x, i: td.gather(x, i), lambda torch, x, i: torch.index_select(x, 0, i))
case("gather", "last axis", [LARGE, "512 below2048"], lambda td, x, i: td.gather(x, i, 1), lambda torch, x, i: torch.index_select(x, 1, i))
case("embedding", "small", [SMALL, "8 below4"], lambda td, x, i: td.embedding(x, i), lambda torch, x, i: torch.nn.functional.embedding(i, x))
case("embedding", "large", ["32768x256", "8192 below32768"], lambda td, x, i: td.embedding(x, i), lambda torch, x, i: torch.nn.functional.embedding(i, x))
for label, sizes, picked in (("small", SMALL, "4x2 below4"), ("one of 10", TALL, "100000x1 below10"), ("large", LARGE, "2048x512 below2048"), ("wide", WIDE, "64x16384 below16384")):
    case("take_along_axis", label, [sizes, picked], lambda td, x, i: td.take_along_axis(x, i, 1), lambda torch, x, i: torch.take_along_dim(x, i, 1))
case("take_along_axis", "axis 0", [LARGE, "512x2048 below2048"], lambda td, x, i: td.take_along_axis(x, i, 0), lambda torch, x, i: torch.take_along_dim(x, i, 0))
SCATTERED = {"small": (SMALL, "8 below4", "8x4"), "table": ("8192x256", "8192 below8192", "8192x256"), "rows of 10": (TALL, "100000 below100000", TALL),
             "numbers": ("100000", "1000000 below100000", "1000000")}
for label, inputs in SCATTERED.items():
    case("scatter_add", label, inputs, lambda td, x, i, u: td.scatter_add(x, i, u), lambda torch, x, i, u: torch.index_add(x, 0, i, u))
    for op, how in (("scatter_max", "amax"), ("scatter_min", "amin"), ("scatter_mul", "prod")):
        case(op, label, inputs, lambda td, x, i, u, op=op: getattr(td, op)(x, i, u), lambda torch, x, i, u, how=how: torch.index_reduce(x, 0, i, u, how))
for label, data, segments, count in (("small", "8x4", "8 below4", 4), ("table", "8192x256", "8192 below1024", 1024), ("rows of 10", TALL, "100000 below1000", 1000)):
    case("segment_sum", label, [data, segments], lambda td, x, i, n=count: td.segment_sum(x, i, n),
         lambda torch, x, i, n=count: torch.zeros(n, x.shape[1]).index_add_(0, i, x))
    for op, how in (("segment_mean", "mean"), ("segment_prod", "prod"), ("segment_max", "amax"), ("segment_min", "amin")):
        case(op, label, [data, segments], lambda td, x, i, n=count, op=op: getattr(td, op)(x, i, n),
             lambda torch, x, i, n=count, how=how: torch.zeros(n, x.shape[1]).index_reduce_(0, i, x, how, include_self=False), compared=how != "prod")
case("put", "small", [SMALL, "2 below4", "2x4"], lambda td, x, i, u: td.put(x, i, u), lambda torch, x, i, u: torch.index_copy(x, 0, i, u), compared=False)
case("put", "rows", ["8192x256", "512 below8192", "512x256"], lambda td, x, i, u: td.put(x, i, u), lambda torch, x, i, u: torch.index_copy(x, 0, i, u), compared=False)
case("scatter_nd", "rows", ["8192 below8192", "8192x64"], lambda td, i, u: td.scatter_nd(td.expand_dims(i, 1), u, [8192, 64]),
     lambda torch, i, u: torch.zeros(8192, 64).index_put_((i,), u, accumulate=True))
over("one_hot", {"small": "8", "classes": "100000"}, ["below10"], lambda td, i: td.one_hot(i, 10), lambda torch, i: torch.nn.functional.one_hot(i, 10).float())
case("bincount", "small", ["8 below4"], lambda td, i: td.bincount(i, length=4), lambda torch, i: torch.bincount(i, minlength=4))
case("bincount", "large", ["1000000 below1000"], lambda td, i: td.bincount(i, length=1000), lambda torch, i: torch.bincount(i, minlength=1000))
over("histogram", {"small": "16", "large": "1000000"}, [""], lambda td, x: td.histogram(x, 50, -1.0, 1.0)[0], lambda torch, x: torch.histc(x, 50, -1.0, 1.0), compared=False)
case("searchsorted", "small", ["16 sorted", "8"], lambda td, s, x: td.searchsorted(s, x), lambda torch, s, x: torch.searchsorted(s, x))
case("searchsorted", "large", ["100000 sorted", "100000"], lambda td, s, x: td.searchsorted(s, x), lambda torch, s, x: torch.searchsorted(s, x))
over("nonzero", {"small": SMALL, "large": "1000x1000"}, ["bool"], lambda td, x: td.nonzero(x)[0], lambda torch, x: torch.nonzero(x))
over("unique", {"small": "16", "large": "100000"}, ["below1000"], lambda td, x: td.unique(x)[0], lambda torch, x: torch.unique(x, return_inverse=True, return_counts=True)[0])

# ---- Order along an axis

SORTED = {"small": SMALL, "wide": "16x65536", "tall": TALL, "rows of 1000": "1000x1000"}
over("sort", SORTED, [""], lambda td, x: td.sort(x), lambda torch, x: torch.sort(x, stable=True)[0])
over("argsort", SORTED, [""], lambda td, x: td.argsort(x), lambda torch, x: torch.argsort(x, stable=True))
over("top_k", {"small": SMALL, "wide": "16x65536", "tall": TALL, "words": "64x32768"}, [""], lambda td, x: td.top_k(x, 4)[0], lambda torch, x: torch.topk(x, 4)[0])
for each in ("cumsum", "cumprod"):
    over(each, SHAPES, ["near1"], lambda td, x, each=each: getattr(td, each)(x, 1), lambda torch, x, each=each: getattr(torch, each)(x, 1))
    case(each, "large axis 0", [f"{LARGE} near1"], lambda td, x, each=each: getattr(td, each)(x, 0), lambda torch, x, each=each: getattr(torch, each)(x, 0), compared=False)
for each in ("cummax", "cummin"):
    over(each, SHAPES, [""], lambda td, x, each=each: getattr(td, each)(x, 1), lambda torch, x, each=each: getattr(torch, each)(x, 1)[0])
over("cumlogsumexp", SHAPES, [""], lambda td, x: td.cumlogsumexp(x, 1), lambda torch, x: torch.logcumsumexp(x, 1))

# ---- Complex numbers, drawn as pairs on the last axis, and Fourier transforms

ROWS_OF_PAIRS = {"small": "4x4x2", "64 rows": "64x1024x2", "1 row": "1x65536x2", "1000 rows": "1000x1000x2", "columns": "1024x64x2"}
PAIRS = {"small": "4x4x2", "large": "1024x1024x2"}


def seen(lib, y):
    """What is compared: reals."""
    is_complex = y.dtype.is_complex
    return lib.view_as_real(lib.resolve_conj(y) if hasattr(lib, "resolve_conj") else y) if is_complex else y


def on_pairs(name, shapes, kinds, ours, theirs):
    over(name, shapes, kinds, lambda td, *z: seen(td, ours(td, *(td.view_as_complex(each) for each in z))),
         lambda torch, *z: seen(torch, theirs(torch, *(torch.view_as_complex(each) for each in z))))


def on_reals(name, shapes, kinds, ours, theirs):
    over(name, shapes, kinds, lambda td, *x: seen(td, ours(td, *x)), lambda torch, *x: seen(torch, theirs(torch, *x)))


def alike(function):
    return [function, function]


for each in ("fft", "ifft"):
    on_pairs(f"fft::{each}", ROWS_OF_PAIRS, [""], *alike(lambda lib, z, each=each: getattr(lib.fft, each)(z)))
on_pairs("fft::fft", {"prime": "64x1009x2"}, [""], *alike(lambda lib, z: lib.fft.fft(z)))
on_reals("fft::rfft", {"small": SMALL, "64 rows": "64x2048", "1 row": "1x131072"}, [""], *alike(lambda lib, x: lib.fft.rfft(x)))
on_reals("fft::ihfft", {"small": SMALL, "64 rows": "64x2048"}, [""], *alike(lambda lib, x: lib.fft.ihfft(x)))
for each in ("irfft", "hfft"):
    on_pairs(f"fft::{each}", {"small": "4x5x2", "64 rows": "64x1025x2", "1 row": "1x65537x2"}, [""], *alike(lambda lib, z, each=each: getattr(lib.fft, each)(z)))
for each in ("fft2", "ifft2", "fftn", "ifftn"):
    on_pairs(f"fft::{each}", {"small": "4x4x2", "256 squared": "256x256x2"}, [""], *alike(lambda lib, z, each=each: getattr(lib.fft, each)(z)))
for each in ("rfft2", "rfftn"):
    on_reals(f"fft::{each}", {"small": SMALL, "256 squared": "256x256"}, [""], *alike(lambda lib, x, each=each: getattr(lib.fft, each)(x)))
for each in ("irfft2", "irfftn"):
    on_pairs(f"fft::{each}", {"small": "4x5x2", "256 squared": "256x129x2"}, [""], *alike(lambda lib, z, each=each: getattr(lib.fft, each)(z)))
for each in ("fftshift", "ifftshift"):
    on_pairs(f"fft::{each}", PAIRS, [""], *alike(lambda lib, z, each=each: getattr(lib.fft, each)(z)))
for each in ("fftfreq", "rfftfreq"):
    over(f"fft::{each}", {"small": SMALL}, [""], *alike(lambda lib, x, each=each: getattr(lib.fft, each)(1024) * x[0, 0]))
for each in ("complex", "polar"):
    on_reals(each, {"small": SMALL, "large": "1024x1024"}, ["", "other"], *alike(lambda lib, a, b, each=each: getattr(lib, each)(a, b)))
for each in ("real", "imag", "conj", "angle", "view_as_real"):
    on_pairs(each, PAIRS, [""], *alike(lambda lib, z, each=each: getattr(lib, each)(z)))
on_reals("view_as_complex", PAIRS, [""], *alike(lambda lib, z: lib.view_as_complex(z)))
for each in ("abs", "exp"):
    on_pairs(each, {f"complex {label}": shape for label, shape in PAIRS.items()}, [""], *alike(lambda lib, z, each=each: getattr(lib, each)(z)))
for each in ("multiply", "divide"):
    on_pairs(each, {f"complex {label}": shape for label, shape in PAIRS.items()}, ["", "other"], *alike(lambda lib, a, b, each=each: getattr(lib, each)(a, b)))
on_pairs("matmul", {"complex 256 cubed": "256x256x2"}, ["", "other"], *alike(lambda lib, a, b: lib.matmul(a, b)))

# ---- Products

for label, (m, k, n) in {"small": (4, 4, 4), "32 cubed": (32, 32, 32), "128 cubed": (128, 128, 128), "256 cubed": (256, 256, 256), "512 cubed": (512, 512, 512),
                         "large": (1024, 1024, 1024), "wide": (16, 4096, 1024), "tall": (100000, 10, 10), "tall 64": (65536, 64, 64), "few rows": (8, 1024, 1024)}.items():
    case("matmul", label, [f"{m}x{k}", f"{k}x{n}"], lambda td, a, b: td.matmul(a, b), lambda torch, a, b: torch.matmul(a, b))
case("matmul", "matrix x vector", ["4096x4096", "4096x1"], lambda td, a, b: td.matmul(a, b), lambda torch, a, b: torch.matmul(a, b))
case("matmul", "vector x matrix", ["1x4096", "4096x4096"], lambda td, a, b: td.matmul(a, b), lambda torch, a, b: torch.matmul(a, b))
case("matmul", "transposed b", ["1024x1024", "1024x1024"], lambda td, a, b: td.matmul(a, b, transpose_b=True), lambda torch, a, b: torch.matmul(a, b.T))
case("matmul", "transposed a", ["1024x1024", "1024x1024"], lambda td, a, b: td.matmul(a, b, transpose_a=True), lambda torch, a, b: torch.matmul(a.T, b))
case("matmul", "batch", ["64x128x64", "64x64x128"], lambda td, a, b: td.matmul(a, b), lambda torch, a, b: torch.matmul(a, b))
case("matmul", "f64", ["512x512 f64", "512x512 f64"], lambda td, a, b: td.matmul(a, b), lambda torch, a, b: torch.matmul(a, b))
case("matmul", "i32", ["256x256 i32", "256x256 i32"], lambda td, a, b: td.matmul(a, b), lambda torch, a, b: torch.matmul(a, b))
case("tensordot", "large", ["64x32x256", "32x256x64"], lambda td, a, b: td.tensordot(a, b, 2), lambda torch, a, b: torch.tensordot(a, b, 2))
case("tensordot", "small", ["2x4x4", "4x4x2"], lambda td, a, b: td.tensordot(a, b, 2), lambda torch, a, b: torch.tensordot(a, b, 2))
case("einsum", "small", [SMALL, f"{SMALL} other"], lambda td, a, b: td.einsum("ij,jk->ik", a, b), lambda torch, a, b: torch.einsum("ij,jk->ik", a, b))
case("einsum", "heads", ["8x128x12x64", "8x128x12x64"], lambda td, a, b: td.einsum("bthd,bshd->bhts", a, b), lambda torch, a, b: torch.einsum("bthd,bshd->bhts", a, b))
over("outer", {"small": "4", "large": "2048"}, ["", "other"], lambda td, a, b: td.outer(a, b), lambda torch, a, b: torch.outer(a, b))
over("kron", {"small": SMALL, "large": "40x40"}, ["", "other"], lambda td, a, b: td.kron(a, b), lambda torch, a, b: torch.kron(a, b))
over("cross", {"small": "4x3", "tall": "300000x3"}, ["", "other"], lambda td, a, b: td.cross(a, b), lambda torch, a, b: torch.linalg.cross(a, b))
over("cdist", {"small": SMALL, "large": "1000x64"}, ["", "other"], lambda td, a, b: td.cdist(a, b), lambda torch, a, b: torch.cdist(a, b))
for label, heads, length, width in (("small", 2, 8, 8), ("large", 16, 512, 64)):
    for how in (False, True):
        case("attention", label + (", causal" if how else ""), [f"{heads}x{length}x{width}"] * 3, lambda td, q, k, v, how=how: td.attention(q, k, v, causal=how),
             lambda torch, q, k, v, how=how: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=how))


def conv(label, image, kernel, **options):
    """Images of PyTorch's have channels first in shape and last in memory, which is its fastest form."""
    def theirs(torch, x, w):
        return torch.nn.functional.conv2d(x, w, **options)

    strides = options.get("stride", 1)
    case("conv2d", label, [f"{image} image", f"{kernel} kernel"], lambda td, x, w: td.conv2d(x, w, strides=(strides, strides), groups=options.get("groups", 1)), theirs)


conv("small", "1x8x8x4", "3x3x4x4")
conv("3x3", "8x56x56x64", "3x3x64x64")
conv("1x1", "8x28x28x256", "1x1x256x128")
conv("strided", "8x112x112x3", "7x7x3x64", stride=2)
conv("depthwise", "8x56x56x64", "3x3x1x64", groups=64)
for op, theirs in (("max_pool", "max_pool2d"), ("avg_pool", "avg_pool2d")):
    for label, image in (("small", "1x8x8x4"), ("large", "8x112x112x64")):
        case(op, label, [f"{image} image"], lambda td, x, op=op: getattr(td, op)(x), lambda torch, x, theirs=theirs: getattr(torch.nn.functional, theirs)(x, 2))


# ---- Rows, images and volumes

def first(x):
    """Channels first in shape, last in memory."""
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1)


def taps(w):
    """A kernel [..., in, out] as PyTorch has it; one of ours [..., out, in] as its transposed convolutions have it."""
    return w.permute(-1, -2, *range(w.ndim - 2))


AXES = {1: (("small", "1x16x4", "3x4x4"), ("large", "8x256x64", "5x64x64")), 2: (("small", "1x8x8x4", "3x3x4x4"), ("large", "8x28x28x64", "2x2x32x64")),
        3: (("small", "1x4x4x4x4", "2x2x2x4x4"), ("large", "2x8x28x28x32", "3x3x3x32x32"))}
for axes, sizes in AXES.items():
    for label, image, kernel in sizes:
        if axes != 2:
            case(f"conv{axes}d", label, [image, kernel], lambda td, x, w, n=axes: getattr(td, f"conv{n}d")(x, w),
                 lambda torch, x, w, n=axes: last(getattr(torch.nn.functional, f"conv{n}d")(first(x), taps(w))))
            for op in ("max_pool", "avg_pool"):
                case(f"{op}{axes}d", label, [image], lambda td, x, op=op, n=axes: getattr(td, f"{op}{n}d")(x),
                     lambda torch, x, op=op, n=axes: last(getattr(torch.nn.functional, f"{op}{n}d")(first(x), 2)))
        case(f"conv_transpose{axes}d", label, [image, kernel], lambda td, x, w, n=axes: getattr(td, f"conv_transpose{n}d")(x, w, strides=2),
             lambda torch, x, w, n=axes: last(getattr(torch.nn.functional, f"conv_transpose{n}d")(first(x), taps(w), stride=2)))
for label, n, size, channels in (("small", 1, 8, 4), ("large", 8, 56, 64)):
    image = f"{n}x{size}x{size}x{channels}"
    deep = lambda torch, x, w: torch.nn.functional.conv2d(first(x), w.permute(2, 3, 0, 1), groups=x.shape[-1])
    case("depthwise_conv2d", label, [image, f"3x3x{channels}x1"], lambda td, x, w: td.depthwise_conv2d(x, w), lambda torch, x, w, deep=deep: last(deep(torch, x, w)))
    case("separable_conv2d", label, [image, f"3x3x{channels}x1", f"1x1x{channels}x{channels}"], lambda td, x, w, p: td.separable_conv2d(x, w, p),
         lambda torch, x, w, p, deep=deep: last(torch.nn.functional.conv2d(deep(torch, x, w), taps(p))))
    row = f"{n}x{size * size}x{channels}"
    thin = lambda torch, x, w: torch.nn.functional.conv1d(first(x), w.permute(1, 2, 0), groups=x.shape[-1])
    case("depthwise_conv1d", label, [row, f"3x{channels}x1"], lambda td, x, w: td.depthwise_conv1d(x, w), lambda torch, x, w, thin=thin: last(thin(torch, x, w)))
    case("separable_conv1d", label, [row, f"3x{channels}x1", f"1x{channels}x{channels}"], lambda td, x, w, p: td.separable_conv1d(x, w, p),
         lambda torch, x, w, p, thin=thin: last(torch.nn.functional.conv1d(thin(torch, x, w), taps(p))))
    for method, theirs in (("nearest", "nearest-exact"), ("bilinear", "bilinear")):
        for to in (size * 2, size // 2):
            case("resize", f"{label}, {method} to {to}", [image], lambda td, x, m=method, to=to: td.resize(x, [to, to], method=m),
                 lambda torch, x, m=theirs, to=to: last(torch.nn.functional.interpolate(first(x), (to, to), mode=m)))
    case("resize", f"{label}, bicubic, antialias", [image], lambda td, x, to=size // 2: td.resize(x, [to, to], method="bicubic", antialias=True),
         lambda torch, x, to=size // 2: last(torch.nn.functional.interpolate(first(x), (to, to), mode="bicubic", antialias=True)))
    case("pixel_shuffle", label, [image], lambda td, x: td.pixel_shuffle(x, 2), lambda torch, x: last(torch.pixel_shuffle(first(x), 2)).contiguous())
    case("pixel_unshuffle", label, [image], lambda td, x: td.pixel_unshuffle(x, 2), lambda torch, x: last(torch.pixel_unshuffle(first(x), 2)).contiguous())
    case("extract_patches", label, [image], lambda td, x: td.extract_patches(x, [3, 3], strides=[2, 2]),
         lambda torch, x: torch.nn.functional.unfold(first(x), 3, stride=2), compared=False)
    case("pad", f"{label}, reflect", [image], lambda td, x: td.pad(x, [(0, 0), (2, 2), (3, 3), (0, 0)], mode="reflect"),
         lambda torch, x: last(torch.nn.functional.pad(first(x), (3, 3, 2, 2), mode="reflect")))
    for op, theirs in (("adaptive_max_pool", "adaptive_max_pool2d"), ("adaptive_avg_pool", "adaptive_avg_pool2d")):
        case(op, label, [image], lambda td, x, op=op: getattr(td, op)(x, [5, 5]), lambda torch, x, op=theirs: last(getattr(torch.nn.functional, op)(first(x), (5, 5))))

# ---- Gradients: the forward call and the gradient of its sum by the inputs that are floats

def ours_by(td, function, inputs, by):
    with td.GradientTape() as tape:
        for each in by:
            tape.watch(inputs[each])
        y = function(td, *inputs)
    return tape.gradient(y, [inputs[each] for each in by])[-1]


def theirs_by(torch, function, inputs, by):
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_() if i in by else x for i, x in enumerate(inputs)]
        y = function(torch, *inputs)
        return torch.autograd.grad(y, [inputs[each] for each in by], torch.ones_like(y))[-1]


def gradient(op, label, inputs, ours, theirs, by=None, compared=True):
    by = list(range(len(inputs))) if by is None else by
    case(op, f"{label}, gradient".lstrip(", "), inputs, lambda td, *x: ours_by(td, ours, x, by), lambda torch, *x: theirs_by(torch, theirs, x, by), compared)


def conv_gradient(label, image, kernel, **options):
    strides, groups = options.get("stride", 1), options.get("groups", 1)
    gradient("conv2d", label, [f"{image} image", f"{kernel} kernel"], lambda td, x, w: td.conv2d(x, w, strides=(strides, strides), groups=groups),
             lambda torch, x, w: torch.nn.functional.conv2d(x, w, **options), compared=False)


conv_gradient("small", "1x8x8x4", "3x3x4x4")
conv_gradient("3x3", "8x56x56x64", "3x3x64x64")
conv_gradient("1x1", "8x28x28x256", "1x1x256x128")
conv_gradient("strided", "8x112x112x3", "7x7x3x64", stride=2)
conv_gradient("depthwise", "8x56x56x64", "3x3x1x64", groups=64)
conv_gradient("depthwise strided", "8x56x56x64", "3x3x1x64", groups=64, stride=2)
conv_gradient("groups of 4", "8x28x28x128", "3x3x4x128", groups=32)
conv_gradient("groups of 32", "8x28x28x128", "3x3x32x128", groups=4)
for axes, sizes in AXES.items():
    for label, image, kernel in sizes[1:]:
        if axes != 2:
            gradient(f"conv{axes}d", label, [image, kernel], lambda td, x, w, n=axes: getattr(td, f"conv{n}d")(x, w),
                     lambda torch, x, w, n=axes: last(getattr(torch.nn.functional, f"conv{n}d")(first(x), taps(w))))
            for op in ("max_pool", "avg_pool"):
                gradient(f"{op}{axes}d", label, [image], lambda td, x, op=op, n=axes: getattr(td, f"{op}{n}d")(x),
                         lambda torch, x, op=op, n=axes: last(getattr(torch.nn.functional, f"{op}{n}d")(first(x), 2)))
        gradient(f"conv_transpose{axes}d", label, [image, kernel], lambda td, x, w, n=axes: getattr(td, f"conv_transpose{n}d")(x, w, strides=2),
                 lambda torch, x, w, n=axes: last(getattr(torch.nn.functional, f"conv_transpose{n}d")(first(x), taps(w), stride=2)))
gradient("depthwise_conv1d", "large", ["8x3136x64", "3x64x1"], lambda td, x, w: td.depthwise_conv1d(x, w),
         lambda torch, x, w: last(torch.nn.functional.conv1d(first(x), w.permute(1, 2, 0), groups=64)))
for op in ("max_pool", "avg_pool"):
    gradient(op, "large", ["8x112x112x64 image"], lambda td, x, op=op: getattr(td, op)(x), lambda torch, x, op=op: getattr(torch.nn.functional, f"{op}2d")(x, 2))
for label, sizes in (("tall", TALL), ("large", LARGE)):
    for op in ("softmax", "log_softmax", "logsumexp", "cumsum"):
        gradient(op, label, [sizes], lambda td, x, op=op: getattr(td, op)(x, -1), lambda torch, x, op=op: getattr(torch, op)(x, -1), compared=False)
    for op, theirs in (("mean", "mean"), ("norm", "linalg.vector_norm")):
        gradient(op, label, [sizes], lambda td, x, op=op: getattr(td, op)(x, -1), lambda torch, x, theirs=by_name(theirs): theirs(torch, x, -1))
    for op in ("var", "std"):
        gradient(op, label, [sizes], lambda td, x, op=op: getattr(td, op)(x, -1), lambda torch, x, op=op: getattr(torch, op)(x, -1, correction=0))
    for op in ("gelu", "silu", "softplus", "leaky_relu", "relu", "sigmoid", "tanh"):
        gradient(op, label, [sizes], lambda td, x, op=op: getattr(td, op)(x), lambda torch, x, op=op: getattr(torch.nn.functional, op)(x))
    gradient("divide", label, [f"{sizes} positive", f"{sizes} positive other"], lambda td, a, b: td.divide(a, b), lambda torch, a, b: torch.divide(a, b))
    gradient("mse", label, [sizes, f"{sizes} other"], lambda td, a, b: td.mse(a, b), lambda torch, a, b: torch.nn.functional.mse_loss(b, a), by=[1])
    gradient("layer_norm", label, [sizes], lambda td, x: td.layer_norm(x), lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[-1:]), compared=False)
    columns = sizes.split("x")[1]
    gradient("layer_norm", f"{label}, scale and bias", [sizes, columns, f"{columns} other"], lambda td, x, scale, bias: td.layer_norm(x, scale, bias),
             lambda torch, x, scale, bias: torch.nn.functional.layer_norm(x, x.shape[-1:], scale, bias), compared=False)
    gradient("rms_norm", label, [sizes], lambda td, x: td.rms_norm(x), lambda torch, x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5), compared=False)
gradient("gather", "embedding", ["32768x256", "8192 below32768"], lambda td, x, i: td.gather(x, i), lambda torch, x, i: torch.index_select(x, 0, i), by=[0])
gradient("take_along_axis", "one of 10", [TALL, "100000x1 below10"], lambda td, x, i: td.take_along_axis(x, i, 1), lambda torch, x, i: torch.take_along_dim(x, i, 1), by=[0])
gradient("cdist", "large", ["1000x64", "1000x64 other"], lambda td, a, b: td.cdist(a, b), lambda torch, a, b: torch.cdist(a, b))
gradient("attention", "large", ["16x512x64"] * 3, lambda td, q, k, v: td.attention(q, k, v),
         lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v), compared=False)
gradient("resize", "large, bilinear to 112", ["8x56x56x64"], lambda td, x: td.resize(x, [112, 112], method="bilinear"),
         lambda torch, x: last(torch.nn.functional.interpolate(first(x), (112, 112), mode="bilinear")))

# ---- Losses

over("mse", SHAPES, ["", "other"], lambda td, a, b: td.mse(a, b), lambda torch, a, b: torch.nn.functional.mse_loss(b, a))
for label, rows, classes in (("small", 4, 4), ("tall", 100000, 10), ("words", 256, 32768)):
    case("sparse_softmax_cross_entropy", label, [f"{rows} below{classes}", f"{rows}x{classes}"], lambda td, y, x: td.sparse_softmax_cross_entropy(y, x),
         lambda torch, y, x: torch.nn.functional.cross_entropy(x, y))

    gradient("sparse_softmax_cross_entropy", label, [f"{rows} below{classes}", f"{rows}x{classes}"], lambda td, y, x: td.sparse_softmax_cross_entropy(y, x),
             lambda torch, y, x: torch.nn.functional.cross_entropy(x, y), by=[1])

# ---- From nothing

MADE = {"small": [4, 4], "large": [2048, 2048]}
for label, shape in MADE.items():
    case("zeros", label, [], lambda td, s=shape: td.zeros(s), lambda torch, s=shape: torch.zeros(s))
    case("ones", label, [], lambda td, s=shape: td.ones(s), lambda torch, s=shape: torch.ones(s))
    case("full", label, [], lambda td, s=shape: td.full(s, 1.5), lambda torch, s=shape: torch.full(s, 1.5))
    sizes = "x".join(map(str, shape))
    for op in ("zeros_like", "ones_like"):
        case(op, label, [sizes], lambda td, x, op=op: getattr(td, op)(x), lambda torch, x, op=op: getattr(torch, op)(x))
    case("full_like", label, [sizes], lambda td, x: td.full_like(x, 1.5), lambda torch, x: torch.full_like(x, 1.5))
    case("eye", label, [], lambda td, s=shape: td.eye(s[0]), lambda torch, s=shape: torch.eye(s[0]))
    count = shape[0] * shape[1]
    case("arange", label, [], lambda td, n=count: td.arange(n), lambda torch, n=count: torch.arange(n))
    case("linspace", label, [], lambda td, n=count: td.linspace(0.0, 1.0, n), lambda torch, n=count: torch.linspace(0.0, 1.0, n))


def draws(name, ours, theirs):
    for label, shape in MADE.items():
        case(name, label, [], lambda td, s=shape: ours(td.random, s), lambda torch, s=shape: theirs(torch, s), compared=False)


draws("random::normal", lambda random, s: random.normal(s), lambda torch, s: torch.randn(s))
draws("random::uniform", lambda random, s: random.uniform(s), lambda torch, s: torch.rand(s))
draws("random::integers", lambda random, s: random.integers(s, 0, 1000), lambda torch, s: torch.randint(0, 1000, s, dtype=torch.int32))
draws("random::bernoulli", lambda random, s: random.bernoulli(s, 0.3), lambda torch, s: torch.empty(s, dtype=torch.bool).bernoulli_(0.3))
draws("random::permutation", lambda random, s: random.permutation(s[0]), lambda torch, s: torch.randperm(s[0]))
draws("random::exponential", lambda random, s: random.exponential(s), lambda torch, s: torch.empty(s).exponential_())
draws("random::gumbel", lambda random, s: random.gumbel(s), lambda torch, s: torch.empty(s).exponential_().log_().neg_())
draws("random::laplace", lambda random, s: random.laplace(s), lambda torch, s: torch.distributions.Laplace(0.0, 1.0).sample(s))
draws("random::truncated_normal", lambda random, s: random.truncated_normal(s), lambda torch, s: torch.nn.init.trunc_normal_(torch.empty(s)))
over("dropout", SHAPES, [""], lambda td, x: td.dropout(x, 0.5), lambda torch, x: torch.nn.functional.dropout(x, 0.5), compared=False)
for label, sizes in (("small", SMALL), ("large", "1000x1000")):
    case("random::gamma", label, [f"{sizes} above1"], lambda td, x: td.random.gamma(x, x.shape), lambda torch, x: torch._standard_gamma(x), compared=False)
    case("random::poisson", label, [f"{sizes} above1"], lambda td, x: td.random.poisson(x, x.shape), lambda torch, x: torch.poisson(x), compared=False)
    case("random::beta", label, [f"{sizes} above1", f"{sizes} above1"], lambda td, a, b: td.random.beta(a, b, a.shape),
         lambda torch, a, b: torch.distributions.Beta(a, b).sample(), compared=False)
    case("random::categorical", label, [sizes], lambda td, x: td.random.categorical(x), lambda torch, x: torch.multinomial(torch.softmax(x, -1), 1), compared=False)

# ---- Linear algebra

MATRICES = {str(n): f"{n}x{n}" for n in (16, 64, 256, 512)}
BATCHES = {"batch of 8": "1000x8x8"}


def matrices(name, ours, theirs, word="", shapes=MATRICES, compared=True):
    over(f"linalg::{name}", shapes, [word], lambda td, x: ours(td.linalg, x), lambda torch, x: theirs(torch.linalg, x), compared)


matrices("cholesky", lambda la, x: la.cholesky(x), lambda la, x: la.cholesky(x), "definite")
matrices("solve", lambda la, x: la.solve(x, x[:, :1]), lambda la, x: la.solve(x, x[:, :1]), "definite")
matrices("solve_triangular", lambda la, x: la.solve_triangular(x, x), lambda la, x: la.solve_triangular(x, x, upper=False), "definite")
matrices("inv", lambda la, x: la.inv(x), lambda la, x: la.inv(x), "definite")
matrices("det", lambda la, x: la.det(x), lambda la, x: la.det(x), "definite", {"16": "16x16"})
matrices("slogdet", lambda la, x: la.slogdet(x)[1], lambda la, x: la.slogdet(x)[1], "definite")
matrices("lu", lambda la, x: la.lu(x)[0], lambda la, x: la.lu_factor(x)[0], "definite")
matrices("pinv", lambda la, x: la.pinv(x), lambda la, x: la.pinv(x), "definite")
matrices("expm", lambda la, x: la.expm(x), lambda la, x: la.matrix_exp(x), "half")
matrices("matrix_norm", lambda la, x: la.matrix_norm(x, "nuc"), lambda la, x: la.matrix_norm(x, "nuc"))
matrices("svdvals", lambda la, x: la.svdvals(x), lambda la, x: la.svdvals(x), "definite")
matrices("eigvalsh", lambda la, x: la.eigvalsh(x), lambda la, x: la.eigvalsh(x), "definite")
# Signs of their vectors differ.
for shapes in (MATRICES, BATCHES):
    matrices("qr", lambda la, x: la.qr(x)[1], lambda la, x: la.qr(x)[1], shapes=shapes, compared=False)
    matrices("eigh", lambda la, x: la.eigh(x)[1], lambda la, x: la.eigh(x)[1], shapes=shapes, compared=False)
    matrices("svd", lambda la, x: la.svd(x)[0], lambda la, x: la.svd(x, full_matrices=False)[0], shapes=shapes, compared=False)
over("linalg::cholesky_solve", MATRICES, ["definite", "other"], lambda td, l, b: td.linalg.cholesky_solve(l, b), lambda torch, l, b: torch.cholesky_solve(b, l))
over("linalg::lstsq", {"200 by 50": "200x50"}, [""], lambda td, x: td.linalg.lstsq(x, x[:, :1]), lambda torch, x: torch.linalg.lstsq(x, x[:, :1])[0], compared=False)
over("linalg::vector_norm", SHAPES, [""], lambda td, x: td.linalg.vector_norm(x, 3, -1), lambda torch, x: torch.linalg.vector_norm(x, 3, -1))

# ---- What has no case, and why

WITHOUT = {
    "bit_count": "PyTorch has none",
    "first_equal": "PyTorch has none",
    "linear_scan": "PyTorch has none",
    "random::multinomial": "PyTorch draws classes, not counts",
    "transfer": "a copy to another device",
    "constant": "reads lists of Python",
    "from_callback": "runs code of the user",
    "random::seed": "gives no tensor",
    "random::state": "a state",
    "random::set_state": "a state",
    "print": "prints",
    "check_numerics": "PyTorch has none",
    "assert_that": "gives no tensor",
}
