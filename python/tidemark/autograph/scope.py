"""Which names a piece of a function reads, binds and changes in place."""
import ast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

# Methods that change a list, dict or set in place.
MUTATORS = {"append", "extend", "insert", "pop", "clear", "remove", "update", "setdefault", "add", "discard", "popitem"}


class Names(ast.NodeVisitor):
    """Collects from the nodes visited, which belong to one function's scope:

    reads: names whose value is used, also by nested functions; binds: names assigned, deleted or imported;
    attributes: {"self.x": (base, "x")} for attributes assigned; changed: {"outs": node} for containers changed in place; grown: the texts of
    those that are appended to.
    """

    def __init__(self, *nodes):
        self.reads, self.binds, self.attributes, self.changed, self.grown = set(), set(), {}, {}, set()
        self.declared_global, self.declared_nonlocal = set(), set()
        for node in nodes:
            self.visit(node)

    def add(self, other):
        for name in ("reads", "binds", "attributes", "changed", "grown", "declared_global", "declared_nonlocal"):
            getattr(self, name).update(getattr(other, name))

    def visit(self, node):
        """Python's own, without its work for each node: the method of a class is looked up once."""
        kind = type(node)
        rule = self.rules.get(kind)
        if rule is None:
            rule = self.rules[kind] = getattr(Names, "visit_" + kind.__name__, Names.generic_visit)
        rule(self, node)

    def generic_visit(self, node):
        for part in _parts(node):
            self.visit(part)

    rules = {}

    def visit_Constant(self, node):
        pass

    def visit_Name(self, node):
        (self.reads if isinstance(node.ctx, ast.Load) else self.binds).add(node.id)

    def visit_Attribute(self, node):
        if not isinstance(node.ctx, ast.Load) and is_place(node.value):
            self.attributes[ast.unparse(node)] = (node.value, node.attr)
        self.visit(node.value)

    def visit_Subscript(self, node):
        if not isinstance(node.ctx, ast.Load) and is_place(node.value):
            self.changed[ast.unparse(node.value)] = node.value
        self.generic_visit(node)

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in MUTATORS and is_place(function.value):
            self.changed[ast.unparse(function.value)] = function.value
            if function.attr == "append":
                self.grown.add(ast.unparse(function.value))
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)
        elif isinstance(node.target, ast.Attribute):
            self.visit(node.target.value)
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        self.binds.add(node.name)
        for outside in node.decorator_list + node.args.defaults + [d for d in node.args.kw_defaults if d]:
            self.visit(outside)
        self.reads |= free_names(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        for outside in node.args.defaults + [d for d in node.args.kw_defaults if d]:
            self.visit(outside)
        self.reads |= free_names(node)

    def visit_ClassDef(self, node):
        self.binds.add(node.name)
        inner = Names(*node.bases, *node.keywords, *node.decorator_list, *node.body)
        self.reads |= inner.reads

    def _comprehension(self, node):
        inner = Names()
        inner.generic_visit(node)
        targets = Names(*(generator.target for generator in node.generators)).binds
        self.reads |= inner.reads - targets
        self.reads |= Names(node.generators[0].iter).reads
        self.binds |= inner.binds - targets  # By `:=`.
        self.grown |= inner.grown
        self.changed.update((text, base) for text, base in inner.changed.items() if root(base) not in targets)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ExceptHandler(self, node):
        if node.name:
            self.binds.add(node.name)
        self.generic_visit(node)

    def visit_alias(self, node):
        self.binds.add((node.asname or node.name).split(".")[0])

    def visit_MatchAs(self, node):
        if node.name:
            self.binds.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node):
        if node.rest:
            self.binds.add(node.rest)
        self.generic_visit(node)

    def visit_Global(self, node):
        self.declared_global |= set(node.names)

    def visit_Nonlocal(self, node):
        self.declared_nonlocal |= set(node.names)


def is_place(node):
    """Whether the node names a place that can be read again without effect: `a`, `a.b`, `a.b['c']`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and is_place(node.value)
    return isinstance(node, ast.Name) or isinstance(node, ast.Attribute) and is_place(node.value)


def root(place):
    while not isinstance(place, ast.Name):
        place = place.value
    return place.id


def parameters(arguments):
    every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs + [arguments.vararg, arguments.kwarg]
    return {a.arg for a in every if a is not None}


def statements(function):
    return [function.body] if isinstance(function, ast.Lambda) else function.body


def local_names(function):
    names = Names(*statements(function))
    return (parameters(function.args) | names.binds) - names.declared_global - names.declared_nonlocal


def free_names(function):
    """Names that a nested function takes from around it, read or assigned through `nonlocal`."""
    names = Names(*statements(function))
    return (names.reads | names.declared_nonlocal) - local_names(function)


def assigned_outside(function):
    """Names of the enclosing function that a nested one assigns when it is called."""
    return Names(*statements(function)).declared_nonlocal


def is_generator(function):
    """Whether the function's own code yields or awaits."""
    pending = list(statements(function))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            return True
        if not isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            pending += _parts(node)
    return isinstance(function, ast.AsyncFunctionDef)


def place(node, at):
    """Gives the node, and the parts of it that are new, the place of `at`: its first line, where it has several. Parts of a node that has a place
    already have theirs."""
    pending = [node, *_parts(node)]
    while pending:
        part = pending.pop()
        if "lineno" in part._attributes:
            if hasattr(part, "lineno"):
                continue
            ast.copy_location(part, at)
            if part.end_lineno != part.lineno:
                part.end_lineno, part.end_col_offset = part.lineno, part.col_offset
            if "type_params" in part._fields and not hasattr(part, "type_params"):
                part.type_params = []  # Python 3.12 wants it.
        if part is not node:
            pending += _parts(part)
    return node


def _parts(node):
    """What stands directly in a node, without operators and the like, which hold nothing."""
    parts = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            if value._fields:
                parts.append(value)
        elif isinstance(value, list):
            parts += [each for each in value if isinstance(each, ast.AST)]
    return parts
