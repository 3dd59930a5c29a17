"""DLPack and arrays with PyTorch and JAX, on the CPU."""
import numpy as np
import pytest

import tidemark as td

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64",
                                   "uint8", "uint16", "uint32", "uint64", "bool"])
def test_torch_shares_both_ways(dtype):
    theirs = torch.arange(6).to(getattr(torch, dtype)).reshape(2, 3).T
    ours = td.from_dlpack(theirs)
    assert ours.shape == (3, 2) and ours.tolist() == theirs.tolist()
    back = torch.from_dlpack(ours)
    assert back.dtype == theirs.dtype and back.data_ptr() == theirs.data_ptr()
    assert td.asarray(theirs).tolist() == theirs.tolist()


def test_torch_keeps_the_memory():
    kept = torch.from_dlpack(td.ones(1000))
    td.zeros(1000)
    assert kept.sum() == 1000
    ours = td.asarray(torch.ones(1000))
    assert td.sum(ours).item() == 1000


def test_a_tensor_with_a_gradient_of_torch_is_refused_by_torch():
    with pytest.raises((BufferError, RuntimeError)):
        td.asarray(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32", "uint8"])
def test_jax_shares_both_ways(dtype):
    theirs = jax.numpy.arange(6).astype(dtype).reshape(2, 3)
    ours = td.asarray(theirs)
    assert str(ours.dtype) == str(td.zeros(1, dtype).dtype) and ours.tolist() == theirs.tolist()
    back = jax.dlpack.from_dlpack(ours)
    assert back.dtype == theirs.dtype and back.tolist() == theirs.tolist()
    np.testing.assert_array_equal(np.asarray(jax.numpy.asarray(ours)), np.asarray(theirs))
