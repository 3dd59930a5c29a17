"""Nothing grows: bytes of tensors, objects and traces are the same after many calls and steps."""
import gc
import sys

import numpy as np

import tidemark as td


def blocks_after(f, calls):
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(calls):
        f()
    gc.collect()
    return sys.getallocatedblocks() - before


def test_calls_hold_nothing():
    f = td.function(lambda x, y: {"a": x + y, "b": [x, 1.0]})
    x = td.constant([1.0, 2.0])
    f(x, 1.0)
    assert blocks_after(lambda: f(x, 2.0), 2000) < 20
    assert blocks_after(lambda: x + 1, 2000) < 20


def test_a_training_loop_is_flat_to_the_byte():
    w = td.Variable(np.ones((8, 1), np.float32))

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = td.mean(td.square(td.matmul(x, w) - y))
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    rng = np.random.default_rng(0)
    x, y = td.constant(rng.normal(size=(32, 8)).astype(np.float32)), td.zeros((32, 1))
    first = float(step(x, y))
    marks = []
    gc.disable()
    try:
        for number in range(300):
            loss = step(x, y)
            marks.append(td.memory.current())
        del loss
    finally:
        gc.enable()
    assert len(set(marks[10:])) == 1, "the same bytes after each step, without the collector"
    assert float(step(x, y)) < first / 10
    assert step.cache_info().traces == 1
    peak = step.plan(x, y).peak
    td.memory.reset_peak()
    before = td.memory.current()
    step(x, y)
    assert td.memory.peak() - before <= peak
