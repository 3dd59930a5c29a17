"""One side of bench/ops, in a process of its own: `worker.py tidemark|torch`, which answers requests in lines of JSON.

  {"prepare": N, "threads": T}    makes the inputs of case N and calls it until it is warm
                                  -> {"calls": of a sample, "result": elements} or {"error": text}
  {"seconds": S}                  samples for so long, and at least until the caches are warm again -> {"best": seconds of a call}

On one thread it counts processor time, for machines that others use too; on several, time that passes.
"""

import json
import os
import sys
import time

import cases

GOLDEN, OTHER = 0.6180339887498949, 0.41421356237309515
SAMPLE_S, WARM_S = 1e-3, 0.04
# The other side has used the caches meanwhile. A last-level cache of some CPUs takes eight passes over the operands to hold
# them again; long calls, which measure more than memory, are not repeated for that.
LEAST_SAMPLES, LEAST_S = 12, 0.1
MOST_SHOWN = 5


class Tidemark:
    """Makes inputs, and reads results."""

    def __init__(self):
        import tidemark as td
        self.library = td

    def threads(self, count):
        self.library.set_num_threads(count)

    def counted(self, count):
        return self.library.arange(0, count, 1, dtype="f64")

    def cast(self, x, dtype):
        return self.library.identity(self.library.cast(x, dtype))

    def indices(self, x):
        return self.cast(x, "i64")

    def sort(self, x):
        return self.library.sort(x)

    def image(self, x):
        return x

    def kernel(self, x):
        return x

    def read(self, x):
        return self.library.reshape(self.library.cast(x, "f64"), [-1])


class Torch:
    def __init__(self):
        import torch
        self.library = torch
        torch.set_grad_enabled(False)
        self.dtypes = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int32, "bool": torch.bool}

    def threads(self, count):
        self.library.set_num_threads(count)

    def counted(self, count):
        return self.library.arange(0, count, 1, dtype=self.library.float64)

    def cast(self, x, dtype):
        return x.to(self.dtypes[dtype])

    def indices(self, x):
        return x.to(self.library.int64)

    def sort(self, x):
        return self.library.sort(x)[0]

    def image(self, x):
        return x.permute(0, 3, 1, 2)

    def kernel(self, x):
        return x.permute(3, 2, 0, 1).contiguous(memory_format=self.library.channels_last)

    def read(self, x):
        if x.dim() == 4 and x.is_contiguous(memory_format=self.library.channels_last):
            x = x.permute(0, 2, 3, 1)
        return x.double().reshape(-1)


def make_input(side, text):
    """"64x16384 positive" and so on: numbers spread evenly, the same on both sides."""
    sizes, *words = text.split()
    shape = [int(size) for size in sizes.split("x")]
    count = 1
    for size in shape:
        count *= size
    unit = (side.counted(count) * (OTHER if "other" in words else GOLDEN)) % 1.0  # In [0, 1).
    x = shaped(side, unit, words)
    if "sorted" in words:
        x = side.sort(x)
    x = x.reshape(shape)
    if "definite" in words:  # A symmetric matrix with a diagonal that dominates.
        x = (x + x.T) / 2 + shape[0] * side.library.eye(shape[0])
    return side.image(x) if "image" in words else side.kernel(x) if "kernel" in words else x


def shaped(side, unit, words):
    for word in words:
        if word.startswith("below"):
            return side.indices(unit * int(word.removeprefix("below")))
    if "bool" in words:
        return side.cast(unit > 0.5, "bool")
    if "bits" in words:
        return side.cast(unit * 8, "i32")
    if "i32" in words:
        return side.cast(unit * 2000 - 1000, "i32")
    if "positive" in words:
        return side.cast(unit + 0.01, "f32")
    if "above1" in words:
        return side.cast(unit * 3 + 1, "f32")
    if "near1" in words:
        return side.cast(unit * 2e-4 + 0.9999, "f32")
    if "half" in words:
        return side.cast(unit - 0.5, "f32")
    return side.cast(unit * 2 - 1, "f64" if "f64" in words else "f32")


class Measured:
    def __init__(self, side, case, threads):
        side.threads(threads)
        self.clock = time.process_time if threads == 1 else time.perf_counter
        inputs = [make_input(side, text) for text in case.inputs]
        function, library = (case.ours if isinstance(side, Tidemark) else case.theirs), side.library
        self.call = lambda: function(library, *inputs)
        self.result = elements(side, self.call()) if case.compared else None
        self.calls = 1
        self.warm()

    def warm(self):
        """Kernels of ours become machine code when they have worked for a while."""
        begin = time.perf_counter()
        while time.perf_counter() - begin < WARM_S:
            spent = self.sample() * self.calls
            if spent < SAMPLE_S and self.calls < 100_000:
                self.calls *= 2

    def sample(self):
        call, calls, clock = self.call, self.calls, self.clock
        begin = clock()
        for _ in range(calls):
            call()
        return (clock() - begin) / calls

    def best(self, seconds):
        begin = time.perf_counter()
        least, taken, passed = self.sample(), 1, 0.0
        while passed < seconds or (taken < LEAST_SAMPLES and passed < LEAST_S):
            least, taken = min(least, self.sample()), taken + 1
            passed = time.perf_counter() - begin
        return least


def elements(side, result):
    """The number of elements, and some of them."""
    flat = side.read(result)
    count = int(flat.shape[0])
    return [count, *(float(flat[k * (count - 1) // MOST_SHOWN]) for k in range(MOST_SHOWN + 1) if count > 0)]


def main(name):
    # What libraries print goes elsewhere than answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    side = Tidemark() if name == "tidemark" else Torch()
    measured = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "prepare" in request:
                measured = None  # Frees the inputs of the case before.
                measured = Measured(side, cases.CASES[request["prepare"]], request["threads"])
                answer = {"calls": measured.calls, "result": measured.result}
            else:
                answer = {"best": measured.best(request["seconds"])}
        except Exception as error:  # Whatever a call raises becomes the text of its row.
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
