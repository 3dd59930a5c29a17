"""Learning rates that change with the number of updates made."""

from .._core.nn.schedules import *  # noqa: F403
