"""Question 3: loops keep every iteration for the gradient. Must they?"""

import numpy as np

import tidemark as td
from table import function, is_small, title

trips, edge = (200, 16) if is_small() else (10_000, 64)


def gradient(save=None, budget=None):
    """The gradient of a loop that is a plain `for`; what is kept of it is a choice."""
    x = td.random.normal((edge, edge), key=td.random.Key(1))

    def loss(a):
        options = {} if save is None else {"save": save}
        return td.sum(td.fori_loop(0, trips, lambda i, c: td.tanh(td.matmul(c, a)), x, **options))

    return td.function(lambda a: td.grad(loss)(a), budget=budget)


def main():
    a = td.random.normal((edge, edge), stddev=0.1, key=td.random.Key(2))
    within = 32 * td.KiB if is_small() else td.MiB
    title(f"the gradient of {trips:,} x c = tanh(c.a)")
    results = [
        function("naive: all states kept", gradient(td.Save.all()), a),
        function("as many states as the root of the trips", gradient(td.Save.slots(15 if is_small() else 100)), a),
        function(f"the function within a budget of {within}", gradient(budget=within), a),
    ]
    assert all(np.array_equal(np.asarray(results[0]), np.asarray(each)) for each in results), "the same bits"


if __name__ == "__main__":
    main()
