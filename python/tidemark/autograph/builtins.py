"""Python's own functions that know tensors of the trace: what rewritten code calls instead of them."""
import builtins
import functools

from . import backend
from .backend import is_traced, refuse
from .branch import and_, condition, or_
from .lists import length, stack_list
from .range import range as Range
from .walk import Enumerated, Zipped, is_walked


def print_(*values, **options):
    if not any(is_traced(value) for value in values):
        return print(*values, **options)
    if options:
        refuse(f"print: {', '.join(options)} cannot be used with tensors of the trace", "leave it out: values are separated by spaces")
    return backend.print(*map(backend.inner, values))


def range_(*bounds):
    return Range(*map(backend.inner, bounds)) if any(is_traced(bound) for bound in bounds) else range(*bounds)


def enumerate_(items, start=0):
    return Enumerated(items, start) if is_traced(items) or is_walked(items) else enumerate(items, start)


def zip_(*items, **options):
    return Zipped(*items) if any(is_traced(each) or is_walked(each) for each in items) and not options else zip(*items, **options)


def _number(dtype, plain):
    def convert(*values, **options):
        if len(values) != 1 or not is_traced(values[0]):
            return plain(*values, **options)
        return backend.outer(backend.cast(backend.inner(values[0]), getattr(backend, dtype)))
    return convert


def _truth(*values):
    return backend.outer(condition(values[0])) if values and is_traced(values[0]) else bool(*values)


def _extreme(choose, plain):
    def extreme(*values, **options):
        items = list(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else list(values)
        if options or not any(is_traced(item) for item in items) or len(items) < 2:
            return plain(*values, **options)
        return backend.outer(functools.reduce(getattr(backend, choose), map(backend.inner, items)))
    return extreme


def _joined(join, stops):
    """`all` and `any`: Python values decide while tracing, as far as they do."""
    def joined(items):
        items = iter(items)
        for item in items:
            if is_traced(item):
                return join(True, condition(item), *(lambda _, each=each: each for each in items))
            if bool(item) == stops:
                return stops
        return not stops
    return joined


REPLACEMENTS = {
    builtins.print: print_, builtins.range: range_, builtins.enumerate: enumerate_, builtins.zip: zip_, builtins.len: length,
    builtins.int: _number("i32", int), builtins.float: _number("f32", float), builtins.bool: _truth,
    builtins.max: _extreme("maximum", max), builtins.min: _extreme("minimum", min), builtins.all: _joined(and_, False), builtins.any: _joined(or_, True),
    backend.stack: stack_list,
}
