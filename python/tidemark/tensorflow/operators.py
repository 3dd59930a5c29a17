"""The operators of tf.Tensor and tf.Variable."""
import tidemark as td

from .arrays import TracedRange
from .errors import InvalidArgumentError, UnknownBytes
from .linalg import matmul
from .math import abs as absolute
from .math import add, equal, floordiv, floormod, greater, greater_equal, less, less_equal, multiply, negative, not_equal, pow, subtract, truediv
from .tensor import Tensor, convert, is_tensor, op, pair, wrap


def _bitwise_or_logical(name, logical, native):
    def function(x, y):
        x, y = pair(x, y, name)
        return wrap((logical if x.dtype.is_bool else native)(x._t, y._t))

    return op(function)


_and = _bitwise_or_logical("and", td.logical_and, td.bitwise_and)
_or = _bitwise_or_logical("or", td.logical_or, td.bitwise_or)
_xor = _bitwise_or_logical("xor", td.logical_xor, td.bitwise_xor)


@op
def _invert(x):
    return wrap(td.logical_not(x._t) if x.dtype.is_bool else td.bitwise_invert(x._t))


def _comparable(f, otherwise):
    """== and != of operands that do not compare are False and True, not errors."""

    def compare(self, other):
        if other is None:
            return otherwise
        try:
            return f(self, other)
        except UnknownBytes:
            raise
        except (InvalidArgumentError, ValueError, TypeError):
            if is_tensor(other) and convert(other).dtype is not convert(self).dtype:
                raise
            return wrap(td.constant(otherwise))

    return compare


OPERATORS = {
    "add": add, "sub": subtract, "mul": multiply, "truediv": truediv, "floordiv": floordiv, "mod": floormod, "pow": pow,
    "matmul": matmul, "and": _and, "or": _or, "xor": _xor,
}
COMPARISONS = {"lt": less, "le": less_equal, "gt": greater, "ge": greater_equal}


def add_operators(cls):
    """Gives a class the operators of TensorFlow's tensors."""
    for name, f in OPERATORS.items():
        setattr(cls, f"__{name}__", lambda self, other, f=f: f(self, other) if _takes(other) else NotImplemented)
        setattr(cls, f"__r{name}__", lambda self, other, f=f: f(other, self) if _takes(other) else NotImplemented)
    for name, f in COMPARISONS.items():
        setattr(cls, f"__{name}__", lambda self, other, f=f: f(self, other))
    cls.__eq__, cls.__ne__ = _comparable(equal, False), _comparable(not_equal, True)
    cls.__neg__ = lambda self: negative(self)
    cls.__abs__ = lambda self: absolute(self)
    cls.__invert__ = lambda self: _invert(convert(self))


def _takes(other):
    """Whether an operator takes this beside a tensor: symbolic tensors of Keras define their own."""
    return not getattr(other, "_is_symbolic", False)


add_operators(Tensor)
add_operators(TracedRange)
TracedRange.__hash__ = object.__hash__
