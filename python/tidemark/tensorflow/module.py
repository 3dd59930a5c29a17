"""tf.Module: an object whose Variables are found in its attributes."""
import re

from .variable import Variable


def parts(value, seen=None, is_wanted=lambda x: isinstance(x, Variable)):
    """Everything wanted that is reachable from a value's attributes, in order, once each."""
    seen = set() if seen is None else seen
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type(None))):
        return
    seen.add(id(value))
    if is_wanted(value):
        yield value
    if isinstance(value, Variable):
        return
    if isinstance(value, dict):
        children = value.values()
    elif isinstance(value, (list, tuple, set)):
        children = value
    elif isinstance(value, Module) or getattr(value, "_is_keras_object", False):
        children = [v for _, v in sorted(vars(value).items())] if not getattr(value, "_is_keras_object", False) else [v for _, v in value._tracked()]
    else:
        return
    for child in children:
        yield from parts(child, seen, is_wanted)


class Module:
    def __init__(self, name=None):
        self._name = name or re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", type(self).__name__).lower()

    name = property(lambda self: self._name)

    @property
    def variables(self):
        return tuple(parts(self))

    @property
    def trainable_variables(self):
        return tuple(v for v in parts(self) if v.trainable)

    @property
    def non_trainable_variables(self):
        return tuple(v for v in parts(self) if not v.trainable)

    @property
    def submodules(self):
        return tuple(m for m in parts(self, is_wanted=lambda x: isinstance(x, Module)) if m is not self)

    @classmethod
    def with_name_scope(cls, method):
        return method
