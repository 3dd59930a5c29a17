"""The cases in TensorFlow's words: eager, as tf.function, and through XLA. Calls on the CPU end when the
result is there."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

from inputs import values

MODES = ("eager", "function", "xla")


def called(mode, function, *arguments):
    wrap = {"eager": lambda f: f, "function": tf.function, "xla": lambda f: tf.function(f, jit_compile=True)}[mode]
    wrapped, tensors = wrap(function), [tf.constant(each) for each in arguments]
    return lambda: wrapped(*tensors)


def chain_of(*shape):
    return lambda mode: called(mode, lambda x: x * x * 2.0 + 1.0, values(*shape, scale=4))


def map_of(elements, repeats):
    body = lambda e: tf.reduce_sum(tf.repeat(e, repeats=repeats))
    return lambda mode: called(mode, lambda x: tf.map_fn(body, x), tf.range(elements, dtype=tf.float32))


def map_sin(mode):
    body = lambda e: tf.reduce_sum(tf.sin(tf.repeat(e, repeats=1_000_000) * tf.range(1_000_000, dtype=tf.float32)))
    return called(mode, lambda x: tf.map_fn(body, x), values(100, scale=2))


def matpow(mode):
    def power(a):
        return tf.while_loop(lambda i, r: i < 100, lambda i, r: (i + 1, tf.matmul(r, a)), [tf.constant(0), a])[1]

    return called(mode, power, values(100, 100, scale=0.34641))


def accumulate(mode):
    def rows(x):
        array = tf.TensorArray(tf.float32, size=10000)
        body = lambda i, array: (i + 1, array.write(i, x + tf.cast(i, tf.float32)))
        return tf.while_loop(lambda i, _: i < 10000, body, [tf.constant(0), array])[1].stack()

    return called(mode, rows, [1.0, 2.0])


def acc_calls(mode):
    def total(x):
        return tf.while_loop(lambda i, s: i < 100, lambda i, s: (i + 1, s + x), [tf.constant(0), tf.constant(0.0)])[1]

    return called(mode, total, 1.0)


def dense_fwd(mode):
    w1, w2 = tf.constant(values(784, 64, scale=2, salt=1)), tf.constant(values(64, 128, scale=2, salt=2))
    return called(mode, lambda x: tf.nn.relu(tf.nn.relu(x @ w1) @ w2), values(1024, 784, scale=2))


def eager_ops(mode):
    if mode != "eager":
        return None
    x = tf.constant(values(16, scale=2))

    def adds():
        y = x
        for _ in range(1000):
            y = y + x
        return y

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
