"""Python's control flow on tensors: the functions that td.function traces are rewritten from their source, so that an `if` on a tensor
becomes a branch of the program and a loop over tensors a loop of it. On Python values they behave as they are written."""
from .range import range  # noqa: F401


def convert(function):
    """The function as td.function traces it. What cannot be rewritten is an error that names the line."""
    from . import runtime  # Imported when first wanted: it needs `ast` and `inspect`, which take a while.
    return runtime.convert_function(function)


def converted(function):
    """The same for a function that a traced one calls: what cannot be rewritten is left as it is."""
    from . import runtime
    return runtime.callee(function)


def do_not_convert(function):
    """A decorator: the function is left as it is when traced functions call it."""
    function.__ag_left__ = True
    return function
