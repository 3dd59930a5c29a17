"""tf.keras: models, layers, losses, metrics, optimizers, with Keras 3's defaults."""
from .. import missing as _missing
from . import activations, backend, callbacks, constraints, initializers, layers, losses, metrics, mixed_precision, models, optimizers, regularizers, utils  # noqa: F401
from .layers import Input, KerasTensor, Layer  # noqa: F401
from .losses import Loss  # noqa: F401
from .metrics import Metric  # noqa: F401
from .models import Functional, Model, Sequential  # noqa: F401
from .mixed_precision import DTypePolicy  # noqa: F401
from .optimizers import Optimizer  # noqa: F401

models.Layer, models.Input = Layer, Input
__getattr__ = _missing.getattr_of("keras", globals())
for _name, _module in (("activations", activations), ("callbacks", callbacks), ("initializers", initializers), ("losses", losses), ("metrics", metrics),
                       ("models", models), ("optimizers", optimizers), ("utils", utils)):
    _module.__getattr__, _module.__dir__ = _missing.getattr_of(f"keras.{_name}", vars(_module)), _missing.dir_of(vars(_module))
