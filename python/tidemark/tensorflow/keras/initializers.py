"""tf.keras.initializers."""
import math

import numpy as np
import tidemark as td

from .. import dtypes
from ..random import _normal, _truncated, _uniform
from ..tensor import convert, wrap


class Initializer:
    """f(shape, dtype) gives the first value of a weight."""

    def __init__(self, seed=None):
        self.seed = seed

    def _key(self):
        return None if self.seed is None else td.random.Key(int(self.seed) % 2**64)

    def get_config(self):
        return {"seed": self.seed}

    def clone(self):
        return self


class Zeros(Initializer):
    def __call__(self, shape, dtype=None):
        return wrap(td.zeros(list(shape), dtypes.as_dtype(dtype or "float32")._td))


class Ones(Initializer):
    def __call__(self, shape, dtype=None):
        return wrap(td.ones(list(shape), dtypes.as_dtype(dtype or "float32")._td))


class Constant(Initializer):
    def __init__(self, value=0.0):
        super().__init__()
        self.value = value

    def __call__(self, shape, dtype=None):
        dtype = dtypes.as_dtype(dtype or "float32")
        value = td.cast(convert(self.value)._t, dtype._td)
        return wrap(td.identity(td.broadcast_to(value, list(shape))))


class Identity(Initializer):
    def __init__(self, gain=1.0):
        super().__init__()
        self.gain = gain

    def __call__(self, shape, dtype=None):
        return wrap(td.eye(shape[0], shape[1], dtypes.as_dtype(dtype or "float32")._td) * self.gain)


class RandomNormal(Initializer):
    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def __call__(self, shape, dtype=None):
        return _normal(shape, self.mean, self.stddev, dtype or "float32", self._key())


class TruncatedNormal(RandomNormal):
    def __call__(self, shape, dtype=None):
        return _truncated(shape, self.mean, self.stddev, dtype or "float32", self._key())


class RandomUniform(Initializer):
    def __init__(self, minval=-0.05, maxval=0.05, seed=None):
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def __call__(self, shape, dtype=None):
        return _uniform(shape, self.minval, self.maxval, dtype or "float32", self._key())


def _fans(shape):
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    field = math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class VarianceScaling(Initializer):
    def __init__(self, scale=1.0, mode="fan_in", distribution="truncated_normal", seed=None):
        super().__init__(seed)
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def __call__(self, shape, dtype=None):
        fan_in, fan_out = _fans(list(shape))
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        scale, dtype = self.scale / max(1.0, n), dtype or "float32"
        if self.distribution == "uniform":
            limit = math.sqrt(3 * scale)
            return _uniform(shape, -limit, limit, dtype, self._key())
        if self.distribution == "untruncated_normal":
            return _normal(shape, 0.0, math.sqrt(scale), dtype, self._key())
        return _truncated(shape, 0.0, math.sqrt(scale) / 0.87962566103423978, dtype, self._key())


def _scaled(name, scale, mode, distribution):
    def __init__(self, seed=None):
        VarianceScaling.__init__(self, scale, mode, distribution, seed)

    return type(name, (VarianceScaling,), {"__init__": __init__, "__doc__": f"VarianceScaling({scale}, {mode!r}, {distribution!r})."})


GlorotUniform = _scaled("GlorotUniform", 1.0, "fan_avg", "uniform")
GlorotNormal = _scaled("GlorotNormal", 1.0, "fan_avg", "truncated_normal")
HeUniform = _scaled("HeUniform", 2.0, "fan_in", "uniform")
HeNormal = _scaled("HeNormal", 2.0, "fan_in", "truncated_normal")
LecunUniform = _scaled("LecunUniform", 1.0, "fan_in", "uniform")
LecunNormal = _scaled("LecunNormal", 1.0, "fan_in", "truncated_normal")


class Orthogonal(Initializer):
    """Columns (or rows) of length 1 at right angles: the Q of a random matrix."""

    def __init__(self, gain=1.0, seed=None):
        super().__init__(seed)
        self.gain = gain

    def __call__(self, shape, dtype=None):
        rows, columns = math.prod(shape[:-1]), shape[-1]
        draws = np.asarray(_normal([max(rows, columns), min(rows, columns)], 0.0, 1.0, "float32", self._key())._t)
        q, r = np.linalg.qr(draws)
        q = q * np.sign(np.diag(r))
        q = q.T if rows < columns else q
        return convert((self.gain * q.reshape(shape)).astype(np.float32), None) if dtype in (None, "float32", dtypes.float32) else convert(self.gain * q.reshape(shape), dtype)


_ALL = {
    "zeros": Zeros, "ones": Ones, "constant": Constant, "identity": Identity, "random_normal": RandomNormal, "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal, "variance_scaling": VarianceScaling, "glorot_uniform": GlorotUniform, "glorot_normal": GlorotNormal,
    "he_uniform": HeUniform, "he_normal": HeNormal, "lecun_uniform": LecunUniform, "lecun_normal": LecunNormal, "orthogonal": Orthogonal,
    "uniform": RandomUniform, "normal": RandomNormal,
}
zeros, ones, constant, identity, orthogonal = Zeros, Ones, Constant, Identity, Orthogonal
random_normal, random_uniform, truncated_normal, variance_scaling = RandomNormal, RandomUniform, TruncatedNormal, VarianceScaling
glorot_uniform, glorot_normal, he_uniform, he_normal = GlorotUniform, GlorotNormal, HeUniform, HeNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal


def get(identifier):
    if identifier is None or callable(identifier) and not isinstance(identifier, type):
        return identifier
    if isinstance(identifier, type):
        return identifier()
    name = identifier.lower() if identifier.lower() in _ALL else next((n for n, c in _ALL.items() if c.__name__ == identifier), None)
    if name is None:
        raise ValueError(f"Could not interpret initializer identifier: {identifier}; the names are {sorted(_ALL)}")
    return _ALL[name]()
