"""tf.keras.optimizers.LossScaleOptimizer: float16 has a small range, so gradients are those of a larger loss."""
import tidemark as td

from ... import control
from ...tensor import convert, wrap
from ...variable import IndexedSlices
from ..backend import KerasVariable
from ..initializers import Constant, Zeros
from .base import Optimizer


class LossScaleOptimizer(Optimizer):
    """Skips updates whose gradients are not finite and halves the scale; doubles it after many that are."""

    def __init__(self, inner_optimizer, initial_scale=2.0**15, dynamic_growth_steps=2000, name=None, **options):
        if not isinstance(inner_optimizer, Optimizer):
            raise TypeError(f"LossScaleOptimizer: {inner_optimizer!r} is not an optimizer")
        if dynamic_growth_steps < 1:
            raise ValueError(f"Expected `dynamic_growth_steps` to be at least 1, got {dynamic_growth_steps}")
        self.inner_optimizer, self.initial_scale, self.dynamic_growth_steps = inner_optimizer, initial_scale, dynamic_growth_steps
        self.name = name or "loss_scale_optimizer"
        self.step_counter = KerasVariable((), Zeros(), "int64", False, "step_counter")
        self.dynamic_scale = KerasVariable((), Constant(initial_scale), "float32", False, "dynamic_scale")

    # What it does not do itself, the optimizer inside does.
    iterations = property(lambda self: self.inner_optimizer.iterations)
    variables = property(lambda self: [self.step_counter, self.dynamic_scale, *self.inner_optimizer.variables])
    learning_rate = property(lambda self: self.inner_optimizer.learning_rate, lambda self, value: setattr(self.inner_optimizer, "learning_rate", value))
    lr = learning_rate

    def build(self, variables):
        self.inner_optimizer.build(variables)

    def scale_loss(self, loss):
        loss = convert(loss)
        return wrap(loss._t * td.cast(self.dynamic_scale._t, loss._t.dtype))

    def apply(self, grads, trainable_variables=None):
        variables = self.inner_optimizer._trained if trainable_variables is None else list(trainable_variables)
        pairs = [(g, v) for g, v in zip(grads, variables) if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        self.build([v for _, v in pairs])
        finite = td.constant(True)
        for gradient, _ in pairs:
            finite = td.logical_and(finite, td.all(td.isfinite(_values(gradient))))

        def update():
            factor = 1.0 / self.dynamic_scale._t
            self.inner_optimizer.apply([_times(g, factor) for g, _ in pairs], [v for _, v in pairs])
            steps = self.step_counter._t + 1
            grows = td.greater_equal(steps, self.dynamic_growth_steps)
            self.dynamic_scale.assign(wrap(td.where(grows, self.dynamic_scale._t * 2.0, self.dynamic_scale._t)))
            self.step_counter.assign(wrap(td.where(grows, td.zeros_like(steps), steps)))
            return convert(0)

        def skip():
            self.step_counter.assign(wrap(td.zeros_like(self.step_counter._t)))
            self.dynamic_scale.assign(wrap(self.dynamic_scale._t / 2.0))
            return convert(0)

        control.cond(wrap(finite), update, skip)

    def finalize_variable_values(self, var_list):
        self.inner_optimizer.finalize_variable_values(var_list)

    def get_config(self):
        return {"name": self.name, "initial_scale": self.initial_scale, "dynamic_growth_steps": self.dynamic_growth_steps,
                "inner_optimizer": self.inner_optimizer.get_config()}


def _values(gradient):
    return gradient.values._t if isinstance(gradient, IndexedSlices) else convert(gradient)._t


def _times(gradient, factor):
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(wrap(gradient.values._t * factor), gradient.indices, gradient.dense_shape)
    return wrap(convert(gradient)._t * factor)
