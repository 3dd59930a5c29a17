"""What the calls of edges.py mean, in JAX. Where we differ on purpose, docs/semantics.md says so, and the function is ours."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": jnp.bfloat16, "i32": np.int32, "i64": np.int64,
         "bool": np.bool_, "i8": np.int8, "i16": np.int16, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}


def over(function):
    """A reduction with axes as ours has them: all where none are named."""
    return lambda x, axes=None, keepdims=0: function(x, axis=tuple(axes) if axes is not None else None, keepdims=bool(keepdims))


def root(squares):
    """semantics.md: the slopes of norm and std are 0 where the sum of squares is."""
    none = squares == 0
    return jnp.where(none, 0, jnp.sqrt(jnp.where(none, 1, squares)))


def clip(x, low, high):
    """semantics.md: the gradient goes to one operand, at a bound to x."""
    below = x < low
    inside = jnp.where(below, low, x)
    result = jnp.where(high < inside, high, inside)
    return jnp.where(jnp.isnan(x) | jnp.isnan(low) | jnp.isnan(high), jnp.nan, result)


@jax.custom_jvp
def size(x):
    """semantics.md: the slope of abs at 0 is 0."""
    return jnp.abs(x)


size.defjvp(lambda x, dx: (jnp.abs(x[0]), dx[0] * jnp.sign(x[0])))


def layer_norm(x, epsilon=1e-5):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(jnp.square(centred), -1, keepdims=True) + epsilon)


def attention(q, k, v, mask=None, causal=0):
    scores = q @ jnp.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    keep = jnp.ones(scores.shape, bool) if mask is None else jnp.broadcast_to(mask, scores.shape)
    if causal:
        keep = keep & jnp.tril(jnp.ones(scores.shape, bool))
    sees = jnp.any(keep, -1, keepdims=True)
    weights = jax.nn.softmax(jnp.where(keep, scores, jnp.where(sees, -jnp.inf, 0)), -1)
    return jnp.where(sees, weights @ v, 0)


def window(x, size, strides, padding, outside, combine):
    strides = strides or size
    return jax.lax.reduce_window(x, outside, combine, (1, *size, 1), (1, *strides, 1), padding.upper())


def avg_pool(x, size=(2, 2), strides=None, padding="valid"):
    total = window(x, size, strides, padding, 0., jax.lax.add)
    return total / window(jnp.ones_like(x), size, strides, padding, 0., jax.lax.add)


def max_pool(x, size=(2, 2), strides=None, padding="valid"):
    return window(x, size, strides, padding, -jnp.inf, jax.lax.max)


def conv2d(x, w, padding="valid"):
    return jax.lax.conv_general_dilated(x, w, (1, 1), padding.upper(), dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolved(x, w, padding="valid", groups=1, spread=None):
    letters = "DHW"[3 - (x.ndim - 2):]
    return jax.lax.conv_general_dilated(x, w, (1,) * len(letters), padding.upper() if isinstance(padding, str) else padding, lhs_dilation=spread,
                                        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"), feature_group_count=groups)


def transposed(*strides):
    """The gradient by the image: of pixels as far apart as the strides, with the kernel turned around."""
    def function(x, w):
        axes = len(strides)
        kernel = jnp.swapaxes(jnp.flip(w, range(axes)), -1, -2)
        return convolved(x, kernel, [(n - 1, n - 1) for n in w.shape[:axes]], spread=strides)
    return function


def taps_of(x, sizes, padding="valid"):
    """What each place of a window sees; windows go in steps of 1. Nothing is multiplied, so infinities stay where they are."""
    if padding == "same":
        x = jnp.pad(x, [(0, 0), *[((n - 1) // 2, n // 2) for n in sizes], (0, 0)])
    out = [n - k + 1 for n, k in zip(x.shape[1:], sizes)]
    return [x[(slice(None), *[slice(i, i + n) for i, n in zip(tap, out)])] for tap in np.ndindex(*sizes)]


def depthwise(x, w):
    taps = w.reshape(-1, *w.shape[-2:])
    y = sum(seen[..., None] * tap for seen, tap in zip(taps_of(x, w.shape[:-2]), taps))
    return y.reshape(*y.shape[:-2], y.shape[-2] * y.shape[-1])


def pool_of(function):
    return lambda x, padding="valid": function(x, (2,) * (x.ndim - 2), None, padding)


def resized(x, shape, method="linear", antialias=0):
    return jax.image.resize(x, (x.shape[0], *shape, x.shape[-1]), method, antialias=bool(antialias))


def adaptive(x, sizes, combine):
    for axis, size in enumerate(sizes, 1):
        n = x.shape[axis]
        x = jnp.stack([combine(jax.lax.slice_in_dim(x, i * n // size, -(-(i + 1) * n // size), axis=axis), axis) for i in range(size)], axis)
    return x


def patches(x, sizes, padding="valid"):
    return jnp.concatenate(taps_of(x, sizes, padding), -1)


def pixel_shuffle(x, factor=2):
    n, h, w, c = x.shape
    return x.reshape(n, h, w, c // factor**2, factor, factor).transpose(0, 1, 4, 2, 5, 3).reshape(n, h * factor, w * factor, c // factor**2)


def pixel_unshuffle(x, factor=2):
    n, h, w, c = x.shape
    return x.reshape(n, h // factor, factor, w // factor, factor, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // factor, w // factor, c * factor**2)


def huber(wanted, given, delta=1.0):
    d = given - wanted
    is_small = jnp.abs(d) <= delta
    small = jnp.where(is_small, d, 0)  # The square of an infinity has no slope, though it is not used.
    return jnp.mean(jnp.where(is_small, small * small / 2, delta * (jnp.abs(d) - delta / 2)))


def log_of(p):
    """losses.h: a probability of 0 counts as the least normal f32."""
    return jnp.log(jnp.where(p < 1.1754944e-38, 1.1754944e-38, p))


def binary_crossentropy(y, x, logits=1, smooth=0.0):
    y = y * (1 - smooth) + smooth / 2
    if not logits:
        return -jnp.mean(y * log_of(x) + (1 - y) * log_of(1 - x))
    return jnp.mean(y * jax.nn.softplus(-x) + (1 - y) * jax.nn.softplus(x))


def categorical_crossentropy(y, x, logits=1, smooth=0.0):
    y = y * (1 - smooth) + smooth / y.shape[-1]
    return -jnp.mean(jnp.sum(y * (jax.nn.log_softmax(x, -1) if logits else log_of(x)), -1))


def sparse_crossentropy(labels, x, logits=1):
    rows = jax.scipy.special.logsumexp(x, -1) if logits else 0
    picked = jnp.take_along_axis(x, labels[..., None], -1)[..., 0]
    return jnp.mean(rows - (picked if logits else log_of(picked)))


def cosine(y, x):
    """losses.h: a vector of zeros has cosine 0 with all others."""
    length = lambda v: jnp.maximum(jnp.sqrt(jnp.sum(v * v, -1)), 1e-8)
    return jnp.mean(1 - jnp.sum(x * y, -1) / (length(x) * length(y)))


def focal(y, x, gamma=2.0):
    p = jax.nn.sigmoid(x)
    entropy = y * jax.nn.softplus(-x) + (1 - y) * jax.nn.softplus(x)
    return jnp.mean((y * (1 - p) + (1 - y) * p) ** gamma * entropy)


def kl_divergence(y, x, logits=1):
    return jnp.mean(jnp.sum(y * (log_of(y) - (jax.nn.log_softmax(x, -1) if logits else log_of(x))), -1))


def triplet(anchor, positive, negative, margin=1.0):
    distance = lambda a, b: jnp.sqrt(jnp.sum((a - b) ** 2, -1))
    return jnp.mean(jax.nn.relu(distance(anchor, positive) - distance(anchor, negative) + margin))


def ctc(labels, logits):
    """All alignments one by one: of each step a class, without repeats and then without blanks the labels."""
    losses = []
    for label, steps in zip(np.asarray(labels), jax.nn.log_softmax(logits, -1)):
        ways = []
        for path in itertools.product(range(steps.shape[1]), repeat=steps.shape[0]):
            kept = [c for i, c in enumerate(path) if c != 0 and (i == 0 or path[i - 1] != c)]
            if kept == list(label):
                ways.append(sum(steps[i, c] for i, c in enumerate(path)))
        losses.append(-jax.scipy.special.logsumexp(jnp.stack(ways)))
    return jnp.mean(jnp.stack(losses))


def shifted(function):
    """semantics.md: counts outside the width act like the width."""
    def apply(a, b):
        inside = (b >= 0) & (b < 32)
        beyond = 0 if function is jnp.left_shift else jnp.where(a < 0, -1, 0)
        return jnp.where(inside, function(a, jnp.where(inside, b, 0)), beyond)
    return apply


def by_integers(function):
    """semantics.md: an integer divided by zero gives 0."""
    return lambda a, b: function(a, b) if jnp.issubdtype(a.dtype, jnp.floating) else jnp.where(b == 0, 0, function(a, jnp.where(b == 0, 1, b)))


@jax.custom_jvp
def float_power(a, b):
    """semantics.md: the slope by a at b = 0 and by b at a = 0 is 0."""
    return jnp.power(a, b)


@float_power.defjvp
def _(given, directions):
    a, b = given
    # Where b is 0 this is b / a: 0, with the slope by b that b * a^(b - 1) has.
    flat = b == 0
    divisor = jnp.where(flat & (jnp.abs(a) > 0), a, 1)
    by_a = jnp.where(flat, b / divisor, b * float_power(jnp.where(flat, 1, a), b - 1))
    by_b = float_power(a, b) * jnp.log(jnp.where(a == 0, 1, a))
    return float_power(a, b), directions[0] * by_a + directions[1] * by_b


def whole_power(a, b):
    """semantics.md: integers wrap; to a negative power all but 1 and -1 give 0."""
    if b < 0:
        return a**(b % 2) if a in (1, -1) else 0
    return (pow(int(a), int(b), 2**32) + 2**31) % 2**32 - 2**31


def power(a, b):
    if jnp.issubdtype(a.dtype, jnp.floating):
        return float_power(a, b)
    return np.array([whole_power(int(x), int(y)) for x, y in zip(a, b)])


UNARY = {
    "abs": size, "ceil": jnp.ceil, "cos": jnp.cos, "erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc,
    "exp": jnp.exp, "expm1": jnp.expm1, "floor": jnp.floor, "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "identity": lambda x: x, "isfinite": jnp.isfinite, "isinf": jnp.isinf, "isnan": jnp.isnan, "log": jnp.log,
    "log1p": jnp.log1p, "log2": jnp.log2, "logical_not": jnp.logical_not, "negative": jnp.negative,
    "reciprocal": jnp.reciprocal, "relu": jax.nn.relu, "round": jnp.round, "rsqrt": jax.lax.rsqrt,
    "sigmoid": jax.nn.sigmoid, "sign": jnp.sign, "silu": jax.nn.silu, "sin": jnp.sin, "softplus": jax.nn.softplus,
    "acos": jnp.arccos, "acosh": jnp.arccosh, "asin": jnp.arcsin, "asinh": jnp.arcsinh, "atan": jnp.arctan, "atanh": jnp.arctanh,
    "cosh": jnp.cosh, "erfinv": jax.scipy.special.erfinv, "lgamma": jax.scipy.special.gammaln, "log10": jnp.log10, "sinh": jnp.sinh,
    "digamma": jax.scipy.special.digamma, "trigamma": lambda x: jax.scipy.special.polygamma(1, x), "nan_to_num": jnp.nan_to_num,
    "sqrt": jnp.sqrt, "square": jnp.square, "tan": jnp.tan, "tanh": jnp.tanh, "stop_gradient": jax.lax.stop_gradient,
    "leaky_relu": jax.nn.leaky_relu, "dropout": lambda x: x, "activation::elu": jax.nn.elu,
    "activation::gelu": lambda x: jax.nn.gelu(x, approximate=False), "activation::leaky_relu": jax.nn.leaky_relu,
    "activation::relu": jax.nn.relu, "activation::sigmoid": jax.nn.sigmoid, "activation::silu": jax.nn.silu,
    "activation::softplus": jax.nn.softplus, "activation::tanh": jnp.tanh,
}
BINARY = {
    "add": jnp.add, "atan2": jnp.arctan2, "divide": jnp.divide, "equal": jnp.equal, "floor_divide": by_integers(jnp.floor_divide),
    "greater": jnp.greater, "greater_equal": jnp.greater_equal, "less": jnp.less, "less_equal": jnp.less_equal,
    "logical_and": jnp.logical_and, "logical_or": jnp.logical_or, "logical_xor": jnp.logical_xor, "maximum": jnp.maximum,
    "minimum": jnp.minimum, "multiply": jnp.multiply, "not_equal": jnp.not_equal, "pow": power,
    "remainder": by_integers(jnp.remainder), "subtract": jnp.subtract, "copysign": jnp.copysign, "hypot": jnp.hypot,
    "logaddexp": jnp.logaddexp, "polygamma": lambda n, x: jax.lax.polygamma(jax.lax.stop_gradient(jnp.floor(jnp.broadcast_to(n, x.shape) + 0.5)), x), "nextafter": jnp.nextafter, "xlogy": jax.scipy.special.xlogy, "isclose": jnp.isclose,
}
BITS = {"bitwise_and": jnp.bitwise_and, "bitwise_or": jnp.bitwise_or, "bitwise_xor": jnp.bitwise_xor,
        "left_shift": shifted(jnp.left_shift), "right_shift": shifted(jnp.right_shift)}
REDUCE = {
    "all": over(jnp.all), "any": over(jnp.any), "argmax": over(lambda x, axis, keepdims: jnp.argmax(x, axis[0], keepdims=keepdims)),
    "argmin": over(lambda x, axis, keepdims: jnp.argmin(x, axis[0], keepdims=keepdims)), "max": over(jnp.max), "min": over(jnp.min),
    "prod": over(jnp.prod), "sum": over(jnp.sum), "mean": over(jnp.mean), "var": over(jnp.var),
    "std": over(lambda x, **how: root(jnp.var(x, **how))), "norm": over(lambda x, **how: root(jnp.sum(jnp.square(x), **how))),
    "logsumexp": over(jax.scipy.special.logsumexp),
}
def steps(x, axis, reverse, first, step):
    """One element after another along an axis."""
    count = x.shape[axis]
    if count == 0:
        return first(x, 0)
    made, state = {}, None
    for i in range(count - 1, -1, -1) if reverse else range(count):
        state = first(x, i) if state is None else step(state, i)
        made[i] = state
    return jnp.concatenate([made[i] for i in range(count)], axis)


def at_place(x, i, axis):
    return jax.lax.slice_in_dim(x, i, i + 1, axis=axis) if x.shape[axis] else x


def moved_on(x, axis, reverse, fill):
    if x.shape[axis] == 0:
        return x
    widths = [(0, 0, 0)] * x.ndim
    widths[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return jax.lax.pad(x, jnp.array(fill, x.dtype), widths)


def running(combine, neutral):
    def scan(x, axis=0, reverse=0, exclusive=0):
        x = moved_on(x, axis, reverse, neutral) if exclusive else x
        return steps(x, axis, reverse, lambda y, i: at_place(y, i, axis), lambda state, i: combine(state, at_place(x, i, axis)))
    return scan


def logadd(a, b):
    most = jax.lax.stop_gradient(jnp.maximum(a, b))
    base = jnp.where(jnp.abs(most) == jnp.inf, 0.0, most)
    return jnp.where(most == jnp.inf, most, base + jnp.log(jnp.exp(a - base) + jnp.exp(b - base)))


def linear_scan(a, b, axis=0, reverse=0):
    return steps(b, axis, reverse, lambda y, i: at_place(y, i, axis),
                 lambda state, i: at_place(a, i, axis) * state + at_place(b, i, axis))


def fourier(x, axes, inverse, scale):
    """The sums of the definition."""
    n, axis = x.shape[axes[0]], axes[0]
    angles = (2 if inverse else -2) * np.pi * np.outer(np.arange(n), np.arange(n)) / n
    c, s = np.cos(angles) * scale, np.sin(angles) * scale
    times = lambda matrix, part: jnp.moveaxis(jnp.moveaxis(part, axis, -1) @ matrix, -1, axis)
    re, im = x[..., 0], x[..., 1]
    return jnp.stack([times(c, re) - times(s, im), times(s, re) + times(c, im)], -1)


def searchsorted(row, values, right=0):
    before = lambda a, b: (a < b) | ((b != b) & (a == a))
    r, v = row[None, :], values[:, None]
    return jnp.sum(before(r, v) | (bool(right) & ~before(v, r)), 1).astype(np.int64)


def quantile(x, q, axis=0, method=0):
    x = jnp.sort(jnp.moveaxis(x, axis, -1), axis=-1)
    place = q * (x.shape[-1] - 1)
    low, high = int(np.floor(place)), int(np.ceil(place))
    below, above = x[..., low], x[..., high]
    part = [place - low, 0, 1, .5 if low != high else 0, np.round(place) - low][method]
    mixed = jnp.where(below == above, below, below + (above - below) * part) if 0 < part < 1 else below if part == 0 else above
    return jnp.where(x[..., -1] != x[..., -1], x[..., -1], mixed)


def median(x, axes, keepdims=0):
    x = jnp.sort(x, axis=axes[0])
    pick = lambda i: jnp.squeeze(at_place(x, i, axes[0]), axes[0])
    count, last = x.shape[axes[0]], pick(x.shape[axes[0]] - 1)
    return jnp.where(last != last, last, (pick((count - 1) // 2) + pick(count // 2)) * .5)


def scatter(combine):
    def scattered(x, index, updates):
        rows = [x[i] for i in range(x.shape[0])]
        for place, update in zip(np.asarray(index).tolist(), [updates[i] for i in range(len(index))]):
            rows[place] = combine(rows[place], update)
        return jnp.stack(rows)
    return scattered


def segments(combine, empty, mean=False):
    def combined(data, index):
        rows, index = [], np.asarray(index).tolist()
        for segment in range(3):
            mine = [data[i] for i, place in enumerate(index) if place == segment]
            total = mine[0] if mine else jnp.full(data.shape[1:], empty, data.dtype)
            for each in mine[1:]:
                total = combine(total, each)
            rows.append(total / max(1, len(mine)) if mean else total)
        return jnp.stack(rows)
    return combined


def scatter_nd(index, updates, shape):
    y = jnp.zeros(shape, updates.dtype)
    for i, place in enumerate(np.asarray(index).tolist()):
        mask = np.zeros(shape)
        mask[tuple(place)] = 1
        y = jnp.where(mask == 1, y + updates[i], y)
    return y


def bincount(x, weights, length):
    return jnp.stack([sum((weights[i] for i, place in enumerate(np.asarray(x).tolist()) if place == n), jnp.zeros((), weights.dtype))
                      for n in range(length)])


ROWS = {
    "softmax": lambda x, axis: jax.nn.softmax(x, axis), "log_softmax": lambda x, axis: jax.nn.log_softmax(x, axis),
    "cumsum": running(lambda a, b: a + b, 0),
    # Descending, too, equal elements keep their order, and with it their slopes: jnp.sort reverses them.
    "sort": lambda x, axis, descending=0: jnp.take_along_axis(x, jnp.argsort(x, axis, descending=bool(descending)), axis),
    "argsort": lambda x, axis, descending=0: jnp.argsort(x, axis, descending=bool(descending)),
}
LAST = {"layer_norm": layer_norm, "rms_norm": lambda x, epsilon=1e-5: x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + epsilon),
        "activation::softmax": lambda x: jax.nn.softmax(x, -1), "activation::log_softmax": lambda x: jax.nn.log_softmax(x, -1)}
OTHERS = {
    "cumprod": running(lambda a, b: a * b, 1), "cummax": running(jnp.maximum, -np.inf), "cummin": running(jnp.minimum, np.inf),
    "cumlogsumexp": running(logadd, -np.inf), "linear_scan": linear_scan, "fourier": fourier, "searchsorted": searchsorted, "quantile": quantile,
    "median": median, "scatter_max": scatter(jnp.maximum), "scatter_min": scatter(jnp.minimum), "scatter_mul": scatter(lambda a, b: a * b),
    "segment_max": segments(jnp.maximum, -np.inf), "segment_min": segments(jnp.minimum, np.inf), "segment_sum": segments(lambda a, b: a + b, 0),
    "segment_mean": segments(lambda a, b: a + b, 0, True), "segment_prod": segments(lambda a, b: a * b, 1), "scatter_nd": scatter_nd,
    "bincount": bincount,
    "arange": lambda range: jnp.arange(*range, dtype=np.int32), "attention": attention, "avg_pool": avg_pool, "bitwise_invert": jnp.invert,
    "broadcast_to": lambda x, shape: jnp.broadcast_to(x, shape), "cast": lambda x, to: x.astype(NUMPY[to]), "clip": clip,
    "concat": lambda *x, axis=0: jnp.concatenate(x, axis), "conv2d": conv2d, "conv1d": convolved, "conv3d": convolved,
    "conv_transpose1d": transposed(2), "conv_transpose2d": transposed(2, 3), "conv_transpose3d": transposed(1, 2, 3),
    "depthwise_conv1d": depthwise, "depthwise_conv2d": depthwise,
    "separable_conv1d": lambda x, w, p: convolved(depthwise(x, w), p), "separable_conv2d": lambda x, w, p: convolved(depthwise(x, w), p),
    "resample": lambda x, shape: resized(x, shape, "cubic"), "resize": resized, "pixel_shuffle": pixel_shuffle, "pixel_unshuffle": pixel_unshuffle,
    "max_pool1d": pool_of(max_pool), "avg_pool1d": pool_of(avg_pool), "max_pool3d": pool_of(max_pool), "avg_pool3d": pool_of(avg_pool),
    "adaptive_max_pool": lambda x, sizes: adaptive(x, sizes, jnp.max), "adaptive_avg_pool": lambda x, sizes: adaptive(x, sizes, jnp.mean),
    "extract_patches": patches,
    "einsum": lambda *x, how: jnp.einsum(how.replace(">", "->"), *x), "embedding": lambda x, i: x[i],
    "allclose": jnp.allclose, "bit_count": lambda x: jnp.bitwise_count(x.view(np.uint32)).astype(x.dtype),
    "cdist": lambda a, b: root(jnp.sum(jnp.square(a[..., :, None, :] - b[..., None, :, :]), -1)), "cross": jnp.cross,
    "diag": lambda x, offset=0: jnp.diag(x, offset), "diagonal": lambda x, offset=0: jnp.diagonal(x, offset, -2, -1),
    "diff": lambda x, n=1, axis=-1: jnp.diff(x, n, axis), "kron": jnp.kron,
    "meshgrid": lambda *x, ij=0: jnp.stack(jnp.meshgrid(*x, indexing="ij" if ij else "xy")),
    "roll": lambda x, shift, axis=None: jnp.roll(x, shift, axis),
    "expand_dims": lambda x, axis: jnp.expand_dims(x, axis), "flip": jnp.flip,
    "first_equal": lambda x: jnp.argmax(x[:, None] == x[None, :], 1) if x.size else jnp.zeros(0, np.int64),
    "gather": lambda x, i, axis=0: jnp.take(x, i, axis=axis), "matmul": jnp.matmul, "max_pool": max_pool,
    "mse": lambda a, b: jnp.mean(jnp.square(b - a)), "one_hot": lambda i, depth=3: jax.nn.one_hot(i, depth, dtype=np.float32),
    "outer": jnp.outer, "pad": lambda x, widths, value=0.0: jnp.pad(x, list(zip(widths[::2], widths[1::2])), constant_values=value),
    "put": lambda x, i, y: x.at[i].set(y), "repeat": lambda x, count=2: jnp.repeat(x, count),
    "reshape": lambda x, shape: jnp.reshape(x, shape), "scatter_add": lambda x, i, y: x.at[i].add(y),
    "slice": lambda x, step=1: x[::step], "sparse_softmax_cross_entropy": sparse_crossentropy,
    "split": lambda x, parts=2: jnp.split(x, parts)[-1], "squeeze": jnp.squeeze, "stack": lambda *x, axis=0: jnp.stack(x, axis),
    "take_along_axis": lambda x, i, axis: jnp.take_along_axis(x, i, axis), "tensordot": lambda a, b, axes=2: jnp.tensordot(a, b, axes),
    "top_k": lambda x, k=1, axis=0: jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(x, axis, -1), k)[0], -1, axis),
    "tile": lambda x, counts: jnp.tile(x, counts), "transpose": jnp.transpose, "tril": jnp.tril, "triu": jnp.triu,
    "unstack": lambda x: x[-1], "update": lambda x, y: x.at[0].set(y), "where": lambda c, a, b: jnp.where(c, a, b),
    "losses::mse": lambda a, b: jnp.mean(jnp.square(b - a)), "losses::mae": lambda a, b: jnp.mean(size(b - a)),
    "losses::hinge": lambda y, x: jnp.mean(jax.nn.relu(1 - y * x)), "losses::cosine": cosine, "losses::focal": focal,
    "losses::kl_divergence": kl_divergence, "losses::triplet": triplet, "losses::ctc": ctc,
    "losses::poisson": lambda y, x, logits=1: jnp.mean(jnp.exp(x) - y * x if logits else x - y * log_of(x)),
    "losses::huber": huber, "losses::binary_crossentropy": binary_crossentropy,
    "losses::categorical_crossentropy": categorical_crossentropy, "losses::sparse_categorical_crossentropy": sparse_crossentropy,
}
ELEMENTWISE = {**UNARY, **BINARY, "clip": clip}
MEANING = {**UNARY, **BINARY, **BITS, **REDUCE, **ROWS, **LAST, **OTHERS}
# edges_index.py has subscripts. Draws have no values to compare: tests/unit/emit/library/random_test.cc holds them to their distributions.
DRAWS = {"random_bernoulli", "random_by_element", "random_fold", "random_integers", "random_normal", "random_permutation", "random_uniform"}
