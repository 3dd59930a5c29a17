"""Fourier transforms and complex numbers, which are pairs of reals on the last axis, against NumPy and JAX."""
import numpy as np
import pytest

import tidemark as td

REAL = {"float32": np.complex64, "float64": np.complex128}
NEAR = {"float32": 3e-6, "float64": 3e-15}


def pairs(z):
    """A complex array as reals, over the same memory."""
    z = np.asarray(z)
    return np.ascontiguousarray(z).view(z.real.dtype).reshape(z.shape + (2,))


def numbers(y):
    y = np.ascontiguousarray(y)
    return y.view(REAL[str(y.dtype)]).reshape(y.shape[:-1])


def drawn(*shape, dtype="float64", seed=1):
    draw = np.random.default_rng(seed)
    return (draw.normal(size=shape) + 1j * draw.normal(size=shape)).astype(REAL[dtype])


def near(ours, theirs, dtype="float64", room=1.0):
    ours = np.asarray(ours)
    assert str(ours.dtype) == dtype
    ours = numbers(ours) if np.iscomplexobj(theirs) else ours
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    size = np.abs(theirs).max(initial=0) + 1e-30
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=room * NEAR[dtype] * size * 4)


LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 16, 17, 21, 25, 26, 31, 37, 64, 77, 100, 101, 128, 210, 243, 257, 1000, 1024, 1009]


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n, dtype):
    z = drawn(3, n, dtype=dtype)
    wide = z.astype(np.complex128)
    near(td.fft.fft(pairs(z)), np.fft.fft(wide), dtype)
    near(td.fft.ifft(pairs(z)), np.fft.ifft(wide), dtype)
    near(td.fft.rfft(z.real.copy()), np.fft.rfft(wide.real), dtype)
    if n > 1:
        near(td.fft.irfft(pairs(z)), np.fft.irfft(wide), dtype)
        near(td.fft.irfft(pairs(z), 2 * n - 1), np.fft.irfft(wide, 2 * n - 1), dtype)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("n", [None, 4, 6, 9])
def test_axes_lengths_and_norms(n, axis, norm):
    z = drawn(6, 5, 7)
    for name in ("fft", "ifft", "irfft"):
        near(getattr(td.fft, name)(pairs(z), n, axis, norm), getattr(np.fft, name)(z, n, axis, norm))
    near(td.fft.rfft(z.real.copy(), n, axis, norm), np.fft.rfft(z.real, n, axis, norm))


@pytest.mark.parametrize("s, axes", [(None, None), (None, (0, 2)), ((4, 6), (1, 0)), ((3, 5), None), (None, (1,))])
def test_several_axes(s, axes):
    z = drawn(4, 6, 5)
    named = axes if axes is not None or s is None else (-2, -1)
    for name in ("fftn", "ifftn", "irfftn"):
        near(getattr(td.fft, name)(pairs(z), s, axes, "ortho"), getattr(np.fft, name)(z, s, named, norm="ortho"))
    near(td.fft.rfftn(z.real.copy(), s, axes), np.fft.rfftn(z.real, s, named))
    for name in ("fft2", "ifft2", "irfft2"):
        near(getattr(td.fft, name)(pairs(z)), getattr(np.fft, name)(z))
    near(td.fft.rfft2(z.real.copy()), np.fft.rfft2(z.real))


def test_strided_and_narrow_operands():
    z = drawn(8, 6)
    near(td.fft.fft(td.asarray(pairs(z))[::-1, ::2]), np.fft.fft(z[::-1, ::2]))
    half = td.fft.rfft(np.arange(6, dtype=np.float16))
    assert half.dtype is td.f16 and half.shape == (4, 2)
    whole = td.fft.rfft(td.arange(6))
    near(whole, np.fft.rfft(np.arange(6.0)), "float32")


def test_arithmetic_of_complex_numbers():
    a, b = drawn(3, 4), drawn(4, seed=2)
    x, y = td.asarray(pairs(a)), td.asarray(pairs(b))
    near(td.complex.multiply(x, y), a * b)
    near(td.complex.divide(x, y), a / b)
    near(td.complex.exp(x), np.exp(a))
    near(td.complex.conj(x), a.conj())
    near(td.complex.abs(x), np.abs(a))
    near(td.complex.angle(x), np.angle(a))
    near(td.complex.make(td.complex.real(x), td.complex.imag(x)), a)
    near(td.complex.matmul(x, td.asarray(pairs(b.reshape(4, 1)))), a @ b.reshape(4, 1))
    near(x + y, a + b)
    for axis in (0, 1, -1):
        near(td.complex.prod(x, axis), a.prod(axis))
    near(td.complex.prod(td.ones((3, 0, 2), "f64"), 1), np.ones(3, complex))
    assert td.complex.equal(x, x.at[0, 1, 1].add(1)).tolist() == [[True, False, True, True]] + [[True] * 4] * 2
    near(td.sum(x, 0), a.sum(0))
    tiny = np.array([3e-300 + 4e-300j])
    near(td.complex.divide(pairs(tiny), pairs(tiny)), np.ones(1, complex))
    near(td.complex.abs(pairs(1e100 * tiny * 1e200)), np.abs(1e100 * tiny * 1e200))


@pytest.mark.parametrize("n", [6, 7, 17])
def test_gradients_are_those_of_jax(n):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    z, w = drawn(2, n), drawn(2, n, seed=3)

    def weighted(y, weights, real):
        return (y * weights).sum() if real else (real_part(y, weights)).sum()

    def real_part(y, weights):
        return jnp.real(y) * weights.real + jnp.imag(y) * weights.imag

    for name, real_in, real_out, count in (("fft", False, False, n), ("ifft", False, False, n), ("rfft", True, False, n // 2 + 1),
                                           ("irfft", False, True, None)):
        count = 2 * (n - 1) if count is None else count
        weights = drawn(2, count, seed=4)
        weights = weights.real.copy() if real_out else weights
        x = z.real.copy() if real_in else z
        theirs = jax.grad(lambda v: weighted(getattr(jnp.fft, name)(v, norm="ortho"), weights, real_out))(x)
        theirs = theirs if real_in else theirs.conj()  # Ours are dL/d re + i dL/d im.
        weight = weights if real_out else pairs(weights)
        ours = td.grad(lambda v: td.sum(getattr(td.fft, name)(v, norm="ortho") * weight))(td.asarray(x if real_in else pairs(x)))
        near(ours, np.asarray(theirs))
    ours = td.grad(lambda a, b: td.sum(td.complex.multiply(a, b) * pairs(w)), (0, 1))(td.asarray(pairs(z)), td.asarray(pairs(w)))
    near(ours[0], w * w.conj())
    near(ours[1], w * z.conj())


def test_batches_functions_and_bytes():
    x = np.random.default_rng(5).normal(size=(6, 40)).astype(np.float32)

    def power(row):
        y = td.fft.rfft(row)
        return td.sum(y * y, -1)
    want = np.abs(np.fft.rfft(x)) ** 2
    each = td.vectorized_map(power, td.asarray(x))
    np.testing.assert_allclose(np.asarray(each), want, rtol=1e-4, atol=1e-4)
    compiled = td.function(power)
    assert compiled(td.asarray(x)).tolist() == power(td.asarray(x)).tolist()
    td.memory.reset_peak()
    before = td.memory.current()
    compiled(td.asarray(x))
    assert td.memory.peak() - before <= compiled.plan(td.asarray(x)).peak


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(threads):
    z = pairs(drawn(33, 120, dtype="float32"))
    first, usual = td.fft.fft(z).tobytes(), td.num_threads()
    td.set_num_threads(threads)
    try:
        assert td.fft.fft(z).tobytes() == first
    finally:
        td.set_num_threads(usual)


@pytest.mark.parametrize("call, text", [
    (lambda: td.fft.fft(td.ones((3, 4))), "fft::fft: takes pairs (re, im) on the last axis, got f32[3, 4]"),
    (lambda: td.fft.fft(td.ones((3, 2)), 0), "fft::fft: a transform of length 0"),
    (lambda: td.fft.irfft(td.ones((1, 2))), "fft::irfft: a transform of length 0"),
    (lambda: td.fft.fftn(td.ones((3, 4, 2)), (3, 4), (0,)), "fft::fftn: 2 lengths for 1 axes"),
    (lambda: td.complex.abs(td.ones(())), "complex::abs: takes pairs (re, im) on the last axis, got f32[]"),
])
def test_errors(call, text):
    with pytest.raises(td.UserError) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text.replace("::", ".")
