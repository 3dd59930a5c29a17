"""Texts of errors and warnings in Python's words."""
import inspect

import numpy as np
import pytest

import tidemark as td
from tidemark import nn

TEXTS = {
    "cast it first: td::cast(x, td::i32)": "cast it first: td.cast(x, td.i32)",
    "losses::huber: delta must be positive": "losses.huber: delta must be positive",
    "make the tape {.persistent = true}": "make the tape persistent=True",
    "give it: td::TensorArray(td::f32, {.size = 10, .element_shape = {2}})": "give it: td.TensorArray(td.f32, size=10, element_shape=(2,))",
    "open one: td::function(f, {.input_signature = {td::spec({td::open, 784})}})": "open one: td.function(f, input_signature=[td.spec((None, 784))])",
    "fn.plan(td::spec({64, 784}))": "fn.plan(td.spec((64, 784)))",
    "before it is used: td::nn::build(model, td::spec({...}))": "before it is used: td.nn.build(model, td.spec((...)))",
    '{.partial = true} restores less; {.rename = {{"old", "new"}}} maps names': 'partial=True restores less; rename={"old": "new"} maps names',
    "give it: .shuffle({.buffer = 1000}), or": "give it: shuffle(buffer=1000), or",
    "shorten the longer one: x[{td::Slice{.end = n}}]": "shorten the longer one: x[:n]",
    ".save = td::Save::slots(3) fits": "save=td.Save.slots(3) fits",
    "such as {.cache_limit = 64_MiB}; cache_info()": "such as cache_limit=64 * td.MiB; cache_info()",
    ".budget = 1326720_B fits": "budget=1326720 fits",
    "pass {.unconnected = td::Unconnected::zero}": 'pass unconnected="zero"',
    "a = std::move(a).push_back(x)": "a = a.push_back(x)",
    "free tensors you no longer need (x = {}), or": "free tensors you no longer need (del x), or",
    # What is no C++ stays.
    "a .npy file of {'a': {1}, 'b': [2, 3]} (true), f32[2, 3]": "a .npy file of {'a': {1}, 'b': [2, 3]} (true), f32[2, 3]",
    "unfinished td::f({1, 2": "unfinished td.f({1, 2",
    "x_ 7_ _ {": "x_ 7_ _ {",
    "": "",
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_written_as_python(text):
    assert td._core._in_python(text) == TEXTS[text]


def remedy_of(call):
    with pytest.raises(td.UserError) as caught:
        call()
    return str(caught.value).splitlines()[-1].strip()


def gradient_twice():
    x = td.ones(3)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.sum(x * x)
    tape.gradient(y, x)
    tape.gradient(y, x)


def unconnected():
    with td.GradientTape() as tape:
        y = td.ones(3)
    tape.gradient(y, td.ones(2), unconnected="error")


REMEDIES = {
    gradient_twice: "ask for all sources in one call, or make the tape persistent=True",
    unconnected: 'watch it before it is used, or pass unconnected="zero"',
    lambda: td.matmul(td.ones((2, 3)), td.ones((2, 3))): "did you mean to transpose the second operand? transpose_b=True",
    lambda: td.ones(3)[0, 0]: "give at most one for each axis; None adds one",
    lambda: td.ones((3, 3))[..., ...]: "write `:` for the other axes",
    lambda: list(td.data.from_generator(lambda: iter([1, 2])).shuffle()): "give the size of the buffer: shuffle(buffer=1000), or shuffle before that stage",
    lambda: td.function(lambda x: x).largest(td.ones(3), budget=100): "open one: td.function(f, input_signature=[td.spec((None, 784))])",
    lambda: td.while_loop(lambda x: x.sum() < 9, lambda x: td.concat([x, x]), td.ones(2)): "give it the same shape, or declare which sizes may change: shape_invariants=[(None,)]",
    lambda: nn.losses.mse(np.zeros((2, 3)), np.zeros((3, 2))): "reshape one of them: td.reshape(y_true, y_pred.shape)",
}


def undocumented(module, path):
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or name == "autograph":
            continue
        if inspect.ismodule(value) and value.__name__.startswith("tidemark"):
            yield from undocumented(value, f"{path}.{name}")
        elif callable(value) and not value.__doc__:
            yield f"{path}.{name}"


def test_every_name_has_a_docstring():
    assert list(undocumented(td, "td")) == []


@pytest.mark.parametrize("call", REMEDIES, ids=lambda call: REMEDIES[call])
def test_remedies_can_be_typed(call):
    assert remedy_of(call) == REMEDIES[call]
