"""Complex tensors against NumPy and PyTorch: values, gradients, exchange, errors."""
import pickle

import numpy as np
import pytest

import tidemark as td


def drawn(*shape, dtype=np.complex128, seed=1):
    draw = np.random.default_rng(seed)
    return (draw.normal(size=shape) + 1j * draw.normal(size=shape)).astype(dtype)


def near(ours, theirs, room=1e-13):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, rtol=room, atol=room)


# ---- values ----

UNARY = {"abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "angle": np.angle, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
         "atanh": np.arctanh, "conj": np.conj, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "expm1": np.expm1, "identity": lambda z: z,
         "imag": np.imag, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "log": np.log, "log10": np.log10, "log1p": np.log1p,
         "log2": np.log2, "logical_not": np.logical_not, "negative": np.negative, "real": np.real, "reciprocal": np.reciprocal, "sign": np.sign,
         "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "tan": np.tan, "tanh": np.tanh,
         "rsqrt": lambda z: 1 / np.sqrt(z), "sigmoid": lambda z: 1 / (1 + np.exp(-z))}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name):
    z = drawn(4, 5) * np.array([0.01, 0.5, 1, 2, 5])
    near(getattr(td, name)(z), UNARY[name](z))
    on_axes = np.array([1 + 0j, -1 + 0j, 0.5j, -2j, -2 + 0j, 2 - 0j, -0.5 + 0j])
    with np.errstate(all="ignore"):
        near(getattr(td, name)(on_axes[2:] if name in ("atanh", "atan") else on_axes), UNARY[name](on_axes[2:] if name in ("atanh", "atan") else on_axes))
        near(getattr(td, name)(z.astype(np.complex64)), UNARY[name](z.astype(np.complex64)), 3e-5)


BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "pow": np.power, "equal": np.equal,
          "not_equal": np.not_equal, "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name):
    z, w, r = drawn(3, 4), drawn(4, seed=2), np.random.default_rng(3).normal(size=(3, 1))
    w[1] = z[0, 1]
    for a, b in ((z, w), (z, r), (r, z), (z, 2.0), (3, z), (z, 1 + 2j), (2j, z), (z, 0.5)):
        near(getattr(td, name)(a, b), BINARY[name](a, b))


def test_powers_special_values_and_large_numbers():
    z = drawn(6)
    for exponent in (0, 1, 2, 3, -1, -2, 7, 0.5, 2.5):
        near(td.pow(z, exponent), z ** exponent)
    near(td.pow(np.array([0j, 0j]), np.array([2 + 0j, 0j])), np.array([0j, 1 + 0j]))
    near(td.sqrt(np.array([0j])), np.array([0j]))
    near(td.sign(np.array([0j, 3j])), np.array([0j, 1j]))
    tiny = np.array([3e-300 + 4e-300j])
    near(td.divide(tiny, tiny), np.ones(1, complex))
    near(td.abs(tiny * 1e300 * 1e300), np.abs(tiny * 1e300 * 1e300))
    near(td.tanh(np.array([800 + 1j, -800 - 1j])), np.tanh(np.array([800 + 1j, -800 - 1j])))


@pytest.mark.parametrize("call", [
    lambda xp, z: xp.sum(z, 1), lambda xp, z: xp.mean(z), lambda xp, z: xp.prod(z, 0), lambda xp, z: xp.prod(z), lambda xp, z: xp.cumsum(z, 1),
    lambda xp, z: xp.cumprod(z, 0), lambda xp, z: xp.var(z, 1), lambda xp, z: xp.std(z), lambda xp, z: xp.all(z, 1), lambda xp, z: xp.any(z),
    lambda xp, z: xp.reshape(z, (3, 2, 2)), lambda xp, z: xp.transpose(z), lambda xp, z: xp.flip(z, 1), lambda xp, z: xp.roll(z, 2, 1),
    lambda xp, z: xp.stack([z, z * 2]), lambda xp, z: xp.where(xp.abs(z) > 1, z, 0), lambda xp, z: xp.matmul(z, z.T), lambda xp, z: z[1:, ::2] + z[0, -1],
    lambda xp, z: xp.tril(z), lambda xp, z: xp.einsum("ij,kj->ik", z, z), lambda xp, z: xp.broadcast_to(z[:, :1], (3, 4)), lambda xp, z: xp.isclose(z, z + 1e-12),
    lambda xp, z: xp.outer(z[0], z[1]), lambda xp, z: xp.squeeze(z[:1]), lambda xp, z: xp.tile(z, (2, 1)), lambda xp, z: xp.zeros_like(z) + xp.ones_like(z),
    lambda xp, z: xp.full((2, 2), 1 + 2j, dtype="complex128") * z[0, 0], lambda xp, z: xp.nan_to_num(z / 0), lambda xp, z: xp.diff(z),
])
def test_reductions_and_shapes(call):
    z = drawn(3, 4)
    with np.errstate(all="ignore"):
        near(call(td, td.asarray(z)), call(np, z))


def test_pads_indices_and_updates():
    z, t = drawn(3, 4), td.asarray(drawn(3, 4))
    near(td.pad(t, [(1, 0), (0, 2)]), np.pad(z, [(1, 0), (0, 2)]))
    for value in (2.5, 1 - 2j):
        near(td.pad(t, [(1, 0), (0, 2)], value), np.pad(z, [(1, 0), (0, 2)], constant_values=value))
    rows = np.array([2, 0])
    near(td.gather(t, rows), z[rows])
    near(td.take_along_axis(t, np.argsort(z.real, 1), 1), np.take_along_axis(z, np.argsort(z.real, 1), 1))
    summed = z.copy()
    np.add.at(summed, rows, z[:2])
    near(td.scatter_add(t, rows, t[:2]), summed)
    changed = z.copy()
    changed[1, 2:] = 1j
    near(t.at[1, 2:].set(1j), changed)
    near(td.cumprod(t, 1, True, True), np.concatenate([np.cumprod(z[:, :0:-1], 1)[:, ::-1], np.ones((3, 1))], 1))
    near(td.norm(t), np.linalg.norm(z))


def test_dtypes_and_promotion():
    z = td.asarray(drawn(2, dtype=np.complex64))
    assert (z + td.ones(2)).dtype is td.c64 and (z + td.ones(2, td.f64)).dtype is td.c128
    assert (z * 1j).dtype is td.c64 and (td.ones(2, td.f64) * 1j).dtype is td.c128 and (td.ones(2, td.i64) + 1j).dtype is td.c64
    assert (z + td.ones(2, td.i64)).dtype is td.c64 and td.concat([z, td.ones(2, td.f64)]).dtype is td.c128
    assert td.constant([1, 2j]).dtype is td.c64 and td.constant([1, 2j], td.c128).tolist() == [1, 2j]
    assert td.complex(td.ones(2, td.f64), 1).dtype is td.c128 and td.complex(1, 2).dtype is td.c64
    assert td.complex64 is td.c64 and td.c64.itemsize == 8 and td.c128.is_complex and not td.c128.is_float
    assert td.cast([1.5, -2], td.c128).tolist() == [1.5, -2] and td.cast(td.constant([0j, 1j]), td.bool).tolist() == [False, True]
    near(td.polar(td.asarray([2.0, 3.0], td.f64), np.array([0.5, -1.0])), np.array([2, 3]) * np.exp(1j * np.array([0.5, -1.0])))
    assert td.real(z).shape == (2,) and np.shares_memory(np.asarray(z.imag), np.asarray(z))
    assert complex(td.constant(1 + 2j)) == 1 + 2j and td.constant([3j]).item() == 3j
    assert bool(td.constant(1j)) and not bool(td.constant(0j)) and z[z != 0].shape == (2,)


@pytest.mark.parametrize("array", [
    np.array([1 + 2j, -3.5 - 0.25j]), np.array([[1 + 2j, 0], [3j, -4]]), np.array(1.5 - 2j), np.array(2j), np.array([1e10 + 1j, 1e-7 - 2e9j]),
    np.array([complex(np.nan, 1), complex(1, np.inf), complex(-np.inf, -0.0)]), np.array([1.1 + 1j / 3, 2], np.complex64), np.zeros((0,), complex),
])
def test_text_is_numpys(array):
    assert str(td.asarray(array)) == str(array)


# ---- exchange ----

@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_memory_is_shared(dtype, tmp_path):
    z = drawn(3, 4, dtype=dtype)
    t = td.asarray(z)
    assert np.asarray(t).dtype == dtype and np.shares_memory(np.asarray(t), z)
    view = td.asarray(z[::-1, 1::2])
    assert np.shares_memory(np.asarray(view), z) and np.array_equal(view, z[::-1, 1::2]) and np.array_equal(view.copy(), z[::-1, 1::2])
    assert np.array_equal(np.from_dlpack(t), z) and np.array_equal(td.from_dlpack(z), z)
    assert np.array_equal(pickle.loads(pickle.dumps(t)), z) and memoryview(t).format == {np.complex64: "Zf", np.complex128: "Zd"}[dtype]
    assert t.tolist() == z.tolist() and t.tobytes() == z.tobytes()
    td.io.save_npy(str(tmp_path / "z.npy"), t)
    assert np.array_equal(np.load(tmp_path / "z.npy"), z)
    np.save(tmp_path / "big.npy", z.astype(np.dtype(dtype).newbyteorder(">")))
    assert np.array_equal(td.io.load_npy(str(tmp_path / "big.npy")), z)
    td.io.save_npz(str(tmp_path / "z.npz"), {"z": t})
    assert np.array_equal(np.load(tmp_path / "z.npz")["z"], z)


def test_files_of_safetensors(tmp_path):
    path = str(tmp_path / "z.safetensors")
    z = drawn(3, dtype=np.complex64)
    td.io.save_safetensors(path, {"z": td.asarray(z)})
    assert np.array_equal(td.io.load_safetensors(path)["z"], z)
    torch = pytest.importorskip("torch")
    loaded = pytest.importorskip("safetensors.torch").load_file(path)["z"]
    assert loaded.dtype == torch.complex64 and np.array_equal(loaded.numpy(), z)
    with pytest.raises(td.UserError) as caught:
        td.io.save_safetensors(path, {"z": td.asarray(z).cast(td.c128)})
    assert "cannot hold c128: the format has no such dtype" in str(caught.value)


# ---- gradients, functions, control flow ----

LOSSES = {
    "product": lambda xp, z, w: xp.sum(xp.abs(z * w)), "quotient": lambda xp, z, w: xp.sum(xp.real(z / w)), "exp": lambda xp, z, w: xp.sum(xp.imag(xp.exp(z) * w)),
    "log": lambda xp, z, w: xp.sum(xp.real(xp.log(z) * w)), "sqrt": lambda xp, z, w: xp.sum(xp.imag(xp.sqrt(z) + w)), "sin": lambda xp, z, w: xp.sum(xp.real(xp.sin(z) / w)),
    "tanh": lambda xp, z, w: xp.sum(xp.real(xp.tanh(z) * w)), "power": lambda xp, z, w: xp.sum(xp.real(z ** 3 + z ** 2.5 * w)), "angle": lambda xp, z, w: xp.sum(xp.angle(z) + xp.real(w)),
    "conj": lambda xp, z, w: xp.real(xp.sum(xp.conj(z) * w * z)), "matmul": lambda xp, z, w: xp.sum(xp.abs(xp.matmul(z, w))), "mean": lambda xp, z, w: xp.abs(xp.mean(z * 2 + w)),
    "real numbers": lambda xp, z, w: xp.sum(xp.abs(z * xp.real(w) - xp.abs(w))), "prod": lambda xp, z, w: xp.abs(xp.prod(z, 1)).sum() + xp.real(w).sum(),
    "slices": lambda xp, z, w: xp.sum(xp.abs(z[1:, ::2] * w[:2, 1:])), "fft": lambda xp, z, w: xp.sum(xp.abs(xp.fft.fft(z) * w)), "cumsum": lambda xp, z, w: xp.sum(xp.abs(xp.cumsum(z, 1) * w)),
    "where": lambda xp, z, w: xp.sum(xp.abs(xp.where(xp.real(z) > 0, z * w, w))), "asinh": lambda xp, z, w: xp.sum(xp.real(xp.asinh(z) * xp.acos(w))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    f, arrays = LOSSES[name], (drawn(3, 3), drawn(3, 3, seed=5))
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    f(torch, *theirs).backward()
    ours = [td.asarray(a) for a in arrays]
    for gradient in (td.grad(lambda *z: f(td, *z), (0, 1)), td.function(td.grad(lambda *z: f(td, *z), (0, 1)))):
        for mine, yours in zip(gradient(*ours), theirs):
            near(mine, yours.grad.numpy() if yours.grad is not None else np.zeros((3, 3), complex), 1e-11)


def test_functions_compute_the_same_bits():
    z, w = td.asarray(drawn(5, 8, dtype=np.complex64)), td.asarray(drawn(8, dtype=np.complex64, seed=2))

    def f(a, b):
        return td.fft.ifft(td.fft.fft(a) * b) + td.conj(a), td.abs(a @ b)
    compiled = td.function(f)
    for ours, theirs in zip(compiled(z, w), f(z, w)):
        assert ours.dtype is theirs.dtype and ours.tobytes() == theirs.tobytes()
    for ours, theirs in zip(compiled(z.T.copy().T, w), f(z, w)):
        assert ours.tobytes() == theirs.tobytes()
    _, profile = compiled.profile(z, w)
    assert profile.touched == compiled.plan(z, w).peak
    same = td.function(lambda a: a)(z)
    assert same.dtype is td.c64 and same.tobytes() == z.tobytes()
    assert td.function(lambda a: a.T)(z).tolist() == z.T.tolist()
    assert td.function(lambda a: (a[1:], a * 1j))(z[::-1])[1].tolist() == (z[::-1] * 1j).tolist()


def test_open_sizes():
    f = td.function(lambda a: td.sum(a * a) + a, input_signature=[td.spec([td.open], td.c64)])
    for n in (3, 8, 5):
        z = td.asarray(drawn(n, dtype=np.complex64))
        near(f(z), np.asarray(td.sum(z * z) + z), 1e-6)


def test_control_flow():
    z = td.asarray(drawn(4, 3))
    c = np.asarray(z)

    def loops(a):
        last, all = td.scan(lambda carry, row: (carry * 0.5 + row, carry * row), td.zeros(3, td.c128), a)
        picked = td.cond(td.abs(td.sum(a)) > 0, lambda: a * 1j, lambda: a)
        mapped = td.map_fn(lambda row: td.exp(row) * row[0], a)
        batched = td.vectorized_map(lambda row: td.sum(row) * row, a)
        i, powers = td.while_loop(lambda i, p: i < 3, lambda i, p: (i + 1, p * a), (0, td.ones_like(a)))
        return last, all, picked, mapped, batched, powers
    carry, rows = np.zeros(3, complex), []
    for row in c:
        rows.append(carry * row)
        carry = carry * 0.5 + row
    want = carry, np.array(rows), c * 1j, np.exp(c) * c[:, :1], c.sum(1, keepdims=True) * c, c ** 3
    for f in (loops, td.function(loops)):
        for ours, theirs in zip(f(z), want):
            near(ours, theirs)

    def loss(a):
        last, _ = td.scan(lambda carry, row: (carry * row + row, td.abs(carry)), td.ones(3, td.c128), a)
        return td.sum(td.abs(last)) + td.sum(td.real(td.cond(td.sum(td.abs(a)) > 0, lambda: a * a, lambda: a)))
    torch = pytest.importorskip("torch")
    t = torch.tensor(c, requires_grad=True)
    state = torch.ones(3, dtype=torch.complex128)
    for row in t:
        state = state * row + row
    (state.abs().sum() + (t * t).real.sum()).backward()
    near(td.grad(loss)(z), t.grad.numpy(), 1e-12)
    near(td.function(td.grad(loss))(z), t.grad.numpy(), 1e-12)


def test_jacobians_by_complex_numbers():
    z = td.asarray(drawn(3))
    near(td.jacobian(lambda a: td.square(td.abs(a)))(z), np.diag(2 * np.asarray(z)))
    y, pull = td.vjp(lambda a: a * a, z)
    near(pull(td.ones_like(y)), 2 * np.asarray(z).conj())


def test_jvp_and_hvp():
    z, v, m = drawn(4), drawn(4, seed=2), drawn(3, 4, seed=3)

    def f(a):
        return td.exp(td.asarray(m) @ a) * td.conj(a[:3])

    def loss(a):
        return td.sum(td.square(td.abs(td.exp(a) * td.conj(a[::-1]))))

    def change(g):
        return (np.asarray(g(td.asarray(z + 1e-6 * v))) - np.asarray(g(td.asarray(z - 1e-6 * v)))) / 2e-6
    y, dy = td.jvp(f, td.asarray(z), td.asarray(v))
    near(y, np.exp(m @ z) * z[:3].conj())
    near(dy, change(f), 1e-6)
    near(td.hvp(loss, td.asarray(z), td.asarray(v)), change(td.grad(loss)), 1e-5)
    near(td.jvp(lambda x: td.exp(1j * x), td.asarray(z.real.copy()), td.asarray(v.real.copy()))[1], 1j * np.exp(1j * z.real) * v.real)
    near(td.jvp(td.abs, td.asarray(z), td.asarray(v))[1], (z.conj() * v).real / np.abs(z))


@pytest.mark.parametrize("reverse", [False, True])
def test_linear_recurrences(reverse):
    def plain(a, b):
        y, carry = np.zeros_like(b), 0
        for i in (range(7)[::-1] if reverse else range(7)):
            y[:, i] = carry = a[:, i] * carry + b[:, i]
        return y
    a, b = drawn(3, 7), drawn(3, 7, seed=2)
    near(td.linear_scan(td.asarray(a), td.asarray(b), 1, reverse=reverse), plain(a, b))
    near(td.linear_scan(td.asarray(a.real.copy()), td.asarray(b), 1, reverse=reverse), plain(a.real, b))
    near(td.function(lambda a, b: td.linear_scan(a, b, 1, reverse=reverse))(td.asarray(a), td.asarray(b)), plain(a, b))


# ---- linear algebra ----

def positive(x, torch):
    return x @ x.mH + 2 * torch.eye(x.shape[-1])


def with_positive_diagonal(x, torch):
    q, r = torch.linalg.qr(x)
    turn = torch.sgn(torch.diagonal(r, dim1=-2, dim2=-1))
    return q * turn.unsqueeze(-2), r * turn.conj().unsqueeze(-1)


def triangle(a, lower, unit, torch):
    part = a.tril() if lower else a.triu()
    if not unit:
        return part
    return part - torch.diag_embed(torch.diagonal(part, dim1=-2, dim2=-1)) + torch.eye(a.shape[-1])


# Our function, PyTorch's, and the shapes of the arguments.
MATRICES = {
    "solve": (lambda a, b: td.linalg.solve(a, b), lambda torch, a, b: torch.linalg.solve(a, b), (3, 4, 4), (3, 4, 2)),
    "solve of the transpose": (lambda a, b: td.linalg.solve(a, b, transposed=True), lambda torch, a, b: torch.linalg.solve(a.mT, b), (4, 4), (4,)),
    "inv": (td.linalg.inv, lambda torch, a: torch.linalg.inv(a), (3, 4, 4)),
    "cholesky": (lambda a: td.linalg.cholesky(a @ td.conj(td.transpose(a)) + 2 * td.eye(4, dtype=td.f64)),
                 lambda torch, a: torch.linalg.cholesky(positive(a, torch)), (4, 4)),
    "cholesky_solve": (lambda a, b: td.linalg.cholesky_solve(a, b), lambda torch, a, b: torch.linalg.solve(a.tril() @ a.tril().mH, b), (3, 4, 4), (3, 4, 2)),
    "qr, q": (lambda a: td.linalg.qr(a)[0], lambda torch, a: with_positive_diagonal(a, torch)[0], (2, 5, 3)),
    "qr, r": (lambda a: td.linalg.qr(a)[1], lambda torch, a: with_positive_diagonal(a, torch)[1], (2, 5, 3)),
    "eigvalsh": (td.linalg.eigvalsh, lambda torch, a: torch.linalg.eigvalsh((a + a.mH) / 2), (3, 4, 4)),
    "svdvals": (td.linalg.svdvals, lambda torch, a: torch.linalg.svdvals(a), (2, 3, 5)),
    "pinv": (td.linalg.pinv, lambda torch, a: torch.linalg.pinv(a), (2, 5, 3)),
    "lstsq": (td.linalg.lstsq, lambda torch, a, b: torch.linalg.pinv(a) @ b, (2, 5, 3), (2, 5, 2)),
    "expm": (lambda a: td.linalg.expm(a * 0.3), lambda torch, a: torch.linalg.matrix_exp(a * 0.3), (3, 4, 4)),
    "norm fro": (lambda a: td.linalg.matrix_norm(a), lambda torch, a: torch.linalg.matrix_norm(a), (2, 4, 3)),
    "norm nuc": (lambda a: td.linalg.matrix_norm(a, "nuc"), lambda torch, a: torch.linalg.matrix_norm(a, "nuc"), (2, 4, 3)),
    "norm two": (lambda a: td.linalg.matrix_norm(a, "two"), lambda torch, a: torch.linalg.matrix_norm(a, 2), (2, 4, 3)),
    "norm inf": (lambda a: td.linalg.matrix_norm(a, "inf"), lambda torch, a: torch.linalg.matrix_norm(a, float("inf")), (2, 4, 3)),
    "vector norm": (lambda a: td.linalg.vector_norm(a, 3, -1), lambda torch, a: torch.linalg.vector_norm(a, 3, -1), (4, 3)),
}
for lower in (True, False):
    for turned in (True, False):
        for unit in (True, False):
            MATRICES[f"triangular, {lower=}, {turned=}, {unit=}"] = (
                lambda a, b, lower=lower, turned=turned, unit=unit: td.linalg.solve_triangular(a, b, lower=lower, transposed=turned, unit_diagonal=unit),
                lambda torch, a, b, lower=lower, turned=turned, unit=unit: torch.linalg.solve(
                    triangle(a, lower, unit, torch).mT if turned else triangle(a, lower, unit, torch), b), (3, 4, 4), (3, 4, 2))


@pytest.mark.parametrize("case", MATRICES)
def test_linear_algebra(case):
    torch = pytest.importorskip("torch")
    ours, theirs, *shapes = MATRICES[case]
    arrays = [drawn(*shape, seed=i) + (2 * np.eye(shape[-1]) if shape[-2:-1] == shape[-1:] else 0) for i, shape in enumerate(shapes)]
    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    wanted = theirs(torch, *given)
    weights = torch.tensor(drawn(*wanted.shape, seed=9))
    weights = weights if wanted.is_complex() else weights.real
    (wanted * weights.conj()).real.sum().backward()

    def loss(*a):
        return td.sum(td.real(ours(*a) * td.conj(td.asarray(weights.numpy()))))
    mine = [td.asarray(a) for a in arrays]
    result = ours(*mine)
    assert result.dtype is (td.c128 if wanted.is_complex() else td.f64)
    near(result, wanted.detach().numpy(), 1e-10)
    near(td.function(ours)(*mine), np.asarray(result), 1e-14)
    slopes = td.grad(loss, argnums=tuple(range(len(mine))))(*mine)
    for slope, tensor in zip(slopes, given):
        near(slope, tensor.grad.numpy(), 1e-8)


def test_complex_matrices_of_other_dtypes():
    a, b = drawn(4, 4), drawn(4)
    near(td.linalg.solve(td.asarray(a.real.copy()), td.asarray(b)), np.linalg.solve(a.real, b))
    near(td.linalg.solve(td.asarray(a), td.asarray(b.real.copy())), np.linalg.solve(a, b.real))
    single = td.linalg.inv(td.asarray(a.astype(np.complex64)))
    assert single.dtype is td.c64
    near(single, np.linalg.inv(a).astype(np.complex64), 1e-4)
    near(td.vectorized_map(td.linalg.inv, td.asarray(np.stack([a, a.T]))), np.linalg.inv(np.stack([a, a.T])))
    assert np.isnan(np.asarray(td.linalg.cholesky(-td.eye(3, dtype=td.c64))).real).any()


def test_datasets_and_checkpoints(tmp_path):
    z = drawn(5, 2, dtype=np.complex64)
    batches = list(td.data.from_tensor_slices(td.asarray(z)).map(lambda row: row * 2).batch(2))
    assert np.array_equal(np.concatenate([np.asarray(batch) for batch in batches]), z * 2)
    v, w = td.Variable(z), td.Variable(np.zeros_like(z))
    td.io.Checkpoint(v=v).save(str(tmp_path / "c"))
    td.io.Checkpoint(v=w).load(str(tmp_path / "c"))
    assert np.array_equal(np.asarray(w), z)


def test_variables():
    v = td.Variable(td.constant([1 + 1j, 2.0], td.c128))
    v.assign_add(td.constant([1j, 1], td.c128))
    assert v.dtype is td.c128 and np.asarray(v).tolist() == [1 + 2j, 3]
    v.assign(td.constant([2j, -1], td.c128))

    @td.function
    def step(x):
        v.assign(v * x)
        v.assign_sub(td.ones(2, td.c128))
        return td.abs(v)
    before = np.asarray(v).copy()
    near(step(td.constant([1j, 2], td.c128)), np.abs(before * [1j, 2] - 1))
    near(np.asarray(v), before * [1j, 2] - 1)
    with td.GradientTape() as tape:
        loss = td.sum(td.square(td.abs(v)))
    near(tape.gradient(loss, v), 2 * np.asarray(v))
    with pytest.raises(td.Error):
        v.assign(td.ones(2))


def test_prints(capfd):
    td.print("z =", td.constant([1 + 2j, 3]))
    td.function(lambda z: (td.print("z =", z * 1), z)[1])(td.constant([1 + 2j, 3]))
    td.flush() if hasattr(td, "flush") else None
    assert capfd.readouterr().out.splitlines() == ["z = [1.+2.j 3.+0.j]"] * 2


# ---- errors ----

Z = td.constant([1 + 2j, 3])
ORDER = "complex numbers have no order"


@pytest.mark.parametrize("call, text", [
    (lambda: Z < Z, f"less: {ORDER}"), (lambda: td.maximum(Z, 0), f"maximum: {ORDER}"), (lambda: td.max(Z), f"max: {ORDER}"),
    (lambda: td.argmin(Z), f"argmin: {ORDER}"), (lambda: td.sort(Z), f"sort: {ORDER}"), (lambda: td.clip(Z, 0, 1), f"clip: {ORDER}"),
    (lambda: td.median(Z), f"median: {ORDER}"), (lambda: td.quantile(Z, 0.5), f"quantile: {ORDER}"), (lambda: td.histogram(Z), f"histogram: {ORDER}"),
    (lambda: td.jacobian(lambda z: z * z)(Z), "jacobian: the target must be real, got c64[2]"), (lambda: td.top_k(Z, 1), f"top_k: {ORDER}"), (lambda: td.arange(1j), f"arange: {ORDER}"),
    (lambda: td.bitwise_and(Z, Z), "bitwise_and: does not take complex numbers"), (lambda: td.floor(Z), "floor: does not take complex numbers"),
    (lambda: td.softmax(Z), "softmax: does not take complex numbers"), (lambda: td.relu(Z), "relu: does not take complex numbers"),
    (lambda: td.linalg.det(td.eye(2, dtype=td.c64)), "det: does not take complex matrices"),
    (lambda: td.linalg.slogdet(td.eye(2, dtype=td.c64)), "slogdet: does not take complex matrices"),
    (lambda: td.linalg.eigh(td.eye(2, dtype=td.c64)), "eigh: does not take complex matrices"),
    (lambda: td.linalg.svd(td.eye(2, dtype=td.c64)), "svd: does not take complex matrices"),
    (lambda: td.linalg.lu(td.eye(2, dtype=td.c64)), "lu: does not take complex matrices"),
    (lambda: td.linalg.qr(td.eye(2, dtype=td.c64), complete=True), "complete qr: does not take complex matrices"),
    (lambda: td.cast(Z, td.f32), "cast: complex numbers in f32 would lose their imaginary parts"),
    (lambda: float(Z[0]), "item: the element of c64[] is complex"),
    (lambda: td.complex(Z, 1), "complex: takes real numbers, got complex ones"),
    (lambda: td.view_as_real(td.ones(2)), "view_as_real: takes complex numbers, got f32[2]"),
    (lambda: td.view_as_complex(td.ones(3)), "view_as_complex: takes pairs of f32 or f64 on the last axis, got f32[3]"),
    (lambda: td.grad(lambda z: td.sum(z))(Z), "grad: the function must return one float, got c64[]"),
    (lambda: td.random.normal([2], dtype=td.c64), "random.normal: draws floats, not c64"),
    (lambda: td.constant([1j], td.f32), "constant: 1j is complex, and does not fit f32"),
])
def test_errors(call, text):
    with pytest.raises((td.Error, TypeError)) as caught:
        call()
    assert str(caught.value).splitlines()[0] == text


def test_the_gradient_of_a_complex_loss_names_the_remedy():
    with td.GradientTape() as tape:
        tape.watch(Z)
        y = td.sum(Z * Z)
    with pytest.raises(td.UserError) as caught:
        tape.gradient(y, Z)
    assert str(caught.value).splitlines()[0] == "gradient: the target must be real, got c64[]"
    assert "td.real(y)" in str(caught.value) or "td::real(y)" in str(caught.value)


# ---- the array API and TensorFlow's names ----

def test_array_api():
    xp = td.array_api
    assert xp.isdtype(td.c64, "complex floating") and xp.isdtype(td.c128, "numeric") and not xp.isdtype(td.c64, "real floating")
    assert xp.finfo(xp.complex64).dtype is td.f32 and xp.finfo(xp.complex128).bits == 64
    assert xp.result_type(xp.float64, xp.complex64) is xp.complex128
    z = drawn(4)
    near(xp.real(td.asarray(z)), z.real)
    near(xp.fft.fft(td.asarray(z)), np.fft.fft(z))
    near(xp.vecdot(td.asarray(z), td.asarray(z)), np.vecdot(z, z) if hasattr(np, "vecdot") else np.vdot(z, z))
    assert xp.fft.fftfreq(3, d=0.5).dtype is td.f32


def test_names_of_tensorflow():
    tf = pytest.importorskip("tidemark.tensorflow")
    z = drawn(3, 4, dtype=np.complex64)
    x = tf.constant(z)
    assert x.dtype == tf.complex64 and tf.constant(1 + 2j).dtype == tf.complex128
    near(tf.complex(z.real.copy(), z.imag.copy()).numpy(), z)
    near(tf.math.real(x).numpy(), z.real)
    near(tf.math.angle(x).numpy(), np.angle(z), 1e-6)
    near(tf.math.conj(x).numpy(), z.conj())
    near(tf.signal.fft(x).numpy(), np.fft.fft(z).astype(np.complex64), 1e-5)
    near(tf.signal.ifft2d(x).numpy(), np.fft.ifft2(z).astype(np.complex64), 1e-5)
    near(tf.signal.rfft(z.real.copy(), [6]).numpy(), np.fft.rfft(z.real, 6).astype(np.complex64), 1e-5)
    near(tf.signal.irfft2d(x).numpy(), np.fft.irfft2(z).astype(np.float32), 1e-5)
    near(tf.signal.fftshift(x, axes=[1]).numpy(), np.fft.fftshift(z, [1]))
    near(tf.cast(x, tf.float32).numpy(), z.real)
    near((x * 2 + tf.exp(x)).numpy(), z * 2 + np.exp(z), 1e-5)
    v = tf.Variable(x)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.abs(v) ** 2)
    near(tape.gradient(loss, v).numpy(), 2 * z, 1e-5)
    with pytest.raises(Exception, match="takes complex64 or complex128, got float32"):
        tf.signal.fft(tf.ones([3]))
