"""td.nn: layers against NumPy, models as Python classes, optimizers and fit."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import tidemark as td
from tidemark import nn


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def value(x):
    return np.asarray(x.value() if isinstance(x, td.Variable) else x)


def close(x, expected, tolerance=2e-5):
    np.testing.assert_allclose(value(x), expected, rtol=tolerance, atol=tolerance)


def error_of(call, kind=td.UserError):
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.file == __file__, caught.value
    lines = str(caught.value).split("\n")
    return "\n".join(line for line in lines if not line.startswith("  at "))


# ---- layers


def test_dense():
    x, layer = array(5, 3), nn.Dense(4, activation=td.relu, name="head")
    y = layer(x)
    close(y, np.maximum(x @ value(layer.kernel) + value(layer.bias), 0))
    assert (layer.units, layer.name, layer.kernel.shape, layer.bias.shape) == (4, "head", (3, 4), (4,))
    assert nn.Dense(4, use_bias=False).bias is None
    assert layer.kernel is layer.kernel and layer.kernel.trainable


@pytest.mark.parametrize(
    "activation, formula",
    [
        ("tanh", np.tanh),
        (td.sigmoid, lambda h: 1 / (1 + np.exp(-h))),
        (lambda h: h * 3, lambda h: h * 3),
        (nn.Activation("relu"), lambda h: np.maximum(h, 0)),
        (None, lambda h: h),
    ],
)
def test_activations_are_names_ops_or_functions(activation, formula):
    x, layer = array(5, 3), nn.Dense(4, activation=activation)
    close(layer(x), formula(x @ value(layer.kernel) + value(layer.bias)))


def test_embedding_and_flatten():
    layer = nn.Embedding(10, 3)
    ids = np.array([[1, 2], [9, 1]], np.int32)
    close(layer(ids), value(layer.table)[ids])
    assert nn.Flatten()(array(2, 3, 4)).shape == (2, 12)


def test_convolution_and_pools():
    x, layer = array(2, 6, 7, 3), nn.Conv2D(4, (3, 2), strides=2, padding="valid")
    y = layer(x)
    k = value(layer.kernel)
    assert k.shape == (3, 2, 3, 4)
    expected = np.zeros((2, 2, 3, 4), np.float32)
    for i in range(2):
        for j in range(3):
            part = x[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 2, :]
            expected[:, i, j] = np.einsum("nhwc,hwcf->nf", part, k)
    close(y, expected)
    assert nn.Conv2D(4, 3, padding="same")(x).shape == (2, 6, 7, 4)
    blocks = x[:, :6, :6].reshape(2, 3, 2, 3, 2, 3)
    close(nn.MaxPool2D()(x[:, :6, :6]), blocks.max((2, 4)))
    close(nn.AveragePool2D(2, strides=2)(x[:, :6, :6]), blocks.mean((2, 4)))
    close(nn.GlobalAveragePool2D()(x), x.mean((1, 2)))
    remedy = '\n  give "valid", "same" or a pair (before, after) for each axis'
    assert error_of(lambda: nn.Conv2D(4, 3, padding=3)) == "nn.Conv2D: int is no padding" + remedy
    assert error_of(lambda: td.conv1d(np.ones((1, 4, 2)), np.ones((2, 2, 3)), padding=3)) == "padding: int is no padding" + remedy
    assert error_of(lambda: td.conv3d(np.ones((1, 4, 4, 4, 2)), np.ones((2, 2, 2, 2, 3)), strides=(1, 2))) == (
        "strides: 2 numbers, and 3 are wanted\n  write strides=(1, 1, 1)")
    assert error_of(lambda: nn.UpSampling2D(2, method="area")) == (
        'nn.UpSampling2D: there is no method "area"\n  give "nearest", "bilinear" or "bicubic"')
    assert error_of(lambda: nn.Conv2D(4, 3, padding="full")) == (
        'nn.Conv2D: padding is "full"\n  give "valid" or "same"'
    )


def test_norms():
    x = array(8, 5) * 3 + 1
    centred = x - x.mean(-1, keepdims=True)
    close(nn.LayerNorm()(x), centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5))
    close(nn.RMSNorm()(x), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5))
    layer = nn.BatchNorm(momentum=0.9)
    close(layer(x), x / np.sqrt(1 + 1e-3))
    with nn.Training():
        close(layer(x), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3))
    close(layer.running_mean, 0.1 * x.mean(0))
    assert not layer.running_mean.trainable


def test_dropout_follows_the_mode():
    x, layer = td.ones((1000,)), nn.Dropout(0.25)
    assert not nn.is_training()
    close(layer(x), np.ones(1000))
    with nn.Training():
        assert nn.is_training()
        kept = value(layer(x))
        with nn.Training(False):
            assert not nn.is_training()
    assert not nn.is_training()
    assert 600 < np.count_nonzero(kept) < 900 and np.allclose(kept[kept > 0], 4 / 3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_attention():
    x, layer = array(2, 5, 6), nn.MultiHeadAttention(2, 3, causal=True)
    y = layer(x)

    def heads(p):
        return (x @ value(p.kernel) + value(p.bias)).reshape(2, 5, 2, 3).transpose(0, 2, 1, 3)

    q, k, v = heads(layer.query), heads(layer.key), heads(layer.value)
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(3) + np.where(np.tril(np.ones((5, 5))) > 0, 0, -1e30)
    mixed = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 6)
    close(y, mixed @ value(layer.output.kernel) + value(layer.output.bias))
    cross = nn.MultiHeadAttention(2, 3)
    seen = cross(x, array(2, 7, 6, seed=1), np.ones((2, 1, 1, 7), bool))
    assert seen.shape == (2, 5, 6)


def test_lstm():
    x, layer = array(2, 4, 3), nn.LSTM(5, return_sequences=True)
    y = layer(x)
    w, u, b = value(layer.kernel), value(layer.recurrent), value(layer.bias)
    sigmoid = lambda a: 1 / (1 + np.exp(-a))  # noqa: E731
    h = c = np.zeros((2, 5), np.float32)
    for t in range(4):
        i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        close(y[:, t], h)
    assert nn.LSTM(5)(x).shape == (2, 5)


def test_a_layer_that_was_built_keeps_its_size():
    layer = nn.Dense(2, name="head")
    layer(td.ones((1, 3)))
    assert error_of(lambda: layer(td.ones((1, 4)))).startswith('nn.Dense "head": built for 3 features, got 4')


def test_initializers():
    for name in ("zeros", "ones", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "orthogonal"):
        assert getattr(nn.initializers, name)((4, 3), td.f32).shape == (4, 3)
    q = value(nn.initializers.orthogonal((6, 4), td.f64))
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=1e-12)
    layer = nn.Dense(2, kernel_initializer=nn.initializers.constant(0.5), bias_initializer=lambda s, d: td.full(s, 2, d))
    assert layer(np.ones((1, 4), np.float32)).tolist() == [[4.0, 4.0]]


# ---- models


class Block(nn.Module):
    def __init__(self, width):
        self.norm = nn.LayerNorm()
        self.up = nn.Dense(2 * width, activation="gelu")
        self.down = nn.Dense(width)

    def __call__(self, x):
        return x + self.down(self.up(self.norm(x)))


class Model(nn.Module):
    def __init__(self, width=4, blocks=2):
        self.width = width
        self.blocks = [Block(width) for _ in range(blocks)]
        self.heads = {"a": nn.Dense(1), "b": nn.Dense(3)}
        self.scale = td.Variable(td.ones(()), trainable=False)

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return (self.heads["a"](x) + self.heads["b"](x)) * self.scale


def names(model):
    return [name for name, _ in nn.named_variables(model)]


def test_variables_are_found_in_attributes_lists_and_dicts():
    model = Model(blocks=1)
    assert names(model) == [
        "blocks/0/norm/scale", "blocks/0/norm/bias", "blocks/0/up/kernel", "blocks/0/up/bias",
        "blocks/0/down/kernel", "blocks/0/down/bias", "heads/a/kernel", "heads/a/bias", "heads/b/kernel",
        "heads/b/bias", "scale",
    ]  # fmt: skip
    assert len(model.variables()) == 11 and len(model.trainable_variables()) == 10
    assert all(isinstance(v, td.Variable) for v in model.variables())


def test_any_object_is_a_model():
    class Plain:
        __slots__ = ("w", "self")

        def __init__(self):
            self.w, self.self = td.Variable(td.ones(2)), self

    dense = nn.Dense(2)

    def closure(x):
        return dense(x)

    assert names(Plain()) == ["w"]
    assert names(closure) == ["dense/kernel", "dense/bias"]
    assert names([dense, (dense, nn.RMSNorm())]) == ["0/kernel", "0/bias", "1/1/scale"]
    assert names(nn.Lambda(lambda x, d: d(x), dense)) == ["0/kernel", "0/bias"]
    assert names(nn.Sequential(closure, td.relu, nn.Dense(3))) == [
        "0/dense/kernel", "0/dense/bias", "2/kernel", "2/bias",
    ]  # fmt: skip
    assert names(nn.Sequential(td.recompute(dense))) == ["0/kernel", "0/bias"]
    assert names(3) == names("text") == names(np.ones(3)) == names(None) == []


def test_tied_weights_are_listed_once_and_stay_tied_in_copies():
    class Tied(nn.Module):
        def __init__(self):
            self.embed, self.out = nn.Embedding(7, 3), nn.Dense(7, use_bias=False)
            self.out.kernel = self.embed.table

    model = Tied()
    assert names(model) == ["embed/table"]
    copied = model.clone()
    assert copied.out.kernel is copied.embed.table and copied.embed.table is not model.embed.table


def test_copies_share_and_clones_do_not():
    model = Model()
    x = array(3, 4)
    y = value(model(x))
    shared, cloned, deep = copy.copy(model), model.clone(), copy.deepcopy(model)
    model.blocks[0].down.kernel.assign(td.zeros((8, 4)))
    assert not np.array_equal(value(model(x)), y)
    assert np.array_equal(value(shared(x)), value(model(x)))
    assert np.array_equal(value(cloned(x)), y) and np.array_equal(value(deep(x)), y)
    assert names(cloned) == names(model)


def test_a_closure_over_layers_cannot_be_cloned():
    dense = nn.Dense(2)
    text = error_of(lambda: nn.clone(nn.Sequential(lambda x: dense(x))))
    assert text == (
        'clone: the copy would run the original\'s layer: a function captures the Variable "0/dense/kernel"\n'
        "  pass the layers as arguments: nn.Lambda(lambda x, dense: ..., dense)"
    )


def test_sequential_takes_any_callables():
    @td.custom_gradient
    def twice(x):
        return 2 * x, lambda g: 5 * g

    model = nn.Sequential(nn.Dense(3, use_bias=False), td.tanh, twice, lambda x: x + 1)
    x = td.ones((2, 4))
    close(model(x), 2 * np.tanh(np.ones((2, 4)) @ value(model[0].kernel)) + 1)
    with td.GradientTape() as tape:
        tape.watch(x)
        y = td.sum(model[2](x))
    assert np.all(value(tape.gradient(y, x)) == 5)
    assert len(model) == 4 and model[-2] is twice and list(model)[1] is td.tanh
    model.add(nn.Dense(2))
    assert model(x).shape == (2, 2)
    assert error_of(lambda: model[9], IndexError) == (
        "nn.Sequential: there is no layer 9 of 5\n  the first is 0, the last is -1"
    )
    assert error_of(lambda: nn.Sequential(nn.Dense(1), 3), TypeError) == (
        "nn.Sequential: layer 1 is a int, which cannot be called\n  give layers, ops or functions of one tensor"
    )


def test_what_is_assigned_to_a_layer_of_a_sequential_counts():
    model = nn.Sequential(nn.Dense(2, use_bias=False))
    model(td.ones((1, 3)))
    model[0].kernel = td.Variable(td.full((3, 2), 2.0))
    assert model(td.ones((1, 3))).tolist() == [[6.0, 6.0]]


def test_build_and_summary_allocate_nothing():
    model = Model()
    before = td.memory.current()
    table = model.summary(td.spec((8, 4)))
    assert td.memory.current() == before
    assert model.blocks[0].up.kernel.shape == (4, 8)
    assert table.total.parameters == sum(int(np.prod(v.shape)) for v in model.variables())
    assert table.trainable == table.total.parameters - 1
    assert [row.name for row in table.rows][:3] == ["blocks/0/norm", "blocks/0/up", "blocks/0/down"]
    assert table.rows[1].output == "f32[8, 8]" and table.rows[1].kind == "nn::Dense"
    assert str(table).startswith("layer ") and "a call needs" in str(table)
    assert table.forward_peak < table.training_peak


def test_a_model_shows_its_summary_in_a_notebook():
    model = Model()
    assert "blocks/0/up/kernel" in model._repr_html_()
    model.build(td.spec((8, 4)))
    assert "a call needs" in model._repr_html_() and model._repr_html_().startswith("<pre>")
    assert "<" not in nn.Dense(2)._repr_html_()[5:-6]


def test_predict_is_compiled_and_holds_nothing_of_the_model():
    model = Model()
    x = array(3, 4)
    y = value(model(x))
    with nn.Training():
        assert np.array_equal(value(nn.predict(model, x)), y)
    model.scale.assign(2.0)
    assert np.array_equal(value(nn.predict(model, x)), 2 * y), "it follows the Variables"
    model.blocks.pop()
    assert np.array_equal(value(nn.predict(model, x)), value(model(x))), "and the attributes"
    before = td.memory.current()
    del model
    gc.collect()
    assert td.memory.current() < before


def test_predict_within_a_budget():
    model = nn.Sequential(nn.Dense(64), td.relu, nn.Dense(1))
    x = array(256, 8)
    y = value(nn.predict(model, x))
    assert np.array_equal(value(nn.predict(model, x, budget=128 * td.KiB)), y)
    with pytest.raises(td.OverBudget) as caught:
        nn.predict(model, x, budget=512)
    assert caught.value.floor > 512 and caught.value.file == __file__
    dense = nn.Dense(1)
    text = error_of(lambda: nn.predict(lambda t: dense(t), x, budget=512))
    assert text.startswith("predict: the model runs eagerly, without a plan, because it holds tensors or a closure")


def test_an_exception_in_a_layer_passes_as_it_is():
    model = nn.Sequential(nn.Dense(2), lambda x: {}["missing"])
    with pytest.raises(KeyError):
        model(td.ones((1, 2)))
    with pytest.raises(KeyError):
        nn.predict(model, td.ones((1, 2)))


def test_models_go_when_their_last_name_goes():
    gc.disable()
    try:
        before = td.memory.current()
        model = Model()
        model(array(3, 4))
        seen = weakref.ref(model), weakref.ref(model.blocks[0])
        del model
        assert seen[0]() is None and seen[1]() is None
        assert td.memory.current() == before
    finally:
        gc.enable()


def test_the_collector_frees_a_sequential_that_refers_to_itself():
    model = nn.Sequential(nn.Dense(300))
    model.add(lambda x: model(x))
    model[0](td.ones((1, 300)))
    before, seen = td.memory.current(), weakref.ref(model)
    del model
    gc.collect()
    assert seen() is None and td.memory.current() <= before - 300 * 300 * 4


# ---- losses and metrics


def test_losses():
    y, p = array(6, 3), array(6, 3, seed=1)
    close(nn.losses.mse(y, p), ((y - p) ** 2).mean())
    close(nn.losses.mae(y, p), np.abs(y - p).mean())
    d = np.abs(y - p)
    close(nn.losses.huber(y, p, delta=0.5), np.where(d <= 0.5, d * d / 2, 0.5 * (d - 0.25)).mean())
    classes = np.array([0, 1, 2, 0, 1, 2], np.int32)
    log = np.log(softmax(p))
    close(nn.losses.sparse_categorical_crossentropy(classes, p), -log[np.arange(6), classes].mean())
    hot = np.eye(3, dtype=np.float32)[classes]
    smooth = hot * 0.9 + 0.1 / 3
    close(nn.losses.categorical_crossentropy(hot, p, label_smoothing=0.1), -(smooth * log).sum(-1).mean())
    close(nn.losses.categorical_crossentropy(hot, softmax(p), from_logits=False), -(hot * log).sum(-1).mean())
    s = 1 / (1 + np.exp(-p))
    close(nn.losses.binary_crossentropy(hot, p), -(hot * np.log(s) + (1 - hot) * np.log(1 - s)).mean())


def test_recurrent_layers_continue_from_a_state_and_skip_masked_steps():
    x = np.random.default_rng(1).normal(size=(2, 5, 3)).astype(np.float32)
    for layer in (nn.LSTM(4, return_sequences=True), nn.GRU(4, return_sequences=True), nn.SimpleRNN(4, return_sequences=True)):
        whole = np.asarray(layer(x))
        first, state = layer.run(x[:, :2])
        rest, last = layer.run(x[:, 2:], initial=state)
        close(np.concatenate([first, rest], 1), whole)
        close(last[0] if isinstance(last, tuple) else last, whole[:, -1])
        masked, _ = layer.run(x, mask=np.array([[True] * 5, [True] * 2 + [False] * 3]))
        close(masked[1, 4], whole[1, 1])
    both = nn.Bidirectional(nn.GRU(4), nn.GRU(4, reverse=True))
    assert both(x).shape == (2, 8)
    assert [name for name, _ in nn.named_variables(both)][4] == "backward/kernel"


def test_both_directions_continue_from_states_and_skip_masked_steps():
    x = np.random.default_rng(1).normal(size=(2, 5, 3)).astype(np.float32)
    mask = np.array([[True] * 5, [True] * 2 + [False] * 3])

    class Own:  # A layer of Python, by its method `run`.
        def __init__(self, layer):
            self.layer = layer

        def __call__(self, x):
            return self.layer(x)

        def run(self, x, initial=None, mask=None):
            return self.layer.run(x, initial=initial, mask=mask)
    for wrapped in (lambda layer: layer, Own):
        ahead, back = wrapped(nn.LSTM(4, return_sequences=True)), wrapped(nn.GRU(4, return_sequences=True, reverse=True))
        both = nn.Bidirectional(ahead, back)
        close(both.run(x)[0], both(x))
        y, (first, second) = both.run(x, mask=mask)
        close(y, np.concatenate([ahead.run(x, mask=mask)[0], back.run(x, mask=mask)[0]], -1))
        assert isinstance(first, tuple) and first[0].shape == second.shape == (2, 4)
        again, (_, last) = both.run(x, initial=(first, second), mask=mask)
        close(again, np.concatenate([ahead.run(x, initial=first, mask=mask)[0], back.run(x, initial=second, mask=mask)[0]], -1))
        close(td.function(lambda x, m: both.run(x, mask=m)[0])(x, mask), y)
    with pytest.raises(td.UserError, match="nn.Bidirectional: the initial state is a list"):
        both.run(x, initial=[first, second])
    with pytest.raises(td.UserError, match="a layer that is not recurrent has no state"):
        nn.Bidirectional(nn.Dense(3), nn.Dense(3)).run(x)
    with pytest.raises(td.UserError, match="nn.LSTM: the initial state is a Tensor"):
        nn.Bidirectional(nn.LSTM(4), nn.LSTM(4)).run(x, initial=(second, second))


def test_group_norms():
    x = np.random.default_rng(2).normal(size=(2, 5, 6)).astype(np.float32)
    apart = x.reshape(2, 5, 3, 2)
    wanted = (apart - apart.mean((1, 3), keepdims=True)) / np.sqrt(apart.var((1, 3), keepdims=True) + 1e-5)
    close(nn.GroupNorm(3)(x), wanted.reshape(x.shape), 1e-5)
    close(nn.InstanceNorm()(x), (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), 1e-5)


def test_attention_with_a_cache():
    x = np.random.default_rng(3).normal(size=(2, 6, 8)).astype(np.float32)
    attention = nn.MultiHeadAttention(4, 4, causal=True, key_heads=2, rotary=100.0, alibi=True)
    whole, cache = np.asarray(attention(x)), nn.KVCache(8)
    step = td.function(lambda token: attention(token, cache=cache))
    parts = [np.asarray(attention(x[:, :3], cache=cache))] + [np.asarray(step(x[:, i:i + 1])) for i in range(3, 6)]
    close(np.concatenate(parts, 1), whole, 1e-5)
    assert int(cache.length) == 6 and step.cache_info().traces == 1
    cache.reset()
    assert int(cache.length) == 0


def test_draws_of_other_distributions():
    key = td.random.Key(1)
    assert abs(float(td.mean(td.random.exponential([20000], rate=2.0, key=key))) - 0.5) < 0.02
    assert abs(float(td.mean(td.random.gamma(3.0, [20000], key=key))) - 3) < 0.06
    assert abs(float(td.mean(td.random.beta(2.0, 2.0, [20000], key=key))) - 0.5) < 0.02
    assert abs(float(td.mean(td.cast(td.random.poisson(4.0, [20000], key=key), td.f32))) - 4) < 0.08
    assert float(td.max(td.abs(td.random.truncated_normal([20000], key=key)))) <= 2
    assert td.random.gumbel([3], key=key).shape == td.random.laplace([3], key=key).shape == (3,)
    assert td.random.categorical(np.zeros((2, 5), np.float32), count=7, key=key).shape == (2, 7)
    assert int(td.sum(td.random.multinomial(9, np.ones(4, np.float32), key=key))) == 9
    assert np.array_equal(np.sort(np.asarray(td.random.permutation(td.arange(6), key=key))), np.arange(6))
    assert np.array_equal(np.sort(np.asarray(td.random.permutation(np.arange(6), key=key))), np.arange(6))
    of_arrays = np.asarray(td.random.integers([50, 2], np.array([0, 10]), np.array([3, 12]), key=key))
    assert of_arrays[:, 0].max() < 3 and of_arrays[:, 1].min() >= 10
    assert np.asarray(td.random.bernoulli([9, 2], np.array([0.0, 1.0]), key=key)).sum(0).tolist() == [0, 9]
    bounds = np.asarray(td.random.integers([50, 2], td.constant([0, 10]), td.constant([3, 12]), key=key))
    assert bounds[:, 0].max() < 3 and bounds[:, 1].min() >= 10


def test_fit_with_running_metrics_callbacks_and_an_initial_epoch():
    x, y = np.array([[1.0], [2], [-1], [3]], np.float32), np.array([[1.0], [0], [1], [1]], np.float32)
    seen = []
    history = nn.fit(
        nn.Dense(1, kernel_initializer=nn.initializers.ones), (x, y), loss=nn.losses.mse, optimizer=nn.SGD(0.0), epochs=4, initial_epoch=2,
        metrics={"f1": nn.metrics.F1()}, progress="none", batch_size=2, shuffle=False, on_batch=lambda batch: seen.append((batch.epoch, batch.number)),
    )
    close(history.epochs[0].metric("f1"), 2 / 3)
    assert seen == [(3, 1), (3, 2), (4, 1), (4, 2)] and len(history.epochs) == 2


def test_callbacks_without_methods_and_other_results_are_refused():
    x = np.ones((4, 1), np.float32)
    for given in ("a name", object()):
        with pytest.raises(td.UserTypeError, match="without any of its methods"):
            nn.fit(nn.Dense(1), (x, x), loss=nn.losses.mse, callbacks=[given], progress="none")
    decays = nn.SGD(0.1, weight_decay=0.1, decays=lambda v: None)
    with pytest.raises(td.UserTypeError, match="the result of decays: True or False is wanted"):
        decays.apply_gradients([x], [td.Variable(x)])
    found = nn.evaluate(nn.Dense(1, kernel_initializer=nn.initializers.ones), (x, x), loss=nn.losses.mse, metrics={"mae": nn.losses.mae})
    assert str(found) == repr(found) == "loss 0, mae 0, 4 examples"


def test_averages_of_weights_and_plateaus():
    model = nn.Dense(1)
    model(np.ones((1, 2), np.float32))
    average = nn.EMA(model, decay=0.5)
    before = np.asarray(model.kernel.value()).copy()
    model.kernel.assign_add(4.0)
    average.update()
    average.swap()
    close(model.kernel.value(), before + 2)
    average.swap()
    close(model.kernel.value(), before + 4)
    optimizer = nn.SGD(1.0)
    plateau = nn.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    assert [plateau.update(loss) for loss in (3.0, 2.0, 2.0)] == [False, False, True]
    assert float(optimizer.learning_rate) == 0.5


def test_weights_of_another_program(tmp_path):
    path, w = tmp_path / "other.safetensors", np.arange(6, dtype=np.float32).reshape(2, 3)
    td.io.save_safetensors(path, {"fc.weight": w, "fc.bias": np.ones(2, np.float32), "seen": np.ones(1, np.float32)})
    one, two = nn.Dense(2), nn.Dense(2)
    report = td.io.load(path, one, map=[("fc.weight", "kernel", {"transpose": True}), ("fc.*", "*"), "seen"])
    assert sorted(report.loaded) == ["bias", "kernel"]
    td.io.load(path, two, map=lambda name, t: {"fc.weight": {"kernel": td.transpose(t)}, "fc.bias": {"bias": t}}.get(name))
    close(one.kernel.value(), w.T)
    close(two.kernel.value(), w.T)
    with pytest.raises(td.UserError, match="the model has no place for: fc.bias, fc.weight, seen"):
        td.io.load(path, one)


def test_maps_of_weights_say_what_is_wrong(tmp_path):
    path = tmp_path / "other.safetensors"
    td.io.save_safetensors(path, {"kernel": np.ones((4, 2), np.float32), "bias": np.ones(2, np.float32)})
    for rows, text in (
        ([()], "io.load: () is no row of `map`"),
        ([5], "io.load: 5 is no row of `map`"),
        ([("kernel", [5])], "a name: text is wanted, and this is 5"),
        ([("kernel", "kernel", 5)], "io.load: a row of `map` ends with a int"),
        ([("kernel", "kernel", {"transposed": True})], 'io.load: a row of `map` has no option "transposed"'),
        ({"kernel": "kernel"}, "io.load: `map` is a dict"),
        (lambda name, t: 5, 'io.load: `map` returned a int for "bias"'),
        (lambda name, t: {5: t}, "a name: text is wanted, and this is 5"),
    ):
        with pytest.raises(td.UserTypeError) as caught:
            td.io.load(path, nn.Dense(2), map=rows)
        assert str(caught.value).startswith(text)
    with pytest.raises(td.UserTypeError, match="the name of a tensor: text is wanted"):
        td.io.save_safetensors(path, {5: np.ones(1, np.float32)})


def test_losses_of_other_kinds_and_weights():
    y, p, n = (np.random.default_rng(i).normal(size=(6, 3)) for i in range(3))
    side = np.sign(y)
    close(nn.losses.hinge(side, p), np.maximum(0, 1 - side * p).mean())
    close(nn.losses.cosine(y, p), (1 - (y * p).sum(-1) / np.linalg.norm(y, axis=-1) / np.linalg.norm(p, axis=-1)).mean())
    close(nn.losses.poisson(y * y, p), (np.exp(p) - y * y * p).mean())
    q = softmax(y)
    close(nn.losses.kl_divergence(q, p), (q * np.log(q / softmax(p))).sum(-1).mean())
    apart = np.linalg.norm(y - p, axis=-1) - np.linalg.norm(y - n, axis=-1)
    close(nn.losses.triplet(y, p, n, margin=0.5), np.maximum(0, apart + 0.5).mean())
    bits, s = (side + 1) / 2, 1 / (1 + np.exp(-p))
    right = np.where(bits == 1, s, 1 - s)
    close(nn.losses.focal(bits, p, gamma=2), (-((1 - right) ** 2) * np.log(right)).mean())
    weights = np.arange(6.0)
    close(nn.losses.mse(y, p, weights=weights), np.average(((y - p) ** 2).mean(-1), weights=weights))
    classes, by_class = np.array([0, 1, 2, 0, 1, 2]), np.array([1.0, 2.0, 5.0])
    each = -np.log(softmax(p))[np.arange(6), classes]
    close(nn.losses.sparse_categorical_crossentropy(classes, p, class_weights=by_class), np.average(each, weights=by_class[classes]))
    close(nn.losses.ctc(np.array([[1, 1]]), np.zeros((1, 3, 3))), 3 * np.log(3))
    assert float(nn.losses.ctc(np.array([[1, 1]]), np.zeros((1, 2, 3)), zero_infinity=True)) == 0


def test_running_metrics():
    y, p = np.array([1.0, 0, 1, 0, 1]), np.array([2.0, 1, -1, -3, 0.5])
    for metric, wanted in ((nn.metrics.Precision(), 2 / 3), (nn.metrics.Recall(), 2 / 3), (nn.metrics.F1(), 2 / 3), (nn.metrics.AUC(), 4 / 6)):
        metric.update(y[:2], p[:2])
        td.function(metric.update)(y[2:], p[2:])
        close(metric.result(), wanted)
        metric.reset()
        assert float(metric.result()) == 0
    matrix = nn.metrics.ConfusionMatrix(2)
    matrix.update(y.astype(int), (p > 0).astype(int))
    assert np.array_equal(matrix.result(), [[1, 1], [1, 2]])
    close(matrix.precision(), [0.5, 2 / 3])
    perplexity = nn.metrics.Perplexity()
    perplexity.update(np.zeros(4, int), np.zeros((4, 9), np.float32))
    close(perplexity.result(), 9)


def test_weights_are_the_third_part_of_a_batch():
    x, y, w = (np.array(v, np.float32) for v in ([[1], [2], [3], [4], [5]], [[0]] * 5, [1, 0, 3, 2, 4]))
    model = nn.Dense(1, kernel_initializer=nn.initializers.ones)
    wanted = float((w * x[:, 0] ** 2).sum() / w.sum())
    own = lambda a, b, weights: td.sum(weights * td.square(a - b)[:, 0]) / td.sum(weights)
    for batches in ((x, y, w), [(x[:2], y[:2], w[:2]), (x[2:], y[2:], w[2:])], td.data.from_tensor_slices((x, y, w)).batch(3)):
        for loss in (nn.losses.mse, own):
            close(nn.evaluate(model, batches, loss=loss, batch_size=2).loss, wanted)
    history = nn.fit(model, (x, y, w), loss=nn.losses.mse, optimizer=nn.SGD(0.01), epochs=4, progress="none", validation=(x, y, w))
    assert history.epochs[-1].validation_loss < wanted / 4
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        nn.evaluate(model, (x, y, w), loss=lambda a, b: td.mean(a - b))


def test_a_confusion_matrix_counts_what_evaluate_sees():
    matrix, y = nn.metrics.ConfusionMatrix(2), np.array([0, 1, 1])
    batches = [(np.eye(2, dtype=np.float32)[[0, 1, 0]], y)] * 2
    found = nn.evaluate(nn.Lambda(lambda x: x), batches, metrics={"matrix": matrix, "right": nn.metrics.sparse_accuracy})
    assert np.array_equal(matrix.result(), [[2, 0], [2, 2]])
    assert list(found.metrics) == ["right"]


def test_metrics():
    p = np.array([[1, 2, 3], [3, 1, 2], [1, 3, 2], [3, 2, 1]], np.float32)
    classes = np.array([2, 0, 0, 1], np.int32)
    assert float(nn.metrics.accuracy(classes, p)) == 0.5
    assert float(nn.metrics.sparse_accuracy(classes, p)) == 0.5
    assert float(nn.metrics.accuracy(np.eye(3, dtype=np.float32)[classes], p)) == 0.5
    assert float(nn.metrics.top_k(classes, p, 2)) == 0.75
    assert float(nn.metrics.binary_accuracy(np.array([1.0, 0, 1], np.float32), np.array([2.0, -1, -3], np.float32))) == (
        pytest.approx(2 / 3)
    )
    mean = nn.metrics.Mean()
    mean.update(np.array([1.0, 3.0]))
    mean.update(5.0, 2)
    assert float(mean.result()) == 3.5
    mean.reset()
    assert float(mean.result()) == 0


# ---- optimizers


def descend(optimizer, steps=3, w=None):
    """Steps on 0.5 sum((w - 1)^2); gives the parameter after each."""
    w = td.Variable(td.asarray(np.array([3.0, -2.0], np.float32))) if w is None else w
    out = []
    for _ in range(steps):
        with td.GradientTape() as tape:
            loss = td.sum(td.square(w - 1)) * 0.5
        optimizer.minimize(tape, loss, [w])
        out.append(np.array(value(w)))
    return out


def test_sgd_and_adam_follow_their_formulas():
    w = np.array([3.0, -2.0])
    b = 0
    for got in descend(nn.SGD(0.1, momentum=0.9, weight_decay=0.01)):
        g = (w - 1) + 0.01 * w
        b = 0.9 * b + g
        w = w - 0.1 * b
        np.testing.assert_allclose(got, w, rtol=1e-6)
    for optimizer, decay in ((nn.Adam(0.1), 0.0), (nn.AdamW(0.1, weight_decay=0.2), 0.2)):
        w, m, v = np.array([3.0, -2.0]), 0, 0
        for t, got in enumerate(descend(optimizer), 1):
            g = w - 1
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            w = w - 0.1 * decay * w
            w = w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
            np.testing.assert_allclose(got, w, rtol=1e-5)


def test_the_state_of_an_optimizer_is_variables():
    optimizer, layer = nn.Adam(0.5), nn.Dense(2)
    layer(td.ones((1, 3)))
    optimizer.build(layer)
    assert set(names(optimizer)) == {"learning_rate", "iterations", "m/kernel", "m/bias", "v/kernel", "v/bias"}
    optimizer.learning_rate.assign(0.25)
    assert float(optimizer.learning_rate) == 0.25 and int(optimizer.iterations) == 0


def test_schedules_give_the_rate_of_each_update():
    s = nn.schedules
    cosine = s.cosine(1.0, steps=4, least=0.5)
    assert [float(cosine(i)) for i in (0, 2, 4, 9)] == [1.0, 0.75, 0.5, 0.5]
    assert float(s.piecewise([(0, 0.1), (3, 0.01)])(3)) == pytest.approx(0.01)
    assert float(s.exponential(1.0, factor=0.5, steps=2)(2)) == 0.5
    assert [float(s.warm_up(4, 0.8)(i)) for i in (0, 1, 3, 7)] == pytest.approx([0.2, 0.4, 0.8, 0.8])
    assert float(s.constant(0.3)(5)) == 0.3
    optimizer = nn.SGD(lambda step: 0.1 / (step + 1))
    descend(optimizer, 2)
    assert float(optimizer.learning_rate) == pytest.approx(0.05)
    assert error_of(lambda: nn.SGD("fast"), TypeError) == (
        "learning_rate: a str is no rate\n  give a number, one of td.nn.schedules, or a function of the step"
    )


def test_clips_accumulates_and_spares_from_decay():
    assert np.allclose(descend(nn.SGD(1.0, clip_norm=1.0), 1)[0], np.array([3, -2]) - np.array([2, -3]) / np.sqrt(13))
    twice = descend(nn.SGD(0.1, accumulate=2), 2)
    assert np.array_equal(twice[0], [3, -2]) and np.allclose(twice[1], [2.8, -1.7])
    spared = descend(nn.SGD(0.1, weight_decay=1.0, decays=lambda v: v.shape != (2,)), 1)[0]
    assert np.allclose(spared, [2.8, -1.7])


def test_an_optimizer_of_your_own():
    def apply(step, numbers):
        step.slots[0] = step.slots[0] * 0.5 + step.gradient
        step.parameter = step.parameter - td.cast(numbers[0], td.f32) * step.slots[0]

    optimizer = nn.Optimizer(nn.UpdateRule(apply, name="mine", slots=["b"]), learning_rate=0.1)
    w, b = np.array([3.0, -2.0]), 0
    for got in descend(optimizer):
        b = 0.5 * b + (w - 1)
        w = w - 0.1 * b
        np.testing.assert_allclose(got, w, rtol=1e-6)


def test_apply_gradients():
    w, u = td.Variable(td.ones(2)), td.Variable(td.ones(2))
    nn.SGD(0.5).apply_gradients([td.ones(2), None], [w, u])
    assert w.value().tolist() == [0.5, 0.5] and u.value().tolist() == [1, 1]


# ---- fit


def lesson(examples=64):
    x = array(examples, 4)
    return x, (x @ array(4, 2, seed=1)).astype(np.float32)


def test_fit_takes_datasets_iterables_and_arrays():
    x, y = lesson()
    forms = [
        td.data.from_tensor_slices((x, y)).batch(16),
        [(x[i : i + 16], y[i : i + 16]) for i in range(0, 64, 16)],
        (td.asarray(x), y),
    ]
    for batches in forms:
        history = nn.fit(
            nn.Dense(2), batches, loss=nn.losses.mse, optimizer=nn.Adam(0.05), epochs=40, progress="none",
            batch_size=16, shuffle=False,
        )  # fmt: skip
        assert [epoch.number for epoch in history.epochs] == list(range(1, 41))
        assert history.epochs[0].batches == 4 and history.epochs[0].examples == 64
        assert history.epochs[-1].loss < 0.01 * history.epochs[0].loss
        assert history.traces == 1 and history.planned > 0 and history.stopped == ""


def test_the_three_forms_train_the_same_bits():
    x, y = lesson()

    def trained(batches):
        td.random.seed(3)
        model = nn.Sequential(nn.Dense(8, activation="relu"), nn.Dense(2))
        nn.fit(model, batches, loss=nn.losses.mse, epochs=3, progress="none", batch_size=16, shuffle=False)
        return [value(v) for v in nn.variables(model)]

    first = trained((x, y))
    for batches in (td.data.from_tensor_slices((x, y)).batch(16), [(x[i : i + 16], y[i : i + 16]) for i in (0, 16, 32, 48)]):
        assert all(np.array_equal(a, b) for a, b in zip(first, trained(batches)))


def test_fit_equals_a_loop_of_ones_own():
    x, y = lesson()

    td.random.seed(5)
    one = nn.Dense(2)
    nn.fit(one, [(x, y)], loss=nn.losses.mse, optimizer=nn.SGD(0.1), epochs=4, progress="none")
    td.random.seed(5)
    two, optimizer = nn.Dense(2), nn.SGD(0.1)
    for _ in range(4):
        with td.GradientTape() as tape:
            loss = nn.losses.mse(y, two(x))
        optimizer.minimize(tape, loss, two)
    assert all(np.allclose(value(a), value(b), rtol=1e-6) for a, b in zip(nn.variables(one), nn.variables(two)))


def test_every_optimizer_goes_down_and_has_the_defaults_of_c():
    kinds = {nn.SGD: (), nn.Adam: "mv", nn.AdamW: "mv", nn.RMSprop: "v", nn.Adagrad: ["sum"], nn.Adadelta: ["v", "change"],
             nn.Adamax: ["m", "largest"], nn.NAdam: "mv", nn.Lion: "m", nn.LAMB: "mv"}
    for kind, slots in kinds.items():
        v, optimizer = td.Variable(np.ones(3, np.float32), name="p"), kind(0.1)
        for _ in range(3):
            optimizer.apply_gradients([v.value()], [v])
        assert float(td.max(v)) < 1, kind
        names = [name for name, _ in nn.named_variables(optimizer)]
        assert [name for name in names if "/" in name] == [slot + "/p" for slot in slots], kind
    assert abs(float(nn.NAdam().learning_rate) - 2e-3) < 1e-9
    with pytest.raises(td.UserError, match="Lion: .beta2 is 1"):
        nn.Lion(beta2=1.0)


def test_validation_metrics_callbacks_and_early_stopping(tmp_path):
    x, y = lesson()
    seen = []

    def on_epoch(epoch):
        seen.append((epoch.number, epoch.metric("error"), epoch.validation_loss))
        epoch.stop = epoch.number == 3

    history = nn.fit(
        nn.Dense(2), (x, y), loss=nn.losses.mse, metrics={"error": nn.losses.mae}, validation=(x, y), epochs=9,
        on_epoch=on_epoch, checkpoint=tmp_path / "last.safetensors", progress="none",
    )  # fmt: skip
    assert len(history.epochs) == 3 and history.stopped == "on_epoch asked for it"
    assert [number for number, _, _ in seen] == [1, 2, 3]
    assert history.epochs[0].metrics.keys() == {"error"} and history.epochs[0].validation_metrics.keys() == {"error"}
    assert "model/kernel" in td.io.load_safetensors(tmp_path / "last.safetensors")


def test_early_stopping_restores_the_best():
    rising = td.Variable(td.zeros(()), trainable=False)
    w = td.Variable(td.zeros(()))

    def model(x):
        rising.assign_add(1.0)
        return w * x

    def loss(y, p):
        return td.square(rising.value() - 2.0) + 0 * td.sum(p)

    history = nn.fit(
        _With(model, w, rising), [(td.ones(1), td.ones(1))], loss=loss, epochs=9,
        early_stopping=nn.EarlyStopping(patience=2), progress="none",
    )  # fmt: skip
    assert history.best == 2 and len(history.epochs) == 5
    assert history.stopped == "no improvement since epoch 2"
    assert float(rising) == 2.0


class _With:
    """A function together with its Variables."""

    def __init__(self, function, *variables):
        self.function, self.variables = function, variables

    def __call__(self, x):
        return self.function(x)


def test_fit_keeps_its_budget():
    x, y = array(128, 32), array(128, 2)
    model = nn.Sequential(*[nn.Dense(64, activation="tanh") for _ in range(6)], nn.Dense(2))
    usual = nn.fit(model, [(x, y)], loss=nn.losses.mse, progress="none").planned
    less = nn.fit(model, [(x, y)], loss=nn.losses.mse, progress="none", budget=usual * 7 // 10).planned
    assert less <= usual * 7 // 10
    with pytest.raises(td.OverBudget):
        nn.fit(model, [(x, y)], loss=nn.losses.mse, progress="none", budget=1000)


def test_training_is_flat():
    x, y = lesson()
    model, held = nn.Dense(2), []
    nn.fit(
        model, (x, y), loss=nn.losses.mse, epochs=6, progress="none", shuffle=False,
        on_epoch=lambda epoch: held.append(td.memory.current()),
    )  # fmt: skip
    assert len(set(held[1:])) == 1


def test_lines_of_progress_go_to_pythons_standard_output(capsys):
    x, y = lesson()
    nn.fit(nn.Dense(2), (x, y), loss=nn.losses.mse, epochs=2, progress="lines")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[0].startswith("epoch 1: loss ")


def test_errors_of_fit():
    x, y = lesson()
    assert error_of(lambda: nn.fit(nn.Dense(2), (x, y))) == (
        "fit: there is no loss\n  give one: loss=td.nn.losses.mse"
    )
    assert error_of(lambda: nn.fit(nn.Dense(2), [], loss=nn.losses.mse)) == (
        "fit: there is no batch in epoch 1\n  give a range that can be iterated once an epoch"
    )
    assert error_of(lambda: nn.fit(nn.Dense(2), [x], loss=nn.losses.mse), TypeError) == (
        "fit: a batch is a numpy.ndarray, not a pair (x, y)\n"
        "  give an iterable of pairs of tensors or arrays, a td.data.Dataset, or arrays (x, y)"
    )
    four = td.data.from_tensor_slices((x, y, y, y)).batch(2)
    assert error_of(lambda: nn.fit(nn.Dense(2), four, loss=nn.losses.mse), TypeError) == (
        "fit: a batch is a tuple, not a pair (x, y)\n"
        "  give an iterable of pairs of tensors or arrays, a td.data.Dataset, or arrays (x, y)"
    )
    assert error_of(lambda: nn.fit(nn.Dense(2), (x, y), loss=nn.losses.mse, progress="loud")) == (
        'fit: progress is "loud"\n  give "automatic", "bar", "lines" or "none"'
    )
    with pytest.raises(ZeroDivisionError):
        nn.fit(nn.Dense(2), (x, y), loss=lambda a, b: 1 / 0, progress="none")
    with pytest.raises(ZeroDivisionError):
        nn.fit(nn.Dense(2), (x, y), loss=nn.losses.mse, on_epoch=lambda epoch: 1 / 0, progress="none")


def test_layers_in_a_function_are_charged_to_python_lines():
    layer = nn.Dense(64, name="wide")

    @td.function
    def f(x):
        return td.sum(layer(x))

    plan = f.plan(td.spec((128, 32)))
    assert any("test_nn.py" in step.line for step in plan.timeline)
    assert any('nn::Dense "wide"' in step.layer for step in plan.timeline)


def test_a_training_loop_is_flat_to_the_byte_over_ten_thousand_steps():
    model, optimizer = nn.Dense(2), nn.Adam(1e-3)

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = nn.losses.mse(y, model(x))
        optimizer.minimize(tape, loss, model)
        return loss

    x, y = lesson(16)
    for _ in range(10):
        step(x, y)
    held = td.memory.current()
    for _ in range(10_000):
        step(x, y)
    assert td.memory.current() == held and step.cache_info().traces == 1


def test_layers_made_inside_a_function_are_made_once():
    made = []

    @td.function
    def f(x):
        if not made:
            made.append(nn.Dense(3))
        return made[0](x)

    y = value(f(td.ones((2, 4))))
    assert np.array_equal(value(f(td.ones((2, 4)))), y) and len(made) == 1


def test_name_scopes_name_layers():
    @td.function
    def f(x):
        with td.NameScope("encoder"):
            return td.tanh(td.matmul(x, x))

    assert any(step.layer == "encoder" for step in f.plan(td.spec((8, 8))).timeline)
    with td.NameScope("outer"), pytest.raises(td.UserError) as caught:
        td.reshape(td.ones((2,)), (3,))
    assert ", in outer" in str(caught.value)


def test_warnings_are_pythons():
    model, other = nn.Dense(1), td.Variable(td.ones((1,)))
    x = td.ones((2, 3))
    with pytest.warns(UserWarning) as caught:
        with td.GradientTape() as tape:
            loss = td.sum(model(x) * other)
        nn.SGD(0.1).minimize(tape, loss, model)
    assert any(each.filename == __file__ for each in caught)


def test_results_do_not_depend_on_the_number_of_threads():
    threads, model = td.num_threads(), nn.Dense(300)
    x = array(500, 200)
    y = value(model(x))
    try:
        td.set_num_threads(1)
        assert np.array_equal(value(model(x)), y)
    finally:
        td.set_num_threads(threads)


# ---- pickles


class Pickled(nn.Module):
    def __init__(self):
        self.layers = [nn.Dense(6, activation=td.gelu, name="up"), nn.LayerNorm(), nn.MultiHeadAttention(2, 3)]
        self.tied = nn.Dense(6)
        self.tied.kernel = self.layers[0].kernel
        self.scale, self.rate = td.Variable(2.0, name="scale", trainable=False), 0.5

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.tied(x) * self.scale * self.rate


@pytest.mark.parametrize("protocol", [2, 5])
def test_models_pickle(protocol):
    x, model = array(2, 5, 6), Pickled()
    y = model(x)
    again = pickle.loads(pickle.dumps(model, protocol))
    assert value(again(x)).tolist() == value(y).tolist()
    assert [name for name, _ in again.named_variables()] == [name for name, _ in model.named_variables()]
    assert again.tied.kernel is again.layers[0].kernel and again.tied.kernel is not model.tied.kernel
    assert (again.scale.name, again.scale.trainable, again.layers[0].name) == ("scale", False, "up")
    again.tied.kernel.assign(again.tied.kernel * 0)
    assert value(model(x)).tolist() == value(y).tolist()


def test_layers_pickle_before_they_are_built_and_after_they_were_copied():
    x = array(4, 3)
    fresh = pickle.loads(pickle.dumps(nn.Sequential(nn.Dense(5, activation="relu", use_bias=False), td.tanh)))
    assert fresh[0].bias is None and not fresh[0].kernel.has_shape and fresh(x).shape == (4, 5)
    norm = nn.BatchNorm(momentum=0.5, name="n")
    norm.note = "mine"
    with nn.Training():
        norm(x)
    for layer in (norm, copy.deepcopy(norm), norm.clone(), copy.copy(norm)):
        again = pickle.loads(pickle.dumps(layer))
        close(again(x), value(norm(x)), 0)
        assert again.name == "n" and value(again.running_mean).tolist() == value(norm.running_mean).tolist()
    assert pickle.loads(pickle.dumps(norm)).note == "mine"


def of_kernels(variable):
    return "kernel" in variable.name


def slowly(step):
    return 0.05 / (step + 1)


def own_rule(step, numbers):
    step.slots[0] = step.slots[0] * 0.5 + step.gradient
    step.parameter = step.parameter - step.slots[0] * numbers[0]


OPTIMIZERS = {
    "SGD": lambda: nn.SGD(0.1, momentum=0.9), "Adam": lambda: nn.Adam(nn.schedules.cosine(0.1, steps=20)), "Adamax": nn.Adamax, "LAMB": nn.LAMB,
    "AdamW": lambda: nn.AdamW(decays=of_kernels, weight_decay=0.1), "NAdam": nn.NAdam, "Lion": nn.Lion, "Adagrad": nn.Adagrad,
    "RMSprop": lambda: nn.RMSprop(centered=True, momentum=0.5), "Adadelta": nn.Adadelta, "accumulating": lambda: nn.Adam(0.1, accumulate=2),
    "of a function": lambda: nn.Adam(slowly, clip_global_norm=0.5), "warming up": lambda: nn.SGD(nn.schedules.warm_up(5, nn.Schedule(slowly))),
    "own": lambda: nn.Optimizer(nn.UpdateRule(own_rule, slots=["m"]), learning_rate=0.1)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_pickle_with_their_state(name):
    def step(model, optimizer):
        with td.GradientTape() as tape:
            loss = (model(td.ones((3, 4))) ** 2).mean()
        optimizer.minimize(tape, loss, model)

    both = nn.Dense(3), OPTIMIZERS[name]()
    for _ in range(3):
        step(*both)
    both[1].note = "mine"
    again = pickle.loads(pickle.dumps(both))
    assert type(again[1]) is type(both[1]) and again[1].note == "mine"
    for _ in range(3):
        step(*both)
        step(*again)
    ours, theirs = nn.named_variables(both), nn.named_variables(again)
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    assert all(np.array_equal(a.value(), b.value()) and not a.same_as(b) for (_, a), (_, b) in zip(ours, theirs))


def test_initializers_and_schedules_pickle():
    layer = pickle.loads(pickle.dumps(nn.Dense(3, kernel_initializer=nn.initializers.constant(2.0), bias_initializer=nn.initializers.ones)))
    assert np.array_equal(layer(td.ones((1, 4))), [[9, 9, 9]])
    schedule = nn.schedules.exponential(0.5, steps=10)
    assert float(pickle.loads(pickle.dumps(schedule))(7)) == float(schedule(7))
