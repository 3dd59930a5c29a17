"""nn.fit, and its bar in notebooks."""

import contextlib
import sys

from .. import _core, data
from ._module import _remember


def _are_arrays(given):
    if isinstance(given, (tuple, list, dict)):
        parts = list(given.values()) if isinstance(given, dict) else given
        return len(parts) > 0 and all(hasattr(each, "shape") for each in parts)
    return hasattr(given, "shape")


def _batches(given, batch_size, shuffle):
    """Arrays (x, y) or (x, y, weights) as batches; anything else as it is. x and y may be tuples, lists or dicts of arrays."""
    if isinstance(given, tuple) and len(given) in (2, 3) and all(_are_arrays(each) for each in given):
        rows = data.from_tensor_slices(given)
        return (rows.shuffle() if shuffle else rows).batch(batch_size)
    return given


@contextlib.contextmanager
def _notebook_bar():
    """In a notebook the bar is an output that is updated in place; elsewhere the terminal has it."""
    kernel = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if kernel is None or not hasattr(kernel, "kernel"):
        sys.stdout.flush()  # Lines of ours go to the same place past Python's buffer.
        yield
        return
    from IPython.display import display

    shown = display({"text/plain": ""}, raw=True, display_id=True)
    _core._set_bar_sink(lambda text: shown.update({"text/plain": text}, raw=True))
    try:
        yield
    finally:
        _core._set_bar_sink(None)


def fit(
    model,
    batches,
    *,
    loss=None,
    loss_weights=None,
    optimizer=None,
    epochs=1,
    initial_epoch=0,
    budget=None,
    autocast=None,
    validation=None,
    checkpoint="",
    on_epoch=None,
    on_batch=None,
    callbacks=(),
    early_stopping=None,
    metrics=None,
    progress="automatic",
    batch_size=32,
    shuffle=True,
):
    """Trains a model and returns the History.

    batches: a td.data.Dataset of pairs, any iterable of pairs (x, y) that can be walked once an epoch, or two arrays
        (x, y), which are cut into batches of `batch_size`, in another order in each epoch if `shuffle` is true.
        x and y may be tuples, lists or dicts: a model of several inputs is called with them, model(a, b) or
        model(a=..., b=...), and a model of several outputs returns a tuple, a list or a dict.
        A third part is weights, one for each example or element, which the losses take: loss(y_true, y_pred, weights=w).
    loss: a function of (y_true, y_pred): one of nn.losses, or your own. For several outputs a list, or a dict by their
        names; their sum, weighted by `loss_weights`, is minimised, and metrics have each as "name_loss".
    optimizer: nn.Adam() if none is given.
    initial_epoch: epochs that were made before, which are not made again.
    budget: the most bytes that a step may add, and a step of validation.
    autocast: mixed precision: td.bf16 or td.f16 (td.autocast).
    validation: batches, evaluated after each epoch in evaluation mode.
    checkpoint: a file to which the model and the optimizer are saved after each epoch.
    on_epoch: called with each Epoch; `epoch.stop = True` ends training.
    on_batch: called with each Batch of training; `batch.stop = True` ends training after it.
    callbacks: objects with any of on_train_begin(), on_epoch_begin(number), on_batch(batch), on_epoch(epoch) and
        on_train_end(history).
    early_stopping: nn.EarlyStopping(patience=3).
    metrics: {"accuracy": nn.metrics.accuracy, "f1": nn.metrics.F1()}: functions, or metrics that run over batches. For
        several outputs {"head": {"accuracy": ...}}.
    progress: "automatic" (a bar at a terminal and in a notebook, else lines), "bar", "lines" or "none".
    """
    pairs = _batches(batches, batch_size, shuffle)
    with _notebook_bar():
        history = _core.nn._fit(
            model,
            pairs,
            loss=loss,
            loss_weights=loss_weights,
            optimizer=optimizer if optimizer is not None else _core.nn.Adam(),
            epochs=epochs,
            initial_epoch=initial_epoch,
            budget=budget,
            autocast=autocast,
            validation=_batches(validation, batch_size, False),
            checkpoint=checkpoint,
            on_epoch=on_epoch,
            on_batch=on_batch,
            callbacks=callbacks,
            early_stopping=early_stopping,
            metrics=metrics or {},
            progress=progress,
        )
    return history


def evaluate(model, batches, *, loss=None, loss_weights=None, metrics=None, budget=None, autocast=None, batch_size=32):
    """The loss and the metrics of a model over all batches, one at a time, in evaluation mode: an Evaluation.

    The arguments are those of nn.fit.
    """
    return _core.nn._evaluate(
        model,
        _batches(batches, batch_size, False),
        loss=loss,
        loss_weights=loss_weights,
        metrics=metrics or {},
        budget=budget,
        autocast=autocast,
    )
