"""other_programs.py KIND DRIVER FOLDER: files of NumPy, of the safetensors package or of PyTorch, there and back.

Arrays of every dtype, shape and order are written by the other program, read and written by ours
(files_driver), and read back by the other program: every bit must be the same. PyTorch is taken where
it is installed, also by bench/peers/run, and never installed for this: it is too large.
"""
import glob
import itertools
import os
import shutil
import subprocess
import sys

import numpy as np

DTYPES = ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"]
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (4, 3, 2), (1, 1, 1, 6)]


def bits(array):
    return (array.dtype.str, array.shape, array.tobytes())


def arrays():
    """Random bits, so that NaNs and denormals come too; bools are 0 and 1."""
    random = np.random.default_rng(1)
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        raw = random.integers(0, 256, shape + (np.dtype(dtype).itemsize,), dtype=np.uint8)
        raw = raw % 2 if dtype == "bool" else raw
        yield np.frombuffer(raw.tobytes(), dtype).reshape(shape)


def check(name, got, wanted):
    if bits(got) != bits(wanted):
        sys.exit(f"{name}: {got.dtype}{got.shape} is not {wanted.dtype}{wanted.shape}, or not its bits")


def numpy_files(driver, folder):
    words, wanted = [], []
    forms = itertools.cycle(itertools.product((1, 2, 3), "CF", (False, True)))
    for i, array in enumerate(arrays()):
        for version, order, swap in itertools.islice(forms, 3):
            name = f"{folder}/{i}{order}{swap:d}{version}"
            written = np.asarray(array, order=order)
            written = written.astype(written.dtype.newbyteorder(">")) if swap else written
            with open(name + ".npy", "wb") as out:
                np.lib.format.write_array(out, written, version=(version, 0))
            words += [name + ".npy", name + ".out.npy"]
            wanted.append((name + ".out.npy", array))
    named = {f"a{i}": array for i, array in enumerate(arrays())}
    named["deep/er"] = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    named["caf\u00e9"] = np.zeros(100_000, "float32")
    named["noise"] = np.random.default_rng(2).standard_normal(100_000)
    named["steps"] = np.arange(300_000, dtype="int64") // 7
    np.savez(f"{folder}/s.npz", **named)
    np.savez_compressed(f"{folder}/c.npz", **named)
    np.savez(f"{folder}/e.npz")
    for name in "sce":
        words += [f"{folder}/{name}.npz", f"{folder}/{name}.out.npz"]
    subprocess.run([driver] + words, check=True)
    for name, array in wanted:
        check(name, np.load(name), array)
    for name in "sc":
        with np.load(f"{folder}/{name}.out.npz") as got:
            if sorted(got.files) != sorted(named):
                sys.exit(f"{name}: the names are {got.files}")
            for key, array in named.items():
                check(f"{name}, {key}", got[key], np.ascontiguousarray(array).reshape(array.shape))
    with np.load(f"{folder}/e.out.npz") as got:
        assert got.files == []


def safetensors_files(driver, folder):
    import safetensors.numpy
    from safetensors import safe_open

    named = {f"layer/{i}": array for i, array in enumerate(arrays())}
    named["\u00e9 \"quoted\" \\ \t"] = np.arange(5.0)
    safetensors.numpy.save_file(named, f"{folder}/x.safetensors", {"a": "b"})
    subprocess.run([driver, f"{folder}/x.safetensors", f"{folder}/y.safetensors"], check=True)
    got = safetensors.numpy.load_file(f"{folder}/y.safetensors")
    if sorted(got) != sorted(named):
        sys.exit(f"the names are {sorted(got)}")
    for key, array in named.items():
        check(key, got[key], array)
    with safe_open(f"{folder}/y.safetensors", "numpy") as file:
        assert file.metadata() == {"writer": 'files_driver "\u00e9"\n'}, file.metadata()
    bf16_safetensors(driver, folder)


def bf16_safetensors(driver, folder):
    """NumPy has no bf16, ml_dtypes adds it. What comes back is compared as bytes."""
    import ml_dtypes
    import safetensors

    every = np.arange(1 << 16, dtype="uint16").view(ml_dtypes.bfloat16)  # Each of its values once.
    given = {"every": every.reshape(256, 256), "one": every[:1].reshape(()), "none": every[:0].reshape(0, 3)}
    safetensors.numpy.save_file(given, f"{folder}/bf16.safetensors")
    subprocess.run([driver, f"{folder}/bf16.safetensors", f"{folder}/bf16_out.safetensors"], check=True)
    with open(f"{folder}/bf16_out.safetensors", "rb") as file:
        got = dict(safetensors.deserialize(file.read()))
    assert sorted(got) == sorted(given), sorted(got)
    for name, array in given.items():
        found = (got[name]["dtype"], tuple(got[name]["shape"]), bytes(got[name]["data"]))
        if found != ("BF16", array.shape, array.tobytes()):
            sys.exit(f"{name}: {found[0]}{found[1]} is not BF16{array.shape}, or not its bits")


def torch_files(driver, folder):
    root = os.path.join(os.path.dirname(__file__), "../../..")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sys.path += glob.glob(f"{root}/build/peers/venv/lib/{version}/site-packages")
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed (bench/peers/run --install --peer torch)", file=sys.stderr)
        sys.exit(77)
    import safetensors.torch

    def check_tensor(name, got, wanted):
        # As bytes: a NaN is not equal to itself.
        flat = [tensor.flatten().clone().untyped_storage().tolist() for tensor in (got, wanted)]
        if (got.dtype, got.shape) != (wanted.dtype, wanted.shape) or flat[0] != flat[1]:
            sys.exit(f"{name}: {got.dtype}{got.shape} is not {wanted.dtype}{wanted.shape}, or not its bits")

    named = {f"layer.{i}.weight": torch.from_numpy(array.copy()) for i, array in enumerate(arrays())}
    halves = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
    named["bf16"] = halves.view(torch.bfloat16).reshape(256, 256)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.BatchNorm1d(7), torch.nn.Linear(7, 3))
    named.update({"model." + name: tensor for name, tensor in model.state_dict().items()})
    safetensors.torch.save_file(named, f"{folder}/x.safetensors")
    words = [f"{folder}/x.safetensors", f"{folder}/y.safetensors"]
    for i, tensor in enumerate(named.values()):
        if tensor.dtype == torch.bfloat16:
            continue  # NumPy's files have no bf16.
        np.save(f"{folder}/{i}.npy", tensor.numpy())
        words += [f"{folder}/{i}.npy", f"{folder}/{i}.out.npy"]
    subprocess.run([driver] + words, check=True)
    got = safetensors.torch.load_file(f"{folder}/y.safetensors")
    assert sorted(got) == sorted(named), sorted(got)
    for i, (name, tensor) in enumerate(named.items()):
        check_tensor(name, got[name], tensor)
        if tensor.dtype != torch.bfloat16:
            check_tensor(f"{name}, as npy", torch.from_numpy(np.load(f"{folder}/{i}.out.npy")), tensor)
    model.load_state_dict({name[6:]: got[name] for name in got if name.startswith("model.")}, strict=True)


def main():
    kind, driver, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    {"numpy": numpy_files, "safetensors": safetensors_files, "torch": torch_files}[kind](driver, folder)
    shutil.rmtree(folder)


main()
