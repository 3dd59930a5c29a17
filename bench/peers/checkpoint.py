#!/usr/bin/env python3
"""usage: bench/peers/checkpoint.py [--peer jax|jax_scan|torch]... [--repeat N] [--calls N] [--program FILE] [--python FILE] [model...]

Compares budgets with checkpointing around each block, by jax.checkpoint and torch.utils.checkpoint. Models:
gpt_step (12 layers, AdamW) and residual (16 blocks), as in bench/budgets; jax_scan has the blocks in a lax.scan,
which XLA does not merge with their repetition. For each peer: its bytes and CPU time
without checkpoints and with them. For us: the slowdown within as many bytes, and within 0.8 times as many; both
should be at most the peer's.

Bytes: JAX counts its temporaries and results itself (memory_analysis); PyTorch's are the growth of resident
memory from between two calls to the peak of a call; ours are planned. Arguments, parameters and the state of
optimizers count for nobody. Times are CPU seconds of one thread: the least of all calls (--calls, usually 3) of
all rounds (--repeat, usually 2), which take turns, each in a process of its own. What is being measured is said on
stderr. All of it takes about ten minutes on an idle core.

The peers are those that bench/peers/run --install installs. Exit codes: 0 measured, 1 a process failed or two
losses differ, 2 bad usage.
"""

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODELS = ("gpt_step", "residual")
PEERS = ("jax", "jax_scan", "torch")
LAYERS, BLOCKS, IMAGES = 12, 16, (4, 28, 28)
BETA1, BETA2, EPSILON, DECAY, RATE = 0.9, 0.999, 1e-8, 0.01, 1e-3


# ---- One peer, in a process of its own


def jax_call(model, checkpoint, scan=False):
    """A function that makes one call and returns its loss, and the bytes that JAX counts. The blocks are in a
    lax.scan, or one after another."""
    import jax
    import jax.numpy as jnp
    import numpy

    from inputs import Gpt, conv_parameters, values
    from jax_cases import conv_loss, gpt_loss, one_after_another

    def run(block, x, parameters, each):
        wrapped = jax.checkpoint(block) if checkpoint else block
        if not scan:
            return one_after_another(wrapped, x, parameters, each)
        return jax.lax.scan(lambda x, p: (wrapped(x, *p), None), x, parameters)[0]

    def stacked(parameters, each):
        """For a scan, one array holds a parameter of all blocks."""
        return [numpy.stack(parameters[i::each]) for i in range(each)] if scan else parameters

    def adamw(parameter, gradient, m, v, count):
        m, v = BETA1 * m + (1 - BETA1) * gradient, BETA2 * v + (1 - BETA2) * gradient * gradient
        move = m / (1 - BETA1**count) / (jnp.sqrt(v / (1 - BETA2**count)) + EPSILON)
        return parameter * (1 - RATE * DECAY) - RATE * move, m, v

    def step(state, ids):
        parameters, ms, vs, count = state
        loss, gradients = jax.value_and_grad(gpt_loss(Gpt(LAYERS), run))(parameters, ids)
        moved = [adamw(*each, count) for each in zip(parameters, gradients, ms, vs)]
        return (*[list(each) for each in zip(*moved)], count + 1), loss

    if model == "residual":
        arguments = jax.tree.map(jnp.asarray, (stacked(conv_parameters(BLOCKS), 1), values(*IMAGES, 64, scale=2)))
        compiled = jax.jit(jax.value_and_grad(conv_loss(run))).lower(*arguments).compile()
        call = lambda: float(jax.block_until_ready(compiled(*arguments))[0])
    else:
        table, *layers = Gpt(LAYERS).parameters()
        parameters = [jnp.asarray(each) for each in (table, *stacked(layers, 6))]
        zeros = [[jnp.zeros_like(each) for each in parameters] for _ in range(2)]
        state, ids = (parameters, *zeros, jnp.float32(1)), jnp.asarray(Gpt(LAYERS).ids())
        # Donated, so that the new state takes the place of the old one, as in PyTorch and in ours.
        compiled = jax.jit(step, donate_argnums=0).lower(state, ids).compile()

        def call():
            nonlocal state
            state, loss = jax.block_until_ready(compiled(state, ids))
            return float(loss)

    said = compiled.memory_analysis()
    return call, said.temp_size_in_bytes + said.output_size_in_bytes - said.alias_size_in_bytes


def torch_call(model, checkpoint):
    """The same; PyTorch counts no bytes."""
    import torch
    from torch.utils.checkpoint import checkpoint as checkpointed

    from inputs import Gpt
    from torch_cases import Convolutions, gpt_loss

    torch.set_num_threads(1)
    run = lambda block, *operands: block(*operands)
    if checkpoint:
        run = lambda block, *operands: checkpointed(block, *operands, use_reentrant=False)
    if model == "residual":
        gradient = Convolutions(BLOCKS, IMAGES, run)
        gradient.with_value = True
        return lambda: float(gradient()[-1]), None
    loss = gpt_loss(Gpt(LAYERS), run)
    parameters = [torch.from_numpy(each.copy()).requires_grad_() for each in Gpt(LAYERS).parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, betas=(BETA1, BETA2), eps=EPSILON, weight_decay=DECAY)

    def call():
        with torch.enable_grad():
            value = loss(parameters)
            value.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(value)

    return call, None


def grown_bytes(call):
    from measure import reset_peak, status_bytes

    call()
    idle = status_bytes("VmRSS")
    reset_peak()
    call()
    return status_bytes("VmHWM") - idle


def measure(peer, model, checkpoint, calls):
    call_of = {"jax": jax_call, "jax_scan": functools.partial(jax_call, scan=True), "torch": torch_call}
    call, counted = call_of[peer](model, checkpoint)
    loss = call()
    grown = grown_bytes(call)
    samples = []
    for _ in range(calls):
        begin = time.process_time()
        call()
        samples.append(time.process_time() - begin)
    print(json.dumps({"seconds": min(samples), "bytes": grown if counted is None else counted, "loss": loss}))


# ---- All of them, in turns


def note(text):
    print(text, file=sys.stderr, flush=True)


def stop(code, text):
    print(f"bench/peers/checkpoint.py: {text}", file=sys.stderr)
    sys.exit(code)


def output_of(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | (environment or {}))
    if done.returncode != 0:
        stop(1, f"{' '.join(map(str, command))}: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")
    return done.stdout


def of_peer(asked, peer, model, checkpoint):
    # One thread; freed blocks go back to the system, so that the peak of a call is seen.
    environment = {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        "MALLOC_MMAP_THRESHOLD_": str(64 << 10),
        "MALLOC_TRIM_THRESHOLD_": "0",
    }
    mode = "checkpoint" if checkpoint else "plain"
    begin = time.monotonic()
    said = json.loads(output_of([asked.python, __file__, "--measure", peer, model, mode, str(asked.calls)], environment))
    note(f"{model}, {peer}, {mode}: {said['bytes'] / 2**20:.1f} MiB, {said['seconds']:.3f} s a call ({time.monotonic() - begin:.0f} s)")
    return said


def slowdowns_of(asked, model, budgets):
    """By budget: our time, of that without a budget. Those below the floor have none."""
    note(f"{model}: ours within {', '.join(f'{each / 2**20:.1f}' for each in budgets)} MiB")
    lines = output_of([asked.program, "--curve", model, *map(str, budgets)]).splitlines()[1:]
    rows = [line.split() for line in lines]
    return {int(budget): float(time) for budget, _, _, time in rows}


def fewer(count):
    return count * 4 // 5


def measured(asked, peer, model):
    plain, kept = [], []
    for _ in range(asked.repeat):
        plain.append(of_peer(asked, peer, model, False))
        kept.append(of_peer(asked, peer, model, True))
    losses = {each["loss"] for each in plain + kept}
    if max(losses) - min(losses) > 1e-3 * abs(max(losses)):
        stop(1, f"{peer}, {model}: the losses differ, {losses}")
    least = lambda runs, key: min(each[key] for each in runs)
    return {
        "plain bytes": least(plain, "bytes"),
        "bytes": least(kept, "bytes"),
        "slowdown": least(kept, "seconds") / least(plain, "seconds"),
    }


def row_of(peer, model, theirs, ours):
    slowdown = lambda budget: f"{ours[budget]:.2f}" if budget in ours else "below the floor"
    cells = [model, peer, *(f"{theirs[key] / 2**20:.1f}" for key in ("plain bytes", "bytes"))]
    cells += [f"{theirs['slowdown']:.2f}", slowdown(theirs["bytes"]), slowdown(fewer(theirs["bytes"]))]
    return "| " + " | ".join(cells) + " |"


HEADER = """\
| model | peer | MiB without | MiB with checkpoints | slowdown | ours within their bytes | ours within 0.8 of them |
|---|---|---|---|---|---|---|"""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        stop(2, f"{message} (try --help)")

    def print_help(self, file=None):
        print(__doc__, end="", file=file)


def parse():
    parser = Parser(prog="bench/peers/checkpoint.py", allow_abbrev=False)
    parser.add_argument("--peer", action="append", choices=PEERS, default=[])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "bench" / "budgets")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "build" / "peers" / "venv" / "bin" / "python")
    parser.add_argument("models", nargs="*", metavar="model")
    asked = parser.parse_args()
    for model in asked.models:
        if model not in MODELS:
            stop(2, f"no model is called '{model}'; there are {', '.join(MODELS)}")
    for name, count in (("repeat", asked.repeat), ("calls", asked.calls)):
        if count < 1:
            stop(2, f"--{name} {count}: at least 1 is needed")
    for needed in (asked.program, asked.python):
        if not needed.exists():
            stop(2, f"{needed} is not there")
    return asked


def main():
    if sys.argv[1:2] == ["--measure"]:
        peer, model, mode, calls = sys.argv[2:]
        measure(peer, model, mode == "checkpoint", int(calls))
        return 0
    asked = parse()
    print(HEADER, flush=True)
    for model in asked.models or MODELS:
        theirs = {peer: measured(asked, peer, model) for peer in asked.peer or PEERS}
        bytes_of = [each["bytes"] for each in theirs.values()]
        ours = slowdowns_of(asked, model, [*bytes_of, *map(fewer, bytes_of)])
        for peer, figures in theirs.items():
            print(row_of(peer, model, figures, ours), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
