"""Which names may be read after each `if` and loop, so that only those become results of the traced branch or loop.

Works on the statements that jumps.py leaves: control flow is nested, and `return` and `raise` are the only jumps.
"""
import ast

from .scope import Names, assigned_outside, free_names


def annotate(function):
    """Sets, on each `if`, `while` and `for`: `live`, the names read after it; on loops also `live_inside`, the names that a trip may read
    from the trip before or from before the loop; and `binds`, `attributes`, `changed`, the places that its blocks change."""
    _Liveness(function).block(function.body, frozenset())


class _Liveness:
    def __init__(self, function):
        # What reading a nested function's name reads and changes: it may be called there.
        self.captured, self.assigned = {}, {}
        for node in ast.walk(function):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node is not function:
                self.captured.setdefault(node.name, set()).update(free_names(node))
                self.assigned.setdefault(node.name, set()).update(assigned_outside(node))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.captured.setdefault(target.id, set()).update(free_names(node.value))
        self.handlers = frozenset()  # Read by handlers that an exception here may reach.
        self.known = {}  # Names of a statement, by its identity: blocks are asked for at each level around them.

    def names(self, *nodes):
        merged = Names()
        for node in nodes:
            merged.add(self._names_of(node))
        return merged

    def _names_of(self, node):
        known = self.known.get(id(node))
        if known is None:
            if isinstance(node, (ast.If, ast.While)):
                known = self.names(node.test, *node.body, *node.orelse)
            elif isinstance(node, ast.For):
                known = self.names(node.target, node.iter, *node.body, *node.orelse)
            else:
                known = Names(node)
            self.known[id(node)] = known
        return known

    def reads(self, *nodes):
        return self._reached(self.names(*nodes).reads)

    def _reached(self, reads):
        """The names, and those that the nested functions among them read."""
        pending = [name for name in reads if name in self.captured]
        while pending:
            new = self.captured[pending.pop()] - reads
            reads |= new
            pending += [name for name in new if name in self.captured]
        return frozenset(reads)

    def block(self, statements, live):
        for statement in reversed(statements):
            live = self.rules.get(type(statement), _Liveness.simple)(self, statement, live) | self.handlers
        return live

    def simple(self, statement, live):
        names = self._names_of(statement)
        reads = self._reached(set(names.reads))
        if isinstance(statement, (ast.Return, ast.Raise)):
            return reads | self.handlers
        return (live - names.binds) | reads

    def delete(self, statement, live):
        return live | self.reads(statement)

    def if_(self, statement, live):
        self._note(statement, live, statement.body + statement.orelse)
        return self.block(statement.body, live) | self.block(statement.orelse, live) | self.reads(statement.test)

    def while_(self, statement, live):
        stops = frozenset(statement.stops)
        head = live | self.reads(statement.test) | stops
        while (wider := head | self.block(statement.body, head)) != head:
            head = wider
        statement.live_inside = head
        self._note(statement, live, statement.body)
        return head

    def for_(self, statement, live):
        target = Names(statement.target)
        head = live | frozenset(statement.stops)
        while (wider := head | (self.block(statement.body, head) - target.binds) | target.reads) != head:
            head = wider
        statement.live_inside = head
        self._note(statement, live, [statement.target] + statement.body)
        return head | self.reads(statement.iter)

    def with_(self, statement, live):
        live = self.block(statement.body, live)
        for item in reversed(statement.items):
            binds = Names(item.optional_vars).binds if item.optional_vars else frozenset()
            live = (live - binds) | self.reads(item.context_expr) | (self.reads(item.optional_vars) if item.optional_vars else frozenset())
        return live

    def try_(self, statement, live):
        after = self.block(statement.finalbody, live)
        outer, self.handlers = self.handlers, self.handlers | self.block(statement.finalbody, frozenset())
        caught = frozenset()
        for handler in statement.handlers:
            binds = {handler.name} if handler.name else set()
            caught |= (self.block(handler.body, after) - binds) | (self.reads(handler.type) if handler.type else frozenset())
        live = self.block(statement.orelse, after)
        self.handlers |= caught
        live = self.block(statement.body, live) | caught
        self.handlers = outer
        return live

    def match(self, statement, live):
        entered = live
        for case in statement.cases:
            entered |= self.block(case.body, live) | self.reads(case.pattern) | (self.reads(case.guard) if case.guard else frozenset())
        return entered | self.reads(statement.subject)

    rules = {ast.If: if_, ast.While: while_, ast.For: for_, ast.With: with_, ast.Try: try_, ast.TryStar: try_, ast.Match: match, ast.Delete: delete}

    def _note(self, statement, live, nodes):
        names = self.names(*nodes)
        called = set().union(*(self.assigned[name] for name in names.reads if name in self.assigned))
        statement.binds, statement.live = names.binds | called, live | self.handlers
        statement.attributes, statement.changed, statement.grown = names.attributes, names.changed, names.grown

