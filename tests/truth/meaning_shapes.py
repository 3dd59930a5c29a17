"""What ops that move elements or make arrays mean."""

import numpy as np

from meaning_values import DTYPES, V, moved


class Shapes:
    """A part of Meaning."""

    def do_reshape(self, at, x):
        return moved(lambda a: a.reshape(at.shape()), x)

    def do_broadcast_to(self, at, x):
        return moved(lambda a: np.broadcast_to(a, at.shape()), x)

    def do_transpose(self, at, x):
        return moved(lambda a: a.transpose(at.wholes("order")), x)

    def do_slice(self, at, x):
        return moved(lambda a: a[at.places()], x)

    def do_update(self, at, x, y):
        def put(a, b):
            a = a.copy()
            a[at.places()] = b
            return a
        return moved(put, x, y)

    def do_index(self, at, x):
        return moved(lambda a: a[at.index()], x)

    def do_update_at(self, at, x, y):
        def put(a, b):
            a = a.copy()
            a[at.index()] = b
            return a
        return moved(put, x, V(np.asarray(y.a, np.float64), y.t))

    def do_concat(self, at, *parts):
        return moved(lambda *a: np.concatenate(a, at.whole("axis")), *parts)

    def do_stack(self, at, *parts):
        return moved(lambda *a: np.stack(a, at.whole("axis")), *parts)

    def padded(self, x, low, high, inside, value):
        def put(a, filler):
            sizes = [l + h + s + max(0, s - 1) * i for s, l, h, i in zip(a.shape, low, high, inside)]
            wide = np.full(sizes, filler.reshape(-1)[0], a.dtype)
            wide[tuple(slice(l, l + s + max(0, s - 1) * i, i + 1) for s, l, i in zip(a.shape, low, inside))] = a
            return wide
        return moved(put, x, V(np.array([value])))

    def do_pad(self, at, x):
        return self.padded(x, at.wholes("low"), at.wholes("high"), at.wholes("inside"), at.real("value"))

    def do_td_pad(self, at, x):
        return self.padded(x, at.shape("low"), at.shape("high"), [0] * x.a.ndim, at.real("value"))

    def do_expand_dims(self, at, x):
        return moved(lambda a: np.expand_dims(a, at.whole("axis")), x)

    def do_squeeze(self, at, x):
        return moved(lambda a: np.squeeze(a, at.axes(x)), x)

    def do_split(self, at, x):
        axis = at.whole("axis")
        cuts = np.cumsum(at.wholes("sizes"))[:-1] if "sizes" in at.attrs else at.whole("parts")
        count = len(np.split(x.a, cuts, axis))
        return [moved(lambda a, i=i: np.split(a, cuts, axis)[i], x) for i in range(count)]

    def do_unstack(self, at, x):
        axis = at.whole("axis")
        return [moved(lambda a, i=i: np.take(a, i, axis), x) for i in range(x.a.shape[axis])]

    def do_tile(self, at, x):
        return moved(lambda a: np.tile(a, at.wholes("counts")), x)

    def do_repeat(self, at, x):
        return moved(lambda a: np.repeat(a, at.size("count"), at.whole("axis") if "axis" in at.attrs else None), x)

    def do_flip(self, at, x):
        return moved(lambda a: np.flip(a, at.axes(x)), x)

    def triangle(self, at, x):
        keep = (np.tril if at.op == "tril" else np.triu)(np.ones(x.a.shape[-2:]), at.whole("diagonal")) != 0
        keep = np.broadcast_to(keep, x.a.shape)
        return moved(lambda a, zero: np.where(keep, a, zero.reshape(-1)[0]), x, V(np.zeros(1)))

    do_tril = do_triu = triangle

    # ---- making ---------------------------------------------------------------------------------

    def do_arange(self, at):
        to = DTYPES[at.text("dtype")]
        if "size" in at.attrs:
            return V(np.arange(at.size("size")).astype(to))
        return V(np.arange(at.real("start"), at.real("stop"), at.real("step")).astype(to))

    def do_linspace(self, at):
        return V(np.linspace(at.real("start"), at.real("stop"), at.whole("count")))

    def do_eye(self, at):
        return V(np.eye(at.whole("rows"), at.whole("columns")))

    def do_zeros(self, at):
        return V(np.zeros(at.shape()))

    def do_ones(self, at):
        return V(np.ones(at.shape()))

    def do_full(self, at):
        return V(np.full(at.shape(), at.real("value")))

    def do_one_hot(self, at, x):
        return V((x.a[..., None] == np.arange(at.whole("depth"))).astype(np.float64))

    def draw(self, at, *_):
        """What was drawn is taken from the run; it must be of the right kind."""
        wanted = (at.whole("n"),) if at.op == "random_permutation" else at.shape()
        if self.draws is None:
            return V(np.zeros(wanted, DTYPES[at.attrs.get("dtype", "i64")]))
        a = self.draws[self.drawn]
        self.drawn += 1
        ok = a.shape == tuple(wanted)
        if at.op == "random_permutation":
            ok = ok and sorted(a.tolist()) == list(range(at.whole("n")))
        elif at.op == "random_integers":
            ok = ok and bool(np.all((a >= at.whole("low")) & (a < at.whole("high"))))
        elif at.op == "random_uniform":
            ok = ok and bool(np.all((a >= at.real("a")) & (a <= at.real("b"))))
        if not ok:
            raise ValueError(f"{at.op} drew {a.tolist()}")
        return V(a)

    do_random_normal = do_random_uniform = do_random_bernoulli = do_random_integers = do_random_permutation = draw
