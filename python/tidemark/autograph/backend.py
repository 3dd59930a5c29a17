"""The few things of the extension that the runtime needs. Ops of the catalogue are taken from it by name."""
from .. import _core
from .._core import Tensor, UserError, Variable, tree  # noqa: F401

TENSORS = (Tensor, Variable)


def __getattr__(name):
    return getattr(_core, name)


# A module whose tensors are a class of their own sets this while it traces: inner(value) gives Tidemark's tensors in a value, outer(value) its own.
dialect = None


def inner(value):
    return value if dialect is None else dialect.inner(value)


def outer(value):
    return value if dialect is None else dialect.outer(value)


def is_traced(value):
    """Whether a value is known only when the program runs: any tensor, while a function is traced."""
    return isinstance(inner(value), TENSORS) and _core._ag_tracing()


def refuse(problem, remedy):
    """Raises a UserError at the user's line."""
    _core._ag_refuse(problem, remedy)


def refuse_at(problem, file, line, function, remedy):
    """The same at a line that is not being run."""
    _core._ag_refuse_at(problem, file, line, function, remedy)


def as_tensor(value):
    value = inner(value)
    return value if isinstance(value, Tensor) else value.value() if isinstance(value, Variable) else _core.constant(value)


def integer(number):
    return _core.constant(number, dtype=_core.i32)


tracing = _core._ag_tracing
op_count, ops_since = _core._ag_op_count, _core._ag_ops_since
cond = _core._ag_cond
loop = _core._ag_loop
