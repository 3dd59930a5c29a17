"""Layers without recurrences or images: dense, embedding, shapes, noise, merging, activations."""
import math

import numpy as np
import tidemark as td

from ... import dtypes
from ...arrays import one_hot
from ...shapes import TensorShape
from ...tensor import convert, wrap
from .. import activations, regularizers
from .base import Layer


class InputLayer(Layer):
    def __init__(self, shape=None, batch_size=None, dtype=None, name=None, **options):
        super().__init__(name=name, dtype="float32")
        self.batch_shape, self.input_dtype = (batch_size, *shape), dtypes.as_dtype(dtype or "float32").name
        self.built = True

    def call(self, x):
        return x


class Dense(Layer):
    def __init__(self, units, activation=None, use_bias=True, kernel_initializer="glorot_uniform", bias_initializer="zeros", kernel_regularizer=None,
                 bias_regularizer=None, activity_regularizer=None, kernel_constraint=None, bias_constraint=None, **options):
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.units, self.activation, self.use_bias = int(units), activations.get(activation), use_bias
        self._made_with = (kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint)
        self.kernel = self.bias = None

    def build(self, input_shape):
        size = TensorShape(input_shape)
        if size.rank is None or size.rank < 2 or size[-1] is None:
            raise ValueError(f"Input 0 of layer \"{self.name}\" is incompatible with the layer: expected min_ndim=2 and a known last axis. Full shape received: {size}")
        initial, bias, regular, regular_bias, keep, keep_bias = self._made_with
        self.kernel = self.add_weight((size[-1], self.units), initial, regularizer=regular, constraint=keep, name="kernel")
        if self.use_bias:
            self.bias = self.add_weight((self.units,), bias, regularizer=regular_bias, constraint=keep_bias, name="bias")

    def call(self, inputs):
        x = convert(inputs)
        if x.ndim < 2 or x.shape[-1] != self.kernel.shape[0]:
            raise ValueError(f"Input 0 of layer \"{self.name}\" is incompatible with the layer: expected axis -1 of input shape to have value {self.kernel.shape[0]}, but received input with shape {x.shape}")
        y = td.matmul(x._t, self.kernel._t)
        if self.use_bias:
            y = y + self.bias._t
        return self.activation(wrap(y))

    def get_config(self):
        return {**super().get_config(), "units": self.units, "activation": activations.serialize(self.activation), "use_bias": self.use_bias}


class Embedding(Layer):
    def __init__(self, input_dim, output_dim, embeddings_initializer="uniform", embeddings_regularizer=None, embeddings_constraint=None, mask_zero=False, **options):
        super().__init__(**options)
        self.input_dim, self.output_dim, self.mask_zero = input_dim, output_dim, mask_zero
        self._made_with = embeddings_initializer, embeddings_regularizer, embeddings_constraint

    def build(self, input_shape=None):
        initial, regular, keep = self._made_with
        self.embeddings = self.add_weight((self.input_dim, self.output_dim), initial, regularizer=regular, constraint=keep, name="embeddings")

    def call(self, inputs):
        ids = convert(inputs)
        return self.embeddings._gather(ids if ids.dtype.is_integer else wrap(td.cast(ids._t, td.i32)))

    def compute_mask(self, inputs, previous_mask=None):
        return wrap(td.not_equal(convert(inputs)._t, 0)) if self.mask_zero else None


class Flatten(Layer):
    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(td.reshape(x, [x.shape[0], -1]) if x.ndim > 1 else td.expand_dims(x, -1))


class Reshape(Layer):
    def __init__(self, target_shape, **options):
        super().__init__(**options)
        self.target_shape = tuple(target_shape)

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(td.reshape(x, [x.shape[0], *self.target_shape]))


class Permute(Layer):
    def __init__(self, dims, **options):
        super().__init__(**options)
        self.dims = tuple(dims)

    def call(self, inputs):
        return wrap(td.transpose(convert(inputs)._t, [0, *self.dims]))


class RepeatVector(Layer):
    def __init__(self, n, **options):
        super().__init__(**options)
        self.n = n

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(td.identity(td.broadcast_to(td.expand_dims(x, 1), [x.shape[0], self.n, x.shape[1]])))


class Identity(Layer):
    def call(self, inputs):
        return convert(inputs)


class Lambda(Layer):
    def __init__(self, function, output_shape=None, mask=None, arguments=None, **options):
        super().__init__(**options)
        self.function, self.arguments = function, arguments or {}

    def call(self, inputs):
        return self.function(inputs, **self.arguments)


class Activation(Layer):
    def __init__(self, activation, **options):
        super().__init__(**options)
        self.supports_masking, self.activation = True, activations.get(activation)

    def call(self, inputs):
        return self.activation(inputs)


class ReLU(Layer):
    def __init__(self, max_value=None, negative_slope=0.0, threshold=0.0, **options):
        super().__init__(**options)
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope, threshold

    def call(self, inputs):
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Layer):
    def __init__(self, negative_slope=0.3, **options):
        super().__init__(**options)
        self.negative_slope = negative_slope

    def call(self, inputs):
        return activations.leaky_relu(inputs, self.negative_slope)


class ELU(Layer):
    def __init__(self, alpha=1.0, **options):
        super().__init__(**options)
        self.alpha = alpha

    def call(self, inputs):
        return activations.elu(inputs, self.alpha)


class Softmax(Layer):
    def __init__(self, axis=-1, **options):
        super().__init__(**options)
        self.axis = axis

    def call(self, inputs, mask=None):
        x = convert(inputs)._t
        if mask is not None:
            x = x + td.where(convert(mask)._t, td.zeros([], x.dtype), td.full([], -3e4 if x.dtype == td.f16 else -1e9, x.dtype))
        return wrap(td.softmax(x, self.axis))


class PReLU(Layer):
    def __init__(self, alpha_initializer="zeros", alpha_regularizer=None, alpha_constraint=None, shared_axes=None, **options):
        super().__init__(**options)
        self._initial, self.shared_axes = alpha_initializer, shared_axes or []

    def build(self, input_shape):
        shape = list(TensorShape(input_shape)[1:])
        for axis in self.shared_axes:
            shape[axis - 1] = 1
        self.alpha = self.add_weight(shape, self._initial, name="alpha")

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(td.relu(x) - self.alpha._t * td.relu(-x))


# ---- noise ---------------------------------------------------------------------------------------


class Dropout(Layer):
    def __init__(self, rate, noise_shape=None, seed=None, **options):
        super().__init__(**options)
        if not 0 <= rate <= 1:
            raise ValueError(f"Invalid value received for argument `rate`. Expected a float value between 0 and 1. Received: rate={rate}")
        self.rate, self.noise_shape, self.supports_masking = rate, noise_shape, True

    def _kept(self, x):
        """The shape of what is kept or dropped together."""
        return [n if s is None else s for s, n in zip(self.noise_shape, x.shape)] if self.noise_shape else list(x.shape)

    def call(self, inputs, training=False):
        x = convert(inputs)
        if not training or self.rate == 0:
            return x
        if not self.noise_shape and type(self)._kept is Dropout._kept:
            return wrap(td.dropout(x._t, self.rate))
        keep = td.random.bernoulli(self._kept(x._t), 1 - self.rate)
        return wrap(td.where(keep, x._t / (1 - self.rate), td.zeros([], x._t.dtype)))


class SpatialDropout1D(Dropout):
    def _kept(self, x):
        return [x.shape[0], *[1] * (x.ndim - 2), x.shape[-1]]


class SpatialDropout2D(SpatialDropout1D):
    pass


class AlphaDropout(Layer):
    """Dropout that keeps the mean and the variance of what selu gives."""

    def __init__(self, rate, noise_shape=None, seed=None, **options):
        super().__init__(**options)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs, training=False):
        x = convert(inputs)
        if not training or not self.rate:
            return x
        alpha = -1.6732632423543772848170429916717 * 1.0507009873554804934193349852946
        kept = td.random.uniform(self.noise_shape or list(x._t.shape)) >= self.rate
        scale = ((1 - self.rate) * (1 + self.rate * alpha**2)) ** -0.5
        return wrap((td.where(kept, x._t, alpha) - alpha * self.rate) * scale)


class ActivityRegularization(Layer):
    """Adds the sizes of its inputs to the loss."""

    def __init__(self, l1=0.0, l2=0.0, **options):
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **options)

    def call(self, inputs):
        return convert(inputs)


class GaussianNoise(Layer):
    def __init__(self, stddev, seed=None, **options):
        super().__init__(**options)
        self.stddev = stddev

    def call(self, inputs, training=False):
        x = convert(inputs)
        return wrap(x._t + td.random.normal(list(x._t.shape), 0.0, self.stddev, dtype=x._t.dtype)) if training else x


class GaussianDropout(Layer):
    def __init__(self, rate, seed=None, **options):
        super().__init__(**options)
        self.rate = rate

    def call(self, inputs, training=False):
        x = convert(inputs)
        if not training or self.rate == 0:
            return x
        return wrap(x._t * td.random.normal(list(x._t.shape), 1.0, math.sqrt(self.rate / (1 - self.rate)), dtype=x._t.dtype))


# ---- merging -------------------------------------------------------------------------------------


class _Merge(Layer):
    def build(self, input_shape):
        pass

    def call(self, inputs):
        parts = [convert(x)._t for x in inputs]
        if len(parts) < 2:
            raise ValueError(f"A merge layer should be called on a list of at least 2 inputs. Received {len(parts)} inputs.")
        try:
            np.broadcast_shapes(*[tuple(n for n in p.shape if isinstance(n, int)) for p in parts])
        except ValueError:
            raise ValueError(f"Inputs have incompatible shapes. Received shapes {[tuple(p.shape) for p in parts]}") from None
        return wrap(self.merge(parts))


def _folded(f):
    def merge(self, parts):
        total = parts[0]
        for part in parts[1:]:
            total = f(total, part)
        return total

    return merge


class Add(_Merge):
    merge = _folded(td.add)


class Subtract(_Merge):
    merge = _folded(td.subtract)


class Multiply(_Merge):
    merge = _folded(td.multiply)


class Maximum(_Merge):
    merge = _folded(td.maximum)


class Minimum(_Merge):
    merge = _folded(td.minimum)


class Average(_Merge):
    def merge(self, parts):
        return _folded(td.add)(self, parts) / len(parts)


class Concatenate(Layer):
    def __init__(self, axis=-1, **options):
        super().__init__(**options)
        self.axis = axis

    def call(self, inputs):
        return wrap(td.concat([convert(x)._t for x in inputs], self.axis))


class Dot(Layer):
    def __init__(self, axes, normalize=False, **options):
        super().__init__(**options)
        self.axes, self.normalize = axes, normalize

    def call(self, inputs):
        a, b = (convert(x)._t for x in inputs)
        left, right = (self.axes, self.axes) if isinstance(self.axes, int) else self.axes
        left, right = left % a.ndim, right % b.ndim
        if self.normalize:
            a, b = (x * td.rsqrt(td.maximum(td.sum(td.square(x), axis=i, keepdims=True), 1e-12)) for x, i in ((a, left), (b, right)))
        a = td.transpose(a, [i for i in range(a.ndim) if i != left] + [left])
        b = td.transpose(b, [0, right] + [i for i in range(1, b.ndim) if i != right])
        flat_a, flat_b = td.reshape(a, [a.shape[0], -1, a.shape[-1]]), td.reshape(b, [b.shape[0], b.shape[1], -1])
        y = td.reshape(td.matmul(flat_a, flat_b), [a.shape[0], *list(a.shape)[1:-1], *list(b.shape)[2:]])
        return wrap(td.expand_dims(y, 1) if y.ndim == 1 else y)


def _function(layer):
    return lambda inputs, **options: layer(**options)(inputs)


add, subtract, multiply, average = _function(Add), _function(Subtract), _function(Multiply), _function(Average)
maximum, minimum, concatenate = _function(Maximum), _function(Minimum), _function(Concatenate)


def dot(inputs, axes, **options):
    return Dot(axes, **options)(inputs)


class Masking(Layer):
    def __init__(self, mask_value=0.0, **options):
        super().__init__(**options)
        self.mask_value, self.supports_masking = mask_value, True

    def compute_mask(self, inputs, previous_mask=None):
        return wrap(td.any(td.not_equal(convert(inputs)._t, self.mask_value), axis=-1))

    def call(self, inputs):
        x = convert(inputs)._t
        keep = td.any(td.not_equal(x, self.mask_value), axis=-1, keepdims=True)
        return wrap(td.where(keep, x, td.zeros([], x.dtype)))


class CategoryEncoding(Layer):
    def __init__(self, num_tokens=None, output_mode="multi_hot", **options):
        super().__init__(**options)
        self.num_tokens, self.output_mode = num_tokens, output_mode

    def call(self, inputs):
        hot = one_hot(inputs, self.num_tokens)._t
        return wrap(hot if self.output_mode == "one_hot" else td.max(hot, axis=-2) if self.output_mode == "multi_hot" else td.sum(hot, axis=-2))


class Rescaling(Layer):
    def __init__(self, scale, offset=0.0, **options):
        super().__init__(**options)
        self.scale, self.offset = scale, offset

    def call(self, inputs):
        return wrap(td.cast(convert(inputs)._t, td.f32) * self.scale + self.offset)


