"""Lists that traced loops append to.

While a trip is traced, the list is a `Trip`: what this trip appends, which the loop stacks. A list that trips also read, or append to only
sometimes, is a `Buffer`: a tensor with room for all elements, and how many there are. After the loop a stacked list is a `TensorList`.
"""
import threading

from . import backend
from .backend import Tensor, is_traced, refuse, tree
from .state import Collected, described


class Unfit(Exception):
    """A Trip is not enough for its list, whose `owner` is the loop: as `kind`, a Buffer or a list, it may be."""

    def __init__(self, trip, kind):
        super().__init__()
        self.owner, self.kind = trip.owner, kind


class Chunk:
    """Several elements of a Trip, which an inner loop stacked: a tensor with one row for each."""

    def __init__(self, rows):
        self.rows = rows


def checked(element):
    """What is appended, if one tensor can hold it."""
    if isinstance(element, (tuple, list, dict)) and any(isinstance(backend.inner(leaf), Tensor) for leaf in tree.leaves(element)):
        refuse(f"append: the element is {described(element)}, and a list that a traced loop appends to holds tensors",
               "append each part to a list of its own")
    return element


class Trip(list, Collected):
    """Tensors and Chunks, in the order of their appends."""

    def __init__(self, owner, items=()):
        super().__init__(items)
        self.owner = owner

    def append(self, element):
        list.append(self, checked(element))

    def copy(self):
        return Trip(self.owner, self.items())

    def items(self):
        return list(list.__iter__(self))

    def parts(self):
        items = self.items()
        return [item.rows if isinstance(item, Chunk) else backend.inner(item) for item in items], (Trip, self.owner, *(isinstance(item, Chunk) for item in items))

    @staticmethod
    def rebuilt(structure, leaves):
        return Trip(structure[1], (Chunk(leaf) if is_chunk else leaf for is_chunk, leaf in zip(structure[2:], leaves)))

    def _read(self, *_):
        raise Unfit(self, Buffer)  # A trip reads what trips before it appended.

    def _change(self, *_):
        raise Unfit(self, list)

    __getitem__ = __len__ = __iter__ = __contains__ = __add__ = __eq__ = __bool__ = __reversed__ = index = count = _read
    __setitem__ = __delitem__ = __iadd__ = extend = insert = pop = remove = reverse = sort = clear = _change



class TensorList(Collected):
    """A list after the loop that appended to it: the elements are the rows of one tensor."""

    def __init__(self, rows):
        self.rows = rows

    def copy(self):
        return TensorList(self.rows)

    def parts(self):
        return [self.rows], (TensorList,)

    @staticmethod
    def rebuilt(_, leaves):
        return TensorList(leaves[0])

    def stack(self):
        return backend.outer(self.rows)

    def __len__(self):
        return int(self.rows.shape[0])

    def __getitem__(self, where):
        return backend.outer(self.rows[backend.inner(where)])

    def __iter__(self):
        return (backend.outer(self.rows[i]) for i in range(len(self)))

    def append(self, element):
        self.rows = joined(self, [element])

    def __repr__(self):
        return f"[{self.rows.shape[0]} tensors appended in a traced loop]"


class Growing(Collected):
    """A loop adds elements to it, and it has room for all of them: `appends` is how many that are, which a first trace finds out, with too
    little room. Before the loop it is None."""

    appends = None

    def with_room(self, room):
        """As the loop that makes the room starts with it; None in the first trace."""
        return self

    def grows(self):
        """Whether the loop that starts with it makes its room. One inside that loop does not."""
        return False


class Buffer(Growing):
    """`rows` has room for every element; it is None until the first is appended. `count` is an int32 tensor."""

    def __init__(self, room, rows, count, appends):
        self.room, self.rows, self.count, self.appends = room, rows, count, appends

    def copy(self):
        return Buffer(self.room, self.rows, self.count, self.appends)

    def parts(self):
        return [self.rows, self.count], (Buffer, self.room, self.appends)

    @staticmethod
    def rebuilt(structure, leaves):
        return Buffer(structure[1], *leaves, structure[2])

    def append(self, element):
        self.appends.add()
        element = backend.as_tensor(checked(element))
        if self.rows is None:
            self.rows = backend.zeros((self.room, *element.shape), element.dtype)
        backend.assert_that(self.count < self.room, "append: the list is full")
        self.rows = backend.put(self.rows, self.count, element)
        self.count = self.count + 1

    def __getitem__(self, where):
        return backend.outer(backend.gather(self._all(), self._place(where), 0))

    def _place(self, where):
        where = backend.inner(where)
        if isinstance(where, slice):
            refuse("a slice of a list whose length is known only when the program runs", "index one element at a time")
        return self.count + where if isinstance(where, int) and where < 0 else where

    def __setitem__(self, where, value):
        self.rows = backend.put(self._all(), self._place(where), backend.as_tensor(value))

    def __len__(self):
        self._all_of_them()

    __iter__ = stack = __len__

    def _all(self):
        if self.rows is None:
            refuse("a list is read before anything is appended to it", "append to it before the loop")
        return self.rows

    def _all_of_them(self):
        refuse("the length of a list is known only when the program runs: a traced loop appends to it under a condition, or leaves early",
               "append in every trip, choosing the value with td.where, or write into td.TensorArray(dtype, max_size=n)")


class _Loops(threading.local):
    """The loops around the block that is being traced, the outermost first: their numbers of trips, None for one that is not known."""

    def __init__(self):
        self.trips = []


loops = _Loops()


class Appends:
    """How many elements a loop adds at most to the `before` there were: an append in the body of inner loops counts as many times as they run."""

    def __init__(self, before=0):
        self.before, self.depth, self.added = before, len(loops.trips), 0

    def most(self):
        return self.before + self.added

    def add(self):
        self.added += self._times()

    def _times(self):
        times = 1
        for trips in loops.trips[self.depth :]:
            times = self.refuse() if trips is None else times * trips
        return times

    def refuse(self):
        refuse("append: the number of trips of this loop is known only when the program runs, and so the length of the list is not bounded",
               "loop over td.range(n) with a plain number n and break, or write into td.TensorArray(dtype, max_size=n)")


def joined(before, items):
    """One tensor of all elements: those of a list, then items and Chunks."""
    parts = [before.rows] if isinstance(before, TensorList) else [_row(element) for element in before]
    parts += [item.rows if isinstance(item, Chunk) else _row(item) for item in items]
    return parts[0] if len(parts) == 1 else backend.concat(parts, 0)


def _row(element):
    return backend.expand_dims(backend.as_tensor(element), 0)


def stacked(structure, stacks):
    """The rows of all trips, in order. The stacks have a first axis of trips: [n, ...] for an element, [n, m, ...] for a Chunk."""
    per_trip = [stack if is_chunk else backend.expand_dims(stack, 1) for is_chunk, stack in zip(structure[2:], stacks)]
    if len(per_trip) == 1 and not structure[2]:
        return stacks[0]
    whole = per_trip[0] if len(per_trip) == 1 else backend.concat(per_trip, 1)
    return backend.reshape(whole, (-1, *whole.shape[2:]))


def parts(value):
    """The leaves of a value, and what puts them together again; equal for values of one structure."""
    return value.parts() if isinstance(value, Collected) else tree.flatten(backend.inner(value))


def rebuilt(structure, leaves):
    return structure[0].rebuilt(structure, leaves) if isinstance(structure, tuple) else backend.outer(structure.unflatten(leaves))


def paths(structure, root):
    return [root] * 32 if isinstance(structure, tuple) else structure.paths(root)


def stack_list(tensors, *arguments, **options):
    """td.stack, which takes a list as a traced loop leaves it."""
    if isinstance(tensors, (TensorList, Buffer)) and not arguments and not options:
        return tensors.stack()
    return backend.stack(list(tensors) if isinstance(tensors, TensorList) else tensors, *arguments, **options)


def length(value):
    """len, of a list whose length is a tensor or an open size too."""
    if isinstance(value, Buffer):
        return backend.outer(value.count)
    if isinstance(value, TensorList):
        value = value.rows
    value = backend.inner(value) if is_traced(value) else value
    return value.shape[0] if isinstance(value, Tensor) and len(value.shape) else len(value)
