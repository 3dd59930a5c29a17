"""The cases in PyTorch's words: eager, and through torch.compile, which unrolls loops and so has no loop
cases. Calls on the CPU end when the result is there."""

import os

import torch

from inputs import values

MODES = ("eager", "compile")
torch.set_num_threads(len(os.sched_getaffinity(0)))
torch.set_grad_enabled(False)


def tensor(*shape, **options):
    return torch.from_numpy(values(*shape, **options))


def called(mode, function, *arguments):
    wrapped = torch.compile(function) if mode == "compile" else function
    return lambda: wrapped(*arguments)


def loop(case):
    """A case that torch.compile would unroll."""
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


CASES = {
    "chain": chain_of(1000, 1000),
    "chain_big": chain_of(8192, 8192),
    "map_small": map_of(1000, 10_000),
    "map_big": map_of(100, 1_000_000),
    "map_sin": map_sin,
    "matpow": loop(matpow),
    "accumulate": loop(accumulate),
    "acc_calls": loop(acc_calls),
    "dense_fwd": dense_fwd,
    "eager_ops": loop(eager_ops),
}
