"""tf.errors: the classes that TensorFlow's ops raise, with Tidemark's texts."""
import sys
import warnings

import tidemark as td


class OpError(Exception):
    """The base of what an op raises."""

    @property
    def message(self):
        return str(self)


class InvalidArgumentError(OpError):
    """An op was given values, shapes or dtypes that it cannot take."""


class NotFoundError(OpError):
    """A file or a checkpoint does not exist."""


class OutOfRangeError(OpError):
    """An iterator has no more elements."""


class ResourceExhaustedError(OpError):
    """A tensor did not fit in memory; `__cause__` is the td.OutOfMemory or td.OverBudget with the numbers."""


class FailedPreconditionError(OpError):
    """A Variable or an object was not ready."""


class UnimplementedError(OpError, NotImplementedError):
    """The name is TensorFlow's, and Tidemark has no op for it."""


class InternalError(OpError):
    """A bug of Tidemark's."""


class OperatorNotAllowedInGraphError(TypeError):
    """The value of a tensor was needed while a function is traced without autograph."""


def warn(text):
    """A warning at the user's line."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "tidemark":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level + 1)


class UnknownBytes(InvalidArgumentError):
    """A trace came to what has no size before it runs. Functions that may run op by op do so instead."""


def translated(error):
    """TensorFlow's class for an error of Tidemark's, with the same text."""
    if isinstance(error, (td.OutOfMemory, td.OverBudget)):
        return ResourceExhaustedError(str(error))
    if isinstance(error, td.UserError):
        return InvalidArgumentError(str(error))
    return InternalError(str(error))
