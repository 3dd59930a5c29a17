#!/usr/bin/env python3
"""Gradients of the sweep's smooth cases against JAX: jax_gradients.py DRIVER FOLDER

DRIVER writes the cases (operands, attributes, weights of the result and our gradients) to FOLDER; here
jax.vjp gives the same in f64.
"""

import json
import math
import os
import subprocess
import sys

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ImportError:
    print("skipped: JAX is not installed", file=sys.stderr)
    sys.exit(77)

jax.config.update("jax_enable_x64", True)

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_,
          "i8": np.int8, "i16": np.int16, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64}
TOLERANCE = {"f64": 1e-10, "f32": 1e-5}


def array(data, record):
    count = math.prod(record["shape"])
    return np.frombuffer(data, DTYPES[record["dtype"]], count, record["offset"]).reshape(record["shape"])


def reduced(function):
    return lambda x, attrs: function(x, axis=tuple(attrs["axes"]), keepdims=bool(attrs["keepdims"]))


def conv2d(x, w, attrs):
    pads = list(zip(attrs["pad_low"], attrs["pad_high"]))
    letters = "DHW"[-len(pads):]
    return jax.lax.conv_general_dilated(x, w, attrs["stride"], pads, lhs_dilation=attrs.get("spread") or None, rhs_dilation=attrs["dilation"],
                                        dimension_numbers=(f"N{letters}C", f"{letters}IO", f"N{letters}C"),
                                        feature_group_count=attrs["groups"])


def conv_kernel(x, by, attrs):
    shape = (*attrs["taps"], x.shape[-1] // attrs["groups"], by.shape[-1])
    return jax.vjp(lambda w: conv2d(x, w, attrs), jnp.zeros(shape, x.dtype))[1](by)[0]


def resample(x, attrs):
    """By the matrix of weights of jax.image, which has no means."""
    axis, size, back = attrs["axis"], attrs["size"], attrs["transposed"]
    n, m = (size, x.shape[axis]) if back else (x.shape[axis], size)
    if n == 0:
        return x
    if attrs["sampling"] == 3:
        weights = np.zeros((m, n))
        for i in range(m):
            weights[i, i * n // m:-(-(i + 1) * n // m)] = 1 / (-(-(i + 1) * n // m) - i * n // m)
    else:
        method = ["nearest", "linear", "cubic"][attrs["sampling"]]
        weights = jax.image.resize(jnp.eye(n), (m, n), method, antialias=bool(attrs["antialias"]))
    return jnp.moveaxis(jnp.tensordot(weights.T if back else weights, x, (1, axis)), 0, axis)


def sliced(x, attrs):
    return x[tuple(places(attrs))] if attrs["begin"] else x


def places(attrs):
    return np.ix_(*[b + s * np.arange(n) for b, n, s in zip(attrs["begin"], attrs["size"], attrs["step"])])


def padded(x, attrs):
    return jax.lax.pad(x, jnp.asarray(attrs["value"], x.dtype), list(zip(attrs["low"], attrs["high"], attrs["inside"])))


def plain(index, size):
    return np.where(index < 0, index + size, index)


def scatter(how, x, index, updates, attrs):
    axis = attrs["axis"]
    where = plain(index, x.shape[axis])
    if attrs["along"]:
        grid = list(np.indices(index.shape))
        grid[axis] = where
        return getattr(x.at[tuple(grid)], how)(updates)
    order = list(range(axis, axis + index.ndim)) + list(range(axis)) + list(range(axis + index.ndim, updates.ndim))
    return jnp.moveaxis(getattr(jnp.moveaxis(x, axis, 0).at[where], how)(updates.transpose(order)), 0, axis)


def cumsum(x, attrs):
    axis = attrs["axis"]
    return jnp.flip(jnp.cumsum(jnp.flip(x, axis), axis), axis) if attrs["reverse"] else jnp.cumsum(x, axis)


def scan(combine):
    """By JAX's own scan over pairs of neighbours, whose gradient it derives."""
    return lambda x, a: jax.lax.associative_scan(combine, x, axis=a["axis"], reverse=bool(a["reverse"]))


def linear_scan(a, b, attrs):
    def step(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]
    return jax.lax.associative_scan(step, (a, b), axis=attrs["axis"], reverse=bool(attrs["reverse"]))[1]


def fourier(x, attrs):
    axis, z = attrs["axes"][0], x[..., 0] + 1j * x[..., 1]
    y = (jnp.fft.ifft(z, axis=axis, norm="forward") if attrs["inverse"] else jnp.fft.fft(z, axis=axis)) * attrs["scale"]
    return jnp.stack([y.real, y.imag], -1)


def real_fourier(x, attrs):
    n = attrs["count"]
    halves = jnp.where((jnp.arange(n // 2 + 1) > 0) & (2 * jnp.arange(n // 2 + 1) != n), .5 if attrs["adjoint"] else 1., 1.)
    if attrs["inverse"]:
        return jnp.fft.irfft((x[..., 0] + 1j * x[..., 1]) * halves, n, norm="forward") * attrs["scale"]
    y = jnp.fft.rfft(x) / halves * attrs["scale"]
    return jnp.stack([y.real, y.imag], -1)


def polygamma(n, x):
    n, x = jnp.broadcast_arrays(n, x)
    return jax.lax.polygamma(jax.lax.stop_gradient(jnp.floor(n + 0.5)), x)


def sort(x, attrs):
    return jnp.sort(x, axis=attrs["axis"], descending=bool(attrs["descending"]))


def top_k(x, attrs):
    values = jax.lax.top_k(jnp.moveaxis(x, attrs["axis"], -1), attrs["k"])[0]
    return jnp.moveaxis(values, -1, attrs["axis"])


def largest_positive(columns, *others):
    """Columns whose element of largest magnitude is positive; the signs of other columns follow."""
    place = jnp.argmax(jnp.abs(columns), -2, keepdims=True)
    sign = jax.lax.stop_gradient(jnp.where(jnp.take_along_axis(columns, place, -2) < 0, -1.0, 1.0))
    return [each * sign for each in (columns, *others)]


def left_vectors(x, attrs):
    u, _, vh = jnp.linalg.svd(x, full_matrices=False)
    return largest_positive(jnp.swapaxes(vh, -1, -2), u)[1] if u.size else u


def orthonormal(x, attrs):
    """A wide matrix has the q of its square part."""
    q, r = jnp.linalg.qr(x[..., :x.shape[-2]])
    return q * jnp.where(jnp.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)[..., None, :] if q.size else q


def triangular(a, b, attrs):
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=bool(attrs["lower"]), transpose_a=bool(attrs["transposed"]),
                                           unit_diagonal=bool(attrs["unit_diagonal"]))


def solve(a, b, attrs):
    return jnp.linalg.solve(jnp.swapaxes(a, -1, -2) if attrs["transposed"] else a, b)


LINALG = {"cholesky": lambda x, a: jnp.linalg.cholesky(x), "expm": lambda x, a: jnp.vectorize(jax.scipy.linalg.expm, signature="(n,n)->(n,n)")(x),
          "eigh": lambda x, a: jnp.linalg.eigh((x + jnp.swapaxes(x, -1, -2)) / 2)[0], "lu": lambda x, a: jax.lax.linalg.lu(x)[0],
          "pinv": lambda x, a: jnp.linalg.pinv(x, rtol=a["rtol"] if a["rtol"] >= 0 else None), "qr": orthonormal, "solve": solve,
          "solve_triangular": triangular, "svd": left_vectors}
UNARY = {"abs": jnp.abs, "cos": jnp.cos, "erf": jax.scipy.special.erf, "erfc": jax.scipy.special.erfc,
         "gelu": lambda x: jax.nn.gelu(x, approximate=False), "silu": jax.nn.silu, "softplus": jax.nn.softplus,
         "exp": jnp.exp, "expm1": jnp.expm1,
         "identity": lambda x: x, "log": jnp.log, "log1p": jnp.log1p, "log2": jnp.log2, "negative": jnp.negative,
         "reciprocal": jnp.reciprocal, "relu": jax.nn.relu, "rsqrt": jax.lax.rsqrt, "sigmoid": jax.nn.sigmoid,
         "sin": jnp.sin, "sqrt": jnp.sqrt, "square": jnp.square, "stop_gradient": jax.lax.stop_gradient,
         "tan": jnp.tan, "tanh": jnp.tanh, "ceil": jnp.ceil, "floor": jnp.floor, "round": jnp.round,
         "sign": jnp.sign, "acos": jnp.arccos, "acosh": jnp.arccosh, "asin": jnp.arcsin, "asinh": jnp.arcsinh, "atan": jnp.arctan,
         "atanh": jnp.arctanh, "cosh": jnp.cosh, "digamma": jax.scipy.special.digamma, "erfinv": jax.scipy.special.erfinv,
         "lgamma": jax.scipy.special.gammaln, "log10": jnp.log10, "sinh": jnp.sinh, "trigamma": lambda x: jax.lax.polygamma(jnp.ones_like(x), x)}
BINARY = {"add": jnp.add, "atan2": jnp.arctan2, "divide": jnp.divide, "maximum": jnp.maximum,
          "minimum": jnp.minimum, "multiply": jnp.multiply, "pow": jnp.power, "remainder": jnp.remainder,
          "subtract": jnp.subtract, "matmul": jnp.matmul, "floor_divide": jnp.floor_divide,
          "copysign": jnp.copysign, "hypot": jnp.hypot, "logaddexp": jnp.logaddexp, "polygamma": polygamma,
          "xlogy": jax.scipy.special.xlogy}
ATTRS = {"max": reduced(jnp.max), "min": reduced(jnp.min), "prod": reduced(jnp.prod), "sum": reduced(jnp.sum),
         "softmax": lambda x, a: jax.nn.softmax(x, a["axis"]),
         "log_softmax": lambda x, a: jax.nn.log_softmax(x, a["axis"]),
         "reshape": lambda x, a: x.reshape(a["shape"]), "transpose": lambda x, a: x.transpose(a["order"]),
         "broadcast_to": lambda x, a: jnp.broadcast_to(x, a["shape"]), "slice": sliced, "pad": padded,
         "cast": lambda x, a: x.astype(DTYPES[a["dtype"]]), "cumsum": cumsum, "sort": sort, "top_k": top_k, "conv2d": conv2d, "conv3d": conv2d, "conv_kernel": conv_kernel,
         "distances": lambda a, b, _: jnp.sqrt(jnp.sum(jnp.square(a[..., :, :, None] - b[..., None, :, :]), -2)),
         "weighted_differences": lambda w, a, b, _: jnp.sum(w[..., None] * (a[..., :, None, :] - b[..., None, :, :]), -2),
         "resample": resample,
         "update": lambda x, y, a: x.at[places(a) if a["begin"] else ()].set(y),
         "gather": lambda x, i, a: jnp.take(x, plain(i, x.shape[a["axis"]]), axis=a["axis"]),
         "take_along_axis": lambda x, i, a: jnp.take_along_axis(x, plain(i, x.shape[a["axis"]]), a["axis"]),
         "cummax": scan(jnp.maximum), "cummin": scan(jnp.minimum), "cumprod": scan(jnp.multiply), "linear_scan": linear_scan, "fourier": fourier, "real_fourier": real_fourier,
         "scatter_add": lambda *x: scatter("add", *x), "concat": lambda *parts: jnp.concatenate(parts[:-1], parts[-1]["axis"])}


def function_of(case):
    op, attrs = case["op"], case["attrs"]
    if op in UNARY:
        return UNARY[op]
    if op in BINARY:
        return BINARY[op]
    if op in LINALG:
        return lambda *operands: LINALG[op](*operands, attrs)
    if op in ATTRS:
        return lambda *operands: ATTRS[op](*operands, attrs)
    if op == "clip":
        return lambda x, low, high: jnp.minimum(high, jnp.maximum(low, x))
    if op == "where":
        return lambda c, x, y: jnp.where(c != 0, x, y)
    return None


def problem(case, data):
    """What is wrong with a case, or None."""
    operands = [array(data, record) for record in case["operands"]]
    by = [i for i, record in enumerate(case["gradients"]) if record is not None]
    function = function_of(case)

    def of_floats(*floats):
        every = list(operands)
        for i, x in zip(by, floats):
            every[i] = x
        return function(*every)

    weights = array(data, case["weights"])
    y, back = jax.vjp(of_floats, *[jnp.asarray(operands[i]) for i in by])
    if y.shape != weights.shape:
        return f"the result is {list(weights.shape)}, that of JAX {list(y.shape)}"
    for i, want in zip(by, back(jnp.asarray(weights))):
        got = array(data, case["gradients"][i])
        room = TOLERANCE[case["weights"]["dtype"]] * (1 + np.abs(want))
        if not np.all(np.abs(got - want) <= room):
            at = tuple(np.argwhere(np.atleast_1d(np.abs(got - want) > room))[0])
            return f"operand {i}, element {at}: {got[at if got.ndim else ()]!r}, JAX has {want[at if got.ndim else ()]!r}"
    return None


def main(driver, folder):
    subprocess.run([driver, folder, "gradients"], check=True)
    with open(os.path.join(folder, "data.bin"), "rb") as file:
        data = file.read()
    compared, unknown, wrong = {}, set(), 0
    with open(os.path.join(folder, "cases.jsonl"), encoding="utf-8") as file:
        cases = [json.loads(line) for line in file]
    for case in cases:
        if function_of(case) is None:
            unknown.add(case["op"])
            continue
        compared[case["op"]] = compared.get(case["op"], 0) + 1
        said = problem(case, data)
        if said:
            wrong += 1
            print(f"{case['text']}: {said}")
    print(f"JAX {jax.__version__}: gradients of {sum(compared.values())} cases of {len(compared)} ops compared, {wrong} differ; "
          f"not compared: {', '.join(sorted(unknown)) or 'none'}")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
