"""tf.keras.optimizers.schedules: learning rates as functions of the number of updates."""
import math

import tidemark as td

from ...tensor import convert, wrap


class LearningRateSchedule:
    def __call__(self, step):
        raise NotImplementedError("a schedule defines __call__(self, step)")

    def get_config(self):
        return dict(vars(self))


def _step(step):
    return td.cast(convert(step)._t, td.f32)


class ExponentialDecay(LearningRateSchedule):
    def __init__(self, initial_learning_rate, decay_steps, decay_rate, staircase=False, name="ExponentialDecay"):
        self.initial_learning_rate, self.decay_steps, self.decay_rate, self.staircase = initial_learning_rate, decay_steps, decay_rate, staircase

    def __call__(self, step):
        p = _step(step) / float(self.decay_steps)
        p = td.floor(p) if self.staircase else p
        return wrap(self.initial_learning_rate * td.pow(td.constant(float(self.decay_rate)), p))


class PiecewiseConstantDecay(LearningRateSchedule):
    def __init__(self, boundaries, values, name="PiecewiseConstant"):
        if len(boundaries) != len(values) - 1:
            raise ValueError(f"The length of boundaries should be 1 less than the length of values. Received: boundaries={boundaries}, values={values}")
        self.boundaries, self.values = list(boundaries), list(values)

    def __call__(self, step):
        x = _step(step)
        rate = td.constant(float(self.values[0]))
        for boundary, value in zip(self.boundaries, self.values[1:]):
            rate = td.where(x > float(boundary), td.constant(float(value)), rate)
        return wrap(rate)


class CosineDecay(LearningRateSchedule):
    def __init__(self, initial_learning_rate, decay_steps, alpha=0.0, name="CosineDecay", warmup_target=None, warmup_steps=0):
        self.initial_learning_rate, self.decay_steps, self.alpha = initial_learning_rate, decay_steps, alpha
        self.warmup_target, self.warmup_steps = warmup_target, warmup_steps

    def _decayed(self, x, start):
        part = 0.5 * (1 + td.cos(math.pi * (td.minimum(x, float(self.decay_steps)) / float(self.decay_steps))))
        return start * ((1 - self.alpha) * part + self.alpha)

    def __call__(self, step):
        x = _step(step)
        if self.warmup_target is None:
            return wrap(self._decayed(x, self.initial_learning_rate))
        rise = self.warmup_target - self.initial_learning_rate
        warm = self.initial_learning_rate + rise * (x / float(self.warmup_steps))
        return wrap(td.where(x < float(self.warmup_steps), warm, self._decayed(x - float(self.warmup_steps), self.warmup_target)))


class CosineDecayRestarts(LearningRateSchedule):
    def __init__(self, initial_learning_rate, first_decay_steps, t_mul=2.0, m_mul=1.0, alpha=0.0, name="SGDRDecay"):
        self.initial_learning_rate, self.first_decay_steps = initial_learning_rate, first_decay_steps
        self.t_mul, self.m_mul, self.alpha = t_mul, m_mul, alpha

    def __call__(self, step):
        done = _step(step) / float(self.first_decay_steps)
        if self.t_mul == 1.0:
            period = td.floor(done)
            part = done - period
        else:
            period = td.floor(td.log(1 - done * (1 - self.t_mul)) / math.log(self.t_mul))
            sums = (1 - td.pow(td.constant(float(self.t_mul)), period)) / (1 - self.t_mul)
            part = (done - sums) / td.pow(td.constant(float(self.t_mul)), period)
        cosine = 0.5 * td.pow(td.constant(float(self.m_mul)), period) * (1 + td.cos(math.pi * part))
        return wrap(self.initial_learning_rate * ((1 - self.alpha) * cosine + self.alpha))


class PolynomialDecay(LearningRateSchedule):
    def __init__(self, initial_learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False, name="PolynomialDecay"):
        self.initial_learning_rate, self.decay_steps, self.end_learning_rate = initial_learning_rate, decay_steps, end_learning_rate
        self.power, self.cycle = power, cycle

    def __call__(self, step):
        x, n = _step(step), float(self.decay_steps)
        if self.cycle:
            steps = n * td.maximum(td.ceil(x / n), 1)
        else:
            x, steps = td.minimum(x, n), n
        left = 1 - x / steps
        return wrap((self.initial_learning_rate - self.end_learning_rate) * td.pow(left, td.constant(float(self.power))) + self.end_learning_rate)


class InverseTimeDecay(LearningRateSchedule):
    def __init__(self, initial_learning_rate, decay_steps, decay_rate, staircase=False, name="InverseTimeDecay"):
        self.initial_learning_rate, self.decay_steps, self.decay_rate, self.staircase = initial_learning_rate, decay_steps, decay_rate, staircase

    def __call__(self, step):
        p = _step(step) / float(self.decay_steps)
        p = td.floor(p) if self.staircase else p
        return wrap(self.initial_learning_rate / (1 + self.decay_rate * p))
