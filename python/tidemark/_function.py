"""td.function, as a decorator with or without options."""
from ._core import Function


def function(f=None, *, name=None, budget=None, input_signature=None, jit=True, cache_limit=None,
             check_captures=False, autograph=True, when_full=None, autocast=None):
    """f, traced once for each kind of arguments, planned, compiled, and run in one arena.

    Tensors and plain numbers are values of each call. Texts, bools, None, dtypes and
    td.Static(value) are known while tracing: each value has a trace of its own.

    name: in plans and messages; default: f's own.
    budget: the most bytes that a call may add, such as "64 MiB", 64 * td.MiB or td.Budget.available.
    input_signature: specs of the tensors among the arguments; None in a shape is an open size.
    jit: False runs the same program unfused, for debugging.
    cache_limit: the most bytes of traces and programs that are kept.
    check_captures: warn if captured Python values have changed since tracing.
    when_full: td.wait_for(0.1) lets a call for which the memory limit leaves no room wait so many seconds.
    autocast: mixed precision: trainable f32 Variables are read as this dtype, td.bf16 or td.f16 (td.autocast).
    autograph: whether `if`, `while` and `for` on tensors become control flow of the program.
    """
    options = dict(name=name, budget=budget, input_signature=input_signature, jit=jit,
                   cache_limit=cache_limit, check_captures=check_captures, autograph=autograph,
                   when_full=when_full, autocast=autocast)
    if f is None:
        return lambda g: Function(g, **options)
    return Function(f, **options)
