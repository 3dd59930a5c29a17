"""A random program from a seed.

Every op has a function that emits one statement of it (and what the statement needs): see generate_ops. Each value
carries a bound on its magnitude, so that programs stay where functions are smooth and numbers small.
"""

import random

from program_text import Input, Program, Size, Statement, is_number, names_used, shape_text, walk

INTS = ("i32", "i64")
LAYOUTS = ("plain", "plain", "turned", "stepped", "sliced", "backwards")


class Value:
    def __init__(self, name, dtype, shape, most=2.0):
        self.name, self.dtype, self.shape, self.most = name, dtype, [Size.of(s) for s in shape], most

    @property
    def rank(self):
        return len(self.shape)


class Generator:
    def __init__(self, seed, wanted=()):
        self.random = random.Random(seed * 7919 + 13)
        pick = self.random
        # Most programs are small; some have rows for whole vectors, tails and several blocks.
        self.is_large = pick.random() < 0.12
        self.room = 4000 if self.is_large else 120  # Elements that a value may have.
        sizes = {}
        if pick.random() < 0.5:
            sizes["n"] = list(pick.choice([(33, 70), (17, 5), (70, 16), (65, 0), (300, 7)] if self.is_large else
                                          [(3, 5), (2, 4), (4, 3), (3, 1), (5, 2), (4, 0), (2, 3)]))
            if pick.random() < 0.25:
                sizes["m"] = [pick.choice([2, 3]), pick.choice([1, 4])]
        dtype = pick.choices(["f64", "f32", "f16", "bf16"], [0.66, 0.26, 0.04, 0.04])[0]
        self.program = Program(seed, dtype, sizes)
        self.wanted = list(wanted)
        self.kept = []  # Names of what came out of them: results, so that nothing drops them as unused.
        self.scopes = [[]]  # Of values, the innermost last.
        self.body = self.program.body
        self.count = 0
        self.trips = 1  # How often the statement being made runs.
        self.cost = 0
        self.depth = 0
        self.isolated = 0  # Blocks that must not capture begin at this scope.
        self.may_draw = True
        self.may_write = True

    # ---- names and sizes ------------------------------------------------------------------------

    def fresh(self, letter="t"):
        self.count += 1
        return f"{letter}{self.count}"

    def least(self, size):
        """The smallest it is in any call."""
        size = Size.of(size)
        calls = range(2) if self.program.sizes else range(1)
        return min(size.at(self.program.sizes_at(c)) if self.program.sizes else size.known() for c in calls)

    def largest(self, shape):
        total = Size.of(1)
        for size in shape:
            total = total * size
        return -self.least(total * -1)

    def some_size(self):
        if self.program.sizes and self.random.random() < 0.45:
            return Size.of(self.random.choice(list(self.program.sizes)))
        if self.random.random() < 0.02:
            return Size.of(0)
        if self.is_large and self.random.random() < 0.4:
            return Size.of(self.random.choice([7, 16, 17, 33, 64, 65]))
        return Size.of(self.random.choice([1, 2, 2, 3, 3, 4, 5]))

    def some_shape(self, rank=None):
        rank = self.random.choice([0, 1, 1, 2, 2, 2, 3]) if rank is None else rank
        return [self.some_size() for _ in range(rank)]

    # ---- inputs and values ----------------------------------------------------------------------

    def visible(self, test=lambda v: True):
        return [v for scope in self.scopes[self.isolated:] for v in scope if test(v)]

    def argument(self, dtype, shape, low=-2.0, high=2.0):
        """A new argument; in an isolated block a parameter is made instead, so none can be had."""
        pick = self.random
        if dtype == "float" and all(Size.of(s).is_known() for s in shape) and pick.random() < (0.3 if self.isolated else 0.1):
            return self.captured(shape, low, high)
        if self.isolated:
            return self.constant(dtype, shape, low, high)
        layout = pick.choice(LAYOUTS) if shape else "plain"
        if shape and pick.random() < 0.2:
            layout = f"stretched:{pick.randrange(len(shape))}"
        if dtype == "float" and pick.random() < 0.06:
            layout += "+grid"
        differentiated = dtype == "float" and pick.random() < 0.75
        made = Input(self.fresh("a"), dtype, shape, layout, float(low), float(high), differentiated)
        self.program.arguments.append(made)
        for axis, size in enumerate(made.shape):
            name = str(size)
            if name in self.program.sizes and name not in [s[0] for s in self.program.size_sources]:
                self.program.size_sources.append((name, made.name, axis))
        value = Value(made.name, dtype, shape, max(abs(low), abs(high)))
        self.scopes[0].append(value)
        return value

    def captured(self, shape, low, high):
        """A tensor that is there before the function is made."""
        layout = self.random.choice(LAYOUTS) if shape else "plain"
        made = Input(self.fresh("q"), "float", shape, layout, float(low), float(high))
        self.program.constants.append(made)
        value = Value(made.name, "float", shape, max(abs(low), abs(high)))
        self.scopes[self.isolated].append(value)
        return value

    def constant(self, dtype, shape, low, high):
        if dtype == "float":
            return self.emit("full", [], {"shape": shape_text(shape), "value": repr((low + high) / 2 + 0.25)}, "float",
                             shape, max(abs(low), abs(high)))
        zero = self.emit("full", [], {"shape": shape_text(shape), "value": repr(float(max(int(low), 0)))}, "float", shape, abs(high))
        return self.emit("cast", [zero], {"dtype": dtype}, dtype, shape, abs(high))

    def pick(self, test=lambda v: True):
        """A float that passes the test, mostly a recent one; or none."""
        found = self.visible(lambda v: v.dtype == "float" and test(v))
        if not found:
            return None
        if self.random.random() < 0.65:
            found = found[-4:]
        return self.random.choice(found)

    def floats(self, rank=None, test=lambda v: True, least_rank=0):
        value = self.pick(lambda v: (rank is None or v.rank == rank) and v.rank >= least_rank and test(v))
        if value is not None and self.random.random() < 0.9:
            return value
        for _ in range(20):
            shape = self.some_shape(rank if rank is not None else max(least_rank, self.random.choice([1, 2, 2, 3])))
            if self.largest(shape) <= self.room and test(Value("", "float", shape)):
                return self.argument("float", shape)
        return self.argument("float", [Size.of(2)] * (rank or least_rank))

    def like(self, shape, dtype="float", low=-2.0, high=2.0):
        """A value of a shape: one there is, or an argument."""
        shape = [Size.of(s) for s in shape]
        if dtype == "float":
            value = self.pick(lambda v: v.shape == shape)
            if value is not None and self.random.random() < 0.7:
                return value
        return self.argument(dtype, shape, low, high)

    def indices(self, shape, count, negative=True):
        """Whole numbers that point along an axis of `count`."""
        least = self.least(count)
        assert least > 0
        low = -least if negative and self.random.random() < 0.5 else 0
        return self.argument(self.random.choice(INTS), shape, low, least - 1)

    def emit(self, op, operands, attrs, dtype, shape, most):
        """One statement with one result."""
        out = self.fresh()
        self.statement([out], op, operands, attrs)
        return self.declare(Value(out, dtype, shape, most))

    def statement(self, outs, op, operands, attrs, blocks=()):
        texts = [o.name if isinstance(o, Value) else repr(o) for o in operands]
        self.body.append(Statement(outs, op, texts, attrs, list(blocks)))
        self.cost += self.trips

    def declare(self, value):
        self.scopes[-1].append(value)
        return value

    # ---- bounds ---------------------------------------------------------------------------------

    def within(self, x, most):
        if x.most <= most:
            return x
        if self.random.random() < 0.5 and most >= 1:
            return self.emit("tanh", [x], {}, "float", x.shape, 1.0)
        return self.emit("multiply", [x, round(most / x.most, 6)], {}, "float", x.shape, most * 1.01)

    def positive(self, x):
        """Not below a half."""
        form = self.random.randrange(3)
        x = self.within(x, 4.0)
        if form == 0:
            y = self.emit("abs", [x], {}, "float", x.shape, x.most)
        elif form == 1:
            y = self.emit("square", [x], {}, "float", x.shape, x.most ** 2)
        else:
            y = self.emit("exp", [self.within(x, 2.0)], {}, "float", x.shape, 7.4)
        return self.emit("add", [y, 0.5], {}, "float", x.shape, y.most + 0.5)

    def joined(self, a, b):
        """The shape two broadcast to, or none."""
        shape = []
        for i in range(max(a.rank, b.rank)):
            x = a.shape[-1 - i] if i < a.rank else Size.of(1)
            y = b.shape[-1 - i] if i < b.rank else Size.of(1)
            if x == y or y == 1:
                shape.insert(0, x)
            elif x == 1:
                shape.insert(0, y)
            else:
                return None
        return shape

    def partner(self, x):
        """What broadcasts with x, and the shape of both."""
        found = [v for v in self.visible(lambda v: v.dtype == "float") if self.joined(x, v) is not None]
        if found and self.random.random() < 0.8:
            y = self.random.choice(found[-5:])
        else:
            shape = [s if self.random.random() < 0.7 else Size.of(1) for s in x.shape]
            y = self.argument("float", shape[self.random.randrange(len(shape) + 1):])
        shape = self.joined(x, y)
        if self.largest(shape) > self.room:
            return x, x.shape
        return y, shape

    # ---- the whole ------------------------------------------------------------------------------

    def make(self):
        from generate_ops import OPS, WEIGHTED
        while not self.program.arguments:
            self.argument("float", [Size.of(n) for n in self.program.sizes] + [self.some_size()])
        if not any(a.differentiated for a in self.program.arguments):
            self.program.arguments[0].differentiated = True
        if self.random.random() < 0.35:
            shape = [Size.of(self.random.choice([2, 3, 4])) for _ in range(self.random.choice([1, 1, 2]))]
            self.program.variables.append(Input(self.fresh("v"), "float", shape, "plain", -1.0, 1.0))
        for name in self.wanted:
            OPS[name](self)
            self.kept.append(self.scopes[-1][-1].name)
        length = self.random.randint(5, 13)
        for _ in range(length):
            if self.cost > 110:
                break
            self.step(OPS, WEIGHTED)
        self.finish()
        return self.program

    def step(self, ops, weighted):
        ops[self.random.choice(weighted)](self)
        last = self.scopes[-1][-1] if self.scopes[-1] else None
        if last is not None and last.dtype == "float" and last.most > 40:
            self.within(last, self.random.choice([1.0, 3.0, 10.0]))
        if last is not None and self.largest(last.shape) > self.room * 1.5:
            self.scopes[-1].remove(last)

    def finish(self):
        """Results, moves and modes."""
        made = [v for v in self.scopes[0] if v.name.startswith("t") and v.dtype != "u8"]
        floats = [v for v in made if v.dtype == "float"]
        if not floats:
            x = self.floats()
            floats = [self.emit("tanh", [x], {}, "float", x.shape, 1.0)]
            made = floats
        late = made[-10:]
        chosen = [floats[-1]] + self.random.sample(late, min(self.random.choice([2, 2, 3, 4]), len(late)))
        chosen += [v for v in made if v.name in self.kept]
        self.program.results = list(dict.fromkeys(v.name for v in chosen))
        remove_unused(self.program)
        mark_moves(self.program, self.random)
        self.program.modes = self.modes()

    def modes(self):
        modes = ["eager.value", "function.value", "function.grad", "eager.grad"]
        pick = self.random.random
        if pick() < 0.5:
            modes += ["nojit.value", "nojit.grad"]
        if pick() < 0.4:
            modes += ["tape.grad"]
        if pick() < 0.4:
            modes += ["donated." + self.random.choice(["value", "grad", "jvp"])]
        if pick() < 0.6:
            modes += ["function.hvp", "function.jvp"]
        if pick() < 0.3:
            modes += ["eager.hvp", "eager.jvp"]
        if self.program.sizes:
            modes += ["open.value", "open.grad"]
            if pick() < 0.3:
                modes += ["opentape.grad"]
            if pick() < 0.3:
                modes += ["auto.grad"]
            if pick() < 0.3:
                modes += [self.random.choice(["open.hvp", "open.jvp", "auto.hvp"])]
        return modes


def remove_unused(program):
    """Statements nobody reads, and inputs nobody needs."""
    changed = True
    while changed:
        changed = False
        used = set(program.results)
        for statement in program.body:
            used |= set(names_used(statement))
        for body in [program.body] + [b.body for s in walk(program.body) for b in s.blocks]:
            changed |= prune(body, used | local_uses(program))
    used = set(program.results) | local_uses(program) | {source[1] for source in program.size_sources}
    program.arguments = [a for a in program.arguments if a.name in used or a is program.arguments[0]]
    program.constants = [c for c in program.constants if c.name in used]
    written = {s.attrs["to"] for s in walk(program.body) if "to" in s.attrs}
    program.variables = [v for v in program.variables if v.name in written]


def local_uses(program):
    used = set()
    for statement in walk(program.body):
        used |= set(names_used(statement))
        for block in statement.blocks:
            used |= set(block.gives)
    return used


def prune(body, used):
    kept = [s for s in body if "to" in s.attrs and s.op != "read" or not s.outs or set(s.outs) & used or writes(s)]
    changed = len(kept) != len(body)
    body[:] = kept
    return changed


def writes(statement):
    return any("to" in s.attrs and s.op != "read" for b in statement.blocks for s in walk(b.body))


MOVABLE = {"abs", "cos", "exp", "tanh", "square", "negative", "sigmoid", "add", "multiply", "subtract", "maximum",
           "divide", "where", "clip", "put", "update_at", "reshape", "relu", "sin", "identity", "cast"}


def mark_moves(program, pick):
    """Gives values away at their last use, where that is an op which may then work in place."""
    for body, ends in [(program.body, program.results)] + [(b.body, b.gives) for s in walk(program.body) for b in s.blocks]:
        later = set(ends)
        for statement in reversed(body):
            used = names_used(statement)
            if statement.op in MOVABLE:
                local = {out for s in body for out in s.outs}
                for i, name in enumerate(statement.operands):
                    alone = not is_number(name) and used.count(name) == 1 and name in local and name not in later
                    if alone and pick.random() < 0.5:
                        statement.operands[i] = name + "!"
            later |= set(used)
