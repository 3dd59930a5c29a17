"""Gradients as functions, custom gradients and recomputation: functions of functions."""
import functools

from . import _core


def _like(f, wrapper):
    return functools.update_wrapper(wrapper, f, updated=()) if hasattr(f, "__name__") else wrapper


def value_and_grad(f, argnums=0, *, variables=None):
    """A function that returns (f's result, gradients).

    The gradients are those of f's result, which must be one number, by the positional arguments
    `argnums` (a number or several), or by `variables`. If f returns a tuple, its first element is
    differentiated and the others are auxiliary results.
    """
    if variables is not None:
        return _like(f, lambda *args, **kwargs: _core._value_and_grad_by(f, args, kwargs, variables))
    return _like(f, lambda *args, **kwargs: _core._value_and_grad("value_and_grad", f, args, kwargs, argnums))


def grad(f, argnums=0):
    """A function that returns the gradients of f's result by the positional arguments `argnums`."""
    return _like(f, lambda *args, **kwargs: _core._value_and_grad("grad", f, args, kwargs, argnums)[1])


def jacobian(f):
    """A function that returns the derivative of every element of f(x) by every element of x."""
    return _like(f, lambda x: _core._jacobian(f, x))


def hvp(f, x, v):
    """The Hessian of f, which returns one number, times v."""
    return _core.jvp(grad(f), x, v)[1]


def custom_gradient(f, backward=None):
    """f with a gradient of its own.

    f returns (y, gradient), and gradient(dy) returns the gradients for f's arguments, a tuple if
    there are several; None for one that has none. If f reads trainable Variables, gradient returns
    (gradients, {variable: gradient}). With `backward`, f returns (y, saved), and
    backward(saved, dy) returns the gradients.
    """
    if backward is None:
        return _like(f, lambda *args, **kwargs: _core._custom_gradient(f, args, kwargs))

    def both(*args, **kwargs):
        y, saved = f(*args, **kwargs)
        return y, lambda dy: backward(saved, dy)

    return _like(f, lambda *args, **kwargs: _core._custom_gradient(both, args, kwargs))


def recompute(f):
    """f, rematerialized: gradients keep only its arguments and run f again, with the same bits."""
    return _like(f, lambda *args, **kwargs: _core._recompute(f, args, kwargs))
