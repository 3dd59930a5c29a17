"""Question 2: what does a traced function cost, and when is it traced again?"""

import tidemark as td
from table import eager, function, is_small, title

edge = 100 if is_small() else 1000


def show_statements():
    """Three statements are one expression: one kernel, nothing in between."""

    def three(x):
        squared = x * x
        doubled = squared * 2
        return doubled + 1

    x = td.random.normal((edge, edge))
    title("x*x*2 + 1 of a square matrix")
    eager("eager, three statements", lambda: three(x))
    function("a function of three statements", td.function(three), x)
    assert len(td.function(three).plan(x).timeline) == 1


def show_branches():
    """A condition is charged the larger of its branches, not both. It is a plain `if`."""

    @td.function
    def chosen(x):
        if td.mean(x) > 0:
            y = td.matmul(td.softmax(td.matmul(x, x)), x)
        else:
            y = x + 1
        return y

    x = td.random.uniform((edge, edge))
    title("one of two branches")
    function("if, the larger branch taken", chosen, x)
    plan = chosen.plan(x)
    print(f"  the smaller one has the same plan: {chosen.plan(-x).peak == plan.peak}")


def show_traces():
    """A number is a run-time value. The second size of a dimension makes it open."""
    scaled = td.function(lambda x, rate: td.sum(x * rate, 0))
    for i in range(100):
        scaled(td.ones((3, 4)), 0.01 * i)
    numbers = scaled.cache_info().traces
    for rows in range(4, 104):
        scaled(td.ones((rows, 4)), 0.1)
    sizes = scaled.cache_info().traces
    print(f"100 plain numbers: {numbers} trace; 100 sizes more: {sizes} traces in all")
    assert (numbers, sizes) == (1, 2)


if __name__ == "__main__":
    show_statements()
    show_branches()
    show_traces()
