#!/usr/bin/env python3
"""models.py --driver PATH [--folder FOLDER]: layers, losses, optimizers, schedules, metrics and draws, judged from outside.

The driver (models_driver.cc) writes each case with what it was given and what it gave. PyTorch computes the same where it has the
layer, optax the optimizers that PyTorch lacks, JAX windows with the padding "same", Keras where ours follows its convention (batch_norm's momentum, metrics, schedules), and
draws are judged by tests of fit. A case that nobody judges is a failure, and so is a public layer, loss, metric, schedule or optimizer without a case.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import scipy.stats
    import torch
    os.environ["KERAS_BACKEND"] = "torch"
    import jax
    import keras
    import optax
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
jax.config.update("jax_enable_x64", True)
torch.set_default_dtype(torch.float64)  # NAdam keeps its product of momenta in the default.

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLOSE = dict(rtol=1e-9, atol=1e-11)
DOUBTFUL = 1e-6  # A test of fit that is less likely than this has failed; draws are the same in every run.


class Case:
    """One file of the driver: its kind, its options, its tensors."""

    def __init__(self, path):
        self.name = os.path.basename(path)[:-len(".npz")]
        self.kind, *words = self.name.split(",")
        self.options = dict(word.split("=") for word in words)
        with np.load(path) as file:
            self.tensors = {key: file[key] for key in file.files}

    def number(self, name, otherwise=0.0):
        return float(self.options.get(name, otherwise))

    def on(self, name, otherwise="0"):
        return self.options.get(name, otherwise) in ("1", "true")

    def __getitem__(self, name):
        return self.tensors[name]


judges = {}


def judge(*kinds):
    def keep(function):
        judges.update({kind: function for kind in kinds})
        return function
    return keep


def close(case, name, wanted):
    """What eager code and the function gave is what was wanted."""
    for prefix in ("", "compiled/"):
        if prefix and prefix + name not in case.tensors:
            continue
        given = case[prefix + name]
        wanted = np.asarray(wanted)
        if given.shape != wanted.shape:
            raise AssertionError(f"{prefix}{name} has shape {given.shape}, wanted {wanted.shape}")
        np.testing.assert_allclose(given, wanted, err_msg=prefix + name, **CLOSE)


def weights(y):
    return np.sin(np.arange(np.prod(y.shape), dtype=np.float64)).reshape(y.shape)


def by_torch(case, forward, names=()):
    """Compares y and the gradients by x and the Variables with those of forward(x, **variables)."""
    x = torch.tensor(case["x"], requires_grad=case["x"].dtype == np.float64)
    variables = {name: torch.tensor(case["variable/" + name], requires_grad=True) for name in names}
    y = forward(x, *variables.values())
    close(case, "y", y.detach().numpy())
    (y * torch.tensor(weights(y))).sum().backward()
    if x.requires_grad:
        close(case, "gradient/x", x.grad.numpy())
    for name, variable in variables.items():
        close(case, "gradient/" + name, variable.grad.numpy())
    judged = {"y", "x"} | {"gradient/" + name for name in ("x", *names)} | {"variable/" + name for name in names}
    unjudged = {key.removeprefix("compiled/") for key in case.tensors} - judged
    unjudged = {key for key in unjudged if "running_" not in key}
    assert not unjudged, f"nobody judges {sorted(unjudged)}"


def by_jax(case, forward, names=()):
    y, pull = jax.vjp(forward, case["x"], *(case["variable/" + name] for name in names))
    close(case, "y", y)
    for name, gradient in zip(("x", *names), pull(weights(y))):
        close(case, "gradient/" + name, gradient)


# ---- layers -------------------------------------------------------------------------------------

F = torch.nn.functional
ACTIVATIONS = {
    "linear": lambda x: x, "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
    "softmax": lambda x: F.softmax(x, -1), "log_softmax": lambda x: F.log_softmax(x, -1), "softplus": F.softplus,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01), "elu": F.elu,
}


@judge("dense")
def dense(case):
    act = ACTIVATIONS[case.options["activation"]]
    if case.on("bias", "1"):
        by_torch(case, lambda x, w, b: act(x @ w + b), ("kernel", "bias"))
    else:
        by_torch(case, lambda x, w: act(x @ w), ("kernel",))


@judge("conv2d")
def conv2d(case):
    stride, dilation, groups = (int(case.number(name)) for name in ("strides", "dilations", "groups"))
    if case.on("same"):
        by_jax(case, lambda x, w, b: b + jax.lax.conv_general_dilated(
            x, w, (stride, stride), "SAME", rhs_dilation=(dilation, dilation), feature_group_count=groups,
            dimension_numbers=("NHWC", "HWIO", "NHWC")), ("kernel", "bias"))
    else:
        def forward(x, w, b):
            y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), b, stride, 0, dilation, groups)
            return y.permute(0, 2, 3, 1)
        by_torch(case, forward, ("kernel", "bias"))


@judge("max_pool", "average_pool")
def pool(case):
    stride = int(case.number("strides"))

    def windows(x, first, combine):
        return jax.lax.reduce_window(x, first, combine, (1, 3, 2, 1), (1, stride, stride, 1), "SAME" if case.on("same") else "VALID")
    if case.kind == "max_pool":
        by_jax(case, lambda x: windows(x, -np.inf, jax.lax.max))
    else:
        by_jax(case, lambda x: windows(x, 0.0, jax.lax.add) / windows(np.ones_like(case["x"]), 0.0, jax.lax.add))


def first(x):
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1) if x.ndim > 2 else x


def taps(w):
    """A kernel as PyTorch has it: the channels first."""
    return w.permute(-1, -2, *range(w.ndim - 2))


def deep(x, w, b, stride=1, bias=True):
    kernel = w.permute(-2, -1, *range(w.ndim - 2)).flatten(0, 1).unsqueeze(1)
    return [F.conv1d, F.conv2d][w.ndim - 3](first(x), kernel, b if bias else None, stride, groups=x.shape[-1])


# Of layers with a kernel and a bias, then of those with neither.
WINDOWS = {
    "conv1d": lambda x, w, b: F.conv1d(first(x), taps(w), b, 2, 1, 1, 2), "conv3d": lambda x, w, b: F.conv3d(first(x), taps(w), b, (1, 2, 1), 1),
    "conv1dtranspose": lambda x, w, b: F.conv_transpose1d(first(x), taps(w), b, 2, groups=2),
    "conv2dtranspose": lambda x, w, b: F.conv_transpose2d(first(x), taps(w), b, (2, 3), (1, 0)),
    "conv3dtranspose": lambda x, w, b: F.conv_transpose3d(first(x), taps(w), b, 2),
    "depthwiseconv1d": deep, "depthwiseconv2d": lambda x, w, b: deep(x, w, b, (2, 1)),
}
POOLS = {
    "maxpool1d": lambda x: F.max_pool1d(x, 3, 2), "maxpool3d": lambda x: F.max_pool3d(x, 2), "averagepool1d": lambda x: F.avg_pool1d(x, 3, 2),
    "averagepool3d": lambda x: F.avg_pool3d(x, 2), "adaptivemaxpool1d": lambda x: F.adaptive_max_pool1d(x, 4),
    "adaptivemaxpool2d": lambda x: F.adaptive_max_pool2d(x, (3, 4)), "adaptivemaxpool3d": lambda x: F.adaptive_max_pool3d(x, (2, 3, 4)),
    "adaptiveaveragepool1d": lambda x: F.adaptive_avg_pool1d(x, 4), "adaptiveaveragepool2d": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
    "adaptiveaveragepool3d": lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), "upsampling1d": lambda x: F.interpolate(x, scale_factor=2),
    "upsampling2d": lambda x: F.interpolate(x, scale_factor=(2, 3), mode="bilinear"),
    "upsampling3d": lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"),
    "resize": lambda x: F.interpolate(x, (4, 9), mode="bicubic", antialias=True),
} | {f"globalmaxpool{n}d": lambda x: x.flatten(2).amax(2) for n in (1, 2, 3)} | {f"globalaveragepool{n}d": lambda x: x.flatten(2).mean(2) for n in (1, 3)}


@judge(*WINDOWS)
def windows(case):
    by_torch(case, lambda x, w, b: last(WINDOWS[case.kind](x, w, b)), ("kernel", "bias"))


@judge("separableconv1d", "separableconv2d")
def separable(case):
    by_torch(case, lambda x, w, p, b: last([F.conv1d, F.conv2d][w.ndim - 3](deep(x, w, None, bias=False), taps(p), b)),
             ("depthwise_kernel", "pointwise_kernel", "bias"))


@judge(*POOLS)
def other_pools(case):
    by_torch(case, lambda x: last(POOLS[case.kind](first(x))))


@judge("global_average_pool")
def global_average_pool(case):
    by_torch(case, lambda x: F.adaptive_avg_pool2d(x.permute(0, 3, 1, 2), 1)[:, :, 0, 0])


@judge("flatten")
def flatten(case):
    by_torch(case, torch.nn.Flatten())


@judge("embedding")
def embedding(case):
    by_torch(case, lambda ids, table: F.embedding(ids, table), ("table",))


@judge("layer_norm")
def layer_norm(case):
    by_torch(case, lambda x, scale, bias: F.layer_norm(x, x.shape[-1:], scale, bias, 1e-2), ("scale", "bias"))


@judge("rms_norm")
def rms_norm(case):
    by_torch(case, lambda x, scale: F.rms_norm(x, x.shape[-1:], scale, 1e-2), ("scale",))


@judge("batch_norm")
def batch_norm(case):
    training = case.on("training")
    mean, variance = (torch.tensor(case["variable/running_" + name]) for name in ("mean", "variance"))
    by_torch(case, lambda x, scale, bias: F.batch_norm(
        x.permute(0, 2, 1), mean.clone(), variance.clone(), scale, bias, training, 0.1, 1e-2).permute(0, 2, 1), ("scale", "bias"))
    layer = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-2, dtype="float64")
    layer.build(case["x"].shape)
    layer.set_weights([case["variable/" + name] for name in ("scale", "bias", "running_mean", "running_variance")])
    layer(case["x"], training=training)
    for name in ("mean", "variance"):  # Keras computes these in f32.
        running = getattr(layer, "moving_" + name).numpy()
        for prefix in ("", "compiled/"):
            np.testing.assert_allclose(case[f"{prefix}after/running_{name}"], running, rtol=1e-5)


@judge("lstm")
def lstm(case):
    units = case["variable/recurrent"].shape[0]

    def forward(x, kernel, recurrent, bias):  # PyTorch's gates stand in our order, its matrices are turned, and it has two biases.
        if case.on("reverse"):
            x = x.flip(1)
        parameters = [kernel.T, recurrent.T, bias, torch.zeros_like(bias)]
        state = torch.zeros(1, x.shape[0], units, dtype=x.dtype)
        steps, _, _ = torch._VF.lstm(x, (state, state), parameters, True, 1, 0.0, False, False, True)
        if case.on("sequences"):
            return steps.flip(1) if case.on("reverse") else steps
        return steps[:, -1]
    names = ("kernel", "recurrent", "bias")
    try:
        by_torch(case, forward, names)
    except AssertionError:
        if not (case.on("sequences") and case.on("reverse")):
            raise
        by_torch(case, lambda *all: forward(*all).flip(1), names)  # Keras gives the steps in the order they were taken.
        layer = keras.layers.LSTM(units, return_sequences=True, go_backwards=True, dtype="float64")
        layer.build(case["x"].shape)
        layer.set_weights([case["variable/" + name] for name in names])
        close(case, "y", layer(case["x"]).numpy())


def one_way(kind, x, parameters, units):
    state = torch.zeros(1, x.shape[0], units, dtype=x.dtype)
    return getattr(torch._VF, kind)(x, state, parameters, True, 1, 0.0, False, False, True)[0]


@judge("gru", "simple_rnn")
def recurrent(case):
    units = case["variable/recurrent"].shape[0]

    def forward(x, kernel, recurrent, bias, recurrent_bias=None):
        x = x.flip(1) if case.on("reverse") else x
        second = torch.zeros_like(bias) if recurrent_bias is None else recurrent_bias
        kind = "gru" if case.kind == "gru" else "rnn_tanh"
        steps = one_way(kind, x, [kernel.T, recurrent.T, bias, second], units)
        if not case.on("sequences"):
            return steps[:, -1]
        return steps.flip(1) if case.on("reverse") else steps
    by_torch(case, forward, ("kernel", "recurrent", "bias") + (("recurrent_bias",) if case.kind == "gru" else ()))


@judge("bidirectional")
def bidirectional(case):
    def forward(x, *both):
        ways = [one_way("gru", way, [k.T, r.T, b, rb], r.shape[0]) for way, (k, r, b, rb) in ((x, both[:4]), (x.flip(1), both[4:]))]
        return torch.cat([ways[0], ways[1].flip(1)], -1)
    by_torch(case, forward, [f"{way}/{name}" for way in ("forward", "backward") for name in ("kernel", "recurrent", "bias", "recurrent_bias")])


@judge("group_norm", "instance_norm")
def group_norm(case):
    groups = 3 if case.kind == "group_norm" else case["x"].shape[-1]
    by_torch(case, lambda x, scale, bias: F.group_norm(x.permute(0, 3, 1, 2), groups, scale, bias, 1e-2).permute(0, 2, 3, 1),
             ("scale", "bias"))


def turned(x):
    """RoPE as Llama's implementations write it."""
    size = x.shape[-1]
    angle = torch.arange(x.shape[-2])[:, None] * 100.0 ** (-torch.arange(0, size, 2) / size)
    angle = torch.cat([angle, angle], -1)
    half = torch.cat([-x[..., size // 2:], x[..., :size // 2]], -1)
    return x * angle.cos() + half * angle.sin()


@judge("attention")
def attention(case):
    heads = int(case.number("heads"))
    key_heads = int(case.number("key_heads", heads))

    def forward(x, qk, qb, kk, kb, vk, vb, ok, ob):
        def parted(kernel, bias, count):
            y = x @ kernel + bias
            return y.reshape(*y.shape[:-1], count, -1).transpose(-3, -2)
        q, k, v = parted(qk, qb, heads), parted(kk, kb, key_heads), parted(vk, vb, key_heads)
        if case.on("rotary"):
            q, k = turned(q), turned(k)
        tokens = torch.arange(x.shape[-2])
        added = torch.zeros(heads, len(tokens), len(tokens))
        if case.on("alibi"):
            added -= (2.0 ** (-8 * torch.arange(1, heads + 1) / heads))[:, None, None] * (tokens[:, None] - tokens).abs()
        if case.on("causal"):
            added = added.masked_fill(tokens > tokens[:, None], -torch.inf)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=added, enable_gqa=True)
        return y.transpose(-3, -2).flatten(-2) @ ok + ob
    by_torch(case, forward, [f"{part}/{what}" for part in ("query", "key", "value", "output") for what in ("kernel", "bias")])


# ---- losses and metrics -------------------------------------------------------------------------

def smoothed_bits(case, y):
    s = case.number("smoothing")
    return y * (1 - s) + 0.5 * s


def of_shares(case, shares, p):
    """Probabilities count as they are: PyTorch's cross_entropy would make them add up to 1 first."""
    if case.on("logits"):
        return F.cross_entropy(p, shares, label_smoothing=case.number("smoothing"))
    s = case.number("smoothing")
    return -((shares * (1 - s) + s / p.shape[-1]) * p.log()).sum(-1).mean()


def weighted_mse(t, p):
    return ((p - t[:, :3]).square().mean(1) * t[:, 3]).sum() / t[:, 3].sum()


def of_classes(case, t, p):
    if case.on("class_weights"):
        return F.cross_entropy(p, t, weight=torch.tensor([0.5, 1.0, 4.0], dtype=p.dtype))
    return of_shares(case, F.one_hot(t, p.shape[-1]).double(), p)


def focal(case, t, p):
    """By its definition; Keras computes gamma and alpha in f32."""
    right = torch.where(t > 0.5, torch.sigmoid(p), torch.sigmoid(-p))
    alpha = case.number("alpha") if "alpha" in case.options else None
    balance = 1.0 if alpha is None else torch.where(t > 0.5, alpha, 1 - alpha)
    return (balance * (1 - right) ** case.number("gamma") * F.binary_cross_entropy_with_logits(p, t, reduction="none")).mean()


LOSSES = {
    "mse": lambda case, t, p: weighted_mse(t, p) if case.on("weighted") else F.mse_loss(p, t),
    "mae": lambda case, t, p: F.l1_loss(p, t),
    "huber": lambda case, t, p: F.huber_loss(p, t, delta=case.number("delta")),
    "binary_crossentropy": lambda case, t, p: (
        F.binary_cross_entropy_with_logits if case.on("logits") else F.binary_cross_entropy)(p, smoothed_bits(case, t)),
    "categorical_crossentropy": lambda case, t, p: of_shares(case, t, p),
    "sparse_categorical_crossentropy": lambda case, t, p: of_classes(case, t, p),
    "hinge": lambda case, t, p: (1 - t * p).clamp(min=0).mean(),
    "cosine": lambda case, t, p: F.cosine_embedding_loss(p, t, torch.ones(len(t))),
    "kl_divergence": lambda case, t, p: F.kl_div(F.log_softmax(p, -1) if case.on("logits") else p.log(), t, reduction="batchmean"),
    "poisson": lambda case, t, p: F.poisson_nll_loss(p, t, log_input=case.on("logs"), eps=0),
    "focal": lambda case, t, p: focal(case, t, p),
    "triplet": lambda case, t, p: F.triplet_margin_loss(p, t[0], t[1], margin=case.number("margin"), eps=0),
    "ctc": lambda case, t, p: F.ctc_loss(F.log_softmax(p, -1).transpose(0, 1), t[:, :4], t[:, 5], t[:, 4], reduction="none").mean(),
}


@judge(*LOSSES)
def loss(case):
    p = torch.tensor(case["y_pred"], requires_grad=True)
    value = LOSSES[case.kind](case, torch.tensor(case["y_true"]), p)
    value.backward()
    close(case, "y", value.detach().numpy())
    close(case, "gradient/y_pred", p.grad.numpy())


@judge("accuracy", "sparse_accuracy", "binary_accuracy", "top_k")
def metric(case):
    t, p = case["y_true"], case["y_pred"]
    made = {"accuracy": lambda: keras.metrics.CategoricalAccuracy(dtype="float64"),
            "sparse_accuracy": lambda: keras.metrics.SparseCategoricalAccuracy(dtype="float64"),
            "binary_accuracy": lambda: keras.metrics.BinaryAccuracy(threshold=0.0, dtype="float64"),
            "top_k": lambda: keras.metrics.SparseTopKCategoricalAccuracy(k=int(case.number("k")), dtype="float64")}[case.kind]()
    made.update_state(t, p)
    for prefix in ("", "compiled/"):
        np.testing.assert_allclose(case[prefix + "y"], float(made.result()), rtol=1e-6)


def weighted(made, case):
    for part in np.split(np.arange(60), 3):
        made.update_state(case["y_true"][part], case["y_pred"][part], sample_weight=case["weights"][part])
    return float(made.result())


@judge("precision", "recall", "f1", "auc")
def binary_metric(case):
    def made(kind):
        return weighted(getattr(keras.metrics, kind)(thresholds=0.5, dtype="float64"), case)
    if case.kind == "auc":
        torch.set_default_dtype(torch.float32)  # Keras mixes its own f32 with the default.
        wanted = weighted(keras.metrics.AUC(from_logits=True), case)
        torch.set_default_dtype(torch.float64)
    elif case.kind == "f1":
        wanted = 2 / (1 / made("Precision") + 1 / made("Recall"))
    else:
        wanted = made(case.kind.capitalize())
    np.testing.assert_allclose(case["y"], wanted, rtol=1e-6)


@judge("perplexity")
def perplexity(case):
    each = F.cross_entropy(torch.tensor(case["y_pred"]), torch.tensor(case["y_true"]), reduction="none").numpy()
    np.testing.assert_allclose(case["y"], np.exp(np.average(each, weights=case["weights"])), rtol=1e-6)


@judge("confusion_matrix")
def confusion_matrix(case):
    wanted = np.zeros((5, 5))
    np.add.at(wanted, (case["y_true"], case["y_pred"].argmax(1)), 1)
    np.testing.assert_array_equal(case["y"], wanted)
    for name in ("precision", "recall"):
        made = [keras.metrics.Precision(class_id=i, top_k=1, dtype="float64") if name == "precision" else
                keras.metrics.Recall(class_id=i, top_k=1, dtype="float64") for i in range(5)]
        for each in made:
            each.update_state(np.eye(5)[case["y_true"]], case["y_pred"])
        np.testing.assert_allclose(case[name], [float(each.result()) for each in made], rtol=1e-6)
    f1 = keras.metrics.F1Score(dtype="float64")
    f1.update_state(np.eye(5)[case["y_true"]], case["y_pred"])
    np.testing.assert_allclose(case["f1"], f1.result().numpy(), rtol=1e-6)


@judge("mean")
def mean(case):
    given = keras.metrics.Mean(dtype="float64")
    given.update_state(case["y_pred"][:, 0])
    given.update_state(case["y_pred"][0], sample_weight=np.full(case["y_pred"][0].shape, 3.0))
    np.testing.assert_allclose(case["y"], float(given.result()), rtol=1e-6)


# ---- optimizers and schedules -------------------------------------------------------------------

def clipped(gradient, most):
    return gradient * min(1.0, most / float(gradient.norm()))


@judge("lion", "lamb")
def optimizer_of_optax(case):
    make = getattr(optax, case.kind)
    down = make(case.number("lr"), weight_decay=case.number("weight_decay"))
    values = dict(p=case["first"], q=case["second"])
    state, seen = down.init(values), []
    for a, b in zip(case["at"], case["by"]):
        def loss(v):
            return ((v["p"] - a) ** 2).sum() + (abs(v["q"] * b) ** 3).sum()
        changes, state = down.update(jax.grad(loss)(values), state, values)
        values = optax.apply_updates(values, changes)
        seen.append(values)
    for name in ("p", "q"):
        close(case, name, np.stack([each[name] for each in seen]))


@judge("sgd", "adam", "adamw", "rmsprop", "adagrad", "adadelta", "adamax", "nadam")
def optimizer(case):
    p, q = (torch.tensor(case[name], requires_grad=True) for name in ("first", "second"))
    rate, decay = case.number("lr"), case.number("weight_decay")
    betas = dict(betas=(case.number("beta1", 0.9), case.number("beta2", 0.999)), eps=case.number("epsilon", 1e-8))
    down = {"sgd": lambda: torch.optim.SGD([p, q], rate, case.number("momentum"), weight_decay=decay, nesterov=case.on("nesterov")),
            "adam": lambda: torch.optim.Adam([p, q], rate, **betas),
            "adamw": lambda: torch.optim.AdamW([p, q], rate, weight_decay=decay, **betas),
            "rmsprop": lambda: torch.optim.RMSprop([p, q], rate, case.number("alpha", 0.99), momentum=case.number("momentum"),
                                                   centered=case.on("centered"), weight_decay=decay),
            "adagrad": lambda: torch.optim.Adagrad([p, q], rate, initial_accumulator_value=case.number("initial"), weight_decay=decay),
            "adadelta": lambda: torch.optim.Adadelta([p, q], rate, case.number("rho"), weight_decay=decay),
            "adamax": lambda: torch.optim.Adamax([p, q], rate, weight_decay=decay),
            "nadam": lambda: torch.optim.NAdam([p, q], rate, weight_decay=decay)}[case.kind]()
    together = int(case.number("accumulate", 1))
    ps, qs = [], []
    for i, (a, b) in enumerate(zip(torch.tensor(case["at"]), torch.tensor(case["by"]))):
        (((p - a).square().sum() + (q * b).abs().pow(3).sum()) / together).backward()
        if (i + 1) % together == 0:
            if "clip_global_norm" in case.options:
                length = torch.sqrt(p.grad.square().sum() + q.grad.square().sum())
                factor = min(1.0, case.number("clip_global_norm") / float(length))
                p.grad *= factor
                q.grad *= factor
            if "clip_norm" in case.options:
                p.grad, q.grad = (clipped(each.grad, case.number("clip_norm")) for each in (p, q))
            down.step()
            down.zero_grad()
        ps.append(p.detach().clone().numpy())
        qs.append(q.detach().clone().numpy())
    close(case, "p", np.stack(ps))
    close(case, "q", np.stack(qs))


def rates(schedule):
    return [float(schedule(step)) for step in range(40)]


@judge("constant", "piecewise", "exponential", "cosine", "warm_up")
def schedule(case):
    of = keras.optimizers.schedules
    cosine = rates(of.CosineDecay(0.5, 25, alpha=0.25))
    wanted = {"constant": lambda: [0.5] * 40,
              "piecewise": lambda: rates(of.PiecewiseConstantDecay([6, 19], [0.5, 0.25, 0.125])),
              "exponential": lambda: rates(of.ExponentialDecay(0.5, 8, 0.75, staircase=case.on("staircase"))),
              "cosine": lambda: cosine,
              "warm_up": lambda: [0.5 * (step + 1) / 5 for step in range(5)] + cosine[:35]}[case.kind]()
    np.testing.assert_allclose(case["y"], wanted, rtol=2e-6)  # Keras computes rates in f32.


# ---- draws --------------------------------------------------------------------------------------

def fits(likely):
    assert likely > DOUBTFUL, f"a test of fit says p = {likely:.3g}"


def spread(y, low, high):
    assert y.min() >= low and y.max() < high, f"draws reach from {y.min()} to {y.max()}"


@judge("normal")
def normal(case):
    fits(scipy.stats.kstest(case["y"], "norm", (3, 2)).pvalue)
    fits(scipy.stats.kstest(case["y"][1:] - case["y"][:-1], "norm", (0, 8 ** 0.5)).pvalue)


@judge("uniform")
def uniform(case):
    spread(case["y"], -1, 4)
    fits(scipy.stats.kstest(case["y"], "uniform", (-1, 5)).pvalue)


@judge("integers")
def integers(case):
    many = int(case.options["range"])
    spread(case["y"], -3, many - 3)
    if many > 1000:
        fits(scipy.stats.kstest(case["y"] + np.linspace(0, 1e-3, case["y"].size), "uniform", (-3, many)).pvalue)
    else:
        fits(scipy.stats.chisquare(np.bincount(case["y"] + 3, minlength=many)).pvalue)


@judge("bernoulli")
def bernoulli(case):
    fits(scipy.stats.binomtest(int(case["y"].sum()), case["y"].size, case.number("p")).pvalue)


def continuous(case, distribution):
    assert np.isfinite(case["y"]).all()
    fits(scipy.stats.kstest(case["y"], distribution.cdf).pvalue)


@judge("exponential_draws")
def exponential(case):
    continuous(case, scipy.stats.expon(scale=1 / 2.5))


@judge("gumbel")
def gumbel(case):
    continuous(case, scipy.stats.gumbel_r())


@judge("laplace")
def laplace(case):
    continuous(case, scipy.stats.laplace(1, 3))


@judge("truncated_normal")
def truncated_normal(case):
    low, high = case.number("low"), case.number("high")
    assert (case["y"] >= 1 + 2 * low).all() and (case["y"] <= 1 + 2 * high).all()
    continuous(case, scipy.stats.truncnorm(low, high, 1, 2))


@judge("gamma")
def gamma(case):
    continuous(case, scipy.stats.gamma(case.number("alpha")))


@judge("beta")
def beta(case):
    continuous(case, scipy.stats.beta(case.number("a"), case.number("b")))


@judge("poisson_draws")
def poisson(case):
    wanted, y = scipy.stats.poisson(case.number("rate")), case["y"]
    low, high = int(wanted.ppf(1e-4)), int(wanted.ppf(1 - 1e-4))
    seen = np.bincount(np.clip(y, low, high) - low, minlength=high - low + 1)
    chances = wanted.pmf(np.arange(low, high + 1))
    chances[0], chances[-1] = wanted.cdf(low), wanted.sf(high - 1)
    assert y.min() >= 0
    fits(scipy.stats.chisquare(seen, chances / chances.sum() * y.size).pvalue)


def chances(case):
    return case["p"].astype(float) / case["p"].astype(float).sum()


@judge("categorical")
def categorical(case):
    fits(scipy.stats.chisquare(np.bincount(case["y"], minlength=4), chances(case) * case["y"].size).pvalue)


@judge("multinomial")
def multinomial(case):
    assert (case["y"].sum(1) == 1000).all()
    fits(scipy.stats.chisquare(case["y"].sum(0), chances(case) * case["y"].sum()).pvalue)
    spread = ((case["y"] - 1000 * case["p"]) ** 2 / (1000 * case["p"])).sum(1)
    fits(scipy.stats.kstest(spread, scipy.stats.chi2(3).cdf).pvalue)


@judge("dropout")
def dropout(case):
    kept = case["y"] != 0
    np.testing.assert_allclose(case["y"][kept], 1 / (1 - case.number("rate")))
    fits(scipy.stats.binomtest(int(kept.sum()), kept.size, 1 - case.number("rate")).pvalue)


@judge("permutation", "shuffle")
def permutation(case):
    n = int(case.number("n"))
    assert (np.sort(case["y"], 1) == np.arange(n)).all(), "not an order of all elements"
    counts = collections.Counter(map(tuple, case["y"].tolist()))
    possible = int(np.prod(np.arange(1, n + 1)))
    fits(scipy.stats.chisquare(list(counts.values()) + [0] * (possible - len(counts))).pvalue)


@judge("streams")
def streams(case):
    names = sorted(case.tensors)
    for i, first in enumerate(names):
        for second in names[i + 1:]:
            related = scipy.stats.pearsonr(case[first], case[second])
            assert related.pvalue > DOUBTFUL, f"{first} and {second} are correlated: {related.statistic:.3f}"


@judge("glorot_uniform", "glorot_normal", "he_uniform", "he_normal")
def initializer(case):
    fan_in, fan_out = case["y"].shape
    variance = 2 / (fan_in + fan_out) if case.kind.startswith("glorot") else 2 / fan_in
    if case.kind.endswith("uniform"):
        bound = (3 * variance) ** 0.5
        fits(scipy.stats.kstest(case["y"].ravel(), "uniform", (-bound, 2 * bound)).pvalue)
    else:
        fits(scipy.stats.kstest(case["y"].ravel(), "norm", (0, variance ** 0.5)).pvalue)


@judge("orthogonal")
def orthogonal(case):
    np.testing.assert_allclose(case["y"].T @ case["y"], np.eye(case["y"].shape[1]), atol=1e-12)


# ---- all of them --------------------------------------------------------------------------------

def public_names():
    """The layers, losses, metrics, schedules, optimizers and initializers that the headers declare, as cases name them."""
    def text(name, folder="train"):
        with open(os.path.join(ROOT, "tidemark", folder, name + ".h"), encoding="utf-8") as file:
            return file.read()
    layers = {kind for path in glob.glob(os.path.join(ROOT, "tidemark", "nn", "*.h"))
              for kind in re.findall(r'"nn::(\w+)"', text(os.path.basename(path)[:-2], "nn"))}
    own = {"Conv2D": "conv2d", "LSTM": "lstm", "GRU": "gru", "SimpleRNN": "simple_rnn", "MultiHeadAttention": "attention", "RMSNorm": "rms_norm", "MaxPool2D": "max_pool",
           "AveragePool2D": "average_pool", "GlobalAveragePool2D": "global_average_pool"}
    found = {own.get(kind) or re.search(r"\dD", kind) and kind.lower() or re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower() for kind in layers} - {"sequential", "lambda"}
    for header in ("losses", "metrics"):
        found |= set(re.findall(r"inline constexpr \w+ (\w+) =", text(header)))
    found |= {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
              for name in re.findall(r"^class (\w+)", text("running_metrics"), re.M)} - {"binary_counts"}
    found |= set(re.findall(r"^Schedule (\w+)\(", text("schedule"), re.M))
    found |= {name.lower() for name in re.findall(r"^class (\w+) : public Optimizer", text("optimizers"), re.M)}
    found |= set(re.findall(r"^Tensor (\w+)\(const Shape", text("initializers", "nn"), re.M)) - {"zeros", "ones"}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--folder", help="where the cases go; a temporary folder otherwise")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or temporary
        os.makedirs(folder, exist_ok=True)
        subprocess.run([arguments.driver, folder], check=True)
        cases = [Case(path) for path in sorted(glob.glob(os.path.join(folder, "*.npz")))]
    failed = 0
    for case in cases:
        try:
            judges[case.kind](case)
        except Exception as error:  # One case that fails hides no other.
            failed += 1
            print(f"{case.name}: {type(error).__name__}: {error}")
    missing = public_names() - {case.kind for case in cases}
    for name in sorted(missing):
        print(f"{name} has no case")
    compared = sum(len(case.tensors) for case in cases)
    print(f"{len(cases)} cases with {compared} tensors, {len({case.kind for case in cases})} kinds: {failed} failed, {len(missing)} missing")
    return 1 if failed or missing or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
