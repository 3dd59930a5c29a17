"""tf.keras.metrics: values that accumulate over calls."""
import tidemark as td

from .. import dtypes
from ..tensor import convert, op, wrap
from . import losses
from .backend import KerasVariable, epsilon, snake, unique_name
from .initializers import get as get_initializer
from .losses import KLD, MAE, MAPE, MSE, MSLE, mae, mape, mse, msle, prepared, same_rank, unit, weighted  # noqa: F401


class Metric:
    """update_state adds to Variables, result() reads them, reset_state() sets them to zero."""

    _is_keras_object = True

    def __init__(self, dtype=None, name=None):
        self.name = name or unique_name(snake(type(self).__name__))
        self.dtype = dtypes.as_dtype(dtype or "float32").name
        self._weights = []

    def add_weight(self, shape=(), initializer="zeros", dtype=None, name=None):
        v = KerasVariable(shape or (), get_initializer(initializer), dtype or self.dtype, False, name or "weight")
        self._weights.append(v)
        return v

    def add_variable(self, shape, initializer="zeros", dtype=None, name=None, aggregation=None):
        return self.add_weight(shape, initializer, dtype, name)

    variables = property(lambda self: list(self._weights))

    def _tracked(self):
        return [(v.name, v) for v in self._weights]

    def reset_state(self):
        for v in self._weights:
            v.assign(wrap(td.zeros(list(v._v.shape), v._v.dtype)))

    def update_state(self, *args, **kwargs):
        raise NotImplementedError("a Metric defines update_state")

    def result(self):
        raise NotImplementedError("a Metric defines result")

    def __call__(self, *args, **kwargs):
        self.update_state(*args, **kwargs)
        return self.result()


class Mean(Metric):
    def __init__(self, name="mean", dtype=None):
        super().__init__(dtype, name)
        self.total, self.count = self.add_weight(name="total"), self.add_weight(name="count")

    def update_state(self, values, sample_weight=None):
        values = td.cast(convert(values)._t, td.f32)
        weights = td.ones_like(values) if sample_weight is None else None
        if sample_weight is not None:
            weights = weighted(td.ones_like(values), sample_weight)
        self.total.assign_add(wrap(td.sum(values * weights)))
        self.count.assign_add(wrap(td.sum(weights)))

    def result(self):
        total, count = self.total._t, self.count._t
        return wrap(td.where(td.equal(count, 0), td.zeros_like(total), total / td.where(td.equal(count, 0), td.ones_like(count), count)))


class Sum(Metric):
    def __init__(self, name="sum", dtype=None):
        super().__init__(dtype, name)
        self.total = self.add_weight(name="total")

    def update_state(self, values, sample_weight=None):
        values = td.cast(convert(values)._t, td.f32)
        self.total.assign_add(wrap(td.sum(weighted(values, sample_weight))))

    def result(self):
        return self.total.value()


class MeanMetricWrapper(Mean):
    """The mean of a function of (y_true, y_pred)."""

    def __init__(self, fn, name=None, dtype=None, **options):
        super().__init__(name or fn.__name__, dtype)
        self._fn, self._options = fn, options

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(self._fn(y_true, y_pred, **self._options), sample_weight)


# ---- accuracies ----------------------------------------------------------------------------------


def _compared(f):
    def function(y_true, y_pred, **options):
        return wrap(td.cast(f(convert(y_true)._t, convert(y_pred)._t, **options), td.f32))

    function.__name__ = f.__name__.lstrip("_")
    return op(function)


def _accuracy(t, p):
    t, p = same_rank(t, p)
    return td.equal(td.cast(t, p.dtype), p)


def _binary_accuracy(t, p, threshold=0.5):
    t, p = same_rank(t, p)
    return td.equal(td.cast(t, td.f32), td.cast(td.cast(p, td.f32) > threshold, td.f32))


def _categorical_accuracy(t, p):
    return td.equal(td.argmax(t, axis=-1), td.argmax(p, axis=-1))


def _sparse_categorical_accuracy(t, p):
    t = td.squeeze(t, -1) if t.ndim == p.ndim and t.shape[-1] == 1 else t
    return td.equal(td.cast(t, td.i64), td.argmax(p, axis=-1))


def _sparse_top_k_categorical_accuracy(t, p, k=5):
    t = td.reshape(td.cast(t, td.i64), [-1])
    p = td.reshape(p, [-1, p.shape[-1]])
    own = td.take_along_axis(p, td.expand_dims(t, 1), 1)
    return td.sum(td.cast(p > own, td.i32), axis=1) < k


def _top_k_categorical_accuracy(t, p, k=5):
    return _sparse_top_k_categorical_accuracy(td.argmax(t, axis=-1), p, k)


accuracy, binary_accuracy, categorical_accuracy = _compared(_accuracy), _compared(_binary_accuracy), _compared(_categorical_accuracy)
sparse_categorical_accuracy = _compared(_sparse_categorical_accuracy)
top_k_categorical_accuracy, sparse_top_k_categorical_accuracy = _compared(_top_k_categorical_accuracy), _compared(_sparse_top_k_categorical_accuracy)


@op
def _cosine(y_true, y_pred, axis=-1):
    t, p = prepared(y_true, y_pred)
    return wrap(td.sum(unit(t, axis) * unit(p, axis), axis=axis))


def _wrapped(name, fn, title=None, **defaults):
    keys = list(defaults)

    def __init__(self, *values, name=None, dtype=None, **options):
        chosen = {**defaults, **dict(zip(keys, values)), **options}
        MeanMetricWrapper.__init__(self, fn, name or title or snake(type(self).__name__), dtype, **chosen)

    return type(name, (MeanMetricWrapper,), {"__init__": __init__, "__doc__": f"The mean of {title or name}."})


Accuracy = _wrapped("Accuracy", accuracy)
BinaryAccuracy = _wrapped("BinaryAccuracy", binary_accuracy, threshold=0.5)
CategoricalAccuracy = _wrapped("CategoricalAccuracy", categorical_accuracy)
SparseCategoricalAccuracy = _wrapped("SparseCategoricalAccuracy", sparse_categorical_accuracy)
TopKCategoricalAccuracy = _wrapped("TopKCategoricalAccuracy", top_k_categorical_accuracy, k=5)
SparseTopKCategoricalAccuracy = _wrapped("SparseTopKCategoricalAccuracy", sparse_top_k_categorical_accuracy, k=5)
MeanSquaredError, MeanAbsoluteError = _wrapped("MeanSquaredError", mse), _wrapped("MeanAbsoluteError", mae)
MeanAbsolutePercentageError, MeanSquaredLogarithmicError = _wrapped("MeanAbsolutePercentageError", mape), _wrapped("MeanSquaredLogarithmicError", msle)
LogCoshError = _wrapped("LogCoshError", losses.log_cosh, "logcosh")
CosineSimilarity = _wrapped("CosineSimilarity", _cosine, axis=-1)
BinaryCrossentropy = _wrapped("BinaryCrossentropy", losses.binary_crossentropy, from_logits=False, label_smoothing=0)
CategoricalCrossentropy = _wrapped("CategoricalCrossentropy", losses.categorical_crossentropy, from_logits=False, label_smoothing=0, axis=-1)
SparseCategoricalCrossentropy = _wrapped("SparseCategoricalCrossentropy", losses.sparse_categorical_crossentropy, from_logits=False, ignore_class=None, axis=-1)
KLDivergence, Poisson = _wrapped("KLDivergence", losses.kld, "kl_divergence"), _wrapped("Poisson", losses.poisson)
Hinge, SquaredHinge = _wrapped("Hinge", losses.hinge), _wrapped("SquaredHinge", losses.squared_hinge)
CategoricalHinge = _wrapped("CategoricalHinge", losses.categorical_hinge)


class RootMeanSquaredError(Mean):
    def __init__(self, name="root_mean_squared_error", dtype=None):
        super().__init__(name, dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        t, p = same_rank(*prepared(y_true, y_pred))
        super().update_state(wrap(td.square(p - t)), sample_weight)

    def result(self):
        return wrap(td.sqrt(super().result()._t))


class R2Score(Metric):
    """1 less the share of the variance that the predictions miss, over all outputs together."""

    def __init__(self, class_aggregation="uniform_average", num_regressors=0, name="r2_score", dtype=None):
        super().__init__(dtype, name)
        self._sums = None

    def update_state(self, y_true, y_pred, sample_weight=None):
        t, p = prepared(y_true, y_pred)
        if self._sums is None:
            self._sums = [self.add_weight((t.shape[-1],), name=n) for n in ("squared_sum", "sum", "residual", "count")]
        for v, x in zip(self._sums, (td.square(t), t, td.square(t - p), td.ones_like(t))):
            v.assign_add(wrap(td.sum(x, axis=0)))

    def result(self):
        squares, total, residual, count = (v._t for v in self._sums)
        spread = squares - total * (total / count)
        return wrap(td.mean(1 - residual / spread))


# ---- counts of decisions -------------------------------------------------------------------------


class _Decisions(Metric):
    """Counts of true and false decisions at one or several thresholds."""

    def __init__(self, thresholds=None, name=None, dtype=None, **options):
        super().__init__(dtype, name)
        self._is_one = not isinstance(thresholds, (list, tuple))
        values = [0.5 if thresholds is None else thresholds] if self._is_one else list(thresholds)
        self.thresholds, n = values, len(values)
        self._tp, self._fp = self.add_weight((n,), name="true_positives"), self.add_weight((n,), name="false_positives")
        self._tn, self._fn = self.add_weight((n,), name="true_negatives"), self.add_weight((n,), name="false_negatives")

    def update_state(self, y_true, y_pred, sample_weight=None):
        t = td.reshape(td.cast(convert(y_true)._t, td.bool), [1, -1])
        p = td.reshape(td.cast(convert(y_pred)._t, td.f32), [1, -1]) > td.reshape(td.constant(self.thresholds, td.f32), [-1, 1])
        w = td.ones([1, 1]) if sample_weight is None else td.reshape(td.cast(convert(sample_weight)._t, td.f32), [1, -1])
        for v, a, b in ((self._tp, t, p), (self._fp, td.logical_not(t), p), (self._tn, td.logical_not(t), td.logical_not(p)), (self._fn, t, td.logical_not(p))):
            v.assign_add(wrap(td.sum(td.cast(td.logical_and(a, b), td.f32) * w, axis=1)))

    def _given(self, values):
        return wrap(values[0] if self._is_one else values)


def _ratio(a, b):
    return td.where(td.equal(b, 0), td.zeros_like(a), a / td.where(td.equal(b, 0), td.ones_like(b), b))


class Precision(_Decisions):
    def result(self):
        return self._given(_ratio(self._tp._t, self._tp._t + self._fp._t))


class Recall(_Decisions):
    def result(self):
        return self._given(_ratio(self._tp._t, self._tp._t + self._fn._t))


class TruePositives(_Decisions):
    def result(self):
        return self._given(self._tp._t)


class FalsePositives(_Decisions):
    def result(self):
        return self._given(self._fp._t)


class TrueNegatives(_Decisions):
    def result(self):
        return self._given(self._tn._t)


class FalseNegatives(_Decisions):
    def result(self):
        return self._given(self._fn._t)


class AUC(_Decisions):
    """The area under the ROC or PR curve, by trapezoids between thresholds."""

    def __init__(self, num_thresholds=200, curve="ROC", summation_method="interpolation", name=None, dtype=None, thresholds=None, from_logits=False, **options):
        inner = list(thresholds) if thresholds is not None else [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        super().__init__([-epsilon(), *inner, 1 + epsilon()], name or unique_name("auc"), dtype)
        self.curve, self.from_logits = curve, from_logits

    def update_state(self, y_true, y_pred, sample_weight=None):
        p = td.cast(convert(y_pred)._t, td.f32)
        super().update_state(y_true, wrap(td.sigmoid(p) if self.from_logits else p), sample_weight)

    def result(self):
        tp, fp, tn, fn = (v._t for v in (self._tp, self._fp, self._tn, self._fn))
        recall = _ratio(tp, tp + fn)
        x, y = (_ratio(fp, fp + tn), recall) if self.curve == "ROC" else (recall, _ratio(tp, tp + fp))
        return wrap(td.sum((x[:-1] - x[1:]) * (y[:-1] + y[1:]) / 2))


class F1Score(Metric):
    def __init__(self, average=None, threshold=None, name="f1_score", dtype=None):
        super().__init__(dtype, name)
        self.average, self.threshold, self._sums = average, threshold, None

    def update_state(self, y_true, y_pred, sample_weight=None):
        t, p = prepared(y_true, y_pred)
        if self._sums is None:
            self._sums = [self.add_weight((p.shape[-1],), name=n) for n in ("true_positives", "false_positives", "false_negatives", "true")]
        hit = p > self.threshold if self.threshold is not None else td.equal(p, td.max(p, axis=-1, keepdims=True))
        p = td.cast(hit, td.f32)
        for v, x in zip(self._sums, (p * t, p * (1 - t), (1 - p) * t, t)):
            v.assign_add(wrap(td.sum(x, axis=0)))

    def result(self):
        tp, fp, fn, true = (v._t for v in self._sums)
        if self.average == "micro":
            tp, fp, fn = td.sum(tp), td.sum(fp), td.sum(fn)
        precision, recall = _ratio(tp, tp + fp), _ratio(tp, tp + fn)
        f1 = 2 * _ratio(precision * recall, precision + recall + epsilon())
        if self.average == "macro":
            f1 = td.mean(f1)
        if self.average == "weighted":
            f1 = td.sum(f1 * _ratio(true, td.sum(true)))
        return wrap(f1)


class MeanIoU(Metric):
    """The mean over classes of what labels and predictions share, relative to what either has."""

    def __init__(self, num_classes, name=None, dtype=None, **options):
        super().__init__(dtype, name or unique_name("mean_io_u"))
        self.num_classes = num_classes
        self._matrix = self.add_weight((num_classes, num_classes), name="total_confusion_matrix")

    def update_state(self, y_true, y_pred, sample_weight=None):
        t, p = (td.reshape(td.cast(convert(y)._t, td.i64), [-1]) for y in (y_true, y_pred))
        n = self.num_classes
        ones = td.ones(t.shape, td.f32) if sample_weight is None else td.reshape(td.cast(convert(sample_weight)._t, td.f32), [-1])
        self._matrix.assign_add(wrap(td.reshape(td.scatter_add(td.zeros([n * n]), t * n + p, ones), [n, n])))

    def result(self):
        m = self._matrix._t
        shared = td.sum(m * td.eye(self.num_classes), axis=0)
        either = td.sum(m, axis=0) + td.sum(m, axis=1) - shared
        there = td.cast(td.not_equal(either, 0), td.f32)
        return wrap(td.sum(_ratio(shared, either)) / td.maximum(td.sum(there), 1))


mean_squared_error, mean_absolute_error = mse, mae
_FUNCTIONS = {"accuracy": accuracy, "acc": accuracy, "binary_accuracy": binary_accuracy, "categorical_accuracy": categorical_accuracy,
              "sparse_categorical_accuracy": sparse_categorical_accuracy, "top_k_categorical_accuracy": top_k_categorical_accuracy,
              "sparse_top_k_categorical_accuracy": sparse_top_k_categorical_accuracy}
_CLASSES = {c.__name__: c for c in list(globals().values()) if isinstance(c, type) and issubclass(c, Metric)}
_NAMES = {"mse": MeanSquaredError, "mae": MeanAbsoluteError, "mape": MeanAbsolutePercentageError, "msle": MeanSquaredLogarithmicError,
          "MSE": MeanSquaredError, "MAE": MeanAbsoluteError} | {snake(name): c for name, c in _CLASSES.items()}


def get(identifier):
    if identifier is None or callable(identifier) and not isinstance(identifier, type):
        return identifier
    if isinstance(identifier, type):
        return identifier()
    if identifier in _FUNCTIONS:
        return _FUNCTIONS[identifier]
    return metric_of(identifier, None, None)


def metric_of(identifier, y_true, y_pred):
    """The Metric that `compile(metrics=[identifier])` means, by the shapes of targets and predictions."""
    if isinstance(identifier, Metric):
        return identifier
    if identifier in ("accuracy", "acc"):
        return _accuracy_of(y_true, y_pred, identifier)
    if callable(identifier):
        return MeanMetricWrapper(identifier, getattr(identifier, "name", None) or identifier.__name__)
    made = _NAMES.get(identifier) or _CLASSES.get(identifier)
    if made is not None:
        metric = made()
        metric.name = identifier
        return metric
    if identifier in losses._FUNCTIONS:
        return MeanMetricWrapper(losses._FUNCTIONS[identifier], identifier)
    raise ValueError(f"Could not interpret metric identifier: {identifier}; the names are {sorted(_NAMES)}")


def _accuracy_of(y_true, y_pred, name):
    wide = y_pred.shape[-1]
    if wide == 1:
        return BinaryAccuracy(name=name)
    sparse = y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1
    return (SparseCategoricalAccuracy if sparse else CategoricalAccuracy)(name=name)


