"""The cases in PyTorch's words: eager, and through torch.compile, which unrolls loops and so has no loop
cases; gradients are eager. Calls on the CPU end when the result is there."""

import os

import torch
import torch.nn.functional as F

from inputs import RATE, Gpt, conv_parameters, lstm_parameters, mlp_parameters, orthogonal, values

MODES = ("eager", "compile")
torch.set_num_threads(len(os.sched_getaffinity(0)))
torch.set_grad_enabled(False)


def tensor(*shape, **options):
    return torch.from_numpy(values(*shape, **options))


def called(mode, function, *arguments):
    wrapped = torch.compile(function) if mode == "compile" else function
    return lambda: wrapped(*arguments)


class Gradient:
    """The gradient of a loss by parameters."""

    def __init__(self, loss, parameters, with_value=False):
        self.loss, self.with_value = loss, with_value
        self.parameters = [torch.as_tensor(each).requires_grad_() for each in parameters]

    def __call__(self):
        with torch.enable_grad():
            value = self.loss(self.parameters)
            gradients = torch.autograd.grad(value, self.parameters)
        return [*gradients, value.detach()] if self.with_value else gradients


class Step(Gradient):
    """A step of SGD in place."""

    def __init__(self, loss, parameters):
        self.start = [torch.from_numpy(each.copy()) for each in parameters]
        super().__init__(loss, [each.clone() for each in self.start])

    def __call__(self):
        for parameter, gradient in zip(self.parameters, super().__call__()):
            parameter -= RATE * gradient

    def checked(self):
        for parameter, start in zip(self.parameters, self.start):
            parameter.copy_(start)
        self()
        return [parameter - start for parameter, start in zip(self.parameters, self.start)]


def eager(case):
    """A case that torch.compile would unroll, or that is not asked of it."""
    return lambda mode: None if mode == "compile" else case()


def chain_of(*shape):
    return lambda mode: called(mode, lambda x: x * x * 2.0 + 1.0, tensor(*shape, scale=4))


def map_of(elements, repeats):
    def case(mode):
        x = torch.arange(float(elements))
        wrap = torch.compile if mode == "compile" else lambda f: f
        one = wrap(lambda e: e.repeat(repeats).sum())
        return lambda: torch.stack([one(e) for e in x])

    return case


def map_sin(mode):
    x = tensor(100, scale=2)
    wrap = torch.compile if mode == "compile" else lambda f: f
    one = wrap(lambda e: torch.sin(e.repeat(1_000_000) * torch.arange(1_000_000, dtype=torch.float32)).sum())
    return lambda: torch.stack([one(e) for e in x])


def matpow():
    a = tensor(100, 100, scale=0.34641)

    def power():
        r = a
        for _ in range(100):
            r = r @ a
        return r

    return power


def accumulate():
    x = torch.tensor([1.0, 2.0])
    return lambda: torch.stack([x + i for i in range(10000)])


def acc_calls():
    x = torch.tensor(1.0)

    def total():
        s = torch.tensor(0.0)
        for _ in range(100):
            s = s + x
        return s

    return total


def dense_fwd(mode):
    w1, w2 = tensor(784, 64, scale=2, salt=1), tensor(64, 128, scale=2, salt=2)
    return called(mode, lambda x: torch.relu(torch.relu(x @ w1) @ w2), tensor(1024, 784, scale=2))


def eager_ops():
    x = tensor(16, scale=2)

    def adds():
        y = x
        for _ in range(1000):
            y = y + x
        return y

    return adds


# ---- Gradients


def mlp_step():
    x, y = tensor(1024, 784, scale=2, salt=10), tensor(1024, 10, scale=2, salt=11)

    def loss(p):
        h = x
        for i in range(0, 6, 2):
            h = torch.relu(h @ p[i] + p[i + 1])
        return ((h @ p[6] + p[7] - y) ** 2).mean()

    return Step(loss, mlp_parameters())


def softmax_ce():
    labels = torch.zeros(2048, dtype=torch.long)
    return Gradient(lambda p: F.cross_entropy(p[0], labels), [tensor(2048, 32768, scale=4)])


class Convolutions(Gradient):
    """With channels last, as the inputs have them; weights as PyTorch wants them. `run(block, *operands)` runs each
    block."""

    def __init__(self, blocks=4, images=(16, 56, 56), run=lambda block, *operands: block(*operands)):
        last = {"memory_format": torch.channels_last}
        x = tensor(*images, 64, scale=2).permute(0, 3, 1, 2).contiguous(**last)

        def block(h, w):
            return torch.relu(h + F.conv2d(h, w, padding=1))

        def loss(ws):
            h = x
            for w in ws:
                h = run(block, h, w)
            return (h * h).mean()

        weights = [torch.from_numpy(each).permute(3, 2, 0, 1).contiguous(**last) for each in conv_parameters(blocks)]
        super().__init__(loss, weights)

    def checked(self):
        return [each.permute(2, 3, 1, 0) for each in self()]


def gpt_loss(of, run=lambda block, *operands: block(*operands)):
    """Of parameters; `run(block, *operands)` runs each layer."""
    ids, mask = torch.from_numpy(of.ids()).long(), torch.tril(torch.ones(of.t, of.t, dtype=torch.bool))
    norm = lambda x, g: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g
    heads = lambda u: u.view(of.batch, of.t, of.heads, of.d // of.heads).transpose(1, 2)

    def block(x, qkv, o, up, down, g1, g2):
        q, k, v = [heads(u) for u in (norm(x, g1) @ qkv).chunk(3, -1)]
        scores = (q @ k.transpose(-1, -2) / 8.0).masked_fill(~mask, -1e30)
        x = x + (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(of.batch, of.t, of.d) @ o
        return x + F.gelu(norm(x, g2) @ up, approximate="tanh") @ down

    def loss(p):
        x = p[0][ids]
        for weights in of.blocks(p):
            x = run(block, x, *weights)
        logits = (x @ p[0].T)[:, :-1]
        return F.cross_entropy(logits.reshape(-1, of.words), ids[:, 1:].reshape(-1))

    return loss


def gpt_step():
    of = Gpt()
    return Step(gpt_loss(of), of.parameters())


def lstm_grad():
    xs = tensor(128, 32, 128, scale=2)

    def loss(weights):
        w, u, b = weights
        h = c = torch.zeros(32, 128)
        all = []
        for x in xs:
            forget, take, new, give = (x @ w + h @ u + b).chunk(4, -1)
            c = torch.sigmoid(forget) * c + torch.sigmoid(take) * torch.tanh(new)
            h = torch.sigmoid(give) * torch.tanh(c)
            all.append(h)
        return (torch.stack(all) ** 2).mean()

    return Gradient(loss, lstm_parameters(), with_value=True)


def loop_grad_of(trips):
    def case():
        x = tensor(128, 128, scale=2)

        def loss(p):
            c = x
            for _ in range(trips):
                c = torch.tanh(c @ p[0])
            return c.sum()

        return Gradient(loss, [orthogonal(128)])

    return case


CASES = {
    "chain": chain_of(1000, 1000),
    "chain_big": chain_of(8192, 8192),
    "map_small": map_of(1000, 10_000),
    "map_big": map_of(100, 1_000_000),
    "map_sin": map_sin,
    "matpow": eager(matpow),
    "accumulate": eager(accumulate),
    "acc_calls": eager(acc_calls),
    "dense_fwd": dense_fwd,
    "eager_ops": eager(eager_ops),
    "mlp_step": eager(mlp_step),
    "softmax_ce": eager(softmax_ce),
    "conv_step": eager(Convolutions),
    "gpt_step": eager(gpt_step),
    "lstm_grad": eager(lstm_grad),
    "loop_grad": eager(loop_grad_of(1000)),
    "loop_grad_long": eager(loop_grad_of(10_000)),
}
