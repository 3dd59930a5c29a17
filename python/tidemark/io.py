"""NumPy's files, safetensors, and checkpoints built on them."""

from ._core import io as _io
from ._core.io import RestoreReport, load, load_npy, load_npz, load_safetensors, save_npy, save_npz, save_safetensors

__all__ = [
    "Checkpoint",
    "RestoreReport",
    "Safetensors",
    "load",
    "load_npy",
    "load_npz",
    "load_safetensors",
    "save_npy",
    "save_npz",
    "save_safetensors",
]


class Safetensors(dict):
    """The tensors of a file by name, and its `metadata`."""

    metadata: dict


class Checkpoint(_io._Checkpoint):
    """The state of a training run in one safetensors file.

        checkpoint = td.io.Checkpoint(model=model, optimizer=optimizer, data=batches, state=state)
        checkpoint.save("last.safetensors")
        checkpoint.load("last.safetensors")

    Variables are found in any object and named by its attributes: "model/blocks/0/up/kernel". In dicts and lists
    numbers and tensors are saved too, and put back there. Of a dataset its position is saved. The state of the global
    random generator is saved and loaded with them.
    """

    def __init__(self, parts=None, /, **more):
        super().__init__({**(parts or {}), **more})
