"""Statements of products, windows, and composites of them."""

from generate_table import csv, op
from program_text import Size


@op("matmul")
def matmul(g, name):
    a = g.within(g.floats(least_rank=1), 4)
    if a.rank == 1:
        b = g.like(a.shape + ([g.some_size()] if g.random.random() < 0.7 else []))
        g.emit(name, [a, b], {}, "float", b.shape[1:], a.most * b.most * 5)
        return
    ta, tb = g.random.randrange(2), g.random.randrange(2)
    inner, outer = (a.shape[-2], a.shape[-1]) if ta else (a.shape[-1], a.shape[-2])
    if g.random.random() < 0.2 and not tb:
        b = g.like([inner])
        g.emit(name, [a, b], {"transpose_a": ta}, "float", a.shape[:-2] + [outer], a.most * b.most * 5)
        return
    columns = g.some_size()
    b = g.like(([] if g.random.random() < 0.7 else a.shape[:-2]) + ([columns, inner] if tb else [inner, columns]))
    g.emit(name, [a, b], {"transpose_a": ta, "transpose_b": tb}, "float", a.shape[:-2] + [outer, columns],
           a.most * b.most * 5)


@op("tensordot")
def tensordot(g, name):
    a = g.within(g.floats(least_rank=1), 4)
    axes = g.random.randint(0 if a.rank < 2 else 1, min(2, a.rank))
    b = g.like(a.shape[a.rank - axes:] + [g.some_size()])
    g.emit(name, [a, b], {"axes": axes}, "float", a.shape[:a.rank - axes] + b.shape[axes:], a.most * b.most * 8)


@op("einsum")
def einsum(g, name):
    text = g.random.choice(["ij,jk>ik", "bij,bjk>bik", "ij,ij>i", "ij>ji", "ii>i", "ij,kj>ik", "i,j>ij", "ij>", "ij,j",
                            "bij,bj>ib", "ijk>ki"])
    letters = {letter: g.some_size() for letter in "bijk"}
    inputs = text.split(">")[0].split(",")
    output = text.split(">")[1] if ">" in text else "i"
    operands = [g.within(g.like([letters[c] for c in part]), 4) for part in inputs]
    most = 4.0
    for x in operands:
        most *= x.most * 3
    g.emit(name, operands, {"subscripts": text}, "float", [letters[c] for c in output], most)


@op("outer")
def outer(g, name):
    a, b = g.floats(1), g.floats(1)
    if g.largest(a.shape + b.shape) <= g.room:
        g.emit(name, [a, b], {}, "float", a.shape + b.shape, a.most * b.most)


def image(g, channels, test=lambda v: True):
    found = g.visible(lambda v: v.dtype == "float" and v.rank == 4 and v.shape[3] == channels and test(v))
    if found and g.random.random() < 0.5:
        return g.random.choice(found)
    height, width = g.random.choice([3, 4, 5]), g.random.choice([3, 4])
    batch = Size.of(g.random.choice(list(g.program.sizes) or [2])) if g.random.random() < 0.5 else Size.of(1)
    return g.argument("float", [batch, height, width, channels])


def image_size(size, kernel, stride, low, high, dilation):
    return max(0, (size + low + high - (kernel - 1) * dilation - 1) // stride + 1)


@op("conv3d")
def conv3d(g, name):
    pick = g.random.choice
    groups = pick([1, 1, 2])
    sizes, inputs, outputs = [pick([2, 3]), pick([2, 3]), pick([2, 4])], groups * pick([1, 2]), groups * pick([1, 2])
    x = g.argument("float", [Size.of(pick([1, 2]))] + sizes + [inputs])
    kernel = [pick([1, 2]), pick([1, 2]), pick([1, 2, 3])]
    w = g.argument("float", kernel + [inputs // groups, outputs], -1, 1)
    stride, dilation, spread = ([pick([1, 1, 2]) for _ in range(3)] for _ in range(3))
    low, high = [pick([0, 0, 1, -1]) for _ in range(3)], [pick([0, 1]) for _ in range(3)]
    out = [image_size((sizes[i] - 1) * spread[i] + 1, kernel[i], stride[i], low[i], high[i], dilation[i]) for i in range(3)]
    g.emit(name, [x, w], {"stride": csv(stride), "pad_low": csv(low), "pad_high": csv(high), "dilation": csv(dilation), "groups": groups,
                          "spread": csv(spread), "by_channel": 0}, "float", [x.shape[0]] + out + [outputs], x.most * 24)


@op("conv_kernel")
def conv_kernel(g, name):
    pick = g.random.choice
    groups, kernel, sizes = pick([2, 4]), [pick([1, 2]), pick([1, 3])], [pick([3, 5]), 4]
    stride, dilation, low, high = ([pick(list(of)) for _ in range(2)] for of in ((1, 2), (1, 1, 2), (0, 1), (0, 1)))
    out = [image_size(sizes[i], kernel[i], stride[i], low[i], high[i], dilation[i]) for i in range(2)]
    if 0 in out:
        return
    x = g.argument("float", [Size.of(size) for size in (2, *sizes, 4)], -1, 1)
    by = g.argument("float", [Size.of(size) for size in (2, *out, 4)], -1, 1)
    g.emit(name, [x, by], {"stride": csv(stride), "pad_low": csv(low), "pad_high": csv(high), "dilation": csv(dilation), "groups": groups,
                           "spread": "1,1", "by_channel": 0, "taps": csv(kernel)}, "float", [Size.of(size) for size in (*kernel, 4 // groups, 4)], 60)


@op("distances")
def distances(g, name):
    rows, columns, inner = (g.random.choice([1, 2, 4]) for _ in range(3))
    a = g.argument("float", [Size.of(rows), Size.of(inner)], -1, 1)
    b = g.argument("float", [Size.of(inner), Size.of(columns)], 2, 3)
    g.emit(name, [a, b], {"euclidean": 1}, "float", [Size.of(rows), Size.of(columns)], 8)


@op("weighted_differences")
def weighted_differences(g, name):
    rows, columns, inner = (g.random.choice([1, 2, 4]) for _ in range(3))
    operands = [g.argument("float", [Size.of(size) for size in sizes], -1, 1) for sizes in ((rows, inner), (rows, columns), (inner, columns))]
    g.emit(name, operands, {}, "float", [Size.of(rows), Size.of(columns)], 8)


@op("resample")
def resample(g, name):
    if g.program.dtype not in ("f32", "f64"):  # Calls cast to f32; the op takes no 16 bits.
        return
    x = g.floats(least_rank=1)
    axes = [i for i in range(x.rank) if x.shape[i].is_known() and x.shape[i].known() > 0]
    if not axes:
        return
    axis, size = g.random.choice(axes), g.random.choice([1, 2, 3, 5])
    shape = list(x.shape)
    shape[axis] = Size.of(size)
    g.emit(name, [x], {"axis": axis, "size": size, "sampling": g.random.randrange(4), "antialias": g.random.randrange(2),
                       "transposed": g.random.randrange(2)}, "float", shape, x.most * 2 * max(1, x.shape[axis].known()))


@op("conv2d")
def conv2d(g, name):
    pick = g.random.choice
    groups = pick([1, 1, 2])
    inputs, outputs = groups * pick([1, 2]), groups * pick([1, 2])
    x = g.within(image(g, Size.of(inputs), lambda v: v.shape[1].is_known() and v.shape[2].is_known()), 3)
    kernel = [pick([1, 2, 3]), pick([1, 2, 2])]
    w = g.argument("float", kernel + [inputs // groups, outputs], -1, 1)
    stride, dilation = [pick([1, 1, 2]), pick([1, 1, 2])], [pick([1, 1, 2]), pick([1, 1, 2])]
    low, high = [pick([0, 0, 1, -1]), pick([0, 1, 2])], [pick([0, 1]), pick([0, 0, 1, -1])]
    spread = [pick([1, 1, 2]), pick([1, 1, 3])]
    by_channel = int(groups == 1 and spread == [1, 1] and g.program.dtype in ("f32", "f64"))  # Another order of the same sum.
    sizes = [image_size((x.shape[1 + i].known() - 1) * spread[i] + 1, kernel[i], stride[i], low[i], high[i], dilation[i]) for i in range(2)]
    g.emit(name, [x, w], {"stride": csv(stride), "pad_low": csv(low), "pad_high": csv(high),
                          "dilation": csv(dilation), "groups": groups, "spread": csv(spread), "by_channel": by_channel}, "float",
           [x.shape[0]] + sizes + [outputs], x.most * 12)


def same_or_valid(size, kernel, stride, dilation, same):
    return -(-size // stride) if same else image_size(size, kernel, stride, 0, 0, dilation)


@op("td_conv2d", "max_pool", "avg_pool")
def windows(g, name):
    pick = g.random.choice
    groups = pick([1, 1, 2]) if name == "td_conv2d" else 1
    inputs, outputs = groups * pick([1, 2]), groups * pick([1, 2])
    x = g.within(image(g, Size.of(inputs), lambda v: v.shape[1].is_known() and v.shape[2].is_known()), 3)
    sizes = [x.shape[1].known(), x.shape[2].known()]
    if min(sizes) < 2:
        return
    kernel = [pick([1, 2]), pick([1, 2])]
    nchw, same = g.random.randrange(2), g.random.randrange(2)
    strides, dilations = [pick([1, 2]), pick([1, 2])], [1, 1]
    attrs = {"strides": csv(strides), "same": same, "nchw": nchw}
    operands = [x]
    if nchw:
        operands = [g.emit("transpose", [x], {"order": "0,3,1,2"}, "float", [x.shape[0], x.shape[3], x.shape[1], x.shape[2]], x.most)]
    if name == "td_conv2d":
        if strides == [1, 1]:
            dilations = [pick([1, 2]), 1]
        kernel = [pick([1, 2]) if dilations[0] == 1 or sizes[0] > 2 else 1, kernel[1]]
        operands.append(g.argument("float", kernel + [inputs // groups, outputs], -1, 1))
        attrs |= {"dilations": csv(dilations), "groups": groups}
    else:
        outputs = inputs
        attrs["size"] = csv(kernel)
    out = [same_or_valid(s, k, t, d, same) for s, k, t, d in zip(sizes, kernel, strides, dilations)]
    shape = [x.shape[0], outputs] + out if nchw else [x.shape[0]] + out + [outputs]
    g.emit(name, operands, attrs, "float", shape, x.most * (8 if name == "td_conv2d" else 1))


@op("attention")
def attention(g, name):
    tokens, keys, features, width = g.some_size(), g.some_size(), Size.of(g.random.choice([2, 3])), g.some_size()
    if g.least(keys) == 0:
        keys = Size.of(3)
    heads = [Size.of(2)] if g.random.random() < 0.4 else []
    q, k, v = g.like(heads + [tokens, features]), g.like(heads + [keys, features]), g.like(heads + [keys, width])
    operands, attrs = [q, k, v], {"causal": g.random.randrange(2)}
    if g.random.random() < 0.4:
        operands.append(g.argument("bool", [tokens, keys]))
    if g.random.random() < 0.4:
        attrs["scale"] = 0.7
    g.emit(name, operands, attrs, "float", heads + [tokens, width], v.most)


@op("mse")
def mse(g, name):
    x = g.floats(test=lambda v: all(g.least(s) > 0 for s in v.shape))
    g.emit(name, [x, g.like(x.shape)], {}, "float", [], (x.most + 2) ** 2)


@op("sparse_softmax_cross_entropy")
def cross_entropy(g, name):
    x = g.floats(test=lambda v: v.rank and all(g.least(s) > 0 for s in v.shape), least_rank=1)
    if not all(g.least(s) > 0 for s in x.shape):
        return
    labels = g.indices(x.shape[:-1], x.shape[-1], negative=False)
    g.emit(name, [labels, x], {}, "float", [], x.most * 2 + 3)


@op("clip_by_norm")
def clip_by_norm(g, name):
    x = g.positive(g.floats(test=lambda v: all(g.least(s) > 0 for s in v.shape)))
    g.emit(name, [x], {"most": g.random.choice([0.3, 100.0])}, "float", x.shape, x.most)
