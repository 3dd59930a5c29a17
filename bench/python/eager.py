"""What an eager call costs from Python, beside PyTorch in the same process, and what an import costs.

usage: scripts/venv.sh numpy --large torch -- env PYTHONPATH=build/release/python python bench/python/eager.py [--check]

Both libraries take turns, and each number is the least of many rounds of CPU time. With --check the exit code is 1 if a
bar is missed: a 4x4 add in 1.0 us and 0.6 x PyTorch, 1,000 adds of 16 floats in 0.6 x PyTorch, an import in 60 ms of CPU
time and 45 MiB.
"""
import subprocess
import sys
import time

import numpy as np
import torch

import tidemark as td

ROUNDS = 60


def adds(x, y):
    for _ in range(1000):
        x + y


def chain(x, _):
    z = x
    for _ in range(1000):
        z = z + x


def microseconds(case, x):
    """CPU time of one of its 1,000 adds."""
    start = time.process_time_ns()
    case(x, x)
    return (time.process_time_ns() - start) / 1e6


def compared(case, array):
    candidates = {"tidemark": td.asarray(array), "torch": torch.from_numpy(array)}
    best = dict.fromkeys(candidates, float("inf"))
    for _ in range(ROUNDS):
        for name, x in candidates.items():
            best[name] = min(best[name], microseconds(case, x))
    assert np.array_equal((candidates["tidemark"] + 1).numpy(), array + 1)
    return best["tidemark"], best["torch"]


IMPORT = """
import time
start = time.process_time()
import tidemark
spent = time.process_time() - start
resident = next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]
print(spent * 1e3, int(resident) / 1024)
"""


def imported():
    """Milliseconds of CPU time, and MiB that a process with nothing else holds."""
    runs = [list(map(float, subprocess.check_output([sys.executable, "-c", IMPORT]).split())) for _ in range(5)]
    return min(run[0] for run in runs), max(run[1] for run in runs)


def main():
    torch.set_num_threads(1)
    rows = [("4x4 add", *compared(adds, np.ones((4, 4), np.float32)), 1.0),
            ("add of 16 floats, 1,000 in a chain", *compared(chain, np.ones(16, np.float32)), float("inf"))]
    missed = False
    for name, ours, theirs, most in rows:
        print(f"{name:36} tidemark {ours:6.3f} us  torch {theirs:6.3f} us  ratio {ours / theirs:.2f}")
        missed |= ours > most or ours > 0.6 * theirs
    spent, resident = imported()
    print(f"{'import tidemark':36} {spent:.1f} ms of CPU time, {resident:.1f} MiB resident")
    missed |= spent > 60 or resident > 45
    return int(missed and "--check" in sys.argv)


sys.exit(main())
