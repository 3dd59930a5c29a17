"""Runs the snippets of tensorflow_snippets with one module as `tf`, and writes what they give as plain data.

    python3 tensorflow_runner.py MODULE OUT.pickle [FILTER...]

A snippet is a function of a file of that folder whose name does not begin with "_". The file's globals
`tf` and `np` are set by this runner, so that one text is run by TensorFlow and by tidemark.tensorflow.
"""

import importlib
import os
import pathlib
import pickle
import sys
import tempfile
import traceback
import types

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent / "tensorflow_snippets"


def close(tolerance):
    """Marks a snippet whose values agree to this relative and absolute tolerance only."""

    def mark(f):
        f.tolerance = tolerance
        return f

    return mark


def load(path, tf):
    """The snippets of a file, by name."""
    module = types.ModuleType(path.stem)
    module.__file__ = str(path)
    module.__dict__.update(tf=tf, np=np, close=close)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return {
        f"{path.stem}.{name}": f
        for name, f in vars(module).items()
        if isinstance(f, types.FunctionType) and not name.startswith("_") and f.__module__ == path.stem
    }


def array(kind, x):
    x = np.asarray(x)
    name = str(x.dtype)
    if name == "bfloat16":
        x = x.astype(np.float32)
    return (kind, name, x)


def plain(x):
    """A result as nested tuples of words, numbers and arrays."""
    if x is None or isinstance(x, (bool, int, float, str)):
        return (type(x).__name__, x)
    if isinstance(x, (np.ndarray, np.generic)):
        return array("array", x)
    kind = type(x).__name__
    if kind == "IndexedSlices":
        return ("slices", plain(x.values), plain(x.indices))
    if kind == "TensorShape":
        return ("shape", None if x.rank is None else x.as_list())
    if kind == "DType":
        return ("dtype", x.name)
    if isinstance(x, dict):
        return ("dict", {key: plain(value) for key, value in sorted(x.items())})
    if isinstance(x, (list, tuple)):
        return ("sequence", [plain(each) for each in x])
    if hasattr(x, "numpy"):
        return array("tensor", x.numpy())
    raise TypeError(f"a snippet returned a {type(x)}")


def outcome(f):
    try:
        return ("value", plain(f()))
    except Exception as error:
        names = [c.__name__ for c in type(error).__mro__]
        return ("error", names, f"{error}", traceback.format_exc())


def run_all(tf, words):
    results = {}
    for path in sorted(FOLDER.glob("*.py")):
        for name, f in load(path, tf).items():
            if words and not any(word in name for word in words):
                continue
            if os.environ.get("SNIPPETS_TRACE"):
                print(name, file=sys.stderr, flush=True)
            results[name] = (outcome(f), getattr(f, "tolerance", 1e-5))
    return results


def main():
    name, out, *words = sys.argv[1:]
    out = os.path.abspath(out)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    tf = importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # Snippets write their files here.
        results = run_all(tf, words)
        os.chdir("/")
    with open(out, "wb") as file:
        pickle.dump(results, file)


if __name__ == "__main__":
    main()
