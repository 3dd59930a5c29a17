"""Writes type stubs of the extension beside it, as the folder `_core`: make_stubs.py PATH/_core.*.so

Functions of the catalogue get their types from its kinds; what nanobind binds has signatures of its own.
"""
import builtins
import enum
import importlib.machinery
import importlib.util
import os
import re
import sys
import types

KINDS = {"tensor": "Value", "tensors": "Sequence[Value] | Tensor", "numbers": "Any", "int": "int", "ints": "int | Sequence[int]",
         "contracted": "int | Sequence[int | Sequence[int]]", "pairs": "Sequence[Sequence[Size]]", "size": "Size", "shape": "Size | Sequence[Size]", "axes": "int | Sequence[int] | None",
         "dtype": "DType | str | type | Any", "float": "float", "bool": "bool_", "text": "str", "key": "Any", "callback": "Callable[[memoryview], Any]"}
RESULTS = {"tensor": "Tensor", "tensors": "list[Tensor]", "": "None", "values: tensor, indices: tensor": "tuple[Tensor, Tensor]"}
SLOTS = {"__len__": "(self) -> int", "__bool__": "(self) -> bool_", "__int__": "(self) -> int", "__float__": "(self) -> float",
         "__index__": "(self) -> int", "__iter__": "(self) -> Iterator[Tensor]", "__contains__": "(self, value: Value, /) -> bool_",
         "__getitem__": "(self, key: Any, /) -> Tensor", "__divmod__": "(self, other: Value, /) -> tuple[Tensor, Tensor]",
         "__rdivmod__": "(self, other: Value, /) -> tuple[Tensor, Tensor]", "__neg__": "(self) -> Tensor", "__pos__": "(self) -> Tensor",
         "__abs__": "(self) -> Tensor", "__invert__": "(self) -> Tensor", "__hash__": "(self) -> int", "__repr__": "(self) -> str",
         "__str__": "(self) -> str", "__call__": "(self, *args: Any, **kwargs: Any) -> Any", "__get__": "(self, instance: Any, owner: Any = None, /) -> Any"}
SKIPPED = {"__new__", "__init__", "__module__", "__doc__", "__setitem__", "__delitem__", "__setattr__", "__delattr__", "__dict__", "__weakref__", "__getattribute__",
           "__hash__", "__qualname__", "__name__"}
HEAD = '''"""Made by make_stubs.py from the extension; not to be edited."""
import os
from builtins import bool as bool_
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

'''


class Stubs:
    def __init__(self, core):
        self.core = core
        functions, self.methods = core._signatures()
        self.functions = {name: (parameters, results) for name, parameters, results in functions}
        self.homes = {"Size": core.__name__, "Value": core.__name__}  # Of classes: the module that has them.
        self.find_homes(core)

    def find_homes(self, module):
        for name, value in vars(module).items():
            if isinstance(value, types.ModuleType):
                self.find_homes(value)
            elif isinstance(value, type):
                self.homes[name] = module.__name__

    def parameters(self, function, skip=0):
        listed = self.functions[function][0][skip:]
        if skip and [kind for _, kind, _ in listed] in (["shape"], ["ints"]):  # x.reshape(2, 3)
            return f"*{listed[0][0]}: Any"
        parts = []
        for name, kind, default in listed:
            if kind == "operands":
                parts.append(f"*{name}: Value | Sequence[Value]")
                continue
            words = "|" in kind and "str"
            hint = words or KINDS.get(kind, "Any")
            if default == "None" and not hint.endswith("None"):
                hint += " | None"
            parts.append(f"{name}: {hint}" + (f" = {default}" if default is not None else ""))
        return ", ".join(parts)

    def of_catalogue(self, name, function, indent, is_method):
        own = "self" + (", " if self.parameters(function, 1) else "") if is_method else ""
        result = RESULTS.get(self.functions[function][1], "Any")
        return [f"{indent}def {name}({own}{self.parameters(function, int(is_method))}) -> {result}: ..."]

    def of_nanobind(self, name, function, indent):
        lines = []
        signatures = function.__nb_signature__
        for text, document, defaults in signatures:
            if len(signatures) > 1:
                lines.append(f"{indent}@overload")
            for i, default in reversed(list(enumerate(defaults or ()))):  # The tenth before the first.
                plain = default is None or isinstance(default, (bool, int, float, str))
                text = text.replace(f"\\{i}", repr(default) if plain else "...")
            text = re.sub(r"^def \w*", f"def {name}", self.clean(text))
            # An equality of one's own kind is what the class has.
            lines.append(f"{indent}{text}: ..." + ("  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""))
        return lines

    @staticmethod
    def clean(text):
        text = re.sub(r"\btidemark\.(?:[a-z_]+\.)*", "", text).replace("collections.abc.", "")
        text = re.sub(r"\bNoneType\b", "None", text)
        text = re.sub(r"\bobject\b(?!:)", "Any", text)
        return re.sub(r"(?<=[:>|\[] )bool\b|\bbool(?=\])", "bool_", text)

    def of_class(self, name, cls):
        bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object and base.__name__ in dir(builtins)
                          or base.__module__ == "tidemark")
        lines = [f"class {name}({bases}):" if bases else f"class {name}:"]
        if isinstance(cls.__doc__, str):
            lines.append(f"    {cls.__doc__.strip()!r}")
        for member, value in list(vars(cls).items()):
            lines += self.of_member(cls, member, value)
        return lines + ["    ..."]

    def of_member(self, cls, name, value):
        kind = type(value).__name__
        indent = "    "
        if name == "__init__" and kind.startswith("nb_"):
            return self.of_nanobind(name, value, indent)
        if name in SKIPPED or name.startswith("_") and not name.startswith("__"):
            return []
        if kind == "method_descriptor" and name in self.methods and cls.__name__ == "Tensor":
            return self.of_catalogue(name, self.methods[name], indent, True)
        if kind == "nb_func":
            return [indent + "@staticmethod"] + self.of_nanobind(name, value, indent)
        if kind == "nb_method":
            return self.of_nanobind(name, value, indent)
        if kind == "property":
            getter = getattr(value.fget, "__nb_signature__", None)
            found = re.search(r"-> (.*)$", getter[0][0]) if getter else None
            return [f"{indent}@property", f"{indent}def {name}(self) -> {self.clean('-> ' + found[1])[3:] if found else 'Any'}: ..."]
        if kind == "wrapper_descriptor":
            other = "object" if name in ("__eq__", "__ne__") else "Any"
            hint = SLOTS.get(name, f"(self, other: {other}, /) -> Any" if cls.__name__ != "Tensor" else f"(self, other: {other}, /) -> Tensor")
            return [f"{indent}def {name}{hint}: ..." + ("  # type: ignore[override]" if other == "object" else "")]
        return []

    def of_value(self, name, value, module):
        kind = type(value).__name__
        if kind == "builtin_function_or_method":
            home = module.rsplit(".", 1)[-1]
            prefix = home + "::" if home in ("fft", "linalg", "random") else ""
            if prefix + name in self.functions:
                return self.of_catalogue(name, prefix + name, "", False)
            return [f"def {name}(*args: Any, **kwargs: Any) -> Any: ..."]
        if kind == "nb_func":
            return self.of_nanobind(name, value, "")
        if isinstance(value, enum.EnumMeta):
            return [f"class {name}:"] + [f"    {each.name}: {name}" for each in value]
        if isinstance(value, type):
            return self.of_class(name, value)
        if isinstance(value, types.ModuleType):
            return [f"from . import {name} as {name}"]
        return [f"{name}: {type(value).__name__}"]

    def module(self, module):
        lines = ["Size = int | Any\nValue = Tensor | float | Any\n"] if module is self.core else []
        for name in sorted(n for n, v in vars(module).items() if not n.startswith("_") or isinstance(v, type)):
            lines += self.of_value(name, vars(module)[name], module.__name__)
        text = "\n".join(lines) + "\n"
        elsewhere = [f"from {home} import {name}\n" for name, home in sorted(self.homes.items())
                     if home != module.__name__ and re.search(rf"\b{name}\b", text)]
        return HEAD + "".join(elsewhere) + text


def write(stubs, module, path):
    """A module with others in it is a folder."""
    inner = {name: each for name, each in vars(module).items() if isinstance(each, types.ModuleType)}
    file = os.path.join(path, "__init__.pyi") if inner else path + ".pyi"
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "w", encoding="utf-8") as out:
        out.write(stubs.module(module))
    for name, each in inner.items():
        write(stubs, each, os.path.join(path, name))


def main(path):
    spec = importlib.util.spec_from_loader("tidemark._core", importlib.machinery.ExtensionFileLoader("tidemark._core", path))
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    write(Stubs(core), core, os.path.join(os.path.dirname(path), "_core"))


if __name__ == "__main__":
    main(*sys.argv[1:])
