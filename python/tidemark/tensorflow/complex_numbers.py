"""Complex numbers: tf.complex, tf.math.real, imag, conj and angle."""
import tidemark as td

from . import dtypes, math
from .errors import InvalidArgumentError
from .tensor import convert, op, pair, wrap


@op
def complex(real, imag):  # TensorFlow's name.
    real, imag = pair(real, imag, "complex")
    if real.dtype not in (dtypes.float32, dtypes.float64):
        raise InvalidArgumentError(f"complex: real and imag must be float32 or float64, got {real.dtype.name}")
    return wrap(td.complex(real._t, imag._t))


@op
def real(input):
    return wrap(td.real(convert(input)._t))


@op
def imag(input):
    return wrap(td.imag(convert(input)._t))


@op
def conj(x):
    return wrap(td.conj(convert(x)._t))


@op
def angle(input):
    return wrap(td.angle(convert(input)._t))


for _function in (real, imag, conj, angle):
    setattr(math, _function.__name__, _function)
