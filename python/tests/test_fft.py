"""Fourier transforms against NumPy, SciPy and JAX."""
import numpy as np
import pytest

import tidemark as td

REAL = {"float32": np.complex64, "float64": np.complex128}
NEAR = {"float32": 3e-6, "float64": 3e-15}


def drawn(*shape, dtype="float64", seed=1):
    draw = np.random.default_rng(seed)
    return (draw.normal(size=shape) + 1j * draw.normal(size=shape)).astype(REAL[dtype])


def near(ours, theirs, dtype="float64", room=1.0):
    ours = np.asarray(ours)
    assert ours.dtype == (REAL[dtype] if np.iscomplexobj(theirs) else dtype)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    size = np.abs(theirs).max(initial=0) + 1e-30
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=room * NEAR[dtype] * size * 4)


LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 16, 17, 21, 25, 26, 31, 37, 64, 77, 100, 101, 128, 210, 243, 257, 1000, 1024, 1009]


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", LENGTHS)
def test_every_length(n, dtype):
    z = drawn(3, n, dtype=dtype)
    wide = z.astype(np.complex128)
    near(td.fft.fft(z), np.fft.fft(wide), dtype)
    near(td.fft.ifft(z), np.fft.ifft(wide), dtype)
    near(td.fft.rfft(z.real.copy()), np.fft.rfft(wide.real), dtype)
    if n > 1:
        near(td.fft.irfft(z), np.fft.irfft(wide), dtype)
        near(td.fft.irfft(z, 2 * n - 1), np.fft.irfft(wide, 2 * n - 1), dtype)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("n", [None, 4, 6, 9])
def test_axes_lengths_and_norms(n, axis, norm):
    z = drawn(6, 5, 7)
    for name in ("fft", "ifft", "irfft"):
        near(getattr(td.fft, name)(z, n, axis, norm), getattr(np.fft, name)(z, n, axis, norm))
    near(td.fft.rfft(z.real.copy(), n, axis, norm), np.fft.rfft(z.real, n, axis, norm))


@pytest.mark.parametrize("s, axes", [(None, None), (None, (0, 2)), ((4, 6), (1, 0)), ((3, 5), None), (None, (1,))])
def test_several_axes(s, axes):
    z = drawn(4, 6, 5)
    named = axes if axes is not None or s is None else (-2, -1)
    for name in ("fftn", "ifftn", "irfftn"):
        near(getattr(td.fft, name)(z, s, axes, "ortho"), getattr(np.fft, name)(z, s, named, norm="ortho"))
    near(td.fft.rfftn(z.real.copy(), s, axes), np.fft.rfftn(z.real, s, named))
    for name in ("fft2", "ifft2", "irfft2"):
        near(getattr(td.fft, name)(z), getattr(np.fft, name)(z))
    near(td.fft.rfft2(z.real.copy()), np.fft.rfft2(z.real))


def test_strided_and_narrow_operands():
    z = drawn(8, 6)
    near(td.fft.fft(td.asarray(z)[::-1, ::2]), np.fft.fft(z[::-1, ::2]))
    half = td.fft.rfft(np.arange(6, dtype=np.float16))
    assert half.dtype is td.c64 and half.shape == (4,)
    near(td.fft.fft(td.arange(6)), np.fft.fft(np.arange(6.0)), "float32")
    whole = td.fft.rfft(td.arange(6))
    near(whole, np.fft.rfft(np.arange(6.0)), "float32")


@pytest.mark.parametrize("n", [6, 7, 17])
def test_gradients_are_those_of_jax(n):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    z = drawn(2, n)

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

        def loss(v):
            y = getattr(td.fft, name)(v, norm="ortho")
            return td.sum(y * weights if real_out else td.real(y) * weights.real + td.imag(y) * weights.imag)
        near(td.grad(loss)(td.asarray(x)), np.asarray(theirs))


def test_batches_functions_and_bytes():
    x = np.random.default_rng(5).normal(size=(6, 40)).astype(np.float32)

    def power(row):
        return td.square(td.abs(td.fft.rfft(row)))
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
    z = drawn(33, 120, dtype="float32")
    first, usual = td.fft.fft(z).tobytes(), td.num_threads()
    td.set_num_threads(threads)
    try:
        assert td.fft.fft(z).tobytes() == first
    finally:
        td.set_num_threads(usual)


def test_hermitian_signals_shifts_and_frequencies():
    z = drawn(3, 6)
    for n in (None, 7, 10):
        for norm in ("backward", "ortho", "forward"):
            near(td.fft.hfft(z, n, 1, norm), np.fft.hfft(z, n, 1, norm))
            near(td.fft.ihfft(z.real.copy(), n, -1, norm), np.fft.ihfft(z.real, n, -1, norm))
    for axes in (None, 0, (1,), (0, 1)):
        assert np.array_equal(td.fft.fftshift(z, axes), np.fft.fftshift(z, axes))
        assert np.array_equal(td.fft.ifftshift(z, axes), np.fft.ifftshift(z, axes))
    for n in (1, 2, 5, 8):
        assert np.array_equal(td.fft.fftfreq(n, 0.1, td.f64), np.fft.fftfreq(n, 0.1))
        assert np.array_equal(td.fft.rfftfreq(n, 0.1, td.f64), np.fft.rfftfreq(n, 0.1))
    assert td.fft.fftfreq(4).dtype is td.f32


def test_transforms_are_those_of_scipy():
    scipy_fft = pytest.importorskip("scipy.fft")
    z = drawn(4, 9, dtype="float32")
    near(td.fft.fft2(z, norm="forward"), scipy_fft.fft2(z, norm="forward"), "float32")
    near(td.fft.rfftn(z.real.copy()), scipy_fft.rfftn(z.real), "float32")
    near(td.fft.hfft(z), scipy_fft.hfft(z), "float32")


@pytest.mark.parametrize("call, text", [
    (lambda: td.fft.rfft(td.ones((3, 4), td.c64)), "fft.rfft: takes real numbers, got c64[3, 4]"),
    (lambda: td.fft.fft(td.ones(3), 0), "fft.fft: a transform of length 0"),
    (lambda: td.fft.irfft(td.ones(1)), "fft.irfft: a transform of length 0"),
    (lambda: td.fft.fftn(td.ones((3, 4)), (3, 4), (0,)), "fft.fftn: 2 lengths for 1 axes"),
    (lambda: td.fft.fft(td.ones(())), "fft.fft: f32[] has no axis -1"),
    (lambda: td.fft.fftfreq(0), "fft.fftfreq: a transform of length 0"),
])
def test_errors(call, text):
    with pytest.raises(td.UserError) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text
