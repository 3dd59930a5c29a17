"""LSTM, GRU, SimpleRNN: cells with Keras's layout of weights, run over the steps by one td.scan."""
import tidemark as td

from ...shapes import TensorShape
from ...tensor import convert, wrap
from .. import activations, initializers
from .base import Layer


class _Cell(Layer):
    """`gates` blocks of weights side by side; step(x, states) gives the output and the new states."""

    gates = 1

    def __init__(self, units, activation="tanh", recurrent_activation="sigmoid", use_bias=True, kernel_initializer="glorot_uniform",
                 recurrent_initializer="orthogonal", bias_initializer="zeros", kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None,
                 dropout=0.0, recurrent_dropout=0.0, **options):
        super().__init__(**options)
        self.units, self.use_bias = units, use_bias
        self.activation, self.recurrent_activation = activations.get(activation), activations.get(recurrent_activation)
        self._made_with = kernel_initializer, recurrent_initializer, bias_initializer
        self._regular = kernel_regularizer, recurrent_regularizer, bias_regularizer
        self.dropout, self.recurrent_dropout = dropout, recurrent_dropout

    state_size = property(lambda self: self.units)
    states = 1

    def bias_shape(self):
        return (self.gates * self.units,)

    def build(self, input_shape):
        size = TensorShape(input_shape)[-1]
        kernel, recurrent, bias = self._made_with
        self.kernel = self.add_weight((size, self.gates * self.units), kernel, regularizer=self._regular[0], name="kernel")
        self.recurrent_kernel = self.add_weight((self.units, self.gates * self.units), recurrent, regularizer=self._regular[1], name="recurrent_kernel")
        self.bias = self.add_weight(self.bias_shape(), self.bias_initializer(bias), regularizer=self._regular[2], name="bias") if self.use_bias else None

    def bias_initializer(self, given):
        return given

    def project(self, x):
        """What the inputs add to the gates: of all steps at once, if x has them all."""
        y = td.matmul(x, self.kernel._t)
        return y + self.input_bias() if self.use_bias else y

    def input_bias(self):
        return self.bias._t

    def call(self, inputs, states, training=False):
        natives = [convert(s)._t for s in (states if isinstance(states, (list, tuple)) else [states])]
        weights = self.recurrent_weights()
        output, new = self.step(self.project(convert(inputs)._t), natives, weights)
        return wrap(output), [wrap(s) for s in new]

    def recurrent_weights(self):
        return (self.recurrent_kernel._t,)

    def get_initial_state(self, batch_size=None):
        return [wrap(td.zeros([batch_size, self.units], td.f32)) for _ in range(self.states)]

    def _activated(self, f, x):
        return convert(f(wrap(x)))._t


class SimpleRNNCell(_Cell):
    def __init__(self, units, activation="tanh", use_bias=True, **options):
        super().__init__(units, activation, None, use_bias, **options)

    def step(self, x, states, weights):
        h = self._activated(self.activation, x + td.matmul(states[0], weights[0]))
        return h, [h]


class LSTMCell(_Cell):
    gates, states = 4, 2

    def __init__(self, units, activation="tanh", recurrent_activation="sigmoid", use_bias=True, unit_forget_bias=True, **options):
        super().__init__(units, activation, recurrent_activation, use_bias, **options)
        self.unit_forget_bias = unit_forget_bias

    state_size = property(lambda self: [self.units, self.units])

    def bias_initializer(self, given):
        if not self.unit_forget_bias:
            return given
        first = initializers.get(given)

        def forget_ones(shape, dtype=None):
            n = self.units
            parts = [convert(first((n,), dtype))._t, td.ones([n]), convert(first((2 * n,), dtype))._t]
            return wrap(td.concat([td.cast(p, parts[0].dtype) for p in parts], 0))

        return forget_ones

    def step(self, x, states, weights):
        h, c = states
        i, f, g, o = td.split(x + td.matmul(h, weights[0]), 4, axis=-1)
        gate = lambda z: self._activated(self.recurrent_activation, z)
        c = gate(f) * c + gate(i) * self._activated(self.activation, g)
        h = gate(o) * self._activated(self.activation, c)
        return h, [h, c]


class GRUCell(_Cell):
    gates = 3

    def __init__(self, units, activation="tanh", recurrent_activation="sigmoid", use_bias=True, reset_after=True, **options):
        super().__init__(units, activation, recurrent_activation, use_bias, **options)
        self.reset_after = reset_after

    def bias_shape(self):
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def input_bias(self):
        return self.bias._t[0] if self.reset_after else self.bias._t

    def recurrent_weights(self):
        if self.reset_after and self.use_bias:
            return self.recurrent_kernel._t, self.bias._t[1]
        return (self.recurrent_kernel._t,)

    def step(self, x, states, weights):
        h, n = states[0], self.units
        gate = lambda z: self._activated(self.recurrent_activation, z)
        xz, xr, xh = td.split(x, 3, axis=-1)
        if self.reset_after:
            inner = td.matmul(h, weights[0])
            inner = inner + weights[1] if len(weights) > 1 else inner
            hz, hr, hh = td.split(inner, 3, axis=-1)
            z, r = gate(xz + hz), gate(xr + hr)
            new = self._activated(self.activation, xh + r * hh)
        else:
            both = td.matmul(h, weights[0][:, : 2 * n])
            z, r = gate(xz + both[:, :n]), gate(xr + both[:, n:])
            new = self._activated(self.activation, xh + td.matmul(r * h, weights[0][:, 2 * n :]))
        out = z * h + (1 - z) * new
        return out, [out]


class RNN(Layer):
    """A cell over the steps of sequences [batch, steps, features]."""

    def __init__(self, cell, return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False, zero_output_for_mask=False, **options):
        super().__init__(**options)
        self.cell, self.return_sequences, self.return_state, self.go_backwards = cell, return_sequences, return_state, go_backwards
        self.stateful, self._kept = stateful, None

    units = property(lambda self: self.cell.units)

    def build(self, input_shape):
        shape = TensorShape(input_shape[0] if isinstance(input_shape, list) and input_shape and not isinstance(input_shape[0], (int, type(None))) else input_shape)
        self.cell.build_for([shape[0], shape[-1]])

    def reset_states(self):
        self._kept = None

    def _start(self, x, initial_state):
        if initial_state is None and self.stateful and self._kept is not None:
            initial_state = self._kept
        if initial_state is None:
            return [td.zeros([x.shape[0], self.cell.units], x.dtype) for _ in range(self.cell.states)]
        given = initial_state if isinstance(initial_state, (list, tuple)) else [initial_state]
        return [convert(s)._t for s in given]

    def call(self, inputs, initial_state=None, mask=None, training=False):
        x = convert(inputs)._t
        states = self._start(x, initial_state)
        if training and self.cell.dropout:
            x = td.dropout(x, self.cell.dropout)
        projected = td.transpose(self.cell.project(x), [1, 0, 2])
        masks = None if mask is None else td.expand_dims(td.transpose(convert(mask)._t, [1, 0]), -1)
        if self.go_backwards:
            projected = td.flip(projected, 0)
            masks = None if masks is None else td.flip(masks, 0)
        weights = self.cell.recurrent_weights()

        def step(carried, slices):
            output, new = self.cell.step(slices[0], list(carried), weights)
            if masks is not None:
                new = [td.where(slices[1], n, old) for n, old in zip(new, carried)]
                output = new[0]
            return tuple(new), (output,) if self.return_sequences else ()

        ends, outputs = td.scan(step, tuple(states), (projected,) if masks is None else (projected, masks))
        if self.stateful:
            self._kept = [wrap(s) for s in ends]
        result = wrap(td.transpose(outputs[0], [1, 0, 2]) if self.return_sequences else ends[0])
        return [result, *(wrap(s) for s in ends)] if self.return_state else result


class _OfCell(RNN):
    cell_class = None

    def __init__(self, units, *values, return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False, seed=None, use_cudnn="auto",
                 name=None, dtype=None, trainable=True, activity_regularizer=None, **options):
        super().__init__(self.cell_class(units, *values, **options), return_sequences, return_state, go_backwards, stateful, unroll,
                         name=name, dtype=dtype, trainable=trainable, activity_regularizer=activity_regularizer)

    def clone_config(self):
        return vars(self)


class LSTM(_OfCell):
    cell_class = LSTMCell


class GRU(_OfCell):
    cell_class = GRUCell


class SimpleRNN(_OfCell):
    cell_class = SimpleRNNCell


class Bidirectional(Layer):
    """A layer over the steps in both directions."""

    def __init__(self, layer, merge_mode="concat", weights=None, backward_layer=None, **options):
        super().__init__(**options)
        self.forward_layer, self.merge_mode = layer, merge_mode
        self.backward_layer = backward_layer or self._reversed(layer)
        self.return_sequences = layer.return_sequences

    @staticmethod
    def _reversed(layer):
        """The same layer with weights of its own, from the last step to the first."""
        cell, own = layer.cell, object.__new__(type(layer))
        other = object.__new__(type(cell))
        other.__dict__.update(cell.__dict__, _own=[], name=f"backward_{cell.name}", built=False)
        own.__dict__.update(layer.__dict__, _own=[], _nodes=[], name=f"backward_{layer.name}", built=False, cell=other)
        own.go_backwards = not layer.go_backwards
        return own

    def build(self, input_shape):
        self.forward_layer.build_for(TensorShape(input_shape))
        self.backward_layer.build_for(TensorShape(input_shape))

    def call(self, inputs, training=False, mask=None):
        a, b = (layer(inputs, training=training, mask=mask) for layer in (self.forward_layer, self.backward_layer))
        states = []
        if self.forward_layer.return_state:
            a, b, states = a[0], b[0], [*a[1:], *b[1:]]
        x, y = a._t, b._t
        if self.return_sequences:
            y = td.flip(y, 1)
        merged = {"concat": lambda: wrap(td.concat([x, y], -1)), "sum": lambda: wrap(x + y), "mul": lambda: wrap(x * y), "ave": lambda: wrap((x + y) / 2),
                  None: lambda: [wrap(x), wrap(y)]}[self.merge_mode]()
        return [merged, *states] if states else merged


class TimeDistributed(Layer):
    """A layer on every step: the steps become part of the batch."""

    def __init__(self, layer, **options):
        super().__init__(**options)
        self.layer = layer

    def build(self, input_shape):
        shape = TensorShape(input_shape)
        self.layer.build_for(TensorShape([shape[0], *shape[2:]]))

    def call(self, inputs, training=False):
        x = convert(inputs)._t
        flat = td.reshape(x, [x.shape[0] * x.shape[1], *list(x.shape)[2:]])
        y = self.layer(wrap(flat), training=training)._t
        return wrap(td.reshape(y, [x.shape[0], x.shape[1], *list(y.shape)[1:]]))
