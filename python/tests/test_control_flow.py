"""Branches, loops and maps: values against NumPy, eager and traced; structures; memory; errors."""
import numpy as np
import pytest

import tidemark as td

both = pytest.mark.parametrize("wrap", [lambda f: f, td.function], ids=["eager", "traced"])


@both
def test_cond_takes_one_branch(wrap):
    f = wrap(lambda x: td.cond(td.sum(x) > 0, lambda: {"y": x * 2, "n": 1}, lambda: {"n": 0, "y": x - 1}))
    x = np.array([1, 2], np.float32)
    assert np.array_equal(f(td.constant(x))["y"], x * 2) and int(f(td.constant(x))["n"]) == 1
    assert np.array_equal(f(td.constant(-x))["y"], -x - 1) and int(f(td.constant(-x))["n"]) == 0


def test_cond_takes_operands_and_nothing():
    assert td.cond(True, lambda a, b: a + b, lambda a, b: a - b, td.constant(3.0), 1).tolist() == 4.0
    assert td.cond(False, lambda: None, lambda: None) is None


@both
def test_switch_case_takes_the_last_for_other_numbers(wrap):
    f = wrap(lambda i, x: td.switch_case(i, lambda: x, lambda: x * 10, lambda: x * 100))
    assert [f(td.constant(i), 2.0).tolist() for i in (0, 1, 2, 7)] == [2.0, 20.0, 200.0, 200.0]
    assert td.switch_case(1, [lambda: 5, lambda: 6]).tolist() == 6


@both
def test_case_takes_the_first_true_condition(wrap):
    f = wrap(lambda x: td.case([(x > 10, lambda: x), (x > 0, lambda: x * 10)], default=lambda: x * 100))
    assert [f(x).tolist() for x in (11.0, 2.0, -1.0)] == [11.0, 20.0, -100.0]
    assert td.case([], lambda: 5) == 5


def test_case_wants_pairs():
    with pytest.raises(td.UserTypeError) as caught:
        td.case([(True, lambda: 1), 7], default=lambda: 2)
    assert str(caught.value).splitlines()[0] == "case: a pair of a condition and a function is wanted, got 7"
    assert str(caught.value).splitlines()[2] == "  write td.case([(x > 0, lambda: a), (x < 0, lambda: b)], default=lambda: c)"


@both
def test_while_loop_unpacks_tuples_and_lists(wrap):
    @wrap
    def collatz(n):
        steps, n = td.while_loop(lambda s, n: n != 1, lambda s, n: (s + 1, td.where(n % 2 == 0, n // 2, 3 * n + 1)),
                                 (0, n))
        return steps

    assert int(collatz(td.constant(27))) == 111
    one = wrap(lambda x: td.while_loop(lambda i: i < 10, lambda i: i + 3, [x]))(td.constant(0))
    assert isinstance(one, list) and int(one[0]) == 12
    named = wrap(lambda x: td.while_loop(lambda c: c["i"] < 3, lambda c: {"i": c["i"] + 1, "x": c["x"] * 2},
                                         {"i": 0, "x": x}, max_iterations=2))(td.constant(1.0))
    assert (int(named["i"]), float(named["x"])) == (2, 4.0)


@both
def test_fori_loop_counts(wrap):
    f = wrap(lambda n: td.fori_loop(0, n, lambda i, a, b: (b, a + b), (td.constant(0), td.constant(1)))[0])
    assert int(f(td.constant(30))) == 832040


@both
def test_scan_gives_the_carry_and_the_stack(wrap):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    f = wrap(lambda xs: td.scan(lambda c, x: (c + x, {"c": c + x}), td.zeros((3,)), xs))
    total, stacked = f(td.constant(x))
    assert np.array_equal(total, x.sum(0)) and np.array_equal(stacked["c"], np.cumsum(x, 0))
    f = wrap(lambda xs: td.scan(lambda c, x: (c + x, c + x), td.zeros((3,)), xs, reverse=True)[1])
    assert np.array_equal(f(td.constant(x)), np.cumsum(x[::-1], 0)[::-1])


@both
@pytest.mark.parametrize("options", [{}, {"parallel_iterations": 2}, {"chunk": 3}, {"chunk": "automatic"}])
def test_maps_stack(wrap, options):
    x, y = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    for map_fn in td.map_fn, td.vectorized_map:
        f = wrap(lambda x, y: map_fn(lambda a, b: (a * b, td.sum(a)), (x, y), **options))
        product, sums = f(td.constant(x), td.constant(y))
        assert np.array_equal(product, x * y) and np.allclose(sums, x.sum(1), rtol=1e-6)


def test_a_map_needs_one_body_beside_its_output():
    f = td.function(lambda x: td.map_fn(lambda row: td.matmul(td.exp(row), row), x))
    plan = f.plan(td.spec((100, 32, 32)))
    assert plan.peak == 100 * 32 * 32 * 4 + 32 * 32 * 4


@both
def test_tensor_arrays_are_carried(wrap):
    @wrap
    def squares(n):
        def body(i, a):
            return a.write(i, i * i)
        return td.fori_loop(0, 5, body, td.TensorArray(td.i32, 5, element_shape=())).stack()

    assert squares(0).tolist() == [0, 1, 4, 9, 16]
    array = td.TensorArray(td.f32, max_size=3)
    array = array.push_back(1.0).push_back(td.constant(2.0))
    assert int(array.size()) == 2 and float(array.read(1)) == 2.0 and array.dtype == td.f32
    assert array.stack().tolist() == [1.0, 2.0, 0.0] and array.gather([1, 0]).tolist() == [2.0, 1.0]
    assert td.TensorArray(td.f32, 2).unstack(td.constant([3.0, 4.0])).read(0).tolist() == 3.0
    assert td.TensorArray(td.f32, 3).scatter([2, 0], td.constant([5.0, 6.0])).stack().tolist() == [6.0, 0.0, 5.0]


def test_save_options_bound_what_a_loop_keeps():
    def step(save):
        @td.function
        def f(x, w):
            with td.GradientTape() as tape:
                tape.watch(w)
                y = td.sum(td.fori_loop(0, 64, lambda i, h: td.tanh(td.matmul(h, w)), x, save=save))
            return tape.gradient(y, w)
        return f

    specs = td.spec((64, 64)), td.spec((64, 64))
    kept_all = step(td.Save.all()).plan(*specs).peak
    assert step(td.Save.slots(4)).plan(*specs).peak < kept_all / 3
    assert step(td.Save.every(8)).plan(*specs).peak < kept_all / 2
    rng = np.random.default_rng(0)
    x, w = (td.constant(rng.normal(size=(64, 64)).astype(np.float32) / 8) for _ in range(2))
    a, b = step(td.Save.all())(x, w), step(td.Save.bytes("256 KiB"))(x, w)
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def first_line(f):
    with pytest.raises(td.UserError) as caught:
        f()
    return str(caught.value).splitlines()[0]


def test_errors_name_the_part():
    x = td.constant(1.0)
    traced = td.function(lambda x: td.cond(x > 0, lambda: {"a": x}, lambda: {"a": [x]}))
    assert first_line(lambda: traced(x)) == (
        "cond: the branches give different structures: result['a']: a tensor became a list of 1 item")
    assert first_line(lambda: td.while_loop(lambda a, b: True, lambda a, b: (a, b, b), (x, x))) == (
        "while_loop: the body changes the structure of what it carries: "
        "carry: a tuple of 2 items became a tuple of 3 items")
    assert first_line(lambda: td.scan(lambda c, v: c, x, td.zeros((2,)))) == "scan: the body returned a Tensor"
    assert first_line(lambda: td.cond(x, 1, 2)) == "cond: a branch is a function, got int"
    assert first_line(lambda: td.map_fn(lambda v: v, td.zeros((2,)), chunk="all")) == "map_fn: chunk is 'all'"
    assert first_line(lambda: td.fori_loop(0, 3, lambda i, c: c, x, save=td.Save.every(0))) == (
        "fori_loop: save = every must be at least 1, got 0")


def test_errors_of_bodies_pass_through():
    def fails(*_):
        raise KeyError("mine")
    for run in (lambda: td.fori_loop(0, 3, fails, 0), lambda: td.map_fn(fails, td.zeros((2,))),
                td.function(lambda x: td.cond(x > 0, fails, fails))):
        with pytest.raises(KeyError, match="mine"):
            run(td.constant(1.0)) if isinstance(run, td.Function) else run()


def test_bodies_may_take_the_state_whole():
    x, v = td.ones(3), td.zeros(3)
    for wrapped in (lambda f: f, td.function):
        a, b = wrapped(lambda: td.fori_loop(0, 4, lambda i, state: (state[0] + state[1], state[1] + 1), (x, v)))()
        assert a.tolist() == [7.0] * 3 and b.tolist() == [4.0] * 3
        a, b = wrapped(lambda: td.while_loop(lambda s: td.sum(s[1]) < 12, lambda s: (s[0] + s[1], s[1] + 1), (x, v)))()
        assert a.tolist() == [7.0] * 3 and b.tolist() == [4.0] * 3
        assert wrapped(lambda: td.map_fn(lambda pair: pair[0] * 2 + pair[1], (x, v)))().tolist() == [2.0] * 3
        # One by one, as before, and a state of one part.
        assert wrapped(lambda: td.fori_loop(0, 3, lambda i, a, b: (a + b, b + 1), (x, v)))()[0].tolist() == [4.0] * 3
        assert wrapped(lambda: td.fori_loop(0, 3, lambda i, a: (a + 1,), (x,)))()[0].tolist() == [4.0] * 3
