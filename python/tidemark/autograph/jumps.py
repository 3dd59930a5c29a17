"""Lowers `break`, `continue` and `return` to flags, since the blocks they leave become functions.

    for x in xs:                    ag__break_1 = False
        if x > 3:                   for x in xs:                  # until ag__break_1
            break           ->          if x > 3:
        total += x                          ag__break_1 = True
                                        else:
                                            total += x

The statements behind an `if` with a branch that always jumps move into its other branch; elsewhere they are guarded by the flags.
A loop that jumps end carries their names as `stops`.
"""
import ast

from .scope import FUNCTIONS, place

RESULT, DONE = "ag__result", "ag__done"


class Refused(Exception):
    """A statement that cannot be rewritten: its line, and what to write instead."""

    def __init__(self, problem, node, remedy):
        super().__init__(problem)
        self.problem, self.line, self.remedy = problem, node.lineno, remedy


def is_python(test):
    """Whether a condition can never be a tensor, whatever its names hold."""
    if isinstance(test, ast.Constant):
        return True
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_python(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(is_python(value) for value in test.values)
    if isinstance(test, ast.Compare):
        return all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
    return (isinstance(test, ast.Call) and isinstance(test.func, ast.Name)
            and test.func.id in ("isinstance", "issubclass", "callable", "hasattr"))


def lower(function):
    """Rewrites the statements of a FunctionDef in place."""
    lowering = _Lowering(_returns_in_blocks(function.body))
    if not lowering.returns:
        function.body = lowering.block(function.body, None)
    else:
        last = function.body[-1]
        if not _leaves(function.body):
            function.body.append(place(ast.Return(None), last))
        body = lowering.block(function.body, None)
        start = [_assign(RESULT, ast.Attribute(_load("ag__"), "UNSET", ast.Load()), function.body[0]),
                 _assign(DONE, ast.Constant(False), function.body[0])]
        function.body = start + body + [place(ast.Return(_load(RESULT)), last)]
    _drop_unread(function)


def _jumps(nodes, kinds):
    """The jumps of these kinds that leave the statements; loops inside keep their own break and continue."""
    for node in nodes:
        if isinstance(node, kinds):
            yield node
        elif isinstance(node, (ast.For, ast.While)):
            yield from _jumps(node.body, tuple(k for k in kinds if k is ast.Return))
            yield from _jumps(node.orelse, kinds)
        elif not isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            yield from _jumps(_statements_in(node), kinds)


def _statements_in(node):
    """What stands in the blocks of a statement, a handler or a case; an expression has none."""
    blocks = (getattr(node, field, None) for field in ("body", "orelse", "handlers", "finalbody", "cases"))
    return [part for block in blocks if isinstance(block, list) for part in block]


ALL = (ast.Return, ast.Break, ast.Continue)


def _returns_in_blocks(statements):
    """Whether a `return` stands in a block that becomes a function."""
    for statement in statements:
        inside = [] if isinstance(statement, FUNCTIONS + (ast.ClassDef,)) else list(ast.iter_child_nodes(statement))
        converted = isinstance(statement, (ast.For, ast.While)) or isinstance(statement, ast.If) and not is_python(statement.test)
        if any(_jumps(inside, (ast.Return,))) if converted else _returns_in_blocks(inside):
            return True
    return False


def _leaves(statements):
    """Whether control never reaches the end of the statements."""
    for statement in statements:
        if isinstance(statement, ALL + (ast.Raise,)):
            return True
        if isinstance(statement, ast.If) and _leaves(statement.body) and _leaves(statement.orelse):
            return True
    return False


class _Loop:
    def __init__(self, number):
        self.broken, self.skipped = f"ag__break_{number}", f"ag__continue_{number}"


class _Lowering:
    def __init__(self, returns):
        self.returns, self.loops = returns, 0

    def block(self, statements, loop):
        """The lowered statements; `loop` is the innermost loop around them."""
        lowered = []
        for index, statement in enumerate(statements):
            rest = statements[index + 1:]
            if isinstance(statement, ast.Return) and self.returns:
                value = statement.value or place(ast.Constant(None), statement)
                return lowered + [_assign(RESULT, value, statement), _assign(DONE, ast.Constant(True), statement)]
            if isinstance(statement, ast.Break):
                return lowered + [_assign(loop.broken, ast.Constant(True), statement)]
            if isinstance(statement, ast.Continue):
                return lowered + [_assign(loop.skipped, ast.Constant(True), statement)]
            flags = self._flags(statement, loop)
            if isinstance(statement, ast.If) and flags:
                rest = _moved_into_the_other_branch(statement, rest)
            lowered += self._statement(statement, loop)
            if flags and rest:
                return lowered + [self._guarded(flags, rest, loop)]
            if flags:
                return lowered
        return lowered

    def _flags(self, statement, loop):
        """The flags that are set if a jump inside the statement skips what follows it."""
        if isinstance(statement, FUNCTIONS + (ast.ClassDef,)):
            return []
        flags = {ast.Return: DONE if self.returns else None, ast.Break: loop and loop.broken, ast.Continue: loop and loop.skipped}
        return sorted({flags[type(jump)] for jump in _jumps([statement], ALL)} - {None})

    def _guarded(self, flags, statements, loop):
        tests = [_load(flag) for flag in flags]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), tests)
        guard = ast.If(ast.UnaryOp(ast.Not(), test), self.block(statements, loop), [])
        return place(guard, statements[0])

    def _statement(self, statement, loop):
        if isinstance(statement, (ast.For, ast.While)):
            return self._loop(statement, loop)
        if isinstance(statement, ast.Try) and any(_jumps(statement.finalbody, ALL)):
            jump = next(_jumps(statement.finalbody, ALL))
            if self.returns or not isinstance(jump, ast.Return):
                raise Refused("a jump out of `finally` cannot be traced", jump, "leave the loop or function behind the `try` statement")
        flags = self._flags(ast.Module(statement.body, []), loop) if isinstance(statement, ast.Try) else []
        if flags and statement.orelse:
            statement.orelse = [self._guarded(flags, statement.orelse, loop)]
        if not isinstance(statement, FUNCTIONS + (ast.ClassDef,)):
            self._parts(statement, loop)
        return [statement]

    def _parts(self, statement, loop):
        """Lowers the blocks of an if, with, try or match."""
        for part in getattr(statement, "handlers", []) + getattr(statement, "cases", []):
            self._parts(part, loop)
        for field in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(statement, field, None), list):
                block = self.block(block, loop)
                setattr(statement, field, block or ([place(ast.Pass(), statement)] if field == "body" else []))

    def _loop(self, statement, outer):
        self.loops += 1
        if isinstance(statement, ast.While) and any(isinstance(part, ast.NamedExpr) for part in ast.walk(statement.test)):
            _test_inside(statement)
        loop = _Loop(self.loops)
        stops = sorted({DONE if isinstance(jump, ast.Return) else loop.broken for jump in _jumps(statement.body, (ast.Return, ast.Break))})
        skips = any(_jumps(statement.body, (ast.Continue,)))
        statement.stops = [stop for stop in stops if stop != DONE or self.returns]
        otherwise, statement.orelse = statement.orelse, []
        body = self.block(statement.body, loop)
        statement.body = ([_assign(loop.skipped, ast.Constant(False), statement.body[0])] if skips else []) + body
        lowered = ([_assign(loop.broken, ast.Constant(False), statement)] if loop.broken in stops else []) + [statement]
        if otherwise and statement.stops:
            return lowered + [self._guarded(statement.stops, otherwise, outer)]
        return lowered + self.block(otherwise, outer)


def _test_inside(loop):
    """A condition that binds names becomes the first statement of the body, where names are carried from trip to trip."""
    if any(_jumps(loop.orelse, (ast.Break, ast.Continue))):
        raise Refused("the `else` of a loop whose condition binds a name leaves another loop", loop, "bind the name in the body")
    leave = ast.If(ast.UnaryOp(ast.Not(), loop.test), loop.orelse + [ast.Break()], [])
    loop.body, loop.orelse = [place(leave, loop.test)] + loop.body, []
    loop.test = place(ast.Constant(True), loop.test)


def _moved_into_the_other_branch(statement, rest):
    """Moves what follows an `if` behind the branch that reaches it, if only one does; returns what has not moved."""
    body, orelse = _leaves(statement.body), _leaves(statement.orelse)
    if body and orelse:
        return []
    if body:
        statement.orelse = statement.orelse + rest
    elif orelse:
        statement.body = statement.body + rest
    return [] if body or orelse else rest


class _DropUnread(ast.NodeTransformer):
    def __init__(self, read):
        self.read = read

    def visit_Assign(self, node):
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id.startswith("ag__") and target.id != RESULT and target.id not in self.read:
            return None
        return node

    def generic_visit(self, node):
        super().generic_visit(node)
        if hasattr(node, "body") and node.body == []:
            node.body = [place(ast.Pass(), node)]
        return node


def _sets_flags(node):
    return any(isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id.startswith("ag__") or _sets_flags(part)
               for part in _statements_in(node))


def _drop_unread(function):
    """Removes the flags that nothing reads."""
    if not _sets_flags(function):
        return
    nodes = list(ast.walk(function))
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    read |= {name for node in nodes for name in getattr(node, "stops", [])}
    _DropUnread(read).visit(function)


def _load(name):
    return ast.Name(name, ast.Load())


def _assign(name, value, at):
    return place(ast.Assign([ast.Name(name, ast.Store())], value), at)
