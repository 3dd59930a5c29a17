"""Fourier transforms of tensors; their results are complex tensors."""
from ._core.fft import *  # noqa: F403
