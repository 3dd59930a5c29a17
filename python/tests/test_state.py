"""Python state and traces: what was frozen and has changed, tensors that leak, things made once."""
import pytest

import tidemark as td

scale = 3.0
names = ["a"]


def text_of(f, *arguments):
    with pytest.raises(td.UserError) as caught:
        f(*arguments)
    return str(caught.value).splitlines()


def test_what_was_captured_and_has_changed_is_named():
    global scale
    shift, counts = 1.0, {"n": 2}

    class Model:
        rate = 0.5

        def __init__(self):
            self.rate = 0.1
            self.table = td.Variable(1.0)

        @td.function
        def step(self, x):
            return x * self.rate * self.table

    @td.function
    def f(x):
        return x * scale + shift + counts["n"] + len(names)

    x, model = td.constant(2.0), Model()
    f(x), model.step(x)
    assert f.check_captures() == "" and model.step.check_captures() == ""
    scale, shift = 4.0, 1.5
    counts["n"] = 5
    names.append("b")
    model.rate = 0.2
    said = f.check_captures().splitlines()
    for line in ("the captured `counts` was {'n': 2} when the function was traced, and is {'n': 5} now",
                 "the captured `shift` was 1.0 when the function was traced, and is 1.5 now",
                 "the global `scale` was 3.0 when the function was traced, and is 4.0 now",
                 "the global `names` was ['a'] when the function was traced, and is ['a', 'b'] now"):
        assert line in said
    assert any(line.startswith("test_state.py:") and line.endswith("3 was frozen into the program, and is 4 now")
               for line in said)
    assert model.step.check_captures().splitlines()[0] == (
        "the attribute `self.rate` was 0.1 when the function was traced, and is 0.2 now")
    scale = 3.0
    names.pop()


def test_changed_captures_are_warned_of_where_asked():
    rate = 1.0

    @td.function(check_captures=True)
    def f(x):
        return x * rate

    f(1.0)
    rate = 2.0
    with pytest.warns(match="the captured `rate` was 1.0 when the function was traced, and is 2.0 now"):
        f(1.0)


def test_a_tensor_that_leaks_names_both_lines():
    leaked = []

    @td.function
    def f(x):
        leaked.append(x * 2)
        return x

    f(td.constant(1.0))
    text = text_of(lambda: leaked[0] + 1)
    made = f.__wrapped__.__code__.co_firstlineno
    assert text[0] == (f'a tensor made inside function "f" (test_state.py:{made}) at test_state.py:{made + 2} '
                       "was used outside it: it has no value there")
    assert text[1].startswith("  at test_state.py:")
    assert repr(leaked[0]) == "Tensor(traced f32[])"


def test_a_tensor_as_a_condition_names_the_control_flow():
    f = td.function(lambda x: 1 if x > 0 else 2, autograph=False)
    text = text_of(f, td.constant(1.0))
    assert text[0].startswith("the value of a traced tensor was read: bool[], made at test_state.py:")
    assert text[2].startswith("  to branch on it use td.cond, td.while_loop or td.where")


def test_variables_made_inside_are_made_once():
    made = []

    @td.function
    def f(x):
        count = td.Variable(0.0, name="count")
        more = [td.Variable(lambda shape, dtype: td.ones(shape, dtype), shape=(2,)) for _ in range(2)]
        made.append((count, *more))
        count.assign_add(td.sum(x))
        return count * more[0] * more[1]

    assert f(td.ones((2,))).tolist() == [2.0, 2.0]
    assert f(td.ones((2,))).tolist() == [4.0, 4.0]
    assert f(td.ones((3,))).tolist() == [7.0, 7.0], "another trace, the same Variables"
    assert f.cache_info().traces == 2 and len(made) == 2
    assert all(a.same_as(b) for a, b in zip(*made)) and not made[0][1].same_as(made[0][2])


def test_a_variable_of_another_shape_is_refused():
    @td.function
    def f(x):
        return td.Variable(td.zeros(x.shape), name="v") + x

    f(td.ones((2,)))
    assert text_of(f, td.ones((3, 1)))[0] == (
        'Variable "v" was made as f32[2] when the function was first traced, and would be f32[3, 1] now')


def test_functions_keep_the_variables_of_functions_they_call():
    @td.function
    def inner(x):
        total = td.Variable(0.0)
        total.assign_add(x)
        return total

    outer = td.function(lambda x: inner(x) + inner(x) * 0)
    assert [float(outer(1.0)), float(outer(1.0))] == [1.0, 3.0]
