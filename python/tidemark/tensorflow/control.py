"""tf.cond, tf.case, tf.switch_case, tf.while_loop, tf.scan, tf.map_fn and their kin."""
import tidemark as td

from . import dtypes, nest
from .errors import InvalidArgumentError, UnknownBytes
from .shapes import TensorShape, TensorSpec
from .tensor import Tensor, convert, integer, is_tensor, op, wrap
from .tensor_array import TensorArray


def _leaf(value):
    """A loop variable or a result: a tensor, or an array of them."""
    return value if value is None or isinstance(value, TensorArray) else convert(value)


class _Packed:
    """A structure of tensors as the tuple of td.Tensors that Tidemark's control flow takes, and back."""

    def __init__(self, structure):
        self.structure = nest.map_structure(_leaf, structure)
        self.is_nested = nest.is_nested(structure)

    def natives(self):
        return tuple(native for leaf in nest.flatten(self.structure) for native in _inner(leaf))

    def filled(self, natives):
        given = iter(natives)
        leaves = [_outer(leaf, given) for leaf in nest.flatten(self.structure)]
        return nest.pack_sequence_as(self.structure, leaves)


def _inner(leaf):
    if leaf is None:
        return ()
    return (leaf._room()[0],) if isinstance(leaf, TensorArray) else (leaf._t,)


def _outer(leaf, natives):
    if leaf is None:
        return None
    return leaf._in_loop(next(natives), leaf._room()[1]) if isinstance(leaf, TensorArray) else wrap(next(natives))


# ---- branches ------------------------------------------------------------------------------------


def _condition(pred):
    if isinstance(pred, bool):
        return pred
    x = convert(pred)
    if x.ndim:
        raise ValueError(f"cond: the condition must be one bool, and this is {x.dtype.name}{x.shape}; write tf.reduce_all or tf.reduce_any")
    return x._t if x.dtype.is_bool else td.not_equal(x._t, 0)


class _Branches:
    """Functions whose results have one structure."""

    def __init__(self, what):
        self.what, self.first = what, None

    def traced(self, f):
        def branch():
            packed = _Packed(f())
            if self.first is None:
                self.first = packed
            else:
                _check_same(self.what, self.first.structure, packed.structure)
            return packed.natives()

        return branch


def _check_same(what, a, b):
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what}: the branches return different structures: {error}") from None
    for x, y in zip(nest.flatten(a), nest.flatten(b)):
        if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype is not y.dtype:
            raise TypeError(f"{what}: one branch returns {x.dtype.name}{x.shape} and another {y.dtype.name}{y.shape}; write tf.cast(x, tf.{x.dtype.name})")


@op
def cond(pred, true_fn=None, false_fn=None):
    condition = _condition(pred)
    if isinstance(condition, bool) or not td.is_traced(condition):
        return (true_fn if bool(condition) else false_fn)()
    branches = _Branches("cond")
    natives = td.cond(condition, branches.traced(true_fn), branches.traced(false_fn))
    return branches.first.filled(natives)


def _result(value):
    return value if value is None or is_tensor(value) and not isinstance(value, Tensor) else _leaf(value)


@op
def case(pred_fn_pairs, default=None, exclusive=False, strict=False):
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    otherwise = default or pairs[-1][1]
    return _chained(pairs if default is not None else pairs[:-1], otherwise)


def _chained(pairs, otherwise):
    if not pairs:
        return nest.map_structure(_result, otherwise())
    (pred, f), *rest = pairs
    return cond(pred, f, lambda: _chained(rest, otherwise))


@op
def switch_case(branch_index, branch_fns, default=None):
    if isinstance(branch_fns, dict):
        branch_fns = sorted(branch_fns.items())
    if branch_fns and isinstance(branch_fns[0], tuple):
        branch_fns = [f for _, f in sorted(branch_fns, key=lambda pair: pair[0])]
    if not is_tensor(branch_index):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    fns = list(branch_fns) + ([default] if default is not None else [])
    index = convert(branch_index)._t
    count = len(fns)
    index = td.where(td.logical_and(index >= 0, index < count), index, count - 1)
    if not td.is_traced(index):
        return nest.map_structure(_result, fns[int(index)]())
    branches = _Branches("switch_case")
    natives = td.switch_case(index, *[branches.traced(f) for f in fns])
    return branches.first.filled(natives)


# ---- loops ---------------------------------------------------------------------------------------


@op
def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False, maximum_iterations=None):
    if not loop_vars:
        raise ValueError("'loop_vars' must be provided.")
    start = _Packed(list(loop_vars) if isinstance(loop_vars, (list, tuple)) else loop_vars)
    is_list = isinstance(loop_vars, (list, tuple))

    def call(f, natives):
        filled = start.filled(natives)
        return f(*filled) if is_list else f(filled)

    def trip(*natives):
        result = call(body, natives)
        result = list(result) if is_list and isinstance(result, (list, tuple)) else [result] if is_list else result
        end = _Packed(result)
        _check_carried(start.structure, end.structure)
        if td.is_tracing():
            _check_sizes(start.structure, end.structure, shape_invariants is not None)
        return end.natives()

    def goes_on(*natives):
        return _condition(call(cond, natives))

    options = {} if maximum_iterations is None else {"max_iterations": integer(maximum_iterations, "maximum_iterations")}
    if shape_invariants is not None:
        options["shape_invariants"] = [_open(s) for s in _shapes(shape_invariants)]
    elif not td.is_tracing():  # Sizes may change from trip to trip.
        options["shape_invariants"] = [_open([None] * len(native.shape)) for native in start.natives() if native is not None]
    if any(native is None for native in start.natives()):
        natives = _loop_with_unset(goes_on, trip, start.natives(), options.get("max_iterations"))
    else:
        natives = td.while_loop(goes_on, trip, start.natives(), **options)
    result = start.filled(natives)
    return type(loop_vars)(result) if isinstance(loop_vars, (list, tuple)) and not hasattr(loop_vars, "_fields") else result


def _loop_with_unset(goes_on, trip, start, most):
    """A loop whose arrays get the shape of their elements from the first trip."""
    from tidemark.autograph import backend

    count = [] if most is None else [backend.integer(0)]

    def test(carries):
        own = carries[: len(carries) - len(count)]
        more = goes_on(*own)
        return more if most is None else td.logical_and(carries[-1] < most, more)

    def body(_, carries, slices):
        own = carries[: len(carries) - len(count)]
        return [*trip(*own), *([carries[-1] + 1] if count else [])]

    carries = [*start, *count]
    results = backend.loop("while", carries, [f"loop variable {i}" for i in range(len(carries))], body, test, None, None, [])
    return results[: len(start)]


def _check_carried(start, end):
    try:
        nest.assert_same_structure(start, end, check_types=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"while_loop: the body returns another structure than loop_vars: {error}") from None
    for before, after in zip(nest.flatten(start), nest.flatten(end)):
        if isinstance(before, Tensor) and isinstance(after, Tensor) and before.dtype is not after.dtype:
            raise TypeError(f"while_loop: a loop variable is {before.dtype.name}{before.shape} before a trip and {after.dtype.name}{after.shape} after it; "
                            f"write tf.cast(x, tf.{before.dtype.name})")


def _check_sizes(start, end, may_change):
    for before, after in zip(nest.flatten(start), nest.flatten(end)):
        if not isinstance(before, Tensor) or not isinstance(after, Tensor) or before.shape.is_compatible_with(after.shape):
            continue
        text = f"while_loop: a loop variable is {before.dtype.name}{before.shape} before a trip and {after.dtype.name}{after.shape} after it"
        if may_change:
            raise UnknownBytes(f"{text}, and so its bytes are not known before the run; collect in tf.TensorArray(dtype, size=n)")
        raise ValueError(f"{text}; keep its shape, or collect in tf.TensorArray(dtype, size=n)")


def _shapes(structure):
    if isinstance(structure, TensorShape):
        return [structure]
    if isinstance(structure, dict):
        return [s for key in sorted(structure) for s in _shapes(structure[key])]
    return [s for each in structure for s in _shapes(each)]


def _open(shape):
    return [td.open if d is None else d for d in shape]


def _elements(elems):
    flat = [convert(e) for e in nest.flatten(elems)]
    return nest.pack_sequence_as(elems, flat), flat


def _first(elems, flat):
    return nest.pack_sequence_as(elems, [wrap(x._t[0]) for x in flat]), [x._t[1:] for x in flat]


@op
def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, infer_shape=True, reverse=False):
    elems, flat = _elements(elems)
    natives = [td.flip(x._t, 0) if reverse else x._t for x in flat]
    first = None
    if initializer is None:
        first = [n[0] for n in natives]
        initializer = nest.pack_sequence_as(elems, [wrap(f) for f in first])
        natives = [n[1:] for n in natives]
    start = _Packed(initializer)

    def body(carried, slices):
        result = _Packed(fn(start.filled(carried), nest.pack_sequence_as(elems, [wrap(s) for s in slices])))
        _check_carried(start.structure, result.structure)
        return result.natives(), result.natives()

    _, stacked = td.scan(body, start.natives(), tuple(natives))
    if first is not None:
        stacked = [td.concat([td.expand_dims(f, 0), s], 0) for f, s in zip(start.natives(), stacked)]
    if reverse:
        stacked = [td.flip(s, 0) for s in stacked]
    return start.filled(stacked)


def _fold(fn, elems, initializer, reverse):
    elems, flat = _elements(elems)
    natives = [td.flip(x._t, 0) if reverse else x._t for x in flat]
    if initializer is None:
        initializer = nest.pack_sequence_as(elems, [wrap(n[0]) for n in natives])
        natives = [n[1:] for n in natives]
    start = _Packed(initializer)

    def body(carried, slices):
        result = _Packed(fn(start.filled(carried), nest.pack_sequence_as(elems, [wrap(s) for s in slices])))
        return result.natives(), ()

    state, _ = td.scan(body, start.natives(), tuple(natives))
    return start.filled(state)


@op
def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False):
    return _fold(fn, elems, initializer, False)


@op
def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False):
    return _fold(fn, elems, initializer, True)


# ---- maps ----------------------------------------------------------------------------------------


def _mapped(run, fn, elems, check, **options):
    elems, flat = _elements(elems)
    results = []

    def body(*slices):
        packed = _Packed(fn(nest.pack_sequence_as(elems, [wrap(s) for s in slices])))
        check(packed)
        results[:] = [packed]
        return packed.natives()

    natives = run(body, tuple(x._t for x in flat), **options)
    return results[0].filled(natives)


@op
def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False, infer_shape=True, fn_output_signature=None):
    signature = fn_output_signature if fn_output_signature is not None else dtype

    def check(packed):
        wanted = [_dtype(s) for s in nest.flatten(signature)] if signature is not None else [x.dtype for x in nest.flatten(_elements(elems)[0])]
        for result, want in zip(nest.flatten(packed.structure), wanted):
            if isinstance(result, Tensor) and result.dtype is not want:
                raise InvalidArgumentError(f"map_fn: the function returns {result.dtype.name} and {want.name} was expected; write fn_output_signature=tf.{result.dtype.name}")

    options = {"parallel_iterations": parallel_iterations} if parallel_iterations else {}
    return _mapped(td.map_fn, fn, elems, check, **options)


def _dtype(signature):
    return signature.dtype if isinstance(signature, TensorSpec) else dtypes.as_dtype(signature)


@op
def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    return _mapped(td.vectorized_map, fn, elems, lambda packed: None)
