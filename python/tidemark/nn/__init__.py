"""Layers, models, losses, metrics, optimizers and training.

A model is any Python object with layers or Variables as attributes; nn.Module adds methods to it.

    class Block(td.nn.Module):
        def __init__(self):
            self.up, self.down = td.nn.Dense(256, activation=td.gelu), td.nn.Dense(64)

        def __call__(self, x):
            return x + self.down(self.up(x))
"""

from .._core.nn import *  # noqa: F403
from . import initializers, losses, metrics, schedules
from ._training import evaluate, fit
from ._module import Lambda, Module, build, summary
from ._rule import ParameterStep, UpdateRule
from ._pickle import add_to_layers as _add_pickles

_add_pickles()

__all__ = [name for name in globals() if not name.startswith("_")]
