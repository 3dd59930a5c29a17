"""tf.keras.layers.Layer: weights made at the first call, found in attributes, and symbolic calls for functional models."""
import inspect

import numpy as np
import tidemark as td

from ... import dtypes, nest
from ...shapes import TensorShape
from ...tensor import Tensor, convert, is_tensor, wrap
from ...variable import Variable
from .. import constraints, mixed_precision, regularizers
from ..backend import KerasVariable, snake, unique_name
from ..initializers import get as get_initializer
from .symbolic import KerasTensor, call_symbolically, is_symbolic

_training = []  # Whether the outer layers that are running train.


class Layer:
    """Weights, and call(inputs)."""

    _is_keras_object = True

    def __init__(self, name=None, trainable=True, dtype=None, activity_regularizer=None, input_shape=None, **options):
        if options:
            raise TypeError(f"{type(self).__name__}: unknown options {sorted(options)}")
        self.name = name or unique_name(snake(type(self).__name__))
        self._trainable, self.built = trainable, False
        self.dtype_policy = mixed_precision.get(dtype)
        self._own, self._added_losses, self.activity_regularizer = [], [], regularizers.get(activity_regularizer)
        self.supports_masking = False
        self._nodes = []

    compute_dtype = property(lambda self: self.dtype_policy.compute_dtype)
    variable_dtype = property(lambda self: self.dtype_policy.variable_dtype)
    dtype = property(lambda self: self.dtype_policy.variable_dtype)

    # ---- weights ---------------------------------------------------------------------------------

    def add_weight(self, shape=None, initializer=None, dtype=None, trainable=True, autocast=True, regularizer=None, constraint=None, aggregation=None, name=None, **options):
        initializer = get_initializer(initializer) or get_initializer("glorot_uniform")
        shape = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
        v = KerasVariable(shape, initializer, dtype or self.dtype, trainable, name or "variable", regularizers.get(regularizer), constraints.get(constraint))
        self._own.append(v)
        return v

    add_variable = add_weight

    def _tracked(self):
        """Attributes that may hold weights, in the order of their creation."""
        return [(key, value) for key, value in vars(self).items() if key not in ("_nodes", "_own", "_added_losses", "optimizer", "history")]

    def _checkpoint_parts(self):
        return [*((v.name if len([w for w in self._own if w.name == v.name]) == 1 else f"{v.name}_{i}", v) for i, v in enumerate(self._own)), *self._tracked()]

    def _sublayers(self):
        """Layers in attributes, lists and dicts, once each."""
        found = {}
        for _, value in self._tracked():
            _find_layers(value, found)
        return list(found.values())

    def _own_weights(self):
        seen, own = set(), []
        others = [v for _, value in self._tracked() for v in nest.flatten(value) if isinstance(v, Variable)]
        for v in [*[w for w in self._own if w.trainable], *[w for w in self._own if not w.trainable], *others]:
            if id(v) not in seen:
                seen.add(id(v))
                own.append(v)
        return own

    @property
    def weights(self):
        seen, found = set(), []
        for v in [*self._own_weights(), *(w for layer in self._sublayers() for w in layer.weights)]:
            if id(v) not in seen:
                seen.add(id(v))
                found.append(v)
        return found

    variables = property(lambda self: self.weights)

    @property
    def trainable_weights(self):
        if not self._trainable:
            return []
        own = [v for v in self._own_weights() if v.trainable]
        seen = {id(v) for v in own}
        for layer in self._sublayers():
            for v in layer.trainable_weights:
                if id(v) not in seen:
                    seen.add(id(v))
                    own.append(v)
        return own

    trainable_variables = property(lambda self: self.trainable_weights)

    @property
    def non_trainable_weights(self):
        trained = {id(v) for v in self.trainable_weights}
        return [v for v in self.weights if id(v) not in trained]

    non_trainable_variables = property(lambda self: self.non_trainable_weights)

    @property
    def trainable(self):
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        for layer in self._sublayers():
            layer.trainable = value

    def get_weights(self):
        return [np.array(v.numpy()) for v in self.weights]

    def set_weights(self, weights):
        own = self.weights
        if len(own) != len(weights):
            raise ValueError(f"You called `set_weights(weights)` on layer '{self.name}' with a weight list of length {len(weights)}, but the layer was expecting {len(own)} weights.")
        for v, value in zip(own, weights):
            value = np.asarray(value)
            if tuple(value.shape) != tuple(v.shape):
                raise ValueError(f"Layer {self.name} weight shape {tuple(v.shape)} is not compatible with provided weight shape {value.shape}.")
        for v, value in zip(own, weights):
            v.assign(convert(np.asarray(value), v.dtype))

    def count_params(self):
        return sum(int(np.prod(list(v.shape), dtype=np.int64)) for v in self.weights)

    # ---- losses ----------------------------------------------------------------------------------

    def add_loss(self, loss):
        for each in nest.flatten(loss):
            self._added_losses.append(convert(each()) if callable(each) and not is_tensor(each) else convert(each))

    @property
    def losses(self):
        found = list(self._added_losses)
        found += [v.regularizer(v) for v in self._own if v.regularizer is not None and v.trainable]
        return found + [loss for layer in self._sublayers() for loss in layer.losses]

    def _clear_losses(self):
        self._added_losses = []
        for layer in self._sublayers():
            layer._clear_losses()

    # ---- calls -----------------------------------------------------------------------------------

    def build(self, input_shape):
        """Makes the weights for inputs of this shape. A layer without weights has nothing to do."""

    def build_for(self, shape):
        if not self.built:
            self.build(shape)
            self.built = True

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        own = cls.__dict__.get("build")
        if own is not None:  # A call of build() by hand counts.
            cls.build = _marking(own)

    def call(self, *args, **kwargs):
        raise NotImplementedError(f"Layer {type(self).__name__} does not have a `call()` method implemented.")

    def compute_mask(self, inputs, previous_mask=None):
        return previous_mask

    def __call__(self, *args, **kwargs):
        if is_symbolic((args, kwargs)):
            return call_symbolically(self, args, kwargs)
        args = self._arguments(args)
        with mixed_precision.scope(self.dtype_policy):
            return self._run(args, kwargs)

    def _arguments(self, args):
        return tuple(_as_tensors(a, self.compute_dtype) for a in args)

    def _run(self, args, kwargs):
        parameters = _parameters(type(self).call)
        if not self.built:
            self.build_for(_shapes(args[0]) if args else None)
        given = dict(kwargs)
        training = given.get("training")
        if training is None and "training" in parameters:
            inherited = _training[-1] if _training else None
            given["training"] = inherited if inherited is not None else _default(type(self).call, "training")
        elif "training" not in parameters:
            training = given.pop("training", None)
        mask = self._mask_of(args, given, parameters)
        outer = given.get("training") if given.get("training") is not None else training
        _training.append(outer if outer is not None else _training[-1] if _training else None)
        try:
            self._added_losses = []
            result = self.call(*args, **given)
        finally:
            _training.pop()
        self._after(result, args, mask)
        return result

    def _mask_of(self, args, given, parameters):
        masks = [getattr(x, "_mask", None) for x in nest.flatten(args[0])] if args else []
        mask = masks[0] if len(masks) == 1 else None
        if "mask" in parameters and given.get("mask") is None and mask is not None:
            given["mask"] = mask
        return given.get("mask", mask)

    def _after(self, result, args, mask):
        if self.activity_regularizer is not None:
            self.add_loss(self.activity_regularizer(result))
        if isinstance(result, Tensor) and (self.supports_masking or getattr(self, "mask_zero", False)):
            made = self.compute_mask(args[0], mask)
            if made is not None:
                result._mask = made

    def compute_output_shape(self, input_shape):
        out = call_symbolically(self, (KerasTensor(input_shape, self.compute_dtype),), {}, records=False)
        return tuple(out.shape)

    # ---- symbolic --------------------------------------------------------------------------------

    @property
    def output(self):
        return self._node().outputs if self._node() else self._no_node("output")

    @property
    def input(self):
        return self._node().args[0] if self._node() else self._no_node("input")

    def _node(self):
        """The first symbolic call that some tensor still knows."""
        return next((node for ref in self._nodes if (node := ref()) is not None), None)

    def _no_node(self, what):
        raise AttributeError(f"The layer {self.name} has never been called and thus has no defined {what}.")

    def get_config(self):
        return {"name": self.name, "trainable": self._trainable, "dtype": self.dtype_policy.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


def _find_layers(value, found):
    if isinstance(value, Layer):
        found.setdefault(id(value), value)
    elif isinstance(value, (dict, list, tuple)):
        for each in value.values() if isinstance(value, dict) else value:
            _find_layers(each, found)


class OperationLayer(Layer):
    """A function of tensors in a functional model."""

    def __init__(self, f, name):
        super().__init__(name=unique_name(name))
        self._f = f

    def _arguments(self, args):
        """Numbers stay numbers, which take the dtype of the tensor beside them."""
        return tuple(a if isinstance(a, (int, float)) else part for a, part in zip(args, super()._arguments(args)))

    def call(self, *args):
        return self._f(*args)


def _marking(build):
    def wrapped(self, *args, **kwargs):
        args = tuple(TensorShape(a) if isinstance(a, tuple) and all(isinstance(n, (int, type(None))) for n in a) else a for a in args)
        build(self, *args, **kwargs)
        self.built = True

    wrapped.__wrapped__ = build
    return wrapped


def _as_tensors(value, dtype):
    """Arrays and lists of numbers as tensors; floats in the layer's dtype."""
    if isinstance(value, (np.ndarray, np.generic)):
        x = convert(value)
        return wrap(td.cast(x._t, dtypes.as_dtype(dtype)._td)) if x.dtype.is_floating else x
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return convert(value)
    if nest.is_nested(value):
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, (int, float, list)) and not is_tensor(v) for v in nest.flatten(value)) and not isinstance(value, tuple):
            return convert(value)
        return nest.map_structure(lambda v: _as_tensors(v, dtype), value)
    if isinstance(value, Tensor) and value.dtype.is_floating and value.dtype.name != dtype:
        return wrap(td.cast(value._t, dtypes.as_dtype(dtype)._td))
    return value


def _shapes(value):
    if is_tensor(value):
        return convert(value).shape
    if isinstance(value, (list, tuple)):
        return [_shapes(v) for v in value]
    if isinstance(value, dict):
        return {key: _shapes(v) for key, v in value.items()}
    return None


def _parameters(call):
    return inspect.signature(call).parameters


def _default(call, name):
    value = _parameters(call)[name].default
    return None if value is inspect.Parameter.empty else value
