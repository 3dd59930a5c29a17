"""tf.nn: activations, losses, convolutions, pools, normalization."""
import math as _math

import tidemark as td


from .errors import InvalidArgumentError
from .indexing import gather, in_top_k, top_k  # noqa: F401
from .math import l2_normalize, log_sigmoid, sigmoid, softplus, softsign, tanh, zero_fraction  # noqa: F401
from .math import _unary
from .tensor import convert, floats, integers, is_tensor, op, pair, raw, wrap

# ---- activations ---------------------------------------------------------------------------------

relu = _unary("relu", td.relu, True)
relu6 = _unary("relu6", lambda x: td.clip(x, 0, 6), True)
elu = _unary("elu", lambda x: td.where(x > 0, x, td.expm1(td.minimum(x, 0))))
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
selu = _unary("selu", lambda x: SELU_SCALE * td.where(x > 0, x, SELU_ALPHA * td.expm1(td.minimum(x, 0))))
silu = _unary("silu", td.silu)


@op
def swish(features, beta=1.0):
    x = floats(features, "swish")
    return wrap(td.silu(x._t) if isinstance(beta, float) and beta == 1.0 else x._t * td.sigmoid(raw(beta, x.dtype) * x._t))


@op
def leaky_relu(features, alpha=0.2):
    return wrap(td.leaky_relu(raw(features), alpha))


@op
def gelu(features, approximate=False):
    x = floats(features, "gelu")._t
    if not approximate:
        return wrap(td.gelu(x))
    return wrap(0.5 * x * (1 + td.tanh(_math.sqrt(2 / _math.pi) * (x + 0.044715 * x * x * x))))


@op
def crelu(features, axis=-1):
    x = raw(features)
    return wrap(td.relu(td.concat([x, -x], axis)))


@op
def softmax(logits, axis=-1):
    return wrap(td.softmax(floats(logits, "softmax")._t, -1 if axis is None else axis))


@op
def log_softmax(logits, axis=-1):
    return wrap(td.log_softmax(floats(logits, "log_softmax")._t, -1 if axis is None else axis))


# ---- losses of logits ----------------------------------------------------------------------------


@op
def softmax_cross_entropy_with_logits(labels, logits, axis=-1):
    logits = floats(logits, "softmax_cross_entropy_with_logits")
    labels = convert(labels, None if is_tensor(labels) else logits.dtype)
    return wrap(-td.sum(td.cast(labels._t, logits.dtype._td) * td.log_softmax(logits._t, axis), axis=axis))


@op
def sparse_softmax_cross_entropy_with_logits(labels, logits):
    logits, labels = floats(logits, "sparse_softmax_cross_entropy_with_logits"), convert(labels)
    picked = td.take_along_axis(td.log_softmax(logits._t), td.expand_dims(td.cast(labels._t, td.i64), -1), logits.ndim - 1)
    return wrap(-td.squeeze(picked, -1))


@op
def sigmoid_cross_entropy_with_logits(labels=None, logits=None):
    labels, logits = pair(labels, logits, "sigmoid_cross_entropy_with_logits")
    x, z = logits._t, labels._t
    return wrap(td.relu(x) - x * z + td.log1p(td.exp(-td.abs(x))))


@op
def weighted_cross_entropy_with_logits(labels, logits, pos_weight):
    labels, logits = pair(labels, logits, "weighted_cross_entropy_with_logits")
    x, z = logits._t, labels._t
    weight = 1 + (raw(pos_weight, logits.dtype) - 1) * z
    return wrap((1 - z) * x + weight * (td.log1p(td.exp(-td.abs(x))) + td.relu(-x)))


@op
def log_poisson_loss(targets, log_input, compute_full_loss=False):
    z, c = pair(targets, log_input, "log_poisson_loss")
    loss = td.exp(c._t) - c._t * z._t
    if compute_full_loss:
        stirling = z._t * td.log(z._t) - z._t + 0.5 * td.log(2 * _math.pi * z._t)
        loss = loss + td.where(td.logical_and(z._t >= 0, z._t <= 1), td.zeros_like(z._t), stirling)
    return wrap(loss)


@op
def l2_loss(t):
    return wrap(td.sum(td.square(raw(t))) / 2)


# ---- normalization -------------------------------------------------------------------------------


@op
def bias_add(value, bias, data_format=None):
    x, b = pair(value, bias, "bias_add")
    if data_format and data_format.startswith("NC"):
        b = wrap(td.reshape(b._t, [-1] + [1] * (x.ndim - 2)))
    return wrap(x._t + b._t)


@op
def moments(x, axes, shift=None, keepdims=False):
    x, at = raw(x), integers(axes, "moments: axes")
    return wrap(td.mean(x, axis=at, keepdims=keepdims)), wrap(td.var(x, axis=at, keepdims=keepdims))


@op
def weighted_moments(x, axes, frequency_weights, keepdims=False):
    x, w = pair(x, frequency_weights, "weighted_moments")
    at = integers(axes, "weighted_moments: axes")
    weights = td.broadcast_to(w._t, x._t.shape)
    total = td.sum(weights, axis=at, keepdims=True)
    mean = td.sum(weights * x._t, axis=at, keepdims=True) / total
    variance = td.sum(weights * td.square(x._t - mean), axis=at, keepdims=True) / total
    return tuple(wrap(v if keepdims else td.squeeze(v, at)) for v in (mean, variance))


@op
def batch_normalization(x, mean, variance, offset, scale, variance_epsilon):
    x = convert(x)
    part = lambda v: raw(v, None if is_tensor(v) else x.dtype)
    inverse = td.rsqrt(part(variance) + variance_epsilon)
    if scale is not None:
        inverse = inverse * part(scale)
    y = x._t * inverse - part(mean) * inverse
    return wrap(y if offset is None else y + part(offset))


# ---- lookups and dropout -------------------------------------------------------------------------


def embedding_lookup(params, ids, max_norm=None, name=None):
    return gather(params, ids)


@op
def dropout(x, rate, noise_shape=None, seed=None):
    x = floats(x, "dropout")
    if isinstance(rate, (int, float)) and rate == 0:
        return x
    rate = float(rate) if not is_tensor(rate) else float(convert(rate))
    if noise_shape is None:
        return wrap(td.dropout(x._t, rate))
    sizes = [n if s in (None, 1) and s is None else s for s, n in zip(integers_or_none(noise_shape), x._t.shape)]
    keep = td.random.bernoulli(sizes, 1 - rate)
    return wrap(td.where(keep, x._t / (1 - rate), td.zeros([], x._t.dtype)))


def integers_or_none(values):
    return [None if v is None else integers([v], "noise_shape")[0] for v in values]


# ---- convolutions and pools ----------------------------------------------------------------------


def _two(value, what, channels_last=True):
    """Strides, sizes and dilations: one number, two, or four with ones for batch and channels."""
    values = [1] if value is None else integers(value, what)
    if len(values) == 1:
        return values * 2
    if len(values) == 2:
        return values
    return values[1:3] if channels_last else values[2:4]


def _layout(data_format, rank=4):
    text = (data_format or ("NHWC" if rank == 4 else "NWC")).upper()
    return "nchw" if text.startswith("NC") else "nhwc"


def _padded(x, padding, layout):
    """Explicit padding becomes a pad of its own; "SAME" and "VALID" are passed on."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or a list of pairs, not {padding!r}")
        return x, padding.lower()
    return td.pad(x, [tuple(p) for p in padding]), "valid"


@op
def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None):
    x, w = pair(input, filters, "conv2d")
    layout = _layout(data_format)
    channels_last = layout == "nhwc"
    native, words = _padded(x._t, padding, layout)
    channels = native.shape[3 if channels_last else 1]
    groups = channels // w._t.shape[2] if isinstance(channels, int) else 1
    if isinstance(channels, int) and groups * w._t.shape[2] != channels:
        raise InvalidArgumentError(f"conv2d: the image {x.dtype.name}{x.shape} has {channels} channels, and the filters {w.shape} take {w._t.shape[2]}")
    return wrap(td.conv2d(native, w._t, strides=_two(strides, "strides", channels_last), padding=words,
                          dilations=_two(dilations, "dilations", channels_last), groups=groups, layout=layout))


@op
def conv1d(input, filters, stride, padding, data_format="NWC", dilations=None):
    x, w = pair(input, filters, "conv1d")
    native = x._t if _layout(data_format, 3) == "nhwc" else td.transpose(x._t, [0, 2, 1])
    steps, gaps = integers(stride, "stride"), [1] if dilations is None else integers(dilations, "dilations")
    step, gap = steps[-2] if len(steps) == 3 else steps[0], gaps[-2] if len(gaps) == 3 else gaps[0]
    y = conv2d(wrap(td.expand_dims(native, 1)), wrap(td.expand_dims(w._t, 0)), [1, step], padding, dilations=[1, gap])._t
    y = td.squeeze(y, 1)
    return wrap(y if _layout(data_format, 3) == "nhwc" else td.transpose(y, [0, 2, 1]))


@op
def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None):
    x, w = pair(input, filter, "depthwise_conv2d")
    layout = _layout(data_format)
    height, width, channels, times = w._t.shape
    kernel = td.reshape(w._t, [height, width, 1, channels * times])
    native, words = _padded(x._t, padding, layout)
    last = layout == "nhwc"
    return wrap(td.conv2d(native, kernel, strides=_two(strides, "strides", last), padding=words,
                          dilations=_two(dilations, "dilations", last), groups=channels, layout=layout))


@op
def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None):
    deep = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(deep, pointwise_filter, 1, "VALID", data_format or "NHWC")


@op
def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None):
    rank = convert(input).ndim
    if rank == 4:
        return conv2d(input, filters, strides or 1, padding, data_format or "NHWC", dilations)
    if rank == 3:
        return conv1d(input, filters, strides or 1, padding, data_format or "NWC", dilations)
    raise NotImplementedError(f"tf.nn.convolution over {rank - 2} axes: Tidemark has 1 and 2 so far")


def _pool2d(native, what):
    def function(input, ksize, strides, padding, data_format="NHWC"):
        x, layout = convert(input), _layout(data_format)
        last = layout == "nhwc"
        return wrap(native(x._t, size=_two(ksize, "ksize", last), strides=_two(strides, "strides", last), padding=padding.lower(), layout=layout))

    function.__name__ = what
    return op(function)


def _pool1d(native, what):
    def function(input, ksize, strides, padding, data_format="NWC"):
        x = convert(input)
        size, step = integers(ksize, "ksize"), integers(strides, "strides")
        size, step = size[-2] if len(size) == 3 else size[0], step[-2] if len(step) == 3 else step[0]
        y = native(td.expand_dims(x._t, 1), size=[1, size], strides=[1, step], padding=padding.lower())
        return wrap(td.squeeze(y, 1))

    function.__name__ = what
    return op(function)


max_pool2d, avg_pool2d = _pool2d(td.max_pool, "max_pool2d"), _pool2d(td.avg_pool, "avg_pool2d")
max_pool1d, avg_pool1d = _pool1d(td.max_pool, "max_pool1d"), _pool1d(td.avg_pool, "avg_pool1d")


def max_pool(input, ksize, strides, padding, data_format=None, name=None):
    return (max_pool1d if convert(input).ndim == 3 else max_pool2d)(input, ksize, strides, padding)


def avg_pool(input, ksize, strides, padding, data_format=None, name=None):
    return (avg_pool1d if convert(input).ndim == 3 else avg_pool2d)(input, ksize, strides, padding)


@op
def space_to_depth(input, block_size, data_format="NHWC"):
    x = raw(input)
    n, h, w, c = x.shape
    b = block_size
    parts = td.transpose(td.reshape(x, [n, h // b, b, w // b, b, c]), [0, 1, 3, 2, 4, 5])
    return wrap(td.reshape(parts, [n, h // b, w // b, b * b * c]))


@op
def depth_to_space(input, block_size, data_format="NHWC"):
    x = raw(input)
    n, h, w, c = x.shape
    b = block_size
    parts = td.transpose(td.reshape(x, [n, h, w, b, b, c // (b * b)]), [0, 1, 3, 2, 4, 5])
    return wrap(td.reshape(parts, [n, h * b, w * b, c // (b * b)]))
