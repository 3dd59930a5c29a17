"""What a traced `for` goes over: slices of tensors, numbers of td.range, several of them side by side."""
from . import backend
from .backend import TENSORS, Variable, refuse
from .lists import TensorList
from .range import range as Range


class Walk:
    """`trips`: how many; an int, an open size or a tensor. `walked`: tensors of which each trip gets a slice. `item(number, slices)`: what the
    loop's target is set to."""

    def __init__(self, trips, walked, item, needs_number):
        self.trips, self.walked, self.item, self.needs_number = trips, walked, item, needs_number


class Enumerated:
    """enumerate() of something traced."""

    def __init__(self, items, start=0):
        self.items, self.start = items, start


class Zipped:
    """zip() of things of which one is traced."""

    def __init__(self, *items):
        self.items = items


def walk_of(items):
    """None for Python's own iterables."""
    native = backend.inner(items)
    items = native if isinstance(native, TENSORS) else items
    if isinstance(items, Variable):
        items = items.value()
    if isinstance(items, TensorList):
        items = items.rows
    if isinstance(items, TENSORS):
        if len(items.shape) == 0:
            refuse("for: a tensor of rank 0 has no axis to loop over", "loop over td.range(n), or over a tensor with a first axis")
        return Walk(items.shape[0], [items], lambda _, slices: slices[0], False)
    if isinstance(items, Range):
        return Walk(items.trips(), [], lambda number, _: items.number(number), True)
    if isinstance(items, Enumerated):
        inner = walk_of(items.items)
        return Walk(inner.trips, inner.walked, lambda number, slices: (number + items.start, inner.item(number, slices)), True)
    return _zipped(items) if isinstance(items, Zipped) else None


def _zipped(items):
    inner = [walk_of(each) for each in items.items]
    if None in inner:
        refuse("zip: some of what the loop goes over are tensors, and some are Python values", "stack the Python values into a tensor")
    if len({str(walk.trips) for walk in inner}) != 1:
        refuse(f"zip: the lengths differ: {', '.join(str(walk.trips) for walk in inner)}", "cut the longer ones: x[:n]")

    def item(number, slices):
        slices = iter(slices)
        return tuple(walk.item(number, [next(slices) for _ in walk.walked]) for walk in inner)

    return Walk(inner[0].trips, [tensor for walk in inner for tensor in walk.walked], item, any(walk.needs_number for walk in inner))


def is_walked(items):
    return isinstance(items, (Range, Enumerated, Zipped, TensorList))
