"""Which functions are rewritten, and how: once for each code object, whatever functions share it."""
import __future__

import ast
import functools
import inspect
import os
import sys
import types
import weakref

from .backend import refuse_at
from .jumps import Refused
from .rewrite import THUNK, Rewriter
from .scope import place
from .source import tree_of

# Modules whose functions run as they are: they know nothing of traces, or know them already.
LIBRARIES = {"tidemark", "numpy", "scipy", "pandas", "torch", "jax", "jaxlib", "tensorflow", "keras", "matplotlib", "pytest", "_pytest", "IPython",
             "ipykernel", "PIL", "sklearn", "tqdm"}
STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen ")  # A user's module may be called `test` or `code` too, but lies elsewhere.
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
FUTURES = functools.reduce(int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))

_cache = {}  # The id of a code object: a weak reference to it, and its rewritten code or None.


def converted(function):
    """The function with its control flow rewritten, or the function itself where there is nothing to rewrite."""
    if isinstance(function, types.MethodType):
        inner = converted(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        inner = converted(function.func)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if not isinstance(function, types.FunctionType):
        return _called(function)
    if is_left_alone(function):
        return function
    code = _code_of(function, refuses=False)
    return function if code is None else _made(function, code)


def convert(function):
    """The same for the function that a user asks to trace: what cannot be rewritten is an error."""
    inner = getattr(function, "__func__", function)
    if isinstance(inner, types.FunctionType) and not is_left_alone(inner):
        _code_of(inner, refuses=True)
    return converted(function)


def callee(function):
    """What a rewritten function calls instead of `function`."""
    try:
        replacement = replacements.get(function)
    except TypeError:  # It cannot be hashed.
        replacement = None
    return converted(function) if replacement is None else replacement


replacements = {}  # Functions that know tensors of the trace, for those of Python: builtins.py.


def is_left_alone(function):
    code = function.__code__
    if "ag__" in code.co_freevars or getattr(function, "__ag_left__", False):
        return True
    module = (function.__globals__.get("__name__") or "").partition(".")[0]  # Not __module__: functools.wraps copies that of another function.
    return module in LIBRARIES or module in sys.stdlib_module_names and code.co_filename.startswith(STANDARD)


def _called(callable_object):
    """An object with a __call__ written in Python, as a bound method."""
    method = getattr(type(callable_object), "__call__", None)
    if not isinstance(method, types.FunctionType) or isinstance(callable_object, type):
        return callable_object
    inner = converted(method)
    return callable_object if inner is method else types.MethodType(inner, callable_object)


def _code_of(function, refuses):
    code = function.__code__
    known = _cache.get(id(code))
    if known is not None and known[0]() is code:
        return known[1]
    try:
        made = _rewritten(function)
    except Refused as refused:
        if refuses:
            refuse_at(f"{function.__qualname__}: {refused.problem}", code.co_filename, refused.line, function.__name__,
                              refused.remedy + ", or pass autograph=False and use td.cond and td.while_loop")
        made = None
    key = id(code)
    _cache[key] = weakref.ref(code, lambda _, cache=_cache: cache.pop(key, None)), made
    return made


def _rewritten(function):
    """The rewritten code of a function; None if its source is not to be had."""
    tree = tree_of(function)
    if tree is None:
        return None
    if function.__code__.co_flags & GENERATORS:
        kind = "coroutine" if isinstance(tree, ast.AsyncFunctionDef) else "generator"
        raise Refused(f"a {kind} cannot be traced", tree, "return a list or a tuple of the results")
    rewriter = Rewriter(function.__code__.co_freevars, _class_around(function.__qualname__))
    if isinstance(tree, ast.Lambda):
        body = ast.Expr(rewriter.visit(tree))
    else:
        tree.decorator_list = []  # They were applied to the function, or will be to its result.
        tree.args.defaults = [ast.Constant(None) for _ in tree.args.defaults]  # The function has its own.
        tree.args.kw_defaults = [default and ast.Constant(None) for default in tree.args.kw_defaults]
        body = rewriter.function(tree)
    return _compiled(body, tree, function)


def _compiled(body, tree, function):
    """The function's code; None if nothing changed. It is compiled inside a function that has its free names, and a class, which spells `__x`
    and keeps the function's own name out of sight. Underscores before the name of a class do not count in that spelling."""
    code = function.__code__
    body = ast.ClassDef("_______" + (_class_around(function.__qualname__) or ""), [], [], [body], [])
    arguments = ast.arguments([], [ast.arg(name) for name in ("ag__", *code.co_freevars)], None, [], [], None, [])
    module = ast.Module([place(ast.FunctionDef("ag__around", arguments, [body], []), tree)], [])
    made = compile(module, code.co_filename, "exec", flags=code.co_flags & FUTURES, dont_inherit=True)
    for _ in range(3):  # The outer function, the class, the function itself.
        made = next(const for const in made.co_consts if isinstance(const, types.CodeType))
    return _named(made, code.co_name, code.co_qualname) if "ag__" in made.co_freevars else None


def _class_around(qualified):
    """The class in whose body a function's text stands: that of "f.<locals>.C.method.<locals>.g" is C."""
    names = qualified.split(".")[:-1]
    while names and names[-1] == "<locals>":
        names = names[:-2]
    return names[-1] if names else None


def _named(code, name, qualified):
    """Gives the code of blocks and delayed operands the name of the function they are part of."""
    consts = []
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            part = const.co_name.startswith("ag__") or const.co_varnames[:1] == (THUNK,)
            const = _named(const, name, qualified) if part else _named(const, const.co_name, const.co_qualname.replace("ag__around.<locals>.", ""))
        consts.append(const)
    return code.replace(co_name=name, co_qualname=qualified, co_consts=tuple(consts))


def _made(function, code):
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    cells["ag__"] = runtime_cell
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, tuple(cells[name] for name in code.co_freevars))
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__doc__, made.__qualname__, made.__module__ = function.__doc__, function.__qualname__, function.__module__
    return made


runtime_cell = types.CellType()  # Holds runtime.py, which imports this file.
