"""The extension fft of the array API: Fourier transforms, with the standard's names and arguments."""
from . import _core as _td
from ._core.fft import fft, hfft, ifft, ifftn, ifftshift, ihfft, irfft, irfftn, rfft, rfftn, fftn, fftshift  # noqa: F401

__all__ = ["fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft", "fftfreq", "rfftfreq", "fftshift", "ifftshift"]


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    return _td.fft.fftfreq(n, d, dtype or _td.float32)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    return _td.fft.rfftfreq(n, d, dtype or _td.float32)
