"""tf.TensorArray. Outside of traced loops it is a list of tensors; a traced loop carries it as one tensor with room for all elements."""
import tidemark as td
from tidemark.autograph.state import Collected

from . import dtypes
from .errors import InvalidArgumentError, OutOfRangeError
from .shapes import TensorShape
from .tensor import Tensor, convert, integer, integers, is_tensor, op, of_sizes, wrap


class TensorArray(Collected):
    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None, handle=None, flow=None,
                 infer_shape=True, element_shape=None, colocate_with_first_write_call=True, name=None):
        self._dtype, self._dynamic = dtypes.as_dtype(dtype), bool(dynamic_size)
        self._infer, self._element = infer_shape, None if element_shape is None else TensorShape(element_shape)
        self._items = [None] * self._known_size(size)  # Until a traced loop carries it.
        self._buffer = self._size = None  # From then on: one tensor with room for all, None before the first write.

    @staticmethod
    def _known_size(size):
        if size is None:
            return 0
        if is_tensor(size) and td.is_traced(convert(size)._t) and not isinstance(convert(size)._sizes, int):
            return _open_size(size)
        return integer(size, "TensorArray: size")

    dtype = property(lambda self: self._dtype)
    element_shape = property(lambda self: self._element or TensorShape(None))
    dynamic_size = property(lambda self: self._dynamic)

    def _like(self, items=None, buffer=None, size=None):
        made = object.__new__(TensorArray)
        made._dtype, made._dynamic, made._infer, made._element = self._dtype, self._dynamic, self._infer, self._element
        made._items, made._buffer, made._size = items, buffer, size
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
        return self._like(buffer=td.put(buffer, position if isinstance(position, int) else position._t, value._t), size=size)

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
            raise InvalidArgumentError("TensorArray: dynamic_size=True in a traced loop, and so the bytes are not known; write TensorArray(dtype, size=n) with the most elements there can be")
        size, shape = len(self._items), self._element
        if any(item is not None for item in self._items):
            return self.stack()._t, size
        known = shape is not None and shape.is_fully_defined()
        return (td.zeros([size, *shape], self._dtype._td) if known else None), size

    def _filled(self):
        if self._buffer is None:
            raise InvalidArgumentError("TensorArray: it is read before anything is written; give element_shape, or write first")
        return self._buffer

    def _in_loop(self, buffer, size):
        return self._like(buffer=buffer, size=size)

    def copy(self):
        return self

    def parts(self):
        """What a traced `for` or `while` carries from trip to trip, and what stays the same."""
        buffer, size = self._room()
        return [buffer], (TensorArray, self._dtype, self._infer, size)

    @staticmethod
    def rebuilt(structure, leaves):
        made = object.__new__(TensorArray)
        _, made._dtype, made._infer, made._size = structure
        made._dynamic, made._items, made._element, made._buffer = False, None, None, leaves[0]
        return made


def _open_size(size):
    raise InvalidArgumentError(
        "TensorArray: the size is a tensor whose value is known only at run time, so the bytes are not; pass a Python int, or tf.shape(x)[0], whose value the plan knows"
    )


def _position(index):
    if not is_tensor(index):
        return int(index)
    index = convert(index)
    if isinstance(index._sizes, int):
        return index._sizes
    return index if td.is_traced(index._t) else int(index)
