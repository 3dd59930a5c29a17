"""The few things of the extension that the runtime needs. Ops of the catalogue are taken from it by name."""
from .. import _core
from .._core import Tensor, UserError, Variable, tree  # noqa: F401

TENSORS = (Tensor, Variable)


def __getattr__(name):
    return getattr(_core, name)


def is_traced(value):
    """Whether a value is known only when the program runs: any tensor, while a function is traced."""
    return isinstance(value, TENSORS) and _core._ag_tracing()


def refuse(problem, remedy):
    """Raises a UserError at the user's line."""
    _core._ag_refuse(problem, remedy)


def refuse_at(problem, file, line, function, remedy):
    """The same at a line that is not being run."""
    _core._ag_refuse_at(problem, file, line, function, remedy)


def as_tensor(value):
    return value if isinstance(value, Tensor) else value.value() if isinstance(value, Variable) else _core.constant(value)


def integer(number):
    return _core.constant(number, dtype=_core.i32)


def is_dataset(value):
    data = getattr(_core, "data", None)
    return data is not None and isinstance(value, data.Dataset)


tracing, untraced = _core._ag_tracing, _core._ag_untraced
op_count, ops_since = _core._ag_op_count, _core._ag_ops_since
cond = _core._ag_cond
loop = _core._ag_loop
