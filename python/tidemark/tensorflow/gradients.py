"""tf.GradientTape, tf.custom_gradient, tf.recompute_grad, tf.gradients, forward mode."""
import contextlib
import enum
import functools

import tidemark as td

from . import dtypes, nest
from .arrays import zeros_like
from .errors import translated
from .tensor import convert, op, of_sizes, wrap
from .variable import IndexedSlices, Variable


class UnconnectedGradients(enum.Enum):
    NONE = "none"
    ZERO = "zero"


def _zeros(unconnected):
    return UnconnectedGradients(unconnected) is UnconnectedGradients.ZERO


def _native(source):
    """What the tape knows a source by."""
    return source._v if isinstance(source, Variable) else convert(source)._t


def _outside(gradient, source, zero):
    """A gradient as TensorFlow gives it: None where there is none, IndexedSlices where it is row-sparse."""
    if gradient is None:
        return zeros_like(source) if zero else None
    if isinstance(gradient, td.RowGradient):
        return IndexedSlices(wrap(gradient.rows), wrap(td.cast(gradient.indices, td.i32)), of_sizes(source._v.shape))
    return wrap(gradient)


class GradientTape:
    """Records what is computed inside its `with` block."""

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent, self._watches = persistent, watch_accessed_variables
        self._tape, self._used = None, False
        self._watched = []

    def __enter__(self):
        self._begin()
        return self

    def _begin(self):
        self._tape = td.GradientTape(persistent=self._persistent, watch_variables=self._watches)
        self._tape.__enter__()

    def __exit__(self, *error):
        self._tape.__exit__(*error)

    def watch(self, tensor):
        for leaf in nest.flatten(tensor):
            if isinstance(leaf, Variable):
                self._watched.append(leaf)
            if leaf.dtype.has_gradient:
                self._tape.watch(_native(leaf))

    def watched_variables(self):
        own = {id(v._v): v for v in self._watched}
        return tuple(own.get(id(v), v) for v in self._tape.watched_variables())

    @contextlib.contextmanager
    def stop_recording(self):
        with self._tape.stop_recording():
            yield

    def reset(self):
        self._tape.__exit__(None, None, None)
        self._begin()

    def _ask(self):
        if self._used and not self._persistent:
            raise RuntimeError("A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)")
        self._used = True

    @op
    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
        self._ask()
        flat = nest.flatten(sources)
        targets = [convert(t)._t for t in nest.flatten(target) if t is not None and convert(t).dtype.has_gradient]
        zero = _zeros(unconnected_gradients)
        wanted = [s for s in flat if s is not None and s.dtype.has_gradient]
        options = {}
        if output_gradients is not None:
            options["output_gradients"] = [convert(g)._t for g in nest.flatten(output_gradients)]
        found = self._tape.gradient(targets, [_native(s) for s in wanted], unconnected="none", **options) if targets and wanted else [None] * len(wanted)
        by_source = iter(found)
        return nest.pack_sequence_as(sources, [_outside(next(by_source), s, zero) if s is not None and s.dtype.has_gradient else None for s in flat])

    @op
    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None, experimental_use_pfor=True):
        self._ask()
        flat, target = nest.flatten(sources), convert(target)
        unconnected = "zero" if _zeros(unconnected_gradients) else "none"
        found = self._tape.jacobian(target._t, [_native(source) for source in flat], unconnected=unconnected)
        return nest.pack_sequence_as(sources, [None if each is None else wrap(each) for each in found])

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None, experimental_use_pfor=True):
        target = convert(target)
        whole = self.jacobian(target, source, unconnected_gradients)
        batch, inner = target._t.shape[0], list(target._t.shape)[1:]
        own = [wrap(td.gather(whole._t[b], b, len(inner))) for b in range(batch)]
        return wrap(td.stack([o._t for o in own]))


@op
def stop_gradient(input):
    return wrap(td.stop_gradient(convert(input)._t))


@op
def gradients(ys, xs, grad_ys=None, gate_gradients=False, aggregation_method=None, stop_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
    """Gradients of the function that is being traced, by what it has computed so far."""
    if not td.is_tracing():
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.")
    tape = trace_tape()
    flat = nest.flatten(xs)
    targets = [convert(y)._t for y in nest.flatten(ys)]
    options = {} if grad_ys is None else {"output_gradients": [convert(g)._t for g in nest.flatten(grad_ys)]}
    found = tape.gradient(targets, [_native(x) for x in flat], unconnected="none", **options)
    return [_outside(g, x, _zeros(unconnected_gradients)) for g, x in zip(found, flat)]


_trace_tapes = []  # Of the functions that are being traced; None for one that has not needed a tape.


class NeedsTape(Exception):
    """A function calls tf.gradients: it is traced again, with a tape around it."""


def trace_tape():
    if not _trace_tapes or _trace_tapes[-1] is None:
        raise NeedsTape
    return _trace_tapes[-1]


def run_traced(f, tensors):
    """Runs a function that is being traced, with a tape if it asks for one."""
    _trace_tapes.append(None)
    try:
        return f()
    except NeedsTape:
        with td.GradientTape(persistent=True) as tape:
            floats = [t for t in tensors if dtypes.of_td(t.dtype).has_gradient]
            if floats:
                tape.watch(floats)
            _trace_tapes[-1] = tape
            return f()
    finally:
        _trace_tapes.pop()


def custom_gradient(f=None):
    """A function with a gradient of its own: f returns (result, grad), and grad(*upstream[, variables]) the gradients."""
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def call(*arguments, **options):
        given = [convert(a) for a in arguments]
        out = {}

        def forward(*natives):
            with td.GradientTape() as read:  # Finds the Variables that f reads.
                result, grad = f(*[wrap(n) for n in natives], **options)
            out["structure"] = result
            flat = [convert(r) for r in nest.flatten(result)]
            return tuple(r._t for r in flat), _Backward(grad, len(given), read.watched_variables())

        try:
            natives = td.custom_gradient(forward)(*[g._t for g in given])
        except td.Error as error:
            raise translated(error) from error
        return nest.pack_sequence_as(out["structure"], [wrap(n) for n in natives])

    return call


class _Backward:
    """The user's grad function, from td.Tensors to td.Tensors."""

    def __init__(self, grad, count, variables):
        self._grad, self._count, self._variables = grad, count, variables

    def __call__(self, upstream):
        given = [wrap(u) for u in upstream]
        if not self._variables:
            return self._flat(self._grad(*given))
        inputs, of_variables = self._grad(*given, variables=self._variables)
        return self._flat(inputs), {v: convert(g)._t for v, g in zip(self._variables, of_variables) if g is not None}

    def _flat(self, gradients):
        gradients = gradients if isinstance(gradients, (list, tuple)) else [gradients]
        if len(gradients) != self._count:
            raise ValueError(f"custom_gradient function expected to return {self._count} gradients, but returned {len(gradients)} instead.")
        return tuple(None if g is None else convert(g)._t for g in gradients)


def recompute_grad(f):
    """The function with nothing of its inside kept for gradients: it runs again in the backward pass."""

    @functools.wraps(f)
    def call(*arguments, **options):
        structure = {}

        def inner(*natives):
            result = f(*[wrap(n) for n in natives], **options)
            structure["of"] = nest.map_structure(lambda _: None, result) if nest.is_nested(result) else None
            flat = tuple(convert(r)._t for r in nest.flatten(result))
            return flat

        try:
            natives = td.recompute(inner)(*[convert(a)._t for a in arguments])
        except td.Error as error:
            raise translated(error) from error
        leaves = [wrap(n) for n in natives]
        return nest.pack_sequence_as(structure["of"], leaves) if structure["of"] is not None else leaves[0]

    return call


def grad_pass_through(f):
    """The identity for gradients, whatever f computes."""

    def call(*arguments, **options):
        result = f(*arguments, **options)
        x = convert(arguments[0])
        return x + stop_gradient(convert(result) - x)

    return call


class ForwardAccumulator:
    """Forward mode: the derivative along `tangents`, from two applications of reverse mode."""

    def __init__(self, primals, tangents):
        self._primals, self._tangents = nest.flatten(primals), [convert(t) for t in nest.flatten(tangents)]

    def __enter__(self):
        self._tape = GradientTape(persistent=True)
        self._tape.__enter__()
        for p in self._primals:
            self._tape.watch(p)
        return self

    def __exit__(self, *error):
        self._tape.__exit__(*error)

    def jvp(self, primals, unconnected_gradients=UnconnectedGradients.NONE):
        """The gradient of <gradient(y, u), t> by u, which is linear in u."""

        def one(y):
            y = convert(y)
            parts = []
            jacobians = self._tape.jacobian(y, self._primals, UnconnectedGradients.NONE)
            for jacobian, tangent in zip(jacobians, self._tangents):
                if jacobian is not None:
                    rank = tangent.ndim
                    axes = list(range(jacobian.ndim - rank, jacobian.ndim))
                    parts.append(td.sum(jacobian._t * tangent._t, axis=axes) if rank else jacobian._t * tangent._t)
            if not parts:
                return zeros_like(y) if _zeros(unconnected_gradients) else None
            total = parts[0]
            for p in parts[1:]:
                total = total + p
            return wrap(total)

        return nest.map_structure(one, primals)

