"""What reductions, and ops on whole rows, mean."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from meaning_values import Traced, both, computed, moved


def logsumexp(xp, x, axes, keep):
    top = xp.max(x, axis=axes, keepdims=True)
    top = top if xp is np else Traced(lax.stop_gradient(top.x))
    total = xp.log(xp.sum(xp.exp(x - top), axis=axes, keepdims=True)) + top
    return total if keep else xp.squeeze(total, axes)


def softmax(xp, x, axis):
    if x.shape[axis] == 0:
        return x
    return xp.exp(x - logsumexp(xp, x, (axis,), True))


def variance(xp, x, axes, keep):
    d = x - xp.mean(x, axis=axes, keepdims=True)
    return xp.mean(d * d, axis=axes, keepdims=keep)


REDUCTIONS = {
    "sum": lambda xp, x, axes, keep: xp.sum(x, axis=axes, keepdims=keep),
    "prod": lambda xp, x, axes, keep: xp.prod(x, axis=axes, keepdims=keep),
    "max": lambda xp, x, axes, keep: xp.max(x, axis=axes, keepdims=keep),
    "min": lambda xp, x, axes, keep: xp.min(x, axis=axes, keepdims=keep),
    "mean": lambda xp, x, axes, keep: xp.mean(x, axis=axes, keepdims=keep),
    "var": variance,
    "logsumexp": logsumexp,
}


def layer_norm(xp, x, epsilon):
    d = x - xp.mean(x, axis=-1, keepdims=True)
    return d / xp.sqrt(xp.mean(d * d, axis=-1, keepdims=True) + epsilon)


def rms_norm(xp, x, epsilon):
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + epsilon)


class Rows:
    """A part of Meaning."""

    def reduction(self, at, x):
        axes, keep = at.axes(x), bool(at.whole("keepdims"))
        function = REDUCTIONS[at.op]
        return both(lambda xp, a: function(xp, a, axes, keep))(x)

    do_sum = do_prod = do_max = do_min = do_mean = do_var = do_logsumexp = reduction

    def root_of_squares(self, at, x):
        """A square root whose derivatives at 0 are 0, as documented."""
        axes, keep = at.axes(x), bool(at.whole("keepdims"))
        squares = both(lambda xp, a: variance(xp, a, axes, keep) if at.op == "std" else
                       xp.sum(a * a, axis=axes, keepdims=keep))(x)
        zero = self.known(lambda a: a == 0, [squares]).a

        def root(t):
            none = np.zeros(zero.shape)
            return lax.select(zero, none, lax.sqrt(lax.select(zero, none + 1, t)))
        return computed(np.sqrt, root, squares)

    do_std = do_norm = root_of_squares

    def do_all(self, at, x):
        return self.known(lambda a: np.all(a != 0, axis=at.axes(x), keepdims=bool(at.whole("keepdims"))), [x])

    def do_any(self, at, x):
        return self.known(lambda a: np.any(a != 0, axis=at.axes(x), keepdims=bool(at.whole("keepdims"))), [x])

    def do_argmax(self, at, x):
        return self.known(lambda a: np.argmax(a, at.whole("axes"), keepdims=bool(at.whole("keepdims"))), [x])

    def do_argmin(self, at, x):
        return self.known(lambda a: np.argmin(a, at.whole("axes"), keepdims=bool(at.whole("keepdims"))), [x])

    def do_softmax(self, at, x):
        return both(lambda xp, a: softmax(xp, a, at.whole("axis")))(x)

    def do_log_softmax(self, at, x):
        axis = at.whole("axis")
        return x if x.a.shape[axis] == 0 else both(lambda xp, a: a - logsumexp(xp, a, (axis,), True))(x)

    def do_cumsum(self, at, x):
        axis, back = at.whole("axis"), at.whole("reverse")
        return computed(lambda a: np.flip(np.cumsum(np.flip(a, axis), axis), axis) if back else np.cumsum(a, axis),
                        lambda t: lax.cumsum(t, axis, reverse=bool(back)), x)

    def recurrence(self, at, x, terms=None):
        """By one step after another."""
        axis, back = at.whole("axis"), at.whole("reverse")
        count = x.a.shape[axis]

        def steps(xp):
            def run(a, b=None):
                if count == 0:
                    return a if b is None else b
                take = lambda y, i: y[(slice(None),) * axis + (slice(i, i + 1),)]
                order, made = (range(count - 1, -1, -1) if back else range(count)), {}
                for step, i in enumerate(order):
                    if step == 0:
                        made[i] = take(a if b is None else b, i)
                    else:
                        made[i] = take(a, i) * state + (0 if b is None else take(b, i))
                    state = made[i]
                return xp.concatenate([made[i] for i in range(count)], axis)
            return run
        return computed(steps(np), steps(jnp), *([x] if terms is None else [x, terms]))

    do_cumprod = do_linear_scan = recurrence

    def do_fourier(self, at, x):
        axis, inverse, scale = at.wholes("axes")[0], at.whole("inverse"), at.real("scale")

        def transformed(xp):
            def run(a):
                n = a.shape[axis]
                angles = (2 if inverse else -2) * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n
                c, s = np.cos(angles) * scale, np.sin(angles) * scale
                times = lambda matrix, part: xp.moveaxis(xp.matmul(xp.moveaxis(part, axis, -1), matrix), -1, axis)
                return xp.stack([times(c, a[..., 0]) - times(s, a[..., 1]), times(s, a[..., 0]) + times(c, a[..., 1])], -1)
            return run
        return computed(transformed(np), transformed(jnp), x)

    def extremum_so_far(self, at, x):
        axis, back = at.whole("axis"), at.whole("reverse")

        def places(a):
            """Of equal elements the first has the slope."""
            a = np.moveaxis(np.flip(a, axis) if back else a, axis, 0)
            found = np.zeros(a.shape, np.int64)
            for i in range(1, len(a)):
                best = np.take_along_axis(a, found[i - 1:i], 0)[0]
                found[i] = np.where(a[i] > best if at.op == "cummax" else a[i] < best, i, found[i - 1])
            found = np.moveaxis(len(a) - 1 - found if back else found, 0, axis)
            return np.flip(found, axis) if back else found
        order = self.known(places, [x])
        return moved(lambda a: np.take_along_axis(a, order.a, axis), x)

    do_cummax = do_cummin = extremum_so_far

    def do_searchsorted(self, at, row, values):
        return self.known(lambda r, v: np.searchsorted(r, v, "right" if at.whole("right") else "left"), [row, values])

    def sorted(self, at, x):
        axis = at.whole("axis")
        down = at.op == "top_k" or at.whole("descending")
        kept = at.whole("k") if at.op == "top_k" else x.a.shape[axis]

        def places(a):
            """Of equal elements the first comes first."""
            order = np.argsort(np.flip(a, axis) if down else a, axis, kind="stable")
            order = np.flip(a.shape[axis] - 1 - order, axis) if down else order
            return np.take(order, np.arange(kept), axis)
        order = self.known(places, [x])
        return [moved(lambda a: np.take_along_axis(a, order.a, axis), x), order]

    do_sort = do_top_k = sorted

    def normed(self, at, x, scale=None, bias=None):
        function = layer_norm if at.op == "layer_norm" else rms_norm
        y = both(lambda xp, a: function(xp, a, at.real("epsilon")))(x)
        y = y if scale is None else self.binary("multiply", y, scale)
        return y if bias is None else self.binary("add", y, bias)

    do_layer_norm = do_rms_norm = normed
