"""tf.keras.optimizers."""
from . import schedules  # noqa: F401
from .base import Optimizer  # noqa: F401
from .loss_scale import LossScaleOptimizer  # noqa: F401
from .rules import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Ftrl, Lion, Nadam, RMSprop  # noqa: F401

_ALL = {c.__name__.lower(): c for c in (SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl, Lion)}


def get(identifier):
    if isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, str) and identifier.lower() in _ALL:
        return _ALL[identifier.lower()]()
    raise ValueError(f"Could not interpret optimizer identifier: {identifier}; the names are {sorted(_ALL)}")


class legacy:
    """tf.keras.optimizers.legacy: the same rules."""

    SGD, Adam, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl = SGD, Adam, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl
