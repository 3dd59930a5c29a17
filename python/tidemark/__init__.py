"""A tensor runtime whose peak memory is known before it runs: `import tidemark as td`."""
import os as _os
import sys as _sys

from . import _core
from ._core import *  # noqa: F403
from . import fft, random  # noqa: F401
from ._function import function  # noqa: F401
from . import autograph  # noqa: F401
from .autograph.range import range  # noqa: F401
from ._gradients import custom_gradient, grad, hvp, jacobian, recompute, value_and_grad  # noqa: F401

newaxis = None  # x[:, td.newaxis], as in NumPy.

_core._set_package_folder(_os.path.dirname(__file__) + "/")

# Modules of this package in place of those of the extension, which they extend.
import tidemark.data as data  # noqa: E402, F401
import tidemark.io as io  # noqa: E402, F401
import tidemark.linalg as linalg  # noqa: E402, F401
import tidemark.memory as memory  # noqa: E402, F401
import tidemark.nn as nn  # noqa: E402, F401
import tidemark.report as report  # noqa: E402, F401


def __getattr__(name):
    if name == "array_api":  # Imported when first asked for: it is long, and few programs need it.
        import importlib
        return importlib.import_module(".array_api", __name__)
    # With both, Python adds the name that is nearest.
    raise AttributeError(f"module 'tidemark' has no attribute {name!r}", name=name, obj=_sys.modules[__name__])
