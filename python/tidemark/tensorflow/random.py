"""tf.random. Draws repeat for equal seeds, by Tidemark's generator: they are not TensorFlow's draws."""
import os

import numpy as np
import tidemark as td

from . import dtypes
from .arrays import cast
from .tensor import convert, integer, integers, is_tensor, op, raw, sizes_of, wrap

_global_seed = None
_counter = 0  # Draws with a seed of their own since set_seed.


def set_seed(seed):
    global _global_seed, _counter
    _global_seed, _counter = int(seed), 0
    td.random.seed(int(seed) % 2**64)


def _key(seed):
    """The key of a draw that names a seed: it depends on the global seed and on how many such draws came before."""
    global _counter
    if seed is None:
        return None
    _counter += 1
    return td.random.Key((_global_seed or 0) % 2**64).fold_in(int(seed) % 2**31).fold_in(_counter)


def _stateless_key(seed):
    """The key of two integers, which may be known only at run time."""
    if is_tensor(seed):
        seed = list(convert(seed))
    key = td.random.Key(0)
    for part in seed:
        key = key.fold_in(raw(part) if is_tensor(part) else int(part) % 2**31)
    return key


def _shape(shape):
    return integers(shape, "random: shape")


def _normal(shape, mean, stddev, dtype, key):
    dtype = dtypes.as_dtype(dtype)
    x = td.random.normal(_shape(shape), dtype=dtype._td, key=key)
    return wrap(_scaled(x, stddev, mean, dtype))


def _scaled(x, scale, shift, dtype):
    if not (isinstance(scale, (int, float)) and scale == 1):
        x = x * raw(scale, None if is_tensor(scale) else dtype)
    if not (isinstance(shift, (int, float)) and shift == 0):
        x = x + raw(shift, None if is_tensor(shift) else dtype)
    return x


def _uniform(shape, minval, maxval, dtype, key):
    dtype = dtypes.as_dtype(dtype)
    if dtype.is_integer:
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        return wrap(td.random.integers(_shape(shape), integer(minval, "minval"), integer(maxval, "maxval"), dtype=dtype._td, key=key))
    high = 1 if maxval is None else maxval
    if isinstance(minval, (int, float)) and isinstance(high, (int, float)):
        return wrap(td.random.uniform(_shape(shape), float(minval), float(high), dtype=dtype._td, key=key))
    low = raw(minval, None if is_tensor(minval) else dtype)
    return wrap(_scaled(td.random.uniform(_shape(shape), dtype=dtype._td, key=key), wrap(raw(high, None if is_tensor(high) else dtype) - low), wrap(low), dtype))


_LOW, _HIGH = 0.022750131948179195, 0.9772498680518208  # The normal distribution's share below -2 and below 2.


def _truncated(shape, mean, stddev, dtype, key):
    """Draws within two deviations, by the inverse of the distribution: one uniform draw for each."""
    dtype = dtypes.as_dtype(dtype)
    u = td.random.uniform(_shape(shape), _LOW, _HIGH, dtype=td.f64 if dtype is dtypes.float64 else td.f32, key=key)
    return wrap(_scaled(td.cast(td.clip(_quantile(u), -2, 2), dtype._td), stddev, mean, dtype))


def _quantile(u):
    """The inverse of the normal distribution for shares in [0.02, 0.98]: a rational approximation (Acklam), to 1e-9."""
    a = (-3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.383577518672690e2, -3.066479806614716e1, 2.506628277459239)
    b = (-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1.0)
    c = (-7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783)
    d = (7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1.0)

    def poly(coefficients, x):
        total = coefficients[0]
        for each in coefficients[1:]:
            total = total * x + each
        return total

    q = u - 0.5
    r = q * q
    middle = q * poly(a, r) / poly(b, r)
    tail = td.minimum(u, 1 - u)
    s = td.sqrt(-2 * td.log(tail))
    outer = poly(c, s) / poly(d, s)
    return td.where(tail < 0.02425, td.where(q < 0, outer, -outer), middle)


def _categorical(logits, num_samples, dtype, key):
    """The largest of logits with Gumbel noise."""
    x = raw(logits)
    n, k = x.shape
    u = td.random.uniform([n, integer(num_samples, "num_samples"), k], 1e-20, 1.0, dtype=td.f32, key=key)
    noise = -td.log(-td.log(td.maximum(u, 1e-20)))
    return cast(wrap(td.argmax(td.expand_dims(td.cast(x, td.f32), 1) + noise, axis=-1)), dtype or dtypes.int64)


def _shuffled(value, key):
    x = convert(value)
    return wrap(td.gather(x._t, td.random.permutation(sizes_of(x)[0], key=key), 0))


@op
def normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None):
    return _normal(shape, mean, stddev, dtype, _key(seed))


@op
def uniform(shape, minval=0, maxval=None, dtype=dtypes.float32, seed=None):
    return _uniform(shape, minval, maxval, dtype, _key(seed))


@op
def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, seed=None):
    return _truncated(shape, mean, stddev, dtype, _key(seed))


@op
def categorical(logits, num_samples, dtype=None, seed=None):
    return _categorical(logits, num_samples, dtype, _key(seed))


@op
def shuffle(value, seed=None):
    return _shuffled(value, _key(seed))


@op
def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, alg="auto_select"):
    return _normal(shape, mean, stddev, dtype, _stateless_key(seed))


@op
def stateless_uniform(shape, seed, minval=0, maxval=None, dtype=dtypes.float32, alg="auto_select"):
    return _uniform(shape, minval, maxval, dtype, _stateless_key(seed))


@op
def stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0, dtype=dtypes.float32, alg="auto_select"):
    return _truncated(shape, mean, stddev, dtype, _stateless_key(seed))


@op
def stateless_categorical(logits, num_samples, seed, dtype=dtypes.int64):
    return _categorical(logits, num_samples, dtype, _stateless_key(seed))


def _seed_numbers(key, count):
    return wrap(td.random.integers([count, 2], 0, 2**31 - 1, dtype=td.i32, key=key))


@op
def split(seed, num=2, alg="auto_select"):
    return _seed_numbers(_stateless_key(seed), num)


@op
def fold_in(seed, data, alg="auto_select"):
    key = _stateless_key(seed).fold_in(raw(data) if is_tensor(data) else int(data))
    return wrap(_seed_numbers(key, 1)._t[0])


class experimental:
    """tf.random.experimental."""

    @staticmethod
    def stateless_shuffle(value, seed, alg="auto_select", name=None):
        return _shuffled(value, _stateless_key(seed))

    stateless_split, stateless_fold_in = staticmethod(split), staticmethod(fold_in)


class Generator:
    """Draws with a state of their own: a seed, and how many draws came before, which is a Variable."""

    def __init__(self, seed):
        from .variable import Variable

        self._seed = int(seed)
        self._draws = Variable(0, trainable=False, dtype=dtypes.int32, name="generator")

    @classmethod
    def from_seed(cls, seed, alg=None):
        return cls(seed)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        return cls(int.from_bytes(os.urandom(4), "little"))

    def reset_from_seed(self, seed):
        self._seed = int(seed)
        self._draws.assign(0)

    def _next(self):
        key = td.random.Key(self._seed % 2**64).fold_in(self._draws._v.value())
        self._draws.assign_add(1)
        return key

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        return _normal(shape, mean, stddev, dtype, self._next())

    def uniform(self, shape, minval=0, maxval=None, dtype=dtypes.float32, name=None):
        return _uniform(shape, minval, maxval, dtype, self._next())

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype=dtypes.float32, name=None):
        return _truncated(shape, mean, stddev, dtype, self._next())

    def make_seeds(self, count=1):
        return wrap(td.transpose(_seed_numbers(self._next(), count)._t))

    def split(self, count=1):
        numbers = np.asarray(_seed_numbers(self._next(), count)._t)
        return [Generator(int(row[0])) for row in numbers]


_global_generator = None


def get_global_generator():
    global _global_generator
    if _global_generator is None:
        _global_generator = Generator.from_non_deterministic_state() if _global_seed is None else Generator(_global_seed)
    return _global_generator


def set_global_generator(generator):
    global _global_generator
    _global_generator = generator
