"""Programs as data and as text: sizes, inputs, statements, blocks.

A program is what truth_driver.cc reads; program_text.h shows one.
"""

import itertools


class Size:
    """A polynomial in the open sizes: 3, n, 2*n+1, n*m."""

    def __init__(self, terms):
        self.terms = {names: factor for names, factor in terms.items() if factor}

    @staticmethod
    def of(value):
        return value if isinstance(value, Size) else Size({(value,): 1} if isinstance(value, str) else {(): value})

    def __add__(self, other):
        terms = dict(self.terms)
        for names, factor in Size.of(other).terms.items():
            terms[names] = terms.get(names, 0) + factor
        return Size(terms)

    def __mul__(self, other):
        total = Size({})
        for (a, x), (b, y) in itertools.product(self.terms.items(), Size.of(other).terms.items()):
            total = total + Size({tuple(sorted(a + b)): x * y})
        return total

    def __sub__(self, other):
        return self + Size.of(other) * -1

    def __eq__(self, other):
        return self.terms == Size.of(other).terms

    def __hash__(self):
        return hash(tuple(sorted(self.terms.items())))

    def is_known(self):
        return not any(self.terms)

    def known(self):
        assert self.is_known()
        return self.terms.get((), 0)

    def at(self, sizes):
        total = 0
        for names, factor in self.terms.items():
            for name in names:
                factor *= sizes[name]
            total += factor
        return total

    def __str__(self):
        text = ""
        for names, factor in sorted(self.terms.items(), key=lambda term: (-len(term[0]), term[0])):
            parts = ([str(abs(factor))] if abs(factor) != 1 or not names else []) + list(names)
            text += ("-" if factor < 0 else "+" if text else "") + "*".join(parts)
        return text or "0"


def shape_text(shape):
    return "[" + ",".join(str(size) for size in shape) + "]"


class Input:
    """An argument, a Variable or a captured tensor."""

    def __init__(self, name, dtype, shape, layout="plain", low=-2.0, high=2.0, differentiated=False):
        self.name, self.dtype, self.shape, self.layout = name, dtype, [Size.of(s) for s in shape], layout
        self.low, self.high, self.differentiated = low, high, differentiated

    def text(self, kind):
        words = [kind, self.name, self.dtype, shape_text(self.shape), self.layout, repr(self.low), repr(self.high)]
        return " ".join(words + (["diff"] if self.differentiated else []))


class Block:
    def __init__(self, kind, params, body=None, gives=None):
        self.kind, self.params, self.body, self.gives = kind, list(params), body or [], gives or []

    def lines(self, indent):
        yield indent + " ".join([self.kind] + self.params)
        for statement in self.body:
            yield from statement.lines(indent)
        yield indent + " ".join(["give"] + self.gives)

    def copy(self):
        return Block(self.kind, self.params, [s.copy() for s in self.body], list(self.gives))


class Statement:
    def __init__(self, outs, op, operands, attrs=None, blocks=None):
        self.outs, self.op, self.operands = list(outs), op, list(operands)
        self.attrs, self.blocks = dict(attrs or {}), blocks or []

    def lines(self, indent=""):
        left = " ".join(self.outs) + " = " if self.outs else ""
        attrs = [f"{name}={value}" for name, value in self.attrs.items()]
        yield indent + left + " ".join([self.op] + self.operands + attrs)
        for block in self.blocks:
            yield from block.lines(indent + "  ")

    def copy(self):
        return Statement(self.outs, self.op, self.operands, self.attrs, [b.copy() for b in self.blocks])


class Program:
    def __init__(self, seed, dtype, sizes):
        self.seed, self.dtype, self.sizes = seed, dtype, sizes  # sizes: {"n": [3, 5]}
        self.size_sources, self.arguments, self.variables, self.constants = [], [], [], []
        self.body, self.results, self.modes = [], [], []

    def sizes_at(self, call):
        return {name: values[call] for name, values in self.sizes.items()}

    def text(self):
        lines = [" ".join([f"program {self.seed} {self.dtype}"] +
                          [f"{name}={','.join(map(str, values))}" for name, values in self.sizes.items()])]
        lines += [f"size {name} {argument} {axis}" for name, argument, axis in self.size_sources]
        lines += [argument.text("arg") for argument in self.arguments]
        lines += [constant.text("const") for constant in self.constants]
        lines += [variable.text("var") for variable in self.variables]
        for statement in self.body:
            lines += statement.lines()
        lines += ["return " + " ".join(self.results), "modes " + " ".join(self.modes)]
        return "\n".join(lines) + "\n"

    def copy(self):
        other = Program(self.seed, self.dtype, self.sizes)
        other.size_sources, other.variables = list(self.size_sources), list(self.variables)
        other.constants = list(self.constants)
        other.arguments = [Input(a.name, a.dtype, a.shape, a.layout, a.low, a.high, a.differentiated)
                           for a in self.arguments]
        other.body, other.results = [s.copy() for s in self.body], list(self.results)
        other.modes = list(self.modes)
        return other


def plain(name):
    """An operand's name without the mark that gives it away."""
    return name[:-1] if name.endswith("!") else name


def is_number(text):
    return text[0].isdigit() or (text[0] == "-" and len(text) > 1)


NAME_LISTS = ("carry", "xs")  # Attributes whose values are names.


def names_used(statement):
    """The names a statement reads, those its blocks capture among them."""
    used = [plain(o) for o in statement.operands if not is_number(o)]
    for attr in NAME_LISTS:
        used += [name for name in statement.attrs.get(attr, "").split(",") if name]
    used += [item[1:] for item in statement.attrs.get("at", "").split(";") if item.startswith("@")]
    for block in statement.blocks:
        inner = [name for s in block.body for name in names_used(s)] + block.gives
        local = set(block.params) | {out for s in block.body for out in s.outs}
        used += [name for name in inner if name not in local]
    return used


def walk(body):
    """Every statement, those in blocks after the statement that has them."""
    for statement in body:
        yield statement
        for block in statement.blocks:
            yield from walk(block.body)


def parse(text):
    """The program of a text, as the driver reads it."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    head = lines.pop(0)
    sizes = {word.split("=")[0]: [int(v) for v in word.split("=")[1].split(",")] for word in head[3:]}
    program = Program(int(head[1]), head[2], sizes)
    counts = {"cond": 2, "while_loop": 2, "scan": 1, "fori_loop": 1, "array_loop": 1, "custom_gradient": 1, "map_fn": 1, "vectorized_map": 1,
              "recompute": 1, "call": 1}

    def statement(words):
        at = words.index("=") if "=" in words else -1
        operands = [w for w in words[at + 2:] if "=" not in w]
        attrs = dict(w.split("=", 1) for w in words[at + 2:] if "=" in w)
        made = Statement(words[:max(at, 0)], words[at + 1], operands, attrs)
        count = int(attrs["branches"]) if made.op == "switch_case" else counts.get(made.op, 0)
        made.blocks = [block(lines.pop(0)) for _ in range(count)]
        return made

    def block(words):
        made = Block(words[0], words[1:])
        while lines[0][0] != "give":
            made.body.append(statement(lines.pop(0)))
        made.gives = lines.pop(0)[1:]
        return made

    def input_of(words):
        shape = [size_of(part) for part in words[3][1:-1].split(",") if part]
        return Input(words[1], words[2], shape, words[4], float(words[5]), float(words[6]), len(words) > 7)

    while lines:
        words = lines.pop(0)
        if words[0] == "size":
            program.size_sources.append((words[1], words[2], int(words[3])))
        elif words[0] == "arg":
            program.arguments.append(input_of(words))
        elif words[0] == "const":
            program.constants.append(input_of(words))
        elif words[0] == "var":
            program.variables.append(input_of(words))
        elif words[0] == "return":
            program.results = words[1:]
        elif words[0] == "modes":
            program.modes = words[1:]
        else:
            program.body.append(statement(words))
    return program


def size_of(text):
    """The size of a text: "2*n+1"."""
    total = Size({})
    for part in text.replace("-", "+-").split("+"):
        if not part:
            continue
        factor = Size.of(-1) if part.startswith("-") else Size.of(1)
        for word in part.lstrip("-").split("*"):
            factor = factor * (int(word) if word.isdigit() else word)
        total = total + factor
    return total
