"""`while` and `for`: on tensors of the trace a loop of the program, on Python values as in Python, unrolled into the trace."""
import os
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
    """Counts the ops that a loop over Python values adds to the trace, and warns once where they are many. Of nested loops the innermost warns."""

    warnings = 0

    def __init__(self, block):
        self._block, self._trips, self._warned = block, 0, _Unrolled.warnings
        self._first = backend.op_count() if backend.tracing() else None

    def trip(self):
        self._trips += 1
        if self._first is None or self._trips < 2 or backend.ops_since(self._first) <= MANY_OPS:
            return
        self._first = None
        if _Unrolled.warnings == self._warned:
            _Unrolled.warnings += 1
            _warn(self._block, f"was unrolled into more than {MANY_OPS:,} ops by its first {self._trips} trips: "
                               "loop over td.range or over a tensor, and its body is traced once")


def _warn(block, text):
    """Warns at the line of a loop."""
    frame = sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] == "tidemark":
        frame = frame.f_back
    file = frame.f_code.co_filename
    warnings.warn_explicit(f"the loop at {os.path.basename(file)}:{block.line} {text}", UserWarning, file, block.line)
