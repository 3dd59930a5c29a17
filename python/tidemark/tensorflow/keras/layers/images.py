"""Convolutions, pools, padding and cropping; images are [batch, height, width, channels]."""
import tidemark as td

from ... import image, nn
from ...shapes import TensorShape
from ...tensor import convert, wrap
from .. import activations
from .base import Layer


def _tuple(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


class _Conv(Layer):
    rank = 2

    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format=None, dilation_rate=1, groups=1, activation=None, use_bias=True,
                 kernel_initializer="glorot_uniform", bias_initializer="zeros", kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 kernel_constraint=None, bias_constraint=None, **options):
        super().__init__(activity_regularizer=activity_regularizer, **options)
        if data_format not in (None, "channels_last"):
            raise NotImplementedError(f"{type(self).__name__}: data_format={data_format!r}; images are channels_last here: transpose them first")
        self.filters, self.kernel_size, self.strides = filters, _tuple(kernel_size, self.rank), _tuple(strides, self.rank)
        self.padding, self.dilation_rate, self.groups = padding.lower(), _tuple(dilation_rate, self.rank), groups
        self.activation, self.use_bias = activations.get(activation), use_bias
        self._made_with = kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint

    def build(self, input_shape):
        channels = TensorShape(input_shape)[-1]
        if channels is None or channels % self.groups:
            raise ValueError(f"{self.name}: {channels} channels cannot be divided into {self.groups} groups")
        initial, bias, regular, regular_bias, keep, keep_bias = self._made_with
        self.kernel = self.add_weight((*self.kernel_size, channels // self.groups, self.filters), initial, regularizer=regular, constraint=keep, name="kernel")
        self.bias = self.add_weight((self.filters,), bias, regularizer=regular_bias, constraint=keep_bias, name="bias") if self.use_bias else None

    def convolve(self, x):
        return nn.convolution(x, self.kernel, list(self.strides), self.padding.upper(), dilations=list(self.dilation_rate))

    def call(self, inputs):
        y = self.convolve(convert(inputs))
        if self.use_bias:
            y = wrap(y._t + self.bias._t)
        return self.activation(y)


class Conv2D(_Conv):
    pass


class Conv3D(_Conv):
    rank = 3


class Conv1D(_Conv):
    rank = 1

    def convolve(self, x):
        padding = self.padding.upper()
        if padding == "CAUSAL":
            before = self.dilation_rate[0] * (self.kernel_size[0] - 1)
            padding = [(before, 0)]
        return nn.conv1d(x, self.kernel, self.strides[0], padding, dilations=self.dilation_rate[0])


class _ConvTranspose(_Conv):
    """Keras makes images of `strides` times the size, plus what the window has beyond the strides where the padding is "valid"."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid", output_padding=None, data_format=None, dilation_rate=1, **options):
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, 1, **options)
        self.output_padding = None if output_padding is None else _tuple(output_padding, self.rank)

    def build(self, input_shape):
        channels = TensorShape(input_shape)[-1]
        initial, bias, regular, regular_bias, keep, keep_bias = self._made_with
        self.kernel = self.add_weight((*self.kernel_size, self.filters, channels), initial, regularizer=regular, constraint=keep, name="kernel")
        self.bias = self.add_weight((self.filters,), bias, regularizer=regular_bias, constraint=keep_bias, name="bias") if self.use_bias else None

    def _place(self, size, axis):
        """Padding of one axis, and its size in the result."""
        stride, reach = self.strides[axis], self.dilation_rate[axis] * (self.kernel_size[axis] - 1) + 1
        same = self.padding == "same"
        if self.output_padding is None:
            length = size * stride + (0 if same else max(reach - stride, 0))
        else:
            length = (size - 1) * stride + reach - (2 * (reach // 2) if same else 0) + self.output_padding[axis]
        return max((size - 1) * stride + reach - length, 0) // 2 if same else 0, length

    def convolve(self, x):
        """What the window does not reach of a result is 0."""
        places = [self._place(size, i) for i, size in enumerate(x._t.shape[1:-1])]
        pads, after = [], []
        for i, ((before, length), size) in enumerate(zip(places, x._t.shape[1:-1])):
            covered = (size - 1) * self.strides[i] + self.dilation_rate[i] * (self.kernel_size[i] - 1) + 1 - before
            pads.append((before, max(covered - length, 0)))
            after.append((0, max(length - covered, 0)))
        y = nn.conv_transpose(x, self.kernel, None, list(self.strides), pads, dilations=list(self.dilation_rate))
        return wrap(td.pad(y._t, [(0, 0), *after, (0, 0)])) if any(more for _, more in after) else y


class Conv1DTranspose(_ConvTranspose):
    rank = 1


class Conv2DTranspose(_ConvTranspose):
    pass


class Conv3DTranspose(_ConvTranspose):
    rank = 3


def _depthwise(layer, x, kernel):
    strides, padding, dilations = list(layer.strides), layer.padding.lower(), list(layer.dilation_rate)
    if layer.rank == 1:
        if padding == "causal":
            padding = [(dilations[0] * (layer.kernel_size[0] - 1), 0)]
        return wrap(td.depthwise_conv1d(x._t, convert(kernel)._t, strides=strides[0], padding=padding, dilations=dilations[0]))
    return wrap(td.depthwise_conv2d(x._t, convert(kernel)._t, strides=strides, padding=padding, dilations=dilations))


class DepthwiseConv2D(Layer):
    rank = 2

    def __init__(self, kernel_size, strides=1, padding="valid", depth_multiplier=1, data_format=None, dilation_rate=1, activation=None, use_bias=True,
                 depthwise_initializer="glorot_uniform", bias_initializer="zeros", depthwise_regularizer=None, bias_regularizer=None, **options):
        super().__init__(**options)
        self.kernel_size, self.strides, self.padding = _tuple(kernel_size, self.rank), _tuple(strides, self.rank), padding
        self.depth_multiplier, self.dilation_rate = depth_multiplier, _tuple(dilation_rate, self.rank)
        self.activation, self.use_bias = activations.get(activation), use_bias
        self._made_with = depthwise_initializer, bias_initializer, depthwise_regularizer, bias_regularizer

    def build(self, input_shape):
        channels = TensorShape(input_shape)[-1]
        initial, bias, regular, regular_bias = self._made_with
        self.kernel = self.add_weight((*self.kernel_size, channels, self.depth_multiplier), initial, regularizer=regular, name="kernel")
        self.bias = self.add_weight((channels * self.depth_multiplier,), bias, regularizer=regular_bias, name="bias") if self.use_bias else None

    def call(self, inputs):
        y = _depthwise(self, convert(inputs), self.kernel)
        return self.activation(wrap(y._t + self.bias._t) if self.use_bias else y)


class SeparableConv2D(Layer):
    rank = 2

    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format=None, dilation_rate=1, depth_multiplier=1, activation=None, use_bias=True,
                 depthwise_initializer="glorot_uniform", pointwise_initializer="glorot_uniform", bias_initializer="zeros", **options):
        super().__init__(**options)
        self.filters, self.kernel_size, self.strides, self.padding = filters, _tuple(kernel_size, self.rank), _tuple(strides, self.rank), padding
        self.dilation_rate, self.depth_multiplier, self.use_bias = _tuple(dilation_rate, self.rank), depth_multiplier, use_bias
        self.activation = activations.get(activation)
        self._made_with = depthwise_initializer, pointwise_initializer, bias_initializer

    def build(self, input_shape):
        channels = TensorShape(input_shape)[-1]
        deep, point, bias = self._made_with
        self.depthwise_kernel = self.add_weight((*self.kernel_size, channels, self.depth_multiplier), deep, name="depthwise_kernel")
        self.pointwise_kernel = self.add_weight((*(1,) * self.rank, channels * self.depth_multiplier, self.filters), point, name="pointwise_kernel")
        self.bias = self.add_weight((self.filters,), bias, name="bias") if self.use_bias else None

    def call(self, inputs):
        y = nn.convolution(_depthwise(self, convert(inputs), self.depthwise_kernel), self.pointwise_kernel)
        return self.activation(wrap(y._t + self.bias._t) if self.use_bias else y)


class DepthwiseConv1D(DepthwiseConv2D):
    rank = 1


class SeparableConv1D(SeparableConv2D):
    rank = 1


class _Pool(Layer):
    rank, pool = 2, None

    def __init__(self, pool_size=2, strides=None, padding="valid", data_format=None, **options):
        super().__init__(**options)
        self.pool_size, self.padding = _tuple(pool_size, self.rank), padding
        self.strides = self.pool_size if strides is None else _tuple(strides, self.rank)

    def call(self, inputs):
        return type(self).pool(inputs, list(self.pool_size), list(self.strides), self.padding.upper())


class MaxPooling2D(_Pool):
    pool = staticmethod(nn.max_pool2d)


class AveragePooling2D(_Pool):
    pool = staticmethod(nn.avg_pool2d)


class MaxPooling1D(_Pool):
    rank, pool = 1, staticmethod(nn.max_pool1d)


class AveragePooling1D(_Pool):
    rank, pool = 1, staticmethod(nn.avg_pool1d)


class MaxPooling3D(_Pool):
    rank, pool = 3, staticmethod(nn.max_pool3d)


class AveragePooling3D(_Pool):
    rank, pool = 3, staticmethod(nn.avg_pool3d)


class _GlobalPool(Layer):
    axes, reduce = (1, 2), None

    def __init__(self, data_format=None, keepdims=False, **options):
        super().__init__(**options)
        self.keepdims = keepdims

    def call(self, inputs):
        return wrap(type(self).reduce(convert(inputs)._t, axis=list(self.axes), keepdims=self.keepdims))


class GlobalAveragePooling2D(_GlobalPool):
    reduce = staticmethod(td.mean)


class GlobalMaxPooling2D(_GlobalPool):
    reduce = staticmethod(td.max)


class GlobalAveragePooling3D(_GlobalPool):
    axes, reduce = (1, 2, 3), staticmethod(td.mean)


class GlobalMaxPooling3D(_GlobalPool):
    axes, reduce = (1, 2, 3), staticmethod(td.max)


class GlobalMaxPooling1D(_GlobalPool):
    axes, reduce = (1,), staticmethod(td.max)


class GlobalAveragePooling1D(_GlobalPool):
    axes, reduce = (1,), staticmethod(td.mean)

    def call(self, inputs, mask=None):
        if mask is None:
            return super().call(inputs)
        x = convert(inputs)._t
        kept = td.expand_dims(td.cast(convert(mask)._t, x.dtype), -1)
        return wrap(td.sum(x * kept, axis=1, keepdims=self.keepdims) / td.sum(kept, axis=1, keepdims=self.keepdims))


MaxPool2D, AvgPool2D, MaxPool1D, AvgPool1D = MaxPooling2D, AveragePooling2D, MaxPooling1D, AveragePooling1D
MaxPool3D, AvgPool3D, GlobalAvgPool3D, GlobalMaxPool3D = MaxPooling3D, AveragePooling3D, GlobalAveragePooling3D, GlobalMaxPooling3D
GlobalAvgPool2D, GlobalMaxPool2D, GlobalAvgPool1D, GlobalMaxPool1D = GlobalAveragePooling2D, GlobalMaxPooling2D, GlobalAveragePooling1D, GlobalMaxPooling1D


def _pairs(value, n):
    """((before, after), ...) for n axes."""
    values = _tuple(value, n)
    return [(v, v) if isinstance(v, int) else tuple(v) for v in values]


class ZeroPadding2D(Layer):
    def __init__(self, padding=1, data_format=None, **options):
        super().__init__(**options)
        self.padding = _pairs(padding, 2)

    def call(self, inputs):
        return wrap(td.pad(convert(inputs)._t, [(0, 0), *self.padding, (0, 0)]))


class ZeroPadding1D(Layer):
    def __init__(self, padding=1, data_format=None, **options):
        super().__init__(**options)
        self.padding = (padding, padding) if isinstance(padding, int) else tuple(padding)

    def call(self, inputs):
        return wrap(td.pad(convert(inputs)._t, [(0, 0), self.padding, (0, 0)]))


class ZeroPadding3D(Layer):
    def __init__(self, padding=1, data_format=None, **options):
        super().__init__(**options)
        self.padding = _pairs(padding, 3)

    def call(self, inputs):
        return wrap(td.pad(convert(inputs)._t, [(0, 0), *self.padding, (0, 0)]))


class Cropping2D(Layer):
    def __init__(self, cropping=((0, 0), (0, 0)), data_format=None, **options):
        super().__init__(**options)
        self.cropping = _pairs(cropping, 2)

    def call(self, inputs):
        x = convert(inputs)._t
        (top, bottom), (left, right) = self.cropping
        return wrap(x[:, top : x.shape[1] - bottom, left : x.shape[2] - right])


class Cropping1D(Layer):
    def __init__(self, cropping=(1, 1), **options):
        super().__init__(**options)
        self.cropping = (cropping, cropping) if isinstance(cropping, int) else tuple(cropping)

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(x[:, self.cropping[0] : x.shape[1] - self.cropping[1]])


class UpSampling2D(Layer):
    def __init__(self, size=2, data_format=None, interpolation="nearest", **options):
        super().__init__(**options)
        if interpolation not in ("nearest", "bilinear", "bicubic"):
            raise NotImplementedError(f"UpSampling2D: interpolation={interpolation!r}; Tidemark has \"nearest\", \"bilinear\" and \"bicubic\"")
        self.size, self.interpolation = _tuple(size, 2), interpolation

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(td.resize(x, [x.shape[1] * self.size[0], x.shape[2] * self.size[1]], method=self.interpolation))


class UpSampling3D(Layer):
    def __init__(self, size=2, data_format=None, **options):
        super().__init__(**options)
        self.size = _tuple(size, 3)

    def call(self, inputs):
        x = convert(inputs)._t
        return wrap(td.resize(x, [n * by for n, by in zip(x.shape[1:4], self.size)], method="nearest"))


class Resizing(Layer):
    def __init__(self, height, width, interpolation="bilinear", crop_to_aspect_ratio=False, pad_to_aspect_ratio=False, antialias=False, data_format=None, **options):
        super().__init__(**options)
        if interpolation not in ("nearest", "bilinear", "bicubic") or crop_to_aspect_ratio or pad_to_aspect_ratio:
            raise NotImplementedError("Resizing: images get the sizes that are given, by \"nearest\", \"bilinear\" or \"bicubic\"")
        self.height, self.width, self.interpolation, self.antialias = height, width, interpolation, antialias

    def call(self, inputs):
        return image.resize(inputs, [self.height, self.width], self.interpolation, antialias=self.antialias)


class UpSampling1D(Layer):
    def __init__(self, size=2, **options):
        super().__init__(**options)
        self.size = size

    def call(self, inputs):
        return wrap(td.repeat(convert(inputs)._t, self.size, axis=1))
