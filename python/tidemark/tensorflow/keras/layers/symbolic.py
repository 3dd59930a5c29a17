"""Symbolic tensors of functional models: shapes, dtypes, and which layer made them."""
import tidemark as td

from ... import dtypes, nest
from ...shapes import TensorShape
from ...tensor import wrap


class KerasTensor:
    """A tensor of a model that is being put together."""

    _is_symbolic = True
    __array_priority__ = 200

    def __init__(self, shape, dtype="float32", name=None, node=None):
        self.shape, self.dtype = tuple(shape), dtypes.as_dtype(dtype).name
        self.name, self._node = name or "keras_tensor", node

    ndim = property(lambda self: len(self.shape))

    def __getitem__(self, key):
        return Operation(lambda x: x[key], "get_item")(self)

    def __repr__(self):
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype}, name={self.name}>"

    def __iter__(self):
        raise TypeError("Iterating over a symbolic KerasTensor is not supported.")

    def __bool__(self):
        raise TypeError("A symbolic KerasTensor has no value: use it in layers, or write a Layer whose call() has the condition")


def is_symbolic(structure):
    return any(isinstance(x, KerasTensor) for x in nest.flatten(structure))


class Node:
    """One symbolic call of a layer."""

    def __init__(self, layer, args, kwargs):
        self.layer, self.args, self.kwargs, self.outputs = layer, args, kwargs, None

    def inputs(self):
        return [x for x in nest.flatten((self.args, self.kwargs)) if isinstance(x, KerasTensor)]


def _stand_in(x, lead, other):
    """Zeros of a symbolic tensor's shape, with small sizes where it is open."""
    if not isinstance(x, KerasTensor):
        return x
    sizes = [(lead if i == 0 else other) if n is None else n for i, n in enumerate(x.shape)]
    return wrap(td.zeros(sizes, dtypes.as_dtype(x.dtype)._td))


def _result_shapes(layer, args, kwargs, lead, other):
    stand = nest.map_structure(lambda x: _stand_in(x, lead, other), (args, kwargs))
    result = layer._run(*stand)
    layer._clear_losses()
    return result


def call_symbolically(layer, args, kwargs, records=True):
    """The symbolic result: the layer runs on zeros, twice where sizes are open, to see which sizes of the result depend on them."""
    shapes = nest.map_structure(lambda x: TensorShape(x.shape) if isinstance(x, KerasTensor) else None, args[0])
    if not layer.built and getattr(layer, "builds_from_shape", True):
        layer.build_for(shapes)
    first = _result_shapes(layer, args, kwargs, 1, 32)
    has_open = any(None in x.shape for x in nest.flatten((args, kwargs)) if isinstance(x, KerasTensor))
    second = _result_shapes(layer, args, kwargs, 2, 33) if has_open else first
    node = Node(layer, args, kwargs)

    def made(a, b):
        sizes = [m if m == n else None for m, n in zip(a.shape, b.shape)]
        return KerasTensor(sizes, a.dtype, f"{layer.name}_output", node)

    node.outputs = nest.map_structure(made, first, second)
    if records:
        layer._nodes.append(node)
    return node.outputs


def Operation(f, name):
    """A function of tensors as a layer."""
    from .base import Layer

    class Op(Layer):
        def call(self, *args):
            return f(*args)

    return Op(name=None)


def _add_operators():
    import operator

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "le", "gt", "ge"):
        f = getattr(operator, name)
        setattr(KerasTensor, f"__{name}__", lambda self, other, f=f, name=name: _applied(f, name, self, other))
        if name in ("add", "sub", "mul", "truediv", "pow", "matmul"):
            setattr(KerasTensor, f"__r{name}__", lambda self, other, f=f, name=name: _applied(f, name, other, self))
    KerasTensor.__neg__ = lambda self: Operation(operator.neg, "neg")(self)


def _applied(f, name, a, b):
    if isinstance(a, KerasTensor):
        return Operation(f, name)(a, b)
    return Operation(lambda y, x: f(x, y), name)(b, a)


_add_operators()


def evaluate(inputs, outputs, values, training=None):
    """The values of symbolic outputs for values of the inputs: each layer's call once."""
    known = {id(x): v for x, v in zip(inputs, values)}

    def value_of(x):
        if not isinstance(x, KerasTensor):
            return x
        if id(x) not in known:
            node = x._node
            if node is None:
                raise ValueError(f"{x!r} is not reachable from the inputs of the model")
            args, kwargs = nest.map_structure(value_of, (node.args, node.kwargs))
            if training is not None and "training" not in kwargs:
                kwargs["training"] = training
            result = node.layer(*args, **kwargs)
            for made, value in zip(nest.flatten(node.outputs), nest.flatten(result)):
                known[id(made)] = value
        return known[id(x)]

    for node in nodes_of(outputs):  # In order, so that a deep model needs no deep recursion.
        value_of(nest.flatten(node.outputs)[0])
    return nest.map_structure(value_of, outputs)


def nodes_of(outputs):
    """The calls that the outputs depend on, each after those it reads."""
    order, seen, stack = [], set(), [(x._node, False) for x in reversed(nest.flatten(outputs)) if x._node is not None]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack += [(x._node, False) for x in reversed(node.inputs()) if x._node is not None and id(x._node) not in seen]
    return order


