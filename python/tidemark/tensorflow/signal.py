"""tf.signal: Fourier transforms along the last one, two or three axes."""
import tidemark as td

from .errors import InvalidArgumentError
from .tensor import axes as _axes
from .tensor import convert, op, raw, wrap


def _complex(name, transform, count):
    def function(input):
        x = convert(input)
        if not x.dtype.is_complex:
            raise InvalidArgumentError(f"{name}: takes complex64 or complex128, got {x.dtype.name}; write tf.cast(x, tf.complex64)")
        return wrap(transform(x._t, axes=tuple(range(-count, 0))))

    function.__name__ = name
    return op(function)


def _real(name, transform, count):
    def function(input_tensor, fft_length=None):
        lengths = None if fft_length is None else [int(each) for each in td.reshape(raw(fft_length), [-1]).tolist()]
        return wrap(transform(convert(input_tensor)._t, s=lengths, axes=tuple(range(-count, 0))))

    function.__name__ = name
    return op(function)


fft, ifft = _complex("fft", td.fft.fftn, 1), _complex("ifft", td.fft.ifftn, 1)
fft2d, ifft2d = _complex("fft2d", td.fft.fftn, 2), _complex("ifft2d", td.fft.ifftn, 2)
fft3d, ifft3d = _complex("fft3d", td.fft.fftn, 3), _complex("ifft3d", td.fft.ifftn, 3)
rfft, irfft = _real("rfft", td.fft.rfftn, 1), _real("irfft", td.fft.irfftn, 1)
rfft2d, irfft2d = _real("rfft2d", td.fft.rfftn, 2), _real("irfft2d", td.fft.irfftn, 2)
rfft3d, irfft3d = _real("rfft3d", td.fft.rfftn, 3), _real("irfft3d", td.fft.irfftn, 3)


@op
def fftshift(x, axes=None):
    return wrap(td.fft.fftshift(raw(x), _axes(axes)))


@op
def ifftshift(x, axes=None):
    return wrap(td.fft.ifftshift(raw(x), _axes(axes)))
