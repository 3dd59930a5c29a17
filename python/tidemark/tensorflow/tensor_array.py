"""tf.TensorArray. Outside of traced loops it is a list of tensors; a traced loop carries it as one tensor with room for all elements.

One of dynamic size gets room for one further element a trip of its loop: that this many were written is checked when it is read.
"""
import tidemark as td
from tidemark.autograph.lists import Appends, Growing

from . import dtypes
from .errors import InvalidArgumentError, OutOfRangeError, UnknownBytes
from .shapes import TensorShape
from .tensor import Tensor, convert, integer, integers, is_tensor, op, of_sizes, wrap


class _Writes(Appends):
    """How many elements there are after a loop: those that were written before, and one a trip, in whichever of its branches."""

    def __init__(self, items):
        super().__init__(len(items))
        self.written = sum(item is not None for item in items)

    def add(self):
        self.added = _larger(self.added, self._times())

    def most(self):
        return _larger(self.before, self.added + self.written)

    def refuse(self):
        _refuse_dynamic()


class TensorArray(Growing):
    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None, handle=None, flow=None,
                 infer_shape=True, element_shape=None, colocate_with_first_write_call=True, name=None):
        self._dtype, self._dynamic = dtypes.as_dtype(dtype), bool(dynamic_size)
        self._infer, self._element = infer_shape, None if element_shape is None else TensorShape(element_shape)
        size = self._known_size(size)
        is_open = isinstance(size, td.Dim)
        self._items = None if is_open else [None] * size  # Until a traced loop carries it.
        self._size = size if is_open else None  # From then on: one tensor with room for all, None before the first write.
        self._buffer = None
        self._count = self.appends = None  # And of dynamic size: how many are written, and the most that its loop writes.
        if is_open and self._element is not None and self._element.is_fully_defined():
            self._buffer = td.zeros([size, *self._element], self._dtype._td)

    @staticmethod
    def _known_size(size):
        if size is None:
            return 0
        if is_tensor(size) and td.is_traced(convert(size)._t):
            known = convert(size)._sizes
            return known if isinstance(known, (int, td.Dim)) else _refuse_size()
        return integer(size, "TensorArray: size")

    dtype = property(lambda self: self._dtype)
    element_shape = property(lambda self: self._element or TensorShape(None))
    dynamic_size = property(lambda self: self._dynamic)

    def _like(self, items=None, buffer=None, size=None, count=None):
        made = object.__new__(TensorArray)
        made._dtype, made._dynamic, made._infer, made._element = self._dtype, self._dynamic, self._infer, self._element
        made._items, made._buffer, made._size = items, buffer, size
        made._count, made.appends = count, self.appends
        return made

    # ---- writing ---------------------------------------------------------------------------------

    @op
    def write(self, index, value):
        value = convert(value, None if is_tensor(value) else self._dtype)
        if value.dtype is not self._dtype:
            raise InvalidArgumentError(f"TensorArray.write: the array holds {self._dtype.name} and the value is {value.dtype.name}{value.shape}; write tf.cast(x, tf.{self._dtype.name})")
        position = _position(index)
        if self._items is not None and isinstance(position, int):
            return self._written(position, value)
        buffer, size = self._room()
        if buffer is None:
            buffer = td.zeros([size, *value._t.shape], self._dtype._td)
        place, count = position if isinstance(position, int) else position._t, self._count
        if count is not None:
            self.appends.add()
            count = td.maximum(count, td.cast(place, td.i32) + 1 if isinstance(place, td.Tensor) else place + 1)
        return self._like(buffer=td.put(buffer, place, value._t), size=size, count=count)

    def _written(self, position, value):
        items = list(self._items)
        if position < 0 or position >= len(items) and not self._dynamic:
            raise OutOfRangeError(f"TensorArray.write: index {position} of an array of size {len(items)}; dynamic_size=True lets it grow")
        if self._infer and self._element is not None and not self._element.is_compatible_with(value.shape):
            raise ValueError(f"TensorArray.write: the elements are {self._element} and the value is {value.shape}; infer_shape=False takes any")
        items += [None] * (position + 1 - len(items))
        items[position] = value
        made = self._like(items=items)
        if self._infer and self._element is None:
            made._element = value.shape
        return made

    def scatter(self, indices, value, name=None):
        value, made = convert(value, None if is_tensor(value) else self._dtype), self
        for i, position in enumerate(integers(indices, "TensorArray.scatter: indices")):
            made = made.write(position, wrap(value._t[i]))
        return made

    def unstack(self, value, name=None):
        value = convert(value, None if is_tensor(value) else self._dtype)
        made = self._like(items=[wrap(part) for part in td.unstack(value._t)])
        made._element = TensorShape(value.shape[1:])
        return made

    def split(self, value, lengths, name=None):
        parts = td.split(convert(value)._t, integers(lengths, "TensorArray.split: lengths"))
        return self._like(items=[wrap(p) for p in parts])

    # ---- reading ---------------------------------------------------------------------------------

    @op
    def read(self, index):
        position = _position(index)
        if self._items is not None and isinstance(position, int):
            if not 0 <= position < len(self._items):
                raise OutOfRangeError(f"TensorArray.read: index {position} of an array of size {len(self._items)}")
            return self._item(position)
        return wrap(td.gather(self.stack()._t, position if isinstance(position, int) else position._t, 0))

    def _item(self, position):
        item = self._items[position]
        if item is not None:
            return item
        shape = self._element or next((x.shape for x in self._items if x is not None), TensorShape([]))
        return wrap(td.zeros([d or 0 for d in shape], self._dtype._td))

    @op
    def stack(self):
        if self._items is None:
            return wrap(self._filled())
        if not self._items:
            return wrap(td.zeros([0] + [d or 0 for d in (self._element or [])], self._dtype._td))
        return wrap(td.stack([self._item(i)._t for i in range(len(self._items))]))

    @op
    def concat(self):
        if self._items is None:
            stacked = self._filled()
            return wrap(td.reshape(stacked, [-1] + list(stacked.shape)[2:]))
        return wrap(td.concat([self._item(i)._t for i in range(len(self._items))], 0))

    @op
    def gather(self, indices):
        return wrap(td.gather(self.stack()._t, convert(indices)._t, 0))

    def size(self, name=None):
        if self._count is not None:
            return wrap(self._count)
        size = self._size if self._items is None else len(self._items)
        return Tensor(of_sizes([size])._t[0], size)

    def __len__(self):
        return int(self.size())

    def close(self, name=None):
        return None

    identity = property(lambda self: lambda: self)

    # ---- in loops --------------------------------------------------------------------------------

    def _room(self):
        """The tensor of all elements, None if nothing is known of them, and how many there are."""
        if self._items is None:
            return self._buffer, self._size
        if self._dynamic:
            _refuse_dynamic()
        return self._rows(len(self._items)), len(self._items)

    def _rows(self, room):
        """All elements as one tensor with this much room, None if nothing is known of them."""
        if any(item is not None for item in self._items):
            rows = self.stack()._t
            more = room - len(self._items)
            return rows if more == 0 else td.concat([rows, td.zeros([more, *rows.shape[1:]], rows.dtype)], 0)
        known = self._element is not None and self._element.is_fully_defined()
        return td.zeros([room, *self._element], self._dtype._td) if known else None

    def grows(self):
        return self._dynamic and self._items is not None

    def with_room(self, room):
        room = len(self._items) if room is None else room
        made = self._like(buffer=self._rows(room), size=room, count=td.constant(len(self._items), dtype=td.i32))
        made.appends = _Writes(self._items)
        return made

    def _filled(self):
        if self._buffer is None:
            raise InvalidArgumentError("TensorArray: it is read before anything is written; give element_shape, or write first")
        if self._count is not None:
            td.assert_that(self._count == self._size, "TensorArray: dynamic_size=True, and its loop did not write one further element in each trip; write TensorArray(dtype, size=n)")
        return self._buffer

    def _in_loop(self, buffer, size):
        return self._like(buffer=buffer, size=size)

    def copy(self):
        return self

    def parts(self):
        """What a traced `for` or `while` carries from trip to trip, and what stays the same."""
        buffer, size = self._room()
        return [buffer] if self._count is None else [buffer, self._count], (TensorArray, self._dtype, self._infer, size, self.appends)

    @staticmethod
    def rebuilt(structure, leaves):
        made = object.__new__(TensorArray)
        _, made._dtype, made._infer, made._size, made.appends = structure
        made._dynamic, made._items, made._element, made._buffer = False, None, None, leaves[0]
        made._count = leaves[1] if len(leaves) > 1 else None
        return made


def _larger(a, b):
    """Of an open size and 0 the size: asking it for more would make a trace for its value alone."""
    return b if isinstance(a, int) and a == 0 else a if isinstance(b, int) and b == 0 or a == b else max(a, b)


def _refuse_dynamic():
    raise UnknownBytes(
        "TensorArray: dynamic_size=True in a traced loop whose number of trips is not known, and so the bytes are not; write TensorArray(dtype, size=n) with the most elements there can be"
    )


def _refuse_size():
    raise UnknownBytes(
        "TensorArray: the size is a tensor whose value is known only at run time, so the bytes are not; pass a Python int, or tf.shape(x)[0], whose value the plan knows"
    )


def _position(index):
    if not is_tensor(index):
        return int(index)
    index = convert(index)
    if isinstance(index._sizes, int):
        return index._sizes
    return index if td.is_traced(index._t) else int(index)
