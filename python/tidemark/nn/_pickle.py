"""Pickles of layers: the arguments they were made with, their Variables and their attributes."""

import types

from .. import _core, _restore

_nn = _core.nn


def _remember_arguments(cls):
    """Layers of C++ do not know what they were made with. The record is an object of Python's own, where nobody looks for Variables."""
    init = cls.__init__

    def __init__(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._arguments = types.SimpleNamespace(args=args, kwargs=kwargs)

    def copying(original):
        def copied(self, *memo):
            new = original(self, *memo)
            if hasattr(self, "_arguments"):
                new._arguments = self._arguments
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


def _reduce_variable(self):
    return _restore.variable, (self.value(), self.name, self.trainable)


def add_to_layers():
    _core.Variable.__reduce__ = _reduce_variable
    _nn.Sequential.__reduce__ = _reduce_sequential
    for each in vars(_nn).values():
        if isinstance(each, type) and hasattr(each, "__deepcopy__") and not issubclass(each, (_nn.Optimizer, _nn.Sequential)):
            _remember_arguments(each)
            each.__reduce__, each.__setstate__ = _reduce, _set_state
