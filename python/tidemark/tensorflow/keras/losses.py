"""tf.keras.losses: probabilities unless from_logits=True; one value for each example, then a reduction."""
import math

import tidemark as td

from ..nn import sigmoid_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits
from ..tensor import convert, op, wrap
from .backend import epsilon, snake


def prepared(y_true, y_pred):
    """Both as tensors of the predictions' dtype."""
    y_pred = convert(y_pred)
    if not y_pred.dtype.is_floating or y_pred.dtype.size < 4:  # Losses are float32, whatever layers compute in.
        y_pred = wrap(td.cast(y_pred._t, td.f32))
    y_true = convert(y_true)
    if y_true.dtype is not y_pred.dtype:
        y_true = wrap(td.cast(y_true._t, y_pred.dtype._td))
    return y_true._t, y_pred._t


def same_rank(y_true, y_pred):
    """A last axis of size 1 that only one of them has goes or comes."""
    if y_true.ndim == y_pred.ndim + 1 and y_true.shape[-1] == 1:
        return td.squeeze(y_true, -1), y_pred
    if y_pred.ndim == y_true.ndim + 1 and y_pred.shape[-1] == 1:
        return y_true, td.squeeze(y_pred, -1)
    return y_true, y_pred


def _rowwise(f):
    """A loss with one value for each example: f(y_true, y_pred) of tensors of one rank."""

    def function(y_true, y_pred, **options):
        y_true, y_pred = same_rank(*prepared(y_true, y_pred))
        return wrap(f(y_true, y_pred, **options))

    function.__name__ = f.__name__.lstrip("_")
    return op(function)


def _mean_squared_error(t, p):
    return td.mean(td.square(t - p), axis=-1)


def _mean_absolute_error(t, p):
    return td.mean(td.abs(t - p), axis=-1)


def _mean_absolute_percentage_error(t, p):
    return 100 * td.mean(td.abs(t - p) / td.maximum(td.abs(t), epsilon()), axis=-1)


def _mean_squared_logarithmic_error(t, p):
    a, b = td.log(td.maximum(p, epsilon()) + 1), td.log(td.maximum(t, epsilon()) + 1)
    return td.mean(td.square(a - b), axis=-1)


def _log_cosh(t, p):
    x = p - t
    return td.mean(x + td.softplus(-2 * x) - math.log(2), axis=-1)


def _huber(t, p, delta=1.0):
    e = td.abs(p - t)
    return td.mean(td.where(e <= delta, 0.5 * e * e, delta * e - 0.5 * delta * delta), axis=-1)


def _signs(t):
    """Labels 0 and 1 as -1 and 1."""
    binary = td.all(td.logical_or(td.equal(t, 0), td.equal(t, 1)))
    return td.where(binary, 2 * t - 1, t)


def _hinge(t, p):
    return td.mean(td.relu(1 - _signs(t) * p), axis=-1)


def _squared_hinge(t, p):
    return td.mean(td.square(td.relu(1 - _signs(t) * p)), axis=-1)


def _categorical_hinge(t, p):
    positive = td.sum(t * p, axis=-1)
    negative = td.max((1 - t) * p, axis=-1)
    return td.relu(negative - positive + 1)


def _kl_divergence(t, p):
    t, p = td.clip(t, epsilon(), 1), td.clip(p, epsilon(), 1)
    return td.sum(t * td.log(t / p), axis=-1)


def _poisson(t, p):
    return td.mean(p - t * td.log(p + epsilon()), axis=-1)


def unit(x, axis):
    return x * td.rsqrt(td.maximum(td.sum(td.square(x), axis=axis, keepdims=True), 1e-12))


def _cosine_similarity(t, p, axis=-1):
    return -td.sum(unit(t, axis) * unit(p, axis), axis=axis)


def _binary(t, p, from_logits):
    if from_logits:
        return sigmoid_cross_entropy_with_logits(wrap(t), wrap(p))._t
    p = td.clip(p, epsilon(), 1 - epsilon())
    return -(t * td.log(p) + (1 - t) * td.log(1 - p))


def _binary_crossentropy(t, p, from_logits=False, label_smoothing=0.0, axis=-1):
    t = t * (1 - label_smoothing) + 0.5 * label_smoothing if label_smoothing else t
    return td.mean(_binary(t, p, from_logits), axis=axis)


def _binary_focal_crossentropy(t, p, apply_class_balancing=False, alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0, axis=-1):
    t = t * (1 - label_smoothing) + 0.5 * label_smoothing if label_smoothing else t
    p = td.sigmoid(p) if from_logits else p
    loss = td.pow(1 - (t * p + (1 - t) * (1 - p)), gamma) * _binary(t, p, False)
    if apply_class_balancing:
        loss = loss * (t * alpha + (1 - t) * (1 - alpha))
    return td.mean(loss, axis=axis)


def _smoothed(t, smoothing):
    return t * (1 - smoothing) + smoothing / t.shape[-1] if smoothing else t


def _shares(p, from_logits, axis):
    """Probabilities that add up to 1 and stay clear of 0."""
    p = td.softmax(p, axis) if from_logits else p / td.sum(p, axis=axis, keepdims=True)
    return td.clip(p, epsilon(), 1 - epsilon())


def _categorical_crossentropy(t, p, from_logits=False, label_smoothing=0.0, axis=-1):
    logs = td.log_softmax(p, axis) if from_logits else td.log(_shares(p, False, axis))
    return -td.sum(_smoothed(t, label_smoothing) * logs, axis=axis)


def _categorical_focal_crossentropy(t, p, alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0, axis=-1):
    p = _shares(p, from_logits, axis)
    return td.sum(td.pow(1 - p, gamma) * alpha * -_smoothed(t, label_smoothing) * td.log(p), axis=axis)


mean_squared_error = mse = MSE = _rowwise(_mean_squared_error)
mean_absolute_error = mae = MAE = _rowwise(_mean_absolute_error)
mean_absolute_percentage_error = mape = MAPE = _rowwise(_mean_absolute_percentage_error)
mean_squared_logarithmic_error = msle = MSLE = _rowwise(_mean_squared_logarithmic_error)
log_cosh = logcosh = _rowwise(_log_cosh)
huber, hinge, squared_hinge, categorical_hinge = _rowwise(_huber), _rowwise(_hinge), _rowwise(_squared_hinge), _rowwise(_categorical_hinge)
kl_divergence = kld = KLD = _rowwise(_kl_divergence)
poisson, cosine_similarity = _rowwise(_poisson), _rowwise(_cosine_similarity)
binary_crossentropy, binary_focal_crossentropy = _rowwise(_binary_crossentropy), _rowwise(_binary_focal_crossentropy)
categorical_crossentropy, categorical_focal_crossentropy = _rowwise(_categorical_crossentropy), _rowwise(_categorical_focal_crossentropy)


@op
def sparse_categorical_crossentropy(y_true, y_pred, from_logits=False, ignore_class=None, axis=-1):
    p, labels = convert(y_pred), convert(y_true)._t
    labels = td.squeeze(labels, -1) if labels.ndim == p.ndim and labels.shape[-1] == 1 else labels
    labels = td.cast(labels, td.i64)
    logits = p if from_logits else wrap(td.log(td.clip(p._t, epsilon(), 1 - epsilon())))
    if ignore_class is None:
        return sparse_softmax_cross_entropy_with_logits(wrap(labels), logits)
    kept = td.not_equal(labels, ignore_class)
    losses = sparse_softmax_cross_entropy_with_logits(wrap(td.where(kept, labels, td.zeros_like(labels))), logits)._t
    return wrap(td.where(kept, losses, td.zeros_like(losses)))


def weighted(values, sample_weight):
    """Values times weights that broadcast from the left."""
    if sample_weight is None:
        return values
    weight = td.cast(convert(sample_weight)._t, values.dtype)
    if weight.ndim == values.ndim + 1 and weight.shape[-1] == 1:
        weight = td.squeeze(weight, -1)
    if weight.ndim < values.ndim:
        weight = td.reshape(weight, list(weight.shape) + [1] * (values.ndim - weight.ndim))
    return values * weight


def reduced(values, reduction):
    if reduction in (None, "none"):
        return wrap(values)
    return wrap(td.sum(values) if reduction == "sum" else td.mean(values))


class Loss:
    """call(y_true, y_pred) gives one value for each example; a call of the object reduces them."""

    def __init__(self, name=None, reduction="sum_over_batch_size", dtype=None):
        if reduction not in (None, "none", "sum", "mean", "sum_over_batch_size", "mean_with_sample_weight", "auto"):
            raise ValueError(f"Invalid value for argument `reduction`: {reduction!r}; expected sum_over_batch_size, sum, mean or none")
        self.name, self.reduction = name or snake(type(self).__name__), reduction

    def __call__(self, y_true, y_pred, sample_weight=None):
        values = convert(self.call(y_true if not isinstance(y_true, (list, int, float)) else convert(y_true), convert(y_pred)))._t
        if self.reduction == "mean_with_sample_weight" and sample_weight is not None:
            return wrap(td.sum(weighted(values, sample_weight)) / td.sum(weighted(td.ones_like(values), sample_weight)))
        return reduced(weighted(values, sample_weight), self.reduction)

    def call(self, y_true, y_pred):
        raise NotImplementedError("a Loss defines call(self, y_true, y_pred)")

    def get_config(self):
        return {"name": self.name, "reduction": self.reduction}


class LossFunctionWrapper(Loss):
    def __init__(self, fn, reduction="sum_over_batch_size", name=None, dtype=None, **options):
        super().__init__(name or fn.__name__, reduction)
        self.fn, self._options = fn, options

    def call(self, y_true, y_pred):
        return self.fn(y_true, y_pred, **self._options)


def _made(name, fn, **defaults):
    """A Loss class of a function; the options of the function are those of the class, in order."""
    keys = list(defaults)

    def __init__(self, *values, reduction="sum_over_batch_size", name=None, dtype=None, **options):
        chosen = {**defaults, **dict(zip(keys, values)), **options}
        LossFunctionWrapper.__init__(self, fn, reduction, name or snake(type(self).__name__), **chosen)

    return type(name, (LossFunctionWrapper,), {"__init__": __init__, "__doc__": f"{fn.__name__}, reduced."})


MeanSquaredError, MeanAbsoluteError = _made("MeanSquaredError", mse), _made("MeanAbsoluteError", mae)
MeanAbsolutePercentageError, MeanSquaredLogarithmicError = _made("MeanAbsolutePercentageError", mape), _made("MeanSquaredLogarithmicError", msle)
LogCosh, Huber = _made("LogCosh", log_cosh), _made("Huber", huber, delta=1.0)
Hinge, SquaredHinge, CategoricalHinge = _made("Hinge", hinge), _made("SquaredHinge", squared_hinge), _made("CategoricalHinge", categorical_hinge)
KLDivergence, Poisson, CosineSimilarity = _made("KLDivergence", kld), _made("Poisson", poisson), _made("CosineSimilarity", cosine_similarity, axis=-1)
BinaryCrossentropy = _made("BinaryCrossentropy", binary_crossentropy, from_logits=False, label_smoothing=0.0, axis=-1)
BinaryFocalCrossentropy = _made("BinaryFocalCrossentropy", binary_focal_crossentropy, apply_class_balancing=False, alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0, axis=-1)
CategoricalCrossentropy = _made("CategoricalCrossentropy", categorical_crossentropy, from_logits=False, label_smoothing=0.0, axis=-1)
CategoricalFocalCrossentropy = _made("CategoricalFocalCrossentropy", categorical_focal_crossentropy, alpha=0.25, gamma=2.0, from_logits=False, label_smoothing=0.0, axis=-1)
SparseCategoricalCrossentropy = _made("SparseCategoricalCrossentropy", sparse_categorical_crossentropy, from_logits=False, ignore_class=None, axis=-1)


class Reduction:
    """tf.keras.losses.Reduction."""

    SUM, NONE, SUM_OVER_BATCH_SIZE, AUTO = "sum", "none", "sum_over_batch_size", "sum_over_batch_size"


_FUNCTIONS = {
    name: f for name, f in globals().items() if name.islower() and not name.startswith("_") and getattr(f, "__wrapped__", None) is not None
} | {"MSE": mse, "MAE": mae, "MAPE": mape, "MSLE": msle, "KLD": kld}
_CLASSES = {name: c for name, c in globals().items() if isinstance(c, type) and issubclass(c, Loss)}


def get(identifier):
    """The function of a name; a Loss or a function as it is."""
    if identifier is None or callable(identifier) and not isinstance(identifier, type):
        return identifier
    if isinstance(identifier, type):
        return identifier()
    if identifier in _FUNCTIONS:
        return _FUNCTIONS[identifier]
    if identifier in _CLASSES:
        return _CLASSES[identifier]()
    raise ValueError(f"Could not interpret loss identifier: {identifier}; the names are {sorted(_FUNCTIONS)}")


