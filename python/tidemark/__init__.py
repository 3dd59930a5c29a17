"""A tensor runtime whose peak memory is known before it runs: `import tidemark as td`."""
import os as _os

from . import _core
from ._core import *  # noqa: F403
from . import random  # noqa: F401
from ._function import function  # noqa: F401

_core._set_package_folder(_os.path.dirname(__file__) + "/")
