"""Arithmetic of complex numbers, which are pairs of reals on the last axis."""
from ._core.complex import *  # noqa: F403
