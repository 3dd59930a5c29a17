"""Random tensors, keys and the global generator."""
from ._core.random import *  # noqa: F403
