"""Random programs of nested control flow: on Python values they give what they give unconverted, traced on tensors what they give on eager tensors."""
import linecache
import os

import numpy as np
import pytest

import tidemark as td
from random_control_flow import Program

COUNT = int(os.environ.get("TIDEMARK_RANDOM_PROGRAMS", "40"))
CALLS = [(0, 0, 0), (1, 2, 3), (5, -3, 2), (9, 9, 1)]


def function_of(text, name, **names):
    """A function whose source is to be had, as that of a file is."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), names)
    return names["f"]


def outcome(f, arguments):
    try:
        return f(*arguments)
    except Exception as error:
        return type(error), str(error)


def test_python_values_give_what_they_give_unconverted():
    for seed in range(10 * COUNT):
        text = Program(seed, python=True).text()
        f = function_of(text, f"<python {seed}>")
        converted = td.autograph.convert(f)
        for arguments in CALLS:
            assert outcome(converted, arguments) == outcome(f, arguments), f"seed {seed}, {arguments}\n{text}"


@pytest.mark.parametrize("start", range(0, COUNT, 20))
def test_tensors_give_what_they_give_eagerly(start):
    rows = td.constant([3, 1, 2])
    for seed in range(start, start + 20):
        text = Program(seed, python=False).text()
        f = function_of(text, f"<tensors {seed}>", RANGE=td.range, ROWS=rows, ZERO=td.constant(0))
        traced = td.function(f)
        for arguments in CALLS:
            tensors = [td.constant(value) for value in arguments]
            expected = [int(np.asarray(value)) for value in f(*tensors)]
            try:
                given = [int(np.asarray(value)) for value in traced(*tensors)]
            except Exception as error:
                raise AssertionError(f"seed {seed}, {arguments}\n{text}") from error
            assert given == expected, f"seed {seed}, {arguments}\n{text}"
