"""Compiled calls and traces from Python: python bench/python/functions.py [--steps N] [--calls N]

Prints one line for each case: Tidemark's, and JAX's where it is installed. Times are minima of
several runs of CPU time, interleaved.
"""
import argparse
import gc
import sys
import time

import numpy as np

import tidemark as td

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None


def cost(f, calls):
    begin = time.process_time()
    for _ in range(calls):
        f()
    return (time.process_time() - begin) / calls


def interleaved(candidates, calls, rounds=7):
    best = {name: float("inf") for name in candidates}
    for _ in range(rounds):
        for name, f in candidates.items():
            best[name] = min(best[name], cost(f, calls))
    return best


def one_op_call():
    x = td.constant(np.ones((4, 4), np.float32))
    ours = td.function(lambda x: x + 1)
    assert ours(x).tolist() == (np.ones((4, 4)) + 1).tolist()
    candidates = {"tidemark": lambda: ours(x)}
    if jax is not None:
        y, theirs = jnp.ones((4, 4)), jax.jit(lambda x: x + 1)
        theirs(y)
        candidates["jax"] = lambda: theirs(y)
    best = interleaved(candidates, 20000)
    print("compiled one-op call:", ", ".join(f"{name} {t * 1e6:.2f} us" for name, t in best.items()),
          f"; ratio {best['tidemark'] / best['jax']:.2f}" if "jax" in best else "")


def trace_of_ops(count=1000):
    def body(x):
        for _ in range(count // 2):
            x = td.tanh(x)
            x = x * 0.5
        return x

    x = td.ones((4,))
    best = float("inf")
    for _ in range(5):
        f = td.function(body, autograph=False)
        f.plan(x)
        best = min(best, f.cache_info().entries[0].trace_ms)
    print(f"tracing {count} Python ops: {best:.2f} ms")


def held_after(calls):
    f, x = td.function(lambda x: x + 1), td.ones((4, 4))
    f(x)
    gc.collect()
    before, tensors = sys.getallocatedblocks(), td.memory.current()
    for _ in range(calls):
        f(x)
    gc.collect()
    print(f"held after {calls} calls: {int(td.memory.current() - tensors)} bytes of tensors, "
          f"{sys.getallocatedblocks() - before} blocks of Python")


def training_loop(steps):
    w = td.Variable(np.ones((64, 1), np.float32))

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = td.mean(td.square(td.matmul(x, w) - y))
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    x, y = td.ones((128, 64)), td.zeros((128, 1))
    marks = set()
    for number in range(steps):
        loss = step(x, y)
        if number > 10:
            marks.add(int(td.memory.current()))
    assert np.isfinite(float(loss))
    print(f"training loop of {steps} steps: {'flat' if len(marks) == 1 else f'{len(marks)} sizes'}, "
          f"{max(marks)} bytes in use after each")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=1_000_000)
    options = parser.parse_args()
    one_op_call()
    trace_of_ops()
    held_after(options.calls)
    training_loop(options.steps)


if __name__ == "__main__":
    main()
