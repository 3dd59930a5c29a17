"""The bytes that tensors hold, by owner and source line."""

from ._core.memory import *  # noqa: F403
