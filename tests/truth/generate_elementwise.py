"""Statements of elementwise ops."""

from generate import INTS, Value
from generate_table import op

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
