"""other_programs.py KIND DRIVER FOLDER: files of NumPy or of the safetensors package, there and back.

Arrays of every dtype, shape and order are written by the other program, read and written by ours
(files_driver), and read back by the other program: every bit must be the same.
"""
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


def main():
    kind, driver, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    {"numpy": numpy_files, "safetensors": safetensors_files}[kind](driver, folder)
    shutil.rmtree(folder)


main()
