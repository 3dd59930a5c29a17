"""What ops that read or write at indices mean."""

import jax.numpy as jnp
import numpy as np

from meaning_values import V, computed, moved, scattered


def targets(at, x, index):
    """The number of the element of x that each update of a scatter goes to."""
    axis = at.whole("axis")
    places = np.arange(x.a.size).reshape(x.a.shape)
    if at.whole("along"):
        return np.take_along_axis(places, index.a % x.a.shape[axis], axis).reshape(-1)
    return np.take(places, index.a, axis).reshape(-1)


class Indices:
    """A part of Meaning."""

    def do_gather(self, at, x, index):
        return moved(lambda a: np.take(a, index.a, at.whole("axis")), x)

    def do_embedding(self, _, x, index):
        return moved(lambda a: np.take(a, index.a, 0), x)

    def do_take_along_axis(self, at, x, index):
        axis = at.whole("axis")
        return moved(lambda a: np.take_along_axis(a, index.a % a.shape[axis], axis), x)

    def do_put(self, _, x, index, element):
        def put(a, b):
            a = a.copy()
            for number, place in enumerate(index.a.reshape(-1)):
                a[place] = b.reshape(index.a.size, *a.shape[1:])[number]
            return a
        return moved(put, x, element)

    def do_scatter_add(self, at, x, index, updates):
        to = targets(at, x, index)
        def add(a, u):
            a = np.array(a).reshape(-1)
            np.add.at(a, to, u.reshape(-1))
            return a.reshape(x.a.shape)
        return computed(add, lambda t, u: scattered(jnp.reshape(t, (-1,)), to, jnp.reshape(u, (-1,))).reshape(x.a.shape), x, updates)

    def scatter_extremum(self, at, x, index, updates):
        """Equal elements share the slope evenly."""
        to = targets(at, x, index)
        combine = np.maximum if at.op == "scatter_max" else np.minimum

        def found(a, u):
            a = np.array(a).reshape(-1)
            combine.at(a, to, u.reshape(-1))
            return a

        def shares(a, u):
            y = found(a, u)
            kept, won = (a.reshape(-1) == y).astype(float), (u.reshape(-1) == y[to]).astype(float)
            count = kept.copy()
            np.add.at(count, to, won)
            return np.concatenate([kept / count, won / count[to]])
        share = self.known(shares, [x, updates]).a
        mine, theirs = share[:x.a.size], share[x.a.size:]

        def picked(t, u):
            return scattered(jnp.reshape(t, (-1,)) * mine, to, jnp.reshape(u, (-1,)) * theirs).reshape(x.a.shape)
        return computed(lambda a, u: found(a, u).reshape(x.a.shape), picked, x, updates)

    do_scatter_max = do_scatter_min = scatter_extremum

    def do_scatter_mul(self, at, x, index, updates):
        to, axis = targets(at, x, index).reshape(updates.a.shape), at.whole("axis")

        def product(t, u, put):
            y = t.reshape(-1)
            for i in range(u.shape[axis]):
                part, at_part = u.take(np.array([i]), axis=axis).reshape(-1), np.take(to, [i], axis).reshape(-1)
                apart = np.ones(x.a.size)
                apart[at_part] = 0
                y = y * put(apart, at_part, part)
            return y.reshape(x.a.shape)

        def put(apart, places, part):
            apart = apart.copy()
            apart[places] = part
            return apart
        return computed(lambda a, u: product(a, u, put), lambda t, u: product(t, u, scattered), x, updates)

    def do_first_equal(self, _, x):
        first = {}
        return V(np.array([first.setdefault(v, i) for i, v in enumerate(x.a.tolist())], np.int64))
