"""tf.keras.activations."""
import tidemark as td

from .. import nn
from ..tensor import convert, floats, op, wrap


@op
def relu(x, negative_slope=0.0, max_value=None, threshold=0.0):
    x = convert(x)._t
    if negative_slope == 0.0 and threshold == 0.0:
        return wrap(td.relu(x) if max_value is None else td.clip(x, 0, max_value))
    y = td.where(x >= threshold, x, negative_slope * (x - threshold))
    return wrap(y if max_value is None else td.minimum(y, max_value))


def sigmoid(x):
    return nn.sigmoid(x)


def tanh(x):
    return nn.tanh(x)


def softmax(x, axis=-1):
    return nn.softmax(x, axis)


def log_softmax(x, axis=-1):
    return nn.log_softmax(x, axis)


def softplus(x):
    return nn.softplus(x)


def softsign(x):
    return nn.softsign(x)


@op
def elu(x, alpha=1.0):
    x = floats(x, "elu")._t
    return wrap(td.where(x > 0, x, alpha * td.expm1(td.minimum(x, 0))))


def selu(x):
    return nn.selu(x)


def gelu(x, approximate=False):
    return nn.gelu(x, approximate)


def silu(x):
    return nn.silu(x)


swish = silu


def relu6(x):
    return nn.relu6(x)


def leaky_relu(x, negative_slope=0.2):
    return nn.leaky_relu(x, negative_slope)


@op
def linear(x):
    return convert(x)


@op
def exponential(x):
    return wrap(td.exp(floats(x, "exponential")._t))


@op
def hard_sigmoid(x):
    return wrap(td.clip(floats(x, "hard_sigmoid")._t / 6 + 0.5, 0, 1))


@op
def hard_silu(x):
    x = floats(x, "hard_silu")._t
    return wrap(x * td.clip(x / 6 + 0.5, 0, 1))


hard_swish = hard_silu


@op
def mish(x):
    x = floats(x, "mish")._t
    return wrap(x * td.tanh(td.softplus(x)))


_ALL = {
    f.__name__: f
    for f in (relu, sigmoid, tanh, softmax, log_softmax, softplus, softsign, elu, selu, gelu, silu, relu6, leaky_relu, linear, exponential, hard_sigmoid, hard_silu, mish)
} | {"swish": silu, "hard_swish": hard_silu}


def get(identifier):
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    if identifier not in _ALL:
        raise ValueError(f"Could not interpret activation function identifier: {identifier}; the names are {sorted(_ALL)}")
    return _ALL[identifier]


def serialize(activation):
    return activation.__name__
