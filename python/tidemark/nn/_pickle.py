"""Copies and pickles of layers and optimizers: the arguments they were made with, their Variables and their attributes."""

import copy
import functools
import types

from .. import _core, _restore
from . import initializers, schedules

_nn = _core.nn


def _remember_arguments(cls):
    """Layers of C++ do not know what they were made with. The record is an object of Python's own, where nobody looks for Variables.

    `holds` tells the garbage collector which references to `args` and `kwargs` the object of C++ has.
    """
    init = cls.__init__

    def __init__(self, *args, **kwargs):
        _, holds = _core._holding(init, self, *args, **kwargs)
        self._arguments = types.SimpleNamespace(args=args, kwargs=kwargs, holds=holds)

    def copying(original):
        def copied(self, *memo):
            new, holds = _core._holding(original, self, *memo)
            for name, value in vars(self).items():
                if name != "_arguments":
                    vars(new)[name] = copy.deepcopy(value, *memo) if memo else value
            made = vars(self).get("_arguments")
            if made is not None:
                new._arguments = types.SimpleNamespace(args=made.args, kwargs=made.kwargs, holds=(made.holds, holds)) if memo else made
            return new

        return copied

    __init__.__doc__ = init.__doc__
    cls.__init__ = __init__
    cls.__copy__, cls.__deepcopy__ = copying(cls.__copy__), copying(cls.__deepcopy__)
    _nn._call_init_of(cls)


def _fields(layer):
    """Its Variables by their places: [("kernel", ...), ("query.kernel", ...)]."""
    places = []
    for name, kind in vars(_native_class(layer)).items():
        value = getattr(layer, name, None) if isinstance(kind, property) else None
        if isinstance(value, _core.Variable):
            places.append((name, value))
        elif isinstance(value, _nn.Projection):
            places += [(f"{name}.{inner}", variable) for inner, variable in _fields(value)]
    return places


def _native_class(layer):
    return next(cls for cls in type(layer).__mro__ if vars(_nn).get(cls.__name__) is cls)


def _reduce(self):
    variables = _fields(self)
    made = self._arguments
    kwargs = made.kwargs
    if all(variable.has_shape for _, variable in variables):  # They have values: nothing is drawn any more.
        kwargs = {name: value for name, value in kwargs.items() if not name.endswith("initializer")}
    if hasattr(self, "policy"):  # A layer made under another global policy is what it was.
        kwargs = {"dtype": self.policy, **kwargs}
    own = {name: value for name, value in self.__dict__.items() if name != "_arguments"}
    return _restore.layer, (type(self), made.args, kwargs), ([each for each in variables if each[1].has_shape], own)


def _set_state(self, state):
    variables, own = state
    for path, variable in variables:
        *owner, name = path.split(".")
        setattr(getattr(self, owner[0]) if owner else self, name, variable)
    self.__dict__.update(own)


def _reduce_sequential(self):
    return type(self), tuple(self[number] for number in range(len(self))), self.__dict__ or None


def _reduce_optimizer(self):
    made = self._arguments
    values = [(name, variable.value()) for name, variable in _nn.named_variables(self)]
    own = {name: value for name, value in self.__dict__.items() if name != "_arguments"}
    return _restore.layer, (type(self), made.args, made.kwargs), (self._trained(), values, own)


def _set_optimizer_state(self, state):
    trained, values, own = state
    self.build(dict(trained))
    variables = dict(_nn.named_variables(self))
    for name, value in values:
        variables[name].assign(value)
    self.__dict__.update(own)


def _remember_recipes(kind, module):
    """Schedules and initializers are made by functions of a module, which a pickle names; those of the user's own are made of his function."""

    def remembering(name, make):
        def made(*args, **kwargs):
            result = make(*args, **kwargs)
            result._recipe = (name, args, kwargs)
            return result

        return functools.update_wrapper(made, make)

    def _reduce(self):
        name, args, kwargs = self._recipe
        return (type(self), args) if name is None else (_restore.made_by, (module.__name__, name, args, kwargs))

    for name, value in list(vars(module).items()):
        if isinstance(value, kind):
            value._recipe = (name, None, None)
        elif callable(value) and not isinstance(value, type):
            setattr(module, name, remembering(name, value))
    kind.__reduce__ = _reduce


def _remember_function(cls):
    init = cls.__init__

    def __init__(self, rate):
        init(self, rate)
        self._recipe = (None, (rate,), {})

    cls.__init__ = functools.update_wrapper(__init__, init)
    _nn._call_init_of(cls)


def _reduce_variable(self):
    return _restore.variable, (self.value(), self.name, self.trainable)


def add_to_layers():
    _core.Variable.__reduce__ = _reduce_variable
    _nn.Sequential.__reduce__ = _reduce_sequential
    for each in vars(_nn).values():
        if isinstance(each, type) and hasattr(each, "__deepcopy__") and each is not _nn.Sequential:
            _remember_arguments(each)
            is_optimizer = issubclass(each, _nn.Optimizer)
            each.__reduce__ = _reduce_optimizer if is_optimizer else _reduce
            each.__setstate__ = _set_optimizer_state if is_optimizer else _set_state
    _remember_recipes(_nn.initializers.Initializer, initializers)
    _remember_recipes(_nn.Schedule, schedules)
    _remember_function(_nn.Schedule)
