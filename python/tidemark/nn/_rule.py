"""Optimizers of your own."""


class ParameterStep:
    """A parameter, or some rows of it, during an update. A rule replaces `parameter` and `slots` by the new values."""

    __slots__ = ("parameter", "gradient", "slots", "decays")

    def __init__(self, parameter, gradient, slots, decays=True):
        self.parameter, self.gradient, self.slots, self.decays = parameter, gradient, slots, decays


class UpdateRule:
    """Defines a kind of optimizer: nn.Optimizer(nn.UpdateRule(apply)).

    `apply(step, numbers)` changes a ParameterStep; it is elementwise, so that rows can be updated alone.
    `numbers(rate, count)` gives scalars that all parameters share, by default the rate alone. `slots` names the state
    of each parameter, initially zero.
    """

    __slots__ = ("apply", "name", "slots", "numbers")

    def __init__(self, apply, *, name="optimizer", slots=(), numbers=None):
        self.apply, self.name, self.slots, self.numbers = apply, name, tuple(slots), numbers
