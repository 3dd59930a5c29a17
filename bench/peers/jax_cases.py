"""The cases in JAX's words: compiled, and waited for."""

import jax
import jax.numpy as jnp
from jax import lax

from inputs import values

MODES = ("jit",)


class Compiled:
    """A compiled function and its arguments; a call ends when its result is there."""

    def __init__(self, function, *arguments):
        self.function = jax.jit(function)
        self.arguments = [jax.block_until_ready(jnp.asarray(each)) for each in arguments]

    def __call__(self):
        return jax.block_until_ready(self.function(*self.arguments))


def planned_bytes(call):
    if not isinstance(call, Compiled):
        return None
    said = call.function.lower(*call.arguments).compile().memory_analysis()
    return said.temp_size_in_bytes + said.output_size_in_bytes if said else None


def chain_of(*shape):
    return lambda mode: Compiled(lambda x: x * x * 2.0 + 1.0, values(*shape, scale=4))


def map_of(elements, repeats):
    body = lambda e: jnp.sum(jnp.repeat(e, repeats))
    return lambda mode: Compiled(lambda x: lax.map(body, x), jnp.arange(float(elements)))


def map_sin(mode):
    body = lambda e: jnp.sum(jnp.sin(jnp.repeat(e, 1_000_000) * jnp.arange(1_000_000, dtype=jnp.float32)))
    return Compiled(lambda x: lax.map(body, x), values(100, scale=2))


def matpow(mode):
    return Compiled(lambda a: lax.fori_loop(0, 100, lambda i, r: r @ a, a), values(100, 100, scale=0.34641))


def accumulate(mode):
    return Compiled(lambda x: lax.map(lambda i: x + i, jnp.arange(10000.0)), jnp.array([1.0, 2.0]))


def acc_calls(mode):
    return Compiled(lambda x: lax.fori_loop(0, 100, lambda i, s: s + x, 0.0), jnp.float32(1.0))


def dense_fwd(mode):
    w1, w2 = jnp.asarray(values(784, 64, scale=2, salt=1)), jnp.asarray(values(64, 128, scale=2, salt=2))
    return Compiled(lambda x: jax.nn.relu(jax.nn.relu(x @ w1) @ w2), values(1024, 784, scale=2))


def eager_ops(mode):
    x = jnp.asarray(values(16, scale=2))

    def adds():
        y = x
        for _ in range(1000):
            y = y + x
        return jax.block_until_ready(y)

    return adds


CASES = {
    "chain": chain_of(1000, 1000),
    "chain_big": chain_of(8192, 8192),
    "map_small": map_of(1000, 10_000),
    "map_big": map_of(100, 1_000_000),
    "map_sin": map_sin,
    "matpow": matpow,
    "accumulate": accumulate,
    "acc_calls": acc_calls,
    "dense_fwd": dense_fwd,
    "eager_ops": eager_ops,
}
