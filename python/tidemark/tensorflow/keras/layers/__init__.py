"""tf.keras.layers."""
from ... import missing as _missing
from .attention import AdditiveAttention, Attention, MultiHeadAttention  # noqa: F401
from .base import Layer  # noqa: F401
from .basic import (  # noqa: F401
    ELU, Activation, ActivityRegularization, Add, AlphaDropout, Average, CategoryEncoding, Concatenate, Dense, Dot, Dropout, Embedding, Flatten, GaussianDropout, GaussianNoise, Identity,
    InputLayer, Lambda, LeakyReLU, Masking, Maximum, Minimum, Multiply, Permute, PReLU, ReLU, RepeatVector, Rescaling, Reshape, Softmax, SpatialDropout1D,
    SpatialDropout2D, Subtract, add, average, concatenate, dot, maximum, minimum, multiply, subtract,
)
from .images import (  # noqa: F401
    AveragePooling1D, AveragePooling2D, AveragePooling3D, AvgPool1D, AvgPool2D, AvgPool3D, Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D,
    Conv3DTranspose, Cropping1D, Cropping2D, DepthwiseConv1D, DepthwiseConv2D, GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D,
    GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D, GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D, GlobalMaxPooling1D, GlobalMaxPooling2D,
    GlobalMaxPooling3D, MaxPool1D, MaxPool2D, MaxPool3D, MaxPooling1D, MaxPooling2D, MaxPooling3D, Resizing, SeparableConv1D, SeparableConv2D, UpSampling1D,
    UpSampling2D, UpSampling3D, ZeroPadding1D, ZeroPadding2D, ZeroPadding3D,
)
from .norms import BatchNormalization, GroupNormalization, LayerNormalization, Normalization, RMSNormalization, UnitNormalization  # noqa: F401
from .recurrent import GRU, LSTM, RNN, Bidirectional, GRUCell, LSTMCell, SimpleRNN, SimpleRNNCell, TimeDistributed  # noqa: F401
from .symbolic import KerasTensor  # noqa: F401

Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution1DTranspose, Convolution2DTranspose, Convolution3DTranspose = Conv1DTranspose, Conv2DTranspose, Conv3DTranspose
SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D


def Input(shape=None, batch_size=None, dtype=None, sparse=None, batch_shape=None, name=None, tensor=None, **options):
    """A symbolic input of a functional model."""
    if batch_shape is not None:
        batch_size, *shape = batch_shape
    if shape is None:
        raise ValueError("You must pass a `shape` argument.")
    layer = InputLayer(tuple(shape), batch_size, dtype, name)
    made = KerasTensor(layer.batch_shape, layer.input_dtype, layer.name)
    made._input_layer = layer
    return made


__getattr__ = _missing.getattr_of("keras.layers", globals())
