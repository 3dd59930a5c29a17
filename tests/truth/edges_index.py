#!/usr/bin/env python3
"""Subscripts against NumPy: edges_index.py DRIVER

Every list of up to four numbers, slices, new axes, an ellipsis and index tensors or masks, of x[3, 2, 4]: the shape,
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
WIDE = [np.array([[0], [-1]], np.int64), np.array([[1, 0, 0]], np.uint16)]
MASKS = [np.array([True, False, True]), np.array([[True, False], [False, False], [True, True]]), np.array(True)]


def lists():
    """Texts of subscripts, in which each T is a tensor."""
    for length in range(1, 5):
        for items in itertools.product([*ITEMS, "T"], repeat=length):
            if items.count("T") <= 3 and items.count("...") <= 1 and items.count("new") <= 1:
                yield items


def tensors():
    """For a subscript with so many tensors, one choice after another."""
    alone = itertools.cycle([(one,) for one in TENSORS + MASKS])
    several = {count: itertools.cycle(itertools.product(TENSORS + WIDE + MASKS, repeat=count)) for count in (2, 3)}
    return {0: itertools.cycle([()]), 1: alone, **several}


def cases():
    """Each with tensors in turn, where NumPy takes it; with several tensors, ten turns."""
    turns = tensors()
    for items in lists():
        count = items.count("T")
        for _ in range(10 if count > 1 else 1):
            given = next(turns[count])
            left = iter(given)
            key = tuple(next(left) if item == "T" else ITEMS[item] for item in items)
            try:
                yield items, given, key, X[key]
            except IndexError:
                continue


def line(items, given):
    text = f"index orders=1 how={';'.join(items)} eager={int(any(one.dtype == bool for one in given))} | f64 [3,2,4] "
    text += " ".join(v.hex() for v in X.ravel())
    for tensor in given:
        kind = {"bool": "bool", "int32": "i32", "int64": "i64", "uint16": "u16"}[str(tensor.dtype)]
        text += f" | {kind} [{','.join(map(str, tensor.shape))}] " + " ".join(float(v).hex() for v in tensor.ravel())
    return text


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
    text = "\n".join(line(items, given) for items, given, _, _ in every) + "\n"
    answers = subprocess.run([driver], input=text, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(answers) == len(every), f"{len(every)} subscripts, {len(answers)} answers"
    wrong = 0
    for (items, given, key, want), answer in zip(every, answers):
        said = problem(key, want, answer)
        if said:
            wrong += 1
            print(f"x[{', '.join(items)}] with {[f'{one.dtype}{list(one.shape)}' for one in given]}: {said}")
    print(f"NumPy {np.__version__}: {len(every)} subscripts compared, {wrong} differ")
    return 1 if wrong or not every else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
