"""tf.keras.backend: names, defaults, and the Variables of layers."""
import collections
import re

import tidemark as td

from .. import dtypes
from ..tensor import convert
from ..variable import Variable

_names = collections.Counter()


def epsilon():
    return 1e-07


def floatx():
    return "float32"


def image_data_format():
    return "channels_last"


def clear_session(free_memory=True):
    _names.clear()


def snake(name):
    return re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)).lower()


def unique_name(prefix):
    count = _names[prefix]
    _names[prefix] += 1
    return prefix if count == 0 else f"{prefix}_{count}"


class KerasVariable(Variable):
    """A weight: its name has no suffix, and its first value is made when it is first read."""

    def __init__(self, shape, initializer, dtype="float32", trainable=True, name="variable", regularizer=None, constraint=None):
        dtype = dtypes.as_dtype(dtype)
        self._shape, self.constraint, self._handle_name, self._trainable = None, constraint, name, trainable
        self.regularizer, self.initializer = regularizer, initializer
        shape = [int(n) for n in shape]

        def initial(sizes, kind):
            return convert(initializer(shape, dtype=dtype), dtype)._t

        self._v = td.Variable(initial, name, trainable=trainable and dtype.is_floating, dtype=dtype._td, shape=shape)

    name = property(lambda self: self._handle_name)
    path = property(lambda self: self._handle_name)

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)

    def __hash__(self):
        return id(self)

    def __deepcopy__(self, memo):
        """A weight of its own, with a first value of its own."""
        return KerasVariable(self._v.shape, self.initializer, self.dtype, self._trainable, self._handle_name, self.regularizer, self.constraint)
