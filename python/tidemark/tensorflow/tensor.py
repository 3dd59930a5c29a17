"""tf.Tensor: a td.Tensor with TensorFlow's manners. Dtypes do not mix, shapes are TensorShapes, integers divide to float64."""
import functools
import numbers

import numpy as np
import tidemark as td

from . import dtypes
from .errors import InvalidArgumentError, OperatorNotAllowedInGraphError, UnknownBytes, translated
from .shapes import TensorShape, TensorSpec


def op(f):
    """An op of TensorFlow's: takes `name=` and ignores it, and raises errors of TensorFlow's classes."""

    @functools.wraps(f)
    def call(*arguments, name=None, **options):
        try:
            return f(*arguments, **options)
        except td.Error as error:
            raise translated(error) from error

    return call


class Tensor:
    """An array of numbers that never change."""

    __slots__ = ("_t", "_sizes", "_mask", "__weakref__")
    __array_priority__ = 100  # NumPy leaves mixed arithmetic to this class.

    def __init__(self, native, sizes=None):
        self._t = native
        # The sizes that an integer tensor is made of, if it comes from shapes or Python's numbers: they
        # stay known while a function is traced, so that tf.zeros(tf.shape(x)) can be planned.
        self._sizes = sizes
        self._mask = None  # Keras's mask of the steps that count.

    dtype = property(lambda self: dtypes.of_td(self._t.dtype))
    shape = property(lambda self: TensorShape(self._t.shape))
    ndim = property(lambda self: self._t.ndim)
    device = property(lambda self: "/job:localhost/replica:0/task:0/device:CPU:0")
    name = property(lambda self: "Tensor")

    def get_shape(self):
        return self.shape

    def set_shape(self, shape):
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {TensorShape(shape)}.")

    def numpy(self):
        try:
            array = np.array(self._t)
        except td.Error as error:
            raise AttributeError(str(error)) from error
        return array[()] if array.ndim == 0 else array

    def eval(self):
        return self.numpy()

    def ref(self):
        return Reference(self)

    def experimental_ref(self):
        return Reference(self)

    def __array__(self, dtype=None, copy=None):
        array = np.asarray(self._t)
        return array if dtype is None else array.astype(dtype)

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._t)

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("Cannot iterate over a scalar tensor.")
        if self._sizes is not None and isinstance(self._sizes, list):
            return iter([_of_size(size, self.dtype) for size in self._sizes])
        return iter([wrap(part) for part in td.unstack(self._t)])

    def __bool__(self):
        if td.is_traced(self._t):
            try:
                return bool(self._t)
            except td.Error as error:
                raise OperatorNotAllowedInGraphError(str(error)) from error
        if self._t.ndim and len(self._t.shape) and any(size != 1 for size in self._t.shape):
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        return bool(td.reshape(self._t, []))

    def __int__(self):
        if isinstance(self._sizes, int):
            return self._sizes
        return int(td.reshape(self._t, [])) if self._t.ndim else int(self._t)

    def __float__(self):
        return float(td.reshape(self._t, [])) if self._t.ndim else float(self._t)

    def __complex__(self):
        return complex(td.reshape(self._t, [])) if self._t.ndim else complex(self._t)

    def __index__(self):
        if not self.dtype.is_integer:
            raise TypeError(f"only integer scalar tensors can be converted to an index; this one is {self.dtype.name}")
        return int(self)

    def __format__(self, text):
        return format(self._t.tolist(), text) if self.ndim == 0 and text else str(self)

    def __hash__(self):
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __setitem__(self, key, value):
        raise TypeError(
            "'Tensor' object does not support item assignment; write x = tf.tensor_scatter_nd_update(x, indices, updates)"
        )

    def __repr__(self):
        if td.is_traced(self._t):
            return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, traced>"
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={numpy_text(self)}>"

    def __str__(self):
        if td.is_traced(self._t):
            return repr(self)
        return f"tf.Tensor({np.array2string(np.asarray(self._t), separator=' ')}, shape={self.shape}, dtype={self.dtype.name})"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _unpickled, (self.numpy(), self.dtype.name)


def _unpickled(array, name):
    return convert(array, dtypes.as_dtype(name))


def numpy_text(x):
    """The elements as TensorFlow shows them: a plain number, or an array on a line of its own."""
    return repr(x.numpy().item()) if x.ndim == 0 else ("" if x.ndim == 1 else "\n") + repr(x.numpy())


class Reference:
    """A tensor or Variable as a key: compared by identity."""

    __slots__ = ("_object",)

    def __init__(self, held):
        self._object = held

    def deref(self):
        return self._object

    def __eq__(self, other):
        return isinstance(other, Reference) and self._object is other._object

    def __hash__(self):
        return id(self._object)

    def __repr__(self):
        return f"<Reference wrapping {self._object!r}>"


# Loops, branches, tapes and functions of Tidemark's see the td.Tensor inside.
td.tree.register(Tensor, lambda x: ((x._t,), None), lambda _, children: Tensor(children[0]))


def wrap(native):
    return Tensor(native)


def _of_size(size, dtype=dtypes.int32):
    """A rank-0 tensor of a size that may be open."""
    return Tensor(td.cast(size, dtype._td) if isinstance(size, td.Dim) else td.constant(size, dtype._td), size)


def of_sizes(sizes, dtype=dtypes.int32):
    """A vector of sizes."""
    sizes = list(sizes)
    if any(isinstance(size, td.Dim) for size in sizes):
        return Tensor(td.stack([_of_size(size, dtype)._t for size in sizes]), sizes)
    return Tensor(td.constant(sizes, dtype._td) if sizes else td.zeros([0], dtype._td), sizes)


def _default_dtype(value):
    """The dtype of Python's numbers: int32, float32, bool, by the first number in nested lists."""
    while isinstance(value, (list, tuple)) and len(value):
        kinds = [_default_dtype(v) for v in value] if not isinstance(value[0], (list, tuple)) else [_default_dtype(value[0])]
        return next((kind for kind in (dtypes.complex128, dtypes.float32) if kind in kinds), kinds[0])
    if isinstance(value, (bool, np.bool_)):
        return dtypes.bool
    if isinstance(value, (numbers.Integral,)) and not isinstance(value, np.generic):
        return dtypes.int32
    if isinstance(value, float) and not isinstance(value, np.generic):
        return dtypes.float32
    if isinstance(value, complex) and not isinstance(value, np.generic):
        return dtypes.complex128
    return dtypes.as_dtype(value.dtype) if hasattr(value, "dtype") else dtypes.float32


def _has_tensors(value):
    return isinstance(value, (list, tuple)) and any(hasattr(v, "_t") or _has_tensors(v) for v in value)


def _from_number(value, dtype):
    """One of Python's numbers in a dtype of its kind or a wider one."""
    if dtype.is_bool != isinstance(value, bool) or dtype.is_integer and isinstance(value, float):
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}")
    return Tensor(td.constant(value, dtype._td), value if dtype.is_integer else None)


def _from_lists(value, dtype):
    if dtype is not None and type(value) in (int, float, bool):
        return _from_number(value, dtype)
    sizes = _plain_sizes(value)
    if dtype is None:
        dtype = _default_dtype(value)
        if dtype is dtypes.int32 and any(not -(2**31) <= v < 2**31 for v in _flat([value])):
            dtype = dtypes.int64
    try:
        array = np.array(value)
    except ValueError as error:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from error
    if array.dtype == object:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.")
    if array.dtype.kind in "US":
        raise TypeError(f"Cannot convert {value!r} to a tensor: Tidemark has no tensors of texts")
    if dtype.is_integer and array.dtype.kind == "f" and array.size:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}")
    if array.dtype.kind == "c" and not dtype.is_complex:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}")
    if dtype.is_bool != (array.dtype.kind == "b") and array.size:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}")
    return Tensor(td.constant(_array(array, dtype), dtype._td), sizes if dtype.is_integer else None)


def _array(array, dtype):
    """The array in a type that td.constant reads exactly."""
    return array.astype(np.float32 if dtype._numpy is None else dtype._numpy)


def _plain_sizes(value):
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, (list, tuple)) and len(value) <= 32 and all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        return list(value)
    return None


def convert(value, dtype=None, hint=None):
    """The Tensor of anything that TensorFlow takes for one."""
    dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(value, Tensor):
        return _checked(value, dtype)
    if hasattr(value, "_as_tensor"):  # A Variable, IndexedSlices, a KerasTensor's stand-in.
        return _checked(value._as_tensor(), dtype)
    if isinstance(value, td.Tensor):
        return _checked(Tensor(value), dtype)
    if isinstance(value, td.Dim):
        return _of_size(value, dtype or dtypes.int32)
    if isinstance(value, TensorShape):
        return of_sizes(value.as_list(), dtype or dtypes.int32)
    if _has_tensors(value):
        return _stacked(value, dtype)
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(value, dtype)
    if isinstance(value, td.range):
        raise UnknownBytes(f"{value}: the bounds are known only at run time, and so the size of the tensor is not; loop over it: for i in tf.range(n)")
    if value is None:
        raise ValueError("Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to a Tensor.")
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        if hint is not None and dtype is None:
            return _hinted(value, dtypes.as_dtype(hint))
        return _from_lists(value, dtype)
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return _from_numpy(np.asarray(value), dtype)
    raise ValueError(f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a Tensor.")


def _hinted(value, hint):
    try:
        return _from_lists(value, hint)
    except TypeError:
        return _from_lists(value, None)


def _checked(tensor, dtype):
    if dtype is not None and tensor.dtype is not dtype:
        raise ValueError(f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype {tensor.dtype.name}: {tensor!r}")
    return tensor


def _from_numpy(array, dtype):
    array = np.asarray(array)
    if dtype is None:
        dtype = dtypes.as_dtype(array.dtype)
    elif dtype.is_integer and array.dtype.kind == "f":
        raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype {dtype.name}")
    return Tensor(td.constant(_array(array, dtype), dtype._td))


def _stacked(values, dtype):
    first = next(v for v in _flat(values) if hasattr(v, "_t") or hasattr(v, "_as_tensor"))
    dtype = dtype or convert(first).dtype
    parts = [convert(v, dtype) for v in values]
    sizes = [p._sizes for p in parts]
    known = dtype.is_integer and all(size is not None and not isinstance(size, list) for size in sizes)
    return Tensor(td.stack([p._t for p in parts]), sizes if known else None)


def _flat(values):
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value


def is_tensor(x):
    return isinstance(x, Tensor) or hasattr(x, "_as_tensor")


def raw(value, dtype=None):
    """The td.Tensor of a value."""
    return convert(value, dtype)._t


def pair(a, b, what="op"):
    """Two operands of one dtype: Python's numbers and NumPy's arrays take the dtype of the tensor beside them."""
    if is_tensor(a) or not is_tensor(b):
        a = convert(a)
        b = _beside(b, a.dtype)
    else:
        b = convert(b)
        a = _beside(a, b.dtype)
    if a.dtype is not b.dtype:
        raise InvalidArgumentError(
            f"{what}: the operands are {a.dtype.name}{a.shape} and {b.dtype.name}{b.shape}, and TensorFlow's dtypes do not mix; "
            f"write tf.cast(x, tf.{a.dtype.name}) around one of them"
        )
    return a, b


def _beside(value, dtype):
    if is_tensor(value) or isinstance(value, td.Tensor):
        return convert(value)
    try:
        return convert(value, dtype)
    except TypeError:
        return convert(value)


def floats(x, what):
    """A tensor for an op that takes floats only."""
    x = convert(x)
    if not x.dtype.has_gradient:
        raise InvalidArgumentError(f"{what}: TensorFlow takes floats here, and this tensor is {x.dtype.name}{x.shape}; write tf.cast(x, tf.float32)")
    return x


def selected(x, key, mask):
    """The elements of a td.Tensor at a subscript with a mask, if no trace hides how many they are."""
    if td.is_traced(mask):
        raise UnknownBytes(f"how many elements a mask {mask.dtype.name}{list(mask.shape)} selects is known only when the function runs; tf.where keeps the shape")
    return x[key]


def _known(what, read):
    """What `read` gives, if no trace hides the value: a function that needs it runs op by op."""
    try:
        return read()
    except td.Error as error:
        raise UnknownBytes(f"{what} must be known while the function is traced: {error}") from error


def integer(value, what):
    """One whole number that is known now: an int, or a size that may be open."""
    if isinstance(value, (Tensor,)) or hasattr(value, "_as_tensor"):
        value = convert(value)
        if value._sizes is not None and not isinstance(value._sizes, list):
            return value._sizes
        return _known(what, lambda: int(value))
    if isinstance(value, td.Dim):
        return value
    return int(value)


def integers(values, what):
    """A list of whole numbers that are known now."""
    if isinstance(values, TensorShape):
        return values.as_list()
    if is_tensor(values):
        values = convert(values)
        if values._sizes is not None:
            return values._sizes if isinstance(values._sizes, list) else [values._sizes]
        if values.ndim == 0:
            return [integer(values, what)]
        return _known(what, lambda: [int(v) for v in values._t.tolist()])
    if isinstance(values, np.ndarray):
        return [int(v) for v in values.ravel()]
    if isinstance(values, (int, np.integer, td.Dim)):
        return [integer(values, what)]
    return [integer(v, what) for v in values]


def sizes_of(x):
    """The sizes of a tensor: ints, and td.Dim where a size is open."""
    return list(x._t.shape)


def axes(axis, what="axis"):
    """An axis argument as Tidemark takes it: None, an int or a list."""
    if axis is None or isinstance(axis, int):
        return axis
    found = integers(axis, what)
    return found[0] if is_tensor(axis) and convert(axis).ndim == 0 else found


def spec_of(x):
    return TensorSpec(x.shape, x.dtype)
