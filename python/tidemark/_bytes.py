"""Numbers of bytes that print themselves for people."""

from . import _core


class Bytes(int):
    """A number of bytes: an int that prints as "64.0 MiB". Sums, differences and multiples of it are Bytes too."""

    __slots__ = ()

    def __str__(self):
        return _core._bytes_text(int(self))

    def __repr__(self):
        return f"Bytes({int(self)})"

    def __format__(self, spec):
        return format(int(self) if spec and spec[-1] in "dxX,_n" else str(self), spec)

    def __add__(self, other):
        return _bytes(int.__add__(self, other))

    __radd__ = __add__

    def __sub__(self, other):
        return _bytes(int.__sub__(self, other))

    def __rsub__(self, other):
        return _bytes(int.__rsub__(self, other))

    def __mul__(self, other):
        if isinstance(other, float):
            return Bytes(int(self) * other)
        return _bytes(int.__mul__(self, other))

    __rmul__ = __mul__

    def __neg__(self):
        return Bytes(-int(self))


def _bytes(result):
    return result if result is NotImplemented else Bytes(result)


KiB = Bytes(1 << 10)
MiB = Bytes(1 << 20)
GiB = Bytes(1 << 30)
