"""Gradients: closed forms, structures, Variables, rows, custom gradients, recomputation, bytes."""
import gc
import weakref

import numpy as np
import pytest

import tidemark as td

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 3)).astype(np.float32)
both = pytest.mark.parametrize("wrap", [lambda f: f, td.function], ids=["eager", "traced"])


@both
def test_a_tape_gives_gradients_in_the_structure_of_the_sources(wrap):
    w = td.Variable(rng.normal(size=(3, 2)).astype(np.float32))

    @wrap
    def f(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = td.sum(td.square(td.matmul(x, w)))
        return tape.gradient(y, {"w": w, "x": [x]})

    got = f(td.constant(X))
    W = np.asarray(w.value())
    np.testing.assert_allclose(got["x"][0], 2 * X @ W @ W.T, rtol=1e-5)
    np.testing.assert_allclose(got["w"], 2 * X.T @ X @ W, rtol=1e-5)


def test_a_tape_is_used_once_unless_it_is_persistent():
    x = td.constant(3.0)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0
    with pytest.raises(td.UserError, match="this tape was already used"):
        tape.gradient(y, x)
    with td.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, x * x * x
    assert [float(tape.gradient(y, x)), float(tape.gradient(z, x))] == [6.0, 27.0]
    assert tape.saved_bytes > 0
    tape.release()
    assert tape.saved_bytes == 0


def test_tapes_stop_and_reset():
    v = td.Variable(2.0)
    with td.GradientTape() as tape:
        y = v * v
        with tape.stop_recording():
            z = y * 100
        y = y + z
        assert [w is v for w in tape.watched_variables()] == [True]
    assert float(tape.gradient(y, v)) == 4.0
    with td.GradientTape() as tape:
        v * v
        tape.reset()
        assert tape.watched_variables() == []
        y = v * 3
    assert float(tape.gradient(y, v)) == 3.0
    with td.GradientTape() as tape:
        v * v
        with tape.stop_recording():
            tape.reset()
        y = v * 5
    assert float(tape.gradient(y, v)) == 5.0
    with td.GradientTape(watch_variables=False) as tape:
        y = v * v
    assert tape.gradient(y, v, unconnected="none") is None


def test_output_gradients_and_what_is_not_connected():
    x, other = td.constant([1.0, 2.0]), td.constant([[1.0]])
    def tape_of():
        with td.GradientTape() as tape:
            tape.watch([x, other])
            y = x * x
        return tape, y
    tape, y = tape_of()
    assert tape.gradient(y, x, output_gradients=td.constant([10.0, 1.0])).tolist() == [20.0, 4.0]
    tape, y = tape_of()
    dx, do = tape.gradient(y, (x, other))
    assert dx.tolist() == [2.0, 4.0] and do.tolist() == [[0.0]]
    tape, y = tape_of()
    with pytest.raises(td.UserError):
        tape.gradient(y, other, unconnected="error")
    tape, y = tape_of()
    with pytest.raises(td.UserError, match='gradient: unconnected is "maybe"'):
        tape.gradient(y, x, unconnected="maybe")


def test_a_table_that_is_looked_up_has_rows():
    table = td.Variable(rng.normal(size=(1000, 4)).astype(np.float32))
    with td.GradientTape() as tape:
        y = td.sum(td.gather(table, td.constant([3, 5, 3])) * 2)
    g = tape.gradient(y, table)
    assert isinstance(g, td.RowGradient) and g.shape == (1000, 4) and g.dtype == td.f32
    assert sorted(g.indices.tolist()) == [3, 3, 5] and g.rows.shape == (3, 4)
    dense = np.zeros((1000, 4), np.float32)
    dense[3], dense[5] = 4, 2
    assert np.array_equal(g.dense(), dense)
    assert np.array_equal(0.5 * g, dense / 2)
    x = td.asarray([3.0, 4.0])
    np.testing.assert_allclose(td.clip_by_norm(x, 1.0), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_array_equal(td.clip_by_norm(x, 10.0), x)
    clipped, = td.clip_by_global_norm([g], 1.0)
    np.testing.assert_allclose(float(td.global_norm([clipped])), 1.0, rtol=1e-5)


@both
def test_gradients_as_functions(wrap):
    f = lambda x, y: td.sum(x * x * y)  # noqa: E731
    x, y = td.constant([1.0, 2.0]), td.constant([3.0, 4.0])
    assert wrap(td.grad(f))(x, y).tolist() == [6.0, 16.0]
    value, (dx, dy) = wrap(td.value_and_grad(f, (0, 1)))(x, y)
    assert (float(value), dx.tolist(), dy.tolist()) == (19.0, [6.0, 16.0], [1.0, 4.0])
    (value, more), dy = wrap(td.value_and_grad(lambda x, y: (f(x, y), x + 1), argnums=-1))(x, y)
    assert more.tolist() == [2.0, 3.0] and dy.tolist() == [1.0, 4.0]
    assert wrap(td.grad(lambda p: td.sum(p["a"] * p["b"])))({"a": x, "b": y})["b"].tolist() == [1.0, 2.0]
    dx, dy = wrap(td.grad(lambda x, y: td.sum(x * y), (0, 1)))(x, x)
    assert dx.tolist() == dy.tolist() == [1.0, 2.0], "f(x, x) has two gradients"
    assert wrap(td.grad(td.grad(lambda x: x * x * x)))(td.constant(2.0)).tolist() == 12.0


def test_gradients_by_variables():
    w, b = td.Variable([1.0, 2.0]), td.Variable(0.5)
    loss, grads = td.value_and_grad(lambda x: td.sum(x * w) + b, variables=[w, b])(td.constant([3.0, 4.0]))
    assert float(loss) == 11.5 and grads[0].tolist() == [3.0, 4.0] and float(grads[1]) == 1.0


@both
def test_products_with_jacobians(wrap):
    A = rng.normal(size=(3, 3)).astype(np.float32)
    a = td.constant(A)
    f = lambda x: td.tanh(td.matmul(a, x))  # noqa: E731
    x, dx = td.constant(X[:3, :1]), td.constant(X[1:4, 1:2])
    value = np.tanh(A @ X[:3, :1])
    J = (1 - value ** 2) * A
    y, dy = wrap(lambda x, dx: td.jvp(f, x, dx))(x, dx)
    np.testing.assert_allclose(y, value, rtol=1e-6)
    np.testing.assert_allclose(dy, J @ np.asarray(dx), rtol=1e-5)
    y, pullback = td.vjp(f, x)
    np.testing.assert_allclose(pullback(dx), J.T @ np.asarray(dx), rtol=1e-5)
    np.testing.assert_allclose(wrap(td.jacobian(f))(x).reshape(3, 3), J, rtol=1e-5)
    h = wrap(lambda x, v: td.hvp(lambda x: td.sum(x * x * x), x, v))(td.constant([1.0, 2.0]), td.constant([1.0, 10.0]))
    assert h.tolist() == [6.0, 120.0]


@both
def test_custom_gradients(wrap):
    @td.custom_gradient
    def clipped(x, scale):
        return td.exp(x) * scale, lambda dy: (td.minimum(dy, 1.0), None)

    f = wrap(td.grad(lambda x: td.sum(clipped(x, 2.0) * td.constant([0.5, 7.0]))))
    assert f(td.constant([1.0, 1.0])).tolist() == [0.5, 1.0]
    w = td.Variable(3.0)

    @td.custom_gradient
    def scaled(x):
        return x * w, lambda dy: (dy * 100, {w: dy * 1000})

    def both_gradients(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        return tape.gradient(y, [x, w])

    assert [float(g) for g in wrap(both_gradients)(td.constant(2.0))] == [100.0, 1000.0]
    two = td.custom_gradient(lambda x: (x * x, x), lambda saved, dy: saved * dy * -1)
    assert float(wrap(td.grad(two))(td.constant(5.0))) == -5.0


@both
def test_recompute_keeps_only_the_arguments(wrap):
    def block(x, scale):
        for _ in range(4):
            x = td.tanh(x * scale)
        return x

    plain = lambda x: td.sum(block(x, 1.5))  # noqa: E731
    again = lambda x: td.sum(td.recompute(block)(x, 1.5))  # noqa: E731
    x = td.constant(X)
    assert np.asarray(wrap(td.grad(plain))(x)).tobytes() == np.asarray(wrap(td.grad(again))(x)).tobytes()


def test_a_tape_saves_what_recompute_does_not():
    def block(x):
        for _ in range(8):
            x = td.tanh(x)
        return x

    x = td.zeros((1024,))
    saved = []
    for f in block, td.recompute(block):
        with td.GradientTape() as tape:
            tape.watch(x)
            f(x)
        saved.append(tape.saved_bytes)
    assert saved == [8 * 4096, 0] or saved[1] <= 4096 < saved[0]


def test_errors_say_what_to_write():
    def text(f):
        with pytest.raises(td.UserError) as caught:
            f()
        return str(caught.value).splitlines()[0]

    x = td.constant(1.0)
    assert text(lambda: td.GradientTape().gradient(x, x)) == "GradientTape: this tape has recorded nothing"
    assert text(lambda: td.GradientTape().watch(x)) == "watch: the tape does not record"
    assert text(lambda: td.grad(lambda x: x)(td.zeros((2,)))) == "grad: the function must return one float, got f32[2]"
    assert text(lambda: td.grad(lambda x: x, 3)(x)) == "grad: there is no argument 3 among 1"
    assert text(lambda: td.custom_gradient(lambda x: x)(x)) == "custom_gradient: the function did not return (y, gradient)"
    with td.GradientTape() as tape:
        pass
    assert text(lambda: tape.gradient(x, object())) == "gradient: sources is a object"


def test_errors_in_gradient_functions_pass_through():
    def fails(dy):
        raise KeyError("mine")
    f = td.custom_gradient(lambda x: (x * 2, fails))
    for wrap in (lambda g: g), td.function:
        with pytest.raises(KeyError, match="mine"):
            wrap(td.grad(f))(td.constant(1.0))


def test_nothing_is_held_after_the_tape():
    gc.disable()
    try:
        class Tag:
            pass
        tag = Tag()
        gone = weakref.ref(tag)
        f = td.custom_gradient(lambda x, tag=tag: (x * 2, lambda dy: dy))
        with td.GradientTape() as tape:
            x = td.constant(1.0)
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)
        del f, tag, tape, x, y
        assert gone() is None
    finally:
        gc.enable()


def test_jacobian_by_a_structure():
    x, v, w = td.asarray([1.0, 2.0]), td.Variable([3.0, 4.0]), td.asarray([1.0])
    with td.GradientTape() as tape:
        tape.watch((x, w))
        y = x * v.value()
    by = tape.jacobian(y, {"x": x, "v": v, "w": w}, unconnected="none")
    assert by["x"].tolist() == [[3, 0], [0, 4]] and by["v"].tolist() == [[1, 0], [0, 2]] and by["w"] is None
