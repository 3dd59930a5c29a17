"""The cases in TensorFlow's words: eager, as tf.function, and through XLA. Calls on the CPU end when the
result is there."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

from inputs import RATE, Gpt, conv_parameters, lstm_parameters, mlp_parameters, orthogonal, values

MODES = ("eager", "function", "xla")


WRAP = {"eager": lambda f: f, "function": tf.function, "xla": lambda f: tf.function(f, jit_compile=True)}


def called(mode, function, *arguments):
    wrapped, tensors = WRAP[mode](function), [tf.constant(each) for each in arguments]
    return lambda: wrapped(*tensors)


class Step:
    """A step of SGD in place."""

    def __init__(self, mode, loss, parameters, *inputs):
        self.start, self.inputs = parameters, [tf.constant(each) for each in inputs]
        self.variables = [tf.Variable(each) for each in parameters]

        def step(*inputs):
            with tf.GradientTape() as tape:
                value = loss(self.variables, *inputs)
            for variable, gradient in zip(self.variables, tape.gradient(value, self.variables)):
                variable.assign_sub(RATE * tf.convert_to_tensor(gradient))
            return value

        self.step = WRAP[mode](step)

    def __call__(self):
        return self.step(*self.inputs)

    def checked(self):
        for variable, start in zip(self.variables, self.start):
            variable.assign(start)
        self()
        return [variable - start for variable, start in zip(self.variables, self.start)]


def gradient_of(loss):
    """By the first argument, a tensor or a list."""

    def gradient(x, *inputs):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(x, *inputs)
        return tape.gradient(value, x)

    return gradient


def compiled(case):
    """A case that is not asked of eager code."""
    return lambda mode: None if mode == "eager" else case(mode)


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


# ---- Gradients


def mlp_step(mode):
    def loss(p, x, y):
        h = x
        for i in range(0, 6, 2):
            h = tf.nn.relu(h @ p[i] + p[i + 1])
        return tf.reduce_mean((h @ p[6] + p[7] - y) ** 2)

    return Step(mode, loss, mlp_parameters(), values(1024, 784, scale=2, salt=10), values(1024, 10, scale=2, salt=11))


def softmax_ce(mode):
    labels = tf.zeros(2048, tf.int32)
    loss = lambda x: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x))
    return called(mode, gradient_of(loss), values(2048, 32768, scale=4))


def conv_step(mode):
    x = tf.constant(values(16, 56, 56, 64, scale=2))

    def loss(ws):
        h = x
        for w in ws:
            h = tf.nn.relu(h + tf.nn.conv2d(h, w, 1, "SAME"))
        return tf.reduce_mean(h * h)

    return called(mode, lambda *ws: gradient_of(loss)(list(ws)), *conv_parameters())


def gpt_step(mode):
    of = Gpt()
    norm = lambda x, g: x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6) * g
    heads = lambda u: tf.transpose(tf.reshape(u, (of.batch, of.t, of.heads, of.d // of.heads)), (0, 2, 1, 3))

    def loss(p, ids):
        mask = tf.linalg.band_part(tf.ones((of.t, of.t)), -1, 0) > 0
        x = tf.gather(p[0], ids)
        for qkv, o, up, down, g1, g2 in of.blocks(p):
            q, k, v = [heads(u) for u in tf.split(norm(x, g1) @ qkv, 3, -1)]
            scores = tf.where(mask, tf.matmul(q, k, transpose_b=True) / 8.0, -1e30)
            x = x + tf.reshape(tf.transpose(tf.nn.softmax(scores) @ v, (0, 2, 1, 3)), (of.batch, of.t, of.d)) @ o
            x = x + tf.nn.gelu(norm(x, g2) @ up, approximate=True) @ down
        logits = tf.matmul(x, p[0], transpose_b=True)[:, :-1]
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(ids[:, 1:], logits))

    return Step(mode, loss, of.parameters(), of.ids())


def lstm_grad(mode):
    xs = tf.constant(values(128, 32, 128, scale=2))

    def loss(weights):
        w, u, b = weights

        def body(i, h, c, array):
            forget, take, new, give = tf.split(xs[i] @ w + h @ u + b, 4, -1)
            c = tf.sigmoid(forget) * c + tf.sigmoid(take) * tf.tanh(new)
            h = tf.sigmoid(give) * tf.tanh(c)
            return i + 1, h, c, array.write(i, h)

        zero = tf.zeros((32, 128))
        start = [tf.constant(0), zero, zero, tf.TensorArray(tf.float32, size=128, element_shape=(32, 128))]
        array = tf.while_loop(lambda i, *_: i < 128, body, start, maximum_iterations=128)[-1]
        return tf.reduce_mean(array.stack() ** 2)

    def gradients(*weights):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            value = loss(weights)
        return [*tape.gradient(value, weights), value]

    return called(mode, gradients, *lstm_parameters())


def loop_grad_of(trips):
    def case(mode):
        x = tf.constant(values(128, 128, scale=2))

        def loss(a):
            body = lambda i, c: (i + 1, tf.tanh(tf.matmul(c, a)))
            last = tf.while_loop(lambda i, c: i < trips, body, [tf.constant(0), x], maximum_iterations=trips)
            return tf.reduce_sum(last[1])

        return called(mode, gradient_of(loss), orthogonal(128))

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
    "mlp_step": compiled(mlp_step),
    "softmax_ce": compiled(softmax_ce),
    "conv_step": compiled(conv_step),
    "gpt_step": compiled(gpt_step),
    "lstm_grad": compiled(lstm_grad),
    "loop_grad": compiled(loop_grad_of(1000)),
    "loop_grad_long": compiled(loop_grad_of(10_000)),
}
