"""Rewrites the syntax tree of a function: control flow becomes calls of the runtime, `ag__`, which decides while the function runs
whether a condition is a tensor of the trace or a Python value.

    if x > 0:                def ag__body():
        y = x                    nonlocal y
    else:             ->         y = x
        y = -x               def ag__else(): ...
                             ag__.if_stmt(x > 0, ag__body, ag__else, ag__.Block(binds=('y',), ...))

Every new node has the place of the statement it comes from, so that lines in tracebacks and memory accounts are the user's.
"""
import ast
import copy

from .jumps import is_python, lower
from .liveness import annotate
from .scope import Names, is_generator, local_names, place, root

THUNK = "_ag__"  # The parameter of lambdas that delay an operand.


class Rewriter(ast.NodeTransformer):
    """`visible`: names of enclosing functions; the rest are globals."""

    def __init__(self, visible, cls=None):
        self.cls = cls
        self.visible = [set(visible)]
        self.declared_global = [set()]
        self.local = [set()]
        self.bound = [set()]  # Those of them that blocks of the current function bind.
        self.first = [None]  # The first parameter of the current function, for super().
        self.blocks = 0

    # ---- functions -----------------------------------------------------------------------------

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        return node if is_generator(node) else self.function(node)

    def visit_AsyncFunctionDef(self, node):
        return node

    def visit_Lambda(self, node):
        self._enter(node)
        node.body = self.visit(node.body)
        self._leave()
        return node

    def visit_ClassDef(self, node):
        """Expressions of a class body see its names, which lambdas would not: only methods are rewritten."""
        outer, self.cls = self.cls, node.name
        node.body = [self.visit(part) if isinstance(part, ast.FunctionDef) else part for part in node.body]
        self.cls = outer
        return node

    def function(self, node):
        """Rewrites the body of a FunctionDef."""
        lower(node)
        self._enter(node)
        node.body = [_Strip().visit(statement) for statement in node.body]
        annotate(node)
        node.body = self._statements(node.body)
        if self.bound[-1]:  # Never runs; makes the names local, so that blocks can bind them.
            targets = [ast.Name(name, ast.Store()) for name in sorted(self.bound[-1])]
            node.body.insert(_after_declarations(node.body), ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []))
        self._leave()
        return place(node, node)

    def _enter(self, node):
        self.local.append(local_names(node))
        self.visible.append(self.visible[-1] | self.local[-1])
        names = Names(*node.body) if not isinstance(node, ast.Lambda) else Names()
        self.declared_global.append(names.declared_global)
        self.bound.append(set())
        every = node.args.posonlyargs + node.args.args
        self.first.append(every[0].arg if every else None)

    def _leave(self):
        for stack in (self.visible, self.declared_global, self.local, self.bound, self.first):
            stack.pop()

    # ---- statements ----------------------------------------------------------------------------

    def _statements(self, statements):
        made = []
        for statement in statements:
            new = self.visit(statement)
            made += new if isinstance(new, list) else [new]
        return made

    def visit_If(self, node):
        if is_python(node.test):
            node.test = self.visit(node.test)
            node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
            return node
        kept = self._block(node, node.live)
        body = self._made_function(node, "body", node.body)
        orelse = self._made_function(node, "else", node.orelse) if node.orelse else None
        call = _call("if_stmt", self.visit(node.test), _load(body.name), _load(orelse.name) if orelse else ast.Constant(None), kept)
        return [place(part, node.test) for part in (body, orelse) if part] + [place(ast.Expr(call), node.test)]

    def visit_While(self, node):
        kept = self._block(node, node.live, node.live_inside)
        body = self._made_function(node, "body", node.body)
        call = _call("while_stmt", thunk(self._goes_on(node, node.test)), _load(body.name), kept)
        return [place(body, node.test), place(ast.Expr(call), node.test)]

    def visit_For(self, node):
        kept = self._block(node, node.live, node.live_inside)
        take = place(ast.Assign([node.target], _load("ag__item")), node.target)
        body = self._made_function(node, "body", [take] + node.body, ["ag__item"])
        goes_on = thunk(self._goes_on(node, ast.Constant(True))) if node.stops else ast.Constant(None)
        call = _call("for_stmt", self.visit(node.iter), goes_on, _load(body.name), kept)
        return [place(body, node.iter), place(ast.Expr(call), node.iter)]

    def visit_Assert(self, node):
        if not __debug__ or _binds(node):
            return self.generic_visit(node)
        message = thunk(self.visit(node.msg)) if node.msg else ast.Constant(None)
        text = ast.Constant(ast.unparse(node.test))
        return place(ast.Expr(_call("assert_stmt", self.visit(node.test), message, text)), node)

    def _goes_on(self, node, test):
        """The condition of a loop: no jump has left it, and its own."""
        flags = [place(_load(name), node) for name in node.stops]
        if not flags:
            return self.visit(test)
        test = [] if isinstance(test, ast.Constant) and test.value else [test]
        left = flags[0] if len(flags) == 1 else ast.BoolOp(ast.Or(), flags)
        remains = place(ast.UnaryOp(ast.Not(), left), node)
        return self.visit(place(ast.BoolOp(ast.And(), [remains] + test), node) if test else remains)

    def _made_function(self, node, name, statements, arguments=()):
        self.blocks += 1
        own = sorted(name for name in self._places(node) if name in self.visible[-1] and name not in self.declared_global[-1])
        shared = sorted(node.binds & self.declared_global[-1])
        head = ([ast.Nonlocal(own)] if own else []) + ([ast.Global(shared)] if shared else [])
        arguments = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
        return ast.FunctionDef(f"ag__{name}_{self.blocks}", arguments, head + self._statements(statements), [])

    def _places(self, node):
        """The names that a statement's blocks bind, or whose lists and dicts they change."""
        return node.binds | {base.id for base in node.changed.values() if isinstance(base, ast.Name)}

    def _block(self, node, live, live_inside=frozenset()):
        """The Block that tells the runtime which places the statement's blocks change."""
        self.bound[-1] |= node.binds & self.local[-1]
        attributes = [ast.Tuple([thunk(self.visit(copy.deepcopy(base))), ast.Constant(self._spelled(name)), ast.Constant(text)], ast.Load())
                      for text, (base, name) in sorted(node.attributes.items()) if root(base) not in node.binds]
        changed = [base.id for base in node.changed.values() if isinstance(base, ast.Name)]
        reached = [ast.Tuple([thunk(self.visit(copy.deepcopy(base.value))), ast.Constant(self._spelled(base.attr)), ast.Constant(text)], ast.Load())
                   for text, base in sorted(node.changed.items())
                   if isinstance(base, ast.Attribute) and root(base) not in node.binds and text not in node.attributes]
        names = [sorted(self._places(node)), sorted(live & node.binds), sorted(live_inside & node.binds), sorted(changed), sorted(node.grown)]
        parts = [ast.Tuple([ast.Constant(self._spelled(name)) for name in group], ast.Load()) for group in names]
        return _call("Block", *parts, ast.Tuple(attributes, ast.Load()), ast.Tuple(reached, ast.Load()), ast.Constant(node.lineno))

    def _spelled(self, name):
        """A name as the class around it spells it: `__x` in class C is `_C__x`."""
        private = self.cls and self.cls.strip("_") and name.startswith("__") and not name.endswith("__") and "." not in name
        return f"_{self.cls.lstrip('_')}{name}" if private else name

    # ---- expressions ---------------------------------------------------------------------------

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.first[-1]:
            node.args = [_load("__class__"), _load(self.first[-1])]
            return place(node, node)
        self.generic_visit(node)
        node.func = place(_call("callee", node.func), node.func)
        return node

    def visit_BoolOp(self, node):
        if _binds(*node.values[1:]):
            return self.generic_visit(node)
        cheap = all(_is_cheap(value) for value in node.values[1:])
        values = [self.visit(value) for value in node.values]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return place(_call(name, ast.Constant(cheap), values[0], *map(thunk, values[1:])), node)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return place(_call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node):
        if is_python(node.test) or _binds(node.body, node.orelse):
            return self.generic_visit(node)
        return place(_call("if_exp", self.visit(node.test), thunk(self.visit(node.body)), thunk(self.visit(node.orelse))), node)

    def visit_Compare(self, node):
        if len(node.ops) == 1 and not isinstance(node.ops[0], (ast.In, ast.NotIn)) or _binds(*node.comparators[1:]):
            return self.generic_visit(node)
        operands = [self.visit(operand) for operand in [node.left] + node.comparators]
        names = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        return place(_call("compare", names, *operands[:2], *map(thunk, operands[2:])), node)


def _is_cheap(node):
    """Whether computing the operand can neither fail nor have an effect: then `and` and `or` of tensors need no branch."""
    allowed = (ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Attribute,
               ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    return all(isinstance(part, allowed) for part in ast.walk(node))


def _binds(*nodes):
    """Whether the expressions bind names by `:=`, which a lambda would keep to itself."""
    return any(isinstance(part, ast.NamedExpr) for node in nodes for part in ast.walk(node))


class _Strip(ast.NodeTransformer):
    """`x: int = 1` as `x = 1`: a name that a block binds can have no annotation, and Python does not keep those of locals."""

    def visit_AnnAssign(self, node):
        if not node.simple:
            return node
        target = node.target if node.value else ast.Name(node.target.id, ast.Store())
        if node.value:
            return ast.copy_location(ast.Assign([target], node.value), node)
        return place(ast.If(ast.Constant(False), [ast.Assign([target], ast.Constant(None))], []), node)

    def visit_FunctionDef(self, node):
        return node

    visit_ClassDef = visit_Lambda = visit_AsyncFunctionDef = visit_FunctionDef


def _after_declarations(statements):
    count = 0
    for statement in statements:
        if not isinstance(statement, (ast.Global, ast.Nonlocal)) and not (count == 0 and _is_text(statement)):
            break
        count += 1
    return count


def _is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _load(name):
    return ast.Name(name, ast.Load())


def _call(name, *arguments):
    return ast.Call(ast.Attribute(_load("ag__"), name, ast.Load()), list(arguments), [])


def thunk(expression):
    """A lambda that computes the expression when the runtime asks for it."""
    arguments = ast.arguments([], [ast.arg(THUNK)], None, [], [], None, [])
    return place(ast.Lambda(arguments, expression), expression)
