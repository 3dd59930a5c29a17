"""Cycles of Python objects that run through objects of the library are collected, and what is still in use is not.

Python's collector sees a reference only if its owner reports it. An owner that reports too little keeps its cycles for
ever; one that reports a reference twice gives a function to the collector that is still called.
"""
import collections
import copy
import dataclasses
import functools
import gc
import tempfile
import weakref

import numpy as np
import pytest

import tidemark as td

nn = td.nn
X = td.ones((2, 4))


class Owner:
    """Holds what is made with its methods, which therefore hold it."""

    def scale(self, x):
        return x * 2

    def two(self, a, b):
        return a + b

    def rate(self, step):
        return step * 0 + 0.5

    def make(self, shape, dtype):
        return td.ones(shape, dtype)

    def generate(self):
        for i in range(4):
            yield i

    def positive(self, x):
        return x > 0


class Slotted:
    """Allows no weak references."""

    __slots__ = ("owner",)

    def __init__(self, owner):
        self.owner = owner


class Rule:
    def __init__(self, owner):
        self.owner = owner

    def apply(self, step, numbers):
        step.parameter = step.parameter - step.gradient * numbers[0]

    def numbers(self, rate, count):
        return [rate]


def trained(owner, optimizer):
    """After a step that the optimizer has compiled."""
    owner.variable = td.Variable([1.0, 2.0])
    with td.GradientTape() as tape:
        loss = (owner.variable * owner.variable).sum()
    optimizer.minimize(tape, loss, [owner.variable])
    return optimizer


def called(layer, x=X):
    layer(x)
    return layer


def half_read(dataset):
    iterator = iter(dataset)
    next(iterator)
    return iterator


def fitted(owner):
    model = nn.Sequential(nn.Dense(1, activation=owner.scale), owner.scale)
    nn.fit(model, [(np.ones((4, 3), np.float32), np.ones((4, 1), np.float32))], loss=lambda t, p: owner.two((t - p) ** 2, 0).mean(),
           optimizer=nn.SGD(owner.rate), epochs=1, progress="none", on_epoch=lambda epoch: owner, metrics={"m": lambda t, p: owner.two(t, p).sum()})
    return model


def stepped(owner):
    owner.model, owner.optimizer = nn.Dense(1, activation=owner.scale), nn.Adam(owner.rate)

    @td.function
    def step(x):
        with td.GradientTape() as tape:
            loss = owner.scale(owner.model(x)).sum()
        owner.optimizer.minimize(tape, loss, owner.model)
        return loss

    step(X)
    return step


def custom(owner):
    @td.custom_gradient
    def twice(x):
        return x * 2, lambda dy: owner.scale(dy)

    return twice


def traced_custom(owner):
    twice = custom(owner)
    f = td.function(lambda x: twice(x).sum())
    td.grad(f)(X)
    return f


def traced_recompute(owner):
    block = td.recompute(lambda x: owner.scale(td.tanh(x)))
    f = td.function(lambda x: block(x).sum())
    td.grad(f)(X)
    return f


class Tape(td.GradientTape):
    """With attributes."""


def taped(f, *more, persistent=True):
    """A tape that has recorded f."""
    variable = td.Variable([1.0, 2.0])
    with Tape(persistent=persistent) as tape:
        tape.target, tape.source = f(variable, *more).sum(), variable
    return tape


def nested_tapes(owner):
    """Both have recorded the call, and the gradient of the inner one is recorded by the outer one."""
    variable, f = td.Variable([1.0, 2.0]), custom(owner)
    with Tape(persistent=True) as outer:
        with Tape(persistent=True) as inner:
            inner.target, inner.source = f(variable).sum(), variable
        outer.target = (inner.gradient(inner.target, variable) * variable).sum()
    outer.source = variable
    return outer, inner


def tape_around_grad(owner):
    variable, f = td.Variable([1.0, 2.0]), custom(owner)
    with td.GradientTape(persistent=True) as tape:
        td.grad(lambda x: f(x).sum())(variable)
    return tape


def tape_that_records(owner):
    def steps():
        with td.GradientTape(persistent=True) as tape:
            custom(owner)(td.Variable([1.0]))
            yield tape

    walk = steps()
    return walk, next(walk)


def tape_of_itself(owner):
    variable = td.Variable([1.0])
    with td.GradientTape(persistent=True) as tape:
        block = td.recompute(functools.partial(lambda _, x: x * 2, (tape, owner)))
        block(variable)
    return tape


def function_of_itself(owner):
    f = td.function(lambda x, static: x * 2)
    f(X, td.Static((f, owner)))
    return f


def local_classes(owner):
    @dataclasses.dataclass
    class Pair:
        a: object
        b: object
        kept = owner

    class Point(collections.namedtuple("Point", "x y")):
        kept = owner

    f = td.function(lambda point: Pair(point.x, point.y))
    f(Point(X, X))
    return f


def made_inside(owner):
    @td.function
    def f(x):
        return nn.Dense(2, activation=owner.scale, kernel_initializer=owner.make)(x)

    f(X)
    return f


def predicted(owner):
    model = nn.Sequential(nn.Dense(3, activation=lambda x: owner.scale(x)), nn.Dense(2))
    nn.predict(model, X)
    return model


def shared_stage(owner):
    base = td.data.range(6).map(owner.scale)
    return base, base.batch(2), td.data.zip(base, base.take(2)), iter(base.prefetch(1))


def shared_activation(owner):
    activation = nn.Activation(owner.scale)
    return activation, nn.Dense(2, activation=activation), nn.Dense(2, activation=activation), copy.copy(activation)


def copies_of_layers(owner):
    layer = called(nn.Dense(2, activation=owner.scale, kernel_initializer=owner.make))
    return layer, copy.copy(layer), copy.deepcopy(layer), copy.copy(copy.deepcopy(layer))


def shared_schedule(owner):
    schedule = nn.Schedule(owner.rate)
    return schedule, nn.SGD(schedule), nn.SGD(nn.schedules.warm_up(2, schedule)), nn.schedules.warm_up(2, owner.rate)


def tied(owner):
    first, second = nn.Dense(4, kernel_initializer=owner.make), nn.Dense(4, activation=owner.scale)
    second.kernel = first.kernel
    return called(first), called(second), first.kernel


CYCLES = {
    "activation": lambda o: nn.Dense(2, activation=o.scale),
    "activation of a lambda": lambda o: nn.Dense(2, activation=lambda x: o.scale(x)),
    "activation, called": lambda o: called(nn.Dense(2, activation=o.scale)),
    "Activation": lambda o: nn.Activation(o.scale),
    "Conv2D": lambda o: called(nn.Conv2D(2, 1, activation=o.scale, kernel_initializer=o.make, bias_initializer=o.make), td.ones((1, 2, 2, 1))),
    "SimpleRNN": lambda o: called(nn.SimpleRNN(2, activation=o.scale, kernel_initializer=o.make, recurrent_initializer=o.make), td.ones((1, 2, 2))),
    "LSTM": lambda o: nn.LSTM(2, kernel_initializer=o.make, recurrent_initializer=o.make),
    "GRU, called": lambda o: called(nn.GRU(2, kernel_initializer=o.make), td.ones((1, 2, 2))),
    "attention": lambda o: called(nn.MultiHeadAttention(2, 2, kernel_initializer=o.make), td.ones((1, 2, 4))),
    "Embedding": lambda o: nn.Embedding(3, 2, initializer=o.make),
    "initializers": lambda o: nn.Dense(2, kernel_initializer=o.make, bias_initializer=o.make),
    "initializers, called": lambda o: called(nn.Dense(2, kernel_initializer=o.make, bias_initializer=o.make)),
    "Variable": lambda o: td.Variable(o.make, shape=(2,)),
    "Variable, read": lambda o: (lambda v: (v.value(), v))(td.Variable(o.make, shape=(2,))),
    "Bidirectional": lambda o: nn.Bidirectional(o.scale, o.scale),
    "Sequential": lambda o: nn.Sequential(o.scale, nn.Dense(2, activation=o.scale)),
    "copies of Sequential": lambda o: (lambda s: (s, copy.copy(s), copy.deepcopy(s)))(nn.Sequential(o.scale, nn.Dense(2))),
    "Lambda": lambda o: nn.Lambda(lambda x, d: o.scale(d(x)), nn.Dense(2)),
    "copies of layers": copies_of_layers,
    "shared activation": shared_activation,
    "tied": tied,
    "rate": lambda o: nn.Adam(o.rate),
    "rate, trained": lambda o: trained(o, nn.Adam(learning_rate=o.rate)),
    "decays": lambda o: trained(o, nn.AdamW(decays=lambda v: o is not None)),
    "rule": lambda o: trained(o, nn.Optimizer(nn.UpdateRule(Rule(o).apply, numbers=Rule(o).numbers), learning_rate=o.rate)),
    "copies of optimizers": lambda o: (lambda a: (a, copy.copy(a)))(trained(o, nn.Adam(o.rate))),
    "Schedule": lambda o: nn.Schedule(o.rate),
    "shared schedule": shared_schedule,
    "plateau": lambda o: nn.ReduceLROnPlateau(nn.AdamW(decays=o.positive)),
    "map": lambda o: td.data.range(4).map(o.scale).batch(2),
    "filter": lambda o: td.data.range(4).filter(o.positive).prefetch(1),
    "from_generator": lambda o: td.data.from_generator(o.generate).map(lambda x: o.scale(x)),
    "iterator": lambda o: half_read(td.data.range(4).map(o.scale).prefetch(1)),
    "iterator of a generator": lambda o: half_read(td.data.from_generator(o.generate)),
    "iterator of a generator, prefetched": lambda o: half_read(td.data.from_generator(o.generate).batch(1).prefetch(1)),
    "shared stage": shared_stage,
    "within": lambda o: td.data.range(4).map(o.scale).within(2**20),
    "checkpoint": lambda o: td.io.Checkpoint(owner=o, state={"owner": o}),
    "checkpoint of parts": lambda o: td.io.Checkpoint(optimizer=nn.Adam(o.rate), data=td.data.range(4).map(o.scale)),
    "fit": fitted,
    "step": stepped,
    "function": lambda o: called(td.function(lambda x: o.scale(x))),
    "method": lambda o: called(td.function(o.scale)),
    "made inside": made_inside,
    "custom gradient": custom,
    "traced custom gradient": traced_custom,
    "traced recompute": traced_recompute,
    "tape with a custom gradient": lambda o: taped(custom(o)),
    "tape that is not used": lambda o: taped(custom(o), persistent=False),
    "tape with a recomputed function": lambda o: taped(td.recompute(lambda x: o.scale(x))),
    "tape with a recomputed method": lambda o: taped(td.recompute(o.scale)),
    "tape with an argument": lambda o: taped(td.recompute(lambda x, held: x * 2), Slotted(o)),
    "tape with a static argument": lambda o: taped(td.recompute(lambda x, held: x * 2), td.Static((o,))),
    "tape that is paused": lambda o: taped(custom(o)).stop_recording(),
    "tape of itself": tape_of_itself,
    "nested tapes": nested_tapes,
    "outer tape": lambda o: nested_tapes(o)[0],
    "inner tape": lambda o: nested_tapes(o)[1],
    "tape around a gradient": tape_around_grad,
    "tape that records": tape_that_records,
    "vjp of a custom gradient": lambda o: td.vjp(custom(o), X),
    "vjp of a recomputed function": lambda o: td.vjp(td.recompute(o.scale), X)[1],
    "vjp with a static argument": lambda o: td.vjp(lambda x, held: x * 2, X, td.Static((o,)))[1],
    "default argument": lambda o: called(td.function(lambda x, owner=o: owner.scale(x))),
    "default of a keyword": lambda o: called(td.function(lambda x, *, owner=o: owner.scale(x))),
    "static argument": lambda o: (lambda f: (f(X, td.Static((o,))), f))(td.function(lambda x, held: x * 2)),
    "argument without weak references": lambda o: (lambda f: (f(X, Slotted(o)), f))(td.function(lambda x, held: x * 2)),
    "function of itself": function_of_itself,
    "local classes": local_classes,
    "Static": lambda o: td.Static((o,)),
    "TreeDef": lambda o: td.tree.structure({1: X, (o,): X}),
    "place": lambda o: X.at[[0, o]],
    "predict": predicted,
    "EMA": lambda o: nn.EMA(called(nn.Dense(2, activation=o.scale))),
}


@pytest.mark.parametrize("name", CYCLES)
def test_a_cycle_is_collected(name):
    owner = Owner()
    owner.held = CYCLES[name](owner)
    gone = weakref.ref(owner)
    gc.collect()
    assert gone() is owner  # Still in use.
    del owner
    gc.collect()
    assert gone() is None


def kept_variable(owner):
    layer = nn.Dense(2, kernel_initializer=owner.make)
    return layer.kernel  # Without a value: it needs the initializer.


def kept_tied(owner):
    first, second = nn.Dense(2, kernel_initializer=owner.make), nn.Dense(2)
    second.kernel = first.kernel
    owner.first = first
    return second


def stepped_once(optimizer):
    variable = td.Variable([1.0])
    optimizer.apply_gradients([td.ones(1)], [variable])
    assert float(variable[0]) == 0.5


def saved(checkpoint):
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save(folder + "/a.safetensors")


def differentiated(tape):
    gradient = tape.gradient(tape.target, tape.source)
    np.testing.assert_array_equal(gradient, [2, 2])


# What outlives its owner and the objects that were made with it, and how it is used then.
KEPT = {
    "layer": (lambda o: nn.Dense(2, activation=o.scale, kernel_initializer=o.make), lambda layer: layer(X)),
    "copied layer": (lambda o: copies_of_layers(o)[1], lambda layer: layer(X)),
    "deeply copied layer": (lambda o: copies_of_layers(o)[3], lambda layer: layer(X)),
    "layer with a shared activation": (lambda o: shared_activation(o)[1], lambda layer: layer(X)),
    "copied activation": (lambda o: shared_activation(o)[3], lambda layer: layer(X)),
    "copied Sequential": (lambda o: copy.copy(nn.Sequential(o.scale, nn.Dense(2, activation=o.scale))), lambda model: model(X)),
    "Variable of a layer": (kept_variable, lambda variable: (variable.set_shape((4, 2)), variable.value())),
    "tied layer": (kept_tied, lambda layer: layer(X)),
    "optimizer": (lambda o: nn.SGD(o.rate), stepped_once),
    "copied optimizer": (lambda o: copy.copy(nn.SGD(o.rate)), stepped_once),
    "optimizer with a schedule": (lambda o: shared_schedule(o)[1], stepped_once),
    "optimizer that warms up": (lambda o: nn.SGD(nn.schedules.warm_up(1, nn.Schedule(o.rate))), stepped_once),
    "schedule": (lambda o: shared_schedule(o)[3], lambda schedule: schedule(0)),
    "first stage": (lambda o: shared_stage(o)[0], list),
    "batches": (lambda o: shared_stage(o)[1], list),
    "zipped": (lambda o: shared_stage(o)[2], list),
    "iterator": (lambda o: shared_stage(o)[3], list),
    "iterator of a generator": (lambda o: half_read(td.data.from_generator(o.generate).prefetch(1)), lambda iterator: list(iterator)),
    "tape with a custom gradient": (lambda o: taped(custom(o)), differentiated),
    "tape with a recomputed function": (lambda o: taped(td.recompute(o.scale)), differentiated),
    "tape that is not used": (lambda o: taped(custom(o), persistent=False), differentiated),
    "outer tape": (lambda o: nested_tapes(o)[0], differentiated),
    "inner tape": (lambda o: nested_tapes(o)[1], differentiated),
    "pullback": (lambda o: td.vjp(custom(o), X)[1], lambda pullback: np.testing.assert_array_equal(pullback(X), X * 2)),
    "pullback of a recomputed function": (lambda o: td.vjp(td.recompute(o.scale), X)[1], lambda pullback: pullback(X)),
    "default argument": (lambda o: td.function(lambda x, owner=o: owner.scale(x)), lambda f: f(X)),
    "static argument": (lambda o: td.Static((o,)), lambda static: td.function(lambda x, held: held[0].scale(x))(X, static)),
    "checkpoint": (lambda o: td.io.Checkpoint(optimizer=nn.Adam(o.rate), data=td.data.range(4).map(o.scale), variable=td.Variable(1.0), owner={"o": [o, 1]}), saved),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_in_use_is_not_collected(name):
    make, use = KEPT[name]
    owner = Owner()
    gone = weakref.ref(owner)
    kept = make(owner)
    owner.held = kept
    del owner
    for _ in range(3):
        gc.collect()
    assert gone() is not None
    use(kept)
    del kept
    gc.collect()
    assert gone() is None


class Looped(nn.Module):
    """Its layer's activation is a method of the model: every walk over the model comes back to it."""

    def __init__(self):
        self.gain = td.Variable(2.0, name="gain")
        self.dense = nn.Dense(3, activation=self.scale)

    def scale(self, x):
        return x * self.gain

    def __call__(self, x):
        return self.dense(x)


def test_a_model_whose_activation_is_its_own_method():
    model = Looped()
    y = model(X)
    assert [name for name, _ in model.named_variables()] == ["gain", "dense/kernel", "dense/bias"]
    np.testing.assert_array_equal(nn.predict(model, X), y)
    assert "dense" in str(nn.summary(model, X)).lower()
    for other in (copy.deepcopy(model), model.clone(), copy.deepcopy(model.dense)):
        np.testing.assert_array_equal(other(X), y)
    other = model.clone()
    other.gain.assign(4.0)
    np.testing.assert_array_equal(other(X), y * 2)
    np.testing.assert_array_equal(model(X), y)
    with td.GradientTape() as tape:
        loss = model(X).sum()
    nn.SGD(0.1).minimize(tape, loss, model)
    assert float(model.gain) != 2.0


class Named(nn.Dense):
    def __init__(self, units, title):
        super().__init__(units)
        self.title = title


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_of_layers_keep_their_class_and_attributes(copied):
    layer = Named(3, ["a"])
    y = layer(X)
    other = copied(layer)
    assert type(other) is Named and other.title == ["a"] and (other.title is layer.title) == (copied is copy.copy)
    assert other.kernel.same_as(layer.kernel) == (copied is copy.copy)
    np.testing.assert_array_equal(other(X), y)


def test_a_variable_takes_no_other_attributes():
    variable = td.Variable(1.0)
    with pytest.raises(AttributeError, match="'Variable' object has no attribute 'vlaue'"):
        variable.vlaue = 2


class Labelled(np.ndarray):
    """An array with attributes, which `base` is no part of."""

    base = None


def labelled(owner):
    array = np.arange(6.0).reshape(2, 3).view(Labelled)
    array.owner, owner.array = owner, array
    return array


@pytest.mark.parametrize("share", [td.asarray, td.constant, lambda a: td.asarray(a[1:]), lambda a: td.asarray(a).T, lambda a: td.asarray(np.asarray(a))])
def test_a_tensor_over_an_array_with_attributes_holds_only_its_memory(share):
    owner = Owner()
    gone = weakref.ref(owner)
    array = labelled(owner)
    owner.tensors = [share(array), share(array)]
    kept, values = owner.tensors[0], np.array(share(array))
    del owner, array
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(kept, values)


def test_a_tensor_over_a_file_mapped_by_numpy_holds_the_map(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0))
    array = np.load(tmp_path / "a.npy", mmap_mode="r")
    array.tensor = kept = td.asarray(array)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(kept, np.arange(6.0))
