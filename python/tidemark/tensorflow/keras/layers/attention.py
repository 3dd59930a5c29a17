"""MultiHeadAttention and Attention, with Keras's layout of weights."""
import math

import tidemark as td

from ...shapes import TensorShape
from ...tensor import convert, wrap
from .. import initializers
from .base import Layer


class _Projection(Layer):
    """x [.., features] to [.., heads, size], or back."""

    def __init__(self, shape, axes, use_bias, bias_shape, kernel_initializer, **options):
        super().__init__(**options)
        self._shape, self._axes, self._bias_shape, self._initial = shape, axes, bias_shape if use_bias else None, kernel_initializer

    def build(self, input_shape=None):
        self.kernel = self.add_weight(self._shape, self._initial, name="kernel")
        self.bias = self.add_weight(self._bias_shape, "zeros", name="bias") if self._bias_shape else None

    def call(self, x):
        native, w = convert(x)._t, self.kernel._t
        lead = list(native.shape)[: native.ndim - self._axes]
        inner = math.prod(self._shape[: self._axes])
        y = td.matmul(td.reshape(native, [*lead, inner]), td.reshape(w, [inner, -1]))
        y = td.reshape(y, [*lead, *self._shape[self._axes :]])
        return wrap(y + self.bias._t if self.bias is not None else y)


class MultiHeadAttention(Layer):
    def __init__(self, num_heads, key_dim, value_dim=None, dropout=0.0, use_bias=True, output_shape=None, attention_axes=None, flash_attention=None,
                 kernel_initializer="glorot_uniform", bias_initializer="zeros", seed=None, **options):
        super().__init__(**options)
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim or key_dim
        self.dropout, self.use_bias, self._output_shape = dropout, use_bias, output_shape
        self._initial = initializers.get(kernel_initializer)
        self._query_dense = self._key_dense = self._value_dense = self._output_dense = None

    builds_from_shape = False  # The shapes of query and value are needed.

    def build(self, query_shape, value_shape=None, key_shape=None):
        query = TensorShape(query_shape)
        value = TensorShape(value_shape) if value_shape is not None else query
        key = TensorShape(key_shape) if key_shape is not None else value
        n, heads = self._initial, self.num_heads
        self._query_dense = _Projection((query[-1], heads, self.key_dim), 1, self.use_bias, (heads, self.key_dim), n, name="query")
        self._key_dense = _Projection((key[-1], heads, self.key_dim), 1, self.use_bias, (heads, self.key_dim), n, name="key")
        self._value_dense = _Projection((value[-1], heads, self.value_dim), 1, self.use_bias, (heads, self.value_dim), n, name="value")
        out = query[-1] if self._output_shape is None else self._output_shape if isinstance(self._output_shape, int) else self._output_shape[-1]
        self._output_dense = _Projection((heads, self.value_dim, out), 2, self.use_bias, (out,), n, name="attention_output")
        for each in (self._query_dense, self._key_dense, self._value_dense, self._output_dense):
            each.build_for(None)

    def __call__(self, query, value=None, key=None, **options):
        return super().__call__(query, value, key, **options)

    def _run(self, args, kwargs):
        query, value, key = (*args, None, None)[:3]
        if not self.built:
            self.build(convert(query).shape, convert(value).shape, None if key is None else convert(key).shape)
        return super()._run(args, kwargs)

    def call(self, query, value, key=None, query_mask=None, value_mask=None, key_mask=None, attention_mask=None, return_attention_scores=False,
             training=False, use_causal_mask=False):
        key = value if key is None else key
        heads_first = lambda x: td.transpose(x._t, [0, 2, 1, 3])
        q, k, v = heads_first(self._query_dense(query)), heads_first(self._key_dense(key)), heads_first(self._value_dense(value))
        mask = self._mask(convert(query), convert(value), query_mask, value_mask, attention_mask, use_causal_mask, q)
        drops = training and self.dropout > 0
        if not return_attention_scores and not drops and (mask is None or use_causal_mask and mask is True):
            out, scores = td.attention(q, k, v, causal=mask is True), None
        else:
            mask = self._triangle(q, k) if mask is True else mask
            scores = td.matmul(q * (1 / math.sqrt(self.key_dim)), k, transpose_b=True)
            if mask is not None:
                scores = td.where(mask, scores, scores + -1e9)
            scores = td.softmax(scores)
            out = td.matmul(td.dropout(scores, self.dropout) if drops else scores, v)
        result = self._output_dense(wrap(td.transpose(out, [0, 2, 1, 3])))
        return (result, wrap(scores)) if return_attention_scores else result

    @staticmethod
    def _triangle(q, k):
        n, m = q.shape[2], k.shape[2]
        return td.reshape(td.arange(0, n, 1, td.i32), [n, 1]) >= td.reshape(td.arange(0, m, 1, td.i32), [1, m])

    def _mask(self, query, value, query_mask, value_mask, attention_mask, causal, q):
        """None, True for a causal mask alone, or a mask over [batch, heads, queries, keys]."""
        parts = []
        query_mask = query._mask if query_mask is None else query_mask
        value_mask = value._mask if value_mask is None else value_mask
        if query_mask is not None:
            parts.append(td.expand_dims(td.expand_dims(convert(query_mask)._t, 1), -1))
        if value_mask is not None:
            parts.append(td.expand_dims(td.expand_dims(convert(value_mask)._t, 1), 1))
        if attention_mask is not None:
            m = td.cast(convert(attention_mask)._t, td.bool)
            parts.append(td.expand_dims(m, 1) if m.ndim == 3 else m)
        if not parts:
            return True if causal else None
        if causal:
            n, m = q.shape[2], value._t.shape[1]
            parts.append(td.reshape(td.arange(0, n, 1, td.i32), [n, 1]) >= td.reshape(td.arange(0, m, 1, td.i32), [1, m]))
        whole = parts[0]
        for part in parts[1:]:
            whole = td.logical_and(whole, part)
        return whole


class Attention(Layer):
    """Dot-product attention over [query, value] or [query, value, key]."""

    def __init__(self, use_scale=False, score_mode="dot", dropout=0.0, seed=None, **options):
        super().__init__(**options)
        self.use_scale, self.dropout = use_scale, dropout

    def build(self, input_shape):
        self.scale = self.add_weight((), "ones", name="scale") if self.use_scale else None

    def _scores(self, q, k):
        scores = td.matmul(q, k, transpose_b=True)
        return scores * self.scale._t if self.use_scale else scores

    def call(self, inputs, mask=None, return_attention_scores=False, training=False, use_causal_mask=False):
        q, v = convert(inputs[0])._t, convert(inputs[1])._t
        k = convert(inputs[2])._t if len(inputs) > 2 else v
        scores = self._scores(q, k)
        if use_causal_mask:
            n, m = q.shape[1], k.shape[1]
            keep = td.reshape(td.arange(0, n, 1, td.i32), [n, 1]) >= td.reshape(td.arange(0, m, 1, td.i32), [1, m])
            scores = td.where(keep, scores, scores - 1e9)
        weights = td.softmax(scores)
        if training and self.dropout:
            weights = td.dropout(weights, self.dropout)
        result = wrap(td.matmul(weights, v))
        return (result, wrap(weights)) if return_attention_scores else result


class AdditiveAttention(Attention):
    """Scores are sums over tanh(query + key)."""

    def __init__(self, use_scale=True, dropout=0.0, **options):
        super().__init__(use_scale, dropout=dropout, **options)

    def build(self, input_shape):
        self.scale = self.add_weight((input_shape[0][-1],), "glorot_uniform", name="scale") if self.use_scale else None

    def _scores(self, q, k):
        sums = td.tanh(td.expand_dims(q, -2) + td.expand_dims(k, -3))
        return td.sum(sums * self.scale._t if self.use_scale else sums, -1)
