"""Variables: values, assignment in place, errors; keys of random draws."""
import gc
import weakref

import pytest

import tidemark as td


def test_a_variable_computes_as_a_tensor():
    v = td.Variable(3.0, name="v")
    assert (v.name, v.trainable, v.shape, v.dtype) == ("v", True, (), td.f32)
    assert [(v + 1).tolist(), (1 - v).tolist(), (v * v).tolist(), (v / 2).tolist()] == [4.0, -2.0, 9.0, 1.5]
    assert v.tolist() == 3.0, "what a Variable does not have is its value's"
    with pytest.raises(AttributeError):
        v.no_such_thing


def test_assignments_change_it_and_snapshots_stay():
    v = td.Variable(1.0)
    before = v.value()
    assert v.assign_add(2.0) is v
    v.assign_sub(0.5)
    assert (before.tolist(), v.value().tolist()) == (1.0, 2.5)
    v.assign(7)
    assert v.read_value().tolist() == 7.0
    same = v
    v += 1
    v -= 2
    v *= 3
    v /= 2
    assert v is same and v.value().tolist() == 9.0
    with pytest.raises(TypeError):
        v += "text"


def test_a_declared_variable_is_made_at_its_first_use():
    calls = []

    def make(shape, dtype):
        calls.append((shape, dtype))
        return td.constant(5.0)

    v = td.Variable(make, shape=())
    assert calls == []
    assert (v + 1).tolist() == 6.0 and v.value().tolist() == 5.0
    assert calls == [((), td.f32)]


def test_errors_of_an_initializer_pass_through_and_nothing_is_kept():
    fail = [True]

    def make(shape, dtype):
        if fail[0]:
            raise KeyError("mine")
        return td.constant(1.0)

    v = td.Variable(make, shape=())
    with pytest.raises(KeyError, match="mine"):
        v.value()
    fail[0] = False
    assert v.value().tolist() == 1.0


def test_errors_are_those_of_cpp_with_the_python_line():
    v = td.Variable(1.0, name="w")
    with pytest.raises(td.UserError) as caught:
        v.assign(td.constant(True))
    text = str(caught.value).splitlines()
    assert text[0] == 'assign: Variable "w" is f32[], the value bool[]'
    assert text[1].startswith("  at test_variable.py:")
    assert text[2] == "  a Variable keeps its dtype: td.cast(x, variable.dtype())"
    with pytest.raises(td.UserError) as caught:
        td.Variable(lambda shape, dtype: 0, name="late").value()
    assert str(caught.value).startswith('Variable "late" has no shape yet')
    with pytest.raises(td.UserTypeError, match="Variable: a shape is given beside the initial value"):
        td.Variable(1.0, shape=(2,))


def test_a_variable_is_itself_however_it_is_reached():
    v, w = td.Variable(1.0), td.Variable(1.0)
    assert v.same_as(v) and not v.same_as(w)
    assert len({v, w}) == 2 and hash(v) == hash(v)
    assert v.clone().value().tolist() == 1.0 and not v.clone().same_as(v)


def test_a_dropped_variable_is_gone_at_once():
    gc.disable()
    try:
        v = td.Variable(lambda shape, dtype: 0, shape=())
        gone = weakref.ref(v)
        del v
        assert gone() is None
    finally:
        gc.enable()


def test_keys_split_and_fold():
    key = td.random.Key(7)
    a, b = key.split()
    assert a != b and a == td.random.Key(7).split()[0] and len(key.split(5)) == 5
    assert key.fold_in(3) == td.random.Key(7).fold_in(3) != key.fold_in(4)
    td.random.seed(1)
    state = td.random.state()
    td.random.set_state(state)
    assert td.random.state().tolist() == state.tolist()


def test_shapes_of_variables_are_checked():
    with pytest.raises(td.UserTypeError) as caught:
        td.Variable(lambda shape, dtype: 0, shape=("a", 2))
    assert str(caught.value).splitlines()[0] == "a shape has whole numbers, got str a"
