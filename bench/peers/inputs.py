"""The inputs of the cases, the same bits as input(), input_below() and orthogonal() of prepared.cc give."""

import numpy

RATE = 0.1  # Of the steps of SGD.
SMALL = 0.06928  # The width of a uniform distribution with a standard deviation of 0.02.


def bits(shape, salt):
    """A hash of the position, 24 bits of it."""
    mixed = numpy.arange(int(numpy.prod(shape)), dtype=numpy.uint32)
    mixed += numpy.uint32(salt * 0x9E3779B9 & 0xFFFFFFFF)
    mixed ^= mixed >> numpy.uint32(16)
    mixed *= numpy.uint32(0x7FEB352D)
    mixed ^= mixed >> numpy.uint32(15)
    mixed *= numpy.uint32(0x846CA68B)
    mixed ^= mixed >> numpy.uint32(16)
    mixed >>= numpy.uint32(8)
    return mixed.reshape(shape)


def values(*shape, scale, salt=0):
    """f32 numbers between -scale / 2 and scale / 2."""
    numbers = bits(shape, salt).astype(numpy.float32)
    numbers *= numpy.float32(2.0**-24)
    numbers -= numpy.float32(0.5)
    numbers *= numpy.float32(scale)
    return numbers


def values_below(count, *shape, salt=0):
    """i32 numbers from 0 to below `count`, a power of two."""
    return (bits(shape, salt) >> numpy.uint32(24 - (count.bit_length() - 1))).astype(numpy.int32)


def orthogonal(size):
    """Sylvester's matrix, scaled; the size is a power of two."""
    signs = numpy.ones((1, 1), numpy.float32)
    while len(signs) < size:
        signs = numpy.block([[signs, signs], [signs, -signs]])
    return signs * (numpy.float32(1) / numpy.sqrt(numpy.float32(size)))


# ---- Parameters


def mlp_parameters():
    sizes = (784, 1024, 1024, 1024, 10)
    layers = enumerate(zip(sizes, sizes[1:]), 1)
    return [each for i, (a, b) in layers for each in (values(a, b, scale=SMALL, salt=i), numpy.zeros(b, numpy.float32))]


class Gpt:
    d, heads, t, batch, words = 256, 4, 256, 4, 8192

    def __init__(self, layers=4):
        self.layers = layers

    def parameters(self):
        """The table, and of each layer qkv, o, up, down, g1 and g2."""
        d = self.d
        all = [values(self.words, d, scale=SMALL, salt=1)]
        for i in range(1, self.layers + 1):
            sizes = enumerate([(d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)])
            all += [values(*size, scale=SMALL, salt=10 * i + salt) for salt, size in sizes]
            all += [numpy.ones(d, numpy.float32)] * 2
        return all

    def blocks(self, parameters):
        return [parameters[1 + 6 * i : 7 + 6 * i] for i in range(self.layers)]

    def ids(self):
        return values_below(self.words, self.batch, self.t, salt=3)


def lstm_parameters():
    return [values(128, 512, scale=0.3, salt=1), values(128, 512, scale=0.3, salt=2), numpy.zeros(512, numpy.float32)]


def conv_parameters(blocks=4):
    return [values(3, 3, 64, 64, scale=0.17, salt=i) for i in range(1, blocks + 1)]
