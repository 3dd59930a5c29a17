"""The cases in JAX's words: compiled, and waited for."""

import jax
import jax.numpy as jnp
from jax import lax

from inputs import RATE, Gpt, conv_parameters, lstm_parameters, mlp_parameters, orthogonal, values

MODES = ("jit",)


class Compiled:
    """A compiled function and its arguments; a call ends when its result is there."""

    def __init__(self, function, *arguments):
        self.function = jax.jit(function)
        self.arguments = jax.block_until_ready(jax.tree.map(jnp.asarray, arguments))

    def __call__(self):
        return jax.block_until_ready(self.function(*self.arguments))


class Step(Compiled):
    """A step of SGD by the first argument, from where that is each time."""

    def __init__(self, loss, *arguments):
        def step(parameters, *inputs):
            value, gradients = jax.value_and_grad(loss)(parameters, *inputs)
            return [p - RATE * g for p, g in zip(parameters, gradients)], value

        super().__init__(step, *arguments)

    def checked(self):
        return [after - before for after, before in zip(self()[0], self.arguments[0])]


def planned(call):
    said = call.function.lower(*call.arguments).compile().memory_analysis() if isinstance(call, Compiled) else None
    return (said.temp_size_in_bytes + said.output_size_in_bytes, said.temp_size_in_bytes) if said else (None, None)


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


# ---- Gradients


def mlp_step(mode):
    def loss(p, x, y):
        h = x
        for i in range(0, 6, 2):
            h = jax.nn.relu(h @ p[i] + p[i + 1])
        return jnp.mean((h @ p[6] + p[7] - y) ** 2)

    return Step(loss, mlp_parameters(), values(1024, 784, scale=2, salt=10), values(1024, 10, scale=2, salt=11))


def softmax_ce(mode):
    labels = jnp.zeros((2048, 1), jnp.int32)
    loss = lambda x: -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels, 1))
    return Compiled(jax.grad(loss), values(2048, 32768, scale=4))


def one_after_another(block, x, parameters, each):
    """Blocks that have so many parameters each."""
    for i in range(0, len(parameters), each):
        x = block(x, *parameters[i : i + each])
    return x


def conv_loss(run=one_after_another):
    """Of weights and images; `run` runs the blocks."""

    def block(h, w):
        return jax.nn.relu(h + lax.conv_general_dilated(h, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def loss(ws, x):
        h = run(block, x, ws, 1)
        return jnp.mean(h * h)

    return loss


def conv_step(mode):
    return Compiled(jax.grad(conv_loss()), conv_parameters(), values(16, 56, 56, 64, scale=2))


def gpt_loss(of, run=one_after_another):
    """Of parameters and ids; `run` runs the layers."""
    norm = lambda x, g: x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * g
    heads = lambda u: u.reshape(of.batch, of.t, of.heads, of.d // of.heads).transpose(0, 2, 1, 3)

    def block(x, qkv, o, up, down, g1, g2):
        mask = jnp.tril(jnp.ones((of.t, of.t), bool))
        q, k, v = [heads(u) for u in jnp.split(norm(x, g1) @ qkv, 3, -1)]
        scores = jnp.where(mask, q @ k.swapaxes(-1, -2) / 8.0, -1e30)
        x = x + (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(of.batch, of.t, of.d) @ o
        return x + jax.nn.gelu(norm(x, g2) @ up) @ down

    def loss(p, ids):
        x = run(block, p[0][ids], p[1:], 6)
        seen = jax.nn.log_softmax(x @ p[0].T)[:, :-1]
        return -jnp.mean(jnp.take_along_axis(seen, ids[:, 1:, None], -1))

    return loss


def gpt_step(mode):
    of = Gpt()
    return Step(gpt_loss(of), of.parameters(), of.ids())


def lstm_grad(mode):
    def loss(weights, xs):
        w, u, b = weights

        def body(state, x):
            h, c = state
            forget, take, new, give = jnp.split(x @ w + h @ u + b, 4, -1)
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(take) * jnp.tanh(new)
            h = jax.nn.sigmoid(give) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((32, 128))
        return jnp.mean(lax.scan(body, (zero, zero), xs)[1] ** 2)

    def gradients(weights, xs):
        value, by_weight = jax.value_and_grad(loss)(weights, xs)
        return [*by_weight, value]

    return Compiled(gradients, lstm_parameters(), values(128, 32, 128, scale=2))


def loop_grad_of(trips):
    def case(mode):
        x = jnp.asarray(values(128, 128, scale=2))
        loss = lambda a: jnp.sum(lax.scan(lambda c, _: (jnp.tanh(c @ a), None), x, None, length=trips)[0])
        return Compiled(jax.grad(loss), orthogonal(128))

    return case


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
    "mlp_step": mlp_step,
    "softmax_ce": softmax_ce,
    "conv_step": conv_step,
    "gpt_step": gpt_step,
    "lstm_grad": lstm_grad,
    "loop_grad": loop_grad_of(1000),
    "loop_grad_long": loop_grad_of(10_000),
}
