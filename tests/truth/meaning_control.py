"""What Variables and control flow mean."""

import jax
import numpy as np
from jax import lax

from meaning_values import V, moved


@jax.custom_jvp
def with_slope(y, x, slope):
    """y, as if its derivative by x were `slope`."""
    return y


@with_slope.defjvp
def _(given, directions):
    return with_slope(*given), lax.mul(directions[1], given[2])


@jax.custom_jvp
def with_own_slope(y, x):
    """y, as if it were its own derivative by x: a gradient function that reads the result gets what others get, as in PyTorch."""
    return y


@with_own_slope.defjvp
def _(given, directions):
    y = with_own_slope(*given)
    return y, lax.mul(directions[1], y)


class Control:
    """A part of Meaning."""

    def do_read(self, at):
        name = at.text("to")
        now = self.variables[name]
        return V(now.a, now.x + self.deltas[name]) if name in self.deltas else now

    def assigned(self, name, value):
        self.variables[name] = V(value.a, None if value.t is None else lax.stop_gradient(value.t))

    def do_assign(self, at, x):
        self.assigned(at.text("to"), x)

    def do_assign_add(self, at, x):
        self.assigned(at.text("to"), self.binary("add", self.variables[at.text("to")], x))

    def do_assign_sub(self, at, x):
        self.assigned(at.text("to"), self.binary("subtract", self.variables[at.text("to")], x))

    def do_assign_slice(self, at, x):
        self.assigned(at.text("to"), self.do_update_at(at, self.variables[at.text("to")], x))

    def do_scatter_update(self, at, index, updates):
        self.assigned(at.text("to"), self.do_put(at, self.variables[at.text("to")], index, updates))

    # ---- control flow ---------------------------------------------------------------------------

    def run_block(self, block, scope, given=()):
        inner = dict(scope)
        inner.update(zip(block.params, given))
        self.block(block.body, inner)
        return [inner[name] for name in block.gives]

    def do_cond(self, at, chosen):
        return self.run_block(at.blocks[0 if chosen.a else 1], at.scope)

    def do_switch_case(self, at, number):
        last = len(at.blocks) - 1
        return self.run_block(at.blocks[int(number.a) if 0 <= number.a < last else last], at.scope)

    def do_fori_loop(self, at, lower, upper):
        carried = at.named("carry")
        for i in range(int(lower.a), int(upper.a)):
            carried = self.run_block(at.blocks[0], at.scope, [V(np.int64(i))] + carried)
        return carried

    def do_array_loop(self, at, lower, upper):
        carried, shape = at.named("carry"), at.shape()
        elements = [V(np.zeros(shape)) for _ in range(at.whole("elements"))]
        for i in range(int(lower.a), int(upper.a)):
            given = [V(np.int64(i))] + carried + [elements[0]] * at.whole("read")
            *carried, elements[i] = self.run_block(at.blocks[0], at.scope, given)
        return carried + self.stacked([[element] for element in elements])

    def do_array_moves(self, at, x, places, elements, picks):
        changed = self.do_put(at, x, places, elements)
        picked = moved(lambda a: np.take(a, picks.a, 0), changed)
        one = moved(lambda a: a[at.whole("read")], changed)
        last = moved(lambda a: a[-1], x)
        return self.binary("add", picked, self.binary("multiply", one, last))

    def do_custom_gradient(self, at, x):
        block = at.blocks[0]
        y, slope = self.run_block(block, at.scope, [x])
        if x.t is None:
            return y
        made = {out for s in block.body for out in s.outs}
        if block.gives[0] == block.gives[1] and block.gives[0] in made:
            return V(y.a, with_own_slope(y.x, x.t))
        return V(y.a, with_slope(y.x, x.t, slope.x))

    def do_while_loop(self, at):
        carried, most = at.named("carry"), at.whole("max_iterations") or 1000
        for _ in range(most):
            if not self.run_block(at.blocks[0], at.scope, carried)[0].a:
                break
            carried = self.run_block(at.blocks[1], at.scope, carried)
        return carried

    def trips(self, at, carried, order):
        xs, given = at.named("xs"), []
        for i in order:
            slices = [moved(lambda a, i=i: a[i], x) for x in xs]
            results = self.run_block(at.blocks[0], at.scope, carried + slices)
            carried = results[:len(carried)]
            given.append(results[len(carried):])
        return carried, given

    def stacked(self, given):
        """Along a new first axis."""
        return [moved(lambda *a: np.stack(a), *column) for column in zip(*given)]

    def of_no_trips(self, at, carried):
        """Nothing, in the shapes that a trip's results would have."""
        before = self.guards, self.variables, self.drawn, self.draws
        self.guards, self.variables, self.draws = [], dict(self.variables), None
        slices = [V(np.zeros(x.a.shape[1:], x.a.dtype)) for x in at.named("xs")]
        given = self.run_block(at.blocks[0], at.scope, carried + slices)[len(carried):]
        self.guards, self.variables, self.drawn, self.draws = before
        return [V(np.zeros((0,) + v.a.shape, v.a.dtype)) for v in given]

    def do_scan(self, at):
        count = at.named("xs")[0].a.shape[0]
        if count == 0:
            return at.named("carry") + self.of_no_trips(at, at.named("carry"))
        order = range(count - 1, -1, -1) if at.whole("reverse") else range(count)
        carried, given = self.trips(at, at.named("carry"), order)
        return carried + self.stacked(given[::-1] if at.whole("reverse") else given)

    def do_map_fn(self, at):
        if at.named("xs")[0].a.shape[0] == 0:
            return self.of_no_trips(at, [])
        return self.stacked(self.trips(at, [], range(at.named("xs")[0].a.shape[0]))[1])

    do_vectorized_map = do_map_fn

    def do_recompute(self, at, *given):
        return self.run_block(at.blocks[0], at.scope, given)

    do_call = do_recompute
