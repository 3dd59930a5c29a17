"""What products, windows, and composites of them mean."""

import math

import jax.numpy as jnp
import numpy as np

from meaning_rows import logsumexp, softmax
from meaning_values import V, both, computed, moved


def summed(subscripts):
    return both(lambda xp, *x: xp.einsum(subscripts, *x))


def patches(x, kernel, stride, low, high, dilation, filler, spread=None):
    """[n, rows, columns, height, width, channels]: what each window sees; `filler` is outside. Of any number of axes."""
    axes = range(len(kernel))
    spread = spread or [1] * len(kernel)
    covered = [max(0, (n - 1) * s + 1) for n, s in zip(x.a.shape[1:], spread)]
    sizes = [max(0, (covered[i] + low[i] + high[i] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1) for i in axes]

    def look(a, outside):
        if 0 in sizes:
            return np.zeros([a.shape[0], *sizes, *kernel, a.shape[-1]], a.dtype)
        wide = np.full([a.shape[0], *[covered[i] + max(0, low[i]) + max(0, high[i]) for i in axes], a.shape[-1]], outside.reshape(-1)[0], a.dtype)
        wide[(slice(None), *[slice(max(0, low[i]), max(0, low[i]) + covered[i], spread[i]) for i in axes])] = a
        wide = wide[(slice(None), *[slice(max(0, -low[i]), wide.shape[1 + i] - max(0, -high[i])) for i in axes])]
        places = [np.arange(sizes[i])[:, None] * stride[i] + np.arange(kernel[i])[None] * dilation[i] for i in axes]
        index = [places[i].reshape([sizes[i] if j == i else 1 for j in axes] + [kernel[i] if j == i else 1 for j in axes]) for i in axes]
        return wide[(slice(None), *index)]
    return moved(look, x, V(np.array([filler])))


def convolved(x, w, stride, low, high, dilation, groups, spread=None):
    *kernel, inputs, outputs = w.a.shape
    seen = patches(x, kernel, stride, low, high, dilation, 0.0, spread)
    n, *sizes = seen.a.shape[:1 + len(kernel)]
    seen = moved(lambda a: a.reshape(n, int(np.prod(sizes)), int(np.prod(kernel)), groups, inputs), seen)
    taps = moved(lambda a: a.reshape(int(np.prod(kernel)), inputs, groups, outputs // groups), w)
    y = summed("npkgi,kigo->npgo")(seen, taps)
    return moved(lambda a: a.reshape(n, *sizes, outputs), y)


def sampling_weights(method, antialias, n, m):
    """[m, n]: how much of each of n samples is in each of m."""
    i, j = np.meshgrid(np.arange(m), np.arange(n), indexing="ij")
    t = np.abs(j + 0.5 - (i + 0.5) * n / m) / (max(1, n / m) if antialias else 1)
    weights = [(2 * i + 1) * n // (2 * m) == j, np.maximum(0, 1 - t),
               np.where(t < 1, 1.5 * t**3 - 2.5 * t**2 + 1, np.where(t < 2, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2, 0)),
               (j >= i * n // m) & (j * m < (i + 1) * n)][method].astype(float)
    return weights / weights.sum(1, keepdims=True)


def same_padding(size, kernel, stride, dilation):
    total = max(0, (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


def to_nhwc(x):
    return moved(lambda a: a.transpose(0, 2, 3, 1), x)


def to_nchw(x):
    return moved(lambda a: a.transpose(0, 3, 1, 2), x)


class Products:
    """A part of Meaning."""

    def do_matmul(self, at, a, b):
        if at.whole("transpose_a"):
            a = moved(lambda x: np.swapaxes(x, -1, -2), a)
        if at.whole("transpose_b"):
            b = moved(lambda x: np.swapaxes(x, -1, -2), b)
        return both(lambda xp, x, y: xp.matmul(x, y))(a, b)

    def do_tensordot(self, at, a, b):
        return both(lambda xp, x, y: xp.tensordot(x, y, at.whole("axes")))(a, b)

    def do_einsum(self, at, *operands):
        return summed(at.text("subscripts").replace(">", "->"))(*operands)

    def do_outer(self, _, a, b):
        return summed("i,j->ij")(a, b)

    def do_conv2d(self, at, x, w):
        return convolved(x, w, at.wholes("stride"), at.wholes("pad_low"), at.wholes("pad_high"), at.wholes("dilation"),
                         at.whole("groups"), at.wholes("spread"))

    do_conv3d = do_conv2d

    def do_conv_kernel(self, at, x, by):
        """Of each tap the pixels that it meets, times what comes out there."""
        stride, low, high, dilation, taps = (at.wholes(word) for word in ("stride", "pad_low", "pad_high", "dilation", "taps"))
        groups, out = at.whole("groups"), by.a.shape[1:3]
        each, outs = x.a.shape[-1] // groups, by.a.shape[-1] // groups

        def summed_up(xp):
            def run(a, b):
                whole = xp.pad(a, ((0, 0), *zip(low, high), (0, 0)))
                found = []
                for tap in np.ndindex(*taps):
                    part = whole[(slice(None), *[slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, out, stride)])]
                    found.append(xp.concatenate([xp.einsum("nhwi,nhwo->io", part[..., g * each:(g + 1) * each], b[..., g * outs:(g + 1) * outs])
                                                 for g in range(groups)], -1))
                return xp.stack(found).reshape((*taps, each, groups * outs))
            return run
        return computed(summed_up(np), summed_up(jnp), x, by)

    def do_distances(self, at, a, b):
        apart = lambda xp: lambda x, y: xp.sqrt(xp.sum(xp.square(x[..., :, :, None] - y[..., None, :, :]), -2))
        return computed(apart(np), apart(jnp), a, b)

    def do_weighted_differences(self, at, weights, a, b):
        summed_up = lambda xp: lambda w, x, y: xp.sum(w[..., None] * (x[..., :, None, :] - y[..., None, :, :]), -2)
        return computed(summed_up(np), summed_up(jnp), weights, a, b)

    def do_resample(self, at, x):
        axis, size, back = at.whole("axis"), at.whole("size"), at.whole("transposed")
        sizes = (size, x.a.shape[axis]) if back else (x.a.shape[axis], size)
        weights = sampling_weights(at.whole("sampling"), at.whole("antialias"), *sizes)
        weights = weights.T if back else weights
        weighted = lambda xp: lambda v: xp.moveaxis(xp.tensordot(xp.asarray(weights, v.dtype), v, (1, axis)), 0, axis)
        return computed(weighted(np), weighted(jnp), x)

    def window(self, at, x, kernel, strides, dilations):
        pads = [same_padding(x.a.shape[1 + i], kernel[i], strides[i], dilations[i]) if at.whole("same") else (0, 0)
                for i in range(2)]
        return [p[0] for p in pads], [p[1] for p in pads]

    def do_td_conv2d(self, at, x, w):
        nchw = at.whole("nchw")
        x = to_nhwc(x) if nchw else x
        strides, dilations = at.wholes("strides"), at.wholes("dilations")
        low, high = self.window(at, x, w.a.shape[:2], strides, dilations)
        y = convolved(x, w, strides, low, high, dilations, at.whole("groups"))
        return to_nchw(y) if nchw else y

    def pooled(self, at, x, function):
        nchw = at.whole("nchw")
        x = to_nhwc(x) if nchw else x
        size, strides = at.wholes("size"), at.wholes("strides")
        low, high = self.window(at, x, size, strides, (1, 1))
        y = function(x, lambda v, filler: patches(v, size, strides, low, high, (1, 1), filler))
        return to_nchw(y) if nchw else y

    def do_max_pool(self, at, x):
        """The first of equals is taken, and the gradient goes to it alone."""
        def largest(v, look):
            seen = look(v, -np.inf)
            flat = moved(lambda a: a.reshape(a.shape[:3] + (a.shape[3] * a.shape[4], a.shape[5])), seen)
            first = self.known(lambda a: np.argmax(a, 3, keepdims=True), [flat]).a
            return moved(lambda a: np.take_along_axis(a, first, 3)[..., 0, :], flat)
        return self.pooled(at, x, largest)

    def do_avg_pool(self, at, x):
        def average(v, look):
            counts = np.sum(look(V(np.ones(v.a.shape)), 0.0).a, axis=(3, 4))
            return both(lambda xp, a: xp.sum(a, axis=(3, 4)) / counts)(look(v, 0.0))
        return self.pooled(at, x, average)

    def do_attention(self, at, q, k, v, mask=None):
        keep = np.ones((q.a.shape[-2], k.a.shape[-2]), bool)
        if at.whole("causal"):
            keep = np.tril(keep)
        if mask is not None:
            keep = keep & mask.a
        scale = at.real("scale") if "scale" in at.attrs else 1 / math.sqrt(q.a.shape[-1])
        sees = keep.any(-1, keepdims=True)
        hidden = np.where(keep | ~sees, 0.0, -1e300)

        def attend(xp, q, k, v):
            scores = xp.matmul(q, xp.swapaxes(k, -1, -2)) * scale + hidden
            return xp.matmul(softmax(xp, scores, scores.ndim - 1), v) * sees
        return both(attend)(q, k, v)

    def do_mse(self, _, x, y):
        return both(lambda xp, a, b: xp.mean((a - b) * (a - b)))(x, y)

    def do_sparse_softmax_cross_entropy(self, _, labels, logits):
        axis = logits.a.ndim - 1
        table = (labels.a[..., None] == np.arange(logits.a.shape[-1])).astype(np.float64)
        return both(lambda xp, a: xp.mean(logsumexp(xp, a, (axis,), False) - xp.sum(a * table, axis=-1)))(logits)

    def do_clip_by_norm(self, at, x):
        most = at.real("most")
        longer = self.known(lambda a: np.sqrt(np.sum(a * a)) > most, [x]).a
        return both(lambda xp, a: a * most / xp.sqrt(xp.sum(a * a)))(x) if longer else x
