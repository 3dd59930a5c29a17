"""tf.Variable and tf.IndexedSlices."""

import tidemark as td

from . import dtypes
from .errors import translated
from .indexing import tensor_scatter_nd_add, tensor_scatter_nd_max, tensor_scatter_nd_min, tensor_scatter_nd_sub, tensor_scatter_nd_update
from .operators import add_operators
from .shapes import TensorShape
from .tensor import Reference, Tensor, convert, integers, numpy_text, wrap



class Variable:
    """State that outlives a step: a td.Variable with TensorFlow's manners."""

    def __init__(self, initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None, variable_def=None,
                 dtype=None, import_scope=None, constraint=None, synchronization=None, aggregation=None, shape=None, **options):
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be specified")
        if callable(initial_value) and not isinstance(initial_value, (Tensor, Variable)):
            initial_value = initial_value()
        value = convert(initial_value, dtype)
        self._shape = None if shape is None else TensorShape(shape)
        self.constraint, self._handle_name = constraint, name or "Variable"
        self._trainable = True if trainable is None else bool(trainable)
        trains = self._trainable and value.dtype.has_gradient
        self._make(value, trains)

    def _make(self, value, trains):
        self._v = td.Variable(td.identity(value._t), self._handle_name, trainable=trains)

    @property
    def name(self):
        return f"{self._handle_name}:0"

    trainable = property(lambda self: self._trainable)
    dtype = property(lambda self: dtypes.of_td(self._v.dtype))
    ndim = property(lambda self: len(self._v.shape))
    device = property(lambda self: "/job:localhost/replica:0/task:0/device:CPU:0")

    @property
    def shape(self):
        return TensorShape(self._v.shape) if self._shape is None else self._shape

    def get_shape(self):
        return self.shape

    def _as_tensor(self):
        return wrap(self._v.value())

    _t = property(lambda self: self._v.value())
    _sizes = property(lambda self: None)

    def value(self):
        return self._as_tensor()

    def read_value(self):
        return self._as_tensor()

    def numpy(self):
        return self._as_tensor().numpy()

    def ref(self):
        return Reference(self)

    # ---- writing ---------------------------------------------------------------------------------

    def _new(self, value):
        return value if isinstance(value, (int, float)) and not self.ndim and not isinstance(value, bool) and self.dtype.is_floating else convert(value, self.dtype)._t

    def _changed(self, change, value, read_value):
        try:
            change(self._new(value))
        except td.Error as error:
            raise ValueError(str(error)) from error
        return self if read_value else None

    def assign(self, value, use_locking=False, name=None, read_value=True):
        new = convert(value, self.dtype)
        if not self.shape.is_compatible_with(new.shape):
            raise ValueError(f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape {self.shape}, and the assigned value shape {new.shape} are incompatible.")
        if self._shape is not None and tuple(new._t.shape) != tuple(self._v.shape):
            self._make(new, self._v.trainable)  # Another size: a Variable of its own behind this name.
            return self if read_value else None
        return self._changed(self._v.assign, new, read_value)

    def assign_add(self, delta, use_locking=False, name=None, read_value=True):
        return self._changed(self._v.assign_add, delta, read_value)

    def assign_sub(self, delta, use_locking=False, name=None, read_value=True):
        return self._changed(self._v.assign_sub, delta, read_value)

    def _scatter(self, f, indices, updates):
        return self.assign(f(self._as_tensor(), indices, updates))

    def scatter_nd_update(self, indices, updates, name=None):
        return self._scatter(tensor_scatter_nd_update, indices, updates)

    def scatter_nd_add(self, indices, updates, name=None):
        return self._scatter(tensor_scatter_nd_add, indices, updates)

    def scatter_nd_sub(self, indices, updates, name=None):
        return self._scatter(tensor_scatter_nd_sub, indices, updates)

    def _scatter_slices(self, f, slices):
        rows = wrap(td.expand_dims(convert(slices.indices)._t, -1))
        return self._scatter(f, rows, slices.values)

    def scatter_update(self, sparse_delta, use_locking=False, name=None):
        self._v.scatter_update(convert(sparse_delta.indices)._t, convert(sparse_delta.values, self.dtype)._t)
        return self

    def scatter_add(self, sparse_delta, use_locking=False, name=None):
        return self._scatter_slices(tensor_scatter_nd_add, sparse_delta)

    def scatter_sub(self, sparse_delta, use_locking=False, name=None):
        return self._scatter_slices(tensor_scatter_nd_sub, sparse_delta)

    def scatter_max(self, sparse_delta, use_locking=False, name=None):
        return self._scatter_slices(tensor_scatter_nd_max, sparse_delta)

    def scatter_min(self, sparse_delta, use_locking=False, name=None):
        return self._scatter_slices(tensor_scatter_nd_min, sparse_delta)

    def sparse_read(self, indices, name=None):
        return self._gather(convert(indices))

    def _gather(self, ids):
        """Rows of the table; the gradient is row-sparse, since the Variable itself is looked up."""
        try:
            return wrap(td.gather(self._v, ids._t, 0))
        except td.Error as error:
            raise translated(error) from error

    # ---- as a tensor -----------------------------------------------------------------------------

    def __getitem__(self, key):
        part = self._as_tensor()[key]
        return VariableSlice(part._t, self, key)

    def __iter__(self):
        return iter(self._as_tensor())

    def __len__(self):
        return len(self._as_tensor())

    def __bool__(self):
        return bool(self._as_tensor())

    def __int__(self):
        return int(self._as_tensor())

    def __float__(self):
        return float(self._as_tensor())

    def __index__(self):
        return self._as_tensor().__index__()

    def __array__(self, dtype=None, copy=None):
        return self._as_tensor().__array__(dtype)

    def __format__(self, text):
        return format(self._as_tensor(), text) if text else str(self)

    def __hash__(self):
        raise TypeError("Variable is unhashable. Instead, use variable.ref() as the key.")

    def __repr__(self):
        value = self._as_tensor()
        if td.is_traced(value._t):
            return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={numpy_text(value)}>"

    def __deepcopy__(self, memo):
        return Variable(self._as_tensor(), trainable=self._trainable, name=self._handle_name)


add_operators(Variable)


class VariableSlice(Tensor):
    """v[key]: a tensor that can be assigned."""

    __slots__ = ("_variable", "_key")

    def __init__(self, native, variable, key):
        super().__init__(native)
        self._variable, self._key = variable, key

    def assign(self, value, use_locking=False, name=None, read_value=True):
        from .indexing import _key

        parts = self._key if isinstance(self._key, tuple) else (self._key,)
        native = tuple(_key(part) for part in parts)
        whole = self._variable._v.value()
        new = td.broadcast_to(convert(value, self.dtype)._t, self._t.shape)
        self._variable._v.assign(td.update(whole, native if len(native) != 1 else native[0], new))
        return self._variable


td.tree.register(VariableSlice, lambda x: ((x._t,), None), lambda _, children: Tensor(children[0]))


class IndexedSlices:
    """Rows of a table: values[i] belongs to row indices[i]; rows of equal index add up."""

    def __init__(self, values, indices, dense_shape=None):
        self.values, self.indices = convert(values), convert(indices)
        self.dense_shape = None if dense_shape is None else convert(dense_shape)

    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: TensorShape(None) if self.dense_shape is None else TensorShape(integers(self.dense_shape, "dense_shape")))

    def _as_tensor(self):
        if self.dense_shape is None:
            raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {self!r}")
        zero = td.zeros(integers(self.dense_shape, "dense_shape"), self.values._t.dtype)
        return wrap(td.scatter_add(zero, self.indices._t, self.values._t))

    _t = property(lambda self: self._as_tensor()._t)

    def __neg__(self):
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __mul__(self, other):
        return self._as_tensor() * other

    __rmul__ = __mul__

    def __add__(self, other):
        return self._as_tensor() + other

    __radd__ = __add__

    def __sub__(self, other):
        return self._as_tensor() - other

    def __truediv__(self, other):
        return self._as_tensor() / other

    def __repr__(self):
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, dense_shape={self.dense_shape!r})"


