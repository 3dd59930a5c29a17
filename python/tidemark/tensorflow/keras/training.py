"""compile, fit, evaluate, predict: a step is one tf.function."""
import itertools
import weakref

import numpy as np
import tidemark as td

from .. import nest
from ..data import Dataset
from ..function import Function
from ..gradients import GradientTape
from ..math import add_n
from ..tensor import convert, is_tensor, wrap
from . import losses as losses_module
from . import metrics as metrics_module
from . import optimizers
from .callbacks import CallbackList, History, ProgbarLogger


def unpacked(data):
    """x, y and the weights of examples."""
    if not isinstance(data, (list, tuple)):
        return data, None, None
    return (*data, None, None)[:3]


def _rows(structure, start, end):
    return nest.map_structure(lambda a: None if a is None else a[start:end], structure)


def _arrays(structure):
    """Arrays of numbers; floats become float32, as Keras does."""

    def one(a):
        if a is None:
            return None
        array = a.numpy() if is_tensor(a) else np.asarray(a)
        return array.astype(np.float32) if array.dtype == np.float64 else array

    if isinstance(structure, list) and structure and not hasattr(structure[0], "shape") and not isinstance(structure[0], (list, tuple)):
        return one(structure)
    return nest.map_structure(one, structure)


def _is_batches(x):
    return isinstance(x, Dataset) or hasattr(x, "__next__") or hasattr(x, "__iter__") and not hasattr(x, "shape") and not isinstance(x, (list, tuple, dict))


class Batches:
    """What fit goes over: arrays in batches, or whatever yields batches."""

    def __init__(self, x, y=None, sample_weight=None, batch_size=None, steps=None, shuffle=False, class_weight=None):
        self._source, self._steps, self._class_weight = None, steps, class_weight
        if _is_batches(x):
            self._source = x
            return
        self._data = tuple(_arrays(part) for part in (x, y, sample_weight))
        self._size, self._shuffle = batch_size or 32, shuffle
        self._count = len(nest.flatten(self._data[0])[0])

    def split(self, share):
        """The first part for training and the last for validation."""
        at = int(self._count * (1 - share))
        first, last = Batches.__new__(Batches), Batches.__new__(Batches)
        for part, (a, b) in ((first, (0, at)), (last, (at, self._count))):
            part.__dict__.update(self.__dict__, _data=tuple(_rows(d, a, b) for d in self._data), _count=b - a)
        last._shuffle, last._class_weight = False, None
        return first, last

    def _all(self):
        if self._source is not None:
            yield from self._source
            return
        order = np.random.permutation(self._count) if self._shuffle else None
        for start in range(0, self._count, self._size):
            end = min(start + self._size, self._count)
            pick = (lambda a: None if a is None else a[start:end]) if order is None else (lambda a: None if a is None else a[order[start:end]])
            yield tuple(nest.map_structure(pick, d) for d in self._data)

    def steps(self):
        """How many batches a pass has, None where that is not known."""
        if self._steps is not None or self._source is None:
            return self._steps if self._steps is not None else -(-self._count // self._size)
        try:
            return len(self._source)
        except TypeError:
            return None

    def passes(self):
        """Iterators of batches, one for each epoch."""
        running = None
        while True:
            if self._steps is None:
                yield map(self._weighted, self._all())
                continue
            running = running or self._all()
            yield map(self._weighted, itertools.islice(running, self._steps))

    def _weighted(self, batch):
        x, y, weight = unpacked(batch)
        if self._class_weight:
            table = np.ones(max(self._class_weight) + 1, np.float32)
            for label, value in self._class_weight.items():
                table[label] = value
            labels = np.asarray(y)
            labels = labels.argmax(-1) if labels.ndim > 1 and labels.shape[-1] > 1 else labels.reshape(len(labels))
            weight = table[labels.astype(np.int64)]
        return x, y, weight


def _step_data(batch):
    """What a step gets: x, (x, y) or (x, y, weights), as tensors."""
    x, y, weight = _tensors(batch)
    return (x, y, weight) if weight is not None else (x, y) if y is not None else (x,)


def _tensors(batch):
    """A batch as tensors; None where there is nothing."""
    return nest.map_structure(lambda a: None if a is None else convert(a), batch)


class Trainer:
    """The training half of a Model."""

    def compile(self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None, weighted_metrics=None, run_eagerly=False, steps_per_execution=1,
                jit_compile="auto", auto_scale_loss=True, **options):
        self.optimizer = optimizers.get(optimizer)
        scales = auto_scale_loss and getattr(self, "dtype_policy", None) is not None and self.dtype_policy.name == "mixed_float16"
        if scales and not isinstance(self.optimizer, optimizers.LossScaleOptimizer):
            self.optimizer = optimizers.LossScaleOptimizer(self.optimizer)
        self.loss, self._loss_weights = loss, loss_weights
        self._metric_names = list(metrics or []) if not isinstance(metrics, dict) else metrics
        self._weighted_names = list(weighted_metrics or [])
        self.run_eagerly = run_eagerly
        self._loss_tracker = metrics_module.Mean(name="loss")
        self._part_trackers = []  # Of several outputs.
        self._metrics = None
        self._functions = {}
        self.compiled = True

    def _check_compiled(self, what):
        if not getattr(self, "compiled", False):
            raise ValueError(f"You must call `compile()` before calling `{what}()`: model.compile(optimizer=\"adam\", loss=\"mse\")")

    # ---- losses and metrics ----------------------------------------------------------------------

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        parts = []
        if self.loss is not None and y is not None:
            parts += self._target_losses(y, y_pred, sample_weight)
        parts += [convert(loss) for loss in self.losses]
        if not parts:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return add_n([wrap(td.cast(p._t, td.f32)) if p.ndim == 0 else wrap(td.mean(td.cast(p._t, td.f32))) for p in parts])

    def _target_losses(self, y, y_pred, sample_weight):
        targets, predictions = nest.flatten(y), nest.flatten(y_pred)
        given = self._in_order(self.loss, y_pred, len(predictions))
        shares = self._in_order(self._loss_weights, y_pred, len(predictions)) if self._loss_weights is not None else [None] * len(predictions)
        weights = nest.flatten(sample_weight) if sample_weight is not None else [None]
        weights = weights * len(predictions) if len(weights) == 1 else weights
        found = []
        for loss, t, p, share, weight in zip(given, targets, predictions, shares, weights):
            if loss is None:
                continue
            value = _loss_object(loss)(t, p, sample_weight=weight)
            if len(found) < len(self._part_trackers):  # Each loss without its weight.
                self._part_trackers[len(found)].update_state(value, sample_weight=_size_of(p))
            found.append(value if share is None else value * float(share))
        return found

    def _in_order(self, given, y_pred, count):
        """One for each output: given as one, a list, or a dict by the names of outputs."""
        if isinstance(given, dict):
            names = sorted(y_pred) if isinstance(y_pred, dict) else getattr(self, "output_names", sorted(given))
            return [given.get(name) for name in names]
        if isinstance(given, (list, tuple)):
            return list(given)
        return [given] * count

    @property
    def metrics(self):
        if not getattr(self, "compiled", False):
            return []
        own = [v for _, v in self._tracked() if isinstance(v, metrics_module.Metric)]
        return [self._loss_tracker, *self._part_trackers, *(m for group in (self._metrics or []) for m in group if m is not None), *(m for m in own if m is not self._loss_tracker and not any(m is part for part in self._part_trackers))]

    metrics_names = property(lambda self: [m.name for m in self.metrics])

    def reset_metrics(self):
        for m in self.metrics:
            m.reset_state()

    def _make_metrics(self, y, y_pred):
        """The metrics of each output, once shapes are known."""
        targets, predictions = nest.flatten(y), nest.flatten(y_pred)
        names = self._metric_names
        if len(predictions) > 1 and not self._part_trackers:
            outputs = sorted(y_pred) if isinstance(y_pred, dict) else getattr(self, "output_names", [f"output_{i}" for i in range(len(predictions))])
            losses = self._in_order(self.loss, y_pred, len(predictions))
            self._part_trackers = [metrics_module.Mean(name=f"{name}_loss") for name, loss in zip(outputs, losses) if loss is not None]
        if len(predictions) == 1:
            wanted = [list(names.values())[0] if isinstance(names, dict) else names]
        elif isinstance(names, dict):
            wanted = [names.get(n, []) for n in getattr(self, "output_names", sorted(names))]
        else:
            wanted = names if names and all(isinstance(n, (list, tuple)) for n in names) else [names if i == 0 else [] for i in range(len(predictions))]
        wanted = [w if isinstance(w, (list, tuple)) else [w] for w in wanted] + [[]] * (len(predictions) - len(wanted))
        self._metrics = [[metrics_module.metric_of(m, t, p) for m in (*w, *self._weighted_names)] for w, t, p in zip(wanted, targets, predictions)]

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        for group, t, p in zip(self._metrics or [], nest.flatten(y), nest.flatten(y_pred)):
            for m in group:
                m.update_state(t, p)
        return self.get_metrics_result()

    def get_metrics_result(self):
        return {m.name: m.result() for m in self.metrics}

    # ---- steps -----------------------------------------------------------------------------------

    def train_step(self, data):
        x, y, weight = unpacked(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(x, y, y_pred, weight)
            scaled = self.optimizer.scale_loss(loss)
        self._loss_tracker.update_state(loss, sample_weight=_size_of(x))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(scaled, variables), variables))
        return self.compute_metrics(x, y, y_pred, weight)

    def test_step(self, data):
        x, y, weight = unpacked(data)
        y_pred = self(x, training=False)
        loss = self.compute_loss(x, y, y_pred, weight)
        self._loss_tracker.update_state(loss, sample_weight=_size_of(x))
        return self.compute_metrics(x, y, y_pred, weight)

    def predict_step(self, data):
        return self(unpacked(data)[0], training=False)

    def _step(self, name):
        """A step as a compiled function."""
        method = getattr(self, name)
        if getattr(self, "run_eagerly", False):
            return method
        functions = self.__dict__.setdefault("_functions", {})
        if name not in functions:
            model = weakref.ref(self)
            functions[name] = Function(lambda data: getattr(model(), name)(data), reduce_retracing=True, name=name, autograph=False)
        return functions[name]

    def _build_for(self, batch):
        """Everything that has Variables is made before a step is traced."""
        x, y, _ = unpacked(batch)
        needs_metrics = getattr(self, "compiled", False) and self._metrics is None and y is not None
        if self._is_ready() and not needs_metrics:
            return
        first = _tensors(_rows(x, 0, 1))
        y_pred = self(first, training=False)
        self._clear_losses()
        if needs_metrics:
            self._make_metrics(_tensors(_rows(y, 0, 1)), y_pred)
            for group, t, p in zip(self._metrics, nest.flatten(_tensors(_rows(y, 0, 1))), nest.flatten(y_pred)):
                for m in group:
                    m.update_state(t, p)
                    m.reset_state()

    def _is_ready(self):
        return self.built and getattr(self, "_was_called", False)

    # ---- loops -----------------------------------------------------------------------------------

    def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None, validation_split=0.0, validation_data=None, shuffle=True,
            class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None, validation_steps=None, validation_batch_size=None, validation_freq=1):
        self._check_compiled("fit")
        batches = Batches(x, y, sample_weight, batch_size, steps_per_epoch, shuffle, class_weight)
        validation = None
        if validation_split and validation_data is None:
            batches, validation = batches.split(validation_split)
        elif validation_data is not None:
            parts = (validation_data,) if _is_batches(validation_data) else unpacked(validation_data)
            validation = Batches(*parts, batch_size=validation_batch_size or batch_size, steps=validation_steps)
        history = History()
        extra = [ProgbarLogger(verbose)] if verbose not in (0, "auto") else []
        events = CallbackList([*(callbacks or []), *extra, history], self, {"epochs": epochs, "verbose": verbose, "steps": batches.steps()})
        self.stop_training, self.history = False, history
        events.on_train_begin()
        passes, logs = batches.passes(), {}
        for epoch in range(initial_epoch, epochs):
            events.on_epoch_begin(epoch)
            logs = self._epoch(next(passes), "train_step", events, "train")
            if validation is not None and (epoch + 1) % validation_freq == 0:
                found = self._tested(validation, events)
                logs |= {f"val_{name}": value for name, value in found.items()}
            events.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        self.optimizer.finalize_variable_values(self.trainable_variables) if getattr(self, "optimizer", None) else None
        events.on_train_end(logs)
        return history

    def _epoch(self, batches, step, events, what):
        """One pass; the values at its end."""
        self.reset_metrics()
        logs, function = {}, None
        for number, batch in enumerate(batches):
            self._build_for(batch)
            function = function or self._step(step)
            getattr(events, f"on_{what}_batch_begin")(number)
            results = function(_step_data(batch))
            logs = _numbers(results)
            getattr(events, f"on_{what}_batch_end")(number, logs)
            if self.stop_training:
                break
        return dict(logs)

    def _tested(self, batches, events):
        events.on_test_begin()
        logs = self._epoch(next(batches.passes()), "test_step", events, "test")
        events.on_test_end(logs)
        return logs

    def evaluate(self, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None, return_dict=False, **options):
        self._check_compiled("evaluate")
        batches = Batches(x, y, sample_weight, batch_size, steps)
        self.stop_training = False
        logs = self._tested(batches, CallbackList(list(callbacks or []), self, {"steps": batches.steps()}))
        return logs if return_dict else _listed(logs)

    def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None):
        batches, parts = Batches(x, batch_size=batch_size, steps=steps), []
        events, function = CallbackList(list(callbacks or []), self, {"steps": batches.steps()}), None
        events.on_predict_begin()
        for number, batch in enumerate(next(batches.passes())):
            self._build_for(batch)
            function = function or self._step("predict_step")
            events.on_predict_batch_begin(number)
            parts.append(nest.map_structure(lambda t: t.numpy(), function(_step_data(batch))))
            events.on_predict_batch_end(number, {"outputs": parts[-1]})
        events.on_predict_end()
        return nest.map_structure(lambda *arrays: np.concatenate(arrays), *parts)

    def predict_on_batch(self, x):
        return nest.map_structure(lambda t: t.numpy(), self(_tensors(_arrays(x)), training=False))

    def train_on_batch(self, x, y=None, sample_weight=None, class_weight=None, return_dict=False):
        self._check_compiled("train_on_batch")
        return self._one("train_step", x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(self, x, y=None, sample_weight=None, return_dict=False):
        self._check_compiled("test_on_batch")
        return self._one("test_step", x, y, sample_weight, None, return_dict)

    def _one(self, step, x, y, sample_weight, class_weight, return_dict):
        size = len(nest.flatten(_arrays(x))[0])
        (batch,) = next(Batches(x, y, sample_weight, size, class_weight=class_weight).passes())
        self._build_for(batch)
        self.reset_metrics()
        logs = _numbers(self._step(step)(_step_data(batch)))
        return logs if return_dict else _listed(logs)


def _size_of(x):
    return wrap(td.cast(_first(x)._t.shape[0], td.f32)) if not isinstance(_first(x)._t.shape[0], int) else convert(float(_first(x)._t.shape[0]))


def _first(x):
    return nest.flatten(x)[0]


def _numbers(results):
    return {name: float(v) if is_tensor(v) and convert(v).ndim == 0 else v.numpy() if is_tensor(v) else v for name, v in results.items()}


def _listed(logs):
    values = list(logs.values())
    return values[0] if len(values) == 1 else values


def _loss_object(loss):
    found = losses_module.get(loss)
    if isinstance(found, losses_module.Loss):
        return found
    return losses_module.LossFunctionWrapper(found, name=getattr(found, "__name__", "loss"))
