"""Initial values of parameters: functions of a shape and a dtype that run when a Variable is first used."""

from .._core.nn.initializers import *  # noqa: F403
