"""tf.function: one trace for each shape and dtype of tensors and each value of Python arguments, as in TensorFlow; each trace is a td.function."""
import functools
import inspect
import weakref

import numpy as np
import tidemark as td

from . import dialect, nest
from .errors import UnknownBytes, translated, warn
from .gradients import run_traced
from .shapes import TensorSpec
from .tensor import Tensor, convert, is_tensor, spec_of, wrap
from .variable import IndexedSlices, Variable

_run_eagerly = False
MOST_TRACES = 256


def run_functions_eagerly(run_eagerly):
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly():
    return _run_eagerly


def executing_eagerly():
    return not td.is_tracing()


def inside_function():
    return td.is_tracing()


def _autograph():
    """Imported when a function is first traced."""
    from tidemark import autograph

    return autograph


class _Trace:
    """What a td.function calls while it traces: the user's function on tensors of the trace. It knows its owner weakly, so that nothing needs the
    garbage collector."""

    def __init__(self, owner, arguments, leaves):
        self._owner, self._arguments = weakref.ref(owner), arguments
        self._leaves = [leaf if isinstance(leaf, TensorSpec) else _Argument(leaf) for leaf in leaves]
        self.structure = self.kinds = None  # Of the results; set by the trace.

    def __call__(self, *tensors):
        owner, given = self._owner(), iter(tensors)
        owner.traces += 1
        leaves = [wrap(next(given)) if isinstance(leaf, TensorSpec) else leaf.get() for leaf in self._leaves]
        args, kwargs = nest.pack_sequence_as(self._arguments, leaves)
        with dialect.Tracing():
            result = run_traced(lambda: owner.function_to_run()(*args, **kwargs), tensors)
        parts = [_plain(leaf) for leaf in nest.flatten(result)]
        self.structure = nest.map_structure(lambda _: None, result)
        self.kinds = [_kind(part) for part in parts]
        return [native for part in parts for native in _natives(part)]


class _Argument:
    """A Python value of a trace; objects are not kept alive by it."""

    def __init__(self, value):
        try:
            self.get = weakref.ref(value)
        except TypeError:
            self.get = lambda: value


class ConcreteFunction:
    """One trace: tensors of these specs, and everything else as it was."""

    def __init__(self, owner, arguments, leaves):
        self.leaves = [leaf if isinstance(leaf, TensorSpec) else _key(leaf) for leaf in leaves]
        self.specs = [leaf for leaf in leaves if isinstance(leaf, TensorSpec)]
        self._trace = _Trace(owner, nest.map_structure(lambda _: None, arguments), leaves)
        is_open = any(not spec.shape.is_fully_defined() for spec in self.specs)
        options = {"input_signature": [spec._td() for spec in self.specs]} if is_open else {}
        if owner.jit_compile is False:
            options["jit"] = False
        self._function = td.function(self._trace, name=owner.__name__, autograph=False, **options)

    def __call__(self, *tensors):
        return self.call([convert(t)._t for t in tensors])

    def call(self, tensors):
        try:
            natives = iter(self._function(*tensors))
        except td.Error as error:
            raise translated(error) from error
        leaves = [_rebuilt(kind, natives) for kind in self._trace.kinds]
        return nest.pack_sequence_as(self._trace.structure, leaves)

    def plan(self, **options):
        """The memory of a call, known before it runs: a td.Plan."""
        return self._function.plan(*[spec._td() for spec in self.specs], **options)

    @property
    def structured_input_signature(self):
        return tuple(self.specs), {}


def _plain(leaf):
    """A result of a trace: a tensor, slices, or None. Python's numbers become tensors, as in TensorFlow."""
    if leaf is None or isinstance(leaf, IndexedSlices):
        return leaf
    return convert(leaf)


def _kind(part):
    return "none" if part is None else "slices" if isinstance(part, IndexedSlices) else "tensor"


def _natives(part):
    if part is None:
        return []
    if isinstance(part, IndexedSlices):
        return [part.values._t, part.indices._t, part.dense_shape._t]
    return [part._t]


def _rebuilt(kind, natives):
    if kind == "none":
        return None
    if kind == "slices":
        return IndexedSlices(*(wrap(next(natives)) for _ in range(3)))
    return wrap(next(natives))


class Function:
    """What tf.function gives."""

    def __init__(self, f, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, name=None):
        functools.update_wrapper(self, f, updated=())
        self.__name__ = name or getattr(f, "__name__", type(f).__name__).replace("<lambda>", "lambda")
        self._f, self._autograph, self.jit_compile, self._reduce = f, autograph, jit_compile, reduce_retracing
        self._signature = None if input_signature is None else tuple(input_signature)
        self._parameters = _parameters(f)
        self._concrete, self._warned = {}, False  # By key, the most recently made last.
        self._methods = {}
        self._runs_op_by_op = False  # What it holds has no size before it runs.
        self.traces = 0

    python_function = property(lambda self: self._f)
    input_signature = property(lambda self: self._signature)

    def function_to_run(self):
        """One that reads a Dataset runs without a trace, as it is."""
        return _autograph().convert(self._f) if self._autograph and td.is_tracing() else self._f

    def __call__(self, *args, **kwargs):
        if _run_eagerly:
            return self._f(*args, **kwargs)
        if self._runs_op_by_op and not td.is_tracing():
            return self._run_op_by_op(args, kwargs)
        concrete, tensors = self._find(args, kwargs)
        try:
            return concrete.call(tensors)
        except UnknownBytes as error:
            if td.is_tracing() or self.jit_compile:
                raise
            self._runs_op_by_op = True
            warn(f"{self.__name__} is not compiled: every call runs it as Python, op by op. {error}")
        return self._run_op_by_op(args, kwargs)

    def _run_op_by_op(self, args, kwargs):
        args, kwargs = nest.map_structure(_argument, self._bound(args, kwargs))
        return nest.map_structure(_plain, self._f(*args, **kwargs))

    def _find(self, args, kwargs):
        arguments = self._bound(args, kwargs)
        if self._signature is not None:
            arguments = self._signed(*arguments)
        leaves = [_argument(leaf) for leaf in nest.flatten(arguments)]
        specs = [spec_of(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        tensors = [leaf._t for leaf in leaves if isinstance(leaf, Tensor)]
        return self._concrete_of(arguments, specs), tensors

    def _concrete_of(self, arguments, specs):
        key = (_structure_key(arguments), tuple(_key(spec) for spec in specs))
        found = self._concrete.get(key)
        if found is None and self._signature is not None:
            specs, key = self._with_signature(arguments, specs)
            found = self._concrete.get(key)
        if found is None and self._reduce:
            specs, key = self._generalized(arguments, specs, key)
            found = self._concrete.get(key)
        if found is None:
            found = self._concrete[key] = ConcreteFunction(self, arguments, specs)
            self._forget_oldest()
        return found

    def _forget_oldest(self):
        """The cache is bounded; a function that fills it is told so, once."""
        if len(self._concrete) <= MOST_TRACES:
            return
        del self._concrete[next(iter(self._concrete))]
        if not self._warned:
            self._warned = True
            warn(f"{self.__name__} was traced for {MOST_TRACES} kinds of arguments, and the oldest are dropped: pass Python numbers as tensors, "
                 "or use reduce_retracing=True for sizes")

    def _with_signature(self, arguments, specs):
        wanted = iter(nest.flatten(self._signature))
        specs = [next(wanted, spec) if isinstance(spec, TensorSpec) else spec for spec in specs]
        return specs, (_structure_key(arguments), tuple(_key(spec) for spec in specs))

    def _generalized(self, arguments, specs, key):
        """From the second shape on, sizes that differ are open."""
        structure, parts = key
        for (other_structure, other_parts), concrete in reversed(self._concrete.items()):
            if other_structure != structure or len(other_parts) != len(parts):
                continue
            pairs = list(zip(specs, concrete.leaves))
            if all(_is_like(a, b) for a, b in pairs):
                specs = [a.most_specific_compatible_type(b) if isinstance(a, TensorSpec) else a for a, b in pairs]
                return specs, (structure, tuple(_key(spec) for spec in specs))
        return specs, key

    def _signed(self, args, kwargs):
        """Arguments as the input signature wants them: numbers and lists become tensors, other shapes and dtypes are errors."""
        wanted = self._signature
        if len(args) < len(wanted):
            raise TypeError(f"{self.__name__}: {len(wanted)} arguments are in the input_signature, {len(args)} were passed")
        return (*map(self._as_specified, wanted, args), *args[len(wanted):]), kwargs

    def _as_specified(self, spec, value):
        if not isinstance(spec, TensorSpec):
            return self._parts_as_specified(spec, value) if nest.is_nested(spec) else value
        try:
            tensor = convert(value, None if is_tensor(value) else spec.dtype)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self.__name__}: the input_signature has {spec}, and the argument is a {type(value).__name__}: {error}") from None
        if not spec.is_compatible_with(tensor):
            raise TypeError(f"{self.__name__}: the input_signature has {spec}, and the argument is {tensor.dtype.name}{tensor.shape}")
        return tensor

    def _parts_as_specified(self, spec, value):
        if isinstance(spec, dict) and isinstance(value, dict) and spec.keys() == value.keys():
            return type(value)((key, self._as_specified(spec[key], part)) for key, part in value.items())
        if isinstance(spec, (list, tuple)) and isinstance(value, (list, tuple)) and len(spec) == len(value):
            parts = [self._as_specified(*pair) for pair in zip(spec, value)]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        raise TypeError(f"{self.__name__}: the input_signature has {spec}, and the argument is {value!r}")

    def _bound(self, args, kwargs):
        """Arguments in one form, however they were passed: defaults are filled in."""
        if self._parameters is None:
            return args, kwargs
        try:
            bound = self._parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}(): {error}") from None
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def get_concrete_function(self, *args, **kwargs):
        arguments = self._bound(args if args or kwargs else self._signature or (), kwargs)
        specs = [leaf if isinstance(leaf, TensorSpec) else _argument(leaf) for leaf in nest.flatten(arguments)]
        specs = [spec_of(s) if isinstance(s, Tensor) else s for s in specs]
        return self._concrete_of(arguments, specs)

    def plan(self, *args, **kwargs):
        """The memory of a call with such arguments (tensors or TensorSpecs), known before it runs."""
        return self.get_concrete_function(*args, **kwargs).plan()

    def experimental_get_tracing_count(self):
        return self.traces

    def __get__(self, instance, owner=None):
        """A method: traces belong to the instance, which they do not keep alive."""
        if instance is None:
            return self
        known = self._methods.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        gone = weakref.ref(instance, lambda _, key=id(instance): self._methods.pop(key, None))
        made = Function(_weak_method(self._f, gone), self._signature, self._autograph, self.jit_compile, self._reduce)
        self._methods[id(instance)] = gone, made
        return made

    def __repr__(self):
        return f"<tidemark.tensorflow Function {self.__name__}, {self.traces} traces>"


def _weak_method(f, instance):
    @functools.wraps(f)
    def method(*args, **kwargs):
        return _autograph().converted(f)(instance(), *args, **kwargs) if td.is_tracing() else f(instance(), *args, **kwargs)

    parameters = list(inspect.signature(f).parameters.values())[1:]
    method.__signature__ = inspect.Signature(parameters)
    return method


def _parameters(f):
    try:
        return inspect.signature(f)
    except (TypeError, ValueError):
        return None


def _argument(leaf):
    """NumPy's arrays are tensors; Python's values stay as they are."""
    if isinstance(leaf, IndexedSlices) or isinstance(leaf, Variable):
        return leaf
    if isinstance(leaf, (np.ndarray, np.generic, td.Tensor)):
        return convert(leaf)
    return Tensor(leaf._t) if isinstance(leaf, Tensor) else leaf


def _key(leaf):
    """What tells traces apart: the value of plain Python values, and which object others are."""
    if isinstance(leaf, TensorSpec):
        return leaf
    if leaf is None or isinstance(leaf, (bool, int, float, str, bytes)):
        return type(leaf), leaf
    return _Identity(leaf)


class _Identity:
    """An object as part of a key, which does not keep it alive."""

    def __init__(self, value):
        self._id = id(value)
        try:
            self._ref = weakref.ref(value)
        except TypeError:
            self._ref = lambda: value

    def __hash__(self):
        return self._id

    def __eq__(self, other):
        return isinstance(other, _Identity) and self._id == other._id and self._ref() is not None and self._ref() is other._ref()


def _structure_key(structure):
    if isinstance(structure, dict):
        return tuple((key, _structure_key(structure[key])) for key in sorted(structure))
    if isinstance(structure, (list, tuple)):
        return (type(structure).__name__, *(_structure_key(each) for each in structure))
    return None


def _is_like(spec, other):
    """Whether two arguments could share a trace with open sizes."""
    if isinstance(spec, TensorSpec) and isinstance(other, TensorSpec):
        return spec.dtype == other.dtype and spec.shape.rank == other.shape.rank
    return not isinstance(other, TensorSpec) and _key(spec) == other


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False, experimental_implements=None,
             experimental_autograph_options=None, experimental_attributes=None, experimental_relax_shapes=None, experimental_compile=None,
             experimental_follow_type_hints=None, name=None):
    """The function, traced and planned; a decorator with or without options."""
    options = dict(input_signature=input_signature, autograph=autograph, jit_compile=jit_compile if experimental_compile is None else experimental_compile,
                   reduce_retracing=bool(reduce_retracing or experimental_relax_shapes), name=name)
    if func is None:
        return lambda f: Function(f, **options)
    return Function(func, **options)
