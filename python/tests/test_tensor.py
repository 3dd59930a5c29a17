"""Tensors: operators, subscripts, conversions, text, and errors with the lines they name."""
import copy
import gc
import operator
import pickle
import weakref

import numpy as np
import pytest

import tidemark as td


@pytest.fixture
def a():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert isinstance(ours, td.Tensor) and ours.shape == theirs.shape
    np.testing.assert_array_equal(np.asarray(ours), theirs)


# ---- operators ----

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
          operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("op", BINARY)
def test_operators_agree_with_numpy(op):
    x, y = np.array([1, 2, 3, 4], np.float32), np.array([2, 2, 1, 3], np.float32)
    same(op(td.asarray(x), td.asarray(y)), op(x, y))
    same(op(td.asarray(x), 2), op(x, 2))
    same(op(2, td.asarray(x)), op(2, x))
    same(op(x, td.asarray(y)), op(x, y))  # NumPy's operator leaves the work to ours.


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
def test_operators_of_bits_agree_with_numpy(op):
    x, y = np.array([12, 5], np.int32), np.array([1, 3], np.int32)
    same(op(td.asarray(x), td.asarray(y)), op(x, y))
    same(op(7, td.asarray(y)), op(7, y))


def test_unary_operators_and_divmod():
    x = np.array([-1.5, 2.0], np.float32)
    t = td.asarray(x)
    same(-t, -x)
    same(+t, x)
    same(abs(t), abs(x))
    same(~td.asarray([True, False]), [False, True])
    quotient, rest = divmod(t, 2)
    same(quotient, x // 2)
    same(rest, x % 2)


@pytest.mark.parametrize("digits", [None, 0, 2, -1])
def test_round_is_numpys(digits):
    x = np.array([-15.5, 2.0, 2.675, 0.125, 1234.5], np.float32)
    same(round(td.asarray(x), digits), np.round(x, digits or 0))
    whole = np.array([3, -7], np.int32)
    same(round(td.asarray(whole)), whole)


@pytest.mark.parametrize("reduce", [np.sum, np.prod, np.max, np.min, np.mean, np.any, np.all, np.cumsum, np.argmax])
def test_functions_of_numpy_ask_the_method(reduce, a):
    np.testing.assert_allclose(reduce(td.asarray(a), axis=1), reduce(a, axis=1), rtol=1e-5)


def test_matmul_operator_and_its_reflection(a):
    same(td.asarray(a) @ a.swapaxes(1, 2), a @ a.swapaxes(1, 2))
    same(a[0] @ td.asarray(a[0].T), a[0] @ a[0].T)


def test_plain_numbers_are_weak():
    assert (td.ones(2, "f16") * 0.5).dtype is td.f16
    assert (td.ones(2, "i32") + 0.5).dtype is td.f32
    assert (td.ones(2) * np.float64(2)).dtype is td.f32  # A float of Python's too.
    assert (td.ones(2) * np.ones(2)).dtype is td.f64
    with pytest.raises(td.UserError, match="300 does not fit u8"):
        td.ones(2, "u8") + 300
    with pytest.raises(td.UserError, match="does not fit i64"):
        td.ones(2) + 10 ** 30


def test_objects_of_others_have_their_own_operators():
    class Other:
        def __radd__(self, x):
            return "theirs"
    assert td.ones(2) + Other() == "theirs"
    with pytest.raises(TypeError):
        td.ones(2) + "text"
    assert (td.ones(2) == "text") is False


def test_augmented_operators_rebind():
    x = td.ones(2)
    y = x
    x += 1
    assert x.tolist() == [2, 2] and y.tolist() == [1, 1]


# ---- subscripts ----

KEYS = [0, -1, (1, 2), (0, -1, 3), slice(None), slice(1, None), slice(None, None, -1), (slice(None), slice(0, 2)),
        None, Ellipsis, (Ellipsis, 0), (0, Ellipsis), (slice(None), None), (Ellipsis, None, slice(1, 3)), (),
        [0, 1, 1], np.array([1, 0]), (slice(None), [2, 0]), (0, np.array([[0, 1], [2, 2]])), np.array([True, False]),
        (slice(None), np.array([True, False, True])), [], slice(5, 9), (slice(None, None, 2), 1),
        ([0, 1], [2, 0]), ([1, 0, 1], 0, [3, -1, 0]), ([[0], [1]], slice(1, None), [0, 2, 3]), (np.array([True, False]), [0, 2]),
        (slice(None), [[0], [2]], [1, -1]), ([0, 1], None, [1, 1]), (..., [0, 1], [2, 3]), np.ix_([0, 1], [2], [0, 3])]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_subscripts_agree_with_numpy(key, a):
    if isinstance(key, list) and not key:
        key = np.array([], np.int64)
    same(td.asarray(a)[key], a[key])


def test_several_index_arrays_have_gradients(a):
    rows, columns = np.array([0, 1, 0]), np.array([2, 2, 2])
    slope = td.grad(lambda x: td.sum(x[rows, columns] * 2))(td.asarray(a))
    wanted = np.zeros_like(a)
    np.add.at(wanted, (rows, columns), 2)
    same(slope, wanted)


def test_several_index_arrays_say_which_is_out_of_range(a):
    with pytest.raises(td.UserError) as caught:
        td.asarray(a)[[0, 1], :, [0, 4]]
    first, _, remedy = str(caught.value).splitlines()
    assert first == "subscript: index 4 is out of range for axis 2 of f32[2, 3, 4]" and remedy == "  indices go from -4 to 3"


def test_a_mask_selects_elements(a):
    t = td.asarray(a)
    same(t[t > 5], a[a > 5])
    same(t[[]], a[[]])


def test_views_share_memory(a):
    t = td.asarray(a)
    assert np.shares_memory(np.asarray(t[1, :, ::2]), a) and np.shares_memory(np.asarray(t.T), a)


def test_an_index_out_of_range_is_an_index_error(a):
    with pytest.raises(IndexError) as caught:
        td.asarray(a)[2]
    assert isinstance(caught.value, td.UserError)
    assert str(caught.value).splitlines()[0] == "subscript: index 2 is out of range for axis 0 of f32[2, 3, 4]"
    with pytest.raises(IndexError, match="4 indices for the 3 axes of f32\\[2, 3, 4\\]\n.*\n  give at most one for each axis; None adds one"):
        td.asarray(a)[0, 0, 0, 0]


@pytest.mark.parametrize("key", [True, 1.5, "x", (0, 2.0), {}], ids=str)
def test_what_is_no_index_is_a_type_error(key, a):
    with pytest.raises(TypeError, match="is not an index\n.*\n  use integers, slices, None, ..., or arrays"):
        td.asarray(a)[key]


def test_assignment_is_refused_with_the_remedy(a):
    x = td.asarray(a)
    with pytest.raises(TypeError) as caught:
        x[0, 1:3] = 1
    assert str(caught.value).splitlines()[0] == "x[...] = value: the elements of a Tensor do not change"
    assert str(caught.value).splitlines()[2] == (
        "  write x = x.at[...].set(value); state that changes is a td.Variable, which has assign_slice")
    wanted = a.copy()
    wanted[0, 1:3] = 1
    same(x.at[0, 1:3].set(1), wanted)
    same(td.update(x, (0, slice(1, 3)), 1), wanted)
    wanted[1] += 2
    wanted[1] *= 3
    same(x.at[0, 1:3].set(1).at[1].add(2).at[1].multiply(3), wanted)


def test_len_iteration_and_in(a):
    t = td.asarray(a)
    assert len(t) == 2 and [row.shape for row in t] == [(3, 4)] * 2
    first, second = td.asarray([1, 2])
    assert (first.item(), second.item()) == (1, 2)
    assert 5 in t and 99 not in t
    for use in (len, iter):
        with pytest.raises(TypeError, match="f32\\[\\] has no axes"):
            use(td.asarray(1.0))


# ---- conversions ----

def test_one_element_is_a_number():
    assert float(td.asarray([2.5])) == 2.5 and int(td.asarray(2.5)) == 2 and bool(td.asarray(1))
    assert [10, 20][td.asarray(1)] == 20 and td.asarray([[7]]).item() == 7
    assert isinstance(td.asarray(1).item(), int) and isinstance(td.asarray(True).item(), bool)
    with pytest.raises(TypeError, match="f32\\[\\] is not one integer"):
        [1][td.asarray(0.0)]
    for use in (float, int, bool):
        with pytest.raises(td.UserError, match="item: needs one element, f32\\[2\\] has 2\n.*\n.*or read all with tolist\\(\\)"):
            use(td.ones(2))


def test_properties(a):
    t = td.asarray(a)
    assert (t.shape, t.ndim, t.rank, t.size, t.nbytes, t.itemsize, t.dtype) == ((2, 3, 4), 3, 3, 24, 96, 4, td.f32)
    same(t.T, a.T)
    same(t.mT, a.swapaxes(1, 2))
    assert t.device == "cpu" and t.to_device("cpu") is t
    made = td.ones(1)
    assert made.source[0] == __file__ and made.source[2] == "test_properties"


def test_identical_is_of_bits(a):
    x = td.asarray([0.0, np.nan])
    assert td.identical(x, np.array([0.0, np.nan], np.float32)) and td.identical(x, x)
    assert not td.identical(x, -x) and not td.identical(x, td.cast(x, td.f64)) and not td.identical(x, x[None])


def test_names(a):
    same(td.asarray(a)[:, td.newaxis], a[:, np.newaxis])
    with pytest.raises(AttributeError, match="module 'tidemark' has no attribute 'sofmax'") as refused:
        td.sofmax
    assert refused.value.name == "sofmax" and refused.value.obj is td  # By which Python finds the nearest name.


def test_methods_are_those_of_arrays(a):
    t = td.asarray(a)
    same(t.reshape(6, 4), a.reshape(6, 4))
    same(t.reshape((4, -1)), a.reshape(4, -1))
    same(t.transpose(1, 0, 2), a.transpose(1, 0, 2))
    same(t.astype("i32"), a.astype(np.int32))
    same(t.sum(axis=1, keepdims=True), a.sum(1, keepdims=True))
    same(t.max(), a.max())
    same(t.flatten(), a.ravel())
    same(t.clip(3, 9), a.clip(3, 9))
    same(t.argmax(-1), a.argmax(-1))


def test_lists_become_tensors():
    assert td.asarray([[1, 2], [3, 4]]).dtype is td.i32 and td.asarray([1, 2.5]).dtype is td.f32
    assert td.asarray([True, False]).dtype is td.bool and td.asarray([]).shape == (0,)
    assert td.asarray([[1, 2]], td.f64).tolist() == [[1.0, 2.0]]
    same(td.asarray([td.ones(2), np.zeros(2, np.float32)]), [[1, 1], [0, 0]])
    with pytest.raises(td.UserError, match="lists of different lengths at depth 1 \\(2 and 1\\)"):
        td.asarray([[1, 2], [3]])
    with pytest.raises(td.UserError, match="numbers and lists are mixed at the same depth"):
        td.asarray([1, [2]])
    with pytest.raises(td.UserError, match="3000000000 does not fit i32\n.*\n  name a wider dtype: td.constant\\(values, td.i64\\)"):
        td.constant([3_000_000_000])
    with pytest.raises(td.UserError, match="constant: 'x' \\(str\\) is not a number"):
        td.constant(["x"])


# ---- text ----

@pytest.mark.parametrize("array", [
    np.array([1.0, 2.5], np.float32), np.arange(6).reshape(2, 3), np.array([[1e-8, 1.0]], np.float64), np.array([True, False]),
    np.arange(2000, dtype=np.float32), np.arange(24.0).reshape(2, 3, 4), np.array(1.5), np.random.default_rng(0).normal(size=(3, 9)),
    np.arange(40), np.zeros((0, 3), np.float32)], ids=lambda a: str(a.shape))
def test_text_is_that_of_numpy(array):
    t = td.asarray(array)
    assert str(t) == str(array)
    if array.size == 0:
        assert repr(t) == "Tensor([], shape=[0, 3], dtype=f32)"
        return
    # "array(" has one letter less than "Tensor(", and our dtypes have other names.
    theirs = np.array2string(array, separator=", ", prefix="Tensor(")
    assert repr(t).startswith("Tensor(" + theirs) and repr(t).endswith(f"dtype={t.dtype})")
    assert max(map(len, repr(t).splitlines())) <= 76


def test_formats():
    assert f"{td.asarray(2.5):.2f}" == "2.50" and f"{td.asarray(3):d}" == "3" and f"{td.ones(2)}" == "[1. 1.]"
    with pytest.raises(TypeError, match="\".2f\" is for one number, and this is f32\\[2\\]"):
        f"{td.ones(2):.2f}"


# ---- copies and lifetimes ----

@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"])
def test_pickles_keep_every_bit(protocol, dtype, a):
    t = td.cast(a.T, dtype)
    back = pickle.loads(pickle.dumps(t, protocol))
    assert back.dtype is t.dtype and back.shape == t.shape and back.tobytes() == t.tobytes()


def test_copies(a):
    t = td.asarray(a)
    assert copy.copy(t) is t
    deep = copy.deepcopy({"x": t})["x"]
    assert not np.shares_memory(np.asarray(deep), a) and deep.tolist() == t.tolist()
    assert copy.deepcopy(td.f32) is td.f32 and pickle.loads(pickle.dumps(td.f32)) is td.f32


def test_a_tensor_dies_with_its_last_name():
    gc.disable()
    try:
        x = td.ones((100, 100))
        y = x[1:]
        alive = [weakref.ref(x), weakref.ref(y)]
        del x, y
        assert [each() for each in alive] == [None, None]
    finally:
        gc.enable()


def test_tensors_are_not_hashable():
    with pytest.raises(TypeError):
        hash(td.ones(1))


# ---- errors ----

def test_errors_name_the_line_of_the_caller():
    with pytest.raises(td.UserError) as caught:
        td.reshape(td.ones(6), (4, 4))
    error = caught.value
    assert isinstance(error, ValueError) and isinstance(error, td.Error)
    assert (error.file, error.function) == (__file__, "test_errors_name_the_line_of_the_caller")
    assert str(error).splitlines() == [
        "reshape: f32[6] has 6 elements, [4, 4] has 16", f"  at test_tensor.py:{error.line}",
        "  the number of elements must not change; one size may be -1, which is inferred"]


def test_the_classes_of_errors():
    assert issubclass(td.OutOfMemory, MemoryError) and issubclass(td.OutOfMemory, td.DeviceError)
    assert issubclass(td.OverBudget, td.UserError) and issubclass(td.InternalError, td.Error)
    with pytest.raises(td.OutOfMemory) as caught:
        td.zeros((1 << 40,))
    assert caught.value.asked == 1 << 42 and caught.value.limit > 0 and caught.value.in_use >= 0
    assert caught.value.file == __file__


# ---- places


PLACES = {
    "rows": ([2, 0],), "negative": ([-1, 1],), "pairs": ([0, 2, 1], [3, 0, -1]), "pairs twice": ([0, 0, 1], [3, 3, 1]),
    "column": (slice(None), [3, 1]), "broadcast": ([[0], [2]], [1, 3]), "number and list": (1, [0, 0, 2]), "part and list": (slice(1, 3), [2, 0]),
    "backwards and list": (slice(None, None, -1), [1]), "apart": ([0, 2], slice(None), [0, 1]), "middle": (slice(None), [0, 2], slice(None)),
    "ends": (..., [1, 0]), "three": ([0, 1], [1, 2], [0, 1]), "new axis": (None, [0, 2]), "mask": (np.array([True, False, True]),),
    "mask of all": "all", "mask and slice": (np.array([True, False, True]), slice(1, 3)), "number": (1,), "slices": (slice(1), slice(None, None, 2)),
    "nothing": (np.zeros(0, np.int64),),
}
CHANGES = {"set": lambda a, place, v: a.__setitem__(place, v), "add": np.add.at, "multiply": np.multiply.at, "min": np.minimum.at, "max": np.maximum.at}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", PLACES)
def test_places_are_changed_as_in_numpy(name, change):
    rank = 3 if name in ("apart", "middle", "three", "mask and slice") else 2
    a = np.random.default_rng(3).normal(size=(3, 4, 2)[:rank]).astype(np.float32)
    place = (a > 0,) if PLACES[name] == "all" else PLACES[name]
    shape = a[place].shape
    for value in (np.float32(0.5), np.random.default_rng(4).normal(size=shape).astype(np.float32)):
        wanted = a.copy()
        CHANGES[change](wanted, place, value)
        x = td.asarray(a)
        # Products of several updates of one element are rounded in the order of the updates, as NumPy's are.
        np.testing.assert_array_equal(np.asarray(getattr(x.at[place], change)(value)), wanted)
        np.testing.assert_array_equal(np.asarray(x), a)
        if not any(isinstance(part, np.ndarray) for part in place):
            f = td.function(lambda x, v: getattr(x.at[place], change)(v))
            np.testing.assert_array_equal(np.asarray(f(x, value)), wanted)
    np.testing.assert_array_equal(np.asarray(x.at[place].get()), a[place])


def test_places_of_variables_and_masks_in_functions():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    v, wanted = td.Variable(a), a.copy()
    v[[0, 2], [1, 3]] = [7, 8]
    wanted[[0, 2], [1, 3]] = [7, 8]
    np.testing.assert_array_equal(np.asarray(v.value()), wanted)
    clipped = td.function(lambda x: x.at[x > 5].set(0).at[x < 2].add(100))
    np.testing.assert_array_equal(np.asarray(clipped(a)), np.where(a > 5, 0, np.where(a < 2, a + 100, a)))
    with pytest.raises(td.UserError, match=r"subscript: index 4 is out of range for axis 1 of f32\[3, 4\]"):
        td.asarray(a).at[[0], [4]].set(1)
    with pytest.raises(td.UserError, match=r"subscript: the mask bool\[2\] does not fit f32\[3, 4\] at axis 0"):
        td.asarray(a).at[np.array([True, False])].set(1)


def test_the_gradient_of_a_changed_place():
    x, v = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3)), td.asarray([5.0, 6.0])
    dx, dv = td.grad(lambda x, v: (x.at[[0, 1], [2, 0]].set(v) ** 2).sum(), argnums=(0, 1))(x, v)
    np.testing.assert_array_equal(np.asarray(dx), [[0, 2, 0], [0, 8, 10]])
    np.testing.assert_array_equal(np.asarray(dv), [10, 12])
    dx, dv = td.grad(lambda x, v: (x.at[:, [1, 1]].add(v) ** 2).sum(), argnums=(0, 1))(x, v)
    np.testing.assert_array_equal(np.asarray(dv), [2 * (12 + 15)] * 2)
