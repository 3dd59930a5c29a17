"""Metrics: functions of (y_true, y_pred), and Mean, a mean over many calls."""

from .._core.nn.metrics import *  # noqa: F403
