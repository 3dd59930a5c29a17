"""The truth about a program: values, first and second derivatives, and how far they may be off."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import evaluate
from meaning import Meaning
from meaning_values import DTYPES, Bottom, V

MASK = (1 << 64) - 1
# How far each rounding is put off, in parts of the value: 16 units in the last place; of 16-bit floats,
# whose ops compute in f32 and round once, 2.
UNITS = {"f64": 2.0 ** -48, "f32": 2.0 ** -19, "f16": 2.0 ** -9, "bf16": 2.0 ** -6}
# The least that is not 0, where programs come near it.
LEAST = {"f16": 2.0 ** -24}


def mixed(word):
    word = (word + np.uint64(0x9E3779B97F4A7C15))
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def made(program, given, call, number, plain=False):
    """An input's elements: those of truth_driver.cc."""
    sizes = program.sizes_at(call) if program.sizes else {}
    shape = [size.at(sizes) for size in given.shape]
    layout, grid = given.layout.split("+")[0], given.layout.endswith("+grid") and not plain
    drawn = list(shape)
    if layout.startswith("stretched:") and not plain:
        drawn[int(layout[10:])] = 1
    count = int(np.prod(drawn, dtype=np.int64))
    low, high = (-1.0, 1.0) if plain else (given.low, given.high)
    with np.errstate(over="ignore"):
        stream = mixed(np.uint64((program.seed * 1000 + number) & MASK)) + mixed(np.uint64(call))
        words = mixed(stream + np.arange(count, dtype=np.uint64))
    if given.dtype == "bool":
        a = (words & np.uint64(1)).astype(np.bool_)
    elif given.dtype == "float":
        a = low + (high - low) * ((words >> np.uint64(11)).astype(np.float64) * 2.0 ** -53)
        a = np.rint(a * 2) / 2 if grid else a
        a = a.astype(DTYPES[program.dtype]).astype(np.float64)
    else:
        a = (int(low) + (words % np.uint64(round(high - low) + 1)).astype(np.int64)).astype(DTYPES[given.dtype])
    return np.broadcast_to(a.reshape(drawn), shape)


class JudgesDisagree(ValueError):
    """NumPy and JAX give other values for one program, so that nobody can say what is right."""


class Truth:
    """What a program gives at one call's sizes. `unstable` says that roundings decide about it."""

    def __init__(self, program, call, draws):
        self.program = program
        arguments = [made(program, a, call, i) for i, a in enumerate(program.arguments)]
        by = [i for i, a in enumerate(program.arguments) if a.differentiated]
        along = [made(program, program.arguments[i], call, 200 + i, plain=True) for i in by]
        rest = [i for i, a in enumerate(program.arguments) if a.dtype == "float" and i not in by]
        variables = [made(program, v, 0, 100 + i) for i, v in enumerate(program.variables)]
        constants = [made(program, c, 0, 300 + i) for i, c in enumerate(program.constants)]
        seen = {}

        def forward(differentiated, deltas, others):
            run = Meaning(program, call, draws)
            scope = {c.name: V(x) for c, x in zip(program.constants, constants)}
            scope.update({a.name: V(x) for a, x in zip(program.arguments, arguments)})
            for numbers, traced in ((by, differentiated), (rest, others)):
                for i, t in zip(numbers, traced):
                    scope[program.arguments[i].name].t = t
            for variable, value, delta in zip(program.variables, variables, deltas):
                run.variables[variable.name], run.deltas[variable.name] = V(value), delta
            results = run.run(scope)
            states = [run.variables[v.name] for v in program.variables]
            seen.update(results=results, states=states, guards=run.guards)
            floats = [v for v in results if v.is_float]
            loss = 0.0
            for i, v in enumerate(floats):
                x = lax.convert_element_type(v.x, np.float64)
                part = jnp.sum(lax.mul(x, lax.add(x, np.ones(v.a.shape))))
                loss = loss + part / (i + 1)
            read = [v.x for guard in run.guards for v in guard[1] if v.t is not None]
            return loss, ([v.x for v in floats], [v.x for v in states], read)

        def everything(differentiated, directions, deltas, others, bottom):
            Bottom.traced = bottom

            def gradient(x):
                return jax.value_and_grad(forward, argnums=(0, 1), has_aux=True)(x, deltas, others)
            return jax.jvp(gradient, (differentiated,), (directions,))

        inputs = ([arguments[i] for i in by], along, [np.zeros(v.shape) for v in variables],
                  [arguments[i] for i in rest], np.float64(-np.inf))
        closed, tree = jax.make_jaxpr(everything, return_shape=True)(*inputs)
        Bottom.traced = None
        flat = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(inputs)]
        structure = jax.tree_util.tree_structure(tree)
        self.seen = seen

        def run(unit=0.0, least=0.0, salt=0, narrow=False):
            with np.errstate(all="ignore"):
                values = evaluate.run(closed.jaxpr, closed.consts, flat, unit, least, salt, narrow)
            return self.sorted(jax.tree_util.tree_unflatten(structure, values))

        self.exact = run()
        self.check_numpy()
        unit = UNITS[program.dtype]
        self.shaken = [run(unit, LEAST.get(program.dtype, 0.0), salt) for salt in (1, 2, 3)]
        self.narrow = run(narrow=True) if program.dtype == "f32" else None
        self.unstable = any(self.decides_otherwise(read) for read in [one["read"] for one in self.shaken] + self.near(unit))

    def near(self, unit):
        """What decisions read, where it was rounded: up, down, and 0 where it is about 0. What was not rounded decides as it is."""
        exact = [np.asarray(read) for read in self.exact["read"]]
        rounded = [np.any([np.asarray(one["read"][i]) != read for one in self.shaken], axis=0) for i, read in enumerate(exact)]

        def moved(move):
            return [np.where(where, move(read), read) for read, where in zip(exact, rounded)]
        return [moved(lambda read: read * (1 + 2 * unit)), moved(lambda read: read * (1 - 2 * unit)),
                moved(lambda read: np.where(np.abs(read) < 4 * unit, 0, read))]

    def sorted(self, tree):
        """What was computed, by what it is."""
        ((_, (results, states, read)), (by, deltas)), ((_, (moved, _, _)), (again, _)) = tree
        values, floats = [], iter(results)
        for v in self.seen["results"]:
            values.append(next(floats) if v.is_float else v.a)
        zeros = [np.zeros(np.shape(x)) if m.dtype == jax.dtypes.float0 else m for x, m in zip(results, moved)]
        return {"value": values + list(states), "grad": list(by) + list(deltas), "hvp": list(again), "jvp": zeros, "read": read}

    def check_numpy(self):
        """NumPy's own functions and JAX's, evaluated, must agree on values: they were written apart."""
        for v, value in zip(self.seen["results"] + self.seen["states"], self.exact["value"]):
            a, value = np.asarray(v.a), np.asarray(value)
            if a.shape != value.shape or not np.allclose(a.astype(np.float64), value.astype(np.float64), 1e-6, 1e-6, equal_nan=True):
                raise JudgesDisagree(f"NumPy has {a.tolist()}, JAX {value.tolist()}"[:500])

    def decides_otherwise(self, read):
        """Whether whole numbers or truths come out otherwise of floats that are a little off."""
        read = iter(read)
        for function, operands, given in self.seen["guards"]:
            floats = [next(read) if v.t is not None else v.a for v in operands]
            with np.errstate(all="ignore"):
                if not np.array_equal(function(*floats), given):
                    return True
        return False

    def off_in_f32(self, what):
        """How far each result of NumPy in f32 is off, in parts of what a run may be: more than 1 says that the tolerance is too small."""
        for (exact, room), narrow in zip(self.expected(what), self.narrow[what]):
            if room is None or not np.all(np.isfinite(exact)):
                continue
            with np.errstate(all="ignore"):
                yield float(np.nanmax(np.abs(np.asarray(narrow, np.float64) - exact) / room, initial=0.0))

    def expected(self, what):
        """Pairs: an array, and how far a run may be from each element. -1: it is infinite or NaN, and so must the run's be."""
        unit = UNITS[self.program.dtype]
        for i, exact in enumerate(self.exact[what]):
            exact = np.asarray(exact)
            if exact.dtype.kind not in "fV":
                yield exact, None
                continue
            exact = exact.astype(np.float64)
            with np.errstate(all="ignore"):
                off = np.zeros(exact.shape)
                for one in self.shaken:
                    off = np.maximum(off, np.abs(np.asarray(one[what][i], np.float64) - exact))
                worst = np.max(off, initial=0.0)
                room = 8 * off + 0.5 * worst + 2 * unit * np.abs(exact) + unit * 1e-3
                steady = ~np.isfinite(exact)
                for one in self.shaken:
                    moved = np.asarray(one[what][i], np.float64)
                    steady &= (moved == exact) | np.isnan(moved) & np.isnan(exact)
                yield exact, np.where(steady, -1.0, room)
