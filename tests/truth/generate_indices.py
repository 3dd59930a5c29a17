"""Statements of ops that read or write at indices."""

from generate import INTS
from generate_elementwise import back
from generate_table import op
from program_text import Size


def pointed(g, v):
    return any(g.least(s) > 0 for s in v.shape)


@op("gather", "embedding")
def gather(g, name):
    x = g.floats(test=lambda v: pointed(g, v) and (name == "gather" or g.least(v.shape[0]) > 0), least_rank=1)
    axis = 0 if name == "embedding" else g.random.choice([a for a, s in enumerate(x.shape) if g.least(s) > 0])
    picks = g.indices(g.some_shape(g.random.choice([0, 1, 1, 2])), x.shape[axis])
    shape = x.shape[:axis] + picks.shape + x.shape[axis + 1:]
    if g.largest(shape) <= g.room:
        g.emit(name, [x, picks], {} if name == "embedding" else {"axis": axis}, "float", shape, x.most)


@op("take_along_axis")
def take_along_axis(g, name):
    x = g.floats(test=lambda v: pointed(g, v), least_rank=1)
    axis = g.random.choice([a for a, s in enumerate(x.shape) if g.least(s) > 0])
    from_end = g.random.randrange(2)
    shape = x.shape[:axis] + [Size.of(g.random.choice([1, 2, 3]))] + x.shape[axis + 1:]
    picks = g.indices(shape, x.shape[axis], negative=from_end == 1)
    g.emit(name, [x, picks], {"axis": axis, "from_end": from_end}, "float", shape, x.most)


@op("scatter_add", "scatter_max", "scatter_min", "scatter_mul")
def scatter(g, name):
    x = g.floats(test=lambda v: pointed(g, v), least_rank=1)
    axis = g.random.choice([a for a, s in enumerate(x.shape) if g.least(s) > 0])
    along = g.random.randrange(2)
    count = Size.of(g.random.choice([1, 2, 3]))
    if along:
        shape = x.shape[:axis] + [count] + x.shape[axis + 1:]
        picks, updates = g.indices(shape, x.shape[axis]), g.like(shape)
    else:
        picks = g.indices([count], x.shape[axis])
        updates = g.like(x.shape[:axis] + [count] + x.shape[axis + 1:])
    if name == "scatter_mul":  # The slope at 0 has no slope.
        x, updates = g.positive(g.within(x, 3)), g.positive(g.within(updates, 3))
    most = x.most * max(1, updates.most) ** 3 if name == "scatter_mul" else x.most + 3 * updates.most
    g.emit(name, [x, picks, updates], {"axis": axis, "along": along}, "float", x.shape, most)


@op("put")
def put(g, name):
    x = g.floats(test=lambda v: v.rank and g.least(v.shape[0]) > 0, least_rank=1)
    if g.random.random() < 0.5:
        picks = g.indices([], x.shape[0])
        element = g.like(x.shape[1:])
    else:
        picks = g.indices([Size.of(g.random.choice([1, 2]))], x.shape[0])
        element = g.like(picks.shape + x.shape[1:])
    g.emit(name, [x, picks, element], {}, "float", x.shape, max(x.most, element.most))


@op("first_equal")
def first_equal(g, name):
    x = g.argument(g.random.choice(INTS), [g.some_size()], 0, 2)
    g.emit(name, [x], {}, "i64", x.shape, 9)
    back(g)


@op("one_hot")
def one_hot(g, name):
    depth = g.random.choice([2, 3, 4])
    x = g.argument(g.random.choice(INTS), g.some_shape(g.random.choice([0, 1, 1, 2])), -1, depth)
    y = g.emit(name, [x], {"depth": depth, "dtype": "float"}, "float", x.shape + [depth], 1)
    z = g.like([depth])
    g.emit("multiply", [y, z], {}, "float", y.shape, z.most)
