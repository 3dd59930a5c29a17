"""Memory is shared with NumPy, buffers, PyTorch and JAX in both directions, and freed by its owner."""
import array
import gc
import hashlib
import io
import threading
import weakref

import numpy as np
import pytest

import tidemark as td

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_shares_both_ways(dtype):
    a = np.arange(6).astype(dtype).reshape(2, 3)
    t = td.asarray(a)
    assert str(np.asarray(t).dtype) == dtype and np.shares_memory(np.asarray(t), a)
    assert t.tolist() == a.tolist()
    if dtype != "bool":
        a[0, 0] = 9
        assert t[0, 0].item() == 9  # What the owner writes, the tensor shows.


@pytest.mark.parametrize("view", [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::2], lambda a: a[1:, None],
                                  lambda a: a[:, :0], lambda a: np.broadcast_to(a[0], (5, 4)), lambda a: a[0, 0]])
def test_any_strides_are_shared(view):
    a = view(np.arange(12, dtype=np.float32).reshape(3, 4))
    t = td.asarray(a)
    np.testing.assert_array_equal(np.asarray(t), a)
    np.testing.assert_array_equal(np.asarray(td.exp(t)), np.asarray(td.exp(a.copy())))
    if a.size and a.ndim:
        assert np.shares_memory(np.asarray(t), a)


def test_elements_between_whole_ones_are_copied():
    packed = np.zeros(4, dtype=[("tag", "u1"), ("value", "f4")])
    packed["value"] = [1, 2, 3, 4]
    t = td.asarray(packed["value"])
    assert t.tolist() == [1, 2, 3, 4] and not np.shares_memory(np.asarray(t), packed)


def test_numpy_sees_a_read_only_array():
    t = td.ones((2, 3))
    a = np.asarray(t)
    assert not a.flags.writeable and np.shares_memory(a, t.numpy())
    with pytest.raises(ValueError):
        a[0] = 1
    changed = np.array(t)
    changed[0] = 5
    assert t.tolist() == [[1] * 3] * 2


def test_a_copy_is_a_copy():
    a = np.ones(3, np.float32)
    for t in (td.constant(a), td.asarray(a, copy=True), td.asarray(a, "f64")):
        a[0] += 1
        assert t.tolist() == [1 if t.dtype is td.f32 else t.tolist()[0], 1, 1]
    assert td.constant(np.ones(1, np.float32)).tolist() == [1]


def test_the_array_outlives_the_tensor_and_the_tensor_the_array():
    a = np.asarray(td.ones(1000))
    assert a.sum() == 1000
    t = td.asarray(np.ones(1000, np.float32))
    gc.collect()
    assert td.sum(t).item() == 1000


class Owner(np.ndarray):
    pass


def test_the_owner_is_released_with_the_last_tensor():
    gc.disable()
    try:
        a = np.ones(100, np.float32).view(Owner).copy()  # A view would give its memory without itself.
        alive = weakref.ref(a)
        t = td.asarray(a)
        part = t[10:]
        del a, t
        assert alive() is not None
        del part
        assert alive() is None
    finally:
        gc.enable()


def test_a_tensor_released_by_another_thread_releases_the_owner():
    a = np.ones(1 << 16, np.float32).view(Owner).copy()
    alive = weakref.ref(a)
    box = [td.asarray(a)]
    del a
    thread = threading.Thread(target=lambda: (td.exp(box[0]), box.clear()))
    thread.start()
    thread.join()
    for _ in range(1000):  # The main thread runs what other threads left for it.
        if alive() is None:
            break
    assert alive() is None


def test_memory_that_others_see_is_not_reused():
    x = td.ones(1000)
    view = memoryview(x)
    variable = td.Variable(x)
    del x
    variable.assign_add(1.0)
    assert view[0] == 1.0


def test_buffers():
    t = td.asarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    view = memoryview(t)
    assert (view.shape, view.format, view.readonly, view.tolist()) == ((2, 3), "i", True, [[0, 1, 2], [3, 4, 5]])
    assert bytes(t) == np.arange(6, dtype=np.int32).tobytes()
    assert td.asarray(array.array("d", [1, 2])).tolist() == [1, 2]
    assert td.asarray(memoryview(b"ab")).tolist() == [97, 98]
    assert bytes(t.T) == np.arange(6, dtype=np.int32).reshape(2, 3).T.tobytes()
    with pytest.raises((BufferError, ValueError), match="not contiguous"):
        hashlib.sha1(t.T)
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(bytes(24)).readinto(t)
    with pytest.raises(BufferError, match="bf16 has no format"):
        memoryview(td.ones(2, "bf16"))


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    t = td.asarray(a)
    assert t.dtype is td.bf16 and t.tolist() == [1, 2.5, -3]
    back = np.asarray(t)
    assert back.dtype == ml_dtypes.bfloat16 and np.shares_memory(back.view("u2"), a.view("u2"))


@pytest.mark.parametrize("dtype", ["longdouble", "clongdouble", "datetime64[s]", "U3"])
def test_other_elements_are_refused(dtype):
    with pytest.raises(TypeError, match="its elements are .*, which Tidemark has not\n.*\n  convert it first: array.astype"):
        td.asarray(np.zeros(2, dtype))


def test_numpy_functions_take_tensors():
    t = td.asarray([0.0, 1.0])
    np.testing.assert_allclose(np.sin(t), np.sin([0.0, 1.0]))
    assert np.concatenate([t, t]).shape == (4,)


def test_dlpack_with_numpy():
    t = td.asarray(np.arange(6, dtype=np.float32).reshape(2, 3).T)
    a = np.from_dlpack(t)
    assert np.shares_memory(a, np.asarray(t)) and a.tolist() == t.tolist() and not a.flags.writeable
    b = np.arange(4.0)
    shared = td.from_dlpack(b)
    b[0] = 7
    assert shared.tolist() == [7, 1, 2, 3] and shared.dtype is td.f64
    assert t.__dlpack_device__() == (1, 0)
    capsule = t.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    assert "dltensor" in repr(t.__dlpack__())


def test_an_unused_capsule_gives_its_tensor_back():
    a = np.ones(10, np.float32).view(Owner).copy()
    alive = weakref.ref(a)
    capsules = [td.asarray(a).__dlpack__(), td.asarray(a).__dlpack__(max_version=(1, 0))]
    del a
    assert alive() is not None
    del capsules
    assert alive() is None
