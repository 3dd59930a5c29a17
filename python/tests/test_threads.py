"""Threads and Ctrl-C: one function called from eight threads, and long work that is stopped."""
import os
import signal
import threading

import numpy as np
import pytest

import tidemark as td


def run_all(bodies):
    errors = []

    def guarded(body):
        try:
            body()
        except BaseException as error:  # noqa: B902
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert errors == []


def test_eight_threads_call_one_function_while_some_of_them_trace():
    total = td.Variable(0.0)

    @td.function
    def f(x, factor):
        total.assign_add(1.0)
        return td.sum(td.tanh(x)) * factor

    def body(number):
        for i in range(60):
            x = td.ones((1 + (number * 7 + i) % 5, 4))
            expected = np.tanh(1) * x.shape[0] * 4 * number
            assert abs(float(f(x, number)) - expected) < 1e-3
            total.value()

    run_all([lambda n=n: body(n) for n in range(8)])
    assert float(total) == 480


def test_threads_read_variables_whose_initializers_are_python():
    variables = [td.Variable(lambda shape, dtype: td.ones(shape, dtype), shape=(3,)) for _ in range(20)]
    f = td.function(lambda x: sum((v * x for v in variables), td.constant(0.0)))

    def body(number):
        for v in variables[number:] + variables[:number]:
            v.assign_add(0.0)
            assert v.tolist() == [1.0] * 3
        assert f(2.0).tolist() == [40.0] * 3

    run_all([lambda n=n: body(n) for n in range(8)])


def test_threads_take_gradients_apart():
    w = td.Variable(np.arange(4, dtype=np.float32))

    @td.function
    def g(x):
        with td.GradientTape() as tape:
            loss = td.sum(w * w * x)
        return tape.gradient(loss, w)

    def body(number):
        for _ in range(20):
            assert g(float(number)).tolist() == [0.0, 2.0 * number, 4.0 * number, 6.0 * number]
            with td.GradientTape() as tape:
                y = td.sum(w * number)
            assert tape.gradient(y, w).tolist() == [float(number)] * 4

    run_all([lambda n=n: body(n) for n in range(8)])


@pytest.fixture
def ctrl_c():
    """Sends SIGINT once the main thread has begun."""
    begun = threading.Event()

    def send():
        begun.wait()
        sum(range(1_000_000))  # Needs the GIL, which the main thread gives up where it computes.
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    yield begun
    thread.join()


def test_ctrl_c_stops_a_compiled_loop_and_changes_nothing(ctrl_c):
    v = td.Variable(1.0)

    @td.function
    def f(x):
        y = td.while_loop(lambda y: y[0] < 5, lambda y: y + x, td.zeros((100,)))
        v.assign_add(y[0])
        return y

    assert float(f(td.ones((100,)))[0]) == 5 and float(v) == 6.0
    with pytest.raises(KeyboardInterrupt):
        ctrl_c.set()
        f(td.zeros((100,)))  # Never ends.
    assert float(v) == 6.0 and float(f(td.full((100,), 2.0))[0]) == 6 and float(v) == 12.0


def test_ctrl_c_stops_an_eager_loop(ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        ctrl_c.set()
        td.while_loop(lambda i: i >= 0, lambda i: i + 0, td.constant(0))


def test_ctrl_c_stops_fit_between_batches(ctrl_c):
    x, y = td.random.normal((16, 4), key=td.random.Key(1)), td.ones((16, 1))
    given = 0

    def batches(most):
        nonlocal given
        for given in range(1, most + 1):
            yield x * given, y
            if given == 3:
                ctrl_c.set()

    def train(layer, most):
        td.nn.fit(layer, td.data.from_generator(lambda: batches(most)), optimizer=td.nn.SGD(1e-9), loss=td.nn.losses.mse, progress="none")
        return layer.kernel.value().tolist()

    def fresh():
        return td.nn.Dense(1, kernel_initializer=td.nn.initializers.ones)

    layer = fresh()
    with pytest.raises(KeyboardInterrupt):
        train(layer, 10 ** 9)
    left, stopped = layer.kernel.value().tolist(), given
    # Every batch was used whole or not at all, and the library is as it was.
    assert stopped >= 3 and left in (train(fresh(), stopped - 1), train(fresh(), stopped))


def test_a_handler_that_does_not_raise_lets_the_work_go_on():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        f = td.function(lambda n: td.while_loop(lambda y: y[0] < n, lambda y: y + 1, td.zeros((100,))))
        f(1.0)
        td._core._poll_signals_always(True)
        os.kill(os.getpid(), signal.SIGINT)
        assert float(f(1000.0)[0]) == 1000 and seen == [1]
    finally:
        td._core._poll_signals_always(False)
        signal.signal(signal.SIGINT, before)
