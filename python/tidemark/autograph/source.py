"""From a function to its syntax tree, with the lines and columns of the user's own file."""
import ast
import inspect
import linecache


def tree_of(function):
    """The FunctionDef or Lambda that `function` was made from, or None where its source is not to be had."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not 0 < code.co_firstlineno <= len(lines):
        return None
    try:
        if code.co_name == "<lambda>":  # It may begin in the middle of a statement, so the whole file is parsed.
            return _lambda(ast.parse("".join(lines)), code)
        return _definition(_block(lines, code.co_firstlineno), code)
    except (SyntaxError, EOFError, inspect.EndOfBlock):
        return None


def _block(lines, first):
    """The block that begins at line number `first`. An indented one stands in an `if` of one line, which keeps its columns."""
    block = inspect.getblock(lines[first - 1:])
    indented = block[0][:1].isspace()
    if indented and first == 1:
        return ast.increment_lineno(ast.parse("if 1:\n" + "".join(block)), -1)
    return ast.parse("\n" * (first - 1 - indented) + ("if 1:\n" if indented else "") + "".join(block))


def _definition(tree, code):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.decorator_list[0] if node.decorator_list else node
            if (first.lineno, node.name) == (code.co_firstlineno, code.co_name) and _takes_the_same(node.args, code):
                return node
    return None


def _lambda(tree, code):
    """Several lambdas may share a line: the columns of the instructions tell which one it is."""
    spans = [(begin, column, end, end_column) for begin, end, column, end_column in code.co_positions()
             if None not in (begin, end, column, end_column) and (begin, column) != (end, end_column)]
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
             and _takes_the_same(node.args, code) and all(_holds(node.body, span) for span in spans)]
    # Of a lambda inside a lambda, both hold the instructions of the inner one.
    return max(found, key=lambda node: node.col_offset) if found and spans else None


def _holds(node, span):
    return (node.lineno, node.col_offset) <= span[:2] and span[2:] <= (node.end_lineno, node.end_col_offset)


def _takes_the_same(arguments, code):
    named = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    named += [a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return tuple(named) == code.co_varnames[:len(named)] and len(named) == _parameter_count(code)


def _parameter_count(code):
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + flags
