"""tf.DType and its instances."""
import builtins

import numpy as np
import tidemark as td


class DType:
    """The type of a tensor's elements. Equal to its name and to NumPy's type."""

    def __init__(self, name, native, numpy_type, kind, size):
        self.name, self._td, self._numpy, self._kind, self.size = name, native, numpy_type, kind, size

    @property
    def as_numpy_dtype(self):
        if self._numpy is None:
            raise TypeError(f"NumPy has no type like {self.name}; cast to tf.float32 first: tf.cast(x, tf.float32)")
        return self._numpy

    is_floating = property(lambda self: self._kind == "float")
    is_integer = property(lambda self: self._kind in ("int", "uint"))
    is_unsigned = property(lambda self: self._kind == "uint")
    is_bool = property(lambda self: self._kind == "bool")
    is_complex = property(lambda self: self._kind == "complex")
    has_gradient = property(lambda self: self._kind in ("float", "complex"))
    real_dtype = property(lambda self: {"complex64": float32, "complex128": float64}.get(self.name, self))
    is_numeric = property(lambda self: self._kind != "bool")
    base_dtype = property(lambda self: self)
    as_datatype_enum = property(lambda self: _NUMBERS[self.name])

    def _limits(self):
        if self.is_bool:
            return 0, 1
        if self.is_complex:
            raise TypeError(f"Cannot find the limits of {self.name}: complex numbers have no order")
        if self.name == "bfloat16":
            return -3.3895314e38, 3.3895314e38
        info = np.finfo(self._numpy) if self.is_floating else np.iinfo(self._numpy)
        return info.min, info.max

    @property
    def min(self):
        return self._limits()[0]

    @property
    def max(self):
        return self._limits()[1]

    limits = property(lambda self: self._limits())

    def is_compatible_with(self, other):
        return self == other

    def __eq__(self, other):
        if other is None:
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return False

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"tf.{self.name}"

    def __str__(self):
        return f"<dtype: '{self.name}'>"

    def __reduce__(self):
        return as_dtype, (self.name,)


_NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10, "bfloat16": 14,
            "complex64": 8, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23}
float16 = half = DType("float16", td.f16, np.float16, "float", 2)
bfloat16 = DType("bfloat16", td.bf16, None, "float", 2)
float32 = DType("float32", td.f32, np.float32, "float", 4)
float64 = double = DType("float64", td.f64, np.float64, "float", 8)
int8 = DType("int8", td.i8, np.int8, "int", 1)
int16 = DType("int16", td.i16, np.int16, "int", 2)
int32 = DType("int32", td.i32, np.int32, "int", 4)
int64 = DType("int64", td.i64, np.int64, "int", 8)
uint8 = DType("uint8", td.u8, np.uint8, "uint", 1)
uint16 = DType("uint16", td.u16, np.uint16, "uint", 2)
uint32 = DType("uint32", td.u32, np.uint32, "uint", 4)
uint64 = DType("uint64", td.u64, np.uint64, "uint", 8)
bool = DType("bool", td.bool, np.bool_, "bool", 1)  # TensorFlow's name.
complex64 = DType("complex64", td.c64, np.complex64, "complex", 8)
complex128 = DType("complex128", td.c128, np.complex128, "complex", 16)

ALL = (float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool, complex64, complex128)
_by_name = {each.name: each for each in ALL} | {"half": half, "float": float32, "double": float64, "int": int32}
_by_td = {str(each._td): each for each in ALL}
_by_python = {float: float32, int: int32, builtins.bool: bool, complex: complex128}


def as_dtype(value):
    """The DType of a name, a NumPy type, a Python type or a DType."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in _by_name:
        return _by_name[value]
    if isinstance(value, type) and value in _by_python:
        return _by_python[value]
    native = _by_td.get(str(value))
    if native is not None:
        return native
    try:
        name = np.dtype(value).name
    except TypeError:
        name = str(value)
    if name in _by_name:
        return _by_name[name]
    raise TypeError(f"Cannot convert {value!r} to a dtype of Tidemark's: " + ", ".join(each.name for each in ALL))


def of_td(native):
    return _by_td[str(native)]


UNKNOWN = ("string", "qint8", "variant", "resource")


def why_not(name):
    return "texts stay Python's str; tensors hold numbers" if name == "string" else "the dtypes are " + ", ".join(each.name for each in ALL)
