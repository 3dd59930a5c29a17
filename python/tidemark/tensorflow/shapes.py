"""tf.TensorShape and tf.TensorSpec."""
import tidemark as td

from . import dtypes


def _size(value):
    """One dimension: an int, or None where it is open."""
    if value is None or isinstance(value, int):
        return None if value is None or value < 0 and value == -1 else value
    if isinstance(value, td.Dim):
        return None
    if value is getattr(td, "open", None):
        return None
    return int(value)


class TensorShape:
    """The sizes of a tensor's axes, as far as they are known."""

    __slots__ = ("_dims",)

    def __init__(self, dims):
        if isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif dims is None:
            self._dims = None
        elif isinstance(dims, int) or not hasattr(dims, "__iter__"):
            self._dims = (_size(dims),)
        else:
            self._dims = tuple(_size(d) for d in dims)

    @property
    def rank(self):
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self):
        return None if self._dims is None else list(self._dims)

    def as_list(self):
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def is_fully_defined(self):
        return self._dims is not None and None not in self._dims

    def num_elements(self):
        if not self.is_fully_defined():
            return None
        count = 1
        for d in self._dims:
            count *= d
        return count

    def is_compatible_with(self, other):
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims)
        )

    def assert_is_compatible_with(self, other):
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_has_rank(self, rank):
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_is_fully_defined(self):
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def merge_with(self, other):
        self.assert_is_compatible_with(other)
        other = TensorShape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        return TensorShape([b if a is None else a for a, b in zip(self._dims, other._dims)])

    def with_rank(self, rank):
        return self.merge_with(TensorShape([None] * rank))

    def concatenate(self, other):
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return TensorShape(other).concatenate(self)

    def __getitem__(self, key):
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else None
        part = self._dims[key]
        return TensorShape(part) if isinstance(key, slice) else part

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __len__(self):
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self):
        return self._dims is not None

    def __eq__(self, other):
        try:
            return self._dims == TensorShape(other)._dims
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self):
        return hash(self._dims)

    def __str__(self):
        if self._dims is None:
            return "<unknown>"
        return f"({', '.join(map(str, self._dims))}{',' if len(self._dims) == 1 else ''})"

    def __repr__(self):
        return "TensorShape(None)" if self._dims is None else f"TensorShape({list(self._dims)})"

    def __reduce__(self):
        return TensorShape, (None if self._dims is None else list(self._dims),)


class TensorSpec:
    """The shape and dtype of a tensor, for signatures and plans."""

    __slots__ = ("shape", "dtype", "name")

    def __init__(self, shape, dtype=dtypes.float32, name=None):
        self.shape, self.dtype, self.name = TensorShape(shape), dtypes.as_dtype(dtype), name

    @classmethod
    def from_tensor(cls, tensor, name=None):
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec, name=None):
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, other):
        if not hasattr(other, "dtype"):
            return False
        return self.dtype == other.dtype and self.shape.is_compatible_with(other.shape)

    def most_specific_compatible_type(self, other):
        if self.dtype != other.dtype or self.shape.rank != other.shape.rank:
            raise ValueError(f"No TensorSpec is compatible with both {self} and {other}")
        dims = [a if a == b else None for a, b in zip(self.shape, other.shape)]
        return TensorSpec(dims, self.dtype, self.name)

    def _td(self):
        """The same for td.function."""
        if self.shape.rank is None:
            raise ValueError(f"{self}: the rank is unknown; Tidemark needs it: TensorSpec([None, None], ...)")
        return td.spec([td.open if d is None else d for d in self.shape], self.dtype._td)

    def __eq__(self, other):
        return isinstance(other, TensorSpec) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"
