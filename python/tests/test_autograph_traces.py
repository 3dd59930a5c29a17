"""Traced control flow: gradients, lines, plans and budgets, bytes, and what is rewritten only once."""
import gc
import traceback
import weakref

import numpy as np
import os

import pytest

import tidemark as td

X = td.constant([1.0, -2.0, 3.0])


# ---- gradients ----------------------------------------------------------------------------------

def branch(x):
    return td.sum(x * x) if td.sum(x) > 0 else td.sum(td.exp(x))


def early_return(x):
    if x[0] > 5:
        return td.sum(x)
    if x[1] > 0:
        return td.prod(x)
    return td.sum(x * x * x)


def for_rows(x):
    h = td.zeros(())
    for v in x:
        h = td.tanh(h * 0.5 + v)
    return h


def for_numbers(x):
    for i in td.range(5):
        if td.sum(x) > 3:
            x = x * 0.5
        else:
            x = x * x + i
    return td.sum(x)


def for_break(x):
    s = 0.0
    for v in x:
        if v > 2:
            break
        s = s + v * v * v
    return s


def for_return(x):
    for v in x:
        if v > 2:
            return v * v
    return td.sum(x)


def while_halves(x):
    s = td.sum(x * x)
    while s > 1:
        s = s * 0.5
    return s


def while_true(x):
    s, i = td.sum(x * x), 0
    while True:
        s = td.sqrt(s + i)
        i += 1
        if s < 2.5:
            break
    return s


def appends(x):
    out, h = [], td.zeros(())
    for v in x:
        h = td.tanh(h + v)
        out.append(h)
    return td.sum(td.stack(out) * td.constant([1.0, 2.0, 3.0]))


def appends_sometimes(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v * v)
    return out[0] * out[1]


def appends_sometimes_in_nested_loops(x):
    out = []
    for v in x:
        for w in x:
            if v * w > 0.4:
                out.append(v * w)
    return out[0] * out[1] + out[2]


def nested(x):
    s = 0.0
    for a in x:
        for b in x:
            if a > b:
                s = s + a * b * b
    return s


def attributes(x):
    class State:
        total = 0.0
    for v in x:
        State.total += v * v
    return State.total


@pytest.mark.parametrize("f", [branch, early_return, for_rows, for_numbers, for_break, for_return, while_halves, while_true, appends,
                               appends_sometimes, appends_sometimes_in_nested_loops, nested, attributes])
@pytest.mark.parametrize("x", [[1.0, -2.0, 3.0], [0.5, 1.0, 2.5], [3.0, 1.0, 0.5]])
def test_gradients_are_those_of_eager_code(f, x):
    x = td.constant(x)
    expected = np.asarray(td.grad(f)(x))
    np.testing.assert_allclose(np.asarray(td.grad(td.function(f))(x)), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(td.function(td.grad(f))(x)), expected, rtol=1e-5, atol=1e-6)


def test_appends_under_a_condition_keep_sizes_open():
    @td.function(input_signature=[td.spec((None, 3))])
    def f(x):
        out = []
        for row in x:
            if row[0] > 0:
                out.append(row)
        return out[1]

    for rows in (2, 3, 4):
        np.testing.assert_array_equal(f(td.ones((rows, 3))), [1, 1, 1])
    assert f.cache_info().traces == 1


def test_a_tape_around_traced_loops():
    @td.function
    def step(x):
        with td.GradientTape() as tape:
            tape.watch(x)
            y = for_numbers(x)
        return y, tape.gradient(y, x)
    value, gradient = step(X)
    assert float(value) == float(for_numbers(X))
    np.testing.assert_allclose(np.asarray(gradient), np.asarray(td.grad(for_numbers)(X)), rtol=1e-6)


# ---- lines --------------------------------------------------------------------------------------

def test_errors_in_blocks_have_their_own_lines():
    def f(x):
        for v in x:
            if v > 0:
                td.matmul(x, td.zeros((7, 2)))
        return x
    with pytest.raises(td.UserError) as caught:
        td.function(f)(X)
    assert caught.value.line == f.__code__.co_firstlineno + 3
    assert (caught.value.file, caught.value.function) == (__file__, "f")


def test_tracebacks_show_the_function_as_written():
    def f(x):
        if x[0] > 0:
            for _ in td.range(3):
                x = x + undefined  # noqa: F821
        return x
    with pytest.raises(NameError) as caught:
        td.function(f)(X)
    first = f.__code__.co_firstlineno
    mine = [(frame.lineno - first, frame.name) for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == __file__]
    assert mine[1:] == [(1, "f"), (2, "f"), (3, "f")]


def test_plans_name_the_lines_of_blocks():
    def f(x):
        for _ in td.range(3):
            x = td.softmax(td.matmul(x, x))
        return x
    assert f"test_autograph_traces.py:{f.__code__.co_firstlineno + 2}" in td.function(f).plan(td.spec((64, 64))).explain()


# ---- what a loop costs --------------------------------------------------------------------------

def chain(x, n):
    for _ in td.range(n):
        x = td.tanh(td.matmul(x, x))
    return x


def test_a_traced_loop_is_traced_once_and_its_plan_is_independent_of_trips():
    f = td.function(chain)
    x = td.ones((32, 32)) * 0.01
    for n in (1, 5, 50):
        np.testing.assert_array_equal(np.asarray(f(x, n)), np.asarray(chain(x, n)))
    assert f.cache_info().traces == 1


def test_a_budget_holds_for_autographed_loops():
    def loss(x):
        for _ in td.range(64):
            x = td.tanh(x * 1.01)
        return td.sum(x)
    x = td.ones((64, 64))
    free = td.function(td.grad(loss))
    plan = free.plan(x)
    tight = td.function(td.grad(loss), budget=int(plan.floor))
    assert int(tight.plan(x).peak) <= int(plan.floor) < int(plan.peak)
    np.testing.assert_array_equal(np.asarray(tight(x)), np.asarray(free(x)))
    with pytest.raises(td.OverBudget):
        td.function(td.grad(loss), budget=int(plan.floor) - 1)(x)


def test_calls_hold_no_bytes():
    f = td.function(appends)
    f(X)
    before = td.memory.current()
    for _ in range(200):
        f(X)
    assert td.memory.current() == before


# ---- datasets ------------------------------------------------------------------------------------

READS = r'function "f" reads a Dataset, so it is not compiled: every call runs it as Python, op by op'


def test_a_function_that_reads_a_dataset_reads_it_anew_in_every_call():
    data = [1, 2]
    batches = td.data.from_generator(lambda: iter(data)).batch(2)  # The last one may be smaller.

    @td.function
    def f(x):
        for batch in batches:
            if td.sum(batch) > 8:
                break
            x = x * 2 + td.sum(batch)
        return x

    with pytest.warns(UserWarning, match=READS) as caught:
        assert int(f(td.constant(1))) == 5
    assert caught[0].filename == __file__ and caught[0].lineno == f.__wrapped__.__code__.co_firstlineno + 2
    data += [3]
    assert int(f(td.constant(1))) == 13
    data += [9, 7]
    assert int(f(1)) == 5  # 3 + 9 ends the loop.


@pytest.mark.parametrize("read", [lambda d: list(d), lambda d: [x for _, x in enumerate(d)], lambda d: [next(iter(d))]], ids=["list", "enumerate", "next"])
def test_other_ways_to_read_a_dataset(read):
    data = [1, 2]
    dataset = td.data.from_generator(lambda: iter(data))
    f = td.function(lambda: td.sum(td.stack(read(dataset))), name="f")
    with pytest.warns(UserWarning, match=READS):
        first = int(f())
    data[0] = 5
    assert int(f()) == first + 4


def test_an_iterator_goes_on_from_call_to_call():
    elements = iter(td.data.range(10))
    f = td.function(lambda x: x + next(elements), name="f")
    with pytest.warns(UserWarning, match=READS):
        assert [int(f(10)) for _ in range(3)] == [10, 11, 12]


def test_functions_that_a_reader_calls_are_compiled_and_one_that_calls_a_reader_is_not():
    step = td.function(lambda x, y: x + y)
    w = td.Variable(0)

    @td.function
    def f(dataset, x):
        for element in dataset:
            x = step(x, element)
            w.assign_add(1)
        return x

    g = td.function(lambda dataset, x: td.cond(x > 0, lambda: f(dataset, x), lambda: x) * 2, name="g")
    with pytest.warns(UserWarning):
        assert int(g(td.data.range(4), td.constant(1, td.i64))) == 14
    assert int(g(td.data.range(3), td.constant(1, td.i64))) == 8 and int(w) == 7
    assert step.cache_info().traces == 1 and f.cache_info().traces == 0


def test_layers_of_a_function_that_reads_a_dataset_are_made_once():
    batches = td.data.from_tensor_slices(td.ones((4, 3))).batch(2)

    @td.function
    def f():
        layer = td.nn.Dense(2)
        return td.stack([layer(x) for x in batches])

    with pytest.warns(UserWarning, match=READS):
        first = f()
    assert f().tolist() == first.tolist()


def test_a_plan_or_a_budget_refuses_a_dataset():
    dataset = td.data.range(3)

    def f(x):
        for i in dataset:
            x = x + i
        return x

    line = f.__code__.co_firstlineno + 1
    for ask in (td.function(f).plan, td.function(f, budget="1 MiB"), td.function(f).profile):
        with pytest.raises(td.UserError) as caught:
            ask(td.constant(1))
        assert str(caught.value) == (
            "a Dataset is read while a function is traced: its elements are no part of the program\n"
            f"  at {os.path.basename(__file__)}:{line}\n"
            "  loop outside of the function, and call it with each element")


# ---- what is rewritten --------------------------------------------------------------------------

def test_a_function_is_rewritten_once_and_forgotten_with_its_code():
    from tidemark.autograph import conversion
    names = {}
    source = "def f(x):\n    return x + 1 if x else x\n"
    import linecache
    linecache.cache["<forgotten>"] = (len(source), None, source.splitlines(True), "<forgotten>")
    exec(compile(source, "<forgotten>", "exec"), names)
    f = names.pop("f")
    one, other = td.autograph.convert(f), td.autograph.convert(f)
    assert one.__code__ is other.__code__ is not f.__code__
    code, key = weakref.ref(f.__code__), id(f.__code__)
    assert key in conversion._cache
    names.clear()
    del f, one, other
    gc.collect()
    assert code() is None and key not in conversion._cache


def test_libraries_are_left_alone():
    import functools
    import json
    for f in (np.mean, json.dumps, td.grad, functools.reduce, len, int, td.exp):
        assert td.autograph.convert(f) is f


def test_do_not_convert():
    @td.autograph.do_not_convert
    def helper(x):
        return x if x > 0 else -x
    with pytest.raises(td.UserError, match="td.cond"):
        td.function(lambda x: helper(x))(td.constant(1.0))


def test_functions_keep_what_they_are():
    def f(x, y=2, *, z=3):
        """What it does."""
        return x if x else y + z
    f.note = 5
    g = td.autograph.convert(f)
    assert g is not f
    assert (g.__name__, g.__qualname__, g.__doc__, g.__module__, g.note) == (f.__name__, f.__qualname__, f.__doc__, f.__module__, 5)
    assert (g.__defaults__, g.__kwdefaults__, g(0)) == (f.__defaults__, f.__kwdefaults__, 5)


def test_two_lambdas_of_one_line():
    one, other = (lambda x: x + 1 if x > 0 else x), (lambda x: x * 10 if x > 0 else x)
    x = td.constant(2.0)
    assert float(td.function(one)(x)) == 3 and float(td.function(other)(x)) == 20


def test_a_function_without_source_runs_as_it_is():
    names = {"td": td}
    exec("def f(x):\n    return x + 1 if x is not None else 0", names)
    assert float(td.function(names["f"])(td.constant(2.0))) == 3


def test_a_method_as_a_function():
    class Model:
        def __init__(self):
            self.w = td.Variable(td.constant(2.0))

        @td.function
        def step(self, x):
            if x > self.w:
                self.w.assign_add(x)
            return self.w * 1
    model = Model()
    assert [float(model.step(td.constant(v))) for v in (3.0, 1.0, 9.0)] == [5.0, 5.0, 14.0]


def test_callables_as_functions():
    class Model:
        def __call__(self, x):
            for _ in td.range(3):
                x = x * 2 if x < 10 else x
            return x
    assert float(td.function(Model())(td.constant(1.5))) == 12.0


def test_functions_that_the_library_calls():
    def body(row):
        if td.sum(row) > 0:
            return row * 2
        return -row

    @td.function
    def f(x):
        return td.map_fn(body, x)
    m = td.constant([[1.0, 2.0], [-3.0, 1.0]])
    assert np.asarray(f(m)).tolist() == [[2.0, 4.0], [3.0, -1.0]]


def test_print_prints_when_the_program_runs(capfd):
    @td.function
    def f(x):
        for i in td.range(2):
            print("x is", x, i)
            x = x + 1
        return x
    f(td.constant(1.0))
    f(td.constant(5.0))
    assert capfd.readouterr().out == "x is 1.0 0\nx is 2.0 1\nx is 5.0 0\nx is 6.0 1\n"


def test_variables_are_conditions_and_iterables():
    v, n = td.Variable(td.constant([1.0, 2.0])), td.Variable(td.constant(1))

    @td.function
    def f():
        s = 0.0
        for x in v:
            s += x
        if n:
            s = s * 10
        return s
    assert float(f()) == 30.0
    n.assign(0)
    v.assign(td.constant([5.0, 6.0]))
    assert float(f()) == 11.0
