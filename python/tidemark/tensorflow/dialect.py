"""How rewritten Python control flow sees this module's tensors: the td.Tensor inside, and tf.Tensors again for the user's names."""
import tidemark as td

from . import nest
from .tensor import Tensor, wrap


class Tracing:
    """While a tf.function is traced."""

    def __enter__(self):
        from tidemark.autograph import backend

        self.backend, self.before = backend, backend.dialect
        backend.dialect = Dialect

    def __exit__(self, *_):
        self.backend.dialect = self.before


class Dialect:
    @staticmethod
    def inner(value):
        """The td.Tensor of a tensor or Variable; lists and dicts of them likewise."""
        if isinstance(value, Tensor):
            return value._t
        if hasattr(value, "_as_tensor"):
            return value._as_tensor()._t
        if nest.is_nested(value):
            return nest.map_structure(lambda leaf: Dialect.inner(leaf) if isinstance(leaf, Tensor) else leaf, value)
        return value

    @staticmethod
    def outer(value):
        if isinstance(value, td.Tensor):
            return wrap(value)
        if nest.is_nested(value):
            return nest.map_structure(lambda leaf: wrap(leaf) if isinstance(leaf, td.Tensor) else leaf, value)
        return value
