"""The update rules of Keras, with its defaults and its places of epsilon."""
import tidemark as td

from ...tensor import wrap
from ...variable import IndexedSlices
from ..initializers import Constant, Ones
from ..backend import KerasVariable
from .base import Optimizer


class _Rule(Optimizer):
    """An optimizer whose own options have defaults, in the order of Keras."""

    defaults = {}

    def __init__(self, *values, **options):
        names = ["learning_rate", *self.defaults]
        given = dict(zip(names, values)) | options
        self.settings = {name: given.pop(name, default) for name, default in self.defaults.items()}
        given.setdefault("learning_rate", self.rate)
        if self.decay is not None:
            given.setdefault("weight_decay", self.decay)
        super().__init__(**given)

    rate, decay = 0.001, None

    def __getattr__(self, name):
        settings = self.__dict__.get("settings", {})
        if name in settings:
            return settings[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    def options(self):
        return dict(self.settings)


class SGD(_Rule):
    rate, defaults = 0.01, {"momentum": 0.0, "nesterov": False}

    def slots_of(self):
        return ("momentum",) if self.momentum else ()

    def takes_rows(self):
        return not self.momentum

    def update(self, g, v, state, rate, step):
        if isinstance(g, IndexedSlices):
            v.assign(wrap(td.scatter_add(v._t, g.indices._t, -(g.values._t * rate))))
            return
        if not self.momentum:
            v.assign_sub(wrap(g * rate))
            return
        m = state["momentum"]
        m.assign(wrap(m._t * self.momentum - g * rate))
        v.assign_add(wrap(m._t * self.momentum - g * rate) if self.nesterov else m.value())


class Adam(_Rule):
    defaults = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7, "amsgrad": False}

    def slots_of(self):
        return ("momentum", "velocity") + (("velocity_hat",) if self.amsgrad else ())

    def update(self, g, v, state, rate, step):
        m, s = state["momentum"], state["velocity"]
        alpha = rate * td.sqrt(1 - td.pow(td.constant(self.beta_2, g.dtype), step)) / (1 - td.pow(td.constant(self.beta_1, g.dtype), step))
        m.assign_add(wrap((g - m._t) * (1 - self.beta_1)))
        s.assign_add(wrap((td.square(g) - s._t) * (1 - self.beta_2)))
        scale = s._t
        if self.amsgrad:
            state["velocity_hat"].assign(wrap(td.maximum(state["velocity_hat"]._t, s._t)))
            scale = state["velocity_hat"]._t
        v.assign_sub(wrap(m._t * alpha / (td.sqrt(scale) + self.epsilon)))


class AdamW(Adam):
    decay = 0.004
    defaults = {"weight_decay": 0.004, **Adam.defaults}

    def __init__(self, *values, **options):
        super().__init__(*values, **options)
        self.weight_decay = self.settings.pop("weight_decay")


class RMSprop(_Rule):
    defaults = {"rho": 0.9, "momentum": 0.0, "epsilon": 1e-7, "centered": False}

    def slots_of(self):
        return ("velocity",) + (("momentum",) if self.momentum else ()) + (("average_gradient",) if self.centered else ())

    def update(self, g, v, state, rate, step):
        s = state["velocity"]
        s.assign(wrap(s._t * self.rho + td.square(g) * (1 - self.rho)))
        scale = s._t + self.epsilon
        if self.centered:
            a = state["average_gradient"]
            a.assign(wrap(a._t * self.rho + g * (1 - self.rho)))
            scale = s._t - td.square(a._t) + self.epsilon
        change = rate * g * td.rsqrt(scale)
        if self.momentum:
            m = state["momentum"]
            m.assign(wrap(self.momentum * m._t + change))
            change = m._t
        v.assign_sub(wrap(change))


class Adagrad(_Rule):
    defaults = {"initial_accumulator_value": 0.1, "epsilon": 1e-7}
    slots = ("accumulator",)

    def initial(self, slot):
        return Constant(self.initial_accumulator_value)

    def update(self, g, v, state, rate, step):
        a = state["accumulator"]
        a.assign_add(wrap(td.square(g)))
        v.assign_sub(wrap(rate * g / td.sqrt(a._t + self.epsilon)))


class Adadelta(_Rule):
    defaults = {"rho": 0.95, "epsilon": 1e-7}
    slots = ("accumulated_grad", "accumulated_delta_var")

    def update(self, g, v, state, rate, step):
        a, d = state["accumulated_grad"], state["accumulated_delta_var"]
        a.assign(wrap(self.rho * a._t + (1 - self.rho) * td.square(g)))
        change = -(td.sqrt(d._t + self.epsilon) * g / td.sqrt(a._t + self.epsilon))
        d.assign(wrap(self.rho * d._t + (1 - self.rho) * td.square(change)))
        v.assign_add(wrap(rate * change))


class Adamax(_Rule):
    defaults = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}
    slots = ("momentum", "norm")

    def update(self, g, v, state, rate, step):
        m, u = state["momentum"], state["norm"]
        m.assign_add(wrap((g - m._t) * (1 - self.beta_1)))
        u.assign(wrap(td.maximum(self.beta_2 * u._t, td.abs(g))))
        v.assign_sub(wrap(rate * m._t / ((1 - td.pow(td.constant(self.beta_1, g.dtype), step)) * (u._t + self.epsilon))))


class Nadam(_Rule):
    defaults = {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}
    slots = ("momentum", "velocity")

    def __init__(self, *values, **options):
        super().__init__(*values, **options)
        self._product = KerasVariable((), Ones(), "float32", False, "u_product")

    def _at(self, step):
        return self.beta_1 * (1 - 0.5 * td.pow(td.constant(0.96), td.cast(step, td.f32)))

    def _before(self, step):
        self._product.assign(wrap(self._product._t * self._at(step)))

    def update(self, g, v, state, rate, step):
        m, s = state["momentum"], state["velocity"]
        now, later = td.cast(self._at(step), g.dtype), td.cast(self._at(step + 1), g.dtype)
        product = td.cast(self._product._t, g.dtype)
        m.assign_add(wrap((g - m._t) * (1 - self.beta_1)))
        s.assign_add(wrap((td.square(g) - s._t) * (1 - self.beta_2)))
        ahead = later * m._t / (1 - product * later) + (1 - now) * g / (1 - product)
        scale = s._t / (1 - td.pow(td.constant(self.beta_2, g.dtype), step))
        v.assign_sub(wrap(ahead * rate / (td.sqrt(scale) + self.epsilon)))


class Ftrl(_Rule):
    defaults = {"learning_rate_power": -0.5, "initial_accumulator_value": 0.1, "l1_regularization_strength": 0.0, "l2_regularization_strength": 0.0,
                "l2_shrinkage_regularization_strength": 0.0, "beta": 0.0}
    slots = ("accumulator", "linear")

    def initial(self, slot):
        return Constant(self.initial_accumulator_value if slot == "accumulator" else 0.0)

    def update(self, g, v, state, rate, step):
        a, linear = state["accumulator"], state["linear"]
        power, l1 = -self.learning_rate_power, self.l1_regularization_strength
        l2 = self.l2_regularization_strength + self.beta / (2 * rate)
        shrunk = g + 2 * self.l2_shrinkage_regularization_strength * v._t
        grown = a._t + td.square(g)
        linear.assign_add(wrap(shrunk - (td.pow(grown, power) - td.pow(a._t, power)) / rate * v._t))
        quadratic = td.pow(grown, power) / rate + 2 * l2
        v.assign(wrap((td.clip(linear._t, -l1, l1) - linear._t) / quadratic))
        a.assign(wrap(grown))


class Lion(_Rule):
    defaults = {"beta_1": 0.9, "beta_2": 0.99}
    slots = ("momentum",)

    def update(self, g, v, state, rate, step):
        m = state["momentum"]
        v.assign_sub(wrap(rate * td.sign(m._t * self.beta_1 + g * (1 - self.beta_1))))
        m.assign(wrap(m._t * self.beta_2 + g * (1 - self.beta_2)))
