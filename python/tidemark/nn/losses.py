"""Losses: functions of (y_true, y_pred) that return the mean."""

from .._core.nn.losses import *  # noqa: F403
