"""One function for each op: it emits a statement of that op into a Generator's program.

Where nothing that is there fits, operands are new arguments. The file is long because ops are many; each
function stands alone.
"""

from generate import INTS, Value
from program_text import Block, Size, Statement, shape_text

OPS = {}


def op(*names):
    def add(function):
        for name in names:
            OPS[name] = lambda g, name=name: function(g, name)
        return function
    return add


def csv(numbers):
    return ",".join(str(n) for n in numbers)


# ---- element by element -----------------------------------------------------------------------------

# The bound on the operand, and on the result for such an operand.
UNARY = {"abs": (9, 9), "ceil": (9, 10), "cos": (8, 1), "erf": (4, 1), "erfc": (4, 2), "exp": (2.5, 12.2), "expm1": (2.5, 12.2),
         "floor": (9, 10), "identity": (99, 99), "negative": (99, 99), "relu": (99, 99), "round": (9, 10),
         "sigmoid": (8, 1), "sign": (9, 1), "sin": (8, 1), "square": (5, 25), "tan": (1.1, 2), "tanh": (4, 1),
         "gelu": (5, 5), "silu": (8, 8), "softplus": (8, 8.1), "stop_gradient": (99, 99),
         "acos": (0.9, 2.7), "asin": (0.9, 1.2), "asinh": (9, 3), "atan": (9, 1.5), "atanh": (0.9, 1.5), "cosh": (2.5, 6.2),
         "erfinv": (0.9, 1.2), "sinh": (2.5, 6.1)}


@op(*UNARY)
def unary(g, name):
    x = g.within(g.floats(), UNARY[name][0])
    g.emit(name, [x], {}, "float", x.shape, UNARY[name][1])


@op("log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sqrt")
def positive_unary(g, name):
    x = g.positive(g.floats())
    g.emit(name, [x], {}, "float", x.shape, max(2.0, x.most ** 0.5))


@op("acosh", "lgamma")
def above_one(g, name):
    x = g.positive(g.floats())
    x = g.emit("add", [x, 1.0], {}, "float", x.shape, x.most + 1)
    g.emit(name, [x], {}, "float", x.shape, x.most * 3)


@op("digamma", "trigamma")
def gamma_slope(g, name):
    x = g.positive(g.floats())
    x = g.emit("add", [x, 1.0], {}, "float", x.shape, x.most + 1)
    g.emit(name, [x], {}, "float", x.shape, 6)


@op("polygamma")
def polygamma(g, name):
    x = g.positive(g.floats())
    x = g.emit("add", [x, 1.0], {}, "float", x.shape, x.most + 1)
    g.emit(name, [float(g.random.choice([0, 1, 2, 3])), x], {}, "float", x.shape, 10)


@op("leaky_relu")
def leaky_relu(g, name):
    x = g.floats()
    g.emit(name, [x], {"slope": g.random.choice([0.01, 0.2, 0.5])}, "float", x.shape, x.most)


@op("isfinite", "isinf", "isnan", "logical_not")
def test(g, name):
    x = g.floats()
    g.emit(name, [x], {}, "bool", x.shape, 1)


@op("add", "subtract", "multiply", "maximum", "minimum")
def binary(g, name):
    x = g.within(g.floats(), 6)
    if g.random.random() < 0.2:
        number = g.random.choice([0.5, -1.5, 2.0, 3])
        order = [x, number] if g.random.random() < 0.5 else [number, x]
        return g.emit(name, order, {}, "float", x.shape, x.most * 3 + 3)
    y, shape = g.partner(x)
    most = x.most * y.most if name == "multiply" else x.most + y.most
    return g.emit(name, [x, y], {}, "float", shape, most)


@op("copysign", "hypot", "logaddexp")
def pair(g, name):
    x = g.within(g.floats(), 6)
    y, shape = g.partner(x)
    g.emit(name, [x, y], {}, "float", shape, x.most + y.most + 1)


@op("xlogy")
def xlogy(g, name):
    x = g.within(g.floats(), 6)
    y, shape = g.partner(x)
    y = g.positive(y)
    g.emit(name, [x, y], {}, "float", shape, x.most * 3)


@op("divide", "atan2", "floor_divide", "remainder")
def quotient(g, name):
    x = g.within(g.floats(), 6)
    y, shape = g.partner(x)
    y = g.positive(y)
    g.emit(name, [x, y], {}, "float", shape, x.most * 2 + 2 + y.most)


@op("pow")
def power(g, name):
    x = g.floats()
    if g.random.random() < 0.4:
        g.emit(name, [g.within(x, 3), g.random.choice([2.0, 3.0])], {}, "float", x.shape, 27)
        return
    y, shape = g.partner(x)
    x = g.within(g.positive(g.within(x, 2)), 3.0)
    g.emit(name, [x, g.within(y, 2)], {}, "float", shape, 9)


@op("equal", "greater", "greater_equal", "less", "less_equal", "not_equal", "logical_and", "logical_or", "logical_xor")
def comparison(g, name):
    x = g.floats()
    y, shape = g.partner(x)
    g.emit(name, [x, y], {}, "bool", shape, 1)


def integers(g, low=0, high=6, shape=None):
    found = g.visible(lambda v: v.dtype in INTS and v.most <= 50 and shape is None)
    if found and g.random.random() < 0.5:
        return g.random.choice(found)
    return g.argument(g.random.choice(INTS), shape or g.some_shape(), low, high)


@op("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "bitwise_invert", "bit_count")
def bits(g, name):
    x = integers(g)
    if name in ("bitwise_invert", "bit_count"):
        g.emit(name, [x], {}, x.dtype, x.shape, max(64, x.most + 1))
    else:
        y = g.argument(x.dtype, x.shape, 0, 3)
        g.emit(name, [x, y], {}, x.dtype, x.shape, x.most * 8 + 8)
    back(g)


def back(g):
    """Whole numbers and truths are of use to others as floats."""
    last = g.scopes[-1][-1]
    if g.random.random() < 0.7:
        g.emit("cast", [last], {"dtype": "float"}, "float", last.shape, max(1, last.most))


@op("clip")
def clip(g, name):
    x = g.floats()
    low, high = (-0.7, 0.9) if g.random.random() < 0.5 else (g.like([]), 1.5)
    g.emit(name, [x, low, high], {}, "float", x.shape, 3)


@op("where")
def where(g, name):
    x = g.floats()
    y, shape = g.partner(x)
    found = g.visible(lambda v: v.dtype == "bool" and g.joined(Value("", "", shape), v) == shape)
    if found:
        condition = g.random.choice(found)
    elif g.random.random() < 0.5:
        condition = g.emit("less", [x, y], {}, "bool", shape, 1)
    else:
        condition = g.argument("bool", shape)
    g.emit(name, [condition, x, y], {}, "float", shape, max(x.most, y.most))


@op("cast")
def cast(g, name):
    to = g.random.choice(["i32", "i64", "u8", "i16", "u64", "bool", "f16", "bf16", "f32", "f64"])
    x = g.floats()
    if to in ("u8", "u64"):
        x = g.emit("abs", [x], {}, "float", x.shape, x.most)
    y = g.emit(name, [x], {"dtype": to}, to, x.shape, x.most)
    g.emit(name, [y], {"dtype": "float"}, "float", x.shape, max(x.most, 1))
    g.scopes[-1].remove(y)


# ---- reductions and rows ----------------------------------------------------------------------------

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


# ---- shapes -----------------------------------------------------------------------------------------

@op("reshape")
def reshape(g, name):
    x = g.floats(least_rank=1)
    form = g.random.randrange(4)
    sizes = list(x.shape)
    if form == 0 or len(sizes) == 1:
        if all(s.is_known() for s in sizes) and form == 1:
            total = 1
            for s in sizes:
                total *= s.known()
            for d in (2, 3, 4):
                if total and total % d == 0:
                    sizes = [Size.of(d), Size.of(total // d)]
                    break
        elif form == 2:
            sizes.insert(g.random.randrange(len(sizes) + 1), Size.of(1))
        else:
            total = Size.of(1)
            for s in sizes:
                total = total * s
            sizes = [total]
    else:
        at = g.random.randrange(len(sizes) - 1)
        sizes[at:at + 2] = [sizes[at] * sizes[at + 1]]
    g.emit(name, [x], {"shape": shape_text(sizes)}, "float", sizes, x.most)


@op("transpose")
def transpose(g, name):
    x = g.floats(least_rank=2)
    order = list(range(x.rank))
    g.random.shuffle(order)
    g.emit(name, [x], {"order": csv(order)}, "float", [x.shape[a] for a in order], x.most)


def known_places(g, shape):
    """begin, size and step of a slice of axes whose sizes are known."""
    begin, size, step = [], [], []
    for length in shape:
        count = g.random.randint(0 if g.random.random() < 0.05 else min(1, length), length)
        by = 1 if count <= 1 else g.random.choice([s for s in (1, 1, 2, 3, -1, -2) if (count - 1) * abs(s) < length])
        reach = max(0, count - 1) * abs(by)
        first = g.random.randint(0, max(0, length - 1 - reach)) if length else 0
        begin.append(first + (reach if by < 0 else 0))
        size.append(count)
        step.append(by)
    return begin, size, step


def all_known(v):
    return all(s.is_known() for s in v.shape)


@op("slice")
def slice_of(g, name):
    x = g.floats(test=all_known, least_rank=1)
    begin, size, step = known_places(g, [s.known() for s in x.shape])
    g.emit(name, [x], {"begin": csv(begin), "size": csv(size), "step": csv(step)}, "float", size, x.most)


@op("update")
def update(g, name):
    x = g.floats(test=all_known, least_rank=1)
    begin, size, step = known_places(g, [s.known() for s in x.shape])
    y = g.like(size)
    g.emit(name, [x, y], {"begin": csv(begin), "size": csv(size), "step": csv(step)}, "float", x.shape,
           max(x.most, y.most))


def index_items(g, x, views=True):
    """The items of an index, and the shape of what they pick."""
    items, shape = [], []
    for size in x.shape:
        least = g.least(size)
        form = g.random.randrange(8)
        if form == 0 and least > 0:
            items.append(str(g.random.choice([0, -1, least - 1])))
        elif form == 1 and least > 1:
            items.append("1:")
            shape.append(size - 1)
        elif form == 2 and least > 1:
            items.append(":-1")
            shape.append(size - 1)
        elif form == 3 and least > 0:
            count = g.random.randint(1, least)
            items.append(f":{count}")
            shape.append(Size.of(count))
        elif form == 4:
            items.append("::-1")
            shape.append(size)
        elif form == 5 and size.is_known():
            first, by = g.random.choice([0, 0, 1]), g.random.choice([2, 3, -2])
            first = min(first, max(0, size.known() - 1))
            items.append(f"{first if by > 0 else ''}::{by}")
            count = -(-(size.known() - (first if by > 0 else 0)) // abs(by))
            shape.append(Size.of(count))
        else:
            items.append("all")
            shape.append(size)
    if views and g.random.random() < 0.25:
        items.append("new")
        shape.append(Size.of(1))
    while items and items[-1] == "all" and g.random.random() < 0.5:
        items.pop()
    return items or ["all"], shape


@op("index")
def index(g, name):
    x = g.floats(least_rank=1)
    if g.random.random() < 0.2 and g.least(x.shape[0]) > 0:
        picks = g.indices([Size.of(g.random.choice([1, 2, 3]))], x.shape[0])
        return g.emit(name, [x], {"at": "@" + picks.name}, "float", picks.shape + x.shape[1:], x.most)
    items, shape = index_items(g, x)
    return g.emit(name, [x], {"at": ";".join(items)}, "float", shape, x.most)


@op("update_at")
def update_at(g, name):
    x = g.floats(least_rank=1)
    items, shape = index_items(g, x, views=False)
    y = 0.5 if g.random.random() < 0.2 else g.like(shape)
    g.emit(name, [x, y], {"at": ";".join(items)}, "float", x.shape, max(x.most, 2.0))


@op("broadcast_to")
def broadcast_to(g, name):
    x = g.floats()
    shape = [g.some_size() if s == 1 else s for s in x.shape]
    shape = [g.some_size() for _ in range(g.random.choice([0, 1, 1, 2]))] + shape
    if g.largest(shape) <= g.room:
        g.emit(name, [x], {"shape": shape_text(shape)}, "float", shape, x.most)


@op("concat", "stack")
def concat(g, name):
    x = g.floats(least_rank=1)
    axis = g.random.randrange(x.rank)
    parts, total = [x], x.shape[axis]
    for _ in range(g.random.choice([1, 1, 2])):
        same = g.visible(lambda v: v.dtype == "float" and v.rank == x.rank and all(
            a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)) if i != axis or name == "stack"))
        y = g.random.choice(same[-4:]) if same else x
        parts.append(y)
        total = total + y.shape[axis]
    g.random.shuffle(parts)
    if name == "stack":
        axis = g.random.randrange(x.rank + 1)
        shape = x.shape[:axis] + [Size.of(len(parts))] + x.shape[axis:]
    else:
        shape = x.shape[:axis] + [total] + x.shape[axis + 1:]
    g.emit(name, parts, {"axis": axis}, "float", shape, max(p.most for p in parts))


@op("pad")
def pad(g, name):
    x = g.floats(test=all_known, least_rank=1)
    low = [g.random.choice([0, 0, 1, 2]) for _ in x.shape]
    high = [g.random.choice([0, 0, 1, 2]) for _ in x.shape]
    inside = [g.random.choice([0, 0, 1]) for _ in x.shape]
    shape = [s.known() + a + b + max(0, s.known() - 1) * i for s, a, b, i in zip(x.shape, low, high, inside)]
    value = g.random.choice([0.0, 1.5, -0.5])
    g.emit(name, [x], {"low": csv(low), "high": csv(high), "inside": csv(inside), "value": value,
                       "whole_value": int(value)}, "float", shape, max(x.most, 1.5))


@op("td_pad")
def td_pad(g, name):
    x = g.floats(least_rank=1)
    names = [Size.of(n) for n in g.program.sizes]
    low = [g.random.choice([Size.of(0), Size.of(1), Size.of(2)] + names) for _ in x.shape]
    high = [g.random.choice([Size.of(0), Size.of(0), Size.of(1)] + names) for _ in x.shape]
    shape = [s + a + b for s, a, b in zip(x.shape, low, high)]
    if g.largest(shape) > g.room:
        return
    g.emit(name, [x], {"low": shape_text(low), "high": shape_text(high), "value": g.random.choice([0.0, 1.5])},
           "float", shape, max(x.most, 1.5))


@op("expand_dims")
def expand_dims(g, name):
    x = g.floats()
    axis = g.random.randrange(x.rank + 1)
    g.emit(name, [x], {"axis": axis}, "float", x.shape[:axis] + [Size.of(1)] + x.shape[axis:], x.most)


@op("squeeze")
def squeeze(g, name):
    expand_dims(g, "expand_dims")
    x = g.scopes[-1][-1]
    ones = [a for a, s in enumerate(x.shape) if s == 1]
    axes = ones if g.random.random() < 0.5 else ones[:1]
    g.emit(name, [x], {"axes": csv(axes)}, "float", [s for a, s in enumerate(x.shape) if a not in axes], x.most)


@op("split", "unstack")
def split(g, name):
    x = g.floats(test=lambda v: any(s.is_known() and 0 < s.known() <= 4 for s in v.shape), least_rank=1)
    axes = [a for a, s in enumerate(x.shape) if s.is_known() and 0 < s.known() <= 4]
    if not axes:
        return
    axis = g.random.choice(axes)
    length = x.shape[axis].known()
    if name == "unstack":
        shapes, attrs = [x.shape[:axis] + x.shape[axis + 1:]] * length, {"axis": axis}
    elif g.random.random() < 0.5 and length > 1:
        first = g.random.randint(1, length - 1)
        sizes = [first, length - first]
        shapes, attrs = [x.shape[:axis] + [Size.of(s)] + x.shape[axis + 1:] for s in sizes], {"sizes": csv(sizes), "axis": axis}
    else:
        parts = g.random.choice([p for p in (1, 2, 3, 4) if length % p == 0])
        shapes = [x.shape[:axis] + [Size.of(length // parts)] + x.shape[axis + 1:]] * parts
        attrs = {"parts": parts, "axis": axis}
    outs = [g.fresh() for _ in shapes]
    g.statement(outs, name, [x], attrs)
    for out, shape in zip(outs, shapes):
        g.declare(Value(out, "float", shape, x.most))


@op("tile")
def tile(g, name):
    x = g.floats(least_rank=1)
    counts = [g.random.choice([1, 1, 2]) for _ in x.shape]
    g.emit(name, [x], {"counts": csv(counts)}, "float", [s * c for s, c in zip(x.shape, counts)], x.most)


@op("repeat")
def repeat(g, name):
    x = g.floats(least_rank=1)
    count = Size.of(g.random.choice([1, 2, 3] + list(g.program.sizes)))
    if g.random.random() < 0.25:
        total = count
        for s in x.shape:
            total = total * s
        shape, attrs = [total], {"count": count}
    else:
        axis = g.random.randrange(x.rank)
        shape = x.shape[:axis] + [x.shape[axis] * count] + x.shape[axis + 1:]
        attrs = {"count": count, "axis": axis}
    if g.largest(shape) <= g.room:
        g.emit(name, [x], attrs, "float", shape, x.most)


@op("flip")
def flip(g, name):
    x = g.floats(least_rank=1)
    axes = [a for a in range(x.rank) if g.random.random() < 0.6]
    g.emit(name, [x], {"axes": csv(axes) if axes else "all"}, "float", x.shape, x.most)


@op("tril", "triu")
def triangle(g, name):
    x = g.floats(least_rank=2)
    g.emit(name, [x], {"diagonal": g.random.choice([0, 0, 1, -1, 2])}, "float", x.shape, x.most)


# ---- making -----------------------------------------------------------------------------------------

@op("arange")
def arange(g, name):
    if g.program.sizes and g.random.random() < 0.5:
        n = Size.of(g.random.choice(list(g.program.sizes)))
        g.emit(name, [], {"size": n, "dtype": "float"}, "float", [n], 5)
        return
    count = g.random.choice([1, 2, 3, 4])
    if g.random.random() < 0.5:
        step = g.random.choice([1, 2, -1])
        dtype = g.random.choice(["i32", "i64", "float"])
        g.emit(name, [], {"start": 1, "stop": 1 + step * count, "step": step, "dtype": dtype}, dtype, [count], 9)
        if dtype != "float":
            back(g)
    else:
        g.emit(name, [], {"start": -0.5, "stop": -0.5 + 0.25 * count, "step": 0.25, "dtype": "float"}, "float", [count], 2)


@op("linspace", "eye", "zeros", "ones", "full")
def created(g, name):
    if name == "linspace":
        count = g.random.choice([1, 2, 4])
        g.emit(name, [], {"start": -1.0, "stop": 2.0, "count": count, "dtype": "float"}, "float", [count], 2)
    elif name == "eye":
        rows, columns = g.random.choice([2, 3]), g.random.choice([2, 3, 4])
        g.emit(name, [], {"rows": rows, "columns": columns, "dtype": "float"}, "float", [rows, columns], 1)
    else:
        shape = g.some_shape()
        attrs = {"shape": shape_text(shape), "dtype": "float"}
        if name == "full":
            attrs["value"] = g.random.choice([-0.75, 1.25])
        g.emit(name, [], attrs, "float", shape, 2)
    x = g.scopes[-1][-1]
    y, shape = g.partner(x)
    g.emit(g.random.choice(["add", "multiply"]), [x, y], {}, "float", shape, x.most * y.most + x.most + y.most)


@op("random_normal", "random_uniform", "random_bernoulli", "random_integers", "random_permutation", "random_fold")
def draw(g, name):
    if not g.may_draw:
        return
    shape = g.some_shape()
    attrs = {"key": g.random.randrange(1000)}
    operands = []
    if name == "random_fold" or g.random.random() < 0.3:
        trip = g.visible(lambda v: v.dtype in ("i32", "i64") and v.rank == 0)
        operands = [g.random.choice(trip) if trip and g.random.random() < 0.7 else g.argument("i64", [], 0, 9)]
    if name == "random_fold":
        name = "random_uniform"
    if name == "random_permutation":
        count = g.random.choice([1, 3, 4])
        g.emit(name, operands, attrs | {"n": count}, "i64", [count], count)
    elif name == "random_integers":
        dtype = g.random.choice(INTS)
        g.emit(name, operands, attrs | {"shape": shape_text(shape), "dtype": dtype, "low": -2, "high": 4}, dtype, shape, 4)
    elif name == "random_bernoulli":
        g.emit(name, operands, attrs | {"shape": shape_text(shape), "a": 0.6}, "bool", shape, 1)
    else:
        g.emit(name, operands, attrs | {"shape": shape_text(shape), "dtype": "float", "a": -0.5, "b": 1.5}, "float", shape, 8)
    if g.scopes[-1][-1].dtype != "float":
        g.emit("cast", [g.scopes[-1][-1]], {"dtype": "float"}, "float", g.scopes[-1][-1].shape, 4)
    x = g.scopes[-1][-1]
    y, shape = g.partner(x)
    g.emit("multiply", [x, y], {}, "float", shape, x.most * y.most)


# ---- indices ----------------------------------------------------------------------------------------

def pointed(g, v):
    return any(g.least(s) > 0 for s in v.shape)


@op("gather", "embedding")
def gather(g, name):
    x = g.floats(test=lambda v: pointed(g, v) and (name == "gather" or g.least(v.shape[0]) > 0), least_rank=1)
    axis = 0 if name == "embedding" else g.random.choice([a for a, s in enumerate(x.shape) if g.least(s) > 0])
    picks = g.indices(g.some_shape(g.random.choice([0, 1, 1, 2])), x.shape[axis])
    shape = x.shape[:axis] + picks.shape + x.shape[axis + 1:]
    if g.largest(shape) <= g.room:
        g.emit(name, [x, picks], {} if name == "embedding" else {"axis": axis}, "float", shape, x.most)


@op("take_along_axis")
def take_along_axis(g, name):
    x = g.floats(test=lambda v: pointed(g, v), least_rank=1)
    axis = g.random.choice([a for a, s in enumerate(x.shape) if g.least(s) > 0])
    from_end = g.random.randrange(2)
    shape = x.shape[:axis] + [Size.of(g.random.choice([1, 2, 3]))] + x.shape[axis + 1:]
    picks = g.indices(shape, x.shape[axis], negative=from_end == 1)
    g.emit(name, [x, picks], {"axis": axis, "from_end": from_end}, "float", shape, x.most)


@op("scatter_add", "scatter_max", "scatter_min", "scatter_mul")
def scatter(g, name):
    x = g.floats(test=lambda v: pointed(g, v), least_rank=1)
    axis = g.random.choice([a for a, s in enumerate(x.shape) if g.least(s) > 0])
    along = g.random.randrange(2)
    count = Size.of(g.random.choice([1, 2, 3]))
    if along:
        shape = x.shape[:axis] + [count] + x.shape[axis + 1:]
        picks, updates = g.indices(shape, x.shape[axis]), g.like(shape)
    else:
        picks = g.indices([count], x.shape[axis])
        updates = g.like(x.shape[:axis] + [count] + x.shape[axis + 1:])
    if name == "scatter_mul":  # The slope at 0 has no slope.
        x, updates = g.positive(g.within(x, 3)), g.positive(g.within(updates, 3))
    most = x.most * max(1, updates.most) ** 3 if name == "scatter_mul" else x.most + 3 * updates.most
    g.emit(name, [x, picks, updates], {"axis": axis, "along": along}, "float", x.shape, most)


@op("put")
def put(g, name):
    x = g.floats(test=lambda v: v.rank and g.least(v.shape[0]) > 0, least_rank=1)
    if g.random.random() < 0.5:
        picks = g.indices([], x.shape[0])
        element = g.like(x.shape[1:])
    else:
        picks = g.indices([Size.of(g.random.choice([1, 2]))], x.shape[0])
        element = g.like(picks.shape + x.shape[1:])
    g.emit(name, [x, picks, element], {}, "float", x.shape, max(x.most, element.most))


@op("first_equal")
def first_equal(g, name):
    x = g.argument(g.random.choice(INTS), [g.some_size()], 0, 2)
    g.emit(name, [x], {}, "i64", x.shape, 9)
    back(g)


@op("one_hot")
def one_hot(g, name):
    depth = g.random.choice([2, 3, 4])
    x = g.argument(g.random.choice(INTS), g.some_shape(g.random.choice([0, 1, 1, 2])), -1, depth)
    y = g.emit(name, [x], {"depth": depth, "dtype": "float"}, "float", x.shape + [depth], 1)
    z = g.like([depth])
    g.emit("multiply", [y, z], {}, "float", y.shape, z.most)


# ---- products ---------------------------------------------------------------------------------------

@op("matmul")
def matmul(g, name):
    a = g.within(g.floats(least_rank=1), 4)
    if a.rank == 1:
        b = g.like(a.shape + ([g.some_size()] if g.random.random() < 0.7 else []))
        g.emit(name, [a, b], {}, "float", b.shape[1:], a.most * b.most * 5)
        return
    ta, tb = g.random.randrange(2), g.random.randrange(2)
    inner, outer = (a.shape[-2], a.shape[-1]) if ta else (a.shape[-1], a.shape[-2])
    if g.random.random() < 0.2 and not tb:
        b = g.like([inner])
        g.emit(name, [a, b], {"transpose_a": ta}, "float", a.shape[:-2] + [outer], a.most * b.most * 5)
        return
    columns = g.some_size()
    b = g.like(([] if g.random.random() < 0.7 else a.shape[:-2]) + ([columns, inner] if tb else [inner, columns]))
    g.emit(name, [a, b], {"transpose_a": ta, "transpose_b": tb}, "float", a.shape[:-2] + [outer, columns],
           a.most * b.most * 5)


@op("tensordot")
def tensordot(g, name):
    a = g.within(g.floats(least_rank=1), 4)
    axes = g.random.randint(0 if a.rank < 2 else 1, min(2, a.rank))
    b = g.like(a.shape[a.rank - axes:] + [g.some_size()])
    g.emit(name, [a, b], {"axes": axes}, "float", a.shape[:a.rank - axes] + b.shape[axes:], a.most * b.most * 8)


@op("einsum")
def einsum(g, name):
    text = g.random.choice(["ij,jk>ik", "bij,bjk>bik", "ij,ij>i", "ij>ji", "ii>i", "ij,kj>ik", "i,j>ij", "ij>", "ij,j",
                            "bij,bj>ib", "ijk>ki"])
    letters = {letter: g.some_size() for letter in "bijk"}
    inputs = text.split(">")[0].split(",")
    output = text.split(">")[1] if ">" in text else "i"
    operands = [g.within(g.like([letters[c] for c in part]), 4) for part in inputs]
    most = 4.0
    for x in operands:
        most *= x.most * 3
    g.emit(name, operands, {"subscripts": text}, "float", [letters[c] for c in output], most)


@op("outer")
def outer(g, name):
    a, b = g.floats(1), g.floats(1)
    if g.largest(a.shape + b.shape) <= g.room:
        g.emit(name, [a, b], {}, "float", a.shape + b.shape, a.most * b.most)


def image(g, channels, test=lambda v: True):
    found = g.visible(lambda v: v.dtype == "float" and v.rank == 4 and v.shape[3] == channels and test(v))
    if found and g.random.random() < 0.5:
        return g.random.choice(found)
    height, width = g.random.choice([3, 4, 5]), g.random.choice([3, 4])
    batch = Size.of(g.random.choice(list(g.program.sizes) or [2])) if g.random.random() < 0.5 else Size.of(1)
    return g.argument("float", [batch, height, width, channels])


def image_size(size, kernel, stride, low, high, dilation):
    return max(0, (size + low + high - (kernel - 1) * dilation - 1) // stride + 1)


@op("conv3d")
def conv3d(g, name):
    pick = g.random.choice
    groups = pick([1, 1, 2])
    sizes, inputs, outputs = [pick([2, 3]), pick([2, 3]), pick([2, 4])], groups * pick([1, 2]), groups * pick([1, 2])
    x = g.argument("float", [Size.of(pick([1, 2]))] + sizes + [inputs])
    kernel = [pick([1, 2]), pick([1, 2]), pick([1, 2, 3])]
    w = g.argument("float", kernel + [inputs // groups, outputs], -1, 1)
    stride, dilation, spread = ([pick([1, 1, 2]) for _ in range(3)] for _ in range(3))
    low, high = [pick([0, 0, 1, -1]) for _ in range(3)], [pick([0, 1]) for _ in range(3)]
    out = [image_size((sizes[i] - 1) * spread[i] + 1, kernel[i], stride[i], low[i], high[i], dilation[i]) for i in range(3)]
    g.emit(name, [x, w], {"stride": csv(stride), "pad_low": csv(low), "pad_high": csv(high), "dilation": csv(dilation), "groups": groups,
                          "spread": csv(spread), "by_channel": 0}, "float", [x.shape[0]] + out + [outputs], x.most * 24)


@op("resample")
def resample(g, name):
    if g.program.dtype not in ("f32", "f64"):  # Calls cast to f32; the op takes no 16 bits.
        return
    x = g.floats(least_rank=1)
    axes = [i for i in range(x.rank) if x.shape[i].is_known() and x.shape[i].known() > 0]
    if not axes:
        return
    axis, size = g.random.choice(axes), g.random.choice([1, 2, 3, 5])
    shape = list(x.shape)
    shape[axis] = Size.of(size)
    g.emit(name, [x], {"axis": axis, "size": size, "sampling": g.random.randrange(4), "antialias": g.random.randrange(2),
                       "transposed": g.random.randrange(2)}, "float", shape, x.most * 2 * max(1, x.shape[axis].known()))


@op("conv2d")
def conv2d(g, name):
    pick = g.random.choice
    groups = pick([1, 1, 2])
    inputs, outputs = groups * pick([1, 2]), groups * pick([1, 2])
    x = g.within(image(g, Size.of(inputs), lambda v: v.shape[1].is_known() and v.shape[2].is_known()), 3)
    kernel = [pick([1, 2, 3]), pick([1, 2, 2])]
    w = g.argument("float", kernel + [inputs // groups, outputs], -1, 1)
    stride, dilation = [pick([1, 1, 2]), pick([1, 1, 2])], [pick([1, 1, 2]), pick([1, 1, 2])]
    low, high = [pick([0, 0, 1, -1]), pick([0, 1, 2])], [pick([0, 1]), pick([0, 0, 1, -1])]
    spread = [pick([1, 1, 2]), pick([1, 1, 3])]
    by_channel = int(groups == 1 and spread == [1, 1] and g.program.dtype in ("f32", "f64"))  # Another order of the same sum.
    sizes = [image_size((x.shape[1 + i].known() - 1) * spread[i] + 1, kernel[i], stride[i], low[i], high[i], dilation[i]) for i in range(2)]
    g.emit(name, [x, w], {"stride": csv(stride), "pad_low": csv(low), "pad_high": csv(high),
                          "dilation": csv(dilation), "groups": groups, "spread": csv(spread), "by_channel": by_channel}, "float",
           [x.shape[0]] + sizes + [outputs], x.most * 12)


def same_or_valid(size, kernel, stride, dilation, same):
    return -(-size // stride) if same else image_size(size, kernel, stride, 0, 0, dilation)


@op("td_conv2d", "max_pool", "avg_pool")
def windows(g, name):
    pick = g.random.choice
    groups = pick([1, 1, 2]) if name == "td_conv2d" else 1
    inputs, outputs = groups * pick([1, 2]), groups * pick([1, 2])
    x = g.within(image(g, Size.of(inputs), lambda v: v.shape[1].is_known() and v.shape[2].is_known()), 3)
    sizes = [x.shape[1].known(), x.shape[2].known()]
    if min(sizes) < 2:
        return
    kernel = [pick([1, 2]), pick([1, 2])]
    nchw, same = g.random.randrange(2), g.random.randrange(2)
    strides, dilations = [pick([1, 2]), pick([1, 2])], [1, 1]
    attrs = {"strides": csv(strides), "same": same, "nchw": nchw}
    operands = [x]
    if nchw:
        operands = [g.emit("transpose", [x], {"order": "0,3,1,2"}, "float", [x.shape[0], x.shape[3], x.shape[1], x.shape[2]], x.most)]
    if name == "td_conv2d":
        if strides == [1, 1]:
            dilations = [pick([1, 2]), 1]
        kernel = [pick([1, 2]) if dilations[0] == 1 or sizes[0] > 2 else 1, kernel[1]]
        operands.append(g.argument("float", kernel + [inputs // groups, outputs], -1, 1))
        attrs |= {"dilations": csv(dilations), "groups": groups}
    else:
        outputs = inputs
        attrs["size"] = csv(kernel)
    out = [same_or_valid(s, k, t, d, same) for s, k, t, d in zip(sizes, kernel, strides, dilations)]
    shape = [x.shape[0], outputs] + out if nchw else [x.shape[0]] + out + [outputs]
    g.emit(name, operands, attrs, "float", shape, x.most * (8 if name == "td_conv2d" else 1))


@op("attention")
def attention(g, name):
    tokens, keys, features, width = g.some_size(), g.some_size(), Size.of(g.random.choice([2, 3])), g.some_size()
    if g.least(keys) == 0:
        keys = Size.of(3)
    heads = [Size.of(2)] if g.random.random() < 0.4 else []
    q, k, v = g.like(heads + [tokens, features]), g.like(heads + [keys, features]), g.like(heads + [keys, width])
    operands, attrs = [q, k, v], {"causal": g.random.randrange(2)}
    if g.random.random() < 0.4:
        operands.append(g.argument("bool", [tokens, keys]))
    if g.random.random() < 0.4:
        attrs["scale"] = 0.7
    g.emit(name, operands, attrs, "float", heads + [tokens, width], v.most)


@op("mse")
def mse(g, name):
    x = g.floats(test=lambda v: all(g.least(s) > 0 for s in v.shape))
    g.emit(name, [x, g.like(x.shape)], {}, "float", [], (x.most + 2) ** 2)


@op("sparse_softmax_cross_entropy")
def cross_entropy(g, name):
    x = g.floats(test=lambda v: v.rank and all(g.least(s) > 0 for s in v.shape), least_rank=1)
    if not all(g.least(s) > 0 for s in x.shape):
        return
    labels = g.indices(x.shape[:-1], x.shape[-1], negative=False)
    g.emit(name, [labels, x], {}, "float", [], x.most * 2 + 3)


@op("clip_by_norm")
def clip_by_norm(g, name):
    x = g.positive(g.floats(test=lambda v: all(g.least(s) > 0 for s in v.shape)))
    g.emit(name, [x], {"most": g.random.choice([0.3, 100.0])}, "float", x.shape, x.most)


# ---- Variables --------------------------------------------------------------------------------------

def variable(g):
    """A Variable, or none where it must not be touched."""
    if not g.may_write:
        return None
    if not g.program.variables:
        from program_text import Input
        g.program.variables.append(Input(g.fresh("v"), "float", [Size.of(g.random.choice([2, 3]))], "plain", -1.0, 1.0))
    return g.random.choice(g.program.variables)


@op("read")
def read(g, name):
    v = variable(g)
    if v is None:
        return
    x = g.emit(name, [], {"to": v.name}, "float", v.shape, 3)
    y, shape = g.partner(x)
    g.emit(g.random.choice(["multiply", "add"]), [x, y], {}, "float", shape, x.most * y.most + x.most + y.most)


@op("assign", "assign_add", "assign_sub", "assign_slice", "scatter_update")
def write(g, name):
    v = variable(g)
    if v is None:
        return
    if name == "scatter_update":
        picks = g.indices([Size.of(2)], v.shape[0])
        g.statement([], name, [picks, g.within(g.like(picks.shape + v.shape[1:]), 1.5)], {"to": v.name})
    elif name == "assign_slice":
        x = g.within(g.like(v.shape[1:]), 1.5)
        g.statement([], name, [x], {"to": v.name, "at": g.random.choice(["0", "-1", "1"])})
    else:
        x = g.within(g.like(v.shape), 0.5 if name != "assign" else 1.5)
        g.statement([], name, [x], {"to": v.name})
    read(g, "read")


# ---- control flow -----------------------------------------------------------------------------------

class Inside:
    """Statements made in its life stand in a block."""

    def __init__(self, g, kind, params, trips=1, isolated=False):
        self.g, self.trips, self.isolates = g, trips, isolated
        self.block = Block(kind, [p.name for p in params])
        self.params = params

    def __enter__(self):
        g = self.g
        self.before = (g.body, g.trips, g.isolated, g.may_draw, g.may_write, g.depth)
        g.body, g.trips, g.depth = self.block.body, g.trips * max(1, self.trips), g.depth + 1
        g.scopes.append(list(self.params))
        if self.isolates:
            g.isolated, g.may_draw, g.may_write = len(g.scopes) - 1, False, False
        return self

    def __exit__(self, *_):
        g = self.g
        g.body, g.trips, g.isolated, g.may_draw, g.may_write, g.depth = self.before
        g.scopes.pop()

    def fill(self, least=1, most=3):
        """Some statements; deeper blocks have fewer, and control flow in them ends at three."""
        g = self.g
        for _ in range(g.random.randint(least, most)):
            if g.cost > 110:
                break
            if g.depth < 3 and g.random.random() < 0.3 and g.trips <= 9:
                OPS[g.random.choice(CONTROL)](g)
            else:
                g.step(OPS, [name for name in WEIGHTED if name not in CONTROL] if g.depth >= 3 else WEIGHTED)

    def give(self, shape, most=None):
        """A float of this shape in which what was made here counts."""
        g = self.g
        params = [p.name for p in self.params]
        made = [v for v in g.scopes[-1] if v.dtype == "float" and v.name not in params]
        fitting = [v for v in made[-3:] if v.shape == shape]
        base = self.base(shape)
        if fitting and (base is None or g.random.random() < 0.7):
            value = fitting[-1]
        elif base is None:
            value = g.like(shape)
        elif made and g.random.random() < 0.9:
            last = made[-1]
            if g.joined(last, Value("", "", shape)) != shape:
                last = g.within(last, 4)
                name, most_of_all = ("mean", 4) if all(g.least(s) > 0 for s in last.shape) else ("sum", 4 * folded(g, last, range(last.rank)))
                last = g.emit(name, [last], {"axes": "all", "keepdims": 0}, "float", [], most_of_all)
            operands = [g.within(base, 3), g.within(last, 3)]
            value = g.emit(g.random.choice(["add", "multiply", "subtract"]), operands, {}, "float", shape, 9)
        else:
            value = base
        return value if most is None else g.within(value, most)

    def base(self, shape):
        found = self.g.visible(lambda v: v.dtype == "float" and v.shape == shape)
        return found[-1] if found else None


def some_save(g, bounded=True):
    """What a loop keeps for its gradient; some choices want a bound on the trips."""
    text = g.random.choice([None, None, "slots:2", "slots:1"] + (["all", "every:2", "every:1", f"bytes:{g.random.choice([1, 1500, 4000, 100000])}"] if bounded else []))
    return {"save": text} if text else {}


def trips_of(g, size):
    return max(1, g.largest([size]))


def too_deep(g, trips=2):
    return g.depth >= 3 or g.trips * trips > 27 or g.cost > 90


def carry_values(g, count):
    """Floats to carry; their bounds are what bodies must keep to."""
    return [g.within(g.floats(), 4.0) for _ in range(count)]


@op("fori_loop")
def fori_loop(g, name):
    trips = g.random.choice([0, 1, 2, 2, 3, 3])
    if too_deep(g, trips):
        return
    carries = carry_values(g, g.random.choice([1, 1, 2]))
    lower = g.random.choice([0, 0, 1])
    bounds = [lower, lower + trips]
    if g.random.random() < 0.3:
        bounds[1] = g.argument(g.random.choice(INTS), [], lower + trips, lower + trips)
    number = Value(g.fresh("i"), bounds[1].dtype if isinstance(bounds[1], Value) else "i32", [], 6)
    params = [Value(g.fresh("c"), "float", c.shape, 4.0) for c in carries]
    with Inside(g, "body", [number] + params, trips) as inside:
        inside.fill()
        inside.block.gives = [inside.give(c.shape, 4.0).name for c in carries]
    finish_loop(g, name, bounds, {"carry": csv(c.name for c in carries)} | some_save(g, not isinstance(bounds[1], Value)),
                inside.block, [c.shape for c in carries])


@op("array_loop")
def array_loop(g, name):
    """A loop that writes an element of a TensorArray in each trip, and may read the first."""
    trips = g.random.choice([1, 2, 3])
    if too_deep(g, trips):
        return
    carries = carry_values(g, g.random.choice([1, 1, 2]))
    shape = g.random.choice(carries).shape
    upper = g.argument("i32", [], trips, trips) if g.random.random() < 0.2 else trips
    elements, reads = trips + g.random.choice([0, 0, 1]), g.random.randrange(2)
    number = Value(g.fresh("i"), "i32", [], 6)
    params = [Value(g.fresh("c"), "float", c.shape, 4.0) for c in carries]
    params += [Value(g.fresh("r"), "float", shape, 4.0)] * reads
    with Inside(g, "body", [number] + params, trips) as inside:
        inside.fill()
        inside.block.gives = [inside.give(c.shape, 4.0).name for c in carries] + [inside.give(shape, 4.0).name]
    attrs = {"carry": csv(c.name for c in carries), "elements": elements, "shape": shape_text(shape), "push": g.random.randrange(2),
             "read": reads} | some_save(g, not isinstance(upper, Value))
    finish_loop(g, name, [0, upper], attrs, inside.block, [c.shape for c in carries] + [[Size.of(elements)] + shape])


@op("array_moves")
def array_moves(g, name):
    """Slices of a value in a TensorArray: scattered to, gathered from, read."""
    x = g.within(g.floats(test=lambda v: v.rank and g.least(v.shape[0]) > 0, least_rank=1), 3.0)
    places, picks = g.indices([Size.of(2)], x.shape[0]), g.indices([Size.of(3)], x.shape[0])
    elements = g.within(g.like([Size.of(2)] + x.shape[1:]), 3.0)
    g.emit(name, [x, places, elements, picks], {"read": g.random.choice([0, -1])}, "float", [Size.of(3)] + x.shape[1:], 12.0)


@op("custom_gradient")
def custom_gradient(g, name):
    """A block's result, with the gradient multiplied by another one: any, one computed from the result, or the result itself.

    The result is mostly a tensor of its own, so that it is clear which is the result: an op may give back what it got.
    """
    x = g.floats()
    if too_deep(g, 2):
        return
    with Inside(g, "body", [Value(g.fresh("p"), "float", x.shape, x.most)], 1, isolated=True) as inside:
        inside.fill(1, 3)
        result, slope, kind = inside.give(x.shape, 4.0), inside.give(x.shape, 4.0), g.random.random()
        if kind < 0.8:
            result = g.emit("multiply", [result, 0.75], {}, "float", x.shape, 3.0)
        if kind < 0.2:
            slope = result = g.emit("add", [result, g.within(inside.params[0], 1.0)], {}, "float", x.shape, 4.0)
        elif kind < 0.4 or slope.name == result.name:
            slope = g.emit("tanh", [result], {}, "float", x.shape, 1.0)
        inside.block.gives = [result.name, slope.name]
    finish_loop(g, name, [x], {}, inside.block, [x.shape])


def finish_loop(g, name, operands, attrs, block, shapes, most=4.0):
    outs = [g.fresh() for _ in shapes]
    blocks = block if isinstance(block, list) else [block]
    g.statement(outs, name, operands, attrs, blocks)
    for out, shape in zip(outs, shapes):
        g.declare(Value(out, "float", shape, most))


def add_test(g, body, count, carried, limit):
    """Fewer trips than a limit and, sometimes, something about what is carried."""
    def add(op, operands, attrs=None):
        out = g.fresh()
        body.append(Statement([out], op, operands, attrs))
        return out
    few = add("less", [count.name, repr(limit)])
    if g.random.random() < 0.6 or not all(g.least(s) > 0 for s in carried[0].shape):
        return few
    level = add("abs", [carried[0].name])
    if carried[0].rank:
        level = add("max", [level], {"axes": "all", "keepdims": 0})
    return add("logical_and", [few, add("greater", [level, repr(0.4)])])


@op("while_loop")
def while_loop(g, name):
    if too_deep(g, 4):
        return
    carries = carry_values(g, g.random.choice([1, 2]))
    limit = g.random.choice([0.0, 1.5, 2.5, 3.5])
    counter = g.argument("float", [], 0.0, 0.0) if not g.isolated else g.emit("zeros", [], {"shape": "[]", "dtype": "float"}, "float", [], 0)
    params = [Value(g.fresh("c"), "float", c.shape, 4.0) for c in carries]
    count = Value(g.fresh("k"), "float", [], 4.0)
    test = Block("while", [count.name] + [p.name for p in params])
    test.gives = [add_test(g, test.body, count, params, limit)]
    with Inside(g, "body", [Value(count.name + "b", "float", [], 4.0)] + [Value(p.name + "b", "float", p.shape, 4.0) for p in params], 4) as inside:
        inside.fill()
        following = g.emit("add", [inside.params[0], 1.0], {}, "float", [], 5)
        inside.block.gives = [following.name] + [inside.give(c.shape, 4.0).name for c in carries]
    attrs = {"carry": csv([counter.name] + [c.name for c in carries])}
    if g.random.random() < 0.5:
        attrs["max_iterations"] = g.random.choice([2, 5, 8])
    attrs |= some_save(g, "max_iterations" in attrs)
    finish_loop(g, name, [], attrs, [test, inside.block], [[]] + [c.shape for c in carries])


def walked(g, count):
    """Values with one first axis, to be walked along."""
    x = g.floats(test=lambda v: v.rank and trips_of(g, v.shape[0]) <= (33 if g.is_large else 5), least_rank=1)
    same = g.visible(lambda v: v.dtype in ("float",) + INTS and v.rank and v.shape[0] == x.shape[0])
    return [x] + [g.random.choice(same) for _ in range(count - 1)]


@op("scan")
def scan(g, name):
    xs = walked(g, g.random.choice([1, 1, 2]))
    trips = trips_of(g, xs[0].shape[0])
    if too_deep(g, trips):
        return
    carries = carry_values(g, g.random.choice([0, 1, 1, 1, 2]))
    params = [Value(g.fresh("c"), "float", c.shape, 4.0) for c in carries]
    slices = [Value(g.fresh("x"), x.dtype, x.shape[1:], x.most) for x in xs]
    with Inside(g, "body", params + slices, trips) as inside:
        inside.fill()
        given = [inside.give(c.shape, 4.0) for c in carries]
        stacked = made_here(g, g.random.choice([0, 1, 1, 2]) if carries else 1)
        inside.block.gives = [v.name for v in given + stacked]
    attrs = ({"carry": csv(c.name for c in carries)} if carries else {}) | {"xs": csv(x.name for x in xs)}
    attrs |= {"reverse": g.random.randrange(2)} | some_save(g)
    shapes = [c.shape for c in carries] + [[xs[0].shape[0]] + v.shape for v in stacked]
    finish_loop(g, name, [], attrs, inside.block, shapes, max([4.0] + [v.most for v in stacked]))


def made_here(g, count):
    """Floats that a body gives for each trip; often a part of one."""
    made = []
    for _ in range(count):
        found = [v for v in g.scopes[-1] if v.dtype == "float"]
        x = found[-1] if found and g.random.random() < 0.7 else g.random.choice(
            found or g.visible(lambda v: v.dtype == "float") or [g.constant("float", [], -1.0, 1.0)])
        if x.rank and g.random.random() < 0.35:
            items, shape = index_items(g, x)
            x = g.emit("index", [x], {"at": ";".join(items)}, "float", shape, x.most)
        if g.largest(x.shape) > g.room / 3:
            x = g.emit("mean", [x], {"axes": "all", "keepdims": 0}, "float", [], x.most)
        made.append(x)
    return made


@op("map_fn", "vectorized_map")
def mapped(g, name):
    xs = walked(g, g.random.choice([1, 1, 2]))
    trips = trips_of(g, xs[0].shape[0])
    if too_deep(g, trips):
        return
    slices = [Value(g.fresh("x"), x.dtype, x.shape[1:], x.most) for x in xs]
    before = g.may_write
    with Inside(g, "body", slices, trips) as inside:
        g.may_write = False
        inside.fill()
        g.may_write = before
        given = made_here(g, g.random.choice([1, 1, 2]))
        inside.block.gives = [v.name for v in given]
    attrs = {"xs": csv(x.name for x in xs)}
    if g.random.random() < 0.4:
        attrs["chunk"] = g.random.choice([1, 2, 3])
    if g.random.random() < 0.3:
        attrs["parallel_iterations"] = g.random.choice([1, 2])
    finish_loop(g, name, [], attrs, inside.block, [[xs[0].shape[0]] + v.shape for v in given],
                max(v.most for v in given))


def branches(g, kinds, shapes):
    blocks = []
    for kind in kinds:
        with Inside(g, kind, []) as inside:
            inside.fill(0, 2)
            inside.block.gives = [inside.give(shape, 4.0).name for shape in shapes]
        blocks.append(inside.block)
    return blocks


@op("cond")
def cond(g, name):
    if too_deep(g, 1):
        return
    like = [g.floats() for _ in range(g.random.choice([1, 1, 2]))]
    x = g.floats(test=lambda v: all(g.least(s) > 0 for s in v.shape))
    level = g.emit("mean", [x], {"axes": "all", "keepdims": 0}, "float", [], x.most) if x.rank else x
    chosen = g.emit(g.random.choice(["less", "greater"]), [level, 0.2], {}, "bool", [], 1)
    blocks = branches(g, ["then", "else"], [v.shape for v in like])
    finish_loop(g, name, [chosen], {}, blocks, [v.shape for v in like])


@op("switch_case")
def switch_case(g, name):
    if too_deep(g, 1):
        return
    like = [g.floats()]
    count = g.random.choice([2, 3])
    index_of = g.visible(lambda v: v.dtype in INTS and v.rank == 0)
    chosen = g.random.choice(index_of) if index_of else g.argument("i32", [], -1, 3)
    blocks = branches(g, ["case"] * count, [v.shape for v in like])
    finish_loop(g, name, [chosen], {"branches": count}, blocks, [v.shape for v in like])


@op("recompute", "call")
def isolated(g, name):
    if too_deep(g, 2) or (name == "call" and (g.depth > 1 or g.trips > 3)):
        return
    given = [g.floats() for _ in range(g.random.choice([1, 2]))]
    params = [Value(g.fresh("p"), "float", v.shape, v.most) for v in given]
    with Inside(g, "body", params, 1, isolated=True) as inside:
        inside.fill(1, 3)
        results = made_here(g, 1)
        inside.block.gives = [v.name for v in results]
    finish_loop(g, name, given, {}, inside.block, [v.shape for v in results], max(v.most for v in results))


CONTROL = ["fori_loop", "while_loop", "scan", "map_fn", "vectorized_map", "cond", "switch_case", "recompute", "call", "array_loop", "custom_gradient"]
# What random steps choose from: control flow and views come up more often.
WEIGHTED = (list(OPS) + CONTROL * 4 + ["index", "reshape", "transpose", "add", "multiply", "sum", "concat", "read"] * 2)
