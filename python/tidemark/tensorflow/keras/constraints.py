"""tf.keras.constraints: what an optimizer does to a weight after each update."""
import tidemark as td

from ..tensor import convert, wrap


class Constraint:
    def __call__(self, w):
        return w


class NonNeg(Constraint):
    def __call__(self, w):
        w = convert(w)._t
        return wrap(w * td.cast(w >= 0, w.dtype))


def _norms(w, axis):
    return td.sqrt(td.sum(td.square(w), axis=axis, keepdims=True))


class MaxNorm(Constraint):
    def __init__(self, max_value=2, axis=0):
        self.max_value, self.axis = max_value, axis

    def __call__(self, w):
        w = convert(w)._t
        norms = _norms(w, self.axis)
        return wrap(w * (td.clip(norms, 0, self.max_value) / (1e-7 + norms)))


class UnitNorm(Constraint):
    def __init__(self, axis=0):
        self.axis = axis

    def __call__(self, w):
        w = convert(w)._t
        return wrap(w / (1e-7 + _norms(w, self.axis)))


class MinMaxNorm(Constraint):
    def __init__(self, min_value=0.0, max_value=1.0, rate=1.0, axis=0):
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w):
        w = convert(w)._t
        norms = _norms(w, self.axis)
        wanted = self.rate * td.clip(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return wrap(w * (wanted / (1e-7 + norms)))


non_neg, max_norm, unit_norm, min_max_norm = NonNeg, MaxNorm, UnitNorm, MinMaxNorm


def get(identifier):
    if identifier is None or callable(identifier):
        return identifier
    return {"non_neg": NonNeg, "max_norm": MaxNorm, "unit_norm": UnitNorm, "min_max_norm": MinMaxNorm}[identifier]()
