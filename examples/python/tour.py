"""Five questions about the memory of tensor programs, condensed: what `./run python` runs.

    python tour.py [--report page.html]

Each figure is planned before anything runs, and measured as it runs. The programs question_1_*.py to
question_5_*.py beside this file answer at length.
"""

import os
import sys

import numpy as np

import tidemark as td

HERE = os.path.dirname(os.path.abspath(__file__))


def heading(number, text):
    print(f"\n{number}. {text}")


def told(what, planned, measured):
    print(f"   {what:<52} planned {planned!s:>10}   measured {measured!s:>10}")
    assert planned == measured, "a run reaches its plan to the byte"


def run(what, f, *arguments):
    plan = f.plan(*arguments)
    result, profile = f.profile(*arguments)
    told(what, plan.peak, profile.touched)
    return result


def maps():
    heading(1, "A map piles up intermediates. Must it?")
    numbers, count = td.cast(td.arange(100), td.f32) * 1e-2, 10_000

    def body(e):
        return td.sum(td.sin(td.repeat(e, count) * td.cast(td.arange(count), td.f32)))

    def mapped(alive, jit):
        return td.function(lambda x: td.map_fn(body, x, parallel_iterations=alive), jit=jit)

    print("   100 elements, each repeated 10,000 times:")
    one = run("each op by itself, 1 body alive", mapped(1, False), numbers)
    run("each op by itself, 10 bodies alive", mapped(10, False), numbers)
    two = run("jitted: what is only summed is never written", mapped(1, True), numbers)
    assert np.array_equal(np.asarray(one), np.asarray(two)), "the same bits"


def functions():
    heading(2, "What does a traced function cost, and when is it traced again?")

    @td.function
    def f(x, rate):
        if td.mean(x) > 0:
            y = td.softmax(x) * rate
        else:
            y = x * x * 2 + rate
        return y

    x = td.random.normal((256, 256), key=td.random.Key(1))
    run("a plain `if` on a tensor: the larger branch counts", f, x, 0.5)
    for i in range(100):
        f(x, 0.01 * i)
    print(f"   100 learning rates: {f.cache_info().traces} trace, because a number is a value of the call")


def loops():
    heading(3, "Loops keep every iteration for the gradient. Must they?")
    a = td.random.normal((32, 32), stddev=0.1, key=td.random.Key(2))
    x = td.random.normal((32, 32), key=td.random.Key(1))

    def gradient(budget=None, **options):
        def loss(a):
            return td.sum(td.fori_loop(0, 1000, lambda i, c: td.tanh(td.matmul(c, a)), x, **options))

        return td.function(lambda a: td.grad(loss)(a), budget=budget)

    print("   the gradient of 1,000 x c = tanh(c.a), 32 x 32:")
    every = run("all states kept", gradient(save=td.Save.all()), a)
    least = run("the same within a budget of 256 KiB", gradient(budget=256 * td.KiB), a)
    assert np.array_equal(np.asarray(every), np.asarray(least)), "the same bits"


def batches(report):
    heading(4, "A batch stores state that nobody needs. What is kept, and why?")
    model = td.nn.Sequential(*[td.nn.Dense(128, activation=td.tanh) for _ in range(8)], td.nn.Dense(10))
    optimizer = td.nn.SGD(0.1)

    def step_within(budget):
        @td.function(name="step", budget=budget)
        def step(x, y):
            with td.GradientTape() as tape:
                loss = td.nn.losses.sparse_categorical_crossentropy(y, model(x))
            optimizer.minimize(tape, loss, model)
            return loss

        return step

    x = td.random.normal((512, 64), key=td.random.Key(3))
    y = td.zeros((512,), td.i32)
    usual = step_within(None)
    run("a step of training, 9 layers", usual, x, y)
    plan = usual.plan(x, y)
    run("the same within half of that, with the same bits", step_within(max(plan.floor, plan.peak // 2)), x, y)
    if report:
        td.report.write_html(report, plan)
        print(f"   {report} shows the memory of the step")


def leaks():
    heading(5, "Training leaks. Who holds the bytes?")
    kept = []

    def step():
        x = td.random.normal((64, 64))
        kept.append(td.mean(x * x, 0))

    report = td.memory.watch(64, step)
    for line in str(report).splitlines()[:2]:
        print("   " + line)
    assert report.verdict == td.Growth.growing


def main():
    report = sys.argv[sys.argv.index("--report") + 1] if "--report" in sys.argv else None
    print("Tidemark: a tensor runtime whose peak memory is known before it runs.")
    maps()
    functions()
    loops()
    batches(report)
    leaks()
    print(f"\n{os.path.relpath(HERE)} has the programs, and docs/questions the answers at length.")


if __name__ == "__main__":
    main()
