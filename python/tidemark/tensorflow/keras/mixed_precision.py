"""tf.keras.mixed_precision: policies of layers, and the scaling of losses for float16."""
import tidemark as td

from .optimizers.loss_scale import LossScaleOptimizer  # noqa: F401

_NAMES = ("float16", "bfloat16", "float32", "float64", "mixed_float16", "mixed_bfloat16")


class Policy:
    """The dtype of a layer's weights, and the dtype it computes in."""

    def __init__(self, name):
        if name not in _NAMES:
            raise ValueError(f"Cannot convert '{name}' to a mixed precision Policy. Valid policies include {', '.join(repr(n) for n in _NAMES)}.")
        self.name = name

    compute_dtype = property(lambda self: self.name.removeprefix("mixed_"))
    variable_dtype = property(lambda self: "float32" if self.name.startswith("mixed_") else self.name)

    def get_config(self):
        return {"name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def __eq__(self, other):
        return isinstance(other, Policy) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f'<DTypePolicy "{self.name}">'


DTypePolicy = Policy
_policies = [Policy("float32")]


def global_policy():
    return _policies[-1]


def set_global_policy(policy):
    _policies[-1] = get(policy)


dtype_policy, set_dtype_policy = global_policy, set_global_policy


def get(policy):
    """A policy, its name or a dtype; None is the global policy."""
    if policy is None:
        return global_policy()
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str):
        return Policy(policy)
    from .. import dtypes

    return Policy(dtypes.as_dtype(policy).name)


_SHORT = {"float16": td.f16, "bfloat16": td.bf16}


def scope(policy):
    """Entered while a layer computes: its float32 weights are read in the dtype it computes in."""
    return td.autocast(_SHORT[policy.compute_dtype] if policy.name.startswith("mixed_") else td.f32)
