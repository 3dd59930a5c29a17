"""td.function: traces, keys, plans, methods of classes, donation, and what is held."""
import collections
import dataclasses
import enum
import gc
import weakref

import pytest

import tidemark as td

Point = collections.namedtuple("Point", "x y")


def reasons(f):
    return [entry.reason for entry in f.cache_info().entries]


def test_numbers_are_values_of_the_call():
    traced = []

    @td.function
    def scaled(x, factor=2.0):
        traced.append(factor)
        return x * factor

    x = td.constant(3.0)
    assert [scaled(x).tolist(), scaled(x, 5.0).tolist(), scaled(factor=7.0, x=x).tolist()] == [6.0, 15.0, 21.0]
    assert len(traced) == 1 and scaled.cache_info().traces == 1


@pytest.mark.parametrize("first, second, said", [
    ("a", "b", "'a' became 'b'"),
    (True, False, "True became False"),
    (None, "a", "None became 'a'"),
    (td.f32, td.i32, "td.f32 became td.i32"),
    (td.Static(3), td.Static(4), "3 became 4"),
    ((1, 2), [1, 2], "a tuple of 2 items became a list of 2 items"),
    (1.0, None, "a tensor became None"),
])
def test_other_values_are_part_of_the_key(first, second, said):
    @td.function
    def f(x, option):
        return x + 1

    for option in (first, second, first, second):
        f(td.constant(1.0), option)
    assert reasons(f)[-1] == "first call"
    assert set(reasons(f)) == {"first call", f"argument `option`: {said}"}


def test_the_reason_of_a_trace_names_the_part_and_both_types():
    @td.function
    def f(batch):
        return batch["image"][0] + 1

    f({"image": [td.constant(1.0)]})
    f({"image": [td.constant(1)]})
    assert reasons(f)[0] == "argument `batch['image'][0]`: f32[] became i32[]"


def test_static_values_are_plain_inside():
    @td.function
    def repeated(x, times):
        assert type(times) is int
        for _ in range(times):
            x = x + x
        return x

    assert repeated(td.constant(1.0), td.Static(3)).tolist() == 8.0
    assert repeated(td.constant(1.0), td.Static(4)).tolist() == 16.0


def test_structures_go_in_and_out():
    @dataclasses.dataclass
    class Batch:
        image: object
        name: str

    @td.function
    def f(batch, point, *rest, **named):
        return {"sum": batch.image + point.x + point.y, "rest": [r + 1 for r in rest], "name": batch.name,
                "named": named, "none": None, "point": Point(point.y, point.x)}

    got = f(Batch(td.constant(1.0), "b"), Point(2.0, 3.0), 4.0, 5.0, k=6.0)
    assert got["sum"].tolist() == 6.0 and [r.tolist() for r in got["rest"]] == [5.0, 6.0]
    assert got["name"] == "b" and got["none"] is None and got["named"]["k"].tolist() == 6.0
    assert isinstance(got["point"], Point) and got["point"].x.tolist() == 3.0
    assert list(got) == ["sum", "rest", "name", "named", "none", "point"]


def test_the_order_of_a_dict_makes_no_new_trace():
    @td.function
    def f(d):
        return d["a"] - d["b"]

    assert f({"a": 5.0, "b": 2.0}).tolist() == 3.0
    assert f({"b": 2.0, "a": 5.0}).tolist() == 3.0
    assert f.cache_info().traces == 1


def test_enums_and_objects_are_keys_by_value_and_by_identity():
    class Mode(enum.IntEnum):
        a = 1
        b = 2

    class Model:
        def __init__(self, scale):
            self.scale = scale

    @td.function
    def f(x, mode, model):
        return x * model.scale + (1 if mode is Mode.a else 0)

    one, two = Model(2.0), Model(3.0)
    assert f(1.0, Mode.a, one).tolist() == 3.0
    assert f(1.0, Mode.b, one).tolist() == 2.0
    assert f(1.0, Mode.b, two).tolist() == 3.0
    assert f(1.0, Mode.b, one).tolist() == 2.0
    assert f.cache_info().traces == 3
    gone = weakref.ref(two)
    del two
    assert gone() is None, "a function does not keep the objects it is called with"


@pytest.mark.parametrize("call, said", [
    (lambda f: f(), "step() is missing argument 'x'"),
    (lambda f: f(1, 2, 3), "step() takes 2 positional arguments, 3 were given"),
    (lambda f: f(1, x=2), "step() got multiple values for argument 'x'"),
    (lambda f: f(1, z=2), "step() got an unexpected keyword argument 'z'"),
])
def test_wrong_arguments_are_type_errors(call, said):
    @td.function
    def step(x, y=1):
        return x

    with pytest.raises(TypeError) as caught:
        call(step)
    assert str(caught.value).splitlines()[0] == said


def test_what_cannot_be_returned_is_named():
    @td.function
    def f(x):
        return {"x": x, "objects": [object()]}

    with pytest.raises(td.UserTypeError) as caught:
        f(1.0)
    text = str(caught.value).splitlines()
    assert text[0] == 'function "f" returned a structure in which result[\'objects\'][0] is a object'
    assert text[2] == "  return tensors, numbers, None and structures of them"


def test_errors_of_the_user_pass_through_with_their_class():
    @td.function
    def f(x, fails):
        if fails:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        f(1.0, True)
    assert f(1.0, False).tolist() == 1.0


def test_plans_and_profiles_have_the_fields_of_cpp():
    @td.function(name="step", budget="1 MiB", cache_limit="8 MiB")
    def f(x, y):
        return x * y + 1

    plan = f.plan(td.spec((256, 64)), td.spec((256, 64), td.f32))
    assert plan.peak == 256 * 64 * 4 == plan.of("outputs") and str(plan.peak) == "64.0 KiB"
    assert plan.floor == plan.peak == plan.usual_peak and plan.decisions == [] and plan.more_work == 0
    assert plan.timeline[plan.peak_step].in_use == plan.peak
    assert plan.timeline[0].line.startswith("test_function.py:")
    assert [b.name for b in plan.buffers] == ["result"] and plan.buffers[0].byte_class == td.ByteClass.outputs
    assert plan.within("64 KiB").peak == plan.peak
    result, profile = f.profile(td.constant(2.0), td.constant(3.0))
    assert result.tolist() == 7.0 and profile.planned == profile.touched and profile.function == 'function "step"'
    info = f.cache_info()
    assert info.limit == 8 * td.MiB and info.traces == 2 and info.entries[0].calls == 0
    f.clear_cache()
    assert f.cache_info().entries == []
    with pytest.raises(td.UserError, match="of: there is no class bytes"):
        plan.of("bytes")


def test_open_sizes_serve_every_call():
    @td.function(input_signature=[td.spec((None, 3))])
    def f(x):
        assert not isinstance(x.shape[0], int) and x.shape[1] == 3
        return x + 1

    plan = f.plan(td.spec((None, 3)))
    assert plan.open_sizes == ["argument `x`, dimension 0"]
    assert plan.at([1000]).peak == 1000 * 3 * 4 + 32 == plan.at(1000).peak
    assert f.largest(td.spec((None, 3)), budget="12 KiB") == 1024


def test_a_budget_that_nothing_fits_has_its_numbers():
    @td.function
    def f(x):
        return x + 1

    with pytest.raises(td.OverBudget) as caught:
        f.plan(td.spec((1024,)), budget=1 * td.KiB)
    assert (caught.value.budget, caught.value.floor) == (1024, 4096)
    assert isinstance(caught.value, td.UserError) and caught.value.file == __file__


def test_plans_know_the_work_that_runs_count():
    def layers(x, w):
        values = [x]
        for _ in range(8):
            values.append(td.tanh(values[-1] @ w))
        total = values[-1]
        for value in reversed(values):
            total = td.tanh(total @ w) * value
        return total

    arguments = td.ones((64, 64)), td.ones((64, 64))
    usual = td.function(layers).plan(*arguments)
    step = td.function(layers, budget=usual.floor)
    plan, (_, profile) = step.plan(*arguments), step.profile(*arguments)
    assert plan.flop > usual.flop > 16 * 2 * 64 ** 3
    assert (plan.flop, plan.bytes_moved) == (profile.flop, profile.bytes_moved)
    assert sum(each.flop for each in profile.steps) == profile.flop
    assert sum(each.bytes_moved for each in profile.steps) == profile.bytes_moved


def test_the_budget_that_an_error_names_can_be_pasted():
    def f(x):
        return x + 1

    for count in (1000, 1024):
        with pytest.raises(td.OverBudget) as caught:
            td.function(f, budget=1)(td.ones(count))
        said = str(caught.value).splitlines()[-1].strip()
        assert said.startswith("budget=") and " fits" in said
        options = eval(f"dict({said.split(' fits')[0]})", {"td": td, "dict": dict})
        assert td.function(f, **options)(td.ones(count)).shape == (count,)


@pytest.mark.parametrize("given, bytes", [("64 MiB", 64 << 20), ("1.5GiB", 3 << 29), (17, 17), ("2 kB", 2000)])
def test_budgets_are_texts_and_numbers(given, bytes):
    assert td.Budget(given).bytes == bytes


@pytest.mark.parametrize("given", ["12 parsecs", -1, 1.5, True, "MiB"])
def test_what_is_no_budget_is_said(given):
    with pytest.raises(td.UserTypeError) as caught:
        td.function(lambda x: x, budget=given)
    text = str(caught.value).splitlines()
    assert text[0] == f"budget: {given!r} is not a number of bytes"
    assert text[2] == '  write 64 * td.MiB or "64 MiB"'


def test_bytes_are_ints_that_print_themselves():
    assert 3 * td.MiB == 3 << 20 and f"{td.MiB + td.MiB}" == "2.0 MiB" and repr(td.KiB) == "Bytes(1024)"
    assert td.Budget.available.is_available


class Model:
    def __init__(self, scale):
        self.scale = td.Variable(scale)
        self.traced = 0

    @td.function
    def __call__(self, x, *, shift=0.0):
        self.traced += 1
        return x * self.scale + shift

    @td.function(name="step")
    def step(self, x):
        "Adds x."
        self.scale.assign_add(x)
        return self.scale


def test_methods_have_traces_for_each_object():
    one, two = Model(2.0), Model(3.0)
    assert [one(1.0).tolist(), one(2.0, shift=1.0).tolist(), two(1.0).tolist()] == [2.0, 5.0, 3.0]
    assert (one.traced, two.traced) == (1, 1)
    assert one.step(1.0).tolist() == 3.0 and one.step(1.0).tolist() == 4.0 and two.scale.tolist() == 3.0
    assert one.step.cache_info().traces == 1 and two.step.cache_info().traces == 0
    assert one.step.name == "step" and Model.step.__doc__ == "Adds x."


def test_an_object_is_freed_with_its_traces():
    gc.disable()
    try:
        model = Model(2.0)
        model(1.0)
        bound = model.step
        bound(1.0)
        gone = weakref.ref(model)
        del model
        assert gone() is not None and bound(1.0).tolist() == 4.0, "a bound method holds its object"
        del bound
        assert gone() is None
    finally:
        gc.enable()


def test_a_function_is_freed_at_once_and_a_cycle_by_the_collector():
    gc.disable()
    try:
        held = Model(1.0)
        f = td.function(lambda x: x + held.scale)
        f(1.0)
        gone = weakref.ref(f)
        del f
        assert gone() is None

        def scope():
            @td.function
            def itself(x, again):
                return itself(x, False) + 1 if again else x

            itself(1.0, True)
            return weakref.ref(itself)

        gone = scope()
        gc.collect()
        assert gone() is None
    finally:
        gc.enable()


def test_functions_call_functions():
    inner = td.function(lambda x: {"y": x + 1})
    outer = td.function(lambda x: inner(inner(x)["y"])["y"] * 2)
    assert outer(1.0).tolist() == 6.0
    assert inner.cache_info().traces == 0, "inside another trace a function is inlined"


def test_a_donated_tensor_is_gone():
    f = td.function(lambda x: x + 1)
    x = td.constant(1.0) + 0
    y = td.donate(x)
    assert f(y).tolist() == 2.0
    with pytest.raises(td.UserError):
        x + 1
    with pytest.raises(td.UserError) as caught:
        f(y)
    assert str(caught.value).splitlines()[0] == "the argument was donated in an earlier call: its memory is gone"


def test_tracing_can_be_asked():
    seen = []

    @td.function
    def f(x):
        seen.append((td.is_tracing(), td.is_traced(x), td.is_traced(1)))
        return x

    f(1.0)
    assert seen == [(True, True, False)]
    assert not td.is_tracing() and not td.is_traced(td.constant(1.0))


def test_a_signature_of_something_else_is_refused():
    with pytest.raises(td.UserTypeError, match="input_signature: a spec is wanted, got int"):
        td.function(lambda x: x, input_signature=[3])
    with pytest.raises(td.UserTypeError, match="function: int cannot be called"):
        td.function(3)


def test_the_function_looks_like_its_own():
    @td.function
    def f(x):
        "Adds one."
        return x + 1

    assert (f.__name__, f.__doc__, f.__wrapped__(1), f.name) == ("f", "Adds one.", 2, "f")
    assert repr(f).startswith("<tidemark.Function f of test_function.py:")
    f(1.0)
    assert "add(" in f.text() and "test_function.py" in f.text()
    with pytest.raises(td.UserError, match="text: there is no pass nothing"):
        f.text("nothing")
    assert "number 1 frozen" in f.report()


def test_runs_in_the_callers_memory():
    f = td.function(lambda x: {"y": td.transpose(td.exp(x)) * x, "z": x + 1})
    x = td.random.normal((50, 50), key=td.random.Key(1))
    plan = f.plan(x)
    memory = bytearray(plan.arena + 64)
    before = td.memory.current()
    result = f.run_in(plan, memory, x)
    assert td.memory.current() == before
    assert result["y"].tolist() == (td.transpose(td.exp(x)) * x).tolist() and result["z"].tolist() == (x + 1).tolist()
    with pytest.raises(BufferError):
        memory.clear()  # The results lie there.
    del result
    memory.clear()


def test_run_in_says_what_it_needs():
    f = td.function(lambda x: x + 1)
    x = td.zeros(16)
    plan = f.plan(x)
    with pytest.raises(td.UserTypeError) as caught:
        f.run_in(plan, b"0123", x)
    assert str(caught.value).splitlines()[0] == "run_in: memory that can be written is wanted, got bytes"
    with pytest.raises(td.UserTypeError) as caught:
        f.run_in(x, plan)
    assert str(caught.value).splitlines()[0] == "run_in: a plan and memory for it are wanted in front of the arguments"
    with pytest.raises(td.UserError) as caught:
        f.run_in(plan, bytearray(8), x)
    first, _, remedy = str(caught.value).splitlines()
    assert first.startswith(f"run_in: the plan needs {int(plan.arena)} bytes aligned to 64, and of the memory's 8 bytes ")
    assert remedy == "  give np.empty(plan.arena + 64, np.uint8)"
    with pytest.raises(td.UserError, match="run_in: the plan was made for other arguments"):
        f.run_in(plan, bytearray(1000), td.zeros(17))
