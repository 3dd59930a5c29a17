"""What all optimizers of Keras share: the rate, clipping, weight decay, averages, accumulation."""
import tidemark as td

from ... import control
from ...math import clip_by_global_norm, clip_by_norm, clip_by_value
from ...tensor import convert, wrap
from ...variable import IndexedSlices, Variable
from ..backend import KerasVariable, snake
from ..initializers import Constant, Zeros
from .schedules import LearningRateSchedule


class Optimizer:
    """A rule is `slots`, the names of state for each Variable, and `update(gradient, variable, state, rate, step)`."""

    _is_keras_object = True
    slots = ()

    def __init__(self, learning_rate=0.001, weight_decay=None, clipnorm=None, clipvalue=None, global_clipnorm=None, use_ema=False, ema_momentum=0.99,
                 ema_overwrite_frequency=None, loss_scale_factor=None, gradient_accumulation_steps=None, name=None, **options):
        self.name = name or snake(type(self).__name__)
        if sum(x is not None for x in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError("Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set.")
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.weight_decay, self.use_ema, self.ema_momentum = weight_decay, use_ema, ema_momentum
        self.gradient_accumulation_steps, self._undecayed = gradient_accumulation_steps, set()
        self._iterations = KerasVariable((), Zeros(), "int64", False, "iteration")
        self._schedule = learning_rate if isinstance(learning_rate, LearningRateSchedule) or callable(learning_rate) and not isinstance(learning_rate, Variable) else None
        if self._schedule is None:
            self._rate = KerasVariable((), Constant(learning_rate), "float32", False, "learning_rate")
        self._trained, self._state, self._averages, self._sums = [], [], [], []

    # ---- state -----------------------------------------------------------------------------------

    @property
    def iterations(self):
        if self.gradient_accumulation_steps:
            return wrap(td.floor_divide(self._iterations._t, self.gradient_accumulation_steps))
        return self._iterations

    @property
    def learning_rate(self):
        return self._rate if self._schedule is None else wrap(convert(self._schedule(self.iterations))._t)

    @learning_rate.setter
    def learning_rate(self, value):
        if self._schedule is not None:
            raise TypeError("This optimizer was created with a LearningRateSchedule, so its learning rate cannot be set.")
        self._rate.assign(wrap(td.cast(convert(value)._t, td.f32)))

    lr = learning_rate

    @property
    def variables(self):
        rate = [] if self._schedule is not None else [self._rate]
        return [self._iterations, *rate, *(v for state in self._state for v in state.values()), *self._averages, *self._sums]

    def _tracked(self):
        return [(str(i), v) for i, v in enumerate(self.variables)]

    def _checkpoint_parts(self):
        return self._tracked()

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        self._undecayed |= {id(v) for v in var_list or []}
        self._undecayed_names = list(var_names or [])

    def build(self, variables):
        """The state for Variables that are trained; what is there stays."""
        known = {id(v) for v in self._trained}
        for v in variables:
            if id(v) in known:
                continue
            shape, dtype = list(v._v.shape), v.dtype
            self._trained.append(v)
            self._state.append({name: KerasVariable(shape, self.initial(name), dtype, False, name) for name in self.slots_of()})
            if self.use_ema:
                self._averages.append(KerasVariable(shape, Zeros(), dtype, False, "average"))
            if self.gradient_accumulation_steps:
                self._sums.append(KerasVariable(shape, Zeros(), dtype, False, "gradient"))

    def slots_of(self):
        return self.slots

    def initial(self, slot):
        return Zeros()

    # ---- updates ---------------------------------------------------------------------------------

    def apply_gradients(self, grads_and_vars, name=None, **options):
        pairs = [(g, v) for g, v in grads_and_vars]
        self.apply([g for g, _ in pairs], [v for _, v in pairs])
        return self.iterations

    def apply(self, grads, trainable_variables=None):
        variables = self._trained if trainable_variables is None else list(trainable_variables)
        pairs = [(g, v) for g, v in zip(grads, variables) if g is not None]
        if not pairs:
            raise ValueError("No gradients provided for any variable.")
        self.build([v for _, v in pairs])
        keeps_rows = self.takes_rows() and not (self.clipnorm or self.clipvalue or self.global_clipnorm or self.gradient_accumulation_steps)
        gradients, chosen = [g if keeps_rows and isinstance(g, IndexedSlices) else _dense(g, v) for g, v in pairs], [v for _, v in pairs]
        if self.gradient_accumulation_steps:
            self._accumulate(gradients, chosen)
        else:
            self._step(gradients, chosen)
        self._iterations.assign_add(1)

    def _accumulate(self, gradients, variables):
        every, at = self.gradient_accumulation_steps, [self._index(v) for v in variables]
        is_last = wrap(td.equal(td.remainder(self._iterations._t + 1, every), 0))

        def update():
            self._step([(g + self._sums[i]._t) / every for g, i in zip(gradients, at)], variables)
            for i in at:
                self._sums[i].assign(wrap(td.zeros_like(self._sums[i]._t)))
            return convert(0)

        def add():
            for g, i in zip(gradients, at):
                self._sums[i].assign_add(wrap(g))
            return convert(0)

        control.cond(is_last, update, add)

    def _index(self, variable):
        return next(i for i, v in enumerate(self._trained) if v is variable)

    def _step(self, gradients, variables):
        gradients = self._clipped(gradients)
        rate = self.learning_rate._t
        step = td.cast(convert(self.iterations)._t, td.f32) + 1
        self._before(step)
        for g, v in zip(gradients, variables):
            kind = v._v.dtype
            own = td.cast(rate, kind)
            if self.weight_decay is not None and id(v) not in self._undecayed:
                v.assign(wrap(v._t - v._t * td.cast(td.constant(float(self.weight_decay)), kind) * own))
            self.update(g, v, self._state[self._index(v)], own, td.cast(step, kind))
            if v.constraint is not None:
                v.assign(v.constraint(v.value()))
        if self.use_ema:
            self._average(variables)

    def takes_rows(self):
        """Whether `update` takes the rows of a table as IndexedSlices; else their sum is made dense."""
        return False

    def _before(self, step):
        """What a rule computes once for all Variables."""

    def update(self, gradient, variable, state, rate, step):
        raise NotImplementedError("an Optimizer defines update(self, gradient, variable, state, rate, step)")

    def _clipped(self, gradients):
        if not (self.clipnorm or self.clipvalue or self.global_clipnorm):
            return gradients
        given = [wrap(g) for g in gradients]
        if self.clipnorm is not None:
            given = [clip_by_norm(g, float(self.clipnorm)) for g in given]
        if self.clipvalue is not None:
            given = [clip_by_value(g, -float(self.clipvalue), float(self.clipvalue)) for g in given]
        if self.global_clipnorm is not None:
            given = clip_by_global_norm(given, float(self.global_clipnorm))[0]
        return [g._t for g in given]

    def _average(self, variables):
        seen = td.cast(td.not_equal(self._iterations._t, 0), td.f32) * float(self.ema_momentum)
        for v in variables:
            average = self._averages[self._index(v)]
            part = td.cast(seen, v._v.dtype)
            average.assign(wrap(part * average._t + (1 - part) * v._t))

    def finalize_variable_values(self, var_list):
        """The averages become the values, where averages are kept."""
        for v in var_list if self.use_ema else []:
            v.assign(self._averages[self._index(v)].value())

    def scale_loss(self, loss):
        """The loss whose gradients `apply` takes."""
        return loss

    def minimize(self, loss, var_list, tape=None):
        if callable(loss):
            from ...gradients import GradientTape

            with GradientTape() as tape:
                loss = self.scale_loss(loss())
        gradients = tape.gradient(loss, list(var_list))
        return self.apply_gradients(zip(gradients, var_list))

    def get_config(self):
        return {"name": self.name, "weight_decay": self.weight_decay, "clipnorm": self.clipnorm, "global_clipnorm": self.global_clipnorm, "clipvalue": self.clipvalue,
                "use_ema": self.use_ema, "ema_momentum": self.ema_momentum, "learning_rate": float(convert(self.learning_rate)), **self.options()}

    def options(self):
        return {}


def _dense(gradient, variable):
    if isinstance(gradient, IndexedSlices):
        zero = td.zeros(list(variable._v.shape), variable._v.dtype)
        return td.scatter_add(zero, gradient.indices._t, gradient.values._t)
    return convert(gradient)._t
