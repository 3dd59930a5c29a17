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


def _each(value, what, axes, channels_last=True):
    """Strides, sizes and dilations: one number, one for each axis of the image, or also ones for batch and channels."""
    values = [1] if value is None else integers(value, what)
    if len(values) == 1:
        return values * axes
    if len(values) == axes:
        return values
    return values[1 : axes + 1] if channels_last else values[2:]


def _layout(data_format):
    return "nchw" if (data_format or "N").upper().startswith("NC") else "nhwc"


def _padding(padding, layout, rank):
    """A word, or the pairs of the image's axes."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or a list of pairs, not {padding!r}")
        return padding.lower()
    pairs = [tuple(p) for p in padding]
    return pairs[1:-1] if len(pairs) == rank and layout == "nhwc" else pairs[2:] if len(pairs) == rank else pairs


def _one(items, axes):
    """Functions of one axis take a number."""
    return items[0] if axes == 1 else items


CONVOLUTIONS = {1: td.conv1d, 2: td.conv2d, 3: td.conv3d}


def _convolution(axes, what):
    def run(input, filters, strides, padding, data_format, dilations):
        x, w = pair(input, filters, what)
        layout = _layout(data_format)
        last = layout == "nhwc"
        channels = x._t.shape[-1 if last else 1]
        groups = channels // w._t.shape[-2] if isinstance(channels, int) else 1
        if isinstance(channels, int) and groups * w._t.shape[-2] != channels:
            raise InvalidArgumentError(f"{what}: the image {x.dtype.name}{x.shape} has {channels} channels, and the filters {w.shape} take {w._t.shape[-2]}")
        return wrap(CONVOLUTIONS[axes](x._t, w._t, strides=_one(_each(strides, "strides", axes, last), axes), padding=_padding(padding, layout, axes + 2),
                                       dilations=_one(_each(dilations, "dilations", axes, last), axes), groups=groups, layout=layout))

    return run


_conv1d, _conv2d, _conv3d = _convolution(1, "conv1d"), _convolution(2, "conv2d"), _convolution(3, "conv3d")


@op
def conv1d(input, filters, stride, padding, data_format="NWC", dilations=None):
    return _conv1d(input, filters, stride, padding, data_format, dilations)


@op
def conv2d(input, filters, strides, padding, data_format="NHWC", dilations=None):
    return _conv2d(input, filters, strides, padding, data_format, dilations)


@op
def conv3d(input, filters, strides, padding, data_format="NDHWC", dilations=None):
    return _conv3d(input, filters, strides, padding, data_format, dilations)


TRANSPOSES = {1: td.conv_transpose1d, 2: td.conv_transpose2d, 3: td.conv_transpose3d}


def _transposed(axes, what):
    def run(input, filters, output_shape, strides, padding, data_format, dilations):
        x, w = pair(input, filters, what)
        layout = _layout(data_format)
        last = layout == "nhwc"
        shape = None if output_shape is None else integers(output_shape, "output_shape")
        if shape is not None and len(shape) == axes + 2:
            shape = shape[1:-1] if last else shape[2:]
        return wrap(TRANSPOSES[axes](x._t, w._t, strides=_one(_each(strides, "strides", axes, last), axes), padding=_padding(padding, layout, axes + 2),
                                     sizes=shape, dilations=_one(_each(dilations, "dilations", axes, last), axes), layout=layout))

    return run


_transpose1d, _transpose2d, _transpose3d = _transposed(1, "conv1d_transpose"), _transposed(2, "conv2d_transpose"), _transposed(3, "conv3d_transpose")


@op
def conv1d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NWC", dilations=None):
    return _transpose1d(input, filters, output_shape, strides, padding, data_format, dilations)


@op
def conv2d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NHWC", dilations=None):
    return _transpose2d(input, filters, output_shape, strides, padding, data_format, dilations)


@op
def conv3d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NDHWC", dilations=None):
    return _transpose3d(input, filters, output_shape, strides, padding, data_format, dilations)


@op
def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None):
    run = {3: _transpose1d, 4: _transpose2d, 5: _transpose3d}[convert(input).ndim]
    return run(input, filters, output_shape, strides, padding, data_format, dilations)


@op
def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None):
    x, w = pair(input, filter, "depthwise_conv2d")
    layout = _layout(data_format)
    last = layout == "nhwc"
    return wrap(td.depthwise_conv2d(x._t, w._t, strides=_each(strides, "strides", 2, last), padding=_padding(padding, layout, 4),
                                    dilations=_each(dilations, "dilations", 2, last), layout=layout))


@op
def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None):
    deep = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(deep, pointwise_filter, 1, "VALID", data_format or "NHWC")


@op
def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None):
    rank = convert(input).ndim
    if rank not in (3, 4, 5):
        raise ValueError(f"convolution: an input of {rank} axes; 3, 4 and 5 are those of rows, images and volumes")
    return {3: _conv1d, 4: _conv2d, 5: _conv3d}[rank](input, filters, strides or 1, padding, data_format, dilations)


def _pool(native, axes, what, default):
    def function(input, ksize, strides, padding, data_format=default):
        x, layout = convert(input), _layout(data_format)
        last = layout == "nhwc"
        return wrap(native(x._t, size=_one(_each(ksize, "ksize", axes, last), axes), strides=_one(_each(strides, "strides", axes, last), axes),
                           padding=_padding(padding, layout, axes + 2), layout=layout))

    function.__name__ = what
    return op(function)


max_pool1d, avg_pool1d = _pool(td.max_pool1d, 1, "max_pool1d", "NWC"), _pool(td.avg_pool1d, 1, "avg_pool1d", "NWC")
max_pool2d, avg_pool2d = _pool(td.max_pool, 2, "max_pool2d", "NHWC"), _pool(td.avg_pool, 2, "avg_pool2d", "NHWC")
max_pool3d, avg_pool3d = _pool(td.max_pool3d, 3, "max_pool3d", "NDHWC"), _pool(td.avg_pool3d, 3, "avg_pool3d", "NDHWC")


def max_pool(input, ksize, strides, padding, data_format=None, name=None):
    return {3: max_pool1d, 4: max_pool2d, 5: max_pool3d}[convert(input).ndim](input, ksize, strides, padding, data_format)


def avg_pool(input, ksize, strides, padding, data_format=None, name=None):
    return {3: avg_pool1d, 4: avg_pool2d, 5: avg_pool3d}[convert(input).ndim](input, ksize, strides, padding, data_format)


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
