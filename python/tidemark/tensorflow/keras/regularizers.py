"""tf.keras.regularizers."""
import tidemark as td

from ..tensor import convert, wrap


class Regularizer:
    """A penalty on a weight."""

    def __call__(self, x):
        raise NotImplementedError


class L1L2(Regularizer):
    def __init__(self, l1=0.0, l2=0.0):
        self.l1, self.l2 = float(l1 or 0.0), float(l2 or 0.0)

    def __call__(self, x):
        x = convert(x)._t
        total = td.zeros([], x.dtype)
        if self.l1:
            total = total + self.l1 * td.sum(td.abs(x))
        if self.l2:
            total = total + self.l2 * td.sum(td.square(x))
        return wrap(total)


class L1(L1L2):
    def __init__(self, l1=0.01):
        super().__init__(l1=l1)


class L2(L1L2):
    def __init__(self, l2=0.01):
        super().__init__(l2=l2)


l1, l2 = L1, L2


def l1_l2(l1=0.01, l2=0.01):
    return L1L2(l1, l2)


def get(identifier):
    if identifier is None or callable(identifier):
        return identifier
    return {"l1": L1, "l2": L2, "L1": L1, "L2": L2, "l1_l2": l1_l2}[identifier]()
