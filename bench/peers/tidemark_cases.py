"""The cases in our own Python: the same programs as cases.cc, called through the package."""

import tidemark as td

from inputs import RATE, Gpt, conv_parameters, lstm_parameters, mlp_parameters, orthogonal, values

MODES = ("python",)
LONG_LOOP_SAVES = 16 << 20


def tensor(*shape, **options):
    """In memory of the library, as in C++: NumPy's is less aligned, and what only moves bytes takes a tenth longer from there."""
    return td.constant(values(*shape, **options))


class Call:
    """A compiled function with its arguments; its results as a list."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = td.function(function), arguments

    def __call__(self):
        return self.function(*self.arguments)


def planned(call):
    return (int(call.function.plan(*call.arguments).peak) if isinstance(call, Call) else None), None


class Step(Call):
    """A step of SGD in place."""

    def __init__(self, loss, parameters, *arguments):
        self.variables = [td.Variable(td.asarray(each)) for each in parameters]

        def step(*given):
            with td.GradientTape() as tape:
                value = loss([v.value() for v in self.variables], *given)
            for variable, gradient in zip(self.variables, tape.gradient(value, self.variables)):
                variable.assign_sub(gradient * RATE)
            return value

        super().__init__(step, *arguments)
        self.start = parameters

    def checked(self):
        for variable, start in zip(self.variables, self.start):
            variable.assign(td.asarray(start))
        self()
        return [variable.value() - td.asarray(start) for variable, start in zip(self.variables, self.start)]


def chain_of(*shape):
    return lambda mode: Call(lambda x: x * x * 2.0 + 1.0, tensor(*shape, scale=4))


def map_of(elements, repeats):
    def case(mode):
        x = td.cast(td.arange(elements), td.f32)
        return Call(lambda x: td.map_fn(lambda e: td.sum(td.repeat(e, repeats)), x), x)

    return case


def map_sin(mode):
    def body(e):
        return td.sum(td.sin(td.repeat(e, 1_000_000) * td.cast(td.arange(1_000_000), td.f32)))

    return Call(lambda x: td.map_fn(body, x), tensor(100, scale=2))


def matpow(mode):
    return Call(lambda a: td.fori_loop(0, 100, lambda i, r: td.matmul(r, a), a), tensor(100, 100, scale=0.34641))


def accumulate(mode):
    def rows(x):
        array = td.TensorArray(td.f32, size=10_000)
        return td.fori_loop(0, 10_000, lambda i, array: array.write(i, x + td.cast(i, td.f32)), array).stack()

    return Call(rows, td.constant([1.0, 2.0]))


def acc_calls(mode):
    return Call(lambda x: td.fori_loop(0, 100, lambda i, s: s + x, td.constant(0.0)), td.constant(1.0))


def dense_fwd(mode):
    w1, w2 = tensor(784, 64, scale=2, salt=1), tensor(64, 128, scale=2, salt=2)
    return Call(lambda x: td.relu(td.matmul(td.relu(td.matmul(x, w1)), w2)), tensor(1024, 784, scale=2))


def eager_ops(mode):
    x = tensor(16, scale=2)

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
            h = td.relu(td.matmul(h, p[i]) + p[i + 1])
        return td.mean(td.square(td.matmul(h, p[6]) + p[7] - y))

    return Step(loss, mlp_parameters(), tensor(1024, 784, scale=2, salt=10), tensor(1024, 10, scale=2, salt=11))


def softmax_ce(mode):
    labels = td.zeros((2048,), td.i32)

    def loss(x):
        return -td.mean(td.take_along_axis(td.log_softmax(x), td.expand_dims(labels, 1), 1))

    return Call(lambda x: td.grad(loss)(x), tensor(2048, 32768, scale=4))


def conv_step(mode):
    def loss(weights, x):
        h = x
        for w in weights:
            h = td.relu(h + td.conv2d(h, w, padding="same"))
        return td.mean(h * h)

    weights = [td.asarray(each) for each in conv_parameters()]
    return Call(lambda x, ws: td.grad(lambda ws: loss(ws, x))(ws), tensor(16, 56, 56, 64, scale=2), weights)


def gpt_loss(of):
    size = of.d // of.heads

    def norm(x, g):
        return x * td.rsqrt(td.mean(x * x, -1, keepdims=True) + 1e-6) * g

    def gelu(x):
        return 0.5 * x * (1.0 + td.tanh(0.7978845608 * (x + 0.044715 * (x * x * x))))

    def heads(u):
        return td.transpose(td.reshape(u, (of.batch, of.t, of.heads, size)), (0, 2, 1, 3))

    def attention(qkv, mask):
        q, k, v = [heads(u) for u in td.split(qkv, 3, -1)]
        scores = td.matmul(q, k, transpose_b=True) / size**0.5
        mixed = td.matmul(td.softmax(td.where(mask, scores, -1e30)), v)
        return td.reshape(td.transpose(mixed, (0, 2, 1, 3)), (of.batch, of.t, of.d))

    def loss(p, ids):
        mask = td.tril(td.ones((of.t, of.t))) > 0
        x = td.gather(p[0], ids)
        for qkv, o, up, down, g1, g2 in of.blocks(p):
            x = x + td.matmul(attention(td.matmul(norm(x, g1), qkv), mask), o)
            x = x + td.matmul(gelu(td.matmul(norm(x, g2), up)), down)
        seen = td.log_softmax(td.matmul(x, p[0], transpose_b=True))[:, : of.t - 1]
        return -td.mean(td.take_along_axis(seen, td.expand_dims(ids[:, 1:], -1), -1))

    return loss


def gpt_step(mode):
    of = Gpt()
    return Step(gpt_loss(of), of.parameters(), td.asarray(of.ids()))


def lstm_grad(mode):
    xs = tensor(128, 32, 128, scale=2)

    def loss(weights):
        w, u, b = weights

        def body(state, x):
            h, c = state
            forget, take, new, give = td.split(td.matmul(x, w) + td.matmul(h, u) + b, 4, -1)
            c = td.sigmoid(forget) * c + td.sigmoid(take) * td.tanh(new)
            h = td.sigmoid(give) * td.tanh(c)
            return (h, c), h

        zero = td.zeros((32, 128))
        return td.mean(td.square(td.scan(body, (zero, zero), xs)[1]))

    def gradient(weights):
        value, gradients = td.value_and_grad(loss)(weights)
        return [*gradients, value]

    return Call(gradient, [td.asarray(each) for each in lstm_parameters()])


def loop_grad_of(trips, save):
    def case(mode):
        x = tensor(128, 128, scale=2)

        def loss(a):
            return td.sum(td.fori_loop(0, trips, lambda i, c: td.tanh(td.matmul(c, a)), x, save=save()))

        return Call(lambda a: td.grad(loss)(a), td.asarray(orthogonal(128)))

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
    "loop_grad": loop_grad_of(1000, lambda: td.Save.all()),
    "loop_grad_long": loop_grad_of(10_000, lambda: td.Save.bytes(LONG_LOOP_SAVES)),
}
