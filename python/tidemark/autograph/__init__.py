"""Python's control flow on tensors: the functions that td.function traces are rewritten from their source, so that an `if` on a tensor
becomes a branch of the program and a loop over tensors a loop of it. On Python values they behave as they are written."""
from . import runtime as _runtime  # noqa: F401
from .convert import convert, converted, do_not_convert  # noqa: F401
from .range import range  # noqa: F401
