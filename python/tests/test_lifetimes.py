"""Nothing is held: objects die with their last name, without the garbage collector, and no call keeps a byte."""
import gc
import sys

import numpy as np
import pytest

import tidemark as td

memory = getattr(td, "memory", None)
needs_memory = pytest.mark.skipif(memory is None, reason="td.memory is not there")


@pytest.fixture(autouse=True)
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def live_bytes():
    return int(memory.current())


@needs_memory
def test_del_frees_at_once():
    before = live_bytes()
    x = td.ones((1024, 1024))
    y = x[1:]
    z = x + 1
    assert live_bytes() == before + 8 * 1024 * 1024
    del x
    assert live_bytes() == before + 8 * 1024 * 1024  # y is a view of it.
    del y
    assert live_bytes() == before + 4 * 1024 * 1024
    del z
    assert live_bytes() == before


@needs_memory
def test_errors_hold_no_tensor_longer_than_their_traceback():
    before = live_bytes()
    try:
        td.reshape(td.ones((1024, 1024)), (3,))
    except td.UserError:
        pass
    assert live_bytes() == before


@needs_memory
def test_arrays_of_others_give_the_bytes_back():
    before = live_bytes()
    views = [np.asarray(td.ones(1000)), memoryview(td.ones(1000)), td.ones(1000).__dlpack__(), td.ones(1000).__dlpack__(max_version=(1, 0)),
             np.from_dlpack(td.ones(1000))]
    assert live_bytes() > before
    del views
    assert live_bytes() == before


@needs_memory
def test_a_custom_gradient_keeps_what_its_gradient_function_keeps_alone():
    @td.custom_gradient
    def twice(x):
        return x * 2, lambda dy: dy * 2

    scale = td.Variable(1.0)
    with td.GradientTape(persistent=True) as tape:
        x = td.ones((1024,)) * scale
        before = live_bytes()
        y = twice(x)
        assert live_bytes() == before + 4096
        del x
        assert live_bytes() == before  # Neither the product's rule nor the gradient function reads it.
    np.testing.assert_array_equal(tape.gradient(y, scale), 2048)


class Freed:
    """Allows no weak references, and says when it goes."""

    __slots__ = ("gone",)

    def __init__(self, gone):
        self.gone = gone

    def __del__(self):
        self.gone.append(True)


def test_an_object_that_was_part_of_a_structure_goes_with_its_last_name():
    gone = []
    held = Freed(gone)
    y = td.recompute(lambda x, held: x * 2)(td.ones(2), held)
    f = td.function(lambda x, held: x * 2)
    f(y, held)
    del held
    assert not gone  # f's trace is of this object, which it holds where it cannot refer to it weakly.
    del f
    assert gone


X = np.ones((4, 4), np.float32)
CALLS = {
    "operator": lambda x: x + 1, "function": lambda x: td.softmax(x, axis=0), "method": lambda x: x.sum(axis=1, keepdims=True),
    "subscript": lambda x: x[1:, None, ..., [0, 2]], "mask": lambda x: x[x > 0], "iteration": lambda x: list(x), "in": lambda x: 3 in x,
    "lists": lambda x: td.asarray([[1, 2], [3, 4]]), "array": lambda x: td.asarray(X) + X, "numpy": lambda x: np.asarray(x),
    "text": lambda x: repr(x) + str(x), "tolist": lambda x: x.tolist(), "pickle": lambda x: x.__reduce__(), "dlpack": lambda x: np.from_dlpack(x),
    "refused argument": lambda x: refused(lambda: td.softmax(x, axs=0)), "refused index": lambda x: refused(lambda: x[9]),
    "refused value": lambda x: refused(lambda: td.softmax(x, "a")), "compare": lambda x: x == "text", "at": lambda x: x.at[0].set(1),
    "format": lambda x: f"{x[0, 0]:.2f}", "split": lambda x: td.split(x, 2), "top_k": lambda x: td.top_k(x, 2), "shape": lambda x: x.shape,
    "draw": lambda x: td.random.normal((3,)), "matmul": lambda x: x @ x, "reflected": lambda x: X - x, "dtype": lambda x: x.astype("f64").dtype,
    "callback": lambda x: td.from_callback((4,), td.u8, lambda out: out.__setitem__(slice(None), b"abcd")),
}


def refused(call):
    try:  # pytest.raises makes a cycle of its own.
        call()
    except td.UserError:
        return
    raise AssertionError("it was not refused")


@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_no_reference_behind(name):
    call, x = CALLS[name], td.asarray(X)
    watched = [x, X, td.f32, td.Tensor, None, True, "a", "text"]
    for _ in range(20):
        call(x)
    before = [sys.getrefcount(each) for each in watched]
    blocks = sys.getallocatedblocks()
    for _ in range(1000):
        call(x)
    after = [sys.getrefcount(each) for each in watched]
    # A leak of one reference or one object in each call would be 1000; lists of free objects grow a little.
    assert [now - was for now, was in zip(after, before) if abs(now - was) >= 300] == []
    assert sys.getallocatedblocks() - blocks < 300


@needs_memory
@pytest.mark.parametrize("name", CALLS)
def test_calls_leave_no_byte_behind(name):
    call, x = CALLS[name], td.asarray(X)
    call(x)
    before = live_bytes()
    for _ in range(20):
        call(x)
    assert live_bytes() == before


def test_lines_are_remembered_in_a_table_that_does_not_grow():
    blocks = None
    for i in range(6000):  # More than the table has places.
        code = compile("td.ones(1)", f"generated_{i % 10}.py", "exec")
        exec(code, {"td": td})
        if i == 5000:
            blocks = sys.getallocatedblocks()
    assert sys.getallocatedblocks() - blocks < 500
