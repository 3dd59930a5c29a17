"""Training steps within budgets against PyTorch, in f64: the loss and all gradients, at half the peak and at the floor, whatever is computed again or in parts."""
import numpy as np
import pytest

import tidemark as td
from tidemark import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def weights_of(*shapes):
    return [td.Variable(array(*shape, seed=i + 1) / np.sqrt(np.prod(shape[:-1]))) for i, shape in enumerate(shapes)]


def values_of(variables):
    return [variable.value() for variable in variables]


def mlp():
    """Six layers of 1,024 rows: four blocks of every sum over them."""
    def forward(h, *weights, tanh):
        for weight in weights:
            h = tanh(h @ weight)
        return h

    variables = weights_of(*[(32, 32)] * 6)
    return (array(1024, 32), variables, lambda x: forward(x, *values_of(variables), tanh=td.tanh), lambda *operands: forward(*operands, tanh=torch.tanh))


def residual():
    """Six 3 x 3 convolutions of eight images, each added to what it reads."""
    def forward(h, *kernels):
        for kernel in kernels:
            h = td.relu(h + td.conv2d(h, kernel, padding="same"))
        return h

    def theirs(h, *kernels):
        h = h.permute(0, 3, 1, 2)
        for kernel in kernels:
            h = F.relu(h + F.conv2d(h, kernel.permute(3, 2, 0, 1), padding=1))
        return h.permute(0, 2, 3, 1)

    variables = weights_of(*[(3, 3, 8, 8)] * 6)
    return array(8, 16, 16, 8), variables, lambda x: forward(x, *values_of(variables)), theirs


def transformer():
    """Two layers with causal attention of 4 heads, 128 tokens, a batch of 8."""
    wide, heads, x = 32, 4, array(8, 128, 32)
    layers = [(nn.LayerNorm(dtype=td.f64), nn.MultiHeadAttention(heads, wide // heads, causal=True, dtype=td.f64), nn.LayerNorm(dtype=td.f64),
               nn.Dense(4 * wide, activation="gelu", dtype=td.f64), nn.Dense(wide, dtype=td.f64)) for _ in range(2)]

    def forward(h):
        for first, attention, second, wider, narrower in layers:
            h = h + attention(first(h))
            h = h + narrower(wider(second(h)))
        return h

    forward(x)
    variables = []
    for first, attention, second, wider, narrower in layers:
        variables += [first.scale, first.bias]
        variables += [v for part in (attention.query, attention.key, attention.value, attention.output) for v in (part.kernel, part.bias)]
        variables += [second.scale, second.bias, wider.kernel, wider.bias, narrower.kernel, narrower.bias]

    def theirs(h, *v):
        norm = lambda h, scale, bias: F.layer_norm(h, (wide,), scale, bias, 1e-5)
        for i in range(0, len(v), 16):
            w = v[i:i + 16]
            x = norm(h, *w[:2])
            q, k, u = ((x @ w[j] + w[j + 1]).unflatten(-1, (heads, wide // heads)).transpose(1, 2) for j in (2, 4, 6))
            h = h + F.scaled_dot_product_attention(q, k, u, is_causal=True).transpose(1, 2).flatten(2) @ w[8] + w[9]
            h = h + F.gelu(norm(h, *w[10:12]) @ w[12] + w[13]) @ w[14] + w[15]
        return h
    return x, variables, forward, theirs


@pytest.mark.parametrize("model", [mlp, residual, transformer])
def test_gradients_within_budgets(model):
    x, variables, forward, theirs = model()
    operands = [torch.tensor(x), *(torch.tensor(np.asarray(v.value()), requires_grad=True) for v in variables)]
    wanted = (theirs(*operands) ** 2).mean()
    wanted.backward()

    def step(x):
        with td.GradientTape() as tape:
            loss = td.mean(td.square(forward(x)))
        return loss, tape.gradient(loss, variables)

    plan = td.function(step).plan(td.asarray(x))
    assert plan.floor <= plan.peak // 2
    said = set()
    for budget in (plan.peak, plan.peak // 2, plan.floor):
        bounded = td.function(step, budget=budget)
        (loss, slopes), profile = bounded.profile(td.asarray(x))
        assert profile.touched <= profile.planned <= budget
        np.testing.assert_allclose(np.asarray(loss), wanted.detach().numpy(), rtol=1e-12)
        for slope, source in zip(slopes, operands[1:]):
            np.testing.assert_allclose(np.asarray(slope), source.grad.numpy(), rtol=1e-9, atol=1e-14)
        said |= {each.what for each in bounded.plan(td.asarray(x)).decisions}
    assert any(what.endswith("again") for what in said)
    assert any("parts of the batch" in what for what in said)
