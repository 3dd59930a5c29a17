"""Layers, losses and optimizers of td.nn from Python, against PyTorch: values, and gradients by the input and every Variable, in f64."""
import numpy as np
import pytest

import tidemark as td
from tidemark import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional


def array(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def close(ours, theirs):
    np.testing.assert_allclose(np.asarray(ours), theirs.detach().numpy(), rtol=1e-9, atol=1e-11)


def compare(layer, x, variables, forward, training=False):
    """Eager and compiled. The output is weighted, so that every element has a gradient of its own."""
    with nn.Training(training):
        y = layer(x)
    weights = np.sin(np.arange(np.prod(y.shape))).reshape(y.shape)
    theirs = [torch.tensor(x, requires_grad=x.dtype == np.float64), *(torch.tensor(np.asarray(v.value()), requires_grad=True) for v in variables)]
    wanted = forward(*theirs)
    (wanted * torch.tensor(weights)).sum().backward()

    def step(x):
        with nn.Training(training), td.GradientTape() as tape:
            if x.dtype == td.f64:
                tape.watch(x)
            y = layer(x)
            loss = td.sum(y * weights)
        slopes = tape.gradient(loss, [x, *variables] if x.dtype == td.f64 else variables)
        return y, [slope.dense() if isinstance(slope, td.RowGradient) else slope for slope in slopes]

    for run in (step, td.function(step)):
        y, slopes = run(td.asarray(x))
        close(y, wanted)
        for slope, source in zip(slopes, theirs if x.dtype == np.float64 else theirs[1:]):
            close(slope, source.grad)


ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "softmax": lambda x: F.softmax(x, -1),
               "softplus": F.softplus, "elu": F.elu}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dense(activation):
    layer = nn.Dense(4, activation=activation, dtype=td.f64)
    layer(array(5, 3))
    compare(layer, array(5, 3), [layer.kernel, layer.bias], lambda x, w, b: ACTIVATIONS[activation](x @ w + b))


def test_embedding():
    layer = nn.Embedding(10, 3, dtype=td.f64)
    ids = np.array([[1, 2, 1], [9, 1, 0]])
    layer(ids)
    compare(layer, ids, [layer.table], lambda ids, table: F.embedding(ids, table))


def images_first(x):
    return x.permute(0, 3, 1, 2)


def images_last(x):
    return x.permute(0, 2, 3, 1)


@pytest.mark.parametrize("strides, dilations, groups", [(1, 1, 1), (2, 1, 2), (1, 2, 1)])
def test_conv2d(strides, dilations, groups):
    layer = nn.Conv2D(6, (3, 2), strides=strides, dilations=dilations, groups=groups, dtype=td.f64)
    x = array(2, 8, 7, 4)
    layer(x)

    def forward(x, w, b):
        return images_last(F.conv2d(images_first(x), w.permute(3, 2, 0, 1), b, strides, 0, dilations, groups))
    compare(layer, x, [layer.kernel, layer.bias], forward)


@pytest.mark.parametrize("layer, function", [(nn.MaxPool2D((3, 2), strides=2), F.max_pool2d), (nn.AveragePool2D((3, 2), strides=2), F.avg_pool2d)],
                         ids=["max", "average"])
def test_pools(layer, function):
    compare(layer, array(2, 7, 8, 3), [], lambda x: images_last(function(images_first(x), (3, 2), 2)))


def test_pools_of_whole_images_and_flatten():
    compare(nn.GlobalAveragePool2D(), array(2, 5, 4, 3), [], lambda x: x.mean((1, 2)))
    compare(nn.Flatten(), array(2, 5, 4, 3), [], lambda x: x.flatten(1))


def first(x):
    """Channels first, for any number of axes."""
    return x.movedim(-1, 1)


def last(x):
    return x.movedim(1, -1)


CONVOLUTIONS = {1: (nn.Conv1D, F.conv1d), 2: (nn.Conv2D, F.conv2d), 3: (nn.Conv3D, F.conv3d)}
TRANSPOSES = {1: (nn.Conv1DTranspose, F.conv_transpose1d), 2: (nn.Conv2DTranspose, F.conv_transpose2d), 3: (nn.Conv3DTranspose, F.conv_transpose3d)}
SIZES = {1: (9,), 2: (7, 6), 3: (4, 5, 6)}


@pytest.mark.parametrize("axes, strides, dilations, groups, pad", [(1, 1, 1, 1, 0), (1, 2, 2, 2, 2), (3, 1, 1, 1, 1), (3, 2, 1, 2, 1), (3, (1, 2, 3), (2, 1, 1), 1, 2), (2, (2, 3), 1, 2, 1)])
def test_convolutions(axes, strides, dilations, groups, pad):
    made, theirs = CONVOLUTIONS[axes]
    layer = made(4, (3, 2, 2)[:axes] if axes > 1 else 3, strides=strides, dilations=dilations, groups=groups, padding=[(pad, pad)] * axes, dtype=td.f64)
    x = array(2, *SIZES[axes], 2 * groups)
    layer(x)
    compare(layer, x, [layer.kernel, layer.bias],
            lambda x, w, b: last(theirs(first(x), w.permute(-1, -2, *range(axes)), b, strides, pad, dilations, groups)))


@pytest.mark.parametrize("axes, strides, dilations, groups, pad", [(1, 3, 1, 1, 0), (1, 2, 2, 2, 1), (2, 2, 1, 1, 0), (2, (3, 1), (1, 2), 2, 1), (2, 1, 1, 1, 1), (3, 2, 1, 1, 1), (3, (1, 2, 2), 1, 2, 0)])
def test_transposed_convolutions(axes, strides, dilations, groups, pad):
    made, theirs = TRANSPOSES[axes]
    layer = made(2 * groups, (3, 2, 4)[:axes] if axes > 1 else 3, strides=strides, dilations=dilations, groups=groups, padding=[(pad, pad)] * axes, dtype=td.f64)
    x = array(2, *SIZES[axes], 3 * groups)
    layer(x)
    compare(layer, x, [layer.kernel, layer.bias],
            lambda x, w, b: last(theirs(first(x), w.permute(-1, -2, *range(axes)), b, strides, pad, 0, groups, dilations)))


def test_sizes_of_transposed_convolutions():
    x, w = td.Variable(array(1, 4, 5, 3)), td.Variable(array(3, 3, 2, 3, seed=1))
    function = lambda x: td.conv_transpose2d(x, w, strides=[2, 3], padding=[(1, 1), (0, 0)], sizes=[8, 17])
    compare(function, array(1, 4, 5, 3), [w], lambda x, w: last(F.conv_transpose2d(first(x), w.permute(3, 2, 0, 1), None, (2, 3), (1, 0), (1, 2))))


@pytest.mark.parametrize("times", [1, 3])
def test_depthwise_and_separable(times):
    deep = lambda x, w, **options: F.conv2d(first(x), w.permute(2, 3, 0, 1).reshape(-1, 1, *w.shape[:2]), groups=x.shape[-1], **options)
    layer = nn.DepthwiseConv2D((3, 2), times=times, strides=(2, 1), dtype=td.f64)
    x = array(2, 7, 6, 4)
    layer(x)
    compare(layer, x, [layer.kernel, layer.bias], lambda x, w, b: last(deep(x, w, stride=(2, 1))) + b)
    layer = nn.SeparableConv2D(5, 3, times=times, padding=[(1, 1), (1, 1)], activation="tanh", dtype=td.f64)
    layer(x)
    compare(layer, x, [layer.depthwise_kernel, layer.pointwise_kernel, layer.bias],
            lambda x, w, p, b: torch.tanh(last(F.conv2d(deep(x, w, padding=1), p.permute(3, 2, 0, 1), b))))
    row = nn.SeparableConv1D(5, 3, times=times, dtype=td.f64)
    x = array(2, 9, 4)
    row(x)
    compare(row, x, [row.depthwise_kernel, row.pointwise_kernel, row.bias],
            lambda x, w, p, b: last(F.conv1d(F.conv1d(first(x), w.permute(1, 2, 0).reshape(-1, 1, 3), groups=4), p.permute(2, 1, 0), b)))


POOLS = {
    "max1d": (nn.MaxPool1D(3, strides=2, padding=[(1, 1)]), (2, 9, 3), lambda x: F.max_pool1d(x, 3, 2, 1)),
    "average1d": (nn.AveragePool1D(3, strides=1, padding=[(1, 1)]), (2, 9, 3), lambda x: F.avg_pool1d(x, 3, 1, 1, count_include_pad=False)),
    "max3d": (nn.MaxPool3D((2, 3, 2), strides=(1, 2, 2)), (2, 4, 5, 6, 2), lambda x: F.max_pool3d(x, (2, 3, 2), (1, 2, 2))),
    "average3d": (nn.AveragePool3D(2), (2, 4, 5, 6, 2), lambda x: F.avg_pool3d(x, 2)),
    "global max3d": (nn.GlobalMaxPool3D(), (2, 3, 4, 2, 3), lambda x: torch.amax(x, (2, 3, 4))),
    "global average1d": (nn.GlobalAveragePool1D(), (2, 7, 3), lambda x: torch.mean(x, 2)),
    "adaptive average2d": (nn.AdaptiveAveragePool2D((3, 5)), (2, 7, 9, 3), lambda x: F.adaptive_avg_pool2d(x, (3, 5))),
    "adaptive average up": (nn.AdaptiveAveragePool1D(11), (2, 4, 3), lambda x: F.adaptive_avg_pool1d(x, 11)),
    "adaptive max2d": (nn.AdaptiveMaxPool2D((3, 4)), (2, 7, 8, 3), lambda x: F.adaptive_max_pool2d(x, (3, 4))),
    "adaptive max3d": (nn.AdaptiveMaxPool3D((2, 1, 3)), (1, 5, 3, 4, 2), lambda x: F.adaptive_max_pool3d(x, (2, 1, 3))),
    "up 2d": (nn.UpSampling2D((2, 3)), (2, 3, 4, 2), lambda x: F.interpolate(x, scale_factor=(2, 3))),
    "up 1d": (nn.UpSampling1D(2, method="bilinear"), (2, 5, 2), lambda x: F.interpolate(x, scale_factor=2, mode="linear")),
    "up 3d": (nn.UpSampling3D(2, method="bilinear"), (1, 3, 2, 4, 2), lambda x: F.interpolate(x, scale_factor=2, mode="trilinear")),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_of_other_axes(name):
    layer, shape, function = POOLS[name]
    compare(layer, array(*shape), [], lambda x: (lambda y: last(y) if y.ndim > 2 else y)(function(first(x))))


@pytest.mark.parametrize("method", ["nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("sizes", [(5, 9), (13, 4), (3, 3), (20, 7)])
def test_resize(method, sizes):
    """PyTorch's cubic without antialias has another slope, -3/4; jax.image is its judge elsewhere."""
    antialias = method == "bicubic" or (method == "bilinear" and sizes[0] == 3)
    options = {"antialias": antialias} if method != "nearest-exact" else {}
    compare(nn.Resize(sizes, method=method.split("-")[0], antialias=antialias), array(2, 10, 7, 3), [],
            lambda x: last(F.interpolate(first(x), sizes, mode=method, **options)))


@pytest.mark.parametrize("mode, theirs", [("reflect", "reflect"), ("edge", "replicate")])
def test_pad(mode, theirs):
    compare(lambda x: td.pad(x, [(0, 0), (2, 1), (0, 3), (0, 0)], mode=mode), array(2, 4, 5, 3), [],
            lambda x: last(F.pad(first(x), (0, 3, 2, 1), mode=theirs)))


def test_pad_symmetric():
    x = np.arange(12.0).reshape(3, 4)
    for mode in ("reflect", "symmetric", "edge"):
        np.testing.assert_array_equal(td.pad(x, [(2, 1), (1, 3)], mode=mode), np.pad(x, [(2, 1), (1, 3)], mode=mode))
        np.testing.assert_array_equal(td.pad(x.astype(np.int32), [(0, 2), (0, 0)], mode=mode), np.pad(x.astype(np.int32), [(0, 2), (0, 0)], mode=mode))


def test_pixels_and_patches():
    compare(lambda x: td.pixel_shuffle(x, 2), array(2, 3, 2, 12), [], lambda x: last(F.pixel_shuffle(first(x), 2)))
    compare(lambda x: td.pixel_unshuffle(x, 3), array(2, 6, 3, 2), [], lambda x: last(F.pixel_unshuffle(first(x), 3)))

    def patches(x):
        n, c = x.shape[0], x.shape[-1]
        columns = F.unfold(first(x), (3, 2), dilation=(1, 2), padding=1, stride=(2, 1))
        return columns.reshape(n, c, 6, -1).permute(0, 3, 2, 1).reshape(n, 4, 6, 6 * c)

    compare(lambda x: td.extract_patches(x, [3, 2], strides=[2, 1], dilations=[1, 2], padding=[(1, 1), (1, 1)]), array(2, 7, 6, 3), [], patches)


def test_layouts_with_channels_first():
    x, w = array(2, 3, 6, 7), array(3, 3, 3, 5, seed=1)
    for ours, theirs in ((lambda x: td.conv2d(x, w, layout="nchw"), lambda x: td.conv2d(x, w)),
                         (lambda x: td.resize(x, [4, 9], layout="nchw"), lambda x: td.resize(x, [4, 9])),
                         (lambda x: td.max_pool(x, layout="nchw"), lambda x: td.max_pool(x)),
                         (lambda x: td.conv_transpose2d(x, w.transpose(0, 1, 3, 2), layout="nchw"), lambda x: td.conv_transpose2d(x, w.transpose(0, 1, 3, 2))),
                         (lambda x: td.extract_patches(x, [2, 2], layout="nchw"), lambda x: td.extract_patches(x, [2, 2]))):
        np.testing.assert_array_equal(ours(x), np.moveaxis(np.asarray(theirs(np.moveaxis(x, 1, -1))), -1, 1))


def test_norms():
    x = array(6, 5) * 3 + 1
    layer, rms = nn.LayerNorm(dtype=td.f64), nn.RMSNorm(dtype=td.f64)
    layer(x), rms(x)
    compare(layer, x, [layer.scale, layer.bias], lambda x, w, b: F.layer_norm(x, (5,), w, b, 1e-5))
    compare(rms, x, [rms.scale], lambda x, w: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training):
    x, layer = array(6, 5) * 3 + 1, nn.BatchNorm(dtype=td.f64)
    layer(x)
    layer.running_mean.assign(array(5, seed=1)), layer.running_variance.assign(array(5, seed=2) ** 2 + 1)
    mean, variance = (torch.tensor(np.array(v.value())) for v in (layer.running_mean, layer.running_variance))
    compare(layer, x, [layer.scale, layer.bias],
            lambda x, w, b: F.batch_norm(x, None if training else mean, None if training else variance, w, b, training, eps=1e-3), training)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal):
    layer = nn.MultiHeadAttention(2, 3, causal=causal, dtype=td.f64)
    x = array(2, 5, 6)
    layer(x)
    parts = [layer.query, layer.key, layer.value, layer.output]

    def forward(x, *v):
        q, k, w = ((x @ v[2 * i] + v[2 * i + 1]).unflatten(-1, (2, 3)).transpose(1, 2) for i in range(3))
        mixed = F.scaled_dot_product_attention(q, k, w, is_causal=causal)
        return mixed.transpose(1, 2).flatten(2) @ v[6] + v[7]
    compare(layer, x, [v for part in parts for v in (part.kernel, part.bias)], forward)


@pytest.mark.parametrize("reverse", [False, True])
def test_lstm(reverse):
    layer = nn.LSTM(4, return_sequences=True, reverse=reverse, dtype=td.f64)
    x = array(2, 5, 3)
    layer(x)

    def forward(x, w, u, b):
        zero = torch.zeros(1, 2, 4, dtype=torch.float64)
        x = x.flip(1) if reverse else x
        y = torch._VF.lstm(x, (zero, zero), (w.T, u.T, b, torch.zeros_like(b)), True, 1, 0.0, True, False, True)[0]
        return y.flip(1) if reverse else y
    compare(layer, x, [layer.kernel, layer.recurrent, layer.bias], forward)


# ---- losses

CLASSES = np.array([0, 2, 1, 1])
HOT = np.eye(3)[CLASSES]
LOSSES = {
    "mse": (nn.losses.mse, array(4, 3, seed=1), lambda y, p: F.mse_loss(p, y)),
    "mae": (nn.losses.mae, array(4, 3, seed=1), lambda y, p: F.l1_loss(p, y)),
    "huber": (lambda y, p: nn.losses.huber(y, p, delta=0.5), array(4, 3, seed=1), lambda y, p: F.huber_loss(p, y, delta=0.5)),
    "binary": (nn.losses.binary_crossentropy, HOT, lambda y, p: F.binary_cross_entropy_with_logits(p, y)),
    "categorical": (nn.losses.categorical_crossentropy, HOT, lambda y, p: F.cross_entropy(p, y)),
    "smoothed": (lambda y, p: nn.losses.categorical_crossentropy(y, p, label_smoothing=0.1), HOT, lambda y, p: F.cross_entropy(p, y, label_smoothing=0.1)),
    "sparse": (nn.losses.sparse_categorical_crossentropy, CLASSES, lambda y, p: F.cross_entropy(p, y)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    loss, y, function = LOSSES[name]
    p = array(4, 3)
    theirs = torch.tensor(p, requires_grad=True)
    wanted = function(torch.tensor(y), theirs)
    wanted.backward()
    value, slope = td.value_and_grad(lambda p: loss(y, p))(td.asarray(p))
    close(value, wanted)
    close(slope, theirs.grad)


# ---- optimizers

OPTIMIZERS = {
    "sgd": (lambda: nn.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": (lambda: nn.SGD(0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "adam": (lambda: nn.Adam(0.01), lambda p: torch.optim.Adam(p, 0.01)),
    "adamw": (lambda: nn.AdamW(0.01, weight_decay=0.1), lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_run(name):
    ours, theirs = OPTIMIZERS[name]
    x, y = array(16, 5), array(16, 2, seed=1)
    model = nn.Sequential(nn.Dense(8, activation="tanh", dtype=td.f64), nn.Dense(2, dtype=td.f64))
    model(x)
    other = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).double()
    with torch.no_grad():
        for layer, number in ((model[0], 0), (model[1], 2)):
            other[number].weight.copy_(torch.tensor(np.asarray(layer.kernel.value()).T))
            other[number].bias.copy_(torch.tensor(np.asarray(layer.bias.value())))
    optimizer, peer = ours(), theirs(other.parameters())

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = nn.losses.mse(y, model(x))
        optimizer.minimize(tape, loss, model)
        return loss

    for _ in range(20):
        peer.zero_grad()
        wanted = F.mse_loss(other(torch.tensor(x)), torch.tensor(y))
        wanted.backward()
        peer.step()
        np.testing.assert_allclose(float(step(x, y)), wanted.item(), rtol=1e-6)
    for layer, number in ((model[0], 0), (model[1], 2)):
        np.testing.assert_allclose(np.asarray(layer.kernel.value()).T, other[number].weight.detach().numpy(), rtol=1e-6, atol=1e-8)


# ---- mixed precision ------------------------------------------------------------------------------


class Mixed(nn.Module):
    def __init__(self):
        self.embed, self.norm = nn.Embedding(20, 16), nn.LayerNorm()
        self.up, self.down, self.head = nn.Dense(32, activation="gelu"), nn.Dense(16), nn.Dense(20)

    def __call__(self, ids):
        h = self.embed(ids)
        return self.head(h + self.down(self.up(self.norm(h))))


def test_mixed_precision_is_as_near_f32_as_pytorchs():
    """The gradients of a bf16 step differ from those of f32 no more than twice as much as PyTorch's do under its autocast."""
    ids = np.random.default_rng(0).integers(0, 20, (4, 8))
    labels = np.random.default_rng(1).integers(0, 20, (4, 8))
    model = Mixed()
    model(ids)
    names = [name for name, _ in model.named_variables()]

    def step(autocast):
        def f(ids, labels):
            with td.GradientTape() as tape:
                loss = nn.losses.sparse_categorical_crossentropy(labels, model(ids))
            return loss, [g.dense() if isinstance(g, td.RowGradient) else g for g in tape.gradient(loss, model.variables())]

        return td.function(f, autocast=autocast)(td.asarray(ids), td.asarray(labels))

    def theirs(enabled):
        w = {name: torch.tensor(np.asarray(v.value()), requires_grad=True) for name, v in model.named_variables()}
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            h = F.embedding(torch.tensor(ids), w["embed/table"])
            n = F.layer_norm(h, (16,), w["norm/scale"], w["norm/bias"])
            u = F.gelu(F.linear(n, w["up/kernel"].T, w["up/bias"]))
            y = F.linear(h + F.linear(u, w["down/kernel"].T, w["down/bias"]), w["head/kernel"].T, w["head/bias"])
            loss = F.cross_entropy(y.float().reshape(-1, 20), torch.tensor(labels).reshape(-1))
        loss.backward()
        return loss, [w[name].grad for name in names]

    (exact, slopes), (loss, mixed) = step(None), step(td.bf16)
    (their_exact, their_slopes), (their_loss, their_mixed) = theirs(False), theirs(True)
    assert abs(float(exact) - their_exact.item()) < 1e-5
    assert abs(float(loss) - their_loss.item()) < 0.02
    for name, a, b, c, d in zip(names, slopes, mixed, their_slopes, their_mixed):
        assert b.dtype == td.f32
        np.testing.assert_allclose(np.asarray(a), c.numpy(), atol=1e-6, err_msg=name)
        ours, peer = np.linalg.norm(np.asarray(a) - np.asarray(b)), np.linalg.norm((c - d).numpy())
        assert ours <= 2 * peer + 0.005 * np.linalg.norm(c.numpy()), (name, ours, peer)


def test_a_dynamic_loss_scale_does_what_pytorchs_does():
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    theirs = torch.tensor([1.0, 2.0], requires_grad=True)
    sgd = torch.optim.SGD([theirs], 0.1)
    w = td.Variable(td.constant([1.0, 2.0]))
    optimizer = nn.LossScaleOptimizer(nn.SGD(0.1), initial=2.0**10, growth_steps=2)

    @td.function
    def step(factor):
        with td.GradientTape() as tape:
            loss = td.sum(td.square(w.value())) * factor
        optimizer.minimize(tape, loss, [w])

    for factor in (1.0, 1.0, np.inf, 1.0, np.nan, 1.0, 1.0, 1.0):
        sgd.zero_grad()
        scaler.scale((theirs**2).sum() * factor).backward()
        scaler.step(sgd)
        scaler.update()
        step(factor)
        assert float(optimizer.loss_scale.value()) == scaler.get_scale()
        np.testing.assert_allclose(np.asarray(w.value()), theirs.detach().numpy(), rtol=1e-6)


# ---- L-BFGS ---------------------------------------------------------------------------------------


def rosenbrock(x, xp):
    return xp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def logistic(x, xp):
    a, y = array(60, 5, seed=1), np.sign(array(60, seed=2))
    if xp is torch:
        a, y = torch.tensor(a), torch.tensor(y)
    return xp.mean(xp.log1p(xp.exp(-y * (a @ x)))) + 0.01 * xp.sum(x**2)


def beale(x, xp):
    return (1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2 + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2


@pytest.mark.parametrize("f, start", [(rosenbrock, [-1.2, 1.0, -1.2, 1.0, 0.5]), (logistic, [0.0] * 5), (beale, [1.0, 1.0])])
def test_lbfgs_ends_where_scipy_and_pytorch_end(f, start):
    optimize = pytest.importorskip("scipy.optimize")
    wanted = optimize.minimize(lambda x: float(f(x, np)), start, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 500})
    theirs = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    evaluated = []
    torch_lbfgs = torch.optim.LBFGS([theirs], max_iter=200, history_size=10, line_search_fn="strong_wolfe", tolerance_grad=1e-9, tolerance_change=1e-14)

    def closure():
        torch_lbfgs.zero_grad()
        loss = f(theirs, torch)
        loss.backward()
        evaluated.append(loss)
        return loss

    torch_lbfgs.step(closure)
    x = td.Variable(td.constant(start, td.f64))
    result = nn.LBFGS(max_iterations=200, tolerance_gradient=1e-9, tolerance_change=1e-14).minimize(lambda: f(x.value(), td), [x])
    assert result.converged
    np.testing.assert_allclose(result.loss, wanted.fun, atol=1e-9)
    np.testing.assert_allclose(np.asarray(x.value()), theirs.detach().numpy(), atol=2e-5)
    # As good as PyTorch's in evaluations of the loss, give or take a few.
    assert result.evaluations <= 1.3 * len(evaluated) + 5
