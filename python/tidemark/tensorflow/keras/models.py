"""tf.keras.Model, Sequential and functional models."""
import copy
import os
import weakref

import numpy as np

from .. import nest
from ..errors import NotFoundError
from ..shapes import TensorShape
from ..tensor import convert
from ..train import load_variables, named_variables, save_variables
from .layers import Input, InputLayer, KerasTensor
from .layers.base import Layer
from .layers.symbolic import call_symbolically, evaluate, is_symbolic, nodes_of
from .training import Trainer


class Model(Trainer, Layer):
    """A subclass with layers as attributes and call(); or Model(inputs, outputs) of symbolic tensors."""

    def __new__(cls, *args, **kwargs):
        if cls is Model and (args or "inputs" in kwargs):
            return super().__new__(Functional)
        return super().__new__(cls)

    def __init__(self, *args, name=None, trainable=True, dtype=None, **options):
        Layer.__init__(self, name=name, trainable=trainable, dtype=dtype)
        self.compiled, self.stop_training, self._was_called = False, False, False

    def __call__(self, *args, **kwargs):
        result = Layer.__call__(self, *args, **kwargs)
        self._was_called = True
        return result

    def build(self, input_shape=None):
        """A subclass makes the weights of its layers at the first call."""

    layers = property(lambda self: self._sublayers())

    def get_layer(self, name=None, index=None):
        if index is not None:
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}. Existing layers are: {[layer.name for layer in self.layers]}.")

    # ---- files -----------------------------------------------------------------------------------

    def _named(self):
        return dict(named_variables(self))

    def save_weights(self, filepath, overwrite=True, **options):
        """A safetensors file, whatever its name ends in."""
        if not overwrite and os.path.exists(filepath):
            raise FileExistsError(f"{filepath} exists, and overwrite is False")
        save_variables(self._named(), str(filepath))

    def load_weights(self, filepath, skip_mismatch=False, **options):
        filepath = str(filepath)
        if not os.path.exists(filepath):
            raise NotFoundError(f"{filepath}: no such file")
        with open(filepath, "rb") as file:
            if file.read(8) == b"\x89HDF\r\n\x1a\n":
                raise NotImplementedError(f"{filepath} is an HDF5 file of Keras's: save the weights as safetensors or npz where Keras is, and set_weights() them here")
        status = load_variables(self._named(), filepath)
        if not skip_mismatch:
            status.assert_existing_objects_matched()

    def save(self, filepath, **options):
        raise NotImplementedError("model.save: the code of a model is not stored; write model.save_weights(path), which is safetensors, or tf.train.Checkpoint(model=model)")

    def export(self, filepath, **options):
        raise NotImplementedError("model.export: saved_model is not here; write model.save_weights(path), which is safetensors, or tf.train.Checkpoint(model=model)")

    # ---- summary ---------------------------------------------------------------------------------

    def summary(self, line_length=None, positions=None, print_fn=None, expand_nested=False, show_trainable=False, layer_range=None):
        rows = [("Layer (type)", "Output Shape", "Param #")]
        for layer in self.layers:
            node = layer._node()
            text = str(tuple(nest.flatten(node.outputs)[0].shape)) if node else str(getattr(layer, "batch_shape", "?"))
            rows.append((f"{layer.name} ({type(layer).__name__})", text, f"{layer.count_params():,}"))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = [f'Model: "{self.name}"', *("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows)]
        total, trained = self.count_params(), sum(_size(v) for v in self.trainable_weights)
        lines += [f" Total params: {total:,} ({_bytes(4 * total)})", f" Trainable params: {trained:,} ({_bytes(4 * trained)})",
                  f" Non-trainable params: {total - trained:,} ({_bytes(4 * (total - trained))})"]
        (print_fn or print)("\n".join(lines))

    def get_config(self):
        return {"name": self.name}


def _size(v):
    return int(np.prod(list(v.shape), dtype=np.int64))


def _bytes(n):
    for unit in ("B", "KB", "MB"):
        if n < 1024:
            return f"{n:.2f} {unit}"
        n /= 1024
    return f"{n:.2f} GB"


class Functional(Model):
    """A model of symbolic inputs and outputs."""

    def __init__(self, inputs=None, outputs=None, name=None, trainable=True, **options):
        Model.__init__(self, name=name or None, trainable=trainable)
        self._given, self.outputs_structure = inputs, outputs
        self._chain = self._layers_in_order()
        self.built = True

    def _layers_in_order(self):
        found = [x._input_layer for x in nest.flatten(self._given) if hasattr(x, "_input_layer")]
        for node in nodes_of(self.outputs_structure):
            if not any(node.layer is other for other in found):
                found.append(node.layer)
        return found

    inputs = property(lambda self: nest.flatten(self._given))
    outputs = property(lambda self: nest.flatten(self.outputs_structure))
    output_names = property(lambda self: [x._node.layer.name for x in self.outputs])
    layers = property(lambda self: list(self._chain))

    @property
    def input_shape(self):
        shapes = [tuple(x.shape) for x in self.inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self):
        shapes = [tuple(x.shape) for x in self.outputs]
        return shapes[0] if len(shapes) == 1 else shapes

    input = property(lambda self: self._given)
    output = property(lambda self: self.outputs_structure)

    def _tracked(self):
        return [(layer.name, layer) for layer in self._chain] + [(k, v) for k, v in vars(self).items() if k == "_loss_tracker"]

    def _sublayers(self):
        return list(self._chain)

    def call(self, inputs, training=None, mask=None):
        values = self._values(inputs)
        if len(values) != len(self.inputs):
            raise ValueError(f"model {self.name}: {len(self.inputs)} inputs were declared and {len(values)} passed")
        return evaluate(self.inputs, self.outputs_structure, values, training)

    def _values(self, inputs):
        if isinstance(inputs, dict):
            names = [x.name for x in self.inputs] if not isinstance(self._given, dict) else sorted(self._given)
            return [inputs[name] for name in names]
        return [convert(x) if not is_symbolic(x) else x for x in nest.flatten(inputs)]


class Sequential(Model):
    """Layers, or functions of one tensor, one after another."""

    def __init__(self, layers=None, trainable=True, name=None):
        Model.__init__(self, name=name, trainable=trainable)
        self._chain, self._input = [], None
        for layer in layers or []:
            self.add(layer)

    def add(self, layer, rebuild=True):
        if isinstance(layer, KerasTensor):
            self._input = layer
            return
        if isinstance(layer, InputLayer):
            self._input = Input(layer.batch_shape[1:], layer.batch_shape[0], layer.input_dtype)
            return
        if not isinstance(layer, Layer):
            if not callable(layer):
                raise ValueError(f"Only instances of `keras.Layer` can be added to a Sequential model. Received: {layer} (of type {type(layer)})")
            from .layers import Lambda

            layer = Lambda(layer)
        self._chain.append(layer)
        self._symbolic = None
        if self._input is not None:
            self._extend(layer)

    def _extend(self, layer):
        """Calls a layer symbolically, so that shapes and weights are known."""
        before = getattr(self, "_end", None)
        self._end = call_symbolically(layer, (self._input if before is None else before,), {})
        self.built = True

    def pop(self, rebuild=True):
        last = self._chain.pop()
        self._end = self._chain[-1].output if self._input is not None and self._chain else None
        return last

    layers = property(lambda self: list(self._chain))
    inputs = property(lambda self: [self._input])
    outputs = property(lambda self: [self._end])
    input_shape = property(lambda self: tuple(self._input.shape))
    output_shape = property(lambda self: tuple(self._end.shape))

    def _tracked(self):
        return [(f"{i}", layer) for i, layer in enumerate(self._chain)] + [(k, v) for k, v in vars(self).items() if k == "_loss_tracker"]

    def _sublayers(self):
        return list(self._chain)

    def build(self, input_shape=None):
        if input_shape is not None and self._input is None:
            shape = TensorShape(input_shape)
            self._input = Input(shape[1:].as_list(), shape[0])
            for layer in self._chain:
                self._extend(layer)

    def build_for(self, shape):
        self.built = True  # Each layer builds itself from what it is given.

    def call(self, inputs, training=None, mask=None):
        x = inputs
        for layer in self._chain:
            x = layer(x, training=training) if training is not None else layer(x)
        return x


def clone_model(model, input_tensors=None, clone_function=None):
    """A model of the same layers with weights of its own."""
    clone = copy.deepcopy(model)
    outputs = [x for x in getattr(clone, "outputs", []) if x is not None]
    for node in nodes_of(outputs):
        node.layer._nodes = [weakref.ref(node)]
    return clone
