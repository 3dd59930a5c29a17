"""The inputs of the cases, the same bits as input() of cases.cc gives."""

import numpy


def values(*shape, scale, salt=0):
    """f32 numbers between -scale / 2 and scale / 2: a hash of the position, 24 bits of it, scaled."""
    count = int(numpy.prod(shape))
    mixed = numpy.arange(count, dtype=numpy.uint32)
    mixed += numpy.uint32(salt * 0x9E3779B9 & 0xFFFFFFFF)
    mixed ^= mixed >> numpy.uint32(16)
    mixed *= numpy.uint32(0x7FEB352D)
    mixed ^= mixed >> numpy.uint32(15)
    mixed *= numpy.uint32(0x846CA68B)
    mixed ^= mixed >> numpy.uint32(16)
    mixed >>= numpy.uint32(8)
    numbers = mixed.astype(numpy.float32)
    numbers *= numpy.float32(2.0**-24)
    numbers -= numpy.float32(0.5)
    numbers *= numpy.float32(scale)
    return numbers.reshape(shape)
