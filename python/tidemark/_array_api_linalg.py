"""The extension linalg of the array API standard, version 2023.12: td.array_api.linalg."""
from collections import namedtuple as _namedtuple

from . import _core as _td, linalg as _linalg
from ._core.linalg import det, eigvalsh, inv, solve, svdvals  # noqa: F401

_eigh = _namedtuple("eigh", "eigenvalues eigenvectors")
_qr = _namedtuple("qr", "Q R")
_slogdet = _namedtuple("slogdet", "sign logabsdet")
_svd = _namedtuple("svd", "U S Vh")


def _turned(x):
    return _td.transpose(x, list(range(x.ndim - 2)) + [x.ndim - 1, x.ndim - 2])


def cholesky(x, /, *, upper=False):
    lower = _linalg.cholesky(x)
    return _turned(lower) if upper else lower


def cross(x1, x2, /, *, axis=-1):
    return _td.cross(x1, x2, axis)


def diagonal(x, /, *, offset=0):
    return _td.diagonal(x, offset)


def eigh(x, /):
    return _eigh(*_linalg.eigh(x))


def matmul(x1, x2, /):
    return _td.matmul(x1, x2)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    return _linalg.matrix_norm(x, ord, keepdims)


def matrix_power(x, n, /):
    if n < 0:
        x, n = inv(x), -n
    result = None
    while n:
        if n % 2:
            result = x if result is None else _td.matmul(result, x)
        x, n = (_td.matmul(x, x), n // 2) if n > 1 else (x, 0)
    return result if result is not None else _td.broadcast_to(_td.eye(x.shape[-1], dtype=x.dtype), x.shape)


def matrix_rank(x, /, *, rtol=None):
    values = svdvals(x)
    if rtol is None:
        rtol = max(x.shape[-2], x.shape[-1]) * (2.0 ** -23 if x.dtype == _td.f32 else 2.0 ** -52)
    return _td.sum(_td.cast(values > _td.max(values, axis=-1, keepdims=True) * rtol, _td.i64), axis=-1)


def matrix_transpose(x, /):
    return _turned(x)


def outer(x1, x2, /):
    return _td.outer(x1, x2)


def pinv(x, /, *, rtol=None):
    return _linalg.pinv(x, rtol)


def qr(x, /, *, mode="reduced"):
    return _qr(*_linalg.qr(x, complete=mode == "complete"))


def slogdet(x, /):
    return _slogdet(*_linalg.slogdet(x))


def svd(x, /, *, full_matrices=True):
    return _svd(*_linalg.svd(x, full_matrices=full_matrices))


def tensordot(x1, x2, /, *, axes=2):
    from . import array_api
    return array_api.tensordot(x1, x2, axes=axes)


def trace(x, /, *, offset=0, dtype=None):
    from . import array_api
    return array_api.sum(_td.diagonal(x, offset), axis=-1, dtype=dtype)


def vecdot(x1, x2, /, *, axis=-1):
    from . import array_api
    return array_api.vecdot(x1, x2, axis=axis)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    return _linalg.vector_norm(x, ord, axis, keepdims)
