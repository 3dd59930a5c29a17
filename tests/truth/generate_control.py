"""Statements that read and write Variables, and control flow."""

from generate import INTS, Value
from generate_rows import folded
from generate_shapes import index_items
from generate_table import OPS, csv, op
from program_text import Block, Size, Statement, shape_text

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
        from generate_ops import WEIGHTED
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


CONTROL = ["fori_loop", "while_loop", "scan", "map_fn", "vectorized_map", "cond", "switch_case", "recompute", "call", "array_loop",
           "custom_gradient"]
