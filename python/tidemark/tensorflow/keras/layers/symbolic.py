"""Symbolic tensors of functional models: shapes, dtypes, and which layer made them."""
import weakref

import tidemark as td

from ... import dtypes, nest
from ...shapes import TensorShape, TensorSpec
from ...tensor import wrap


class KerasTensor:
    """A tensor of a model that is being put together."""

    _is_symbolic = True
    __array_priority__ = 200

    def __init__(self, shape, dtype="float32", name=None, node=None, number=0):
        self.shape, self.dtype = tuple(shape), dtypes.as_dtype(dtype).name
        self.name, self._node, self._number = name or "keras_tensor", node, number  # Of the node's outputs it is this one.

    def _key(self):
        return id(self) if self._node is None else (id(self._node), self._number)

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
    """One symbolic call of a layer. Tensors hold their node, and a node its layer; a layer knows its nodes weakly, so that nothing is a cycle."""

    def __init__(self, layer, args, kwargs, specs):
        self.layer, self.args, self.kwargs = layer, args, kwargs
        self._specs = specs  # (shape, dtype) in the structure of the outputs.

    @property
    def outputs(self):
        number = iter(range(len(nest.flatten(self._specs))))
        return nest.map_structure(lambda s: KerasTensor(s.shape, s.dtype, f"{self.layer.name}_output", self, next(number)), self._specs)

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
    specs = nest.map_structure(lambda a, b: TensorSpec([m if m == n else None for m, n in zip(a.shape, b.shape)], a.dtype), first, second)
    node = Node(layer, args, kwargs, specs)
    if records:
        layer._nodes = [known for known in layer._nodes if known() is not None] + [weakref.ref(node)]
    return node.outputs


def Operation(f, name):
    """A function of tensors as a layer."""
    from .base import OperationLayer  # It is made of this module.

    return OperationLayer(f, name)


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
    """The values of symbolic outputs for values of the inputs: each layer's call once, each after those it reads."""
    known = {x._key(): v for x, v in zip(inputs, values)}

    def value_of(x):
        if not isinstance(x, KerasTensor):
            return x
        if x._key() not in known:
            raise ValueError(f"{x!r} is not reachable from the inputs of the model")
        return known[x._key()]

    for node in nodes_of(outputs):
        if (id(node), 0) in known:  # An input of the model.
            continue
        args, kwargs = nest.map_structure(value_of, (node.args, node.kwargs))
        if training is not None and "training" not in kwargs:
            kwargs["training"] = training
        for number, value in enumerate(nest.flatten(node.layer(*args, **kwargs))):
            known[id(node), number] = value
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


