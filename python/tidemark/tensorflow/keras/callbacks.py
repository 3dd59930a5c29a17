"""tf.keras.callbacks."""
import csv
import math
import sys
import weakref

import numpy as np


class Callback:
    """Methods that fit, evaluate and predict call."""

    def __init__(self):
        self.validation_data = self._model = None  # The model is held weakly: it holds its History.
        self.params = {}

    model = property(lambda self: None if self._model is None else self._model())

    def set_params(self, params):
        self.params = params

    def set_model(self, model):
        self._model = weakref.ref(model)


_EVENTS = [f"on_{what}_{when}" for what in ("train", "test", "predict", "epoch", "batch", "train_batch", "test_batch", "predict_batch") for when in ("begin", "end")]
for _event in _EVENTS:
    _positional = "epoch" in _event or "batch" in _event
    if _event in ("on_train_batch_begin", "on_train_batch_end"):
        continue
    setattr(Callback, _event, (lambda self, index, logs=None: None) if _positional else (lambda self, logs=None: None))
Callback.on_train_batch_begin = lambda self, batch, logs=None: self.on_batch_begin(batch, logs)
Callback.on_train_batch_end = lambda self, batch, logs=None: self.on_batch_end(batch, logs)


class CallbackList:
    def __init__(self, callbacks, model, params):
        self.callbacks = callbacks
        for each in callbacks:
            each.set_params(params)
            each.set_model(model)

    def __getattr__(self, event):
        def call(*args, **kwargs):
            for each in self.callbacks:
                getattr(each, event)(*args, **kwargs)

        return call


class History(Callback):
    """Losses and metrics by epoch."""

    def __init__(self):
        super().__init__()
        self.history, self.epoch = {}, []

    def on_train_begin(self, logs=None):
        self.history, self.epoch = {}, []

    def on_epoch_end(self, epoch, logs=None):
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)


class LambdaCallback(Callback):
    def __init__(self, **events):
        super().__init__()
        for name, f in events.items():
            if f is not None:
                setattr(self, name, f)


class _Monitor(Callback):
    """Watches one value: whether it is better than the best so far."""

    def __init__(self, monitor, mode, min_delta=0.0):
        super().__init__()
        self.monitor, self.mode, self.min_delta = monitor, mode, abs(min_delta)
        self.best = None

    def _grows(self):
        return self.mode == "max" or self.mode == "auto" and any(word in self.monitor for word in ("acc", "auc", "precision", "recall", "f1"))

    def _is_better(self, value, best):
        if best is None:
            return True
        return value - self.min_delta > best if self._grows() else value + self.min_delta < best

    def _value(self, logs):
        value = (logs or {}).get(self.monitor)
        if value is None:
            print(f"{type(self).__name__}: {self.monitor} is not among {sorted(logs or {})}", file=sys.stderr)
        return value


class EarlyStopping(_Monitor):
    def __init__(self, monitor="val_loss", min_delta=0, patience=0, verbose=0, mode="auto", baseline=None, restore_best_weights=False, start_from_epoch=0):
        super().__init__(monitor, mode, min_delta)
        self.patience, self.baseline, self.restore_best_weights, self.start_from_epoch = patience, baseline, restore_best_weights, start_from_epoch
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best_weights = None

    def on_train_begin(self, logs=None):
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best = self.best_weights = None

    def on_epoch_end(self, epoch, logs=None):
        value = self._value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self._is_better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._is_better(value, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch, self.model.stop_training = epoch, True

    def on_train_end(self, logs=None):
        if self.restore_best_weights and self.best_weights is not None:
            self.model.set_weights(self.best_weights)


class ModelCheckpoint(_Monitor):
    def __init__(self, filepath, monitor="val_loss", verbose=0, save_best_only=False, save_weights_only=False, mode="auto", save_freq="epoch", initial_value_threshold=None):
        super().__init__(monitor, mode)
        self.filepath, self.save_best_only, self.best = str(filepath), save_best_only, initial_value_threshold

    def on_epoch_end(self, epoch, logs=None):
        if self.save_best_only:
            value = self._value(logs)
            if value is None or not self._is_better(value, self.best):
                return
            self.best = value
        self.model.save_weights(self.filepath.format(epoch=epoch + 1, **(logs or {})))


class LearningRateScheduler(Callback):
    def __init__(self, schedule, verbose=0):
        super().__init__()
        self.schedule = schedule

    def on_epoch_begin(self, epoch, logs=None):
        rate = float(self.model.optimizer.learning_rate)
        try:
            rate = self.schedule(epoch, rate)
        except TypeError:
            rate = self.schedule(epoch)
        self.model.optimizer.learning_rate = float(rate)

    def on_epoch_end(self, epoch, logs=None):
        logs["learning_rate"] = float(self.model.optimizer.learning_rate)


class ReduceLROnPlateau(_Monitor):
    def __init__(self, monitor="val_loss", factor=0.1, patience=10, verbose=0, mode="auto", min_delta=1e-4, cooldown=0, min_lr=0.0, **options):
        super().__init__(monitor, mode, min_delta)
        self.factor, self.patience, self.cooldown, self.min_lr = factor, patience, cooldown, min_lr
        self.wait = self.cooling = 0

    def on_train_begin(self, logs=None):
        self.best, self.wait, self.cooling = None, 0, 0

    def on_epoch_end(self, epoch, logs=None):
        value, optimizer = self._value(logs), self.model.optimizer
        logs["learning_rate"] = float(optimizer.learning_rate)
        if value is None:
            return
        if self.cooling > 0:
            self.cooling, self.wait = self.cooling - 1, 0
        if self._is_better(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooling <= 0:
            self.wait += 1
            rate = float(optimizer.learning_rate)
            if self.wait >= self.patience and rate > np.float32(self.min_lr):
                optimizer.learning_rate = max(rate * self.factor, self.min_lr)
                self.cooling, self.wait = self.cooldown, 0


class TerminateOnNaN(Callback):
    def on_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss")
        if loss is not None and not math.isfinite(loss):
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class CSVLogger(Callback):
    def __init__(self, filename, separator=",", append=False):
        super().__init__()
        self.filename, self.separator, self.append = filename, separator, append
        self._writer = None

    def on_train_begin(self, logs=None):
        self._file = open(self.filename, "a" if self.append else "w", newline="")

    def on_epoch_end(self, epoch, logs=None):
        logs = logs or {}
        if self._writer is None:
            self._keys = sorted(logs)
            if not any(key.startswith("val_") for key in self._keys):
                self._keys += [f"val_{key}" for key in self._keys]
            self._writer = csv.DictWriter(self._file, ["epoch", *self._keys], delimiter=self.separator)
            if not self.append:
                self._writer.writeheader()
        self._writer.writerow({"epoch": epoch, **{key: logs.get(key, "NA") for key in self._keys}})
        self._file.flush()

    def on_train_end(self, logs=None):
        self._file.close()
        self._writer = None


class ProgbarLogger(Callback):
    """One line for each epoch."""

    def __init__(self, verbose=1):
        super().__init__()
        self.verbose = verbose

    def on_epoch_end(self, epoch, logs=None):
        values = " - ".join(f"{name}: {value:.4f}" for name, value in (logs or {}).items() if isinstance(value, float))
        print(f"Epoch {epoch + 1}/{self.params.get('epochs')} - {values}", flush=True)
