"""Linear algebra on the matrices in the last two axes; the axes before them are a batch."""
import math as _math

from . import _core as _td
from ._core.linalg import *  # noqa: F403
from ._core.linalg import matrix_norm as _matrix_norm, vector_norm as _vector_norm

_WORDS = {1: "one", -1: "least_one", 2: "two", -2: "least_two", _math.inf: "inf", -_math.inf: "least_inf", None: "fro"}


def matrix_norm(x, ord="fro", keepdims=False):
    """The norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf, as NumPy names them."""
    return _matrix_norm(x, _WORDS.get(ord, ord), keepdims)


def norm(x, ord=None, axis=None, keepdims=False):
    """As numpy.linalg.norm: of a vector along one axis, of matrices along two, of all elements without either."""
    x = _td.asarray(x)
    if axis is None:
        if ord is None:
            return _vector_norm(x, 2, None, keepdims)
        if x.ndim not in (1, 2):
            raise ValueError(f"norm: ord={ord!r} of a tensor with {x.ndim} axes: say along which one or two, axis=...")
        axis = tuple(range(x.ndim))
    axes = [axis] if isinstance(axis, int) else list(axis)
    if len(axes) == 1 or ord is None:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"norm: {len(axes)} axes: a vector has one, a matrix two")
    axes = [i % x.ndim for i in axes]
    rest = [i for i in range(x.ndim) if i not in axes]
    size = matrix_norm(_td.transpose(x, rest + axes), ord)
    return _td.reshape(size, [1 if i in axes else x.shape[i] for i in range(x.ndim)]) if keepdims else size
