"""`ag__` in rewritten code."""
import sys

from . import conversion
from .branch import and_, assert_stmt, compare, if_exp, if_stmt, not_, or_  # noqa: F401
from .builtins import REPLACEMENTS
from .conversion import callee  # noqa: F401
from .conversion import convert as convert_function  # noqa: F401
from .loop import for_stmt, while_stmt  # noqa: F401
from .state import UNSET, Block  # noqa: F401

conversion.replacements.update(REPLACEMENTS)
conversion.runtime_cell.cell_contents = sys.modules[__name__]
