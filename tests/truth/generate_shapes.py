"""Statements that move elements, and statements that make arrays."""

from generate import INTS, Value
from generate_elementwise import back
from generate_table import csv, op
from program_text import Size, shape_text

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
