"""Question 4: a batch stores state that nobody needs. What is kept for backward, and why?

    python question_4_state_in_batches.py [--report page.html]
"""

import sys

import numpy as np

import tidemark as td
from table import function, is_small, title

rows, wide = (64, 32) if is_small() else (1024, 256)


def deep_step(budget=None):
    """A step of training of 16 layers; the same bits within every budget."""
    weights = [
        td.Variable(td.random.normal((wide, wide), stddev=0.05, key=td.random.Key(i)), name=f"w{i}") for i in range(16)
    ]
    optimizer = td.nn.SGD(0.1)

    @td.function(name="deep step", budget=budget)
    def step(x, y):
        with td.GradientTape() as tape:
            h = x
            for w in weights:
                h = td.tanh(td.matmul(h, w))
            loss = td.nn.losses.mse(y, h)
        optimizer.minimize(tape, loss, weights)
        return loss

    return step, weights


def show_budget():
    x = td.random.normal((rows, wide), key=td.random.Key(100))
    y = td.random.normal((rows, wide), key=td.random.Key(101))
    usual, weights = deep_step()
    plan = usual.plan(x, y)
    half, others = deep_step(max(plan.floor, plan.peak // 2))
    title("a step of training, 16 layers")
    function("without a budget", usual, x, y)
    function("within half of that", half, x, y)
    print(half.plan(x, y).explain().split("\n")[1])
    assert all(np.array_equal(np.asarray(a.value()), np.asarray(b.value())) for a, b in zip(weights, others))
    if "--report" in sys.argv:
        path = sys.argv[sys.argv.index("--report") + 1]
        td.report.write_html(path, plan, tradeoff=True)
        print(f"  {path} shows the memory of the step")


def show_custom_gradient():
    """log(1 + exp(x)): its rules keep two tensors; its gradient needs x alone. It goes into Sequential."""

    @td.custom_gradient
    def softplus(x):
        return td.log(1.0 + td.exp(x)), lambda dy: dy * td.sigmoid(x)

    x = td.random.normal((rows, wide))
    for name, between in (("by the rules of log, + and exp", lambda h: td.log(1.0 + td.exp(h))), ("its own", softplus)):
        model = td.nn.Sequential(td.nn.Dense(wide), between, td.nn.Dense(wide))
        model(x)
        with td.GradientTape() as tape:
            loss = td.mean(td.square(model(x)))
        print(f"  softplus with a gradient {name}: the tape keeps {tape.saved_bytes}")
        del loss


def show_rows():
    """Of a large table a step looks at a few rows, and its gradient is those."""
    words = 1000 if is_small() else 1_000_000
    embed, rate, optimizer = td.nn.Embedding(words, 64), td.nn.Dense(1), td.nn.SGD(0.1)

    @td.function
    def step(ids, wanted):
        with td.GradientTape() as tape:
            loss = td.nn.losses.mse(wanted, rate(embed(ids)))
        optimizer.minimize(tape, loss, [embed, rate])
        return loss

    ids = np.random.default_rng(1).integers(0, words, 256).astype(np.int32)
    wanted = td.ones((256, 1))
    step(ids, wanted)
    title(f"a recommender: a table of {words:,} x 64, of which 256 rows are looked up")
    function("loss, gradient by rows, update of those rows", step, ids, wanted)


if __name__ == "__main__":
    show_budget()
    show_custom_gradient()
    show_rows()
