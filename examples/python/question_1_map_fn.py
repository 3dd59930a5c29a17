"""Question 1: a map over 1,000 elements piles up intermediates. Must it?"""

import numpy as np

import tidemark as td
from table import eager, function, is_small, title

elements, count = (50, 1000) if is_small() else (1000, 10_000)
numbers = td.cast(td.arange(elements), td.f32) * 1e-3


def body(e):
    return td.sum(td.sin(td.repeat(e, count) * td.cast(td.arange(count), td.f32)))


def mapped(alive, jit=True):
    return td.function(lambda x: td.map_fn(body, x, parallel_iterations=alive), jit=jit)


def main():
    title("sum(sin(repeat(e, n) * arange(n))) of each")
    at_once = td.expand_dims(numbers, 1)
    line = td.cast(td.arange(count), td.f32)
    eager("naive: all elements at once, eager", lambda: td.sum(td.sin(td.repeat(at_once, count, 1) * line), 1))
    eager("Dataset.map, one element after another", lambda: td.stack(list(td.data.from_tensor_slices(numbers).map(body))))
    one = eager("map_fn, eager", lambda: td.map_fn(body, numbers))
    results = [
        function("map_fn in a function, each op by itself, 1 body alive", mapped(1, jit=False), numbers),
        function("  10 alive", mapped(10, jit=False), numbers),
        function("map_fn in a function, jitted, 1 body alive", mapped(1), numbers),
        function("  all alive", mapped(elements), numbers),
    ]
    assert all(np.array_equal(np.asarray(one), np.asarray(each)) for each in results), "the same bits for every choice"


if __name__ == "__main__":
    main()
