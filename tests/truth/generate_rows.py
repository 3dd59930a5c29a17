"""Statements of reductions, and of ops on whole rows."""

from generate import Value
from generate_elementwise import back
from generate_table import csv, op
from program_text import Size


def reduced(g, x, nonempty=False):
    """Axes, whether they stay, and the shape that is left."""
    axes = [a for a in range(x.rank) if g.random.random() < 0.55]
    if not axes:
        axes = [g.random.randrange(x.rank)] if x.rank else []
    if nonempty:
        axes = [a for a in axes if g.least(x.shape[a]) > 0]
    keep = g.random.random() < 0.4
    shape = [Size.of(1) if a in axes else s for a, s in enumerate(x.shape) if keep or a not in axes]
    every = len(axes) == x.rank and g.random.random() < 0.5
    return axes, {"axes": "all" if every else csv(axes), "keepdims": int(keep)}, shape


def folded(g, x, axes):
    return max(1, g.largest([x.shape[a] for a in axes]))


@op("sum", "mean", "var", "std", "logsumexp", "norm", "max", "min", "prod", "all", "any")
def reduction(g, name):
    def fits(v):
        return all(g.least(s) > 0 for s in v.shape) or name in ("sum", "all", "any", "prod")
    x = g.floats(test=fits, least_rank=1)
    if name == "prod":
        x = g.within(x, 1.5)
    axes, attrs, shape = reduced(g, x, nonempty=name not in ("sum", "all", "any", "prod"))
    if not axes:
        return
    count = folded(g, x, axes)
    if name == "prod" and count > 8:
        return
    if name in ("std", "norm") and (g.random.random() < 0.9 or count < 2):
        # The root of what is not near zero.
        y = g.emit("square", [g.within(x, 5)], {}, "float", x.shape, 25)
        axes_only = dict(attrs)
        s = g.emit("mean", [y], axes_only, "float", shape, 25)
        s = g.emit("add", [s, 0.5], {}, "float", shape, 26)
        if name == "norm" and x.rank > 1 and count >= 2:
            z = g.emit("add", [y, 0.1], {}, "float", x.shape, 26)
            g.emit(name, [z], attrs, "float", shape, 26 * count)
        elif count >= 3 and name == "std":
            ramp = g.argument("float", [x.shape[a] for a in range(x.rank)], -3, 3)
            z = g.emit("add", [g.within(x, 1), ramp], {}, "float", x.shape, 4)
            g.emit(name, [z], attrs, "float", shape, 4)
        else:
            g.emit("sqrt", [s], {}, "float", shape, 5)
        return
    most = {"sum": x.most * count, "prod": x.most ** min(count, 8), "var": x.most ** 2, "logsumexp": x.most + 5}.get(name, x.most)
    if name in ("all", "any"):
        g.emit(name, [x], attrs, "bool", shape, 1)
        back(g)
    else:
        g.emit(name, [x], attrs, "float", shape, most)


@op("argmax", "argmin")
def position(g, name):
    x = g.floats(test=lambda v: all(g.least(s) > 0 for s in v.shape), least_rank=1)
    axis = g.random.randrange(x.rank)
    keep = g.random.random() < 0.5
    shape = [Size.of(1) if a == axis else s for a, s in enumerate(x.shape) if keep or a != axis]
    g.emit(name, [x], {"axes": axis, "keepdims": int(keep)}, "i64", shape, 60)
    back(g)


@op("softmax", "log_softmax")
def row(g, name):
    x = g.floats(least_rank=1)
    g.emit(name, [x], {"axis": g.random.randrange(x.rank)}, "float", x.shape, 1 if name == "softmax" else x.most * 2 + 3)


@op("layer_norm", "rms_norm")
def normed(g, name):
    x = g.floats(test=lambda v: v.rank and v.shape[-1].is_known() and v.shape[-1].known() > 2, least_rank=1)
    operands = [x]
    if g.random.random() < 0.6:
        operands.append(g.argument("float", [x.shape[-1]], 0.5, 1.5))
        if g.random.random() < 0.6:
            operands.append(g.argument("float", [x.shape[-1]], -0.5, 0.5))
    g.emit(name, operands, {"epsilon": g.random.choice([0.001, 0.1])}, "float", x.shape, 5)


@op("cumsum")
def cumsum(g, name):
    x = g.floats(least_rank=1)
    axis = g.random.randrange(x.rank)
    g.emit(name, [x], {"axis": axis, "reverse": g.random.randrange(2)}, "float", x.shape,
           x.most * max(1, g.largest([x.shape[axis]])))


@op("cummax", "cummin")
def extremum_so_far(g, name):
    x = g.floats(least_rank=1)
    g.emit(name, [x], {"axis": g.random.randrange(x.rank), "reverse": g.random.randrange(2)}, "float", x.shape, x.most)


@op("cumprod", "linear_scan")
def recurrence(g, name):
    x = g.within(g.floats(least_rank=1), 1)
    axis = g.random.randrange(x.rank)
    attrs = {"axis": axis, "reverse": g.random.randrange(2)}
    if name == "cumprod":
        return g.emit(name, [x], attrs, "float", x.shape, 1)
    terms = g.like(x.shape)
    return g.emit(name, [x, terms], attrs, "float", x.shape, terms.most * max(1, g.largest([x.shape[axis]])))


@op("fourier")
def fourier(g, name):
    x = g.floats(least_rank=1)
    z = g.emit("stack", [x, x], {"axis": x.rank}, "float", list(x.shape) + [2], x.most)
    axis = g.random.randrange(x.rank)
    if g.least(x.shape[axis]) > 0:
        attrs = {"axes": f"{axis},{x.rank}", "inverse": g.random.randrange(2), "scale": 0.5}
        g.emit(name, [z], attrs, "float", z.shape, x.most * max(1, g.largest([x.shape[axis]])))


@op("searchsorted")
def searchsorted(g, name):
    values = g.argument("float", [Size.of(g.random.choice([1, 4]))], -1, 5)
    row = g.argument("float", [Size.of(g.random.choice([1, 3, 5]))], 0.5, 1.5)
    row = g.emit("cumsum", [row], {"axis": 0, "reverse": 0}, "float", row.shape, 9)
    out = g.fresh()
    g.statement([out], name, [row, values], {"right": g.random.randrange(2)})
    g.declare(Value(out, "i64", values.shape, 5))
    back(g)


@op("sort", "top_k")
def sort(g, name):
    x = g.floats(least_rank=1)
    axis = g.random.randrange(x.rank)
    shape, attrs = x.shape, {"axis": axis, "descending": g.random.randrange(2)}
    if name == "top_k":
        k = g.random.randint(0, min(3, g.least(x.shape[axis])))
        shape, attrs = x.shape[:axis] + [Size.of(k)] + x.shape[axis + 1:], {"axis": axis, "k": k}
    outs = [g.fresh(), g.fresh()]
    g.statement(outs, name, [x], attrs)
    g.declare(Value(outs[0], "float", shape, x.most))
    g.declare(Value(outs[1], "i64", shape, max(1, g.largest([x.shape[axis]]))))
    back(g)
