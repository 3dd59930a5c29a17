#!/usr/bin/env python3
"""Subscripts against NumPy: edges_index.py DRIVER

Every list of up to four numbers, slices, new axes, an ellipsis and one index tensor or mask, of x[3, 2, 4]: the shape,
the elements, and the gradient, which adds up the weights of the result where its elements came from. DRIVER is that of
edges.py, which makes each call eagerly and, where there is no mask, in a function.
"""

import itertools
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed", file=sys.stderr)
    sys.exit(77)

X = np.arange(24.).reshape(3, 2, 4)
ITEMS = {"1": 1, "-1": -1, ":": slice(None), "::-1": slice(None, None, -1), "1:": slice(1, None), "new": None, "...": Ellipsis}
TENSORS = [np.array([1, 0, -1], np.int32), np.array([[0, 1], [1, 1]], np.int32), np.array(1, np.int32), np.zeros((0,), np.int32)]
MASKS = [np.array([True, False, True]), np.array([[True, False], [False, False], [True, True]]), np.array(True)]


def lists():
    """Texts of subscripts, in which T is the tensor."""
    for length in range(1, 5):
        for items in itertools.product([*ITEMS, "T"], repeat=length):
            if items.count("T") <= 1 and items.count("...") <= 1 and items.count("new") <= 1:
                yield items


def cases():
    """Each with a tensor in turn, where NumPy takes it."""
    turn = itertools.cycle(TENSORS + MASKS)
    for items in lists():
        tensor = next(turn) if "T" in items else None
        key = tuple(tensor if item == "T" else ITEMS[item] for item in items)
        try:
            yield items, tensor, key, X[key]
        except IndexError:
            continue


def line(items, tensor):
    text = f"index orders=1 how={';'.join(items)} eager={int(tensor is not None and tensor.dtype == bool)} | f64 [3,2,4] "
    text += " ".join(v.hex() for v in X.ravel())
    if tensor is None:
        return text
    kind = "bool" if tensor.dtype == bool else "i32"
    return text + f" | {kind} [{','.join(map(str, tensor.shape))}] " + " ".join(float(v).hex() for v in tensor.ravel())


def array(part):
    _, _, shape, *words = part.split(" ")
    return np.array([float.fromhex(word) for word in words]).reshape([int(size) for size in shape[1:-1].split(",") if size])


def problem(key, want, answer):
    if answer.startswith(("error", "differs")):
        return answer
    value, gradient = (array(part) for part in answer.split(" | "))
    if value.shape != np.shape(want):
        return f"shape {list(value.shape)}, NumPy has {list(np.shape(want))}"
    if not np.array_equal(value, want):
        return "other elements than NumPy"
    weights = ((np.arange(value.size) % 3) * .25 + 1).reshape(value.shape)
    slopes = np.zeros_like(X)
    np.add.at(slopes, key, weights)
    return None if np.array_equal(gradient, slopes) else "another gradient than NumPy"


def main(driver):
    every = list(cases())
    text = "\n".join(line(items, tensor) for items, tensor, _, _ in every) + "\n"
    answers = subprocess.run([driver], input=text, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(answers) == len(every), f"{len(every)} subscripts, {len(answers)} answers"
    wrong = 0
    for (items, tensor, key, want), answer in zip(every, answers):
        said = problem(key, want, answer)
        if said:
            wrong += 1
            print(f"x[{', '.join(items)}]{'' if tensor is None else f', T {tensor.dtype}{list(tensor.shape)}'}: {said}")
    print(f"NumPy {np.__version__}: {len(every)} subscripts compared, {wrong} differ")
    return 1 if wrong or not every else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
