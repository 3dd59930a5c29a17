"""`while` and `for`: on tensors of the trace a loop of the program, on Python values as in Python, unrolled into the trace."""
import sys
import warnings

from . import backend
from .backend import is_traced
from .branch import condition, traced_if
from .errors import run
from .state import State
from .trace_loop import TracedLoop
from .walk import walk_of

MANY_OPS = 1000


def while_stmt(test, body, block):
    unrolled = _Unrolled(block)
    while True:
        goes_on = run(test, None)
        if is_traced(goes_on):
            return TracedLoop("while", State(block, body), lambda _: run(body), condition=lambda: run(test, None)).run()
        if not goes_on:
            return None
        run(body)
        unrolled.trip()


def for_stmt(items, goes_on, body, block):
    walk = walk_of(items) if backend.tracing() else None
    if walk is not None:
        test = None if goes_on is None else lambda: run(goes_on, None)
        return TracedLoop("for", State(block, body), lambda item: run(body, item), condition=test, walk=walk).run()
    unrolled = _Unrolled(block)
    remaining = iter(items)
    while (wanted := goes_on is None or run(goes_on, None)) is not False:
        try:
            item = next(remaining)
        except StopIteration:
            return None
        if is_traced(wanted):  # Left by a condition of the trace: the rest of the trips may still run.
            traced_if(condition(wanted), _Bound(body, item), None, block)
        else:
            run(body, item)
        unrolled.trip()


class _Bound:
    """A block with its argument, which still looks like a function."""

    def __init__(self, body, item):
        self._body, self._item = body, item
        self.__code__, self.__closure__, self.__globals__ = body.__code__, body.__closure__, body.__globals__

    def __call__(self):
        return self._body(self._item)


class _Unrolled:
    """Counts the ops that a loop over Python values adds to the trace, and warns once where they are many."""

    inner_warned = False

    def __init__(self, block):
        self._line, self._trips = block.line, 0
        self._before = backend.op_count() if backend.tracing() else None
        type(self).inner_warned = False

    def trip(self):
        self._trips += 1
        if self._before is None or backend.op_count() - self._before <= MANY_OPS:
            return
        self._before = None
        if not type(self).inner_warned and self._trips > 1:
            type(self).inner_warned = True
            self._warn()

    def _warn(self):
        frame = sys._getframe()
        while frame.f_globals.get("__name__", "").startswith("tidemark"):
            frame = frame.f_back
        text = (f"the loop at {frame.f_code.co_filename}:{self._line} was unrolled into more than {MANY_OPS:,} ops after {self._trips} trips: "
                "loop over td.range or over a tensor to trace its body once")
        warnings.warn_explicit(text, UserWarning, frame.f_code.co_filename, self._line)
