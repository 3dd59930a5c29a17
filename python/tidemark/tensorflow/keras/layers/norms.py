"""Normalization, with Keras's epsilons and momentum."""

import numpy as np
import tidemark as td

from ... import dtypes
from ...shapes import TensorShape
from ...tensor import convert, wrap
from .base import Layer


def _axes(axis, rank):
    return [a % rank for a in ([axis] if isinstance(axis, int) else axis)]


class Normalization(Layer):
    """Subtracts a mean and divides by a standard deviation, which are given or those of the data of adapt()."""

    def __init__(self, axis=-1, mean=None, variance=None, invert=False, **options):
        super().__init__(**options)
        self.axis, self.invert = axis, invert
        self.mean, self.variance = (None if v is None else convert(v, dtypes.float32) for v in (mean, variance))

    def adapt(self, data):
        x = convert(np.concatenate([np.asarray(part) for part in data]) if hasattr(data, "as_numpy_iterator") else data)._t
        kept = [] if self.axis is None else [a % x.ndim for a in (self.axis if isinstance(self.axis, (list, tuple)) else [self.axis])]
        others = [i for i in range(x.ndim) if i not in kept]
        self.mean, self.variance = wrap(td.mean(x, axis=others, keepdims=True)), wrap(td.var(x, axis=others, keepdims=True))

    def call(self, inputs):
        if self.mean is None:
            raise ValueError("Normalization: the mean is not known; call adapt(data) first, or give mean and variance")
        x, mean = td.cast(convert(inputs)._t, td.f32), self.mean._t
        deviation = td.maximum(td.sqrt(self.variance._t), 1e-7)
        return wrap(mean + x * deviation if self.invert else (x - mean) / deviation)


class BatchNormalization(Layer):
    def __init__(self, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones",
                 moving_mean_initializer="zeros", moving_variance_initializer="ones", beta_regularizer=None, gamma_regularizer=None, beta_constraint=None,
                 gamma_constraint=None, synchronized=False, **options):
        super().__init__(**options)
        self.axis, self.momentum, self.epsilon, self.center, self.scale = axis, momentum, epsilon, center, scale
        self._made_with = gamma_initializer, beta_initializer, moving_mean_initializer, moving_variance_initializer
        self._regular, self.supports_masking = (gamma_regularizer, beta_regularizer), True

    def build(self, input_shape):
        n = TensorShape(input_shape)[self.axis]
        gamma, beta, mean, variance = self._made_with
        self.gamma = self.add_weight((n,), gamma, regularizer=self._regular[0], name="gamma") if self.scale else None
        self.beta = self.add_weight((n,), beta, regularizer=self._regular[1], name="beta") if self.center else None
        self.moving_mean = self.add_weight((n,), mean, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight((n,), variance, trainable=False, name="moving_variance")

    def call(self, inputs, training=False, mask=None):
        x = convert(inputs)._t
        axis = self.axis % x.ndim
        shape = [x.shape[axis] if i == axis else 1 for i in range(x.ndim)]
        if training and self.trainable:
            others = [i for i in range(x.ndim) if i != axis]
            mean, variance = td.mean(x, axis=others), td.var(x, axis=others)
            kept = self.momentum
            self.moving_mean.assign(wrap(self.moving_mean._t * kept + td.stop_gradient(mean) * (1 - kept)))
            self.moving_variance.assign(wrap(self.moving_variance._t * kept + td.stop_gradient(variance) * (1 - kept)))
        else:
            mean, variance = self.moving_mean._t, self.moving_variance._t
        factor = td.rsqrt(variance + self.epsilon)
        if self.scale:
            factor = factor * self.gamma._t
        shift = -mean * factor
        if self.center:
            shift = shift + self.beta._t
        return wrap(x * td.reshape(factor, shape) + td.reshape(shift, shape))


class LayerNormalization(Layer):
    def __init__(self, axis=-1, epsilon=1e-3, center=True, scale=True, rms_scaling=False, beta_initializer="zeros", gamma_initializer="ones",
                 beta_regularizer=None, gamma_regularizer=None, beta_constraint=None, gamma_constraint=None, **options):
        super().__init__(**options)
        self.axis, self.epsilon, self.center, self.scale = axis, epsilon, center, scale
        self._made_with, self.supports_masking = (gamma_initializer, beta_initializer), True

    def build(self, input_shape):
        shape = TensorShape(input_shape)
        sizes = [shape[a] for a in _axes(self.axis, shape.rank)]
        self.gamma = self.add_weight(sizes, self._made_with[0], name="gamma") if self.scale else None
        self.beta = self.add_weight(sizes, self._made_with[1], name="beta") if self.center else None

    def call(self, inputs):
        x = convert(inputs)._t
        axes = _axes(self.axis, x.ndim)
        if axes == [x.ndim - 1]:
            return wrap(td.layer_norm(x, self.gamma._t if self.scale else None, self.beta._t if self.center else None, epsilon=self.epsilon))
        shape = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
        mean, variance = td.mean(x, axis=axes, keepdims=True), td.var(x, axis=axes, keepdims=True)
        y = (x - mean) * td.rsqrt(variance + self.epsilon)
        if self.scale:
            y = y * td.reshape(self.gamma._t, shape)
        return wrap(y + td.reshape(self.beta._t, shape) if self.center else y)


class RMSNormalization(Layer):
    def __init__(self, axis=-1, epsilon=1e-6, **options):
        super().__init__(**options)
        self.axis, self.epsilon = axis, epsilon

    def build(self, input_shape):
        shape = TensorShape(input_shape)
        self.scale = self.add_weight([shape[a] for a in _axes(self.axis, shape.rank)], "ones", name="scale")

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(td.rms_norm(x, self.scale._t, None, epsilon=self.epsilon))


class GroupNormalization(Layer):
    def __init__(self, groups=32, axis=-1, epsilon=1e-3, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones", **options):
        super().__init__(**options)
        self.groups, self.axis, self.epsilon, self.center, self.scale = groups, axis, epsilon, center, scale
        self._made_with = gamma_initializer, beta_initializer

    def build(self, input_shape):
        n = TensorShape(input_shape)[-1]
        self.groups = n if self.groups == -1 else self.groups
        if n % self.groups:
            raise ValueError(f"Number of groups ({self.groups}) must be a divisor of the number of channels ({n}).")
        self.gamma = self.add_weight((n,), self._made_with[0], name="gamma") if self.scale else None
        self.beta = self.add_weight((n,), self._made_with[1], name="beta") if self.center else None

    def call(self, inputs):
        x = convert(inputs)._t
        parts = td.reshape(x, [*list(x.shape)[:-1], self.groups, x.shape[-1] // self.groups])
        axes = [*range(1, x.ndim - 1), x.ndim]
        mean, variance = td.mean(parts, axis=axes, keepdims=True), td.var(parts, axis=axes, keepdims=True)
        y = td.reshape((parts - mean) * td.rsqrt(variance + self.epsilon), list(x.shape))
        y = y * self.gamma._t if self.scale else y
        return wrap(y + self.beta._t if self.center else y)


class UnitNormalization(Layer):
    def __init__(self, axis=-1, **options):
        super().__init__(**options)
        self.axis = axis

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(x * td.rsqrt(td.maximum(td.sum(td.square(x), axis=self.axis, keepdims=True), 1e-12)))


