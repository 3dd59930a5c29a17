"""td.linalg, its names in the array API and in TensorFlow, against NumPy and SciPy."""
import numpy as np
import pytest
import scipy.linalg

import tidemark as td
import tidemark.tensorflow as tf

xp = td.array_api
rng = np.random.default_rng(3)
A, B = rng.standard_normal((2, 5, 5)), rng.standard_normal((2, 5, 3))
TALL = rng.standard_normal((7, 4))
SPD = A @ A.swapaxes(-1, -2) + np.eye(5)


def near(ours, theirs, room=1e-10):
    ours = ours.numpy() if hasattr(ours, "numpy") else np.asarray(ours)
    np.testing.assert_allclose(ours, theirs, rtol=room, atol=room)


def test_solvers_are_those_of_numpy():
    near(td.linalg.solve(A, B), np.linalg.solve(A, B))
    near(td.linalg.solve(A[0], B[0, :, 0], transposed=True), np.linalg.solve(A[0].T, B[0, :, 0]))
    near(td.linalg.inv(A), np.linalg.inv(A))
    near(td.linalg.det(A), np.linalg.det(A))
    for ours, theirs in zip(td.linalg.slogdet(A), np.linalg.slogdet(A)):
        near(ours, theirs)
    near(td.linalg.cholesky(SPD), np.linalg.cholesky(SPD))
    near(td.linalg.cholesky_solve(td.linalg.cholesky(SPD), B), np.linalg.solve(SPD, B))
    near(td.linalg.solve_triangular(A[0], B[0], lower=False), scipy.linalg.solve_triangular(A[0], B[0]))
    near(td.linalg.lstsq(TALL, TALL[:, 0] + 1), np.linalg.lstsq(TALL, TALL[:, 0] + 1, rcond=None)[0])
    near(td.linalg.pinv(TALL), np.linalg.pinv(TALL))
    near(td.linalg.expm(A[0]), scipy.linalg.expm(A[0]))
    lu, order = td.linalg.lu(A[0])
    near(np.tril(lu.numpy(), -1) @ np.triu(lu.numpy()) + np.triu(lu.numpy()), A[0][order.numpy()])


def test_factors_multiply_to_the_matrix():
    q, r = td.linalg.qr(TALL)
    near(q @ r, TALL)
    near(td.linalg.qr(TALL, complete=True)[0].shape, (7, 7))
    values, vectors = td.linalg.eigh(SPD)
    near(values, np.linalg.eigvalsh(SPD))
    near(SPD @ vectors.numpy(), vectors.numpy() * values.numpy()[:, None])
    u, s, vh = td.linalg.svd(TALL, full_matrices=True)
    assert (u.shape, vh.shape) == ((7, 7), (4, 4))
    near(u[:, :4] * s @ vh, TALL)
    near(td.linalg.svdvals(TALL), np.linalg.svd(TALL, compute_uv=False))


@pytest.mark.parametrize("ord", (None, 0, 1, 2, 3, -1, np.inf, -np.inf))
def test_norms_of_vectors_are_those_of_numpy(ord):
    near(td.linalg.norm(TALL[0], ord), np.linalg.norm(TALL[0], ord))
    near(td.linalg.norm(A, ord, axis=1, keepdims=True), np.linalg.norm(A, ord, axis=1, keepdims=True))


@pytest.mark.parametrize("ord", (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf))
def test_norms_of_matrices_are_those_of_numpy(ord):
    near(td.linalg.norm(TALL, ord), np.linalg.norm(TALL, ord))
    near(td.linalg.norm(A, ord, axis=(0, 2), keepdims=True), np.linalg.norm(A, ord, axis=(0, 2), keepdims=True))
    near(td.linalg.matrix_norm(A, ord or "fro"), np.linalg.norm(A, ord, axis=(1, 2)))


def test_norms_without_a_meaning_are_refused():
    with pytest.raises(ValueError, match="norm: ord=1 of a tensor with 3 axes: say along which one or two, axis=..."):
        td.linalg.norm(A, 1)
    with pytest.raises(ValueError, match="norm: 3 axes: a vector has one, a matrix two"):
        td.linalg.norm(A, 1, axis=(0, 1, 2))
    with pytest.raises(td.UserError, match="inv: takes square matrices, got f64\\[7, 4\\]"):
        td.linalg.inv(TALL)


LINALG = """cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr
slogdet solve svd svdvals tensordot trace vecdot vector_norm""".split()


def test_the_extension_of_the_array_api_is_that_of_numpy():
    assert [name for name in LINALG if not callable(getattr(xp.linalg, name, None))] == []
    a, tall = td.asarray(A), td.asarray(TALL)
    near(xp.linalg.cholesky(td.asarray(SPD), upper=True), np.linalg.cholesky(SPD, upper=True))
    for name in ("det", "inv", "trace", "matrix_transpose", "diagonal", "svdvals", "matrix_rank", "matrix_norm"):
        near(getattr(xp.linalg, name)(a), getattr(np.linalg, name)(A))
    for n in (-2, 0, 1, 5):
        near(xp.linalg.matrix_power(a, n), np.linalg.matrix_power(A, n), 1e-7)
    near(xp.linalg.vector_norm(a, axis=1, ord=3), np.linalg.vector_norm(A, axis=1, ord=3))
    near(xp.linalg.vecdot(a, a), np.linalg.vecdot(A, A))
    near(xp.linalg.tensordot(a, a, axes=1), np.linalg.tensordot(A, A, axes=1))
    near(xp.linalg.outer(a[0, 0], a[0, 1]), np.linalg.outer(A[0, 0], A[0, 1]))
    near(xp.linalg.eigh(td.asarray(SPD)).eigenvalues, np.linalg.eigvalsh(SPD))
    near(xp.linalg.slogdet(a).logabsdet, np.linalg.slogdet(A).logabsdet)
    assert xp.linalg.svd(tall).U.shape == (7, 7) and xp.linalg.qr(tall, mode="complete").Q.shape == (7, 7)


def test_tensorflows_names_are_there():
    a, b, spd, tall = (tf.constant(x) for x in (A, B, SPD, TALL))
    near(tf.linalg.solve(a, b, adjoint=True), np.linalg.solve(A.swapaxes(1, 2), B))
    near(tf.linalg.triangular_solve(a, b), np.linalg.solve(np.tril(A), B))
    near(tf.linalg.inv(a, adjoint=True), np.linalg.inv(A.swapaxes(1, 2)))
    near(tf.linalg.logdet(spd), np.log(np.linalg.det(SPD)))
    near(tf.linalg.cholesky_solve(tf.linalg.cholesky(spd), b), np.linalg.solve(SPD, B))
    for fast in (True, False):
        near(tf.linalg.lstsq(tall, tall[:, :2] + 1, fast=fast), np.linalg.lstsq(TALL, TALL[:, :2] + 1, rcond=None)[0])
        near(tf.linalg.lstsq(tf.transpose(tall), tall[:4, :2], fast=fast), np.linalg.lstsq(TALL.T, TALL[:4, :2], rcond=None)[0])
    s, u, v = tf.linalg.svd(tall)
    near((u * s) @ tf.transpose(v), TALL)
    near(tf.linalg.svd(tall, compute_uv=False), s.numpy())
    near(tf.linalg.eigh(spd)[0], np.linalg.eigvalsh(SPD))
    near(tf.linalg.eigvalsh(spd), np.linalg.eigvalsh(SPD))
    near(tf.linalg.pinv(tall), np.linalg.pinv(TALL))
    near(tf.linalg.det(a), np.linalg.det(A))
    near(tf.linalg.slogdet(a)[1], np.linalg.slogdet(A)[1])
    near(tf.linalg.expm(a), scipy.linalg.expm(A))
    near(tf.matmul(*tf.linalg.qr(tall)), TALL)
    lu, order = tf.linalg.lu(a)
    assert order.dtype == tf.int32 and lu.shape == a.shape
    for ord in (1, 2, np.inf):
        near(tf.norm(a, ord=ord, axis=[1, 2]), np.linalg.norm(A, ord, axis=(1, 2)))
    near(tf.norm(a, ord=3, axis=1), np.linalg.norm(A, 3, axis=1))
