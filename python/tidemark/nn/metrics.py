"""Metrics: functions of (y_true, y_pred), and metrics that run over batches: Mean, F1, AUC and others."""

from .._core.nn.metrics import *  # noqa: F403
