"""tf.bitwise."""
import tidemark as td

from .math import _binary
from .tensor import op, raw, wrap

bitwise_and = _binary("bitwise_and", td.bitwise_and)
bitwise_or = _binary("bitwise_or", td.bitwise_or)
bitwise_xor = _binary("bitwise_xor", td.bitwise_xor)
left_shift = _binary("left_shift", td.left_shift)
right_shift = _binary("right_shift", td.right_shift)


@op
def invert(x):
    return wrap(td.bitwise_invert(raw(x)))
