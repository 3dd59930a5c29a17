"""Python's control flow in traced functions: every program gives what it gives without being traced."""
import gc

import numpy as np
import pytest

import tidemark as td
from autograph_programs import PROGRAMS

NAMES = [f"{f.__name__}-{number}" for number, (f, _) in enumerate(PROGRAMS)]


def tensors(arguments):
    """Lists and numbers as tensors; bools and texts stay what they are."""
    return [value if isinstance(value, (bool, str)) else td.constant(value) for value in arguments]


def flat(result):
    return [np.asarray(leaf) for leaf in td.tree.leaves(result)]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_to_the_collector():
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    ours = {repr(each) for each in gc.garbage if "tidemark" in str(type(each)) + str(getattr(each, "__module__", ""))}
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()
    assert not ours


@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=NAMES)
def test_a_program_gives_what_it_gives_untraced(f, arguments):
    expected = flat(f(*tensors(arguments)))
    given = flat(td.function(f)(*tensors(arguments)))
    assert len(given) == len(expected)
    for one, other in zip(given, expected):
        np.testing.assert_allclose(one, other, rtol=1e-6)
