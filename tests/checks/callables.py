#!/usr/bin/env python3
"""The catalogue of calls has every public function of the headers with its signature, and docs/ops.md is made from it.

usage: callables.py TIDEMARK_COMMAND ROOT
"""
import json
import os
import re
import subprocess
import sys

HEADERS = ("tidemark/calls/ops.h", "tidemark/calls/scans.h", "tidemark/calls/ordered.h", "tidemark/calls/scatter.h", "tidemark/calls/windows.h",
           "tidemark/calls/linalg.h", "tidemark/calls/complex.h", "tidemark/calls/fourier.h", "tidemark/calls/create.h", "tidemark/calls/random.h",
           "tidemark/calls/distributions.h",
           "tidemark/grad/pooling.h", "tidemark/calls/effect.h")
CONTROL_FLOW = "tidemark/trace/control_flow.h"
OBJECTS = ("tidemark/ops/pointwise.h", "tidemark/ops/reduce.h", "tidemark/ops/special.h")
KINDS = {"Operand": "tensor", "Tensor": "tensor", "TensorList": "tensors", "NestedList": "numbers", "int64_t": "int",
         "uint64_t": "int", "Dim": "size", "Chunk": "int|automatic", "Shape": "shape", "Axes": "axes", "DType": "dtype", "double": "float",
         "bool": "bool", "std::string_view": "text", "std::vector<int64_t>": "ints", "std::array<int64_t, 2>": "ints", "std::array<int64_t, 3>": "ints", "WindowPadding": "valid|same|pairs",
         "std::initializer_list<int64_t>": "ints", "Padding2": "pairs", "Keep": "bool", "Key": "key",
         "random::Key": "key", "std::function<void(std::span<std::byte>)>": "callback"}
RESULTS = {"Tensor": "tensor", "std::vector<Tensor>": "tensors", "void": ""}


def split(text, mark=","):
    """Parts between marks that are inside no brackets."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "<({[") - (letter in ">)}]")
        if letter == mark and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [each.strip() for each in parts + [part] if each.strip()]


def plain(text):
    """A header without comments, detail, templates and classes, on one line."""
    text = re.sub(r"//[^\n]*|#[^\n]*", "", text)
    text = re.sub(r"\binline (?=Tensor|TopK)", "", re.sub(r"\s+", " ", text))
    text = re.sub(r"namespace detail \{.*?\} (?=inline|// |Tensor|template|struct|$)", "", text)
    text = re.sub(r"(?<!enum )class \w+ \{.*?\};", "", text)
    return re.sub(r"template <.*?\} ?(?=template|Tensor|struct|//|$)", "", text)


class Header:
    def __init__(self, text):
        self.text = plain(text)
        self.words = {name: [each.strip() for each in body.split(",")]
                      for name, body in re.findall(r"enum class (\w+) \{([^}]*)\}", self.text)}
        self.structs = dict(re.findall(r"struct (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", self.text))

    def kind(self, kind):
        kind = re.sub(r"^const |&$", "", kind).strip()
        optional = re.fullmatch(r"std::optional<(.*)>", kind)
        kind = optional[1] if optional else kind
        return "|".join(self.words[kind]) if kind in self.words else KINDS.get(kind)

    @staticmethod
    def default(text, kind):
        if text is None:
            return None
        text = re.sub(r"^(DType|Indexing|Interpolation|MatrixNorm|Norm|Padding|ImageLayout|Resizing)::", "", text)
        if text in ("Keep::no", "{}"):
            return "false" if text == "Keep::no" else "none"
        return re.sub(r"^\{(.*)\}$", r"[\1]", text)

    def fields(self, options):
        for line in split(self.structs[options], ";"):
            names = split(line)
            kind, first = re.fullmatch(r"(.*?) (\w+(?: = .*)?)", names[0]).groups()
            for each in [first] + names[1:]:
                name, _, default = each.partition(" = ")
                yield {"name": name, "kind": self.kind(kind), "default": self.default(default, kind)}

    def arguments(self, text):
        for part in split(text):
            declared, _, default = part.partition(" = ")
            kind, name = declared.rsplit(" ", 1)
            options = re.sub(r"^const |&$", "", kind).strip()
            if options == "Source":
                continue
            if options in self.structs and options not in KINDS:
                yield from self.fields(options)
            else:
                yield {"name": name, "kind": self.kind(kind), "default": self.default(default or None, kind)}

    def results(self, kind):
        if kind in RESULTS:
            return RESULTS[kind]
        return ", ".join(f"{each['name']}: {each['kind']}" for each in self.fields(kind))

    def functions(self):
        """Each function as (position, name, arguments, results)."""
        spaces = [(m.start(), m[1]) for m in re.finditer(r"namespace (tidemark(?:::\w+)?) \{", self.text)]
        call = r"(?<![\w:(<] )\b(Tensor|TopK|Histogram|Unique|Nonzero|Slogdet|Lu|Qr|Eigh|Svd|void|std::vector<Tensor>) (operator\(\)|\w+)\(([^;{}]*(?:\{[^;{}]*\}[^;{}]*)*?)\)(?: const)?(?:;| \{)"
        for found in re.finditer(call, self.text):
            space = max((s for s in spaces if s[0] < found.start()), default=(0, "tidemark"))[1]
            kind, name, arguments = found.groups()
            names = [name]
            if name == "operator()":
                owner = [m for m in re.finditer(r"struct (\w+) \{", self.text) if m.start() < found.start()][-1][1]
                names = re.findall(rf"constexpr {owner} (\w+) =", self.text)
                names += re.findall(r"^\s*\} (\w+);", self.text[found.end():])
            prefix = space.removeprefix("tidemark").removeprefix("::")
            for each in names:
                yield (f"{prefix}::{each}" if prefix else each, list(self.arguments(arguments)), self.results(kind))


class ControlFlow(Header):
    """Templates: functions and structures of users are parameters of their types."""
    FUNCTIONS = ("Then", "Else", "First", "Condition", "Body", "F")

    def __init__(self, text):
        super().__init__("")
        text = re.sub(r"\s+", " ", re.sub(r"//[^\n]*|#[^\n]*", "", text))
        while (start := text.find("namespace detail {")) >= 0:
            depth, end = 0, text.index("{", start)
            while True:
                depth += (text[end] == "{") - (text[end] == "}")
                end += 1
                if depth == 0:
                    break
            text = text[:start] + text[end:]
        self.text = text
        self.structs = dict(re.findall(r"struct (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}", text))

    def kind(self, kind):
        bare = re.sub(r"^const |&+(\.\.\.)?$", "", kind).strip()
        known = {"Rest": "functions", "State": "structure", "Xs": "structure", "std::vector<Shape>": "shapes", "Save": "save"}
        return "function" if bare in self.FUNCTIONS else known.get(bare) or super().kind(kind)

    @staticmethod
    def default(text, kind):
        return "automatic" if text == "Save::automatic()" else Header.default(text, kind)

    def functions(self):
        for name, arguments in re.findall(r"\bauto (\w+)\(((?:[^;{}]|\{\})*)\) \{", self.text):
            yield name, list(self.arguments(arguments)), None


def text_of(name, arguments, results):
    def one(argument):
        default = argument.get("default")
        return f"{argument['name']}: {argument['kind']}" + (f" = {default}" if default else "")
    return f"{name}({', '.join(map(one, arguments))}) -> {results}"


def main(command, root):
    listed = [each for each in json.loads(subprocess.check_output([command, "ops", "--json"])) if "arguments" in each]
    calls = [text_of(each["name"], each["arguments"], each["results"]) for each in listed]
    text, wrong = "", []
    for path in HEADERS:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text += file.read()
    wanted = [text_of(*each) for each in Header(text).functions()]
    if len(wanted) < 60:
        wrong.append(f"only {len(wanted)} functions of the headers were understood")
    with open(os.path.join(root, CONTROL_FLOW), encoding="utf-8") as file:
        flow = [text_of(*each) for each in ControlFlow(file.read()).functions()]
    if len(flow) != 7:
        wrong.append(f"{len(flow)} functions of control flow were understood, not 7")
    objects = []
    for path in OBJECTS:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            objects += re.findall(r"inline constexpr (?:Unary|Binary|Ternary|Reduce|Row)Op (\w+) =", file.read())
    names = [each["name"] for each in listed]
    wrong += [f"not in the catalogue: {name}, an op object" for name in objects if name not in names]
    wrong += [f"not in the catalogue, or otherwise: {call}" for call in wanted if call not in calls]
    wrong += [f"not in the catalogue, or otherwise: {call}" for call in flow if not any(c.startswith(call.removesuffix("None")) for c in calls)]
    names_of_flow = [call.split("(")[0] for call in flow] + ["print"]  # Which takes whatever can be printed.
    functions = [call for call in calls[len(objects):] if call.split("(")[0] not in names_of_flow]
    wrong += [f"in the catalogue, but not so in a header: {call}" for call in functions if call not in wanted]
    # A function of several ops has a line where each allocation fails in turn.
    with open(os.path.join(root, "tests/faults/operations_test.cc"), encoding="utf-8") as file:
        faults = file.read()
    for each in listed[len(objects):]:
        if not re.search(rf"\b{each['name'].split('::')[-1]}\(", faults):
            wrong.append(f"{each['name']} is not in tests/faults/operations_test.cc")
    page = subprocess.check_output([command, "ops", "--markdown"], text=True)
    with open(os.path.join(root, "docs/ops.md"), encoding="utf-8") as file:
        if file.read() != page:
            wrong.append("docs/ops.md is another one: tidemark ops --markdown > docs/ops.md")
    print("\n".join(wrong) or f"{len(objects)} op objects and {len(wanted)} functions are as the headers have them")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
