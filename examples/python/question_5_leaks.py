"""Question 5: training leaks. Who holds the bytes, and how is it found?"""

import tidemark as td
from table import is_small


def show_flat():
    """What looks like a leak elsewhere: tensors collected in a loop, and numbers added up."""
    elements = 100 if is_small() else 10_000

    @td.function
    def collected(first):
        rows = []
        now = first
        for _ in td.range(elements):
            rows.append(now)
            now = now + 1
        return td.stack(rows)

    x = td.constant([1.0, 2.0])
    assert collected(x).shape == (elements, 2)
    report = td.memory.watch(100, lambda: collected(x))
    print(f"collect and stack {elements:,} tensors, 100 calls: {report.verdict.name}, {collected.plan(x).peak} planned")
    assert report.verdict == td.Growth.flat


def show_captured():
    """Python state is frozen when a function is traced; what changed since is found, with both values."""
    state = {"counter": 0}

    @td.function
    def f(x):
        state["counter"] += 1
        return x * state["counter"]

    x = td.ones((2,))
    print(f"captured state: call 1 gives {f(x)}, call 2 gives {f(x)}: the body ran once")
    counter = td.Variable(1, dtype=td.i32, name="counter")

    @td.function
    def right(x):
        counter.assign_add(1)
        return x * counter.value()

    right(x)
    print(f"with a Variable, call 2 gives {right(x)}")


def show_growing():
    """A list that truly grows: the report names this file and line."""
    losses = []
    monitor = td.StepMonitor()
    for _ in range(300):
        x = td.random.normal((64, 64))
        losses.append(td.mean(x * x, 0))
        monitor.step()
    report = monitor.report()
    print(report)
    assert report.verdict == td.Growth.growing
    assert any("question_5_leaks.py" in row.line for row in report.rows if row.growth == td.Growth.growing)


if __name__ == "__main__":
    show_flat()
    show_captured()
    show_growing()
