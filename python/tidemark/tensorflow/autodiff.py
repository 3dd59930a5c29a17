"""tf.autodiff."""
from .gradients import ForwardAccumulator, GradientTape  # noqa: F401
