"""The first program of README.md in Python."""

import tidemark as td

w = td.Variable(td.zeros((784, 10)))


@td.function(budget="1 MiB")  # A call that would need more is made to fit, or refused with what would.
def step(x):
    with td.GradientTape() as tape:
        loss = td.mean(td.square(td.matmul(x, w) - 1))
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss


print(step.plan(td.spec((256, 784))).peak)  # Known before anything runs: 40.7 KiB.
print(step(td.ones((256, 784))))
