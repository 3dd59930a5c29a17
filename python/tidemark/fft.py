"""Fourier transforms of tensors; complex numbers are pairs of reals on the last axis."""
from ._core.fft import *  # noqa: F403
