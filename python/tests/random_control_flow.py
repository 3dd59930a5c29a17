"""Random functions of nested control flow on three numbers, as source text."""
import random

NAMES = "abc"


class Program:
    """`python`: with statements that traced code cannot have on tensors, such as exceptions that a value decides."""

    def __init__(self, seed, python):
        self.random, self.python, self.loops, self.lines = random.Random(seed), python, 0, []
        self.block(1, depth=0, in_loop=False)
        self.lines.append("    return " + ("a, b, c, out" if python else "a, b, c"))

    def text(self):
        head = ["def f(a, b, c):"] + (["    out = []"] if self.python else [])
        return "\n".join(head + self.lines) + "\n"

    def add(self, indent, text):
        self.lines.append("    " * indent + text)

    def pick(self, *choices):
        return self.random.choice(choices)

    def value(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.3:
            return self.pick(*NAMES)
        if r < 0.45:
            return str(self.random.randrange(-5, 9))
        if r < 0.55:
            return f"({self.value(depth + 1)} if {self.test(depth + 1)} else {self.value(depth + 1)})"
        return f"(({self.value(depth + 1)} {self.pick('+', '-', '*')} {self.value(depth + 1)}) % 19)"

    def test(self, depth=0):
        r = self.random.random()
        if depth > 2 or r < 0.5:
            return f"{self.value(depth + 1)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {self.value(depth + 1)}"
        if r < 0.6:
            return f"{self.random.randrange(4)} < {self.value(depth + 1)} <= {self.value(depth + 1)}"
        if r < 0.75:
            return f"not ({self.test(depth + 1)})"
        return f"({self.test(depth + 1)} {self.pick('and', 'or')} {self.test(depth + 1)})"

    def block(self, indent, depth, in_loop):
        for _ in range(self.random.randrange(1, 4)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent, depth, in_loop):
        r = self.random.random()
        if depth >= 4 or r < 0.4:
            self.simple(indent)
        elif r < 0.6:
            self.branch(indent, depth, in_loop)
        elif r < 0.72:
            self.loop_for(indent, depth)
        elif r < 0.82:
            self.loop_while(indent, depth)
        elif in_loop and r < 0.92:
            self.add(indent, f"if {self.test()}:")
            self.add(indent + 1, self.pick("break", "continue"))
        elif r < 0.95:
            self.add(indent, f"if {self.test()}:")
            self.add(indent + 1, "return " + (f"{self.value()}, b, c, out" if self.python else f"{self.value()}, b, c"))
        elif self.python:
            self.attempt(indent, depth, in_loop)
        else:
            self.simple(indent)

    def simple(self, indent):
        name = self.pick(*NAMES)
        if self.python and self.random.random() < 0.2:
            self.add(indent, f"out.append({self.value()})")
        elif self.random.random() < 0.3:
            self.add(indent, f"{name} += {self.random.randrange(1, 5)}")
            self.add(indent, f"{name} = {name} % 23")
        else:
            self.add(indent, f"{name} = {self.value()}")

    def branch(self, indent, depth, in_loop):
        self.add(indent, f"if {self.test()}:")
        self.block(indent + 1, depth + 1, in_loop)
        if self.random.random() < 0.3:
            self.add(indent, f"elif {self.test()}:")
            self.block(indent + 1, depth + 1, in_loop)
        if self.random.random() < 0.6:
            self.add(indent, "else:")
            self.block(indent + 1, depth + 1, in_loop)

    def loop_for(self, indent, depth):
        self.loops += 1
        over = f"range({self.random.randrange(0, 4)})" if self.python else self.pick("RANGE(3)", "RANGE(a % 3)", "range(2)", "ROWS", "RANGE(1, 5, 2)")
        self.add(indent, f"for i{self.loops} in {over}:")
        self.add(indent + 1, f"{self.pick(*NAMES)} = (a + b + i{self.loops}) % 17")
        self.block(indent + 1, depth + 1, True)
        self.otherwise(indent, depth)

    def loop_while(self, indent, depth):
        self.loops += 1
        counter = f"k{self.loops}"
        self.add(indent, f"{counter} = 0" if self.python else f"{counter} = {self.pick('0', 'ZERO')}")
        self.add(indent, f"while {counter} < {self.random.randrange(1, 4)} and {self.test()}:")
        self.add(indent + 1, f"{counter} += 1")
        self.block(indent + 1, depth + 1, True)
        self.otherwise(indent, depth)

    def otherwise(self, indent, depth):
        if self.random.random() < 0.2:
            self.add(indent, "else:")
            self.block(indent + 1, depth + 1, False)

    def attempt(self, indent, depth, in_loop):
        self.add(indent, "try:")
        self.block(indent + 1, depth + 1, in_loop)
        self.add(indent + 1, f"if {self.test()}:")
        self.add(indent + 2, "raise KeyError(a)")
        self.block(indent + 1, depth + 1, in_loop)
        if self.random.random() < 0.6:
            self.add(indent, "except KeyError as error:")
            self.add(indent + 1, "out.append(error.args[0])")
            self.block(indent + 1, depth + 1, in_loop)
        if self.random.random() < 0.5 or self.lines[-1].strip() == "":
            self.add(indent, "else:") if self._has_handler(indent) else self.add(indent, "finally:")
            self.block(indent + 1, depth + 1, False) if self._has_handler(indent) else self.simple(indent + 1)
        elif not self._has_handler(indent):
            self.add(indent, "finally:")
            self.simple(indent + 1)

    def _has_handler(self, indent):
        mine = "    " * indent
        for line in reversed(self.lines):
            if line == mine + "try:":
                return False
            if line.startswith(mine + "except"):
                return True
        return False
