"""What programs mean, said by NumPy and JAX.

Whole numbers and truths are known: they are never traced, so that branches are taken, loops unrolled and
indices read while JAX looks on. Where they come from floats the floats are noted (`guards`), so that whoever
changes the floats a little can see whether they would have come out otherwise. What the ops of each family
mean stands in a file of its own.
"""

import numpy as np

from meaning_control import Control
from meaning_elementwise import BINARY, KNOWN, UNARY, Elementwise
from meaning_indices import Indices
from meaning_products import Products
from meaning_rows import Rows
from meaning_shapes import Shapes
from meaning_values import V, computed, spread
from program_text import is_number, plain, size_of


class Meaning(Elementwise, Rows, Shapes, Indices, Products, Control):
    """One run of a program."""

    def __init__(self, program, call, draws):
        self.program, self.sizes = program, program.sizes_at(call) if program.sizes else {}
        self.draws, self.drawn = draws, 0
        self.guards = []  # (function of NumPy arrays, the floats it read, what it gave)
        self.variables = {}  # name: V
        self.deltas = {}  # name: what each read of a Variable adds, whose gradient is that of the Variable

    def run(self, arguments):
        """Results for arguments by name."""
        scope = dict(arguments)
        self.block(self.program.body, scope)
        return [scope[name] for name in self.program.results]

    def block(self, body, scope):
        for statement in body:
            given = self.statement(statement, scope)
            if statement.outs:
                given = given if isinstance(given, (list, tuple)) else [given]
                for name, value in zip(statement.outs, given):
                    scope[name] = value

    def statement(self, s, scope):
        operands = [self.operand(text, scope) for text in s.operands]
        if s.op in UNARY:
            return computed(*UNARY[s.op], operands[0])
        if s.op in BINARY:
            return self.binary(s.op, *operands)
        if s.op in KNOWN:
            return self.known(lambda *a: KNOWN[s.op](*a), operands)
        return getattr(self, "do_" + s.op)(Attributes(self, s, scope), *operands)

    def operand(self, text, scope):
        if not is_number(text):
            return scope[plain(text)]
        return V(np.float64(text) if "." in text or "e" in text else np.int64(text))

    def known(self, function, operands):
        """Whole numbers or truths, read off floats or not."""
        with np.errstate(all="ignore"):
            a = np.asarray(function(*[v.a for v in operands]))
        floats = [v for v in operands if v.t is not None]
        if floats:
            self.guards.append((function, operands, a))
        return V(a)

    def binary(self, op, a, b):
        if not a.is_float and not b.is_float:
            return self.known(BINARY[op][0], [a, b])
        shape = np.broadcast_shapes(a.a.shape, b.a.shape)
        a, b = [V(np.asarray(v.a, np.float64), v.t) for v in (a, b)]
        return computed(*BINARY[op], spread(a, shape), spread(b, shape))


class Attributes:
    """A statement's attributes, read as what they are."""

    def __init__(self, meaning, statement, scope):
        self.op, self.attrs, self.blocks, self.scope = statement.op, statement.attrs, statement.blocks, scope
        self.sizes = meaning.sizes

    def text(self, name):
        return str(self.attrs[name])

    def whole(self, name):
        return int(self.attrs.get(name, 0))

    def real(self, name):
        return float(self.attrs[name])

    def wholes(self, name):
        return [int(part) for part in str(self.attrs.get(name, "")).split(",") if part]

    def size(self, name):
        return size_of(self.text(name)).at(self.sizes)

    def shape(self, name="shape"):
        return tuple(size_of(part).at(self.sizes) for part in self.text(name)[1:-1].split(",") if part)

    def axes(self, x):
        return tuple(range(x.a.ndim)) if self.text("axes") == "all" else tuple(self.wholes("axes"))

    def named(self, name):
        return [self.scope[n] for n in str(self.attrs.get(name, "")).split(",") if n]

    def places(self):
        return np.ix_(*[b + s * np.arange(n) for b, n, s in zip(self.wholes("begin"), self.wholes("size"), self.wholes("step"))])

    def index(self):
        return tuple(self.item(text) for text in self.text("at").split(";"))

    def item(self, text):
        if text in ("new", "...", "all"):
            return {"new": None, "...": Ellipsis, "all": slice(None)}[text]
        if text[0] == "@":
            return self.scope[text[1:]].a
        if ":" not in text:
            return int(text)
        return slice(*[int(part) if part else None for part in text.split(":")])
