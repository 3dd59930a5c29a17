"""What pickles name: functions that make objects again."""
from . import _core


def tensor(data, dtype, shape):
    return _core._tensor_from_bytes(data, dtype, shape)


def variable(value, name, trainable):
    return _core.Variable(value, name=name, trainable=trainable)


def made_by(module, name, args, kwargs):
    """What a function of td.nn.schedules or td.nn.initializers made, or what is there under the name."""
    import importlib

    found = getattr(importlib.import_module(module), name)
    return found if args is None else found(*args, **kwargs)


def layer(cls, args, kwargs):
    """A layer as it was made; its Variables and attributes follow."""
    return cls(*args, **kwargs)
