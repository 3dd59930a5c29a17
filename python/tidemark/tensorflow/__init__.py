"""TensorFlow 2's names over Tidemark: `import tidemark.tensorflow as tf`.

A script of the memory-and-loops kind runs with that one line changed. TensorFlow's meaning is kept where it differs from
Tidemark's own: dtypes do not mix, numbers are int32 and float32, integers divide to float64, losses take probabilities
and have reductions, gradients may be None, and a function is traced for each shape and each Python value.
"""
import contextlib as _contextlib
import logging as _logging

from . import autodiff, autograph, bitwise, config, data, debugging, dtypes, errors, image, io, linalg, math, nest, nn, random, signal, train  # noqa: F401
from . import keras  # noqa: F401
from . import keras as _keras
from . import missing as _missing
from . import segments as _segments
from .arrays import (  # noqa: F401
    boolean_mask, broadcast_dynamic_shape, broadcast_static_shape, broadcast_to, cast, concat, constant, convert_to_tensor, ensure_shape,
    expand_dims, eye, fill, identity, identity_n, linspace, meshgrid, one_hot, ones, ones_like, pad, range, rank, repeat, reshape, reverse,
    reverse_sequence, roll, saturate_cast, sequence_mask, shape, shape_n, size, slice, split, squeeze, stack, strided_slice, tile, transpose,
    type_spec_from_value, unstack, where, zeros, zeros_like,
)
from .complex_numbers import complex  # noqa: F401
from .control import case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop  # noqa: F401
from .debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank  # noqa: F401
from .debugging import print_v2 as print  # noqa: F401
from .dtypes import (DType, as_dtype, bfloat16, bool, complex64, complex128, double, float16, float32, float64, half, int8, int16, int32, int64,  # noqa: F401
                     uint8, uint16, uint32, uint64)
from .function import executing_eagerly, function, inside_function  # noqa: F401
from .gradients import (  # noqa: F401
    GradientTape, UnconnectedGradients, custom_gradient, grad_pass_through, gradients, recompute_grad, stop_gradient,
)
from .indexing import (  # noqa: F401
    argsort, dynamic_partition, dynamic_stitch, gather, gather_nd, scatter_nd, searchsorted, sort, tensor_scatter_nd_add, tensor_scatter_nd_max,
    tensor_scatter_nd_min, tensor_scatter_nd_sub, tensor_scatter_nd_update, unique, unique_with_counts,
)
from .linalg import einsum, matmul, norm, tensordot  # noqa: F401
from .math import (  # noqa: F401
    abs, acos, acosh, add, add_n, argmax, argmin, asin, asinh, atan, atan2, atanh, clip_by_global_norm, clip_by_norm, clip_by_value, cos, cosh,
    cumsum, divide, equal, exp, floor, greater, greater_equal, less, less_equal, logical_and, logical_not, logical_or,
    maximum, minimum, multiply, negative, not_equal, pow, reduce_all, reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min,
    reduce_prod, reduce_sum, round, sigmoid, sign, sin, sinh, sqrt, square, subtract, tan, tanh, truediv, truncatediv, truncatemod,
)
from .math import global_norm as _global_norm  # noqa: F401
from .module import Module  # noqa: F401
from .segments import histogram_fixed_width  # noqa: F401
from .shapes import TensorShape, TensorSpec  # noqa: F401
from .tensor import Tensor, is_tensor  # noqa: F401
from .tensor_array import TensorArray  # noqa: F401
from .variable import IndexedSlices, Variable  # noqa: F401

__version__ = "2.0-tidemark"
newaxis = None
for _name in ("segment_sum", "segment_mean", "segment_max", "segment_min", "unsorted_segment_sum", "unsorted_segment_mean", "unsorted_segment_max",
              "unsorted_segment_min", "bincount", "confusion_matrix", "histogram_fixed_width"):
    setattr(math, _name, getattr(_segments, _name))
math.softmax, math.log_softmax = nn.softmax, nn.log_softmax
zeros_initializer, ones_initializer, constant_initializer = _keras.initializers.Zeros, _keras.initializers.Ones, _keras.initializers.Constant
random_normal_initializer, random_uniform_initializer = _keras.initializers.RandomNormal, _keras.initializers.RandomUniform
dtypes.cast, dtypes.saturate_cast = cast, saturate_cast
losses, metrics, optimizers, initializers = _keras.losses, _keras.metrics, _keras.optimizers, _keras.initializers


@_contextlib.contextmanager
def name_scope(name):
    yield name


@_contextlib.contextmanager
def device(device_name):
    yield device_name


@_contextlib.contextmanager
def init_scope():
    yield


@_contextlib.contextmanager
def control_dependencies(control_inputs):
    """Effects of a function happen in the order in which they are written."""
    yield


def group(*inputs, **options):
    return None


def no_op(name=None):
    return None


def get_logger():
    return _logging.getLogger("tensorflow")


__getattr__ = _missing.getattr_of("", globals())
for _name, _module in (("math", math), ("linalg", linalg), ("nn", nn), ("random", random), ("debugging", debugging), ("config", config), ("data", data),
                       ("train", train), ("bitwise", bitwise), ("image", image), ("io", io), ("signal", signal), ("autograph", autograph)):
    _module.__getattr__, _module.__dir__ = _missing.getattr_of(_name, vars(_module)), _missing.dir_of(vars(_module))
