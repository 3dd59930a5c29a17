"""What pickles name: functions that make objects again."""
from . import _core


def tensor(data, dtype, shape):
    return _core._tensor_from_bytes(data, dtype, shape)


def variable(value, name, trainable):
    return _core.Variable(value, name=name, trainable=trainable)


def layer(cls, args, kwargs):
    """A layer as it was made; its Variables and attributes follow."""
    return cls(*args, **kwargs)
